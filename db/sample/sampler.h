/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The child that samples: it reads the sessions of all servers at an interval, compares them with
 * the last time, and writes the statements that ended to a socket.
 */
#ifndef DB_SAMPLE_SAMPLER_H
#define DB_SAMPLE_SAMPLER_H

#include "db/discover/discover.h"
#include "db/sample/helper.h"

/* All is borrowed. */
struct sampler_config {
	const struct server_filter *filter;
	uint64_t interval_ns, threshold_ns;
	uint32_t text_bytes;
	struct helper_shared *shared;
};

/* Answer the requests on @socket until it is closed. */
void sampler_run(const struct sampler_config *config, int socket);

#endif
