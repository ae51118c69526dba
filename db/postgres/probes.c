// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * PostgreSQL (tcop/postgres.c). pgstat_report_activity(state, text) is called with the text at each
 * Parse, Bind, Execute and simple query, and with NULL when all have ended; the USDT probe
 * statement__status is at its start. EndCommand() is called for each part that succeeded.
 * AbortCurrentTransaction() is called by PostgresMain() for each error that reached it, and
 * otherwise only for a ROLLBACK inside a procedure, which EndCommand() then corrects. A connection
 * that is refused ends in proc_exit() before its session has begun. Processes that serve no client
 * report their texts to pgstat_report_activity(), too; a logical replication worker reports NULL
 * when it begins to apply a transaction.
 */
#include "db/postgres/probes.h"

#include <stdio.h>
#include <string.h>

#include "bpf/event.h"
#include "db/event.h"
#include "db/postgres/catalog.h"
#include "db/postgres/lock_ops.h"
#include "db/postgres/ps.h"
#include "db/postgres/wait_names.h"
#include "host/arch.h"

static const char *const postgres_executables[] = {
	"postgres", "postmaster", "edb-postgres", NULL,
};

static const char *const postgres_signature[] = { "pgstat_report_activity", NULL };

/* Phases of a statement. No function that all builds export delimits them. */
#define PHASE(which, word, usdt) \
	{ .step = word, .program = "phase_start", .provider = "postgresql", \
	  .probe = usdt "__start", .optional = true, .asked = ENGINE_PHASES, \
	  .has = TARGET_HAS_PHASES, \
	  .args = ENGINE_ARGS({ .name = "arg_phase", .fallback = which }) }, \
	{ .step = word " done", .program = "phase_done", .provider = "postgresql", \
	  .probe = usdt "__done", .optional = true, .asked = ENGINE_PHASES, \
	  .args = ENGINE_ARGS({ .name = "arg_phase", .fallback = which }) }

/* Called once for a command that ends the transaction block. */
#define ENDS(symbol, flags) \
	{ .step = symbol, .program = "transaction_mark", .function = symbol, .optional = true, \
	  .asked = ENGINE_TRANSACTIONS, \
	  .args = ENGINE_ARGS({ .name = "arg_mark", .fallback = TRANSACTION_ENDING | (flags) }) }

/*
 * Calls in the functions of EXECUTE and of FETCH and MOVE, with the text behind these: it is copied
 * for the portal, or that of the portal. Both would be found by a hit of PortalRun(), too, which
 * each statement pays for. The text of an EXECUTE comes after its parameters.
 */
#define STACK	{ .name = "arg_stack", .spec = "8@" HOST_STACK_REGISTER, .fallback = -1 }
#define BEHIND(symbol, callee, text, provides) \
	{ .step = callee, .program = "text_behind", .function = symbol, .calls = callee, \
	  .optional = true, .has = provides, \
	  .args = ENGINE_ARGS(STACK, { .name = "arg_text", .spec = text, .fallback = -1 }) }

#define FIRST_SQLSTATE	"4@{geterrcode:element}+geterrcode(%ip)"
#define POSTGRES_CALLER	"8@{^pgstat_report_activity}"

/* At the head of pgstat_report_activity(), where its probe is, too. */
#define ACTIVITY \
	{ .name = "arg_activity", .spec = "4@%arg0" }, \
	{ .name = "arg_running", .only_with = "pgaio_init_backend", .fallback = 3 }, \
	{ .name = "arg_applies", .spec = "1@in_remote_transaction(%ip)" }, \
	{ .name = "arg_parallel_apply", .spec = "8@MyParallelShared(%ip)" }

/*
 * The order of attaching matters: a thread whose first hit is a completion was running a statement
 * when tracing began, so activity is the last.
 */
static const struct engine_probe postgres_probes[] = {
	PHASE(PHASE_PARSE, "parse", "query__parse"),
	PHASE(PHASE_REWRITE, "rewrite", "query__rewrite"),
	PHASE(PHASE_PLAN, "plan", "query__plan"),
	PHASE(PHASE_EXECUTE, "execute", "query__execute"),
	{
		.step = "sort", .program = "sort",
		.function = "tuplesort_performsort",	/* not all sorts pass sort__start */
		.optional = true, .asked = ENGINE_USE, .has = TARGET_HAS_SORTS,
		.args = ENGINE_ARGS({ .name = "arg_sort", .fallback = SORT_BEGINS },
				    { .name = "arg_space", .fallback = 0 }),
	},
	{
		.step = "sort done", .program = "sort",
		.provider = "postgresql", .probe = "sort__done",
		.optional = true, .asked = ENGINE_USE, .has = TARGET_HAS_SORT_SPACE,
		.args = ENGINE_ARGS({ .name = "arg_sort", .probe_arg = 1, .fallback = -1 },
				    { .name = "arg_space", .probe_arg = 2, .fallback = -1 }),
	},
	{
		.step = "application", .program = "application",
		.function = "pgstat_report_appname", .optional = true, .asked = ENGINE_IDENTITY,
		.args = ENGINE_ARGS({ .name = "arg_name", .spec = "8@%arg0", .fallback = -1 }),
	},
	BEHIND("ExecuteQuery", "MemoryContextStrdup", "8@%arg1", TARGET_HAS_EXECUTED),
	{
		.step = "ExecuteQuery", .program = "text_behind", .function = "ExecuteQuery",
		.optional = true,
		.args = ENGINE_ARGS(STACK, { .name = "arg_text", .fallback = 0 }),
	},
	BEHIND("PerformPortalFetch", "PortalRunFetch", "8@{>PortalDefineQuery}(%arg0)",
	       TARGET_HAS_FETCHED),
	ENDS("EndTransactionBlock", TRANSACTION_COMMITTED),	/* or prepared */
	ENDS("PrepareTransactionBlock", TRANSACTION_PREPARED),
	ENDS("UserAbortTransactionBlock", TRANSACTION_ROLLED_BACK),
	{
		.step = "completion", .program = "completion",
		.function = "EndCommand",
		.only_with = "GetCommandTagName",	/* 13: QueryCompletion, not a text */
		.args = ENGINE_ARGS({ .name = "arg_rows", .spec = "8@8(%arg0)", .fallback = -1 },
				    { .name = "arg_destination", .spec = "4@%arg1" }),
	},
	{
		.step = "completion", .program = "completion_tag",
		.function = "EndCommand",
		.args = ENGINE_ARGS({ .name = "arg_tag", .spec = "8@%arg0", .fallback = -1 },
				    { .name = "arg_destination", .spec = "4@%arg1" }),
	},
	{
		.step = "failure", .program = "failure",
		.function = "AbortCurrentTransaction",
		.has = TARGET_HAS_STATUS,
		/* geterrcode() returns errordata[errordata_stack_depth].sqlerrcode. */
		.args = ENGINE_ARGS(
			{ .name = "arg_error_index", .fallback = 1,
			  .spec = "-4@{geterrcode:index}+geterrcode(%ip)" },
			{ .name = "arg_sqlstate", .spec = FIRST_SQLSTATE }),
	},
	{
		.step = "background failure", .program = "background_failure",
		.function = "AbortOutOfAnyTransaction", .optional = true,
		.args = ENGINE_ARGS(
			{ .name = "arg_error_index", .fallback = 1,
			  .spec = "-4@{geterrcode:index}+geterrcode(%ip)" },
			{ .name = "arg_sqlstate", .spec = FIRST_SQLSTATE }),
	},
	{
		.step = "exit", .program = "process_ends",
		.function = "proc_exit", .optional = true,
		.args = ENGINE_ARGS({ .name = "arg_status", .spec = "4@%arg0" },
				    { .name = "arg_mode", .spec = "4@Mode(%ip)" },
				    { .name = "arg_sqlstate", .spec = FIRST_SQLSTATE }),
	},
	{
		.step = "activity", .program = "activity",
		.provider = "postgresql", .probe = "statement__status",
		.args = ENGINE_ARGS({ .name = "arg_text", .probe_arg = 1, .fallback = -1 },
				    ACTIVITY,
				    { .name = "arg_caller", .spec = POSTGRES_CALLER }),
	},
	{
		.step = "activity", .program = "activity",
		.function = "pgstat_report_activity",
		.args = ENGINE_ARGS({ .name = "arg_text", .spec = "8@%arg1", .fallback = -1 },
				    ACTIVITY,
				    { .name = "arg_caller", .spec = POSTGRES_CALLER }),
	},
};

/* Return the end of the token at @at: a blank or @end. */
static const char *token_end(const char *at, const char *end)
{
	const char *blank = memchr(at, ' ', (size_t)(end - at));

	return blank ? blank : end;
}

/* Return whether the token is "[local]" or "HOST(PORT)". */
static bool token_is_client(const char *at, const char *end)
{
	const char *p = end - 1;

	if (end - at == 7 && !memcmp(at, "[local]", 7))
		return true;
	if (end - at < 4 || *p != ')')
		return false;
	while (p > at && p[-1] >= '0' && p[-1] <= '9')
		p--;
	return p < end - 1 && p - 1 > at && p[-1] == '(';
}

static bool token_is(const char *at, const char *end, const char *word)
{
	size_t len = strlen(word);

	return (size_t)(end - at) == len && !memcmp(at, word, len);
}

static void token_copy(char *to, size_t size, const char *at, const char *end)
{
	size_t len = (size_t)(end - at);

	if (len < size) {
		memcpy(to, at, len);
		to[len] = '\0';
	}
}

void postgres_identify(const char *cmdline, size_t len, struct who *who)
{
	static const char prefix[] = "postgres: ";
	const char *at, *end, *token[4];
	size_t n = 0;

	*who->user = *who->database = *who->client = '\0';
	len = strnlen(cmdline, len);
	if (len < sizeof(prefix) || memcmp(cmdline, prefix, sizeof(prefix) - 1))
		return;
	end = cmdline + len;
	at = cmdline + sizeof(prefix) - 1;
	/* The cluster's name ends in ": "; a user's name does not end in a colon. */
	for (const char *p = at; p + 1 < end; p++) {
		if (p[0] == ':' && p[1] == ' ') {
			at = p + 2;
			break;
		}
	}
	for (; at < end && n < 4; at = token_end(at, end) + 1) {
		token[n++] = at;
		if (token_is_client(at, token_end(at, end)))
			break;
	}
	/* Only three tokens are unambiguous; "walsender USER CLIENT" is another form. */
	if (n != 3 || token_is(token[0], token_end(token[0], end), "walsender") ||
	    !token_is_client(token[2], token_end(token[2], end)))
		return;
	token_copy(who->user, sizeof(who->user), token[0], token[1] - 1);
	token_copy(who->database, sizeof(who->database), token[1], token[2] - 1);
	token_copy(who->client, sizeof(who->client), token[2], token_end(token[2], end));
}

static bool postgres_aborted(const char *title, size_t len)
{
	static const char suffix[] = " idle in transaction (aborted)";
	size_t cut = sizeof(suffix) - 1;

	len = strnlen(title, len);
	return len > cut && !memcmp(title + len - cut, suffix, cut);
}

static void postgres_client(const char *host, const char *port, char *client, size_t size)
{
	snprintf(client, size, *port ? "%s(%s)" : "%s", host, port);
}

static const struct engine_activity postgres_activity = {
	.text = "debug_query_string", .begun = "GetCurrentStatementStartTimestamp",
	.client = "MyProcPort", .replication = "am_walsender",
	.application = "application_name",
	.transaction = "CurTransactionContext",
	.transaction_begun = "GetCurrentTransactionStartTimestamp",
};

static const struct engine_probe_set postgres_probe_sets[] = {
	{
		.probes = postgres_probes,
		.nprobes = sizeof(postgres_probes) / sizeof(postgres_probes[0]),
	},
};

static const char *const postgres_words[] = { "postgres", "postgresql", "pg", NULL };

const struct engine engine_postgres = {
	.name = "postgresql",
	.words = postgres_words,
	.title = "PostgreSQL",
	.otel_system = "postgresql",
	.dialect = FINGERPRINT_POSTGRES,
	.executables = postgres_executables,
	.signature_symbols = postgres_signature,
	.version_words = "postgres (PostgreSQL) ",
	.probe_sets = postgres_probe_sets,
	.nprobe_sets = 1,
	.lock_ops = &postgres_lock_ops,
	.ps_ops = &postgres_ps_ops,
	.common = ENGINE_ARGS(
		/* NULL in autovacuum workers, parallel workers and logical replication */
		{ .name = "arg_client", .spec = "8@MyProcPort(%ip)", .fallback = 1 },
		{ .name = "arg_server", .spec = "4@PostmasterPid(%ip)", .fallback = 0 },
		{ .name = "arg_transaction", .spec = "8@CurTransactionContext(%ip)" },
		{ .name = "arg_replication", .spec = "1@am_walsender(%ip)", .fallback = 0 },
		/*
		 * struct Port (libpq/libpq-be.h) from 18 (has asynchronous I/O), 17 (launches
		 * children elsewhere) and 10 on. Verified by process titles, see target.h.
		 */
		{ .name = "arg_database", .only_with = "pgaio_init_backend",
		  .spec = "8@384(MyProcPort(%ip))" },
		{ .name = "arg_database", .only_with = "postmaster_child_launch",
		  .spec = "8@320(MyProcPort(%ip))" },
		{ .name = "arg_database", .spec = "8@328(MyProcPort(%ip))" },
		{ .name = "arg_user", .only_with = "pgaio_init_backend",
		  .spec = "8@392(MyProcPort(%ip))" },
		{ .name = "arg_user", .only_with = "postmaster_child_launch",
		  .spec = "8@328(MyProcPort(%ip))" },
		{ .name = "arg_user", .spec = "8@336(MyProcPort(%ip))" },
		/* The wait event: since 14 a pointer, before in struct PGPROC. */
		{ .name = "arg_wait_event", .spec = "8@my_wait_event_info(%ip)" },
		{ .name = "arg_wait_event", .only_with = "GetCommandTagName",	/* 13 */
		  .spec = "8@&684(MyProc(%ip))" },
		{ .name = "arg_wait_event", .spec = "8@&676(MyProc(%ip))" },
		{ .name = "arg_family", .spec = "8@&MyProcPid(%ip)" },
		{ .name = "arg_self", .spec = "4@MyProcPid(%ip)" },
		{ .name = "arg_worker", .spec = "-4@ParallelWorkerNumber(%ip)" },
		{ .name = "arg_worker_entry", .spec = "8@MyBgworkerEntry(%ip)" },
		/* bgw_type, behind bgw_name, since 11 */
		{ .name = "arg_worker_type", .only_with = "GetBackgroundWorkerTypeByPid",
		  .spec = "8@&96(MyBgworkerEntry(%ip))" },
		{ .name = "arg_database_id", .spec = "4@MyDatabaseId(%ip)" },
		/* st_databaseid and st_userid of struct PgBackendStatus, since 14 */
		{ .name = "arg_entry_database", .spec = "4@48(MyBEEntry(%ip))" },
		{ .name = "arg_entry_user", .spec = "4@52(MyBEEntry(%ip))" },
		/* bgw_notify_pid of struct BackgroundWorker: from 17, 11 and 10 on. */
		{ .name = "arg_leader", .only_with = "postmaster_child_launch",
		  .spec = "4@1464(MyBgworkerEntry(%ip))" },
		{ .name = "arg_leader", .only_with = "GetBackgroundWorkerTypeByPid",
		  .spec = "4@536(MyBgworkerEntry(%ip))" },
		{ .name = "arg_leader", .spec = "4@344(MyBgworkerEntry(%ip))" },
		{ .name = "arg_buffers", .spec = "8@&pgBufferUsage(%ip)" },
		{ .name = "arg_wal", .spec = "8@&pgWalUsage(%ip)" },
		{ .name = "arg_io_method", .spec = "4@io_method(%ip)" },	/* 18 */
		/* 14. A loaded module enables IDs, or the setting is "on", 1. */
		{ .name = "arg_query_id_enabled", .spec = "1@query_id_enabled(%ip)" },
		{ .name = "arg_query_id_on", .spec = "4@compute_query_id(%ip)" },
		{ .name = "arg_query_id_at",
		  .spec = "8@&{*pgstat_get_my_query_id:inner}(MyBEEntry(%ip))" },
		{ .name = "arg_host", .spec = "8@288(MyProcPort(%ip))" },
		{ .name = "arg_port", .spec = "8@312(MyProcPort(%ip))" },
		{ .name = "arg_application", .only_with = "pgstat_report_appname",
		  .spec = "8@application_name(%ip)" }
	),
	.one_row_count = true,
	.has_lwlocks = true,
	.replication = wait_names_replication,
	.identify = postgres_identify,
	.aborted = postgres_aborted,
	.names = postgres_catalog_who,
	.activity_variables = &postgres_activity,
	.client = postgres_client,
};
