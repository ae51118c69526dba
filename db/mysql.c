// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * MySQL and MariaDB. dispatch_command() takes each command of a client.
 * log_slow_statement(THD *) is entered once for each statement that ended, failures and each part
 * of "a; b" included, with text, error, user and database still in the session (THD).
 * Where they lie there differs by release and architecture, so the offsets are read off the
 * accessors that the server exports for its plugins.
 */
#include "db/mysql.h"

#include <stdio.h>

#define COMMAND(number)	(1ULL << ((number) & 63))

static const char *const mysql_executables[] = { "mysqld", "mariadbd", "mysqld-debug", NULL };

#define DISPATCH_JB	"_Z16dispatch_command19enum_server_commandP3THDPcjb"
#define DISPATCH_JBB	"_Z16dispatch_command19enum_server_commandP3THDPcjbb"
#define DISPATCH_J	"_Z16dispatch_command19enum_server_commandP3THDPcj"
#define DISPATCH_COM	"_Z16dispatch_commandP3THDPK8COM_DATA19enum_server_command"

/*
 * Statements inside functions, triggers and procedures, and what EXECUTE runs, end up in the
 * slow log's function too; but only the client's own come there from dispatch_command() itself.
 */
static const char *const mysql_dispatchers[] = {
	DISPATCH_JB, DISPATCH_JBB, DISPATCH_J, DISPATCH_COM, NULL,
};

/* MariaDB, and MySQL 5.5 and 5.6: dispatch_command(command, THD *, packet, length, …). */
#define COMMAND_FIRST(symbol)                                               \
	{                                                                   \
		.step = "command", .program = "command_start",              \
		.function = symbol,                                         \
		.args = {                                                   \
			{ .name = "arg_session", .spec = "8@%arg1", .fallback = -1 }, \
			{ .name = "arg_command", .spec = "4@%arg0", .fallback = -1 }, \
			{ .name = "arg_packet", .spec = "8@%arg2" },        \
			/* cmpl $2,thd->async_state.m_state; je */          \
			{ .name = "arg_resumed",                            \
			  .spec = "4@{" symbol "~83 be @@@@@@@@ 02 0f 84}(%arg1)" }, \
		},                                                          \
	}

/* MySQL's Security_context of a THD, and the accessors that hand out its members. */
#define CONTEXT	"({_Z24thd_get_security_contextP3THDPP16Security_context}(%arg0))"
#define USER	"_ZNK16Security_context4userEv"
#define HOST	"_ZNK16Security_context4hostEv"
#define IP	"_ZNK16Security_context2ipEv"
#define DB	"_Z20thd_binlog_filter_okPK3THD"
#define FAILED	"_Z12thd_is_errorPK3THD"

#define STATUS	"?thd_current_status"

/* Into the Diagnostics_area, which has what the client is told of the outcome: affected_rows. */
#define SET_OK	"=_ZN16Diagnostics_area13set_ok_statusEyyPKc"

static const struct engine_probe mysql_probes[] = {
	{
		/* log_slow_statement(THD *); of two rows MariaDB's is first, MySQL's second. */
		.step = "logged", .program = "statement_logged",
		.function = "_Z18log_slow_statementP3THD",
		.called_by = mysql_dispatchers,
		.args = {
			{ .name = "arg_session", .spec = "8@%arg0", .fallback = -1 },
			/* mov thd->in_sub_stmt,%eax; mov %rdi,…; test %eax,%eax; jne */
			{ .name = "arg_nested", .spec = "4@{_Z18log_slow_statementP3THD~"
			  "8b 87 @@@@@@@@ 48 89 fb 85 c0 0f 85}(%arg0)" },
			{ .name = "arg_nested", .spec = "4@{_Z18log_slow_statementP3THD~"
			  "8b 87 @@@@@@@@ 49 89 f9 85 c0 0f 85}(%arg0)" },
			{ .name = "arg_nested", .spec = "4@{_Z18log_slow_statementP3THD~"
			  "8b 87 @@@@@@@@ 85 c0 0f 85}(%arg0)" },
			/* cmpb $0,thd->enable_slow_log; je */
			{ .name = "arg_logging", .spec = "1@{_Z18log_slow_statementP3THD~"
			  "80 bf @@@@@@@@ 00 0f 84}(%arg0)" },
			{ .name = "arg_caller", .spec = "8@0(%rsp)" },
			{ .name = "arg_caller", .spec = "8@%x30" },
			{ .name = "arg_here", .spec = "8@%ip" },
			{ .name = "arg_text", .spec = "8@{thd_query_string}(%arg0)" },
			{ .name = "arg_text", .spec = "8@{_Z16thd_query_unsafeP3THD}(%arg0)",
			  .fallback = -1 },
			{ .name = "arg_length", .spec = "8@{thd_query_string+8}(%arg0)" },
			{ .name = "arg_length", .spec = "8@{_Z16thd_query_unsafeP3THD+8}(%arg0)",
			  .fallback = -1 },
			{ .name = "arg_connection", .spec = "4@{thd_get_thread_id}(%arg0)" },
			{ .name = "arg_error",
			  .spec = "4@{thd_get_error_number:inner}({thd_get_error_number}(%arg0))" },
			{ .name = "arg_state",
			  .spec = "4@{" FAILED ":inner}({" FAILED "}(%arg0))" },
			{ .name = "arg_state",
			  .spec = "4@{" STATUS ":inner}({" STATUS "}(%arg0))" },
			{ .name = "arg_failed_state", .spec = "{" FAILED ":expected}" },
			{ .name = "arg_failed_state", .spec = "{" STATUS ":expected}",
			  .fallback = 1 },
			{ .name = "arg_kind",
			  .spec = "4@{thd_sql_command:inner}({thd_sql_command}(%arg0))",
			  .fallback = 1 },
			{ .name = "arg_rows", .spec = "8@{=_ZN3THD18set_sent_row_countEy}(%arg0)" },
			{ .name = "arg_affected", .spec = "8@{" SET_OK "}({" FAILED "}(%arg0))" },
			{ .name = "arg_affected", .spec = "8@{" SET_OK "}({" STATUS "}(%arg0))" },
			{ .name = "arg_user",
			  .spec = "8@{thd_user_name:inner}({thd_user_name}(%arg0))" },
			{ .name = "arg_user", .spec = "8@{" USER "}" CONTEXT },
			{ .name = "arg_user_length", .spec = "8@{" USER "+8}" CONTEXT },
			{ .name = "arg_host",
			  .spec = "8@{thd_client_host:inner}({thd_client_host}(%arg0))" },
			{ .name = "arg_host", .spec = "8@{" HOST "}" CONTEXT },
			{ .name = "arg_host_length", .spec = "8@{" HOST "+8}" CONTEXT },
			{ .name = "arg_address",
			  .spec = "8@{thd_client_ip:inner}({thd_client_ip}(%arg0))" },
			{ .name = "arg_address", .spec = "8@{" IP "}" CONTEXT },
			{ .name = "arg_database", .spec = "8@{thd_current_db}(%arg0)" },
			{ .name = "arg_database", .spec = "8@{" DB "}(%arg0)" },
		},
	},
	COMMAND_FIRST(DISPATCH_JB),
	COMMAND_FIRST(DISPATCH_JBB),
	COMMAND_FIRST(DISPATCH_J),
	{
		/* MySQL from 5.7: dispatch_command(THD *, COM_DATA *, command). */
		.step = "command", .program = "command_start",
		.function = DISPATCH_COM,
		.args = {
			{ .name = "arg_session", .spec = "8@%arg0", .fallback = -1 },
			{ .name = "arg_command", .spec = "4@%arg2", .fallback = -1 },
			{ .name = "arg_packet", .spec = "8@0(%arg1)" },
		},
	},
	{
		/* THD::~THD() */
		.step = "closed", .program = "session_closed",
		.function = "_ZN3THDD1Ev",
		.optional = true,
		.args = { { .name = "arg_session", .spec = "8@%arg0", .fallback = -1 } },
	},
};

static void mysql_client(const char *host, const char *port, char *client, size_t size)
{
	(void)port;
	snprintf(client, size, "%s", host);
}

static const char *const mysql_queries[] = { "thd_query_string", "_Z16thd_query_unsafeP3THD", NULL };

const struct engine engine_mysql = {
	.name = "mysql",
	.title = "MySQL or MariaDB",
	.plain = "MySQL",
	.variant = "MariaDB",
	.executables = mysql_executables,
	.signs = mysql_dispatchers,
	.version_symbol = "server_version",
	.probes = mysql_probes,
	.nprobes = sizeof(mysql_probes) / sizeof(mysql_probes[0]),
	/* COM_QUERY, COM_STMT_EXECUTE, COM_STMT_FETCH, MariaDB's COM_STMT_BULK_EXECUTE */
	.error_again = 1615,		/* ER_NEED_REPREPARE */
	.queries = mysql_queries,
	.commands = COMMAND(0x03) | COMMAND(0x17) | COMMAND(0x1c) | COMMAND(0xfa),
	.client = mysql_client,
};

#define SPAN_ARGS                                                           \
	{ .name = "arg_text", .probe_arg = 1, .fallback = -1 },             \
	{ .name = "arg_connection", .probe_arg = 2 },                       \
	{ .name = "arg_database", .probe_arg = 3 },                         \
	{ .name = "arg_user", .probe_arg = 4 },                             \
	{ .name = "arg_host", .probe_arg = 5 }

/* query__exec__* alone for a prepared statement, inside query__* for a text, and in procedures. */
static const struct engine_probe mysql_usdt_probes[] = {
	{
		.step = "done", .program = "span_done",
		.provider = "mysql", .probe = "query__done",
		.args = { { .name = "arg_status", .probe_arg = 1 } },
	},
	{
		.step = "exec_done", .program = "span_done",
		.provider = "mysql", .probe = "query__exec__done",
		.args = { { .name = "arg_status", .probe_arg = 1 },
			  { .name = "arg_inner", .fallback = 1 } },
	},
	{
		.step = "start", .program = "span_start",
		.provider = "mysql", .probe = "query__start",
		.args = { SPAN_ARGS },
	},
	{
		.step = "exec_start", .program = "span_start",
		.provider = "mysql", .probe = "query__exec__start",
		.args = { SPAN_ARGS, { .name = "arg_inner", .fallback = 1 } },
	},
};

const struct engine engine_mysql_usdt = {
	.name = "mysql",
	.title = "MySQL or MariaDB",
	.plain = "MySQL",
	.variant = "MariaDB",
	.executables = mysql_executables,
	.signs = mysql_dispatchers,
	.version_symbol = "server_version",
	.probes = mysql_usdt_probes,
	.nprobes = sizeof(mysql_usdt_probes) / sizeof(mysql_usdt_probes[0]),
	.client = mysql_client,
};
