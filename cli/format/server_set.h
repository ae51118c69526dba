/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The traced servers by engine, for objects in JSON that concern all servers of one. */
#ifndef CLI_FORMAT_SERVER_SET_H
#define CLI_FORMAT_SERVER_SET_H

#include "db/discover/discover.h"

#define SERVER_SET_ENGINES	4	/* more than there are at a time */

/* Empty if all zero. */
struct server_set {
	/* What all servers of an engine have in common. ->engine NULL: the row is unused. */
	struct server row[SERVER_SET_ENGINES];
};

/* Add a server. */
void server_set_add(struct server_set *set, const struct server_info *info);

/* Return what the servers of the engine of this name, borrowed, have in common. */
struct server server_set_common(const struct server_set *set, const char *engine);

#endif
