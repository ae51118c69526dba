// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/fold.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loader/insn.h"

#define NONE		UINT32_MAX

/* An instruction. */
struct fold_node {
	struct registers regs;	/* before it */
	uint32_t next[2];	/* nodes: the following one and the branch's target, or NONE */
	struct bpf_insn insn;	/* as it will be written */
	uint32_t start;		/* index in the output */
	uint16_t live;		/* bit mask of the registers that are read before they are set */
	bool reached;
	bool queued;
	bool ordered;		/* in ->order, or about to be */
	bool root;		/* of a function */
	bool skipped;		/* not written: ->next[0] takes its place */
};

/* A program. A node has the number of its instruction; arrays have ->count elements. */
struct fold {
	struct bpf_insn *insns;
	uint32_t count, max;
	struct fold_node *nodes;
	uint32_t *queue;	/* a stack of nodes */
	uint32_t nqueue;
	uint32_t *order;	/* nodes in the order of the output */
	uint32_t norder;
};

/* Reach the node @at with @regs; it is visited (again) if that is news. Return 0 or -ENOEXEC. */
static int fold_reach(struct fold *f, uint32_t at, const struct registers *regs)
{
	struct fold_node *node;
	bool news = true;

	/* The second half of a wide instruction has no code. */
	if (at >= f->count || !f->insns[at].code)
		return -ENOEXEC;
	node = &f->nodes[at];
	if (node->reached)
		news = registers_join(&node->regs, regs);
	else
		node->regs = *regs;
	node->reached = true;
	if (news && !node->queued) {
		node->queued = true;
		f->queue[f->nqueue++] = at;
	}
	return 0;
}

/* Reach the function at @at. Return 0 or -ENOEXEC. */
static int fold_root(struct fold *f, uint32_t at)
{
	int err = fold_reach(f, at, &(struct registers){ 0 });

	if (!err)
		f->nodes[at].root = true;
	return err;
}

/* Reach what follows the node @at: its next[@i], the node @next. Return 0 or -ENOEXEC. */
static int fold_edge(struct fold *f, uint32_t at, int i, uint32_t next,
		     const struct registers *regs)
{
	int err = fold_reach(f, next, regs);

	if (!err)
		f->nodes[at].next[i] = next;
	return err;
}

/* Execute the node @at and reach what follows it. Return 0 or -errno. */
static int fold_visit(struct fold *f, uint32_t at)
{
	struct fold_node *node = &f->nodes[at];
	const struct bpf_insn *insn = &f->insns[at];
	uint32_t follows = at + 1 + insn_is_wide(insn);
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

		node->ordered = true;
		/* The next instruction in memory remains next if it is visited last. */
		for (int i = 1; i >= 0 && next == NONE; i--)
			if (node->next[i] != NONE && !f->nodes[node->next[i]].ordered)
				next = node->next[i];
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

/* Return the node of the function that the call @at calls. */
static uint32_t fold_callee(const struct fold *f, uint32_t at)
{
	return at + 1 + (uint32_t)f->insns[at].imm;
}

/*
 * Order all nodes that are reached in the final states (a branch can have been followed before it
 * was decided), function by function.
 */
static void fold_order_all(struct fold *f)
{
	fold_order(f, 0);
	for (uint32_t i = 0; i < f->norder; i++) {
		uint32_t at = f->order[i];

		f->nodes[at].insn = f->insns[at];
		if (insn_calls_function(&f->insns[at]) && !f->nodes[fold_callee(f, at)].ordered)
			fold_order(f, fold_callee(f, at));
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
	for (uint32_t i = 0; i < f->count; i++) {
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
		if (insn_calls_function(&insn))
			insn.imm = (int32_t)(f->nodes[fold_callee(f, f->order[i])].start - after);
		memcpy(second, &f->insns[f->order[i]], size * sizeof(*second));
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

static int fold_run(struct fold *f)
{
	int err = fold_check(f);

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

int fold_program(struct bpf_insn *insns, uint32_t count, uint32_t max)
{
	struct fold f = {
		.insns = insns, .count = count, .max = max,
		.nodes = calloc(count, sizeof(*f.nodes)),
		.queue = calloc(count, sizeof(*f.queue)),
		.order = calloc(count, sizeof(*f.order)),
	};
	int ret = -ENOMEM;

	if (f.nodes && f.queue && f.order)
		ret = fold_run(&f);
	free(f.order);
	free(f.queue);
	free(f.nodes);
	return ret;
}
