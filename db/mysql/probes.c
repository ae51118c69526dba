// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * MySQL and MariaDB (sql/sql_parse.cc). dispatch_command() handles each command of a client. It
 * calls log_slow_statement(THD *) once for each statement that ended, including failures and each
 * part of "a; b", while text, error, user and database are still in the session (THD). Offsets in
 * THD differ by release and architecture, so they are decoded from the accessors that the server
 * exports for its plugins.
 */
#include "db/mysql/probes.h"

#include <stdio.h>

#include "bpf/event.h"
#include "db/mysql/lock_ops.h"
#include "db/mysql/object.h"
#include "db/mysql/ps.h"
#include "db/mysql/stage.h"
#include "host/arch.h"

#define COM_QUERY	0x03
#define COMMAND(number)	(1ULL << ((number) & 63))

static const char *const mysql_executables[] = { "mysqld", "mariadbd", "mysqld-debug", NULL };

#define DISPATCH_JB	"_Z16dispatch_command19enum_server_commandP3THDPcjb"
#define DISPATCH_JBB	"_Z16dispatch_command19enum_server_commandP3THDPcjbb"
#define DISPATCH_J	"_Z16dispatch_command19enum_server_commandP3THDPcj"
#define DISPATCH_COM	"_Z16dispatch_commandP3THDPK8COM_DATA19enum_server_command"

static const char *const mysql_dispatchers[] = {
	DISPATCH_JB, DISPATCH_JBB, DISPATCH_J, DISPATCH_COM, NULL,
};

/*
 * Addresses on which a session of MariaDB awaits what other threads do for its commit: m_mtx and
 * m_cond of the THD's async_state (InnoDB's log, from 10.6 on), its LOCK_wakeup_ready and
 * COND_wakeup_ready, and LOCK_log, one of the first members of the binary log.
 */
#define COMMITS(thd) \
	{ .name = "arg_commit", .spec = "8@&{&thd_decrement_pending_ops}(" thd ")" }, \
	{ .name = "arg_group_commit", .spec = "8@&{&_ZN3THD21wait_for_wakeup_readyEv}(" thd ")" }, \
	{ .name = "arg_commit_log", .only_with = "_ZN3THD21wait_for_wakeup_readyEv", \
	  .spec = "8@&mysql_bin_log(%ip)" }

/* The member of a THD with the address of its stage's name; see db/mysql/stage.h. */
#define STAGE(thd) \
	{ .name = "arg_stage", .spec = "8@&{" STAGE_SET ">8}(" thd ")" }, \
	{ .name = "arg_stage", .spec = "8@&{" STAGE_ENTER ">8}(" thd ")" }, \
	{ .name = "arg_stage_from", .spec = "8@&" STAGE_FROM "(%ip)" }

/*
 * THD::server_status, of which a rollback clears SERVER_STATUS_IN_TRANS and _IN_TRANS_READONLY:
 * andl $0xffffdffe,server_status(register).
 */
#define ROLLBACK	"_Z14trans_rollbackP3THD"
#define TRANSACTION(thd) \
	{ .name = "arg_transaction", \
	  .spec = "4@{" ROLLBACK "~81 ?? @@@@@@@@ fe df ff ff}(" thd ")" }

/* MariaDB, and MySQL 5.5 and 5.6: dispatch_command(command, THD *, packet, length, …). */
#define COMMAND_FIRST(symbol)                                               \
	{                                                                   \
		.step = "command", .program = "command_start",              \
		.function = symbol,                                         \
		.args = ENGINE_ARGS(                                        \
			{ .name = "arg_session", .spec = "8@%arg1", .fallback = -1 }, \
			{ .name = "arg_command", .spec = "4@%arg0", .fallback = -1 }, \
			COMMITS("%arg1"), STAGE("%arg1"), TRANSACTION("%arg1"), \
			/* cmpl $2,thd->async_state.m_state; je */          \
			{ .name = "arg_resumed",                            \
			  .spec = "4@{" symbol "~83 be @@@@@@@@ 02 0f 84}(%arg1)" }), \
	}

/* The Security_context of a THD in MySQL, and the accessors of its members. */
#define CONTEXT	"({_Z24thd_get_security_contextP3THDPP16Security_context}(%{owner}))"
#define USER	"_ZNK16Security_context4userEv"
#define HOST	"_ZNK16Security_context4hostEv"
#define IP	"_ZNK16Security_context2ipEv"
#define DB	"_Z20thd_binlog_filter_okPK3THD"
#define FAILED	"_Z12thd_is_errorPK3THD"

#define STATUS	"?thd_current_status"

/* Where a PFS_thread at @psi of a statement has the attributes, at @offset. */
#define NUMBER(number)	#number
#define MARIADB_PLACE(offset, psi) \
	"8@&" NUMBER(offset) "(" NUMBER(psi) "({<" MARIADB_STATEMENT "}(%{owner})))"

/* A number of four bytes in the state of a statement, at @offset. */
#define MARIADB_STATE(offset)	"4@" NUMBER(offset) "({<" MARIADB_STATEMENT "}(%{owner}))"

/* Setters of the Diagnostics_area, which has the outcome sent to the client: affected rows, .. */
#define SET_OK	"=_ZN16Diagnostics_area13set_ok_statusEyyPKc"
/* .. and error number. */
#define SET_ERROR	"=_ZN16Diagnostics_area16set_error_statusEjPKcS1_"

/* Setters of bits: of THD::server_status, and of MariaDB's THD::query_plan_flags. */
#define NO_INDEX	"|_ZN3THD24set_status_no_index_usedEv"
#define TMP_TABLE	"|_ZN3THD29inc_status_created_tmp_tablesEv"

#define OPENS		"_Z20open_and_lock_tablesP3THD"
#define OPENS_MARIADB	OPENS "RK14DDL_options_stP10TABLE_LISTbjP19Prelocking_strategy"

/* The statement that ended. If there are two rows for an argument, the first is MariaDB's. */
static const struct engine_arg ended_args[] = {
	{ .name = "arg_session", .spec = "8@%{owner}", .fallback = -1 },
	COMMITS("%{owner}"),
	STAGE("%{owner}"),
	TRANSACTION("%{owner}"),
	{ .name = "arg_text", .spec = "8@{thd_query_string}(%{owner})" },
	{ .name = "arg_text", .spec = "8@{_Z16thd_query_unsafeP3THD}(%{owner})",
	  .fallback = -1 },
	{ .name = "arg_length", .spec = "8@{thd_query_string+8}(%{owner})" },
	{ .name = "arg_length", .spec = "8@{_Z16thd_query_unsafeP3THD+8}(%{owner})",
	  .fallback = -1 },
	{ .name = "arg_connection", .spec = "4@{thd_get_thread_id}(%{owner})" },
	{ .name = "arg_error",
	  .spec = "4@{thd_get_error_number:inner}({thd_get_error_number}(%{owner}))" },
	/* MariaDB's Diagnostics_area has the SQLSTATE first, MySQL's before the error number. */
	{ .name = "arg_sqlstate", .spec = "8@0({thd_get_error_number}(%{owner}))" },
	{ .name = "arg_sqlstate", .spec = "8@{" SET_ERROR "-8}({" FAILED "}(%{owner}))" },
	{ .name = "arg_code", .spec = "4@{" SET_ERROR "}({" FAILED "}(%{owner}))" },
	{ .name = "arg_state", .spec = "4@{" FAILED ":inner}({" FAILED "}(%{owner}))" },
	{ .name = "arg_state", .spec = "4@{" STATUS ":inner}({" STATUS "}(%{owner}))" },
	{ .name = "arg_failed_state", .spec = "{" FAILED ":expected}" },
	{ .name = "arg_failed_state", .spec = "{" STATUS ":expected}", .fallback = 1 },
	{ .name = "arg_kind",
	  .spec = "4@{thd_sql_command:inner}({thd_sql_command}(%{owner}))",
	  .fallback = 1 },
	{ .name = "arg_rows", .spec = "8@{=_ZN3THD18set_sent_row_countEy}(%{owner})" },
	{ .name = "arg_examined", .spec = "8@{=_ZN3THD22set_examined_row_countEy}(%{owner})" },
	/* MySQL from 9; MariaDB from 11.5 on, which passes it to the Performance Schema. */
	{ .name = "arg_examined", .spec = "8@{=_ZN3THD22inc_examined_row_countEy}(%{owner})" },
	{ .name = "arg_examined",
	  .spec = "8@{_ZN3THD28ps_report_examined_row_countEv}(%{owner})" },
	{ .name = "arg_sums", .only_with = "_Z16thd_query_unsafeP3THD", .fallback = 1 },
	/* THD::utime_after_lock, which includes waits for rows; before it is start_utime. */
	{ .name = "arg_locked", .spec = "8@&{=thd_storage_lock_wait}(%{owner})" },
	/* MySQL's own sum, which it writes to the slow log. */
	{ .name = "arg_lock_time", .spec = "8@{=_ZN3THD13inc_lock_usecEy}(%{owner})" },
	{ .name = "arg_server_status", .spec = "4@{" NO_INDEX "}(%{owner})" },
	{ .name = "arg_no_index", .spec = "{" NO_INDEX ":expected}" },
	{ .name = "arg_plan", .spec = "8@{" TMP_TABLE "}(%{owner})" },
	{ .name = "arg_tmp_table", .spec = "{" TMP_TABLE ":expected}" },
	{ .name = "arg_affected", .spec = "8@{" SET_OK "}({" FAILED "}(%{owner}))" },
	{ .name = "arg_affected", .spec = "8@{" SET_OK "}({" STATUS "}(%{owner}))" },
	{ .name = "arg_user",
	  .spec = "8@{thd_user_name:inner}({thd_user_name}(%{owner}))" },
	{ .name = "arg_user_pair", .spec = "8@&{" USER "}" CONTEXT },
	{ .name = "arg_host",
	  .spec = "8@{thd_client_host:inner}({thd_client_host}(%{owner}))" },
	{ .name = "arg_host_pair", .spec = "8@&{" HOST "}" CONTEXT },
	{ .name = "arg_address",
	  .spec = "8@{thd_client_ip:inner}({thd_client_ip}(%{owner}))" },
	{ .name = "arg_address_pair", .spec = "8@&{" IP "}" CONTEXT },
	{ .name = "arg_attributes", .only_with = MARIADB_FROM_11_5,
	  .spec = MARIADB_PLACE(MARIADB_ATTRIBUTES, MARIADB_PSI) },
	{ .name = "arg_attributes", .only_with = "server_threads",
	  .spec = MARIADB_PLACE(MARIADB_ATTRIBUTES_OLD, MARIADB_PSI) },
	{ .name = "arg_attributes",
	  .spec = "8@&{<" MYSQL_ATTRIBUTES "}({" MYSQL_PSI "}(%{owner}))" },
	{ .name = "arg_attributed", .only_with = "server_threads",
	  .spec = MARIADB_STATE(MARIADB_FLAGS) },
	{ .name = "arg_attributed", .fallback = MARIADB_HAS_PSI },
	/* At the call of open_and_lock_tables() */
	{ .name = "arg_tables", .only_with = OPENS_MARIADB, .spec = "8@%arg2", .fallback = 1 },
	{ .name = "arg_tables", .spec = "8@%arg1", .fallback = 1 },
	{ .name = "arg_database", .spec = "8@{thd_current_db}(%{owner})" },
	{ .name = "arg_database", .spec = "8@{" DB "}(%{owner})" },
	{ .name = "arg_stack", .spec = "8@" HOST_STACK_REGISTER, .fallback = -1 },
	{ .name = NULL },
};

/*
 * Sites of a statement's end in dispatch_command(): its calls to log_slow_statement(), one for each
 * statement or part of "a; b". From MariaDB 10.6 on, Prepared_statement::execute() logs some of
 * them: a COM_STMT_EXECUTE, and an EXECUTE at the end of a text. For those, dispatch_command()
 * calls delete_explain_query(thd->lex) instead. log_slow_statement() itself is not a usable site:
 * it is also called for statements in procedures and under EXECUTE, and not for failed EXECUTEs.
 */
#define ENDS(which, symbol, ...)                                                          \
	{ .step = which, .program = "command_end", .function = symbol, .args = ended_args, \
	  __VA_ARGS__ }

#define LOGGED(symbol) \
	ENDS("logged", symbol, .calls = "_Z18log_slow_statementP3THD")
#define LOGGED_STATUS(symbol) \
	ENDS("logged", symbol, .calls = "_Z18log_slow_statementP3THDP17System_status_var")
#define UNLOGGED(symbol) \
	ENDS("unlogged", symbol, .calls = "_Z20delete_explain_queryP3LEX", \
	     .member = "thd_sql_command", .optional = true, .has = TARGET_HAS_PREPARED)

/* Called around waits, with their type; part of the plugin interface (thd_wait service). */
#define WAITS(which, program_name, symbol) \
	{ .step = which, .program = program_name, .function = symbol, .optional = true, \
	  .asked = ENGINE_WHY, \
	  .args = ENGINE_ARGS({ .name = "arg_wait", .spec = "4@%arg1", .fallback = -1 }) }

/* Functions that end the transaction of a THD. */
#define MARKS(symbol, thd, flags) \
	{ .step = symbol, .program = "command_mark", .function = symbol, .optional = true, \
	  .asked = ENGINE_TRANSACTIONS, \
	  .args = ENGINE_ARGS({ .name = "arg_session", .spec = "8@" thd, .fallback = -1 }, \
			      TRANSACTION(thd), \
			      { .name = "arg_mark", .fallback = flags }) }

#define COMMITTED(symbol) \
	{ .step = "committed", .program = "command_committed", .function = symbol, \
	  .on_return = true, .optional = true, .asked = ENGINE_TRANSACTIONS, \
	  .args = ENGINE_ARGS({ .name = "arg_commit_failed", .spec = "1@%ret", .fallback = 1 }) }

#define COMMIT_ENDS	(TRANSACTION_ENDING | TRANSACTION_COMMITTED)
#define FAILURE_ENDS	(TRANSACTION_ENDING | TRANSACTION_ROLLED_BACK)
#define ROLLBACK_ENDS	(FAILURE_ENDS | TRANSACTION_ASKED)

/*
 * Event_job_data::execute(THD *, bool), which runs the body of an event as a procedure: it becomes
 * its definer, parses the text of the procedure, and leaves both behind before the end.
 */
#define EVENT	"_ZN14Event_job_data7executeEP3THDb"
#define EVENT_CALLS(which, program_name, symbol, ...) \
	{ .step = which, .program = program_name, .function = EVENT, .calls = symbol, \
	  .optional = true, .args = ended_args, .backend = BACKEND_EVENT, __VA_ARGS__ }

/* A statement that no client has sent is parsed. */
static const struct engine_arg parsed_args[] = {
	{ .name = "arg_session", .spec = "8@%arg0", .fallback = -1 },
	STAGE("%arg0"),
	COMMITS("%arg0"),
	{ .name = "arg_command", .fallback = COM_QUERY },
	{ .name = NULL },
};

/* Query_log_event::do_apply_event(), which executes a statement that a replica has read. */
#define APPLY_MARIADB	"_ZN15Query_log_event14do_apply_eventEP14rpl_group_infoPKcj"
#define APPLY_MYSQL	"_ZN15Query_log_event14do_apply_eventEPK14Relay_log_infoPKcm"
#define PARSES(which, symbol, parser, ...) \
	{ .step = which, .program = "command_start", .function = symbol, .calls = parser, \
	  .optional = true, .args = parsed_args, __VA_ARGS__ }
#define APPLIES(symbol, parser) \
	PARSES("applied", symbol, parser, .backend = BACKEND_APPLIER, \
	       .has = TARGET_HAS_APPLIED, .needs = TARGET_ENDS_APPLIED)
#define APPLIED(symbol, logs) \
	ENDS("applied end", symbol, .calls = logs, .optional = true, \
	     .backend = BACKEND_APPLIER, .has = TARGET_ENDS_APPLIED)

/*
 * What the server executes from init_file, and to create its tables; MySQL in a local function of
 * another thread. Neither decides there whether a statement is slow: MariaDB next frees what it has
 * explained, MySQL next removes the handler of errors that it has added for the statement.
 */
#define INIT_MARIADB	"_Z9bootstrapP13st_mysql_file"
#define INIT_MYSQL \
	"_ZN9bootstrap20run_bootstrap_threadEPKcP10MYSQL_FILEPFbP3THDE16enum_thread_type"
#define INITS(symbol, parser, ...) \
	PARSES("init", symbol, parser, .backend = BACKEND_INIT, \
	       .has = TARGET_HAS_INIT, .needs = TARGET_ENDS_INIT, __VA_ARGS__)
#define INITED(symbol, callee, ...) \
	ENDS("init end", symbol, .calls = callee, .optional = true, \
	     .backend = BACKEND_INIT, .has = TARGET_ENDS_INIT, __VA_ARGS__)

/*
 * Rows_log_event::do_apply_event(), which opens the tables for the first event with rows of a
 * statement, and closes them after the last.
 */
#define ROWS_MARIADB	"_ZN14Rows_log_event14do_apply_eventEP14rpl_group_info"
#define ROWS_MYSQL	"_ZN14Rows_log_event14do_apply_eventEPK14Relay_log_info"
#define ROWS(symbol, opener) \
	{ .step = "rows", .program = "rows_start", .function = symbol, .calls = opener, \
	  .optional = true, .args = ended_args, .backend = BACKEND_APPLIER, \
	  .has = TARGET_HAS_ROW_CHANGES, .needs = TARGET_ENDS_ROW_CHANGES }
#define ROWS_END(symbol) \
	{ .step = "rows end", .program = "event_end", .function = symbol, .owner = "arg1", \
	  .optional = true, .args = ended_args, .backend = BACKEND_APPLIER, \
	  .has = TARGET_ENDS_ROW_CHANGES }

/*
 * sp_instr_stmt::execute(THD *, uint *), which executes a statement of a procedure, a function, a
 * trigger or an event: it replaces the session's text and, whatever the outcome, restores it. In
 * MariaDB it also adds what the statement did to that of its caller.
 */
#define NESTED(which, program_name, symbol, ...) \
	{ .step = which, .program = program_name, \
	  .function = "_ZN13sp_instr_stmt7executeEP3THDPj", .calls = symbol, .optional = true, \
	  .asked = ENGINE_NESTED, .args = ended_args, __VA_ARGS__ }
#define NESTED_END(symbol) \
	NESTED("nested end", "nested_end", symbol, .has = TARGET_ENDS_NESTED)

static const struct engine_probe mysql_probes[] = {
	NESTED_END("_ZN3THD20add_slow_query_stateEP19Sub_statement_state"),
	NESTED_END("_ZN3THD9set_queryE17MYSQL_LEX_CSTRING"),
	NESTED("nested", "nested_start", "_Z11alloc_queryP3THDPKcm",
	       .has = TARGET_HAS_NESTED, .needs = TARGET_ENDS_NESTED),
	ROWS_END("_ZN14rpl_group_info25slave_close_thread_tablesEP3THD"),
	ROWS_END("_ZN14Relay_log_info25slave_close_thread_tablesEP3THD"),
	EVENT_CALLS("event end", "event_end", "_ZN3THD13end_statementEv",
		    .has = TARGET_ENDS_EVENTS),
	APPLIED(APPLY_MARIADB, "_Z18log_slow_statementP3THD"),
	APPLIED(APPLY_MYSQL, "_Z18log_slow_statementP3THD"),
	APPLIED(APPLY_MYSQL, "_Z18log_slow_statementP3THDP17System_status_var"),
	INITED(INIT_MARIADB, "_Z20delete_explain_queryP3LEX", .member = "thd_sql_command"),
	INITED(INIT_MYSQL, "_ZN3THD20pop_internal_handlerEv", .locals = true),
	EVENT_CALLS("event text", "event_text",
		    "_Z9parse_sqlP3THDP12Parser_stateP19Object_creation_ctxb",
		    .needs = TARGET_ENDS_EVENTS),
	EVENT_CALLS("event text", "event_text",
		    "_Z9parse_sqlP3THDP12Parser_stateP19Object_creation_ctx",
		    .needs = TARGET_ENDS_EVENTS),
	{
		.step = "event", .program = "event_start", .function = EVENT, .optional = true,
		.args = ENGINE_ARGS({ .name = "arg_session", .spec = "8@%arg1", .fallback = -1 },
				    COMMITS("%arg1"), STAGE("%arg1")),
		.backend = BACKEND_EVENT,
		.has = TARGET_HAS_EVENTS, .needs = TARGET_ENDS_EVENTS,
	},
	APPLIES(APPLY_MARIADB, "_Z11mysql_parseP3THDPcjP12Parser_state"),
	APPLIES(APPLY_MARIADB, "_Z11mysql_parseP3THDPcjP12Parser_statebb"),	/* to 10.5 */
	APPLIES(APPLY_MYSQL, "_Z20dispatch_sql_commandP3THDP12Parser_stateb"),
	APPLIES(APPLY_MYSQL, "_Z20dispatch_sql_commandP3THDP12Parser_state"),
	APPLIES(APPLY_MYSQL, "_Z11mysql_parseP3THDP12Parser_state"),	/* 5.7, and first 8.0 */
	INITS(INIT_MARIADB, "_Z11mysql_parseP3THDPcjP12Parser_state"),
	INITS(INIT_MARIADB, "_Z11mysql_parseP3THDPcjP12Parser_statebb"),	/* to 10.5 */
	INITS(INIT_MYSQL, "_Z20dispatch_sql_commandP3THDP12Parser_stateb", .locals = true),
	INITS(INIT_MYSQL, "_Z20dispatch_sql_commandP3THDP12Parser_state", .locals = true),
	ROWS(ROWS_MARIADB, OPENS_MARIADB),
	ROWS(ROWS_MYSQL, OPENS "P9Table_refjP19Prelocking_strategy"),
	ROWS(ROWS_MYSQL, OPENS "P10TABLE_LISTjP19Prelocking_strategy"),	/* to 8.0.28 */
	ROWS(ROWS_MYSQL, OPENS "P10TABLE_LISTbjP19Prelocking_strategy"),	/* 5.6 */
	MARKS("_Z12trans_commitP3THD", "%arg0", COMMIT_ENDS),
	MARKS("_Z12trans_commitP3THDb", "%arg0", COMMIT_ENDS),	/* MySQL from 5.7 */
	MARKS("_Z21trans_commit_implicitP3THD", "%arg0", COMMIT_ENDS),
	MARKS("_Z21trans_commit_implicitP3THDb", "%arg0", COMMIT_ENDS),
	MARKS("_Z11trans_beginP3THDj", "%arg0", COMMIT_ENDS),
	MARKS(ROLLBACK, "%arg0", ROLLBACK_ENDS),
	MARKS("_Z23trans_rollback_implicitP3THD", "%arg0", FAILURE_ENDS),
	MARKS("_Z15trans_xa_commitP3THD", "%arg0", COMMIT_ENDS),
	MARKS("_Z17trans_xa_rollbackP3THD", "%arg0", ROLLBACK_ENDS),
	MARKS("_Z16trans_xa_prepareP3THD", "%arg0", TRANSACTION_PREPARED),
	MARKS("_ZN17Sql_cmd_xa_commit15trans_xa_commitEP3THD", "%arg1", COMMIT_ENDS),
	MARKS("_ZN19Sql_cmd_xa_rollback17trans_xa_rollbackEP3THD", "%arg1", ROLLBACK_ENDS),
	MARKS("_ZN18Sql_cmd_xa_prepare16trans_xa_prepareEP3THD", "%arg1", TRANSACTION_PREPARED),
	COMMITTED("_Z21trans_commit_implicitP3THD"),
	COMMITTED("_Z21trans_commit_implicitP3THDb"),
	{
		.step = "cleanup", .program = "command_cleanup", .function = "_ZN3THD7cleanupEv",
		.optional = true, .asked = ENGINE_TRANSACTIONS, .args = ended_args,
	},
	{
		.step = "task", .program = "pool_task", .function = "_ZN5tpool4task7executeEv",
		.optional = true, .asked = ENGINE_WHY,
		.args = ENGINE_ARGS({ .name = "arg_task", .spec = "8@%arg0", .fallback = -1 }),
	},
	WAITS("wait", "wait_begin", "thd_wait_begin"),
	WAITS("wait", "wait_begin", "_Z14thd_wait_beginP3THDi"),
	WAITS("waited", "wait_end", "thd_wait_end"),
	WAITS("waited", "wait_end", "_Z12thd_wait_endP3THD"),
	LOGGED(DISPATCH_JB),
	LOGGED(DISPATCH_JBB),
	LOGGED(DISPATCH_J),
	LOGGED(DISPATCH_COM),
	LOGGED_STATUS(DISPATCH_COM),	/* MySQL 8.0.14 to about 8.0.28, Facebook's MySQL 8 */
	UNLOGGED(DISPATCH_JB),
	UNLOGGED(DISPATCH_JBB),
	COMMAND_FIRST(DISPATCH_JB),
	COMMAND_FIRST(DISPATCH_JBB),
	COMMAND_FIRST(DISPATCH_J),
	{
		/* MySQL from 5.7: dispatch_command(THD *, COM_DATA *, command). */
		.step = "command", .program = "command_start",
		.function = DISPATCH_COM,
		.args = ENGINE_ARGS({ .name = "arg_session", .spec = "8@%arg0", .fallback = -1 },
				    STAGE("%arg0"), TRANSACTION("%arg0"),
				    { .name = "arg_command", .spec = "4@%arg2", .fallback = -1 }),
	},
	{
		/* THD::~THD() */
		.step = "closed", .program = "session_closed",
		.function = "_ZN3THDD1Ev",
		.optional = true,
		.args = ENGINE_ARGS({ .name = "arg_session", .spec = "8@%arg0", .fallback = -1 }),
	},
};

static void mysql_client(const char *host, const char *port, char *client, size_t size)
{
	(void)port;
	snprintf(client, size, "%s", host);
}

#define PAIR_ARGS                                                           \
	{ .name = "arg_text", .probe_arg = 1, .fallback = -1 },             \
	{ .name = "arg_connection", .probe_arg = 2 },                       \
	{ .name = "arg_database", .probe_arg = 3 },                         \
	{ .name = "arg_user", .probe_arg = 4 },                             \
	{ .name = "arg_host", .probe_arg = 5 }

/*
 * query__exec__* is hit alone for a prepared statement, nested in query__* for a text, and for each
 * statement of a procedure.
 */
static const struct engine_probe mysql_usdt_probes[] = {
	{
		.step = "done", .program = "pair_done",
		.provider = "mysql", .probe = "query__done",
		.args = ENGINE_ARGS({ .name = "arg_status", .probe_arg = 1 }),
	},
	{
		.step = "exec_done", .program = "pair_done",
		.provider = "mysql", .probe = "query__exec__done",
		.args = ENGINE_ARGS({ .name = "arg_status", .probe_arg = 1 },
				    { .name = "arg_inner", .fallback = 1 }),
	},
	{
		.step = "start", .program = "pair_start",
		.provider = "mysql", .probe = "query__start",
		.args = ENGINE_ARGS(PAIR_ARGS),
	},
	{
		.step = "exec_start", .program = "pair_start",
		.provider = "mysql", .probe = "query__exec__start",
		.args = ENGINE_ARGS(PAIR_ARGS, { .name = "arg_inner", .fallback = 1 }),
	},
};

/* MySQL 5.5 to 5.7 built with ENABLE_DTRACE; any other MySQL or MariaDB. */
static const struct engine_probe_set mysql_probe_sets[] = {
	{
		.probes = mysql_usdt_probes,
		.nprobes = sizeof(mysql_usdt_probes) / sizeof(mysql_usdt_probes[0]),
	},
	{
		.probes = mysql_probes,
		.nprobes = sizeof(mysql_probes) / sizeof(mysql_probes[0]),
	},
};

static const char *const mysql_words[] = { "mysql", "mariadb", NULL };

static const struct engine_brand mysql_brands[] = {
	{ .version_word = "MariaDB", .title = "MariaDB", .otel_system = "mariadb" },
	{ .version_word = "", .title = "MySQL", .otel_system = "mysql" },
};

const struct engine engine_mysql = {
	.name = "mysql",
	.words = mysql_words,
	.title = "MySQL or MariaDB",
	.otel_system = "mysql",
	.brands = mysql_brands,
	.dialect = FINGERPRINT_MYSQL,
	.executables = mysql_executables,
	.embedded = (const char *const[]){ "libmariadbd.", "libmysqld.", NULL },
	.signature_symbols = mysql_dispatchers,
	.version_symbol = "server_version",
	.probe_sets = mysql_probe_sets,
	.nprobe_sets = sizeof(mysql_probe_sets) / sizeof(mysql_probe_sets[0]),
	.find_object = mysql_object_find,
	.lock_ops = &mysql_lock_ops,
	.ps_ops = &mysql_ps_ops,
	.has_stages = true,
	/*
	 * COM_INIT_DB, COM_QUERY, COM_STMT_EXECUTE and MariaDB's COM_STMT_BULK_EXECUTE: those that
	 * the server counts as questions. Not COM_STMT_FETCH: its rows are ready.
	 */
	.timed_commands = COMMAND(0x02) | COMMAND(COM_QUERY) | COMMAND(0x17) | COMMAND(0xfa),
	.client = mysql_client,
};
