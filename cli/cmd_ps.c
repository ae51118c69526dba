// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command ps: the sessions of running servers and what they do now. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/format/json.h"
#include "cli/format/ps_table.h"
#include "cli/interval.h"
#include "cli/message.h"
#include "cli/option/set.h"
#include "cli/option/table.h"
#include "cli/start.h"
#include "cli/suggest.h"
#include "cli/tracing.h"
#include "db/ps/ps.h"
#include "db/sink.h"
#include "host/clock.h"

#define DEPTH_MAX	16	/* of the tree; deeper sessions are shown at this depth */


static struct {
	const char *columns;		/* NULL: the default ones */
	bool tree;			/* sessions below those that block them */
	bool all;			/* also idle processes that serve no client */
} own;

struct cmd_ps {
	struct options options;
	struct output out, err;
	struct ps *ps;
	struct ps_table table;
	struct ps_list list;
	const struct ps_session **row;	/* of ->list, those that the filter selects */
	size_t rows;
	struct edge *edge;		/* between rows, by the upper one */
	size_t nedges;
	bool *below, *printed;		/* elements of ->row: there is an upper one; printed */
	uint64_t now_ns;		/* CLOCK_REALTIME of ->list */
	bool again;			/* it is not the first one */
};

static const struct option_row option_min_sessions = {
	.letter = 'm', .name = "min", .arg = "MS",
	.help = "same as THRESHOLD",
	.accepts = OPTION_DURATIONS,
	.set = option_set_minimum,
};

static void complete_columns(struct output *out)
{
	output_string(out, ":list\n");
	ps_table_names(out);
	output_char(out, '\n');
}

static const struct option_row option_session_columns = {
	.letter = 'o', .name = "columns", .arg = "NAME[,...]",
	.help = "print these columns",
	.accepts = "expected column names, separated by commas",
	.set = option_set_word, .complete = complete_columns, OPTION_OWN(own.columns),
};

static void cmd_ps_error(void *arg, const struct error *error)
{
	struct cmd_ps *cmd = arg;

	message_error(&cmd->err, error);
	output_flush(&cmd->err);
}

/* Return since when the session has been in its state; 0: unknown. */
static uint64_t row_since(const struct ps_session *s)
{
	return s->statement_ns ? s->statement_ns : s->state_ns;
}

/* Compare numbers; 0 is the largest. */
static int row_compare_number(uint64_t a, uint64_t b)
{
	return a == b ? 0 : a - 1 < b - 1 ? -1 : 1;
}

/* Active sessions, those in a transaction, idle ones; of these, the oldest first. */
static int row_compare(const void *a, const void *b)
{
	static const uint8_t ranks[] = {
		[PS_ACTIVE] = 0, [PS_IN_TRANSACTION] = 1, [PS_ABORTED] = 1, [PS_IDLE] = 2,
		[PS_UNKNOWN] = 3,
	};
	const struct ps_session *x = *(const struct ps_session *const *)a;
	const struct ps_session *y = *(const struct ps_session *const *)b;
	int order = ranks[x->state] - ranks[y->state];

	order = order ? order : row_compare_number(row_since(x), row_since(y));
	order = order ? order : row_compare_number(x->who.pid, y->who.pid);
	return order ? order : row_compare_number(x->who.connection, y->who.connection);
}

/* Return whether the session has been in its state for long enough. */
static bool row_lasts(const struct cmd_ps *cmd, const struct ps_session *s)
{
	uint64_t since = row_since(s), ns = since < cmd->now_ns ? cmd->now_ns - since : 0;

	return !cmd->options.threshold_ns || (since && ns >= cmd->options.threshold_ns);
}

/* Return whether the session serves no client, and does nothing. */
static bool row_is_spare(const struct ps_session *s)
{
	return s->background && (s->state == PS_IDLE || s->state == PS_UNKNOWN) && !s->nblockers;
}

static void row_print(struct cmd_ps *cmd, const struct ps_session *s, unsigned int depth)
{
	if (cmd->options.json)
		ps_json(&cmd->out, s, cmd->now_ns);
	else
		ps_table_row(&cmd->table, s, depth, cmd->now_ns);
}

/* --- the tree: each row below another one, for which it works or, with --tree, waits */

/* A row that may be printed below another one. */
struct edge {
	uint32_t server;		/* PID of its main process */
	uint64_t upper;			/* ps_session_id() of the other one */
	size_t lower;			/* element of ->row */
	/* The first one of those with this upper one: they were marked, and printed. */
	bool marked, printed;
};

static int edge_compare(const struct edge *x, const struct edge *y)
{
	int order = row_compare_number(x->server, y->server);

	return order ? order : row_compare_number(x->upper, y->upper);
}

static int edge_compare_lower(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;
	int order = edge_compare(x, y);

	return order ? order : x->lower < y->lower ? -1 : x->lower > y->lower;
}

/* Set *@ids to those of the sessions below which @s may be printed. Return how many these are. */
static unsigned int row_uppers(const struct ps_session *s, const uint64_t **ids)
{
	*ids = s->leader ? &s->leader : s->blockers;
	return s->leader ? 1 : own.tree ? s->nblockers : 0;
}

/* Return the first edge with row @upper as the upper one, or where it would be. */
static struct edge *edge_first(const struct cmd_ps *cmd, const struct ps_session *upper)
{
	const struct edge key = { .server = upper->server->pid, .upper = ps_session_id(upper) };
	size_t from = 0, to = cmd->nedges;

	while (from < to) {
		size_t at = from + (to - from) / 2;

		if (edge_compare(&cmd->edge[at], &key) < 0)
			from = at + 1;
		else
			to = at;
	}
	return cmd->edge + from;
}

/* Return the end of the edges with the same upper row as @edge. */
static struct edge *edge_end(const struct cmd_ps *cmd, const struct edge *edge)
{
	size_t at = (size_t)(edge - cmd->edge);

	while (at < cmd->nedges && !edge_compare(&cmd->edge[at], edge))
		at++;
	return cmd->edge + at;
}

/* Return the edges with row @at as the upper one up to *@end, once; NULL: there are none. */
static struct edge *edges_of(const struct cmd_ps *cmd, size_t at, bool print, struct edge **end)
{
	const struct ps_session *s = cmd->row[at];
	const struct edge key = { .server = s->server->pid, .upper = ps_session_id(s) };
	struct edge *first = edge_first(cmd, s);
	bool *done;

	if (first == cmd->edge + cmd->nedges || edge_compare(first, &key))
		return NULL;
	/* Hostile servers have many sessions of one ID. */
	done = print ? &first->printed : &first->marked;
	if (*done)
		return NULL;
	*done = true;
	*end = edge_end(cmd, first);
	return first;
}

/* Print row @at, and below it those that belong there. Each row is printed once. */
static void tree_print(struct cmd_ps *cmd, size_t at, unsigned int depth)
{
	struct edge *end, *edge = depth < DEPTH_MAX ? edges_of(cmd, at, true, &end) : NULL;

	cmd->printed[at] = true;
	row_print(cmd, cmd->row[at], depth);
	for (; edge && edge < end; edge++)
		if (!cmd->printed[edge->lower])
			tree_print(cmd, edge->lower, depth + 1);
}

/* Print the sessions that are below no other one, and then what is left: each waits for another. */
static void tree_print_all(struct cmd_ps *cmd)
{
	for (size_t i = 0; i < cmd->rows; i++)
		if (!cmd->printed[i] && !cmd->below[i])
			tree_print(cmd, i, 0);
	for (size_t i = 0; i < cmd->rows; i++)
		if (!cmd->printed[i])
			tree_print(cmd, i, 0);
}

/* Find the edges between the rows. Return 0 or -ENOMEM. */
static int tree_make(struct cmd_ps *cmd)
{
	const uint64_t *ids;
	size_t n = 0;

	for (size_t i = 0; i < cmd->rows; i++)
		n += row_uppers(cmd->row[i], &ids);
	cmd->edge = calloc(n + 1, sizeof(*cmd->edge));
	if (!cmd->edge)
		return -ENOMEM;
	for (size_t i = 0; i < cmd->rows; i++) {
		unsigned int uppers = row_uppers(cmd->row[i], &ids);

		for (unsigned int j = 0; j < uppers; j++)
			cmd->edge[cmd->nedges++] = (struct edge){
				.server = cmd->row[i]->server->pid, .upper = ids[j], .lower = i,
			};
	}
	qsort(cmd->edge, cmd->nedges, sizeof(*cmd->edge), edge_compare_lower);
	for (size_t i = 0; i < cmd->rows; i++) {
		struct edge *end, *edge = edges_of(cmd, i, false, &end);

		for (; edge && edge < end; edge++)
			cmd->below[edge->lower] |= edge->lower != i;
	}
	return 0;
}

/* --- the rows */

static int compare_ids(const void *a, const void *b)
{
	const struct ps_session *x = *(struct ps_session *const *)a;
	const struct ps_session *y = *(struct ps_session *const *)b;
	int order = row_compare_number(x->server->pid, y->server->pid);

	return order ? order : row_compare_number(ps_session_id(x), ps_session_id(y));
}

/*
 * Add those for which the @n first ones of ->row wait, and so on. @sorted: all sessions by their
 * IDs. Return how many there are then.
 */
static size_t rows_add_blockers(struct cmd_ps *cmd, size_t n, struct ps_session **sorted,
				bool wanted[])
{
	for (size_t i = 0; i < n; i++) {
		const struct ps_session *s = cmd->row[i];

		for (unsigned int j = 0; j < s->nblockers; j++) {
			struct ps_session one = { .server = s->server }, *key = &one, **found;

			one.who.pid = (uint32_t)s->blockers[j];
			one.who.connection = s->who.connection ? s->blockers[j] : 0;
			found = bsearch(&key, sorted, cmd->list.n, sizeof(*sorted), compare_ids);
			if (!found || wanted[*found - cmd->list.session])
				continue;
			wanted[*found - cmd->list.session] = true;
			cmd->row[n++] = *found;
		}
	}
	return n;
}

/* Select the rows to print. Return 0 or -ENOMEM. */
static int rows_select(struct cmd_ps *cmd)
{
	const struct sink_config sink = {
		.filter = tracing_filter(&cmd->options), .redact = cmd->options.redact,
	};
	size_t n = cmd->list.n;
	struct ps_session **sorted = calloc(n + 1, sizeof(*sorted));
	bool *wanted = calloc(n + 1, sizeof(*wanted));
	int err = sorted && wanted ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < n; i++) {
		struct ps_session *s = sorted[i] = &cmd->list.session[i];

		wanted[i] = sink_session(&sink, s) && row_lasts(cmd, s) &&
			    (own.all || !row_is_spare(s));
		if (wanted[i])
			cmd->row[cmd->rows++] = s;
	}
	if (!err) {
		qsort(sorted, n, sizeof(*sorted), compare_ids);
		cmd->rows = rows_add_blockers(cmd, cmd->rows, sorted, wanted);
	}
	free(sorted);
	free(wanted);
	return err;
}

/* Select and sort the rows of ->list. Return 0 or -ENOMEM. */
static int rows_make(struct cmd_ps *cmd)
{
	size_t n = cmd->list.n;

	cmd->rows = cmd->nedges = 0;
	cmd->row = calloc(n + 1, sizeof(*cmd->row));
	cmd->below = calloc(n + 1, sizeof(*cmd->below));
	cmd->printed = calloc(n + 1, sizeof(*cmd->printed));
	if (!cmd->row || !cmd->below || !cmd->printed || rows_select(cmd))
		return -ENOMEM;
	qsort(cmd->row, cmd->rows, sizeof(*cmd->row), row_compare);
	return tree_make(cmd);
}

static void rows_free(struct cmd_ps *cmd)
{
	free(cmd->row);
	free(cmd->edge);
	free(cmd->below);
	free(cmd->printed);
	cmd->row = NULL;
	cmd->edge = NULL;
	cmd->below = NULL;
	cmd->printed = NULL;
	ps_list_free(&cmd->list);
}

static void rows_print(struct cmd_ps *cmd)
{
	if (cmd->again && !cmd->options.json)
		output_char(&cmd->out, '\n');
	cmd->again = true;
	if (!cmd->options.json)
		ps_table_header(&cmd->table);
	tree_print_all(cmd);
}

static int cmd_ps_none(struct cmd_ps *cmd)
{
	bool all = !cmd->options.engine && !cmd->options.path_count;

	output_string(&cmd->err, all ? "dbslower: servers: no supported database server found; "
				       "dbslower doctor prints obstacles to finding one\n" :
				       "dbslower: servers: no selected database server runs; omit "
				       "its name or -x for all that run\n");
	output_flush(&cmd->err);
	ps_list_free(&cmd->list);
	return EXIT_FAILED;
}

/* Say whose processes were left out, as one did not answer. */
static void cmd_ps_stalled(struct cmd_ps *cmd)
{
	const struct helper_shared *shared = cmd->list.stalled;

	for (size_t i = 0; i < shared->nusers; i++) {
		const struct helper_user *user = &shared->users[i];

		if (user->stalled)
			output_printf(&cmd->err, "dbslower: process %u: its memory does not "
				      "answer; it and %zu other processes of servers of user ID %u "
				      "are left out\n", user->pid, user->left_out, user->uid);
	}
}

/* Read and print the sessions once, for interval_repeat(). */
static int cmd_ps_once(void *arg)
{
	struct cmd_ps *cmd = arg;
	struct error error = { .kind = ERROR_NONE };

	if (ps_read(cmd->ps, 0, &cmd->list, &error)) {
		cmd_ps_error(cmd, &error);
		error_clear(&error);
		return EXIT_FAILED;
	}
	if (!cmd->list.servers && !cmd->list.more && !cmd->options.interval_ns &&
	    !helper_has_stalled(cmd->list.stalled))
		return cmd_ps_none(cmd);
	cmd->now_ns = clock_ns(CLOCK_REALTIME);
	if (rows_make(cmd)) {
		rows_free(cmd);
		return message_no_memory();
	}
	rows_print(cmd);
	if (cmd->list.more)
		output_printf(&cmd->err, "dbslower: %zu more sessions are not shown\n",
			      cmd->list.more);
	cmd_ps_stalled(cmd);
	output_flush(&cmd->err);
	rows_free(cmd);
	return interval_flush(&cmd->out, &cmd->err);
}

/* Set the columns. Return whether they are valid. */
static bool cmd_ps_columns(struct cmd_ps *cmd)
{
	const char *spec = own.columns;
	struct suggestion bad;
	struct option_parser p = { .err = &cmd->err };
	int err = ps_table_columns(&cmd->table, spec ? spec : PS_DEFAULT_COLUMNS, &bad);

	if (!err)
		return true;
	option_message(&p, &option_session_columns, bad.word, bad.len);
	if (err == -E2BIG) {
		option_message_many(&p, "columns", PS_COLUMNS);
	} else {
		output_string(&cmd->err, "unknown column; ");
		suggestion_print(&bad, "", &cmd->err);
		output_string(&cmd->err, bad.best ? "" : "the columns are ");
		if (!bad.best)
			ps_table_names(&cmd->err);
		option_message_end(&p, "", NULL);
	}
	output_flush(&cmd->err);
	return false;
}

static int cmd_ps_run(struct cmd_ps *cmd)
{
	const struct options *options = &cmd->options;
	struct winsize size;

	cmd->table.out = &cmd->out;
	if (!cmd_ps_columns(cmd))
		return EXIT_USAGE;
	if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		cmd->table.width = size.ws_col;
	cmd->ps = ps_open(&(struct ps_config){
		.servers = tracing_servers(options),
		.text_bytes = options->text_bytes,
		.arg = cmd, .error = cmd_ps_error,
	});
	if (!cmd->ps)
		return message_no_memory();
	if (options->json)
		json_start(&cmd->out, clock_ns(CLOCK_REALTIME), NULL, "ps");
	return interval_repeat(options, cmd_ps_once, cmd);
}

static int cmd_ps(const struct command *command, int argc, char *argv[])
{
	struct cmd_ps *cmd = calloc(1, sizeof(*cmd));
	int status;

	if (!cmd)
		return message_no_memory();
	status = start_command(command, argc, argv, &cmd->options, &cmd->out, &cmd->err);
	if (status == START_GO)
		status = cmd_ps_run(cmd);
	ps_close(cmd->ps);
	free(cmd);
	return status;
}

static const struct option_row option_tree = {
	.name = "tree",
	.help = "print sessions below those that block them",
	OPTION_OWN(own.tree),
};

static const struct option_row option_all = {
	.name = "all",
	.help = "also what serves no client and is idle",
	OPTION_OWN(own.all),
};

static const struct option_row *const ps_options[] = {
	&option_min_sessions, &option_pid, &option_path, &option_duration, &option_interval,
	&option_count_intervals, &option_all, &option_tree, &option_engine, &option_user,
	&option_db, &option_client, &option_app, &option_backend, &option_match,
	&option_container, &option_text, &option_redact, &option_session_columns, &option_json,
	&option_threshold, &option_exe, &option_help, &option_version, NULL
};

static bool json_with_columns(const struct options *opts)
{
	return opts->json && own.columns;
}

static bool duration_without_interval(const struct options *opts)
{
	return opts->duration_ns && !opts->interval_ns;
}

static const struct option_rule rule_columns = {
	json_with_columns, "-o", "cannot be combined with --json, which prints all fields",
	"omit one of them",
};

static const struct option_rule rule_duration = {
	duration_without_interval, "-d", "ends what -i repeats and requires it",
	"specify -i SECONDS",
};

static const struct option_rule *const ps_rules[] = {
	&rule_columns, &rule_count_intervals, &rule_duration, NULL
};

const struct command command_ps = {
	.name = "ps",
	.summary = "list the sessions and what they do, without a login",
	.invocation = "dbslower ps",
	.usage = "[ENGINE] [THRESHOLD] [OPTION...]",
	.about =
	"List the sessions of running database servers: their states, transactions and\n"
	"waits, who blocks them, and their current or last statements. They are read from\n"
	"the memory of the servers; nothing is attached. With THRESHOLD, only sessions\n"
	"that have been in their state for that long. ENGINE: default all.\n"
	"Columns, for -o: id, pid, server, engine, user, db, client, app, backend,\n"
	"container, state, xact, time, wait, stage, blocked_by, query.\n",
	.examples =
	"  dbslower ps                       # all sessions; active ones first\n"
	"  dbslower ps 5s --user app         # of one user, for 5 s in the same state\n"
	"  dbslower ps --tree -i 1           # who waits for whom, every second\n"
	"  dbslower ps -o id,db,app,query    # other columns\n"
	"\n"
	"Exit status: 0 success; 1 failure; 2 usage error.\n",
	.words = WORDS_STATEMENTS,
	.options = ps_options,
	.rules = ps_rules,
	.run = cmd_ps,
};
