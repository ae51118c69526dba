// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/engine.h"

#include <string.h>

#include "db/mysql/probes.h"
#include "db/postgres/probes.h"

const struct engine *const engine_table[] = {
	&engine_postgres, &engine_mysql_usdt, &engine_mysql, NULL,
};

const struct engine_arg engine_defaults[] = {
	{ .name = "arg_client", .fallback = 1 },
	{ .name = "arg_session" },
	{ .name = "arg_server" },
	{ .name = "arg_replication" },
	{ .name = "arg_user" },
	{ .name = "arg_user_length" },
	{ .name = "arg_database" },
	{ .name = "arg_host" },
	{ .name = "arg_host_length" },
	{ .name = "arg_address" },
	{ .name = "arg_port" },
	{ .name = "arg_connection" },
	{ .name = "arg_resumed" },
	{ .name = "arg_inner" },
	{ .name = "arg_status" },
	{ .name = "arg_wait_event" },
	{ .name = "arg_wait" },
	{ .name = "arg_family" },
	{ .name = "arg_self" },
	{ .name = "arg_worker" },
	{ .name = "arg_leader" },
	{ .name = "arg_phase" },
	{ .name = "arg_buffers" },
	{ .name = "arg_wal" },
	{ .name = NULL },
};

bool engine_known(const char *name)
{
	for (size_t i = 0; engine_table[i]; i++)
		if (!strcmp(engine_table[i]->name, name))
			return true;
	return false;
}

const char *engine_of_file(const char *file)
{
	for (size_t i = 0; engine_table[i]; i++)
		for (const char *const *name = engine_table[i]->executables; *name; name++)
			if (!strcmp(*name, file))
				return engine_table[i]->name;
	return NULL;
}

bool engine_is_executable(const char *file)
{
	return engine_of_file(file);
}
