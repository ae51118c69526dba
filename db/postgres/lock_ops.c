// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/lock_ops.h"

#include "db/postgres/catalog.h"
#include "db/postgres/lock_names.h"
#include "db/postgres/locks.h"
#include "db/postgres/names.h"

/* Argument specs of a LOCALLOCK, which begins with its LOCKTAG and mode. */
#define TAG_SPECS                                                          \
	{ .name = "arg_field1", .spec = "4@0(%arg0)", .fallback = -1 },    \
	{ .name = "arg_field2", .spec = "4@4(%arg0)", .fallback = -1 },    \
	{ .name = "arg_field3", .spec = "4@8(%arg0)", .fallback = -1 },    \
	{ .name = "arg_field4", .spec = "2@12(%arg0)", .fallback = -1 },   \
	{ .name = "arg_kind", .spec = "1@14(%arg0)", .fallback = -1 },     \
	{ .name = "arg_mode", .spec = "4@16(%arg0)", .fallback = -1 },     \
	{ .name = "arg_lock", .spec = "8@%arg0", .fallback = -1 }

/* The statement that waits; a background process may have none. */
#define TEXT_SPECS                                                          \
	{ .name = "arg_text", .spec = "8@debug_query_string(%ip)" },       \
	{ .name = "arg_length" }

/* A row: its RelationData and its ItemPointerData. */
#define ROW_SPECS(relation, tid)                                            \
	{ .name = "arg_relation", .spec = "8@" relation },                 \
	{ .name = "arg_block_high", .spec = "2@0(" tid ")" },              \
	{ .name = "arg_block_low", .spec = "2@2(" tid ")" },               \
	{ .name = "arg_offset", .spec = "2@4(" tid ")" }

#define LWLOCK_ARGS                                                      \
	ENGINE_ARGS({ .name = "arg_name", .probe_arg = 1 },             \
		    { .name = "arg_mode", .probe_arg = 2, .fallback = -1 })

/* Offsets in struct PGPROC: @pid, which the program validates it by, and @mode, .lwWaitMode. */
#define LWLOCK_PROC(symbol, pid, mode)                                      \
	{ .name = "arg_proc_pid", .only_with = symbol,                     \
	  .spec = "4@" #pid "(MyProc(%ip))" },                             \
	{ .name = "arg_mode", .only_with = symbol,                         \
	  .spec = "1@" #mode "(MyProc(%ip))", .fallback = LWLOCK_MODES }

/*
 * ProcSleep(LOCALLOCK *, …) waits; GrantAwaitedLock() is called when the lock is granted. After an
 * error or a cancel, LockErrorCleanup() is called first, and lock__wait__done is not hit. The
 * victim of a deadlock leaves the queue by RemoveFromWaitQueue(), also if the deadlock is detected
 * without the search that ends at deadlock__found. LWLocks have no wait function of their own: they
 * sleep in PGSemaphoreLock(), which has a few other callers.
 */
static const struct engine_probe postgres_probes[] = {
	{
		.step = "row", .program = "lock_row", .function = "XactLockTableWait",
		.optional = true,
		.args = ENGINE_ARGS({ .name = "arg_xid", .spec = "4@%arg0" },
				    ROW_SPECS("%arg1", "%arg2")),
	},
	{
		.step = "tuple", .program = "lock_row", .function = "LockTuple",
		.optional = true,
		.args = ENGINE_ARGS({ .name = "arg_xid" }, ROW_SPECS("%arg0", "%arg1")),
	},
	{
		.step = "done", .program = "lock_done",
		.provider = "postgresql", .probe = "lock__wait__done",
	},
	{
		/* Since 18: called after ProcSleep(), also if that has failed. */
		.step = "done", .program = "lock_done",
		.function = "set_ps_display_remove_suffix", .only_with = "JoinWaitQueue",
	},
	{ .step = "done", .program = "lock_done", .function = "GrantAwaitedLock" },
	{ .step = "failed", .program = "lock_failed", .function = "LockErrorCleanup" },
	{
		.step = "deadlock", .program = "lock_deadlock",
		.provider = "postgresql", .probe = "deadlock__found", .optional = true,
	},
	{ .step = "removed", .program = "lock_deadlock", .function = "RemoveFromWaitQueue" },
	{
		.step = "queue", .program = "lock_queue", .function = "ProcSleep",
		.args = ENGINE_ARGS({ .name = "arg_lock", .spec = "8@%arg0", .fallback = -1 },
				    TEXT_SPECS),
	},
	{
		.step = "start", .program = "lock_start",
		.provider = "postgresql", .probe = "lock__wait__start",
		.args = ENGINE_ARGS(
			{ .name = "arg_field1", .probe_arg = 1, .fallback = -1 },
			{ .name = "arg_field2", .probe_arg = 2, .fallback = -1 },
			{ .name = "arg_field3", .probe_arg = 3, .fallback = -1 },
			{ .name = "arg_field4", .probe_arg = 4, .fallback = -1 },
			{ .name = "arg_kind", .probe_arg = 5, .fallback = -1 },
			{ .name = "arg_mode", .probe_arg = 6, .fallback = -1 },
			{ .name = "arg_lock" }, TEXT_SPECS),
	},
	{
		.step = "start", .program = "lock_start", .function = "ProcSleep",
		.args = ENGINE_ARGS(TAG_SPECS, TEXT_SPECS),
	},
	{
		.step = "lwlock done", .program = "lwlock_done",
		.provider = "postgresql", .probe = "lwlock__wait__done", .optional = true,
		.args = LWLOCK_ARGS, .has = TARGET_HAS_LWLOCKS,
	},
	{
		.step = "lwlock done", .program = "lwlock_done",
		.function = "PGSemaphoreLock", .on_return = true, .optional = true,
		.args = ENGINE_ARGS({ .name = "arg_name" }, { .name = "arg_mode" }),
	},
	{
		.step = "lwlock start", .program = "lwlock_start",
		.provider = "postgresql", .probe = "lwlock__wait__start", .optional = true,
	},
	{
		.step = "lwlock start", .program = "semaphore_start",
		.function = "PGSemaphoreLock", .optional = true, .has = TARGET_HAS_LWLOCKS,
		.args = ENGINE_ARGS(
			{ .name = "arg_named", .spec = "8@NamedLWLockTrancheArray(%ip)" },
			{ .name = "arg_nnamed", .spec = "4@NamedLWLockTrancheRequests(%ip)" },
			LWLOCK_PROC("LWLockCallbacks", 340, 361),	/* 19 */
			LWLOCK_PROC("postmaster_child_launch", 60, 91),	/* 17 */
			LWLOCK_PROC("my_wait_event_info", 64, 95),	/* 14 */
			LWLOCK_PROC("GetBackgroundWorkerTypeByPid", 52, 79),	/* 11 */
			LWLOCK_PROC(NULL, 52, 75)),
	},
};

static const struct engine_probe_set postgres_set = {
	postgres_probes, sizeof(postgres_probes) / sizeof(postgres_probes[0]),
};

static int ops_find(void *state, const struct elf *elf, bool (*is_program)(const char *name))
{
	struct postgres_locks *places = state;

	postgres_locks_find(elf, places);
	lock_names_find(elf, places);
	places->is_program = is_program;
	return 0;
}

static void ops_names(void *state, const struct process_memory *memory, const char *version)
{
	lock_names_read(state, memory, version);
}

static int ops_read(void *state, const struct lock_query *query, struct lock_info *info)
{
	return postgres_locks_read(state, query->event->pid, query->event, query->text_bytes, info);
}

/* The queue can be read only once the offset of the awaited lock in a PGPROC was learned. */
static bool ops_complete(const void *state)
{
	const struct postgres_locks *places = state;

	return places->wait_at >= 0;
}

static const char *ops_kind(const void *state, const struct event_lock *event)
{
	const struct postgres_locks *places = state;

	return places && event->kind < POSTGRES_LOCK_KINDS ? places->kind[event->kind] : "";
}

static const char *ops_tranche(const void *state, uint32_t tranche)
{
	const struct postgres_locks *places = state;

	return places && tranche < POSTGRES_TRANCHES && *places->tranche[tranche] ?
	       places->tranche[tranche] : NULL;
}

static void ops_relation(const void *state, const struct event_lock *event,
			 char name[LOCK_RELATION])
{
	if (postgres_lock_fields(ops_kind(state, event)) & LOCK_TAG_RELATION)
		postgres_catalog_name(event->pid, CATALOG_RELATIONS, event->field[0],
				      event->field[1], name);
}

const struct lock_ops postgres_lock_ops = {
	.probes = &postgres_set,
	.state = {
		.bytes = sizeof(struct postgres_locks), .find = ops_find, .names = ops_names,
	},
	.read = ops_read, .complete = ops_complete,
	.kind = ops_kind, .tranche = ops_tranche, .relation = ops_relation, .joins = true,
	.mode = postgres_lock_mode, .object = postgres_lock_object,
	.fields = postgres_lock_fields, .oid = postgres_lock_relation,
};
