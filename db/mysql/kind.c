// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* THD::system_thread is an enum_thread_type (sql/sql_class.h, MySQL 8: sql/system_variables.h). */
#include "db/mysql/kind.h"

#include <stdio.h>

#include "base/base.h"
#include "usdt/accessor.h"
#include "usdt/elf_symbol.h"

/* Event_scheduler::execute_top() stores SYSTEM_THREAD_EVENT_WORKER, 16: movl $16,at(register). */
#define EXECUTE_TOP	"_ZN15Event_scheduler11execute_topEP28Event_queue_element_for_exec"

void mysql_kinds_find(const struct elf *elf, struct mysql_kinds *kinds)
{
	static const char *const stores[] = {
		"c7 83 @@@@@@@@ 10 00 00 00", "41 c7 84 24 @@@@@@@@ 10 00 00 00",
		"41 c7 85 @@@@@@@@ 10 00 00 00", "41 c7 86 @@@@@@@@ 10 00 00 00",
		"41 c7 87 @@@@@@@@ 10 00 00 00",
	};

	kinds->mysql = elf_symbol_value(elf, "_ZN18Global_THD_manager11thd_managerE");
	for (size_t i = 0; i < ARRAY_SIZE(stores) &&
			   (kinds->mysql || elf_symbol_value(elf, "server_threads")); i++)
		if (!accessor_match(elf, EXECUTE_TOP, stores[i], &kinds->system_thread))
			return;
	kinds->system_thread = -1;
}

/* The numbers that both have, and those of each. */
static const struct kind {
	uint32_t mariadb, mysql;
	const char *name;
} kinds_known[] = {
	{ 0, 0, "client" },
	{ 2, 1, "replication receiver" },
	{ 4, 2, "replication applier" },
	{ 4, 64, "replication applier" },
	{ 8, 8, "event scheduler" },
	{ 16, 16, "event worker" },
	{ UINT32_MAX, 2048, "init" },
	{ UINT32_MAX, 4096, "init" },
};

bool mysql_kind_read(const struct mysql_kinds *kinds, const struct process_memory *memory,
		     uint64_t thd, char kind[BACKEND_NAME])
{
	uint32_t number;

	*kind = '\0';
	if (kinds->system_thread < 0 ||
	    !process_memory_get(memory, thd + (uint64_t)kinds->system_thread, &number,
				sizeof(number)))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(kinds_known) && !*kind; i++)
		if (number == (kinds->mysql ? kinds_known[i].mysql : kinds_known[i].mariadb))
			snprintf(kind, BACKEND_NAME, "%s", kinds_known[i].name);
	if (!*kind)
		snprintf(kind, BACKEND_NAME, "system thread");
	return number;
}

bool mysql_who_read(const struct mysql_kinds *kinds, const struct process_memory *memory,
		    const struct object_places *places, uint64_t thd, int64_t *own,
		    struct who *who)
{
	bool internal = mysql_kind_read(kinds, memory, thd, who->backend);

	object_read_who(memory, places, thd, internal ? NULL : own, who);
	return internal;
}
