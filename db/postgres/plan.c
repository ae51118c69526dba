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

#define NODES_MAX	512		/* of a statement */
#define SUBPLANS_MAX	256		/* the same, and of the elements of other lists */
#define RANGE_TABLE_MAX	4096		/* elements of its range table */
#define RANGES_MAX	512		/* elements of its range table that are named */
#define SET_WORDS	64		/* of a Bitmapset */
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
	uint64_t range_table[RANGE_TABLE_MAX];	/* RangeTblEntries */
	uint32_t range_table_n;
	char text[2][PLAN_TEXT_BYTES];	/* as it was read before, and after */
	struct node node[NODES_MAX];
	unsigned int n;
	bool cut, bad;			/* there are more nodes; what was read is not a plan */
	uint32_t printed[SUBPLANS_MAX / 32];	/* SubPlans, by their plan_id */
	struct range {
		uint32_t index;		/* in the range table */
		uint64_t relation;	/* RelationData, or 0 */
		char name[NAME_BYTES];
	} range[RANGES_MAX];		/* that the plan uses */
	unsigned int nranges;
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

/* Return the byte of a bool or char. */
static unsigned int byte(const struct reading *r, uint64_t address, enum plan_value member)
{
	return number(r, address, member) & 0xff;
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

/* Collect those of a list or, before 14, array of PlanStates. */
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
	uint64_t state = node->state;

	switch (node->tag) {
	case TAG_APPEND:
		array_collect(r, pointer(r, state, AT_APPENDSTATE_APPENDPLANS),
			      number(r, state, AT_APPENDSTATE_AS_NPLANS), depth, "Member");
		break;
	case TAG_MERGEAPPEND:
		array_collect(r, pointer(r, state, AT_MERGEAPPENDSTATE_MERGEPLANS),
			      number(r, state, AT_MERGEAPPENDSTATE_MS_NPLANS), depth, "Member");
		break;
	case TAG_BITMAPAND:
		array_collect(r, pointer(r, state, AT_BITMAPANDSTATE_BITMAPPLANS),
			      number(r, state, AT_BITMAPANDSTATE_NPLANS), depth, "Member");
		break;
	case TAG_BITMAPOR:
		array_collect(r, pointer(r, state, AT_BITMAPORSTATE_BITMAPPLANS),
			      number(r, state, AT_BITMAPORSTATE_NPLANS), depth, "Member");
		break;
	case TAG_MODIFYTABLE:
		/* Before 14. */
		array_collect(r, pointer(r, state, AT_MODIFYTABLESTATE_MT_PLANS),
			      number(r, state, AT_MODIFYTABLESTATE_MT_NPLANS), depth, "Member");
		break;
	case TAG_SUBQUERYSCAN:
		tree_collect(r, pointer(r, state, AT_SUBQUERYSCANSTATE_SUBPLAN), depth,
			     "Subquery", 0);
		break;
	case TAG_CUSTOMSCAN:
		custom_collect(r, pointer(r, state, AT_CUSTOMSCANSTATE_CUSTOM_PS), depth);
		break;
	default:
		break;
	}
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
	return index - 1 < r->range_table_n ? r->range_table[index - 1] : 0;
}

/* Note that the plan uses the element of the range table, with its relation, or 0: unknown. */
static void range_use(struct reading *r, uint32_t index, uint64_t relation)
{
	struct range *range = r->range;

	while (range < r->range + r->nranges && range->index != index)
		range++;
	if (!index || range == r->range + RANGES_MAX)
		return;
	if (range == r->range + r->nranges) {
		*range = (struct range){ .index = index };
		r->nranges++;
	}
	if (relation)
		range->relation = relation;
}

/* The same of those in a Bitmapset. */
static void ranges_use(struct reading *r, uint64_t set)
{
	uint32_t words = set ? number(r, set, AT_BITMAPSET_NWORDS) : 0;
	uint32_t at = r->m.value[AT_BITMAPSET_WORDS], bytes = r->query->release < 12 ? 4 : 8;
	uint64_t word;

	for (uint32_t i = 0; i < words && i < SET_WORDS; i++) {
		word = 0;
		if (!executor_get(&r->m, set + at + bytes * i, &word, bytes))
			return;
		for (uint32_t j = 0; word; j++, word >>= 1)
			if (word & 1)
				range_use(r, 8 * bytes * i + j, 0);
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
	range_use(r, node->range_index, 0);
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
		range_use(r, node->range_index, relation);
	} else if (relation && node->tag != TAG_MODIFYTABLE) {
		r->bad = true;
	}
}

/* Note what else the node uses, which has a name that no other one gets. */
static void node_ranges(struct reading *r, const struct node *node)
{
	uint64_t list;
	uint32_t first;

	switch (node->tag) {
	case TAG_APPEND:
		ranges_use(r, pointer(r, node->plan, AT_APPEND_APPRELIDS));
		break;
	case TAG_MERGEAPPEND:
		ranges_use(r, pointer(r, node->plan, AT_MERGEAPPEND_APPRELIDS));
		break;
	case TAG_RESULT:
		ranges_use(r, pointer(r, node->plan, AT_RESULT_RELIDS));
		break;
	case TAG_FOREIGNSCAN:
		ranges_use(r, pointer(r, node->plan, AT_FOREIGNSCAN_FS_BASE_RELIDS));
		break;
	case TAG_CUSTOMSCAN:
		ranges_use(r, pointer(r, node->plan, AT_CUSTOMSCAN_CUSTOM_RELIDS));
		break;
	case TAG_MODIFYTABLE:
		range_use(r, number(r, node->plan, AT_MODIFYTABLE_EXCLRELRTI), 0);
		/* From 18 on, what is returned may name the first one. */
		list = pointer(r, node->plan, AT_MODIFYTABLE_RESULTRELATIONS);
		if (r->query->release >= 18 && pointer(r, node->plan, AT_PLAN_TARGETLIST) &&
		    executor_get(&r->m, pointer(r, list, AT_LIST_ELEMENTS), &first, sizeof(first)))
			range_use(r, first, 0);
		break;
	default:
		break;
	}
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

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return x->index < y->index ? -1 : x->index > y->index;
}

/* Return whether one of the first @n ranges has @name. */
static bool name_taken(const struct reading *r, unsigned int n, const char *name)
{
	for (unsigned int i = 0; i < n; i++)
		if (!strcmp(r->range[i].name, name))
			return true;
	return false;
}

/* Read the name by which the statement calls @range. */
static void range_read(struct reading *r, struct range *range)
{
	uint64_t entry = range_entry(r, range->index), alias;

	alias = pointer(r, entry, AT_RANGETBLENTRY_ALIAS);
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
	qsort(r->range, r->nranges, sizeof(*r->range), compare_ranges);
	for (unsigned int i = 0; i < r->nranges; i++) {
		char *name = r->range[i].name, suffix[16], base[NAME_BYTES];
		size_t room;

		range_read(r, &r->range[i]);
		memcpy(base, name, sizeof(base));
		for (unsigned int k = 1; *name && name_taken(r, i, name); k++) {
			room = NAME_BYTES - 1 - (size_t)snprintf(suffix, sizeof(suffix), "_%u", k);
			snprintf(name, NAME_BYTES, "%.*s%s", (int)strnlen(base, room), base,
				 suffix);
		}
	}
}

static const char *range_name(const struct reading *r, uint32_t index)
{
	for (unsigned int i = 0; i < r->nranges; i++)
		if (r->range[i].index == index)
			return r->range[i].name;
	return "";
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

/* What EXPLAIN calls the kinds; the others have words that depend on their members. */
static const struct kind {
	enum plan_value tag;
	const char *type, *title;	/* NULL: the same */
} kinds[] = {
	{ TAG_RESULT, "Result", NULL }, { TAG_PROJECTSET, "ProjectSet", NULL },
	{ TAG_MODIFYTABLE, "ModifyTable", NULL }, { TAG_APPEND, "Append", NULL },
	{ TAG_MERGEAPPEND, "Merge Append", NULL },
	{ TAG_RECURSIVEUNION, "Recursive Union", NULL }, { TAG_BITMAPAND, "BitmapAnd", NULL },
	{ TAG_BITMAPOR, "BitmapOr", NULL }, { TAG_NESTLOOP, "Nested Loop", NULL },
	{ TAG_MERGEJOIN, "Merge Join", "Merge" }, { TAG_HASHJOIN, "Hash Join", "Hash" },
	{ TAG_SEQSCAN, "Seq Scan", NULL }, { TAG_SAMPLESCAN, "Sample Scan", NULL },
	{ TAG_GATHER, "Gather", NULL }, { TAG_GATHERMERGE, "Gather Merge", NULL },
	{ TAG_INDEXSCAN, "Index Scan", NULL }, { TAG_INDEXONLYSCAN, "Index Only Scan", NULL },
	{ TAG_BITMAPINDEXSCAN, "Bitmap Index Scan", NULL },
	{ TAG_BITMAPHEAPSCAN, "Bitmap Heap Scan", NULL }, { TAG_TIDSCAN, "Tid Scan", NULL },
	{ TAG_TIDRANGESCAN, "Tid Range Scan", NULL }, { TAG_SUBQUERYSCAN, "Subquery Scan", NULL },
	{ TAG_FUNCTIONSCAN, "Function Scan", NULL },
	{ TAG_TABLEFUNCSCAN, "Table Function Scan", NULL },
	{ TAG_VALUESSCAN, "Values Scan", NULL }, { TAG_CTESCAN, "CTE Scan", NULL },
	{ TAG_NAMEDTUPLESTORESCAN, "Named Tuplestore Scan", NULL },
	{ TAG_WORKTABLESCAN, "WorkTable Scan", NULL }, { TAG_FOREIGNSCAN, "Foreign Scan", NULL },
	{ TAG_CUSTOMSCAN, "Custom Scan", NULL }, { TAG_MATERIAL, "Materialize", NULL },
	{ TAG_MEMOIZE, "Memoize", NULL }, { TAG_SORT, "Sort", NULL },
	{ TAG_INCREMENTALSORT, "Incremental Sort", NULL }, { TAG_GROUP, "Group", NULL },
	{ TAG_AGG, "Aggregate", NULL }, { TAG_WINDOWAGG, "WindowAgg", NULL },
	{ TAG_UNIQUE, "Unique", NULL }, { TAG_SETOP, "SetOp", NULL },
	{ TAG_LOCKROWS, "LockRows", NULL }, { TAG_LIMIT, "Limit", NULL },
	{ TAG_HASH, "Hash", NULL },
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
	const struct kind *kind = kinds;
	char title[NAME_BYTES + 64], whole[NAME_BYTES + 96];

	while (kind->tag != node->tag)
		kind++;
	put(r, PLAN_TYPE, kind->type);
	snprintf(title, sizeof(title), "%s", kind->title ? kind->title : kind->type);
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
	put(r, PLAN_ALIAS, range_name(r, node->range_index));
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

	r->n = r->nranges = 0;
	r->cut = r->bad = false;
	memset(r->printed, 0, sizeof(r->printed));
	if (!executor_copy(&r->m, executor))
		return false;
	len = text_read(r, r->text[0]);
	r->range_table_n = executor_list(&r->m, pointer(r, executor->id.statement,
							AT_PLANNEDSTMT_RTABLE),
					 r->range_table, RANGE_TABLE_MAX);
	if (r->range_table_n > RANGE_TABLE_MAX)
		r->range_table_n = RANGE_TABLE_MAX;
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
		if (!statement_write(r, called || !level ? level : 1)) {
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
