// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A plan is read from two trees in step, each node of which verifies the other: that of PlanStates
 * (nodes/execnodes.h), which the executor made, and of Plans (nodes/plannodes.h), which the planner
 * made. Names are of the relations that the executor has open.
 */
#include "db/postgres/plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "db/postgres/catalog.h"
#include "db/postgres/executor.h"
#include "host/clock.h"

#define NODES_MAX	512		/* of a statement */
#define SUBPLANS_MAX	256		/* the same, and of the elements of other lists */
#define RANGES_MAX	4096		/* elements of its range table */
#define NAME_BYTES	64		/* NAMEDATALEN */
#define SCHEMAS_MAX	16
#define CTE_SUBLINK	7		/* enum SubLinkType, 10 to 19; nodes/primnodes.h */
#define HEAP_AM		2		/* HEAP_TABLE_AM_OID */

struct node {
	uint64_t state, plan;
	enum plan_value tag;		/* of the Plan */
	unsigned int depth;
	const char *relationship;
	uint64_t subplan;		/* the SubPlan whose root it is; or 0 */
	uint64_t relation;		/* RelationData that is scanned; or 0 */
	uint64_t range;			/* RangeTblEntry .. */
	uint32_t range_index;		/* .. and its number; 0: none */
};

/* A statement that is read. */
struct reading {
	const struct postgres_plan_query *query;
	struct executor_memory m;
	struct plan_writer *out;
	const struct executor *executor;
	uint64_t range_table[RANGES_MAX];	/* RangeTblEntries */
	uint32_t nranges;
	struct range {
		uint64_t relation;	/* RelationData, or 0 */
		uint32_t next;		/* number for the next one with the same name */
		bool used;		/* by the plan */
		char name[NAME_BYTES];
	} range[RANGES_MAX];		/* of each */
	char text[2][PLAN_TEXT_BYTES];	/* as it was read before, and after */
	struct node node[NODES_MAX];
	unsigned int n;
	bool cut, bad;			/* there are more nodes; what was read is not a plan */
	uint32_t printed[SUBPLANS_MAX / 32];	/* SubPlans, by their plan_id */
	struct schema {
		uint32_t oid;
		char name[LOCK_RELATION];
	} schema[SCHEMAS_MAX];
	unsigned int nschemas;
};

static uint64_t pointer(const struct reading *r, uint64_t address, enum plan_value member)
{
	return executor_pointer(&r->m, address, member);
}

static uint32_t number(const struct reading *r, uint64_t address, enum plan_value member)
{
	return executor_number(&r->m, address, member);
}

static double real(const struct reading *r, uint64_t address, enum plan_value member)
{
	return executor_real(&r->m, address, member);
}

/* Return a bool or char; 0 as above. */
static unsigned char byte(const struct reading *r, uint64_t address, enum plan_value member)
{
	uint16_t at = r->m.value[member];
	unsigned char value;

	return at != PLAN_MISSING && address &&
	       executor_get(&r->m, address + at, &value, sizeof(value)) ? value : 0;
}

/* Read the name at @address, at most NAME_BYTES with the NUL, to @name; else "". */
static bool name_read(const struct reading *r, uint64_t address, char name[NAME_BYTES])
{
	ssize_t n = address < 4096 ? 0 : process_memory_read(r->m.memory, address, name,
							     NAME_BYTES);

	if (n > 0 && memchr(name, '\0', (size_t)n))
		return *name;
	*name = '\0';
	return false;
}

/* --- collecting the nodes */

static void tree_collect(struct reading *r, uint64_t state, unsigned int depth,
			 const char *relationship, uint64_t subplan);

/* Collect those of an array of PlanStates. */
static void array_collect(struct reading *r, uint64_t array, uint32_t n, unsigned int depth,
			  const char *relationship)
{
	uint64_t state;

	for (uint32_t i = 0; array && i < n && !r->cut && !r->bad; i++) {
		if (!executor_get(&r->m, array + 8ull * i, &state, sizeof(state)) || !state) {
			r->bad = true;
			return;
		}
		tree_collect(r, state, depth, relationship, 0);
	}
}

/* Collect the SubPlanStates in @list, each once. */
static void subplans_collect(struct reading *r, uint64_t list, unsigned int depth,
			     const char *relationship)
{
	uint64_t states[SUBPLANS_MAX];
	uint32_t n = executor_list(&r->m, list, states, SUBPLANS_MAX);

	r->cut |= n > SUBPLANS_MAX;
	for (uint32_t i = 0; i < n && !r->cut && !r->bad; i++) {
		uint64_t subplan = pointer(r, states[i], AT_SUBPLANSTATE_SUBPLAN);
		uint32_t id = number(r, subplan, AT_SUBPLAN_PLAN_ID);

		/* Before 14, a list may also have the alternatives of which one is chosen. */
		if (!executor_is(&r->m, subplan, TAG_SUBPLAN))
			continue;
		if (id >= SUBPLANS_MAX) {
			r->cut = true;
			return;
		}
		if (r->printed[id / 32] >> id % 32 & 1)
			continue;
		r->printed[id / 32] |= 1u << id % 32;
		tree_collect(r, pointer(r, states[i], AT_SUBPLANSTATE_PLANSTATE), depth,
			     relationship, subplan);
	}
}

/* Collect those of the list of a custom scan. */
static void custom_collect(struct reading *r, uint64_t list, unsigned int depth)
{
	uint64_t states[SUBPLANS_MAX];
	uint32_t n = executor_list(&r->m, list, states, SUBPLANS_MAX);

	r->cut |= n > SUBPLANS_MAX;
	for (uint32_t i = 0; i < n && !r->cut && !r->bad; i++)
		tree_collect(r, states[i], depth, n == 1 ? "child" : "children", 0);
}

/* Collect what kinds of nodes have below them in members of their own. */
static void members_collect(struct reading *r, const struct node *node, unsigned int depth)
{
	static const struct {
		enum plan_value tag, states, n;
	} arrays[] = {
		{ TAG_APPEND, AT_APPENDSTATE_APPENDPLANS, AT_APPENDSTATE_AS_NPLANS },
		{ TAG_MERGEAPPEND, AT_MERGEAPPENDSTATE_MERGEPLANS, AT_MERGEAPPENDSTATE_MS_NPLANS },
		{ TAG_BITMAPAND, AT_BITMAPANDSTATE_BITMAPPLANS, AT_BITMAPANDSTATE_NPLANS },
		{ TAG_BITMAPOR, AT_BITMAPORSTATE_BITMAPPLANS, AT_BITMAPORSTATE_NPLANS },
		/* Before 14. */
		{ TAG_MODIFYTABLE, AT_MODIFYTABLESTATE_MT_PLANS, AT_MODIFYTABLESTATE_MT_NPLANS },
	};
	uint64_t state = node->state;

	for (size_t i = 0; i < ARRAY_SIZE(arrays); i++)
		if (node->tag == arrays[i].tag)
			array_collect(r, pointer(r, state, arrays[i].states),
				      number(r, state, arrays[i].n), depth, "Member");
	if (node->tag == TAG_SUBQUERYSCAN)
		tree_collect(r, pointer(r, state, AT_SUBQUERYSCANSTATE_SUBPLAN), depth,
			     "Subquery", 0);
	if (node->tag == TAG_CUSTOMSCAN)
		custom_collect(r, pointer(r, state, AT_CUSTOMSCANSTATE_CUSTOM_PS), depth);
}

/* Return the number of the scanned relation in the range table; 0: none. */
static uint32_t range_index(const struct reading *r, uint64_t plan, enum plan_value tag)
{
	switch (tag) {
	case TAG_MODIFYTABLE:
		return number(r, plan, AT_MODIFYTABLE_NOMINALRELATION);
	case TAG_SEQSCAN: case TAG_SAMPLESCAN: case TAG_INDEXSCAN: case TAG_INDEXONLYSCAN:
	case TAG_BITMAPHEAPSCAN: case TAG_TIDSCAN: case TAG_TIDRANGESCAN: case TAG_SUBQUERYSCAN:
	case TAG_FUNCTIONSCAN: case TAG_TABLEFUNCSCAN: case TAG_VALUESSCAN: case TAG_CTESCAN:
	case TAG_NAMEDTUPLESTORESCAN: case TAG_WORKTABLESCAN: case TAG_FOREIGNSCAN:
	case TAG_CUSTOMSCAN:
		return number(r, plan, AT_SCAN_SCANRELID);
	default:
		return 0;
	}
}

/* Return the RangeTblEntry with this number; 0: there is none. */
static uint64_t range_entry(const struct reading *r, uint32_t index)
{
	return index - 1 < r->nranges ? r->range_table[index - 1] : 0;
}

/* Note that the plan uses the element of the range table. */
static void range_use(struct reading *r, uint32_t index)
{
	if (index - 1 < r->nranges)
		r->range[index - 1].used = true;
}

/* The same of those in a Bitmapset. */
static void ranges_use(struct reading *r, uint64_t set)
{
	uint32_t words = set ? number(r, set, AT_BITMAPSET_NWORDS) : 0;
	uint32_t at = r->m.value[AT_BITMAPSET_WORDS], bytes = r->query->release < 12 ? 4 : 8;
	uint64_t word;

	for (uint32_t i = 0; i < words && 8 * bytes * i <= r->nranges; i++) {
		word = 0;
		if (!executor_get(&r->m, set + at + bytes * i, &word, bytes))
			return;
		for (uint32_t j = 0; word; j++, word >>= 1)
			if (word & 1)
				range_use(r, 8 * bytes * i + j);
	}
}

/* Find the RangeTblEntry and the relation that the node is about, which verify each other. */
static void node_range(struct reading *r, struct node *node)
{
	uint64_t relation, state = node->state;

	node->range_index = range_index(r, node->plan, node->tag);
	if (!node->range_index)
		return;
	node->range = range_entry(r, node->range_index);
	if (!executor_is(&r->m, node->range, TAG_RANGETBLENTRY)) {
		r->bad = true;
		return;
	}
	range_use(r, node->range_index);
	if (number(r, node->range, AT_RANGETBLENTRY_RTEKIND))
		return;
	relation = pointer(r, state, AT_SCANSTATE_SS_CURRENTRELATION);
	if (node->tag == TAG_MODIFYTABLE) {
		/* That of a partitioned table, or of the first one. */
		relation = pointer(r, state, AT_MODIFYTABLESTATE_ROOTRESULTRELINFO);
		if (!relation)
			relation = pointer(r, state, AT_MODIFYTABLESTATE_RESULTRELINFO);
		relation = pointer(r, relation, AT_RESULTRELINFO_RI_RELATIONDESC);
	}
	if (relation && number(r, relation, AT_RELATIONDATA_RD_ID) ==
			number(r, node->range, AT_RANGETBLENTRY_RELID)) {
		node->relation = relation;
		r->range[node->range_index - 1].relation = relation;
	} else if (relation && node->tag != TAG_MODIFYTABLE) {
		r->bad = true;
	}
}

/* Note what else the node uses, which has a name that no other one gets. */
static void node_ranges(struct reading *r, const struct node *node)
{
	static const struct {
		enum plan_value tag, set;
	} sets[] = {
		{ TAG_APPEND, AT_APPEND_APPRELIDS },
		{ TAG_MERGEAPPEND, AT_MERGEAPPEND_APPRELIDS },
		{ TAG_RESULT, AT_RESULT_RELIDS },
		{ TAG_FOREIGNSCAN, AT_FOREIGNSCAN_FS_BASE_RELIDS },
		{ TAG_CUSTOMSCAN, AT_CUSTOMSCAN_CUSTOM_RELIDS },
	};
	uint64_t list;
	uint32_t first;

	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		if (node->tag == sets[i].tag)
			ranges_use(r, pointer(r, node->plan, sets[i].set));
	if (node->tag != TAG_MODIFYTABLE)
		return;
	range_use(r, number(r, node->plan, AT_MODIFYTABLE_EXCLRELRTI));
	/* From 18 on, what is returned may name the first one. */
	list = pointer(r, node->plan, AT_MODIFYTABLE_RESULTRELATIONS);
	if (r->query->release >= 18 && pointer(r, node->plan, AT_PLAN_TARGETLIST) &&
	    executor_get(&r->m, pointer(r, list, AT_LIST_ELEMENTS), &first, sizeof(first)))
		range_use(r, first);
}

/* Return whether the PlanState at @member of the node's state is that of the Plan at @planned. */
static bool is_state_of(const struct reading *r, const struct node *node, enum plan_value member,
			enum plan_value planned)
{
	uint64_t state = pointer(r, node->state, member);

	return (state ? pointer(r, state, AT_PLANSTATE_PLAN) : 0) ==
	       pointer(r, node->plan, planned);
}

/* Return whether what is below the node has been made: the executor does that at first. */
static bool is_complete(const struct reading *r, const struct node *node)
{
	/* These may do without. */
	if (node->tag == TAG_FOREIGNSCAN || node->tag == TAG_CUSTOMSCAN)
		return true;
	return is_state_of(r, node, AT_PLANSTATE_LEFTTREE, AT_PLAN_LEFTTREE) &&
	       is_state_of(r, node, AT_PLANSTATE_RIGHTTREE, AT_PLAN_RIGHTTREE) &&
	       executor_list(&r->m, pointer(r, node->state, AT_PLANSTATE_INITPLAN), NULL, 0) ==
	       executor_list(&r->m, pointer(r, node->plan, AT_PLAN_INITPLAN), NULL, 0);
}

static bool finite_costs(const struct reading *r, uint64_t plan)
{
	double startup = real(r, plan, AT_PLAN_STARTUP_COST);
	double total = real(r, plan, AT_PLAN_TOTAL_COST);
	double rows = real(r, plan, AT_PLAN_PLAN_ROWS);

	return isfinite(startup) && isfinite(total) && isfinite(rows) && rows >= 0;
}

/* Collect the PlanState at @state and what is below it. */
static void tree_collect(struct reading *r, uint64_t state, unsigned int depth,
			 const char *relationship, uint64_t subplan)
{
	struct node *node = &r->node[r->n];

	if (!state || r->bad || r->cut)
		return;
	if (r->n == NODES_MAX || depth == PLAN_DEPTH) {
		r->cut = true;
		return;
	}
	*node = (struct node){
		.state = state, .plan = pointer(r, state, AT_PLANSTATE_PLAN), .depth = depth,
		.relationship = relationship, .subplan = subplan,
	};
	node->tag = executor_plan(&r->m, node->plan);
	if (pointer(r, state, AT_PLANSTATE_STATE) != r->executor->id.estate ||
	    node->tag == PLAN_VALUES || !executor_is_state(&r->m, state) ||
	    !finite_costs(r, node->plan) || !is_complete(r, node)) {
		r->bad = true;
		return;
	}
	r->n++;
	node_range(r, node);
	node_ranges(r, node);
	subplans_collect(r, pointer(r, state, AT_PLANSTATE_INITPLAN), depth + 1, "InitPlan");
	tree_collect(r, pointer(r, state, AT_PLANSTATE_LEFTTREE), depth + 1, "Outer", 0);
	tree_collect(r, pointer(r, state, AT_PLANSTATE_RIGHTTREE), depth + 1, "Inner", 0);
	members_collect(r, node, depth + 1);
	subplans_collect(r, pointer(r, state, AT_PLANSTATE_SUBPLAN), depth + 1, "SubPlan");
}

/* --- names */

/* Read the name of the relation, of a RangeTblEntry without an alias. */
static bool relation_name(const struct reading *r, uint64_t relation, char name[NAME_BYTES])
{
	uint64_t row = pointer(r, relation, AT_RELATIONDATA_RD_REL);

	*name = '\0';
	return row && name_read(r, row + r->m.value[AT_FORMDATA_PG_CLASS_RELNAME], name);
}

/* Return the first one before element @n of the range table that is used and has @name, or NULL. */
static struct range *range_named(struct reading *r, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (r->range[i].used && !strcmp(r->range[i].name, name))
			return &r->range[i];
	return NULL;
}

/* Read the name by which the statement calls element @i of the range table. */
static void range_read(struct reading *r, uint32_t i)
{
	uint64_t entry = r->range_table[i], alias = pointer(r, entry, AT_RANGETBLENTRY_ALIAS);
	struct range *range = &r->range[i];

	if (!alias && relation_name(r, range->relation, range->name))
		return;
	alias = alias ? alias : pointer(r, entry, AT_RANGETBLENTRY_EREF);
	name_read(r, pointer(r, alias, AT_ALIAS_ALIASNAME), range->name);
}

/*
 * Name what the plan uses of the range table by its aliases, or relations. What has the name of one
 * before it gets a number, as in EXPLAIN.
 */
static void ranges_name(struct reading *r)
{
	for (uint32_t i = 0; i < r->nranges; i++) {
		char *name = r->range[i].name, suffix[16], base[NAME_BYTES];
		struct range *first;
		size_t room;

		if (!r->range[i].used)
			continue;
		range_read(r, i);
		memcpy(base, name, sizeof(base));
		first = *name ? range_named(r, i, name) : NULL;
		while (first && range_named(r, i, name)) {
			room = NAME_BYTES - 1 - (size_t)snprintf(suffix, sizeof(suffix), "_%u",
								 ++first->next);
			snprintf(name, NAME_BYTES, "%.*s%s", (int)strnlen(base, room), base,
				 suffix);
		}
	}
}

/* Return the name of schema @oid; "": unknown. */
static const char *schema_name(struct reading *r, uint32_t oid)
{
	struct schema *schema;

	for (unsigned int i = 0; i < r->nschemas; i++)
		if (r->schema[i].oid == oid)
			return r->schema[i].name;
	if (r->nschemas == SCHEMAS_MAX || !oid || !r->query->database)
		return "";
	schema = &r->schema[r->nschemas++];
	schema->oid = oid;
	postgres_catalog_name(r->query->pid, CATALOG_SCHEMAS, r->query->database, oid,
			      schema->name);
	return schema->name;
}

/* --- writing */

static void put(struct reading *r, enum plan_key key, const char *text)
{
	if (text && *text)
		plan_put_string(r->out, key, text, strlen(text));
}

/* What EXPLAIN calls the kinds, in JSON and, unless that depends on its members, in text. */
static const struct {
	const char *type, *title;
} kinds[TAG_LIMIT - TAG_RESULT + 1] = {
#define KIND(tag, ...)	[TAG_ ## tag - TAG_RESULT] = { __VA_ARGS__ }
	KIND(RESULT, "Result", "Result"), KIND(PROJECTSET, "ProjectSet", "ProjectSet"),
	KIND(MODIFYTABLE, "ModifyTable", "ModifyTable"), KIND(APPEND, "Append", "Append"),
	KIND(MERGEAPPEND, "Merge Append", "Merge Append"),
	KIND(RECURSIVEUNION, "Recursive Union", "Recursive Union"),
	KIND(BITMAPAND, "BitmapAnd", "BitmapAnd"), KIND(BITMAPOR, "BitmapOr", "BitmapOr"),
	KIND(NESTLOOP, "Nested Loop", "Nested Loop"), KIND(MERGEJOIN, "Merge Join", "Merge"),
	KIND(HASHJOIN, "Hash Join", "Hash"), KIND(SEQSCAN, "Seq Scan", "Seq Scan"),
	KIND(SAMPLESCAN, "Sample Scan", "Sample Scan"), KIND(GATHER, "Gather", "Gather"),
	KIND(GATHERMERGE, "Gather Merge", "Gather Merge"),
	KIND(INDEXSCAN, "Index Scan", "Index Scan"),
	KIND(INDEXONLYSCAN, "Index Only Scan", "Index Only Scan"),
	KIND(BITMAPINDEXSCAN, "Bitmap Index Scan", "Bitmap Index Scan"),
	KIND(BITMAPHEAPSCAN, "Bitmap Heap Scan", "Bitmap Heap Scan"),
	KIND(TIDSCAN, "Tid Scan", "Tid Scan"),
	KIND(TIDRANGESCAN, "Tid Range Scan", "Tid Range Scan"),
	KIND(SUBQUERYSCAN, "Subquery Scan", "Subquery Scan"),
	KIND(FUNCTIONSCAN, "Function Scan", "Function Scan"),
	KIND(TABLEFUNCSCAN, "Table Function Scan", "Table Function Scan"),
	KIND(VALUESSCAN, "Values Scan", "Values Scan"), KIND(CTESCAN, "CTE Scan", "CTE Scan"),
	KIND(NAMEDTUPLESTORESCAN, "Named Tuplestore Scan", "Named Tuplestore Scan"),
	KIND(WORKTABLESCAN, "WorkTable Scan", "WorkTable Scan"),
	KIND(FOREIGNSCAN, "Foreign Scan", "Foreign Scan"),
	KIND(CUSTOMSCAN, "Custom Scan", "Custom Scan"),
	KIND(MATERIAL, "Materialize", "Materialize"), KIND(MEMOIZE, "Memoize", "Memoize"),
	KIND(SORT, "Sort", "Sort"),
	KIND(INCREMENTALSORT, "Incremental Sort", "Incremental Sort"),
	KIND(GROUP, "Group", "Group"), KIND(AGG, "Aggregate", "Aggregate"),
	KIND(WINDOWAGG, "WindowAgg", "WindowAgg"), KIND(UNIQUE, "Unique", "Unique"),
	KIND(SETOP, "SetOp", "SetOp"), KIND(LOCKROWS, "LockRows", "LockRows"),
	KIND(LIMIT, "Limit", "Limit"), KIND(HASH, "Hash", "Hash"),
#undef KIND
};

/* enum CmdType, JoinType, AggStrategy and SetOpCmd; nodes/nodes.h. */
static const char *const operations[] = { "", "Select", "Update", "Insert", "Delete", "Merge" };
static const char *const joins[] = {
	"Inner", "Left", "Full", "Right", "Semi", "Anti", "Right Semi", "Right Anti",
};
static const char *const strategies[] = { "Plain", "Sorted", "Hashed", "Mixed" };
static const char *const aggregates[] = {
	"Aggregate", "GroupAggregate", "HashAggregate", "MixedAggregate",
};
static const char *const set_commands[] = { "Intersect", "Intersect All", "Except", "Except All" };

#define WORD(words, i)	((i) < ARRAY_SIZE(words) ? (words)[i] : "???")

#define AGG_COMBINE	0x01	/* AGGSPLITOP_* */
#define AGG_SKIP_FINAL	0x02

static const char *join_word(const struct reading *r, uint32_t type)
{
	/* In 16 and 17 there is no right semi-join. */
	if (type == 6 && r->query->release < 18)
		type++;
	return WORD(joins, type);
}

static const char *direction_word(const struct reading *r, const struct node *node)
{
	uint32_t direction = number(r, node->plan, node->tag == TAG_INDEXSCAN ?
				    AT_INDEXSCAN_INDEXORDERDIR :
				    AT_INDEXONLYSCAN_INDEXORDERDIR);

	return direction == UINT32_MAX ? "Backward" : direction == 1 ? "Forward" : "NoMovement";
}

/* Write the words that tell the variants of the node's kind apart, and its title to @title. */
static void node_words(struct reading *r, const struct node *node, char *title, size_t size)
{
	const char *word;
	uint32_t value;
	char name[NAME_BYTES];

	switch (node->tag) {
	case TAG_MODIFYTABLE:
		word = WORD(operations, number(r, node->plan, AT_MODIFYTABLE_OPERATION));
		put(r, PLAN_OPERATION, word);
		snprintf(title, size, "%s", word);
		break;
	case TAG_FOREIGNSCAN:
		word = WORD(operations, number(r, node->plan, AT_FOREIGNSCAN_OPERATION));
		put(r, PLAN_OPERATION, word);
		if (strcmp(word, "Select"))
			snprintf(title, size, "Foreign %s", word);
		break;
	case TAG_NESTLOOP: case TAG_MERGEJOIN: case TAG_HASHJOIN:
		word = join_word(r, number(r, node->plan, AT_JOIN_JOINTYPE));
		put(r, PLAN_JOIN, word);
		if (strcmp(word, "Inner"))
			snprintf(title + strlen(title), size - strlen(title), " %s Join", word);
		else if (node->tag != TAG_NESTLOOP)
			snprintf(title + strlen(title), size - strlen(title), " Join");
		break;
	case TAG_INDEXSCAN: case TAG_INDEXONLYSCAN:
		word = direction_word(r, node);
		put(r, PLAN_DIRECTION, word);
		if (!strcmp(word, "Backward"))
			snprintf(title + strlen(title), size - strlen(title), " Backward");
		break;
	case TAG_AGG:
		value = number(r, node->plan, AT_AGG_AGGSTRATEGY);
		put(r, PLAN_STRATEGY, WORD(strategies, value));
		word = WORD(aggregates, value);
		value = number(r, node->plan, AT_AGG_AGGSPLIT);
		put(r, PLAN_PARTIAL, value & AGG_SKIP_FINAL ? "Partial" :
				     value & AGG_COMBINE ? "Finalize" : "Simple");
		snprintf(title, size, "%s%s", value & AGG_SKIP_FINAL ? "Partial " :
			 value & AGG_COMBINE ? "Finalize " : "", word);
		break;
	case TAG_SETOP:
		value = number(r, node->plan, AT_SETOP_STRATEGY);
		put(r, PLAN_STRATEGY, value ? "Hashed" : "Sorted");
		word = WORD(set_commands, number(r, node->plan, AT_SETOP_CMD));
		put(r, PLAN_COMMAND, word);
		snprintf(title, size, "%sSetOp %s", value ? "Hash" : "", word);
		break;
	case TAG_CUSTOMSCAN:
		if (!name_read(r, pointer(r, pointer(r, node->plan, AT_CUSTOMSCAN_METHODS),
					  AT_CUSTOMSCANMETHODS_CUSTOMNAME), name))
			break;
		put(r, PLAN_PROVIDER, name);
		snprintf(title, size, "Custom Scan (%s)", name);
		break;
	default:
		break;
	}
}

/* Write the kind and title. */
static void node_kind(struct reading *r, const struct node *node)
{
	bool parallel = byte(r, node->plan, AT_PLAN_PARALLEL_AWARE);
	bool async = byte(r, node->plan, AT_PLAN_ASYNC_CAPABLE);
	char title[NAME_BYTES + 64], whole[NAME_BYTES + 96];

	put(r, PLAN_TYPE, kinds[node->tag - TAG_RESULT].type);
	snprintf(title, sizeof(title), "%s", kinds[node->tag - TAG_RESULT].title);
	node_words(r, node, title, sizeof(title));
	snprintf(whole, sizeof(whole), "%s%s%s", parallel ? "Parallel " : "",
		 async ? "Async " : "", title);
	put(r, PLAN_TITLE, whole);
	plan_put(r->out, PLAN_PARALLEL, parallel);
	if (r->m.value[AT_PLAN_ASYNC_CAPABLE] != PLAN_MISSING)
		plan_put(r->out, PLAN_ASYNC, async);
}

/* Write the name of the index. Return false: it is not the one of the plan. */
static bool node_index(struct reading *r, const struct node *node)
{
	static const struct {
		enum plan_value tag;
		enum plan_value relation, oid;
	} indexes[] = {
		{ TAG_INDEXSCAN, AT_INDEXSCANSTATE_ISS_RELATIONDESC, AT_INDEXSCAN_INDEXID },
		{ TAG_INDEXONLYSCAN, AT_INDEXONLYSCANSTATE_IOSS_RELATIONDESC,
		  AT_INDEXONLYSCAN_INDEXID },
		{ TAG_BITMAPINDEXSCAN, AT_BITMAPINDEXSCANSTATE_BISS_RELATIONDESC,
		  AT_BITMAPINDEXSCAN_INDEXID },
	};
	char name[NAME_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(indexes); i++) {
		uint64_t relation;

		if (node->tag != indexes[i].tag)
			continue;
		relation = pointer(r, node->state, indexes[i].relation);
		if (relation && number(r, relation, AT_RELATIONDATA_RD_ID) !=
				number(r, node->plan, indexes[i].oid))
			return false;
		if (relation && relation_name(r, relation, name))
			put(r, PLAN_INDEX, name);
	}
	return true;
}

/* Write what the node is about. */
static void node_object(struct reading *r, const struct node *node)
{
	const char *schema;
	char name[NAME_BYTES];
	uint64_t row;

	if (!node->range)
		return;
	if (relation_name(r, node->relation, name)) {
		row = pointer(r, node->relation, AT_RELATIONDATA_RD_REL);
		schema = schema_name(r, number(r, row, AT_FORMDATA_PG_CLASS_RELNAMESPACE));
		if (byte(r, row, AT_FORMDATA_PG_CLASS_RELPERSISTENCE) == 't')
			schema = "pg_temp";
		put(r, PLAN_SCHEMA, schema);
		put(r, PLAN_RELATION, name);
	} else if (node->tag == TAG_CTESCAN || node->tag == TAG_WORKTABLESCAN) {
		if (name_read(r, pointer(r, node->range, AT_RANGETBLENTRY_CTENAME), name))
			put(r, PLAN_CTE, name);
	}
	put(r, PLAN_ALIAS, r->range[node->range_index - 1].name);
}

/* Write how far a scan of a heap is. */
static void progress_scan(struct reading *r, const struct node *node)
{
	uint64_t scan = pointer(r, node->state, AT_SCANSTATE_SS_CURRENTSCANDESC), parallel;
	uint32_t am, total, block, start;

	if (!scan || !node->relation ||
	    pointer(r, scan, AT_TABLESCANDESCDATA_RS_RD) != node->relation)
		return;
	/* Before 12, a table has no access method. */
	am = number(r, pointer(r, node->relation, AT_RELATIONDATA_RD_REL),
		    AT_FORMDATA_PG_CLASS_RELAM);
	if (am != (r->query->release < 12 ? 0 : HEAP_AM))
		return;
	parallel = pointer(r, scan, AT_TABLESCANDESCDATA_RS_PARALLEL);
	total = parallel ? number(r, parallel, AT_PARALLELBLOCKTABLESCANDESCDATA_PHS_NBLOCKS) :
			   number(r, scan, AT_HEAPSCANDESCDATA_RS_NBLOCKS);
	if (parallel) {
		uint64_t taken = pointer(r, parallel,
					 AT_PARALLELBLOCKTABLESCANDESCDATA_PHS_NALLOCATED);

		if (r->m.value[AT_PARALLELBLOCKTABLESCANDESCDATA_PHS_NALLOCATED] == PLAN_MISSING)
			return;
		block = taken < total ? (uint32_t)taken : total;
	} else {
		/* The server forgets where a scan was when it ends. */
		if (!byte(r, scan, AT_HEAPSCANDESCDATA_RS_INITED))
			return;
		block = number(r, scan, AT_HEAPSCANDESCDATA_RS_CBLOCK);
		start = number(r, scan, AT_HEAPSCANDESCDATA_RS_STARTBLOCK);
		if (block >= total || start >= total)
			return;
		block = (block >= start ? block - start : block + total - start) + 1;
	}
	plan_put(r->out, PLAN_BLOCKS, block);
	plan_put(r->out, PLAN_BLOCKS_TOTAL, total);
}

static void progress_number(struct reading *r, enum plan_key key, uint64_t address,
			    enum plan_value member, size_t size)
{
	uint16_t at = r->m.value[member];
	uint64_t value = 0;

	if (at != PLAN_MISSING && address && executor_get(&r->m, address + at, &value, size))
		plan_put(r->out, key, value);
}

static void progress_hash(struct reading *r, const struct node *node)
{
	uint64_t table = pointer(r, node->state, AT_HASHSTATE_HASHTABLE);
	uint32_t buckets = number(r, table, AT_HASHJOINTABLEDATA_NBUCKETS);
	uint32_t batches = number(r, table, AT_HASHJOINTABLEDATA_NBATCH);
	double tuples = real(r, table, AT_HASHJOINTABLEDATA_TOTALTUPLES);

	/* It may have been freed: both are powers of two. */
	if (!buckets || buckets & (buckets - 1) || !batches || batches & (batches - 1) ||
	    number(r, table, AT_HASHJOINTABLEDATA_CURBATCH) >= batches ||
	    !(tuples >= 0 && tuples < 1e18))
		return;
	plan_put(r->out, PLAN_HASH_TUPLES, (uint64_t)tuples);
	progress_number(r, PLAN_HASH_BUCKETS, table, AT_HASHJOINTABLEDATA_NBUCKETS, 4);
	plan_put(r->out, PLAN_HASH_BATCH, number(r, table, AT_HASHJOINTABLEDATA_CURBATCH) + 1);
	progress_number(r, PLAN_HASH_BATCHES, table, AT_HASHJOINTABLEDATA_NBATCH, 4);
	/* Several processes share a table without it. */
	if (pointer(r, table, AT_HASHJOINTABLEDATA_SPACEPEAK))
		progress_number(r, PLAN_PEAK, table, AT_HASHJOINTABLEDATA_SPACEPEAK, 8);
}

static void progress_agg(struct reading *r, const struct node *node)
{
	if (number(r, node->plan, AT_AGG_AGGSTRATEGY) < 2)
		return;
	progress_number(r, PLAN_GROUPS, node->state, AT_AGGSTATE_HASH_NGROUPS_CURRENT, 8);
	progress_number(r, PLAN_AGG_BATCHES, node->state, AT_AGGSTATE_HASH_BATCHES_USED, 4);
	progress_number(r, PLAN_PEAK, node->state, AT_AGGSTATE_HASH_MEM_PEAK, 8);
}

/*
 * Write how far a sort is, in EXPLAIN's words where it has ended; utils/sort/tuplesort.c. There is
 * none before its first row.
 */
static void progress_sort(struct reading *r, uint64_t sort)
{
	static const char *const methods[] = {	/* enum TupSortStatus */
		"still in progress", "still in progress", "still in progress", "quicksort",
		"external sort", "external merge",
	};
	uint32_t status = number(r, sort, AT_TUPLESORTSTATE_STATUS);
	uint64_t allowed = pointer(r, sort, AT_TUPLESORTSTATE_ALLOWEDMEM);
	uint64_t used = allowed - pointer(r, sort, AT_TUPLESORTSTATE_AVAILMEM);
	uint64_t tapes = pointer(r, sort, AT_TUPLESORTSTATE_TAPESET);

	if (!sort || status >= ARRAY_SIZE(methods) || used > 2 * allowed)
		return;
	put(r, PLAN_SORT_METHOD, status == 3 && byte(r, sort, AT_TUPLESORTSTATE_BOUNDUSED) ?
				 "top-N heapsort" : methods[status]);
	progress_number(r, PLAN_SORT_TUPLES, sort, AT_TUPLESORTSTATE_MEMTUPCOUNT, 4);
	put(r, PLAN_SPACE_TYPE, tapes ? "Disk" : "Memory");
	if (tapes)
		plan_put(r->out, PLAN_SPACE, POSTGRES_PAGE *
			 pointer(r, tapes, AT_LOGICALTAPESET_NBLOCKSWRITTEN));
	else
		plan_put(r->out, PLAN_SPACE, used);
}

static void progress_children(struct reading *r, const struct node *node)
{
	uint32_t n = number(r, node->state, AT_APPENDSTATE_AS_NPLANS);
	uint32_t which = number(r, node->state, AT_APPENDSTATE_AS_WHICHPLAN);

	if (which >= n)
		return;
	plan_put(r->out, PLAN_CHILD, which + 1);
	plan_put(r->out, PLAN_CHILDREN, n);
}

static void node_progress(struct reading *r, const struct node *node)
{
	uint64_t state = node->state;

	switch (node->tag) {
	case TAG_SEQSCAN: case TAG_SAMPLESCAN:
		progress_scan(r, node);
		break;
	case TAG_BITMAPHEAPSCAN:
		progress_number(r, PLAN_BLOCKS_EXACT, state, AT_BITMAPHEAPSCANSTATE_EXACT_PAGES, 8);
		progress_number(r, PLAN_BLOCKS_LOSSY, state, AT_BITMAPHEAPSCANSTATE_LOSSY_PAGES, 8);
		break;
	case TAG_GATHER:
		progress_number(r, PLAN_WORKERS_PLANNED, node->plan, AT_GATHER_NUM_WORKERS, 4);
		progress_number(r, PLAN_WORKERS_LAUNCHED, state,
				AT_GATHERSTATE_NWORKERS_LAUNCHED, 4);
		break;
	case TAG_GATHERMERGE:
		progress_number(r, PLAN_WORKERS_PLANNED, node->plan, AT_GATHERMERGE_NUM_WORKERS, 4);
		progress_number(r, PLAN_WORKERS_LAUNCHED, state,
				AT_GATHERMERGESTATE_NWORKERS_LAUNCHED, 4);
		break;
	case TAG_SORT:
		progress_sort(r, pointer(r, state, AT_SORTSTATE_TUPLESORTSTATE));
		break;
	case TAG_HASH:
		progress_hash(r, node);
		break;
	case TAG_AGG:
		progress_agg(r, node);
		break;
	case TAG_APPEND:
		progress_children(r, node);
		break;
	case TAG_MEMOIZE:
		progress_number(r, PLAN_HITS, state, AT_MEMOIZESTATE_CACHE_HITS, 8);
		progress_number(r, PLAN_MISSES, state, AT_MEMOIZESTATE_CACHE_MISSES, 8);
		break;
	default:
		break;
	}
}

/* Return whether the planner was to avoid the node, and not only one below it; 18. */
static bool node_disabled(const struct reading *r, const struct node *node)
{
	uint32_t count = number(r, node->plan, AT_PLAN_DISABLED_NODES);

	/* Some that were below these may be pruned. */
	if (node->tag == TAG_APPEND || node->tag == TAG_MERGEAPPEND)
		return false;
	for (const struct node *below = node + 1;
	     below < r->node + r->n && below->depth > node->depth; below++)
		if (below->depth == node->depth + 1 && !below->subplan)
			count -= number(r, below->plan, AT_PLAN_DISABLED_NODES);
	return (int32_t)count > 0;
}

/* Write what EXPLAIN calls the subplan, before 19 all of its name. */
static void node_subplan(struct reading *r, const struct node *node)
{
	bool named = r->query->release >= 19;
	bool cte = number(r, node->subplan, AT_SUBPLAN_SUBLINKTYPE) == CTE_SUBLINK;
	char name[NAME_BYTES], whole[NAME_BYTES + 16];

	if (!name_read(r, pointer(r, node->subplan, AT_SUBPLAN_PLAN_NAME), name))
		return;
	snprintf(whole, sizeof(whole), "%s%s%s", named ? cte ? "CTE" : node->relationship : "",
		 named ? " " : "", name);
	put(r, PLAN_SUBPLAN, whole);
}

static void node_write(struct reading *r, const struct node *node)
{
	uint64_t plan = node->plan;

	plan_put(r->out, PLAN_NODE, node->depth);
	put(r, PLAN_RELATIONSHIP, node->relationship);
	if (node->subplan)
		node_subplan(r, node);
	node_kind(r, node);
	r->bad |= !node_index(r, node);
	node_object(r, node);
	plan_put_real(r->out, PLAN_STARTUP_COST, real(r, plan, AT_PLAN_STARTUP_COST));
	plan_put_real(r->out, PLAN_TOTAL_COST, real(r, plan, AT_PLAN_TOTAL_COST));
	plan_put_real(r->out, PLAN_ROWS, real(r, plan, AT_PLAN_PLAN_ROWS));
	plan_put(r->out, PLAN_WIDTH, number(r, plan, AT_PLAN_PLAN_WIDTH));
	if (r->m.value[AT_PLAN_DISABLED_NODES] != PLAN_MISSING)
		plan_put(r->out, PLAN_DISABLED, node_disabled(r, node));
	node_progress(r, node);
}

/* Read the statement's own part of its text to @text, of PLAN_TEXT_BYTES. Return its length. */
static size_t text_read(const struct reading *r, char *text)
{
	const struct executor_id *id = &r->executor->id;
	uint32_t skip = id->location == UINT32_MAX ? 0 : id->location;
	ssize_t n = process_memory_read(r->m.memory, id->text + skip, text, PLAN_TEXT_BYTES);
	size_t len = n > 0 ? strnlen(text, (size_t)n) : 0;

	return id->length && len > id->length ? id->length : len;
}

/* Write the statement itself. @level: how many called it. */
static void statement_put(struct reading *r, unsigned int level, size_t len)
{
	const struct executor *executor = r->executor;
	char name[NAME_BYTES];
	size_t begin = 0;

	plan_put(r->out, PLAN_STATEMENT, level);
	while (begin < len && strchr(" \t\r\n", r->text[0][begin]))
		begin++;
	plan_put_string(r->out, PLAN_TEXT, r->text[0] + begin, len - begin);
	if (executor->open) {
		name_read(r, pointer(r, executor->portal, AT_PORTALDATA_NAME), name);
		plan_put_string(r->out, PLAN_CURSOR, name, strlen(name));
	}
	plan_put(r->out, PLAN_PROCESSED, pointer(r, executor->id.estate, AT_ESTATE_ES_PROCESSED));
	if (r->cut)
		plan_put(r->out, PLAN_CUT, 1);
}

/* Append the statement's plan. Return false: it has changed, or cannot be read. */
static bool statement_write(struct reading *r, unsigned int level)
{
	const struct executor *executor = r->executor;
	size_t len;

	r->n = 0;
	r->cut = r->bad = false;
	memset(r->printed, 0, sizeof(r->printed));
	memset(r->range, 0, sizeof(r->range));
	if (!executor_copy(&r->m, executor))
		return false;
	len = text_read(r, r->text[0]);
	r->nranges = executor_list(&r->m,
				   pointer(r, executor->id.statement, AT_PLANNEDSTMT_RTABLE),
				   r->range_table, RANGES_MAX);
	if (r->nranges > RANGES_MAX)
		return false;
	tree_collect(r, executor->id.state, 0, NULL, 0);
	if (r->bad || !r->n)
		return false;
	ranges_name(r);
	statement_put(r, level, len);
	for (unsigned int i = 0; i < r->n; i++)
		node_write(r, &r->node[i]);
	return !r->bad && !r->out->full && executor_copy(&r->m, executor) &&
	       text_read(r, r->text[1]) == len && !memcmp(r->text[0], r->text[1], len);
}

/* Append the plans of the @n statements in @found. Return how many could not be read. */
static unsigned int statements_write(struct reading *r, const struct executor found[],
				     unsigned int n)
{
	unsigned int level = 0, missed = 0;

	for (unsigned int i = 0; i < n; i++) {
		bool called = !found[i].open && found[i].on_stack;
		size_t before = r->out->len;

		if (found[i].ended)
			continue;
		r->executor = &found[i];
		if (clock_ns(CLOCK_MONOTONIC) >= r->query->deadline_ns ||
		    !statement_write(r, called || !level ? level : 1)) {
			r->out->len = before;
			r->out->full = false;
			missed++;
		}
		level += called;
	}
	return missed;
}

int postgres_plan_read(const struct postgres_plan_query *query, struct plan_writer *writer)
{
	struct executor found[EXECUTORS_MAX];
	struct reading *r = calloc(1, sizeof(*r));
	unsigned int n, missed, left = EXECUTOR_READS;
	uint64_t top;
	int err = -ENOMEM;

	if (!r)
		return -ENOMEM;
	r->query = query;
	r->out = writer;
	r->m.memory = query->memory;
	r->m.left = &left;
	r->m.copy = malloc(EXECUTOR_BYTES);
	if (!r->m.copy)
		goto cleanup;
	err = -ENOTSUP;
	if (!plan_table_read(query->release, r->m.value) || !query->top ||
	    process_memory_variable(query->memory, query->top, &top, sizeof(top)))
		goto cleanup;
	err = 0;
	n = executors_find(&r->m, query->pid, top, found);
	missed = statements_write(r, found, n) + r->m.missed;
	if (missed)
		plan_put(writer, PLAN_MISSED, missed);
cleanup:
	free(r->m.copy);
	free(r);
	return err;
}
