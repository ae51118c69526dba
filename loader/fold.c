// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/insn.h"

#define NODES_MAX	16384
#define CONTEXTS_MAX	1024
#define LOOPS_MAX	64
#define NONE		UINT32_MAX

/* An iteration of a loop that is unrolled, inside another or the program. */
struct fold_context {
	uint32_t parent;
	uint32_t loop;
	uint32_t iteration;
};

/* An instruction, once for each context in which it is reached. */
struct fold_node {
	uint32_t pc, context;
	uint32_t sibling;	/* the same instruction in another context, or NONE */
	struct registers regs;	/* before the instruction */
	uint32_t next[2];	/* nodes: the following one and the branch's target, or NONE */
	struct bpf_insn insn;	/* as it will be written */
	uint32_t start;		/* index in the output */
	uint16_t live;		/* bit mask of the registers that are read before they are set */
	bool queued;
	bool ordered;		/* in ->order, or about to be */
	bool root;		/* of a function */
	bool skipped;		/* not written: ->next[0] takes its place */
};

struct fold {
	struct bpf_insn *insns;
	uint32_t count, max;
	uint32_t *nodes_at;	/* by instruction: its first node, or NONE */
	uint64_t *loops_of;	/* by instruction: bit mask of the loops that it is in */
	uint32_t heads[LOOPS_MAX];	/* of the loops to unroll: the first instruction */
	uint32_t nloops;
	struct fold_node *nodes;
	uint32_t nnodes;
	struct fold_context contexts[CONTEXTS_MAX];	/* the first is the program */
	uint32_t ncontexts;
	uint32_t *queue;	/* a stack of nodes */
	uint32_t nqueue;
	uint32_t *order;	/* nodes in the order of the output */
	uint32_t norder;
};

/* Return the context of iteration @iteration of @loop, which is added if new; NONE: too many. */
static uint32_t fold_context(struct fold *f, uint32_t parent, uint32_t loop, uint32_t iteration)
{
	for (uint32_t i = 1; i < f->ncontexts; i++) {
		const struct fold_context *context = &f->contexts[i];

		if (context->parent == parent && context->loop == loop &&
		    context->iteration == iteration)
			return i;
	}
	if (f->ncontexts == CONTEXTS_MAX)
		return NONE;
	f->contexts[f->ncontexts] = (struct fold_context){ parent, loop, iteration };
	return f->ncontexts++;
}

/* Return the context of instruction @pc when it is reached from context @from; NONE: too many. */
static uint32_t fold_enter(struct fold *f, uint32_t from, uint32_t pc)
{
	while (from && !(f->loops_of[pc] >> f->contexts[from].loop & 1))
		from = f->contexts[from].parent;
	for (uint32_t i = 0; i < f->nloops; i++) {
		const struct fold_context *context = &f->contexts[from];

		if (f->heads[i] != pc)
			continue;
		return from && context->loop == i ?
			fold_context(f, context->parent, i, context->iteration + 1) :
			fold_context(f, from, i, 0);
	}
	return from;
}

/* Return the node of @pc in @context, or NONE. */
static uint32_t fold_find(const struct fold *f, uint32_t pc, uint32_t context)
{
	uint32_t at = f->nodes_at[pc];

	while (at != NONE && f->nodes[at].context != context)
		at = f->nodes[at].sibling;
	return at;
}

/*
 * Reach instruction @pc from context @from with @regs. Return its node, which is visited (again)
 * if that is news; or -errno.
 */
static int64_t fold_reach(struct fold *f, uint32_t from, uint32_t pc, const struct registers *regs)
{
	struct fold_node *node;
	uint32_t context, at;
	bool news = true;

	/* The second half of a wide instruction has no code. */
	if (pc >= f->count || !f->insns[pc].code)
		return -ENOEXEC;
	context = fold_enter(f, from, pc);
	if (context == NONE)
		return -ENOSPC;
	at = fold_find(f, pc, context);
	if (at == NONE) {
		if (f->nnodes == NODES_MAX)
			return -ENOSPC;
		at = f->nnodes++;
		f->nodes[at] = (struct fold_node){
			.pc = pc, .context = context, .sibling = f->nodes_at[pc], .regs = *regs,
		};
		f->nodes_at[pc] = at;
	} else {
		news = registers_join(&f->nodes[at].regs, regs);
	}
	node = &f->nodes[at];
	if (news && !node->queued) {
		node->queued = true;
		f->queue[f->nqueue++] = at;
	}
	return at;
}

/* Reach function @pc. Return 0 or -errno. */
static int fold_root(struct fold *f, uint32_t pc)
{
	int64_t at = fold_reach(f, 0, pc, &(struct registers){ 0 });

	if (at < 0)
		return (int)at;
	f->nodes[at].root = true;
	return 0;
}

/* Reach what follows the node @at: its next[@i], instruction @pc. Return 0 or -errno. */
static int fold_edge(struct fold *f, uint32_t at, int i, uint32_t pc, const struct registers *regs)
{
	int64_t next = fold_reach(f, f->nodes[at].context, pc, regs);

	if (next < 0)
		return (int)next;
	f->nodes[at].next[i] = (uint32_t)next;
	return 0;
}

/* Execute the node @at and reach what follows it. Return 0 or -errno. */
static int fold_visit(struct fold *f, uint32_t at)
{
	struct fold_node *node = &f->nodes[at];
	const struct bpf_insn *insn = &f->insns[node->pc];
	uint32_t follows = node->pc + 1 + insn_is_wide(insn);
	struct registers regs = node->regs;
	int decided, err = 0;

	node->next[0] = node->next[1] = NONE;
	node->skipped = false;
	if (insn->code == (BPF_JMP | BPF_EXIT))
		return 0;
	if (!insn_is_branch(insn)) {
		if (insn_calls_function(insn))
			err = fold_root(f, follows + (uint32_t)insn->imm);
		registers_execute(&regs, insn);
		return err ? err : fold_edge(f, at, 0, follows, &regs);
	}
	decided = registers_decide(&regs, insn);
	node->skipped = decided >= 0;
	if (decided >= 0)
		return fold_edge(f, at, 0, follows + (decided ? (uint32_t)insn->off : 0), &regs);
	registers_assume(&regs, insn, false);
	err = fold_edge(f, at, 0, follows, &regs);
	regs = node->regs;
	registers_assume(&regs, insn, true);
	return err ? err : fold_edge(f, at, 1, follows + (uint32_t)insn->off, &regs);
}

/* Check what the rest relies on. Return 0 or -ENOEXEC. */
static int fold_check(const struct fold *f)
{
	for (uint32_t i = 0; i < f->count; i++) {
		const struct bpf_insn *insn = &f->insns[i];

		if (insn->dst_reg >= MAX_BPF_REG || insn->src_reg >= MAX_BPF_REG ||
		    (insn_is_wide(insn) && i + 1 == f->count))
			return -ENOEXEC;
		i += insn_is_wide(insn);
	}
	return 0;
}

/* Visit nodes until their states are final. Return 0 or -errno. */
static int fold_analyze(struct fold *f)
{
	int err = fold_root(f, 0);

	while (!err && f->nqueue) {
		uint32_t at = f->queue[--f->nqueue];

		f->nodes[at].queued = false;
		err = fold_visit(f, at);
	}
	return err;
}

/* Order the nodes that follow @root: each before those that follow it, except in a loop. */
static void fold_order(struct fold *f, uint32_t root)
{
	uint32_t first = f->norder;

	f->queue[f->nqueue++] = root;
	while (f->nqueue) {
		struct fold_node *node = &f->nodes[f->queue[f->nqueue - 1]];
		uint32_t next = NONE;

		/* The next instruction in memory remains next if it is visited last. */
		for (int i = 1; i >= 0 && next == NONE; i--)
			if (node->next[i] != NONE && !f->nodes[node->next[i]].ordered)
				next = node->next[i];
		node->ordered = true;
		if (next != NONE)
			f->queue[f->nqueue++] = next;
		else
			f->order[f->norder++] = f->queue[--f->nqueue];
	}
	for (uint32_t i = first, j = f->norder; i + 1 < j; i++) {
		uint32_t at = f->order[i];

		f->order[i] = f->order[--j];
		f->order[j] = at;
	}
}

/* Return the node of the function that the call @node calls. */
static uint32_t fold_callee(struct fold *f, const struct fold_node *node)
{
	uint32_t pc = node->pc + 1 + (uint32_t)f->insns[node->pc].imm;

	return fold_find(f, pc, fold_enter(f, 0, pc));
}

/*
 * Order all nodes that are reached in the final states (a branch can have been followed before it
 * was decided), function by function.
 */
static void fold_order_all(struct fold *f)
{
	fold_order(f, 0);
	for (uint32_t i = 0; i < f->norder; i++) {
		struct fold_node *node = &f->nodes[f->order[i]];

		node->insn = f->insns[node->pc];
		if (insn_calls_function(&node->insn) && !f->nodes[fold_callee(f, node)].ordered)
			fold_order(f, fold_callee(f, node));
	}
}

/* Replace a register whose value is known by the value, where there is such an instruction. */
static void fold_immediate(struct fold_node *node)
{
	struct bpf_insn *insn = &node->insn;
	uint8_t op = BPF_OP(insn->code), class = BPF_CLASS(insn->code);
	uint64_t value;

	if (!registers_get(&node->regs, insn->src_reg, &value) ||
	    value != (uint64_t)(int64_t)(int32_t)value)
		return;
	if (class == BPF_STX && BPF_MODE(insn->code) == BPF_MEM)
		insn->code = BPF_ST | BPF_MEM | BPF_SIZE(insn->code);
	else if (BPF_SRC(insn->code) == BPF_X && !insn->off && class == BPF_ALU64 &&
		 (op == BPF_MOV || op == BPF_ADD || op == BPF_SUB || op == BPF_AND || op == BPF_OR))
		insn->code &= (uint8_t)~BPF_X;
	else if (BPF_SRC(insn->code) == BPF_X && insn_is_branch(insn) && class == BPF_JMP)
		insn->code &= (uint8_t)~BPF_X;
	else
		return;
	insn->src_reg = 0;
	insn->imm = (int32_t)value;
}

/* Find the live registers of @node from those of the next ones. Return whether that is news. */
static bool fold_live(struct fold *f, struct fold_node *node)
{
	uint16_t after = 0, live;

	for (int i = 0; i < 2; i++)
		if (node->next[i] != NONE)
			after |= f->nodes[node->next[i]].live;
	live = after;
	if (!node->skipped && !(insn_is_pure(&node->insn) && !(after & insn_sets(&node->insn))))
		live = (after & (uint16_t)~insn_sets(&node->insn)) | insn_uses(&node->insn);
	if (live == node->live)
		return false;
	node->live = live;
	return true;
}

/* Skip instructions that set registers which nothing reads. */
static void fold_dead(struct fold *f)
{
	bool news;

	do {
		news = false;
		for (uint32_t i = f->norder; i--; )
			news |= fold_live(f, &f->nodes[f->order[i]]);
	} while (news);
	for (uint32_t i = 0; i < f->norder; i++) {
		struct fold_node *node = &f->nodes[f->order[i]];

		if (!node->skipped && insn_is_pure(&node->insn) &&
		    !(f->nodes[node->next[0]].live & insn_sets(&node->insn)))
			node->skipped = true;
	}
}

/* Return the node that is written instead of @at; NONE: none is, in an endless loop. */
static uint32_t fold_target(const struct fold *f, uint32_t at)
{
	for (uint32_t i = 0; i < f->nnodes; i++) {
		if (!f->nodes[at].skipped || f->nodes[at].root)
			return at;
		at = f->nodes[at].next[0];
	}
	return NONE;
}

/* Remove what is skipped from the order and the edges. Return 0 or -ENOEXEC. */
static int fold_skip(struct fold *f)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < f->norder; i++) {
		struct fold_node *node = &f->nodes[f->order[i]];

		for (int j = 0; j < 2; j++) {
			if (node->next[j] == NONE)
				continue;
			node->next[j] = fold_target(f, node->next[j]);
			if (node->next[j] == NONE)
				return -ENOEXEC;
		}
	}
	for (uint32_t i = 0; i < f->norder; i++)
		if (fold_target(f, f->order[i]) == f->order[i])
			f->order[n++] = f->order[i];
	f->norder = n;
	return 0;
}

static uint32_t node_size(const struct fold_node *node)
{
	return node->skipped ? 0 : 1 + insn_is_wide(&node->insn);
}

/* Return whether a jump must follow the node in place @i of the order. */
static bool fold_jumps(const struct fold *f, uint32_t i)
{
	uint32_t next = f->nodes[f->order[i]].next[0];

	return next != NONE && (i + 1 == f->norder || f->order[i + 1] != next);
}

/* Write the nodes. Return the number of instructions or -ENOSPC. */
static int fold_write(struct fold *f)
{
	struct bpf_insn second[2], *out = calloc(f->max, sizeof(*out));
	uint32_t count = 0, at = 0;
	int ret = -ENOSPC;

	if (!out)
		return -ENOMEM;
	for (uint32_t i = 0; i < f->norder; i++) {
		f->nodes[f->order[i]].start = count;
		count += node_size(&f->nodes[f->order[i]]) + fold_jumps(f, i);
	}
	if (count > f->max || count > INT16_MAX)
		goto cleanup;
	for (uint32_t i = 0; i < f->norder; i++) {
		const struct fold_node *node = &f->nodes[f->order[i]];
		uint32_t size = node_size(node), after = at + size;
		struct bpf_insn insn = node->insn;

		if (node->next[1] != NONE && size)
			insn.off = (int16_t)(f->nodes[node->next[1]].start - after);
		if (insn_calls_function(&insn)) {
			insn.imm = (int32_t)(f->nodes[fold_callee(f, node)].start - after);
		}
		memcpy(second, &f->insns[node->pc], size * sizeof(*second));
		second[0] = insn;
		memcpy(out + at, second, size * sizeof(*second));
		at = after;
		if (fold_jumps(f, i)) {
			out[at] = (struct bpf_insn){
				.code = BPF_JMP | BPF_JA,
				.off = (int16_t)(f->nodes[node->next[0]].start - (at + 1)),
			};
			at++;
		}
	}
	memcpy(f->insns, out, count * sizeof(*out));
	ret = (int)count;
cleanup:
	free(out);
	return ret;
}

/* Add the instructions from which @from is reached without @head, the loop's, to the loop. */
static void fold_loop_body(struct fold *f, uint32_t loop, uint32_t from)
{
	uint64_t bit = 1ull << loop;
	bool news = true;
	uint32_t next;

	f->loops_of[f->heads[loop]] |= bit;
	f->loops_of[from] |= bit;
	while (news) {
		news = false;
		for (uint32_t pc = f->count; pc--; )
			for (int i = 0; i < 2 && !(f->loops_of[pc] & bit); i++)
				if (insn_next(&f->insns[pc], pc, i, &next) && next < f->count &&
				    next != f->heads[loop] && f->loops_of[next] & bit) {
					f->loops_of[pc] |= bit;
					news = true;
				}
	}
}

/* Add the loop of the jump back from @from to @head. Return 0 or -ENOSPC. */
static int fold_loop(struct fold *f, uint32_t from, uint32_t head)
{
	uint32_t loop = 0;

	while (loop < f->nloops && f->heads[loop] != head)
		loop++;
	if (loop == LOOPS_MAX)
		return -ENOSPC;
	f->heads[loop] = head;
	f->nloops += loop == f->nloops;
	fold_loop_body(f, loop, from);
	return 0;
}

/* Find the loops that are reached from instruction @root. Return 0 or -errno. */
static int fold_find_loops(struct fold *f, uint32_t root, uint8_t *seen)
{
	enum { NEW, ON_STACK, DONE };
	uint32_t next;
	int err = 0;

	if (root >= f->count || seen[root])
		return root >= f->count ? -ENOEXEC : 0;
	f->queue[f->nqueue++] = root;
	while (f->nqueue && !err) {
		uint32_t pc = f->queue[f->nqueue - 1];
		bool leaf = true;

		seen[pc] = ON_STACK;
		for (int i = 0; i < 2 && leaf && !err; i++) {
			if (!insn_next(&f->insns[pc], pc, i, &next))
				continue;
			if (next >= f->count)
				return -ENOEXEC;
			if (seen[next] == ON_STACK)
				err = fold_loop(f, pc, next);
			leaf = seen[next] != NEW;
		}
		if (leaf)
			seen[f->queue[--f->nqueue]] = DONE;
		else
			f->queue[f->nqueue++] = next;
	}
	return err;
}

/* Find all loops. Return 0 or -errno. */
static int fold_loops(struct fold *f)
{
	uint8_t *seen = calloc(f->count, sizeof(*seen));
	int err = seen ? fold_find_loops(f, 0, seen) : -ENOMEM;

	for (uint32_t i = 0; i < f->count && !err; i++)
		if (insn_calls_function(&f->insns[i]))
			err = fold_find_loops(f, i + 1 + (uint32_t)f->insns[i].imm, seen);
	free(seen);
	return err;
}

static int fold_run(struct fold *f, bool unroll)
{
	int err = fold_check(f);

	if (!err && unroll)
		err = fold_loops(f);
	if (!err)
		err = fold_analyze(f);
	if (err)
		return err;
	f->nqueue = 0;
	fold_order_all(f);
	for (uint32_t i = 0; i < f->norder; i++)
		fold_immediate(&f->nodes[f->order[i]]);
	fold_dead(f);
	err = fold_skip(f);
	return err ? err : fold_write(f);
}

static int fold_once(struct bpf_insn *insns, uint32_t count, uint32_t max, bool unroll)
{
	struct fold *f = calloc(1, sizeof(*f));
	int ret = -ENOMEM;

	if (!f)
		return ret;
	f->insns = insns;
	f->count = count;
	f->max = max;
	f->ncontexts = 1;
	f->nodes_at = malloc(count * sizeof(*f->nodes_at));
	f->loops_of = calloc(count, sizeof(*f->loops_of));
	f->nodes = calloc(NODES_MAX, sizeof(*f->nodes));
	f->queue = calloc(NODES_MAX, sizeof(*f->queue));
	f->order = calloc(NODES_MAX, sizeof(*f->order));
	if (f->nodes_at && f->loops_of && f->nodes && f->queue && f->order) {
		memset(f->nodes_at, 0xff, count * sizeof(*f->nodes_at));
		ret = fold_run(f, unroll);
	}
	free(f->order);
	free(f->queue);
	free(f->nodes);
	free(f->loops_of);
	free(f->nodes_at);
	free(f);
	return ret;
}

/* Loops are unrolled when what they contain is as small as can be. */
int fold_program(struct bpf_insn *insns, uint32_t count, uint32_t max, bool unroll)
{
	int n = fold_once(insns, count, max, false);

	return n > 0 && unroll ? fold_once(insns, (uint32_t)n, max, true) : n;
}
