// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/server_set.h"

#include <stdio.h>
#include <string.h>

void server_set_add(struct server_set *set, const struct server_info *server)
{
	const char *name = describe_engine(server->engine, server->version);

	for (size_t i = 0; i < SERVER_SET_ENGINES; i++) {
		__typeof__(*set->row) *row = &set->row[i];

		if (!row->engine) {
			row->engine = server->engine->name;
			row->name = name;
			snprintf(row->version, sizeof(row->version), "%s", server->version);
			snprintf(row->path, sizeof(row->path), "%s", server->path);
			return;
		}
		if (strcmp(row->engine, server->engine->name))
			continue;
		if (strcmp(row->name, name))
			row->name = row->engine;
		if (strcmp(row->version, server->version))
			*row->version = '\0';
		if (strcmp(row->path, server->path))
			*row->path = '\0';
		return;
	}
}

struct json_server server_set_common(const struct server_set *set, const char *engine)
{
	for (size_t i = 0; i < SERVER_SET_ENGINES; i++)
		if (set->row[i].engine && !strcmp(set->row[i].engine, engine))
			return (struct json_server){ .engine = set->row[i].name,
						     .version = set->row[i].version,
						     .path = set->row[i].path };
	return (struct json_server){ .engine = engine };
}
