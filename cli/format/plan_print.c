// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/plan_print.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/base.h"
#include "cli/format/escape.h"
#include "db/plan/plan.h"

#define BAR	20	/* columns of a whole one */

enum kind {
	STRING, NUMBER, BYTES, REAL, BOOLEAN
};

/*
 * What is known of a node: the names in EXPLAIN's JSON, or of the same kind, and, for those with a
 * line of their own, in text.
 */
static const struct member {
	enum plan_key key;
	enum kind kind;
	const char *name, *label;
	enum plan_key total;		/* in the same line; 0: none */
	bool bar;			/* with a bar */
} members[] = {
#define MEMBER(key_, kind_, name_, ...) \
	{ .key = PLAN_ ## key_, .kind = kind_, .name = name_, __VA_ARGS__ }
	MEMBER(TYPE, STRING, "Node Type"),
	MEMBER(STRATEGY, STRING, "Strategy"),
	MEMBER(PARTIAL, STRING, "Partial Mode"),
	MEMBER(OPERATION, STRING, "Operation"),
	MEMBER(RELATIONSHIP, STRING, "Parent Relationship"),
	MEMBER(SUBPLAN, STRING, "Subplan Name"),
	MEMBER(PROVIDER, STRING, "Custom Plan Provider"),
	MEMBER(PARALLEL, BOOLEAN, "Parallel Aware"),
	MEMBER(ASYNC, BOOLEAN, "Async Capable"),
	MEMBER(DIRECTION, STRING, "Scan Direction"),
	MEMBER(INDEX, STRING, "Index Name"),
	MEMBER(RELATION, STRING, "Relation Name"),
	MEMBER(CTE, STRING, "CTE Name"),
	MEMBER(SCHEMA, STRING, "Schema"),
	MEMBER(ALIAS, STRING, "Alias"),
	MEMBER(JOIN, STRING, "Join Type"),
	MEMBER(COMMAND, STRING, "Command"),
	MEMBER(STARTUP_COST, REAL, "Startup Cost"),
	MEMBER(TOTAL_COST, REAL, "Total Cost"),
	MEMBER(ROWS, REAL, "Plan Rows"),
	MEMBER(WIDTH, NUMBER, "Plan Width"),
	MEMBER(DISABLED, BOOLEAN, "Disabled"),
	MEMBER(BLOCKS, NUMBER, "Blocks Done", "Blocks", PLAN_BLOCKS_TOTAL, true),
	MEMBER(BLOCKS_TOTAL, NUMBER, "Blocks Total"),
	MEMBER(BLOCKS_EXACT, NUMBER, "Exact Heap Blocks", "Exact Heap Blocks"),
	MEMBER(BLOCKS_LOSSY, NUMBER, "Lossy Heap Blocks", "Lossy Heap Blocks"),
	MEMBER(WORKERS_PLANNED, NUMBER, "Workers Planned"),
	MEMBER(WORKERS_LAUNCHED, NUMBER, "Workers Launched", "Workers Launched",
	       PLAN_WORKERS_PLANNED),
	MEMBER(CHILD, NUMBER, "Current Child", "Child", PLAN_CHILDREN),
	MEMBER(CHILDREN, NUMBER, "Children"),
	MEMBER(HASH_TUPLES, NUMBER, "Hash Tuples", "Tuples"),
	MEMBER(HASH_BUCKETS, NUMBER, "Hash Buckets", "Buckets"),
	MEMBER(HASH_BATCH, NUMBER, "Current Hash Batch", "Batch", PLAN_HASH_BATCHES, true),
	MEMBER(HASH_BATCHES, NUMBER, "Hash Batches"),
	MEMBER(GROUPS, NUMBER, "Groups", "Groups"),
	MEMBER(AGG_BATCHES, NUMBER, "HashAgg Batches", "Batches"),
	MEMBER(SORT_METHOD, STRING, "Sort Method", "Sort Method"),
	MEMBER(SORT_TUPLES, NUMBER, "Sort Tuples", "Tuples"),
	MEMBER(SPACE, BYTES, "Sort Space Used", "Space Used"),
	MEMBER(SPACE_TYPE, STRING, "Sort Space Type", "Space Type"),
	MEMBER(PEAK, BYTES, "Peak Memory Usage", "Peak Memory Usage"),
	MEMBER(HITS, NUMBER, "Cache Hits", "Hits"),
	MEMBER(MISSES, NUMBER, "Cache Misses", "Misses"),
#undef MEMBER
};

static void string_print(struct output *out, const struct plan_item *value)
{
	escape_terminal(out, value->text, value->len, false);
}

/* --- text */

/* Append a name as SQL has it: in quotation marks, unless it is plain. */
static void name_print(struct output *out, const struct plan_item *name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
	size_t n = 0;

	while (n < name->len && name->text[n] && strchr(plain, name->text[n]))
		n++;
	if (n == name->len && n && (*name->text < '0' || *name->text > '9')) {
		string_print(out, name);
		return;
	}
	output_char(out, '"');
	for (size_t at = 0; at < name->len; at += n) {
		const char *quote = memchr(name->text + at, '"', name->len - at);

		n = quote ? (size_t)(quote - name->text) + 1 - at : name->len - at;
		escape_terminal(out, name->text + at, n, false);
		output_string(out, quote ? "\"" : "");
	}
	output_char(out, '"');
}

/* Append what is scanned by the node, as EXPLAIN VERBOSE does. */
static void node_object(struct output *out, const struct plan_element *node)
{
	const struct plan_item *alias = &node->value[PLAN_ALIAS];
	const struct plan_item *name = plan_has(node, PLAN_RELATION) ? &node->value[PLAN_RELATION] :
				       plan_has(node, PLAN_CTE) ? &node->value[PLAN_CTE] : NULL;

	if (plan_has(node, PLAN_INDEX)) {
		output_string(out, name ? " using " : " on ");
		name_print(out, &node->value[PLAN_INDEX]);
	}
	if (name || alias->text)
		output_string(out, " on ");
	if (name && plan_has(node, PLAN_SCHEMA)) {
		name_print(out, &node->value[PLAN_SCHEMA]);
		output_char(out, '.');
	}
	if (name)
		name_print(out, name);
	if (!alias->text ||
	    (name && name->len == alias->len && !memcmp(name->text, alias->text, name->len)))
		return;
	if (name)
		output_char(out, ' ');
	name_print(out, alias);
}

static void real_print(struct output *out, double real, int decimals)
{
	output_printf(out, "%.*f", decimals, isfinite(real) ? real : 0);
}

/* Append a bar for @done of @total, and the percentage. */
static void bar_print(struct output *out, uint64_t done, uint64_t total)
{
	double part = done < total ? (double)done / (double)total : 1;
	int columns = (int)(part * BAR);

	output_string(out, "  [");
	for (int i = 0; i < BAR; i++)
		output_char(out, i < columns ? '#' : '.');
	output_printf(out, "] %.0f %%", 100 * part);
}

/* Append the value of a member in @node, but for strings in JSON. */
static void value_print(struct output *out, const struct plan_element *node,
			const struct member *member)
{
	uint64_t number = plan_number(node, member->key);

	switch (member->kind) {
	case STRING:
		string_print(out, &node->value[member->key]);
		break;
	case NUMBER:
		output_u64(out, number);
		break;
	case BYTES:
		output_u64(out, number / 1024 + !!(number % 1024));
		break;
	case REAL:
		real_print(out, plan_real(node, member->key), member->key == PLAN_ROWS ? 0 : 2);
		break;
	case BOOLEAN:
		output_string(out, number ? "true" : "false");
		break;
	}
}

/* Append the lines of what the node has done. */
static void progress_print(struct output *out, const struct plan_element *node, size_t indent)
{
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		const struct member *member = &members[i];
		uint64_t total = plan_number(node, member->total);

		if (!member->label || !plan_has(node, member->key))
			continue;
		output_spaces(out, indent);
		output_string(out, member->label);
		output_string(out, ": ");
		value_print(out, node, member);
		output_string(out, member->kind == BYTES ? "kB" : "");
		if (member->total && plan_has(node, member->total)) {
			output_string(out, " of ");
			output_u64(out, total);
		}
		if (member->bar && total > 1)
			bar_print(out, plan_number(node, member->key), total);
		output_char(out, '\n');
	}
}

/* How far nodes of each depth are moved to the right, as they are below that of a subplan. */
struct indents {
	size_t statement;
	size_t more[PLAN_DEPTH + 1];
};

static void node_print(struct output *out, const struct plan_element *node,
		       struct indents *indents)
{
	uint64_t number = plan_number(node, PLAN_NODE);
	size_t depth = number < PLAN_DEPTH ? (size_t)number : PLAN_DEPTH, indent;

	indents->more[depth] = depth ? indents->more[depth - 1] : 0;
	indent = indents->statement + 2 + indents->more[depth] + (depth ? 6 * depth - 4 : 0);
	if (plan_has(node, PLAN_SUBPLAN)) {
		output_spaces(out, indent);
		string_print(out, &node->value[PLAN_SUBPLAN]);
		output_char(out, '\n');
		indents->more[depth] += 2;
		indent += 2;
	}
	output_spaces(out, indent);
	output_string(out, depth ? "->  " : "");
	string_print(out, &node->value[PLAN_TITLE]);
	node_object(out, node);
	output_string(out, "  (cost=");
	real_print(out, plan_real(node, PLAN_STARTUP_COST), 2);
	output_string(out, "..");
	real_print(out, plan_real(node, PLAN_TOTAL_COST), 2);
	output_string(out, " rows=");
	real_print(out, plan_real(node, PLAN_ROWS), 0);
	output_string(out, " width=");
	output_u64(out, plan_number(node, PLAN_WIDTH));
	output_string(out, ")\n");
	progress_print(out, node, indent + (depth ? 6 : 2));
}

static void statement_print(struct output *out, const struct plan_element *statement, size_t indent)
{
	output_spaces(out, indent);
	if (plan_has(statement, PLAN_CURSOR)) {
		output_string(out, statement->value[PLAN_CURSOR].len ? "open cursor " :
							       "open portal");
		if (statement->value[PLAN_CURSOR].len)
			name_print(out, &statement->value[PLAN_CURSOR]);
		output_string(out, ": ");
	}
	string_print(out, &statement->value[PLAN_TEXT]);
	if (plan_number(statement, PLAN_PROCESSED)) {
		output_string(out, "  (rows so far: ");
		output_u64(out, plan_number(statement, PLAN_PROCESSED));
		output_char(out, ')');
	}
	output_char(out, '\n');
	if (plan_has(statement, PLAN_CUT)) {
		output_spaces(out, indent + 2);
		output_string(out, "(this plan has further nodes)\n");
	}
}

void plan_text(struct output *out, const char *plan, size_t len)
{
	struct plan_reader reader = { plan, len, 0 };
	struct indents indents = { .statement = 0 };
	struct plan_element element;
	uint64_t level;

	while (plan_next(&reader, &element)) {
		if (element.is_node) {
			node_print(out, &element, &indents);
			continue;
		}
		if (plan_has(&element, PLAN_MISSED)) {
			output_u64(out, plan_number(&element, PLAN_MISSED));
			output_string(out, " statements could not be read, or ended meanwhile\n");
			continue;
		}
		level = plan_number(&element, PLAN_STATEMENT);
		indents.statement = 2 * (level < PLAN_DEPTH ? (size_t)level : PLAN_DEPTH);
		statement_print(out, &element, indents.statement);
	}
}

/* --- JSON */

static void member_print(struct output *out, const struct plan_element *node,
			 const struct member *member)
{
	const struct plan_item *value = &node->value[member->key];

	output_string(out, member->name);
	output_string(out, "\":");
	if (member->kind != STRING) {
		value_print(out, node, member);
		return;
	}
	output_char(out, '"');
	escape_json(out, value->text, value->len, false);
	output_char(out, '"');
}

/* The nodes that are open, and whether each has one below it. */
struct nesting {
	size_t depth;
	bool below[PLAN_DEPTH + 1];
};

/* Close nodes until @depth are open. */
static void nesting_close(struct output *out, struct nesting *nesting, size_t depth)
{
	while (nesting->depth > depth)
		output_string(out, nesting->below[nesting->depth--] ? "]}" : "}");
}

static void node_json(struct output *out, const struct plan_element *node, struct nesting *nesting)
{
	uint64_t depth = plan_number(node, PLAN_NODE);
	bool first = true;

	/* A root, and below it what a malformed plan may have as further ones. */
	depth = depth || !nesting->depth ? depth : 1;
	nesting_close(out, nesting, depth < nesting->depth ? depth : nesting->depth);
	if (nesting->depth == PLAN_DEPTH)
		nesting_close(out, nesting, PLAN_DEPTH - 1);
	if (!nesting->depth)
		output_string(out, ",\"Plan\":{");
	else
		output_string(out, nesting->below[nesting->depth] ? ",{" : ",\"Plans\":[{");
	nesting->below[nesting->depth] = true;
	nesting->below[++nesting->depth] = false;
	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		if (!plan_has(node, members[i].key))
			continue;
		output_string(out, first ? "\"" : ",\"");
		first = false;
		member_print(out, node, &members[i]);
	}
}

static void statement_json(struct output *out, const struct plan_element *statement)
{
	if (plan_has(statement, PLAN_MISSED)) {
		output_string(out, "{\"Not Read\":");
		output_u64(out, plan_number(statement, PLAN_MISSED));
		return;
	}
	output_string(out, "{\"Query Text\":\"");
	escape_json(out, statement->value[PLAN_TEXT].text, statement->value[PLAN_TEXT].len, false);
	output_string(out, "\",\"Level\":");
	output_u64(out, plan_number(statement, PLAN_STATEMENT));
	if (plan_has(statement, PLAN_CURSOR)) {
		output_string(out, ",\"Cursor\":\"");
		escape_json(out, statement->value[PLAN_CURSOR].text,
			    statement->value[PLAN_CURSOR].len, false);
		output_char(out, '"');
	}
	output_string(out, ",\"Rows Processed\":");
	output_u64(out, plan_number(statement, PLAN_PROCESSED));
	if (plan_has(statement, PLAN_CUT))
		output_string(out, ",\"Truncated\":true");
}

void plan_json(struct output *out, const char *plan, size_t len)
{
	struct plan_reader reader = { plan, len, 0 };
	struct nesting nesting = { 0 };
	struct plan_element element;
	bool open = false;

	output_char(out, '[');
	while (plan_next(&reader, &element)) {
		if (element.is_node) {
			if (open)
				node_json(out, &element, &nesting);
			continue;
		}
		nesting_close(out, &nesting, 0);
		output_string(out, open ? "}," : "");
		open = true;
		statement_json(out, &element);
	}
	nesting_close(out, &nesting, 0);
	output_string(out, open ? "}]" : "]");
}
