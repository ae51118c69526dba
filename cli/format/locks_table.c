// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/locks_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/format/escape.h"

#define INDENT		"               "	/* as wide as the column of times */

void locks_table_header(struct locks_table *table)
{
	output_printf(table->out, "%-14s %-7s %12s %-8s %-36s %-24s %-7s %s\n", "TIME(s)", "PID",
		      "MS", "OUTCOME", "LOCK", "MODE", "HOLDER", "QUERY");
}

static void show_time(const struct locks_table *table, const struct lock_wait *wait)
{
	char number[OUTPUT_NUMBER + 1] = "-";
	bool before = wait->start_ns < table->start_ns && !table->wall;
	uint64_t ns = before ? table->start_ns - wait->start_ns : wait->start_ns - table->start_ns;
	size_t len = before + (table->wall ? output_clock(number, wait->wall_ns, 3) :
					     output_format(number + before, ns / 1000, 6));

	output_bytes(table->out, number, len);
	output_spaces(table->out, len < 14 ? 15 - len : 1);
}

/* Append foreign text padded to @width columns. */
static void show_padded(struct output *out, const char *text, size_t width)
{
	size_t used = escape_width(text, strlen(text));

	escape_terminal(out, text, strlen(text), false);
	output_spaces(out, used < width ? width - used + 1 : 1);
}

static void show_text(struct output *out, const struct lock_backend *backend)
{
	if (!backend->text) {
		output_char(out, '-');
		return;
	}
	escape_terminal(out, backend->text, backend->len, backend->cut);
	output_string(out, backend->cut ? "..." : "");
}

/* Append "held by 4240, …"; of one of @several, "held by 4240 (walsender) for 101.4 ms, …". */
static void show_who(struct output *out, const struct lock_backend *backend, bool several)
{
	output_string(out, INDENT);
	output_string(out, backend->queued ? "queued behind " : "held by ");
	if (!backend->pid)
		output_string(out, "a prepared transaction");
	else if (backend->connection)
		output_string(out, "connection ");
	if (backend->pid)
		output_u64(out, locks_backend_id(backend));
	if (*backend->kind && strcmp(backend->kind, "client")) {
		output_string(out, " (");
		escape_terminal(out, backend->kind, strlen(backend->kind), false);
		output_char(out, ')');
	}
	if (several) {
		output_string(out, " for ");
		output_fixed(out, backend->blocked_ns / 1000, 3);
		output_string(out, " ms");
	}
}

/* Append "held by 4240, idle in transaction for 3.2 s; its last statement: UPDATE …". */
static void show_holder(struct output *out, const struct lock_backend *backend, bool several)
{
	show_who(out, backend, several);
	if (backend->idle) {
		output_string(out, ", idle in transaction");
		if (backend->idle_ns) {
			output_string(out, " for ");
			output_fixed(out, backend->idle_ns / 1000000, 3);
			output_string(out, " s");
		}
	}
	if (backend->text) {
		output_string(out, backend->running ? ", running: " : "; its last statement: ");
		show_text(out, backend);
	}
	output_char(out, '\n');
}

static void show_cycle(struct output *out, const struct lock_wait *wait)
{
	output_string(out, INDENT "deadlock: ");
	for (unsigned int i = 0; i < wait->ncycle; i++) {
		output_u64(out, wait->cycle[i]);
		output_string(out, " waits for ");
	}
	output_u64(out, wait->cycle[0]);
	output_char(out, '\n');
}

void locks_table_wait(struct locks_table *table, const struct lock_wait *wait)
{
	const struct lock_info *info = wait->info;
	struct output *out = table->out;
	char object[LOCKS_OBJECT], lock[LOCKS_OBJECT + LOCK_RELATION + 32];
	char number[OUTPUT_NUMBER + 2] = ">", holder[24] = "-";

	show_time(table, wait);
	number[1 + output_format(number + 1, wait->duration_ns / 1000, 3)] = '\0';
	output_printf(out, "%-7u %12s %-8s ", wait->who->pid, number + !wait->joined,
		      locks_wait_outcome(wait));
	locks_wait_object(wait, true, object, sizeof(object));
	snprintf(lock, sizeof(lock), "%s %s%s%s", *wait->kind ? wait->kind : "lock", object,
		 info && *info->index ? ", index " : "", info ? info->index : "");
	show_padded(out, lock, 36);
	if (info && info->nholders && info->holders[0].pid)
		snprintf(holder, sizeof(holder), "%llu",
			 (unsigned long long)locks_backend_id(&info->holders[0]));
	output_printf(out, "%-24s %-7s ", locks_wait_mode(wait->server->engine, wait->event),
		      holder);
	if (info)
		show_text(out, &info->self);
	else
		output_char(out, '-');
	output_char(out, '\n');
	for (unsigned int i = 0; info && i < info->nholders; i++)
		show_holder(out, &info->holders[i], info->nholders > 1);
	if (info && info->more)
		output_printf(out, INDENT "and %u more\n", info->more);
	if (wait->ncycle)
		show_cycle(out, wait);
}

void locks_table_init(struct locks_table *table, struct output *out, bool wall)
{
	*table = (struct locks_table){
		.out = out, .wall = wall, .sums.size = sizeof(struct locks_sum),
		.sums.key_size = sizeof(struct locks_sum_key),
	};
}

/* Add @sum, all bytes of whose key are set, to that of the same key, or as a row of @owner. */
static bool sums_add(struct locks_table *table, const struct locks_sum *sum, uint32_t owner)
{
	struct locks_sum *to = locks_rows_get(&table->sums, &sum->of, owner);

	if (!to)
		return false;
	to->waits += sum->waits;
	to->failed += sum->failed;
	to->deadlocks += sum->deadlocks;
	to->total_ns += sum->total_ns;
	to->max_ns = to->max_ns > sum->max_ns ? to->max_ns : sum->max_ns;
	return true;
}

bool locks_table_add(struct locks_table *table, const struct lock_wait *wait)
{
	const struct event_lock *event = wait->event;
	struct locks_sum sum;

	memset(&sum, 0, sizeof(sum));
	sum.of.engine = wait->server->engine->name;
	sum.of.mode = locks_wait_mode(wait->server->engine, event);
	snprintf(sum.of.kind, sizeof(sum.of.kind), "%s", *wait->kind ? wait->kind : "lock");
	locks_wait_object(wait, false, sum.of.object, sizeof(sum.of.object));
	sum.waits = 1;
	sum.failed = !!(event->flags & LOCK_FAILED);
	sum.deadlocks = !!(event->flags & LOCK_DEADLOCK);
	sum.total_ns = sum.max_ns = wait->duration_ns;
	return sums_add(table, &sum, event->head.owner);
}

static int sum_compare(const void *pa, const void *pb)
{
	const struct locks_sum *a = pa, *b = pb;
	int order;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	order = strcmp(a->of.kind, b->of.kind);
	order = order ? order : strcmp(a->of.object, b->of.object);
	return order ? order : strcmp(a->of.mode, b->of.mode);
}

static void show_ms(struct output *out, uint64_t ns)
{
	char number[OUTPUT_NUMBER];

	number[output_format(number, ns / 1000, 3)] = '\0';
	output_printf(out, "%12s ", number);
}

static void show_sum(struct output *out, const struct locks_sum *sum)
{
	char lock[LOCKS_OBJECT + 32];

	output_printf(out, "%8llu %7llu %9llu ", (unsigned long long)sum->waits,
		      (unsigned long long)sum->failed, (unsigned long long)sum->deadlocks);
	show_ms(out, sum->total_ns);
	show_ms(out, sum->total_ns / sum->waits);
	show_ms(out, sum->max_ns);
	output_printf(out, "%-24s ", sum->of.mode);
	snprintf(lock, sizeof(lock), "%s %s", sum->of.kind, sum->of.object);
	escape_terminal(out, lock, strlen(lock), false);
	output_char(out, '\n');
}

void locks_table_add_lwlocks(struct locks_table *table, const struct lwlock_count *counts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct event_lock event = { .flags = LOCK_LWLOCK, .mode = counts[i].mode };
		struct locks_sum sum;

		memset(&sum, 0, sizeof(sum));
		sum.of.engine = counts[i].engine->name;
		sum.of.mode = locks_wait_mode(counts[i].engine, &event);
		snprintf(sum.of.kind, sizeof(sum.of.kind), "lwlock");
		snprintf(sum.of.object, sizeof(sum.of.object), "%s", counts[i].name);
		sum.waits = counts[i].sum.count;
		sum.total_ns = counts[i].sum.total_ns;
		sum.max_ns = counts[i].sum.max_ns;
		if (sum.waits)
			sums_add(table, &sum, LOCKS_NO_OWNER);
	}
}

void locks_table_sort(struct locks_table *table)
{
	if (table->sums.n)
		qsort(table->sums.row, table->sums.n, sizeof(struct locks_sum), sum_compare);
}

void locks_table_print(const struct locks_table *table)
{
	output_printf(table->out, "%8s %7s %9s %12s %12s %12s %-24s %s\n", "WAITS", "FAILED",
		      "DEADLOCKS", "TOTAL(ms)", "MEAN(ms)", "MAX(ms)", "MODE", "LOCK");
	for (size_t i = 0; i < table->sums.n; i++)
		show_sum(table->out, &locks_table_sums(table)[i]);
}

void locks_table_free(struct locks_table *table)
{
	locks_rows_free(&table->sums);
}
