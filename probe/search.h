/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Search for the probes of a file that a request matches. */
#ifndef PROBE_SEARCH_H
#define PROBE_SEARCH_H

#include "probe/request.h"

/*
 * Add the sites of @elf that @request, with index @number, matches to @set. Return the number of
 * probes that match, or -errno and the cause in @error.
 */
int probe_search(const struct probe_request *request, uint32_t number, const struct elf *elf,
		 const struct probe_request_config *config, struct uprobe_set *set,
		 struct error *error);

#endif
