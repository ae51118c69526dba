/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The child of ps: reads the sessions, and writes them to a socket as messages. */
#ifndef DB_PS_SCAN_H
#define DB_PS_SCAN_H

#include "db/discover/discover.h"
#include "db/sample/helper.h"

/* Answer the requests on @socket until it is closed. @text_bytes: maximum length of a text. */
void scan_run(const struct server_filter *filter, uint32_t text_bytes,
	      struct helper_shared *shared, int socket);

#endif
