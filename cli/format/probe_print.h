/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The USDT probes of a file, as the command list shows them. */
#ifndef CLI_FORMAT_PROBE_PRINT_H
#define CLI_FORMAT_PROBE_PRINT_H

#include "cli/output.h"
#include "usdt/probe.h"

/*
 * Append the lines of a probe of file @elf, named @path, that has @count sites. @verbose is 0 for
 * its name only, 1 for the numbers of sites and arguments too, more for each of these; with
 * PROBE_PRINT_BCC the lines are those of bcc's tplist.
 */
#define PROBE_PRINT_BCC		(1u << 16)

void probe_print(struct output *out, const char *path, const struct elf *elf,
		 const struct probe_site *sites, size_t count, unsigned int verbose);

/* Append a probe as a line of JSON, with all of that. */
void probe_json(struct output *out, const char *path, const struct elf *elf,
		const struct probe_site *sites, size_t count);

#endif
