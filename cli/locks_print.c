// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/locks_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/escape.h"
#include "cli/json.h"
#include "db/mysql/names.h"
#include "db/postgres/names.h"

#define ROWS_MAX	65536		/* of sums, edges and nodes each */
#define INDENT		"               "	/* as wide as the column of times */

void locks_view_free(struct locks_view *view)
{
	free(view->sums);
	free(view->edges);
	free(view->nodes);
	view->sums = NULL;
	view->edges = NULL;
	view->nodes = NULL;
	view->nsums = view->nedges = view->nnodes = 0;
}

/* The array @rows, with room for one more behind @n; NULL: there is none. */
static void *rows_more(void *rows, size_t n, size_t size)
{
	if (n & (n - 1))
		return rows;
	return n >= ROWS_MAX ? NULL : realloc(rows, (n ? n * 2 : 1) * size);
}

static const char *mode_name(const struct event_lock *event)
{
	return event->flags & LOCK_SESSION ? "" : postgres_lock_mode(event);
}

static const char *outcome_name(const struct lock_wait *wait)
{
	if (wait->running)
		return "waiting";
	if (wait->event->flags & LOCK_DEADLOCK)
		return "deadlock";
	/* Its servers do not say what became of it. */
	if (wait->event->flags & LOCK_SESSION)
		return "ended";
	return wait->event->flags & LOCK_FAILED ? "failed" : "granted";
}

/* Describe the awaited object; without @each only the part that many waits share. */
static void wait_object(const struct lock_wait *wait, bool each, char *to, size_t size)
{
	if (wait->event->flags & LOCK_SESSION)
		mysql_lock_object(wait->known, to, size);
	else
		postgres_lock_object(wait->kind, wait->event, wait->known, each, to, size);
}

/* --- one by one */

void locks_show_header(struct locks_view *view)
{
	if (!view->json)
		output_printf(view->out, "%-14s %-7s %12s %-8s %-36s %-24s %-7s %s\n", "TIME(s)",
			      "PID", "MS", "OUTCOME", "LOCK", "MODE", "HOLDER", "QUERY");
}

static void show_time(const struct locks_view *view, const struct lock_wait *wait)
{
	char number[OUTPUT_NUMBER + 1] = "-";
	int64_t at = (int64_t)(wait->start_ns - view->start_ns);
	bool before = at < 0 && !view->wall;
	size_t len = before + (view->wall ?
			       output_clock(number, wait->wall_ns, 3) :
			       output_format(number + before, (uint64_t)(before ? -at : at) / 1000,
					     6));

	output_bytes(view->out, number, len);
	output_spaces(view->out, len < 14 ? 15 - len : 1);
}

/* Foreign @text in a column of @width. */
static void show_padded(struct output *out, const char *text, size_t width)
{
	size_t used = escape_width(text, strlen(text));

	escape_terminal(out, text, strlen(text), false);
	output_spaces(out, used < width ? width - used + 1 : 1);
}

static void show_text(struct output *out, const struct lock_backend *party)
{
	if (!party->text) {
		output_char(out, '-');
		return;
	}
	escape_terminal(out, party->text, party->len, party->cut);
	output_string(out, party->cut ? "..." : "");
}

/* The number that people know it by; 0: it has none. */
static uint64_t party_id(const struct lock_backend *party)
{
	return party->connection ? party->connection : party->pid;
}

/* "held by 4240, idle in transaction for 3.2 s; its last statement: UPDATE …" */
static void show_holder(struct output *out, const struct lock_backend *party)
{
	output_string(out, INDENT);
	output_string(out, party->queued ? "queued behind " : "held by ");
	if (!party->pid) {
		output_string(out, "a prepared transaction\n");
		return;
	}
	if (party->connection)
		output_string(out, "connection ");
	output_u64(out, party_id(party));
	if (party->idle) {
		output_string(out, ", idle in transaction");
		if (party->idle_ns) {
			output_string(out, " for ");
			output_fixed(out, party->idle_ns / 1000000, 3);
			output_string(out, " s");
		}
	}
	if (party->text) {
		output_string(out, party->running ? ", running: " : "; its last statement: ");
		show_text(out, party);
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

static void show_row(struct locks_view *view, const struct lock_wait *wait)
{
	const struct lock_info *known = wait->known;
	struct output *out = view->out;
	char object[LOCKS_OBJECT], lock[LOCKS_OBJECT + 32], number[OUTPUT_NUMBER + 2] = ">";
	char holder[24] = "-";

	show_time(view, wait);
	number[1 + output_format(number + 1, wait->duration_ns / 1000, 3)] = '\0';
	output_printf(out, "%-7u %12s %-8s ", wait->event->pid, number + !wait->joined,
		      outcome_name(wait));
	wait_object(wait, true, object, sizeof(object));
	snprintf(lock, sizeof(lock), "%s %s", *wait->kind ? wait->kind : "lock", object);
	show_padded(out, lock, 36);
	if (known && known->nholders && known->holders[0].pid)
		snprintf(holder, sizeof(holder), "%llu",
			 (unsigned long long)party_id(&known->holders[0]));
	output_printf(out, "%-24s %-7s ", mode_name(wait->event), holder);
	if (known)
		show_text(out, &known->self);
	else
		output_char(out, '-');
	output_char(out, '\n');
	for (unsigned int i = 0; known && i < known->nholders; i++)
		show_holder(out, &known->holders[i]);
	if (known && known->more)
		output_printf(out, INDENT "and %u more\n", known->more);
	if (wait->ncycle)
		show_cycle(out, wait);
}

static void json_text(struct output *out, const struct lock_backend *party)
{
	if (!party->text)
		return;
	output_string(out, ",\"query\":\"");
	escape_json(out, party->text, party->len, party->cut);
	output_string(out, party->cut ? "\",\"truncated\":true" : "\",\"truncated\":false");
}

static void json_holder(struct output *out, const struct lock_backend *party)
{
	if (party->pid)
		json_number(out, "{\"pid\":", party->pid);
	else
		output_string(out, "{\"prepared_transaction\":true");
	if (party->connection)
		json_number(out, ",\"connection_id\":", party->connection);
	output_string(out, party->queued ? ",\"queued\":true" : ",\"queued\":false");
	if (party->known)
		output_string(out, party->running ? ",\"running\":true" : ",\"running\":false");
	if (party->known)
		output_string(out, party->idle ? ",\"idle_in_transaction\":true" :
						 ",\"idle_in_transaction\":false");
	if (party->idle_ns) {
		output_string(out, ",\"idle_ms\":");
		output_fixed(out, party->idle_ns, 6);
	}
	json_text(out, party);
	output_char(out, '}');
}

/* What the lock's tag has, by name. */
static void json_lock(struct output *out, const struct lock_wait *wait)
{
	const struct event_lock *event = wait->event;
	char object[LOCKS_OBJECT];
	uint32_t fields = postgres_lock_fields(wait->kind);
	uint32_t relation = postgres_lock_relation(wait->kind, event, wait->known);

	wait_object(wait, true, object, sizeof(object));
	if (*wait->kind)
		json_string(out, ",\"lock\":\"", wait->kind);
	if (*object)
		json_string(out, ",\"object\":\"", object);
	if (*mode_name(event))
		json_string(out, ",\"mode\":\"", mode_name(event));
	if (event->flags & (LOCK_LWLOCK | LOCK_SESSION))
		return;
	if (fields & POSTGRES_TAG_DATABASE)
		json_number(out, ",\"database_oid\":", event->field[0]);
	if (fields & POSTGRES_TAG_XID)
		json_number(out, ",\"transaction\":", event->field[0]);
	if (relation)
		json_number(out, ",\"relation_oid\":", relation);
	if (wait->known && *wait->known->name)
		json_string(out, ",\"relation\":\"", wait->known->name);
	output_string(out, ",\"tag\":[");
	for (int i = 0; i < 4; i++)
		json_number(out, i ? "," : "", event->field[i]);
	json_number(out, "],\"tag_type\":", event->kind);
}

static void json_wait(struct output *out, const struct lock_wait *wait)
{
	const struct lock_info *known = wait->known;

	output_string(out, "{\"type\":\"lock_wait\",\"time\":\"");
	json_time(out, wait->wall_ns);
	json_string(out, "\",\"engine\":\"", wait->target->engine->name);
	json_number(out, ",\"pid\":", wait->event->pid);
	json_number(out, ",\"tid\":", wait->event->tid);
	if (known && known->self.connection)
		json_number(out, ",\"connection_id\":", known->self.connection);
	output_string(out, ",\"duration_ms\":");
	output_fixed(out, wait->duration_ns, 6);
	output_string(out, wait->joined ? ",\"began_before\":true" : "");
	json_string(out, ",\"outcome\":\"", outcome_name(wait));
	json_lock(out, wait);
	if (known) {
		json_text(out, &known->self);
		output_string(out, ",\"holders\":[");
		for (unsigned int i = 0; i < known->nholders; i++) {
			output_string(out, i ? "," : "");
			json_holder(out, &known->holders[i]);
		}
		output_char(out, ']');
		if (known->more)
			json_number(out, ",\"more_holders\":", known->more);
	}
	for (unsigned int i = 0; i < wait->ncycle; i++)
		json_number(out, i ? "," : ",\"cycle\":[", wait->cycle[i]);
	output_string(out, wait->ncycle ? "]}\n" : "}\n");
}

void locks_show_wait(struct locks_view *view, const struct lock_wait *wait)
{
	if (view->json)
		json_wait(view->out, wait);
	else
		show_row(view, wait);
}

/* --- summed up */

static void sums_add(struct locks_view *view, const struct locks_sum *sum)
{
	struct locks_sum *to = view->sums, *more;

	for (size_t i = 0; i < view->nsums; i++, to++)
		if (to->mode == sum->mode && to->engine == sum->engine &&
		    !strcmp(to->object, sum->object) && !strcmp(to->kind, sum->kind))
			break;
	if (!view->nsums || to == view->sums + view->nsums) {
		more = rows_more(view->sums, view->nsums, sizeof(*more));
		if (!more) {
			view->unsummed += sum->waits;
			return;
		}
		view->sums = more;
		more[view->nsums++] = *sum;
		return;
	}
	to->waits += sum->waits;
	to->failed += sum->failed;
	to->deadlocks += sum->deadlocks;
	to->total_ns += sum->total_ns;
	to->max_ns = to->max_ns > sum->max_ns ? to->max_ns : sum->max_ns;
}

void locks_sum_wait(struct locks_view *view, const struct lock_wait *wait)
{
	const struct event_lock *event = wait->event;
	struct locks_sum sum = {
		.engine = wait->target->engine->name, .mode = mode_name(event), .waits = 1,
		.failed = !!(event->flags & LOCK_FAILED),
		.deadlocks = !!(event->flags & LOCK_DEADLOCK),
		.total_ns = wait->duration_ns, .max_ns = wait->duration_ns,
	};

	snprintf(sum.kind, sizeof(sum.kind), "%s", *wait->kind ? wait->kind : "lock");
	wait_object(wait, false, sum.object, sizeof(sum.object));
	sums_add(view, &sum);
}

static int sum_compare(const void *pa, const void *pb)
{
	const struct locks_sum *a = pa, *b = pb;
	int order;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	order = strcmp(a->kind, b->kind);
	order = order ? order : strcmp(a->object, b->object);
	return order ? order : strcmp(a->mode, b->mode);
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
	output_printf(out, "%-24s ", sum->mode);
	snprintf(lock, sizeof(lock), "%s %s", sum->kind, sum->object);
	escape_terminal(out, lock, strlen(lock), false);
	output_char(out, '\n');
}

static void json_sum(struct output *out, const struct locks_sum *sum)
{
	json_string(out, "{\"type\":\"lock_stat\",\"engine\":\"", sum->engine);
	json_string(out, ",\"lock\":\"", sum->kind);
	json_string(out, ",\"object\":\"", sum->object);
	json_string(out, ",\"mode\":\"", sum->mode);
	json_number(out, ",\"waits\":", sum->waits);
	json_number(out, ",\"failed\":", sum->failed);
	json_number(out, ",\"deadlocks\":", sum->deadlocks);
	output_string(out, ",\"total_ms\":");
	output_fixed(out, sum->total_ns, 6);
	output_string(out, ",\"max_ms\":");
	output_fixed(out, sum->max_ns, 6);
	output_string(out, "}\n");
}

void locks_show_sums(struct locks_view *view, const struct lwlock_count *counts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct event_lock event = { .flags = LOCK_LWLOCK, .mode = counts[i].mode };
		struct locks_sum sum = {
			.engine = counts[i].target->engine->name, .kind = "lwlock",
			.mode = mode_name(&event), .waits = counts[i].sum.count,
			.total_ns = counts[i].sum.total_ns, .max_ns = counts[i].sum.max_ns,
		};

		snprintf(sum.object, sizeof(sum.object), "%s", counts[i].name);
		if (sum.waits)
			sums_add(view, &sum);
	}
	if (view->nsums)
		qsort(view->sums, view->nsums, sizeof(*view->sums), sum_compare);
	if (!view->json)
		output_printf(view->out, "%8s %7s %9s %12s %12s %12s %-24s %s\n", "WAITS",
			      "FAILED", "DEADLOCKS", "TOTAL(ms)", "MEAN(ms)", "MAX(ms)", "MODE",
			      "LOCK");
	for (size_t i = 0; i < view->nsums; i++) {
		if (view->json)
			json_sum(view->out, &view->sums[i]);
		else
			show_sum(view->out, &view->sums[i]);
	}
}

void locks_show_summary(struct locks_view *view, const struct summary *summary)
{
	json_number(view->out, "{\"type\":\"summary\",\"waits\":", summary->statements);
	json_number(view->out, ",\"printed\":", summary->printed);
	json_number(view->out, ",\"lost\":{\"ring_full\":", summary->ring_full);
	json_number(view->out, ",\"table_full\":", summary->table_full);
	output_string(view->out, "}}\n");
}

/* --- the graph */

static void graph_node(struct locks_view *view, const struct lock_backend *party)
{
	struct locks_node *node = view->nodes;

	for (size_t i = 0; i < view->nnodes && node->id != party_id(party); i++)
		node++;
	if (!view->nnodes || node == view->nodes + view->nnodes) {
		node = rows_more(view->nodes, view->nnodes, sizeof(*node));
		if (!node)
			return;
		view->nodes = node;
		node += view->nnodes++;
		*node = (struct locks_node){ .id = party_id(party),
					     .connection = party->connection };
	}
	node->idle = party->idle;
	if (!party->text)
		return;
	node->len = party->len < sizeof(node->text) ? party->len : sizeof(node->text);
	memcpy(node->text, party->text, node->len);
}

static void graph_edge(struct locks_view *view, const struct locks_edge *edge)
{
	struct locks_edge *to = view->edges;

	for (size_t i = 0; i < view->nedges; i++, to++)
		if (to->id == edge->id && to->holder == edge->holder &&
		    to->mode == edge->mode && to->queued == edge->queued &&
		    !strcmp(to->object, edge->object))
			break;
	if (!view->nedges || to == view->edges + view->nedges) {
		to = rows_more(view->edges, view->nedges, sizeof(*to));
		if (!to)
			return;
		view->edges = to;
		to[view->nedges++] = *edge;
		return;
	}
	to->waits++;
	to->total_ns += edge->total_ns;
	to->deadlock |= edge->deadlock;
}

void locks_graph_wait(struct locks_view *view, const struct lock_wait *wait)
{
	struct locks_edge edge = {
		.mode = mode_name(wait->event),
		.deadlock = wait->event->flags & LOCK_DEADLOCK, .waits = 1,
		.total_ns = wait->duration_ns,
	};
	char object[LOCKS_OBJECT - 32];

	if (!wait->known)
		return;
	wait_object(wait, true, object, sizeof(object));
	snprintf(edge.object, sizeof(edge.object), "%s %s", wait->kind, object);
	edge.id = party_id(&wait->known->self);
	graph_node(view, &wait->known->self);
	for (unsigned int i = 0; i < wait->known->nholders; i++) {
		edge.holder = party_id(&wait->known->holders[i]);
		edge.queued = wait->known->holders[i].queued;
		graph_node(view, &wait->known->holders[i]);
		graph_edge(view, &edge);
	}
}

void locks_show_graph(const struct locks_view *view, struct output *out)
{
	output_string(out, "digraph locks {\n\trankdir=LR;\n\tnode [shape=box];\n");
	for (size_t i = 0; i < view->nnodes; i++) {
		const struct locks_node *node = &view->nodes[i];

		output_printf(out, "\t\"%llu\" [label=\"%s", (unsigned long long)node->id,
			      node->connection ? "connection " : "");
		if (node->id)
			output_u64(out, node->id);
		else
			output_string(out, "prepared transaction");
		output_string(out, node->idle ? ", idle in transaction\\n" : "\\n");
		/* What JSON escapes, and how, will do here. */
		escape_json(out, node->text, node->len, true);
		output_string(out, "\"];\n");
	}
	for (size_t i = 0; i < view->nedges; i++) {
		const struct locks_edge *edge = &view->edges[i];

		output_printf(out, "\t\"%llu\" -> \"%llu\" [label=\"",
			      (unsigned long long)edge->id, (unsigned long long)edge->holder);
		escape_json(out, edge->object, strlen(edge->object), false);
		output_printf(out, "\\n%s%s", edge->mode, *edge->mode ? "\\n" : "");
		output_fixed(out, edge->total_ns / 1000, 3);
		output_string(out, " ms");
		if (edge->waits > 1)
			output_printf(out, " in %llu waits", (unsigned long long)edge->waits);
		output_string(out, edge->queued ? "\", style=dashed" : "\"");
		output_string(out, edge->deadlock ? ", color=red];\n" : "];\n");
	}
	output_string(out, "}\n");
}
