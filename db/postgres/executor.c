// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/executor.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "host/process.h"

#define CONTEXTS_MAX	16384	/* that are visited, of a backend */
#define CONTEXT_DEPTH	64
#define CONTEXT_BYTES	80	/* that have all members */
#define BLOCKS_SEEN	4096	/* of a context, at most */
#define STACK_MOST	(8u << 20)	/* bytes of the stack that are searched */
#define STACK_STEP	4096u	/* a page */
#define PORTAL_READY	2	/* enum PortalStatus, 10 to 19; utils/portal.h */
#define STARTSTACK	28	/* field of /proc/PID/stat; proc(5) */

/* Take @n of the reads that are left. Return whether there were as many. */
static bool reads_take(const struct executor_memory *m, size_t n)
{
	bool enough = n <= *m->left;

	*m->left = enough ? *m->left - (unsigned int)n : 0;
	return enough;
}

bool executor_get(const struct executor_memory *m, uint64_t address, void *to, size_t size)
{
	if (!reads_take(m, 1))
		return false;
	for (unsigned int i = 0; i < m->nblocks; i++) {
		const struct executor_block *block = &m->block[i];

		if (address - block->address < block->size) {
			if (size > block->size - (address - block->address))
				return false;
			memcpy(to, m->copy + block->at + (address - block->address), size);
			return true;
		}
	}
	return process_memory_get(m->memory, address, to, size);
}

/* Read the member of @size bytes. Return success. */
static bool member_get(const struct executor_memory *m, uint64_t address, enum plan_value member,
		       void *to, size_t size)
{
	uint16_t at = m->value[member];

	return at != PLAN_MISSING && address && executor_get(m, address + at, to, size);
}

uint64_t executor_pointer(const struct executor_memory *m, uint64_t address,
			  enum plan_value member)
{
	uint64_t value;

	return member_get(m, address, member, &value, sizeof(value)) ? value : 0;
}

uint32_t executor_number(const struct executor_memory *m, uint64_t address,
			 enum plan_value member)
{
	uint32_t value;

	return member_get(m, address, member, &value, sizeof(value)) ? value : 0;
}

double executor_real(const struct executor_memory *m, uint64_t address, enum plan_value member)
{
	double value;

	return member_get(m, address, member, &value, sizeof(value)) ? value : 0;
}

/* Return the tag of the node at @address; 0: none. */
static uint32_t tag_read(const struct executor_memory *m, uint64_t address)
{
	uint32_t tag;

	return address && executor_get(m, address, &tag, sizeof(tag)) ? tag : 0;
}

bool executor_is(const struct executor_memory *m, uint64_t address, enum plan_value tag)
{
	return tag_read(m, address) == m->value[tag];
}

bool executor_is_state(const struct executor_memory *m, uint64_t address)
{
	uint32_t tag = tag_read(m, address);

	return tag >= m->value[TAG_RESULTSTATE] && tag <= m->value[TAG_LIMITSTATE];
}

enum plan_value executor_plan(const struct executor_memory *m, uint64_t address)
{
	uint32_t tag = tag_read(m, address);

	for (int i = TAG_RESULT; i <= TAG_LIMIT; i++)
		if (m->value[i] == tag && tag != PLAN_MISSING)
			return (enum plan_value)i;
	return PLAN_VALUES;
}

uint32_t executor_list(const struct executor_memory *m, uint64_t list, uint64_t elements[],
		       uint32_t most)
{
	uint32_t n = executor_is(m, list, TAG_LIST) ? executor_number(m, list, AT_LIST_LENGTH) : 0;
	uint64_t cell = n ? executor_pointer(m, list, AT_LIST_ELEMENTS) : 0;

	most = n < most ? n : most;
	if (m->value[AT_LISTCELL_NEXT] == PLAN_MISSING)
		return !most || executor_get(m, cell, elements, most * sizeof(*elements)) ? n : 0;
	/* Before 13, cells are linked. */
	for (uint32_t i = 0; i < most; i++) {
		if (!executor_get(m, cell, &elements[i], sizeof(*elements)))
			return 0;
		cell = executor_pointer(m, cell, AT_LISTCELL_NEXT);
	}
	return n;
}

/* --- the contexts */

/* A search for statements. */
struct search {
	struct executor_memory *m;
	struct executor *found;
	unsigned int n;
	unsigned int contexts;		/* that were visited */
	uint64_t top_portals;		/* TopPortalContext */
};

/*
 * Set *@end to the end of what is used of the block of @context at @address; 0: it is none. Return
 * the address of the next one, or 0.
 */
static uint64_t block_next(const struct executor_memory *m, uint64_t context, uint64_t address,
			   uint64_t *end)
{
	*end = executor_pointer(m, address, AT_ALLOCBLOCKDATA_FREEPTR);
	if (executor_pointer(m, address, AT_ALLOCBLOCKDATA_ASET) != context ||
	    *end < address || *end > executor_pointer(m, address, AT_ALLOCBLOCKDATA_ENDPTR))
		*end = 0;
	return *end ? executor_pointer(m, address, AT_ALLOCBLOCKDATA_NEXT) : 0;
}

/* Read what identifies the statement of the EState at @estate. Return false: it has none. */
static bool id_read(const struct executor_memory *m, uint64_t context, uint64_t estate,
		    struct executor_id *id)
{
	*id = (struct executor_id){ .context = context, .estate = estate };
	if (!executor_is(m, estate, TAG_ESTATE) ||
	    executor_pointer(m, estate, AT_ESTATE_ES_QUERY_CXT) != context)
		return false;
	id->statement = executor_pointer(m, estate, AT_ESTATE_ES_PLANNEDSTMT);
	id->text = executor_pointer(m, estate, AT_ESTATE_ES_SOURCETEXT);
	/* That of an expression, or of a utility command, has none. */
	if (!executor_is(m, id->statement, TAG_PLANNEDSTMT) || !id->text)
		return false;
	id->tree = executor_pointer(m, id->statement, AT_PLANNEDSTMT_PLANTREE);
	id->query_id = executor_pointer(m, id->statement, AT_PLANNEDSTMT_QUERYID);
	id->location = executor_number(m, id->statement, AT_PLANNEDSTMT_STMT_LOCATION);
	id->length = executor_number(m, id->statement, AT_PLANNEDSTMT_STMT_LEN);
	return executor_plan(m, id->tree) != PLAN_VALUES;
}

/*
 * Copy the blocks of @context from the oldest one on, in which the statement's states are, as far
 * as there is room. The list begins with the newest one, but blocks for large chunks, such as
 * bitmaps, are behind the one that was the newest when they were made.
 */
static bool context_copy(struct executor_memory *m, uint64_t context)
{
	struct executor_block last[EXECUTOR_BLOCKS], *block;
	uint64_t address = executor_pointer(m, context, AT_ALLOCSETCONTEXT_BLOCKS), end, next;
	size_t n = 0, copied = 0;

	m->nblocks = 0;
	for (; address && n < BLOCKS_SEEN; address = next, n++) {
		next = block_next(m, context, address, &end);
		if (!end)
			return false;
		last[n % EXECUTOR_BLOCKS] = (struct executor_block){ address, end - address, 0 };
	}
	if (address)
		return false;
	for (size_t i = 1; i <= n && i <= EXECUTOR_BLOCKS; i++) {
		block = &m->block[m->nblocks];
		*block = last[(n - i) % EXECUTOR_BLOCKS];
		if (block->size > EXECUTOR_BYTES - copied)
			continue;
		block->at = copied;
		if (!reads_take(m, 1 + block->size / 1024) ||
		    process_memory_read(m->memory, block->address, m->copy + copied,
					block->size) != (ssize_t)block->size)
			return false;
		copied += block->size;
		m->nblocks++;
	}
	return m->nblocks;
}

/* Return the PlanState of the plan's root in the copied blocks, or 0. Other pairs are alike. */
static uint64_t root_find(const struct executor_memory *m, const struct executor_id *id)
{
	size_t state = m->value[AT_PLANSTATE_STATE], plan = m->value[AT_PLANSTATE_PLAN];

	for (unsigned int i = 0; i < m->nblocks; i++) {
		const struct executor_block *block = &m->block[i];
		uint64_t word;

		for (size_t at = plan; at + 16 <= block->size; at += 8) {
			memcpy(&word, m->copy + block->at + at, sizeof(word));
			if (word != id->tree)
				continue;
			memcpy(&word, m->copy + block->at + at + state - plan, sizeof(word));
			if (word == id->estate &&
			    executor_is_state(m, block->address + at - plan))
				return block->address + at - plan;
		}
	}
	return 0;
}

/* Find the statement in an "ExecutorState", with a copy of that. Return false: it has none. */
static bool context_open(struct executor_memory *m, uint64_t context, struct executor_id *id)
{
	if (!context_copy(m, context))
		return false;
	for (unsigned int i = 0; i < m->nblocks; i++) {
		/* The EState is the first chunk of a block. */
		uint64_t estate = m->block[i].address + m->value[AT_ALLOCBLOCKDATA_SIZE] +
				  m->value[AT_MEMORYCHUNK_SIZE];

		if (id_read(m, context, estate, id)) {
			id->state = root_find(m, id);
			return id->state;
		}
	}
	return false;
}

bool executor_copy(struct executor_memory *m, const struct executor *executor)
{
	struct executor_id id;

	return context_open(m, executor->id.context, &id) &&
	       !memcmp(&id, &executor->id, sizeof(id));
}

/* A memory context. */
struct context {
	uint64_t parent, child, next, name;
};

/* Read the context at @address, which is a child of @parent. Return success. */
static bool context_read(const struct executor_memory *m, uint64_t address, uint64_t parent,
			 struct context *context)
{
	const char *bytes = m->copy;

	/* In one read: there are hundreds. */
	if (!reads_take(m, 2) ||
	    !process_memory_get(m->memory, address, m->copy, CONTEXT_BYTES))
		return false;
	memcpy(&context->parent, bytes + m->value[AT_MEMORYCONTEXTDATA_PARENT], 8);
	memcpy(&context->child, bytes + m->value[AT_MEMORYCONTEXTDATA_FIRSTCHILD], 8);
	memcpy(&context->next, bytes + m->value[AT_MEMORYCONTEXTDATA_NEXTCHILD], 8);
	memcpy(&context->name, bytes + m->value[AT_MEMORYCONTEXTDATA_NAME], 8);
	return context->parent == parent;
}

/* Note what is in the context at @address. Return whether its children are of interest. */
static bool context_visit(struct search *s, uint64_t address, const struct context *context,
			  bool in_portal)
{
	struct executor *executor = &s->found[s->n];
	char name[24];

	if (!process_memory_string(s->m->memory, context->name, name, sizeof(name)))
		return true;
	if (!strcmp(name, "CacheMemoryContext"))
		return false;
	/* The second one is that of 10. */
	if (!strcmp(name, "TopPortalContext") || !strcmp(name, "PortalMemory"))
		s->top_portals = address;
	if (strcmp(name, "ExecutorState"))
		return true;
	if (s->n == EXECUTORS_MAX) {
		s->m->missed = true;
		return true;
	}
	*executor = (struct executor){ .portal_context = in_portal ? context->parent : 0 };
	s->n += context_open(s->m, address, &executor->id);
	s->m->nblocks = 0;
	return true;
}

/* Search the children of @parent, from @address on. @upper: the parent of that. */
static void contexts_search(struct search *s, uint64_t upper, uint64_t parent, uint64_t address,
			    unsigned int depth)
{
	bool in_portal = s->top_portals && upper == s->top_portals;
	struct context context;

	for (; address && s->contexts++ < CONTEXTS_MAX; address = context.next) {
		if (!context_read(s->m, address, parent, &context))
			break;
		if (context_visit(s, address, &context, in_portal) && depth < CONTEXT_DEPTH)
			contexts_search(s, parent, address, context.child, depth + 1);
	}
}

/* --- portals */

/* Note that the Portal at @portal, if it is one and not a freed chunk, has the statement. */
static void portal_note(const struct executor_memory *m, uint64_t portal,
			struct executor *executor)
{
	uint64_t query = executor_pointer(m, portal, AT_PORTALDATA_QUERYDESC);

	if (executor_pointer(m, query, AT_QUERYDESC_ESTATE) != executor->id.estate)
		return;
	executor->portal = portal;
	executor->open = executor_number(m, portal, AT_PORTALDATA_STATUS) == PORTAL_READY;
	executor->ended = executor->open &&
			  executor_number(m, portal, AT_PORTALDATA_ATEND) & 0xff;
}

/*
 * Set which statements are of cursors that are open only: of the Portals, which are chunks in
 * TopPortalContext, those that are ready, and not active.
 */
static void portals_find(struct search *s)
{
	struct executor_memory *m = s->m;
	uint16_t context = m->value[AT_PORTALDATA_PORTALCONTEXT];

	if (!s->top_portals || !context_copy(m, s->top_portals))
		return;
	for (unsigned int i = 0; i < m->nblocks; i++) {
		const struct executor_block *block = &m->block[i];
		uint64_t word;

		for (size_t at = context; at + sizeof(word) <= block->size; at += sizeof(word)) {
			memcpy(&word, m->copy + block->at + at, sizeof(word));
			for (unsigned int j = 0; word && j < s->n; j++)
				if (s->found[j].portal_context == word)
					portal_note(m, block->address + at - context, &s->found[j]);
		}
	}
	m->nblocks = 0;
}

/* --- the stack */

/* Return where the stack of process @pid begins, its highest address; 0: unknown. */
static uint64_t stack_begin(uint32_t pid)
{
	char stat[1024], *at;
	ssize_t n = process_read_file(pid, "stat", stat, sizeof(stat) - 1);

	if (n <= 0)
		return 0;
	stat[n] = '\0';
	/* The second field may have blanks and parentheses. */
	at = strrchr(stat, ')');
	for (int field = 2; at && field < STARTSTACK; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

/* Note where on the stack the statements' EStates are, from the highest address down. */
static void stack_search(struct search *s, uint32_t pid)
{
	uint64_t *words = malloc(STACK_STEP), end = stack_begin(pid);
	unsigned int left = s->n;

	end = (end + STACK_STEP - 1) / STACK_STEP * STACK_STEP;
	for (size_t done = 0; words && left && done < STACK_MOST && end > STACK_STEP;
	     done += STACK_STEP) {
		end -= STACK_STEP;
		if (!process_memory_get(s->m->memory, end, words, STACK_STEP))
			break;
		for (size_t i = STACK_STEP / sizeof(*words); i-- && left;) {
			for (unsigned int j = 0; j < s->n; j++) {
				if (words[i] != s->found[j].id.estate || s->found[j].on_stack)
					continue;
				s->found[j].on_stack = end + i * sizeof(*words);
				left--;
			}
		}
	}
	free(words);
}

/*
 * The calls from the outermost one on, as the stack grows down; those that are not there; then open
 * cursors.
 */
static int executor_compare(const void *a, const void *b)
{
	const struct executor *x = a, *y = b;

	if (x->open != y->open)
		return x->open ? 1 : -1;
	return x->on_stack == y->on_stack ? 0 : x->on_stack > y->on_stack ? -1 : 1;
}

unsigned int executors_find(struct executor_memory *m, uint32_t pid, uint64_t top,
			    struct executor found[EXECUTORS_MAX])
{
	struct search s = { .m = m, .found = found };

	contexts_search(&s, 0, 0, top, 0);
	if (!s.n)
		return 0;
	portals_find(&s);
	stack_search(&s, pid);
	qsort(found, s.n, sizeof(*found), executor_compare);
	return s.n;
}
