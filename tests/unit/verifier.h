/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Rules of the verifiers from Linux 5.3 on that the one of this host does not apply.
 *
 * What it does not see: the complexity of a program; the ranges of what a function returned or read
 * from its caller's stack, of what differs from path to path, and those in a program with a jump
 * back; and what all kernels refuse, for which programs are loaded into this host's.
 */
#ifndef TESTS_UNIT_VERIFIER_H
#define TESTS_UNIT_VERIFIER_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "loader/insn.h"
#include "tests/unit/verifier_range.h"

#define VERIFIER_FRAMES		8	/* functions that are nested */

/* Number @number is known since @release. The commits are for the reader. */
struct verifier_since {
	uint32_t number, release;
	const char *commit;
};

#define SINCE(number, commit, major, minor)	\
	{ number, VERIFIER_RELEASE(major, minor), commit }

/* Helpers that programs for kprobes and tracepoints may call. */
static const struct verifier_since verifier_helpers[] = {
	SINCE(BPF_FUNC_map_lookup_elem, "d0003ec01c66", 3, 19),
	SINCE(BPF_FUNC_map_update_elem, "d0003ec01c66", 3, 19),
	SINCE(BPF_FUNC_map_delete_elem, "d0003ec01c66", 3, 19),
	SINCE(BPF_FUNC_probe_read, "2541517c32be", 4, 1),
	SINCE(BPF_FUNC_ktime_get_ns, "d9847d310ab4", 4, 1),
	SINCE(BPF_FUNC_get_current_pid_tgid, "ffeedafbf023", 4, 2),
	SINCE(BPF_FUNC_get_current_uid_gid, "ffeedafbf023", 4, 2),
	SINCE(BPF_FUNC_get_current_comm, "ffeedafbf023", 4, 2),
	SINCE(BPF_FUNC_perf_event_output, "a43eec304259", 4, 4),
	SINCE(BPF_FUNC_get_current_task, "606274c5abd8", 4, 8),
	SINCE(BPF_FUNC_probe_read_str, "a5e8c07059d0", 4, 11),
	SINCE(BPF_FUNC_get_stack, "c195651e565a", 4, 18),
	SINCE(BPF_FUNC_probe_read_user, "6ae08ae3dea2", 5, 5),
	SINCE(BPF_FUNC_probe_read_kernel, "6ae08ae3dea2", 5, 5),
	SINCE(BPF_FUNC_probe_read_user_str, "6ae08ae3dea2", 5, 5),
	SINCE(BPF_FUNC_probe_read_kernel_str, "6ae08ae3dea2", 5, 5),
	SINCE(BPF_FUNC_get_ns_current_pid_tgid, "b4490c5c4e02", 5, 7),
	SINCE(BPF_FUNC_ringbuf_output, "457f44363a88", 5, 8),
	SINCE(BPF_FUNC_ringbuf_reserve, "457f44363a88", 5, 8),
	SINCE(BPF_FUNC_ringbuf_submit, "457f44363a88", 5, 8),
	SINCE(BPF_FUNC_ringbuf_discard, "457f44363a88", 5, 8),
	SINCE(BPF_FUNC_get_current_task_btf, "3ca1032ab7ab", 5, 11),
	SINCE(BPF_FUNC_get_attach_cookie, "7adfc6c9b315", 5, 15),
	SINCE(BPF_FUNC_task_pt_regs, "dd6e10fbd9fb", 5, 15),
	{ 0, 0, NULL },
};

/* Return whether @table has @number, since @release or earlier. */
static inline bool verifier_knows(const struct verifier_since *table, uint32_t number,
				  uint32_t release)
{
	for (; table->commit; table++)
		if (table->number == number)
			return table->release <= release;
	return false;
}

/* Return why a kernel of @release does not know the instruction @insn, or NULL. */
static inline const char *verifier_insn(const struct bpf_insn *insn, uint32_t release)
{
	uint8_t class = BPF_CLASS(insn->code), mode = BPF_MODE(insn->code);
	bool alu = class == BPF_ALU || class == BPF_ALU64;

	if (insn->dst_reg > BPF_REG_10 || insn->src_reg > BPF_REG_10)
		return "an unknown register";
	if (insn->code == (BPF_JMP32 | BPF_JA) && release < VERIFIER_RELEASE(6, 6))
		return "a long jump (4cd58e9af8b9, 6.6)";
	if (class == BPF_STX && mode == BPF_ATOMIC && insn->imm &&
	    release < VERIFIER_RELEASE(5, 12))
		return "an atomic instruction that is not XADD (5ca419f2864a, 5.12)";
	if (class == BPF_LDX && mode == 0x80 && release < VERIFIER_RELEASE(6, 6))
		return "a load with sign extension (1f9a1ea821ff, 6.6)";
	if (alu && insn->off && release < VERIFIER_RELEASE(6, 6))
		return "signed division or extension (ec0e2da95f72, 6.6)";
	if (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == 0 &&
	    !verifier_knows(verifier_helpers, (uint32_t)insn->imm, release))
		return "an unknown helper";
	if (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg > BPF_PSEUDO_CALL &&
	    release < VERIFIER_RELEASE(5, 13))
		return "a function of the kernel (e6ac2450d6de, 5.13)";
	return NULL;
}

/* State of the search for jumps back. */
struct verifier_graph {
	const struct bpf_insn *insns;
	uint32_t count, depth;
	uint32_t *stack;
	uint8_t *seen;		/* by instruction: NEW, on the stack, done */
	bool back;		/* there is a jump back */
};

/* Visit what follows @root. Return false if it leaves the program. */
static inline bool verifier_visit(struct verifier_graph *g, uint32_t root)
{
	enum { NEW, ON_STACK, DONE };
	uint32_t next;

	if (root >= g->count)
		return false;
	if (g->seen[root] == NEW)
		g->stack[g->depth++] = root;
	while (g->depth) {
		uint32_t pc = g->stack[g->depth - 1];
		bool leaf = true;

		g->seen[pc] = ON_STACK;
		for (int i = 0; i < 2 && leaf; i++) {
			if (!insn_next(&g->insns[pc], pc, i, &next))
				continue;
			if (next >= g->count)
				return false;
			g->back |= g->seen[next] == ON_STACK;
			leaf = g->seen[next] != NEW;
		}
		if (leaf)
			g->seen[g->stack[--g->depth]] = DONE;
		else
			g->stack[g->depth++] = next;
	}
	return true;
}

/* Return why check_cfg() refuses the graph, or NULL. */
static inline const char *verifier_flow(struct verifier_graph *g)
{
	bool inside = verifier_visit(g, 0);

	for (uint32_t i = 0; i < g->count && inside; i++)
		if (g->seen[i] && insn_calls_function(&g->insns[i]))
			inside = verifier_visit(g, i + 1 + (uint32_t)g->insns[i].imm);
	/* A function that is called from one before it. */
	for (uint32_t i = 0; i < g->count && inside; i++) {
		if (insn_calls_function(&g->insns[i]))
			inside = verifier_visit(g, i + 1 + (uint32_t)g->insns[i].imm);
		if (!g->seen[i] && (!i || !insn_is_wide(&g->insns[i - 1])))
			return "an instruction that is not reached";
	}
	if (!inside)
		return "a jump out of the program";
	return NULL;
}

/* Return the stack of the function from @start to before @end, bytes as rounded by the kernel. */
static inline uint32_t verifier_stack_of(const struct bpf_insn *insns, uint32_t start,
					 uint32_t end)
{
	uint16_t addresses = 1u << BPF_REG_10;	/* registers that have an address on the stack */
	int32_t lowest = -1;

	for (uint32_t i = start; i < end; i++) {
		const struct bpf_insn *insn = &insns[i];
		uint8_t class = BPF_CLASS(insn->code);
		int32_t at = 0;

		if (class == BPF_LDX && insn->src_reg == BPF_REG_10)
			at = insn->off;
		if ((class == BPF_ST || class == BPF_STX) && insn->dst_reg == BPF_REG_10)
			at = insn->off;
		/* An address in the frame is R10 minus a constant. */
		if (insn->code == (BPF_ALU64 | BPF_ADD | BPF_K) && addresses >> insn->dst_reg & 1)
			at = insn->imm;
		addresses &= (uint16_t)~insn_sets(insn) | 1u << BPF_REG_10;
		if (insn->code == (BPF_ALU64 | BPF_MOV | BPF_X) && insn->src_reg == BPF_REG_10)
			addresses |= (uint16_t)(1u << insn->dst_reg);
		lowest = at < lowest ? at : lowest;
		i += insn_is_wide(insn);
	}
	return ((uint32_t)-lowest + 31) & ~31u;
}

/*
 * Return whether the stack of the function at @start and of those that it calls has at most @left
 * bytes. No more than @frames may be nested; functions follow each other.
 */
static inline bool verifier_stack_fits(const struct verifier_graph *g, const uint8_t *starts,
				       uint32_t start, uint32_t left, int frames)
{
	uint32_t end = start + 1, size;

	while (end < g->count && !starts[end])
		end++;
	size = verifier_stack_of(g->insns, start, end);
	if (size > left || !frames)
		return false;
	for (uint32_t i = start; i < end; i++)
		if (insn_calls_function(&g->insns[i]) &&
		    !verifier_stack_fits(g, starts, i + 1 + (uint32_t)g->insns[i].imm, left - size,
					 frames - 1))
			return false;
	return true;
}

/*
 * Return why check_max_stack_depth() refuses the graph, or NULL. 6.9 with the JIT rounds each frame
 * to 16 bytes and 6.13 gives functions stacks of their own; without the JIT, none does.
 */
static inline const char *verifier_stack(const struct verifier_graph *g)
{
	uint8_t *starts = calloc(g->count, 1);
	bool fits;

	if (!starts)
		return "no memory";
	for (uint32_t i = 0; i < g->count; i++)
		if (insn_calls_function(&g->insns[i]))
			starts[i + 1 + (uint32_t)g->insns[i].imm] = 1;
	fits = verifier_stack_fits(g, starts, 0, VERIFIER_STACK, VERIFIER_FRAMES);
	free(starts);
	return fits ? NULL : "more than 512 bytes of stack or 8 frames (70a87ffea8ac, 4.16)";
}

/* Return why a kernel of @release refuses the program, or NULL. *@at: the instruction, or 0. */
static inline const char *verifier_refuses(const struct bpf_insn *insns, uint32_t count,
					   uint32_t release, uint32_t *at)
{
	struct verifier_graph graph = { .insns = insns, .count = count };
	struct verifier_state *states;
	const char *why = NULL;

	*at = 0;
	for (uint32_t i = 0; i < count && !why; i++) {
		*at = i;
		why = verifier_insn(&insns[i], release);
		i += insn_is_wide(&insns[i]);
	}
	if (why)
		return why;
	*at = 0;
	graph.stack = calloc(count + 1, sizeof(*graph.stack));
	graph.seen = calloc(count + 1, sizeof(*graph.seen));
	states = calloc(count + 1, sizeof(*states));
	why = graph.stack && graph.seen && states ? verifier_flow(&graph) : "no memory";
	why = why ? why : verifier_stack(&graph);
	if (!why && !graph.back && release < VERIFIER_RELEASE(5, 12))
		why = verifier_ranges(insns, count, states, release, at);
	free(states);
	free(graph.stack);
	free(graph.seen);
	return why;
}

#undef SINCE

#endif
