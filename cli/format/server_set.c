// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/server_set.h"

#include <string.h>

#include "db/engine.h"

void server_set_add(struct server_set *set, const struct server_info *info)
{
	struct server server;

	describe_server(&server, info->engine, info->version, info->path);
	for (size_t i = 0; i < SERVER_SET_ENGINES; i++) {
		struct server *row = &set->row[i];

		if (!row->engine) {
			*row = server;
			return;
		}
		if (strcmp(row->engine->name, server.engine->name))
			continue;
		if (strcmp(row->product, server.product))
			row->product = row->engine->name;
		if (strcmp(row->version, server.version))
			*row->version = '\0';
		if (strcmp(row->path, server.path))
			*row->path = '\0';
		return;
	}
}

struct server server_set_common(const struct server_set *set, const char *engine)
{
	for (size_t i = 0; i < SERVER_SET_ENGINES; i++)
		if (set->row[i].engine && !strcmp(set->row[i].engine->name, engine))
			return set->row[i];
	return (struct server){ .product = engine };
}
