// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/lock_ops.h"

#include "db/mysql/locks.h"
#include "db/mysql/names.h"
#include "host/arch.h"

/*
 * MySQL and MariaDB notify their thread scheduler of each wait by thd_wait_begin() and
 * thd_wait_end(), whichever scheduler is in use. MDL_context::find_deadlock() is called before each
 * wait for a metadata lock. What becomes of a wait is told by an error of its statement only.
 */
#define TEXT_OF_SESSION \
	{ .name = "arg_session", .spec = "8@%arg0", .fallback = -1 }, \
	{ .name = "arg_text", .spec = "8@{thd_query_string}(%arg0)" }, \
	{ .name = "arg_text", .spec = "8@{_Z16thd_query_unsafeP3THD}(%arg0)" }, \
	{ .name = "arg_length", .spec = "8@{thd_query_string+8}(%arg0)" }, \
	{ .name = "arg_length", .spec = "8@{_Z16thd_query_unsafeP3THD+8}(%arg0)" }

#define KEPT_REGISTER(n, operand) { .name = "arg_kept" #n, .spec = operand },

#define SESSION_WAIT(symbol) \
	{ .step = "start", .program = "session_wait", .function = symbol, \
	  .args = ENGINE_ARGS(TEXT_OF_SESSION, HOST_KEPT(KEPT_REGISTER) \
			      { .name = "arg_kind", .spec = "4@%arg1", .fallback = -1 }) }

/* THD::raise_condition(): an error of a statement, also one that is handled. */
#define SESSION_ERROR(symbol, number) \
	{ .step = "error", .program = "session_error", .function = symbol, .optional = true, \
	  .has = TARGET_HAS_WAIT_ERRORS, \
	  .args = ENGINE_ARGS(TEXT_OF_SESSION, \
			      { .name = "arg_error", .spec = number, .fallback = -1 }) }

static const struct engine_probe mysql_probes[] = {
	{ .step = "done", .program = "lock_done", .function = "thd_wait_end" },
	{ .step = "done", .program = "lock_done", .function = "_Z12thd_wait_endP3THD" },
	{
		.step = "metadata", .program = "session_metadata",
		.function = "_ZN11MDL_context13find_deadlockEv", .optional = true,
		.args = ENGINE_ARGS({ .name = "arg_context", .spec = "8@%arg0", .fallback = -1 }),
	},
	/* MariaDB's argument is an object whose class begins as that of the Diagnostics_area. */
	SESSION_ERROR("_ZN3THD15raise_conditionEPK13Sql_condition",
		      "4@{thd_get_error_number:inner}(%arg1)"),
	SESSION_ERROR("_ZN3THD15raise_conditionEjPKcN13Sql_condition19enum_severity_levelES1_b",
		      "4@%arg1"),
	SESSION_WAIT("thd_wait_begin"),
	SESSION_WAIT("_Z14thd_wait_beginP3THDi"),
};

static const struct engine_probe_set mysql_set = {
	mysql_probes, sizeof(mysql_probes) / sizeof(mysql_probes[0]),
};

static int ops_find(void *state, const struct elf *elf, bool (*is_program)(const char *name))
{
	struct mysql_locks *places = state;

	mysql_locks_find(elf, places);
	places->is_program = is_program;
	return 0;
}

static int ops_read(void *state, const struct lock_query *query, struct lock_info *info)
{
	return mysql_locks_read(state, query, info);
}

static const char *ops_kind(const void *state, const struct event_lock *event)
{
	(void)state;
	return event->flags & LOCK_SESSION ? mysql_lock_kind(event) : "";
}

const struct lock_ops mysql_lock_ops = {
	.probes = &mysql_set, .state = { .bytes = sizeof(struct mysql_locks), .find = ops_find },
	.read = ops_read, .kind = ops_kind, .object = mysql_lock_object,
};
