/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The traced servers by engine, for objects in JSON that concern all servers of one. */
#ifndef CLI_FORMAT_SERVER_SET_H
#define CLI_FORMAT_SERVER_SET_H

#include "cli/format/json.h"
#include "db/discover/discover.h"

#define SERVER_SET_ENGINES	4	/* more than there are at a time */

/* Empty if all zero. */
struct server_set {
	struct {
		const char *engine;	/* name in struct engine; NULL: the row is unused */
		const char *name;	/* as of describe_engine() */
		/* Those of all its servers, foreign bytes; "": unknown, or not the same. */
		char version[TARGET_VERSION], path[256];
	} row[SERVER_SET_ENGINES];
};

/* Add a server. */
void server_set_add(struct server_set *set, const struct server_info *server);

/* Return what the servers of the engine of this name have in common; valid as long as @set. */
struct json_server server_set_common(const struct server_set *set, const char *engine);

#endif
