/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ranges of registers, as the verifiers of older kernels determine them: see verifier.h. */
#ifndef TESTS_UNIT_VERIFIER_RANGE_H
#define TESTS_UNIT_VERIFIER_RANGE_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "loader/insn.h"

#define VERIFIER_STACK		512	/* bytes, of all functions that are nested */
#define VERIFIER_RELEASE(major, minor)	((uint32_t)(major) << 8 | (minor))

/*
 * Ranges. Before 5.10 (75748837b7e5) a comparison bounds the register that it names, and no copy.
 * So each register has its own largest value; only constants and comparisons with them bound it.
 * On the stack a pointer is kept, and before 5689d49b71ad (5.10) no bound of a scalar.
 */
struct verifier_range {
	/* WILD: what was not seen plus a scalar without a bound; it must not be a pointer. */
	enum range_kind {
		RANGE_UNSEEN, RANGE_WILD, RANGE_SCALAR, RANGE_POINTER, RANGE_STACK
	} kind;
	uint64_t max;	/* of a scalar, unsigned; of an address on the stack: how far below R10 */
	bool exact;	/* the scalar is ->max */
};

struct verifier_state {
	bool reached;
	struct verifier_range regs[MAX_BPF_REG];
	struct verifier_range stack[VERIFIER_STACK / 8];	/* the last one is the lowest */
};

static inline struct verifier_range verifier_range(enum range_kind kind, uint64_t max)
{
	return (struct verifier_range){ kind, max, false };
}

/* Return the range of what may have any value. */
static inline struct verifier_range verifier_unbounded(void)
{
	return verifier_range(RANGE_SCALAR, UINT64_MAX);
}

#define RANGE_UNBOUNDED	(1ull << 29)	/* BPF_MAX_VAR_OFF */

/* Merge the @n ranges @b into @a, those where two paths meet; @first: the first path. */
static inline void verifier_join_ranges(struct verifier_range *a, const struct verifier_range *b,
					int n, bool first)
{
	for (; n; n--, a++, b++) {
		if (!first && a->kind != b->kind)
			a->kind = a->kind == RANGE_WILD || b->kind == RANGE_WILD ? RANGE_WILD :
										   RANGE_UNSEEN;
		else if (first || a->max < b->max)
			*a = (struct verifier_range){ b->kind, b->max, first && b->exact };
		else
			a->exact &= b->exact && a->max == b->max;
	}
}

/* Merge @from into @to, the state where two paths meet. */
static inline void verifier_join(struct verifier_state *to, const struct verifier_state *from)
{
	verifier_join_ranges(to->regs, from->regs, MAX_BPF_REG, !to->reached);
	verifier_join_ranges(to->stack, from->stack, VERIFIER_STACK / 8, !to->reached);
	to->reached = true;
}

/* Return all bits up to the highest one of @value. */
static inline uint64_t verifier_bits(uint64_t value)
{
	return value ? UINT64_MAX >> __builtin_clzll(value) : 0;
}

/*
 * Return the largest result of @op for operands up to @a and @b; @constant: @b is exact; @exact:
 * both are.
 */
static inline uint64_t verifier_result(uint8_t op, uint64_t a, uint64_t b, bool constant,
				       bool exact)
{
	uint64_t result;

	switch (op) {
	case BPF_MOV:
		return b;
	case BPF_ADD:
		if (exact)
			return a + b;
		return __builtin_add_overflow(a, b, &result) ? UINT64_MAX : result;
	case BPF_MUL:
		return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
	case BPF_AND:
		return a < b ? a : b;
	case BPF_OR:
		return verifier_bits(a | b);
	case BPF_LSH:
		return constant && b < 64 && a <= UINT64_MAX >> b ? a << b : UINT64_MAX;
	case BPF_RSH:
		return constant && b < 64 ? a >> b : a;
	default:
		return UINT64_MAX;
	}
}

/* Return the result of @insn for operands of which one was not seen. */
static inline struct verifier_range verifier_unseen(const struct bpf_insn *insn,
						    const struct verifier_range *dst,
						    const struct verifier_range *src)
{
	bool constant = BPF_SRC(insn->code) == BPF_K;
	bool wild = dst->kind == RANGE_WILD || src->kind == RANGE_WILD ||
		    (dst->kind == RANGE_SCALAR && dst->max >= RANGE_UNBOUNDED) ||
		    (src->kind == RANGE_SCALAR && src->max >= RANGE_UNBOUNDED && !constant);

	/* A constant bounds also what was not seen. */
	if (BPF_OP(insn->code) == BPF_AND && constant && insn->imm >= 0)
		return verifier_range(RANGE_SCALAR, src->max);
	wild &= insn->code == (BPF_ALU64 | BPF_ADD | BPF_X) ||
		(constant && (BPF_OP(insn->code) == BPF_ADD || BPF_OP(insn->code) == BPF_SUB));
	return verifier_range(wild ? RANGE_WILD : RANGE_UNSEEN, 0);
}

/*
 * Apply the arithmetic @insn, + or - of the scalar @src, to the pointer @dst. Return why @release
 * refuses it, or NULL.
 */
static inline const char *verifier_move(struct verifier_range *dst, const struct bpf_insn *insn,
					const struct verifier_range *src, uint32_t release)
{
	if (src->kind == RANGE_SCALAR && !src->exact && dst->kind == RANGE_STACK &&
	    release < VERIFIER_RELEASE(5, 12))
		return "a variable place on the stack (01f810ace9ed, 5.12)";
	if ((src->kind == RANGE_WILD ||
	     (src->kind == RANGE_SCALAR && !src->exact && src->max >= RANGE_UNBOUNDED)) &&
	    release < VERIFIER_RELEASE(5, 10))
		return "an index without a bound";
	if (src->kind > RANGE_SCALAR)
		*dst = verifier_unbounded();
	else if (dst->kind == RANGE_STACK)
		dst->max -= BPF_OP(insn->code) == BPF_ADD ? src->max : -src->max;
	return NULL;
}

/* Apply the arithmetic @insn to @regs. Return why @release refuses it, or NULL. */
static inline const char *verifier_alu(struct verifier_range *regs, const struct bpf_insn *insn,
				       uint32_t release)
{
	bool wide = BPF_CLASS(insn->code) == BPF_ALU64, constant = BPF_SRC(insn->code) == BPF_K;
	struct verifier_range *dst = &regs[insn->dst_reg], src = regs[insn->src_reg];
	uint8_t op = BPF_OP(insn->code);

	if (constant || op == BPF_NEG || op == BPF_END)
		src = (struct verifier_range){ RANGE_SCALAR, (uint64_t)(int64_t)insn->imm, true };
	if (op == BPF_MOV && wide) {
		*dst = src;
		return NULL;
	}
	if (op != BPF_MOV && dst->kind == RANGE_SCALAR && src.kind > RANGE_SCALAR) {
		struct verifier_range swap = *dst;

		*dst = src;
		src = swap;
	}
	if (op != BPF_MOV && dst->kind > RANGE_SCALAR) {
		if (!wide || (op != BPF_ADD && op != BPF_SUB))
			return "arithmetic on a pointer other than + and -";
		return verifier_move(dst, insn, &src, release);
	}
	if (op != BPF_MOV && (dst->kind < RANGE_SCALAR || src.kind < RANGE_SCALAR)) {
		*dst = verifier_unseen(insn, dst, &src);
		return NULL;
	}
	if (!wide && src.kind == RANGE_SCALAR)
		src.max = constant ? (uint32_t)insn->imm :
			  src.max > UINT32_MAX ? UINT32_MAX : src.max;
	if (!wide && dst->max > UINT32_MAX)
		dst->max = UINT32_MAX;
	dst->max = src.kind == RANGE_SCALAR ? verifier_result(op, dst->max, src.max, constant,
							      dst->exact && src.exact) :
					      UINT32_MAX;
	dst->exact = (op == BPF_MOV || (op == BPF_ADD && dst->exact)) && src.exact;
	dst->kind = RANGE_SCALAR;
	if (!wide && dst->max > UINT32_MAX)
		dst->max = dst->exact ? (uint32_t)dst->max : UINT32_MAX;
	if (op == BPF_END)
		*dst = verifier_unbounded();
	return NULL;
}

/* Return whether the memory access @insn is by an index without a bound. */
static inline bool verifier_is_wild(const struct verifier_range *regs, const struct bpf_insn *insn)
{
	uint8_t class = BPF_CLASS(insn->code);

	return (class == BPF_LDX && regs[insn->src_reg].kind == RANGE_WILD) ||
	       ((class == BPF_ST || class == BPF_STX) && regs[insn->dst_reg].kind == RANGE_WILD);
}

/* Return the place on the stack @off bytes from the address @base; NULL: none, or unknown. */
static inline struct verifier_range *verifier_slot(struct verifier_state *state,
						   const struct verifier_range *base, int off)
{
	uint64_t below = base->max - (uint64_t)(int64_t)off;

	return base->kind == RANGE_STACK && below && below <= VERIFIER_STACK ?
		       &state->stack[(below - 1) / 8] : NULL;
}

/* Apply the store @insn. */
static inline void verifier_store(struct verifier_state *state, const struct bpf_insn *insn)
{
	struct verifier_range *slot = verifier_slot(state, &state->regs[insn->dst_reg], insn->off);
	const struct verifier_range *value = &state->regs[insn->src_reg];
	bool kept = insn->code == (BPF_STX | BPF_MEM | BPF_DW) && value->kind != RANGE_SCALAR;

	if (slot)
		*slot = kept ? *value : verifier_unbounded();
}

/* Apply the load @insn from memory. */
static inline void verifier_load(struct verifier_state *state, const struct bpf_insn *insn)
{
	static const uint64_t sizes[] = { UINT32_MAX, UINT16_MAX, UINT8_MAX, UINT64_MAX };
	struct verifier_range *dst = &state->regs[insn->dst_reg];
	const struct verifier_range *src = &state->regs[insn->src_reg];
	const struct verifier_range *slot = verifier_slot(state, src, insn->off);
	bool whole = BPF_SIZE(insn->code) == BPF_DW;

	if (whole && src->kind != RANGE_POINTER)
		*dst = slot ? *slot : verifier_range(RANGE_UNSEEN, 0);
	else
		*dst = verifier_range(RANGE_SCALAR, sizes[BPF_SIZE(insn->code) >> 3]);
}

/* Return the register with the size of what helper @number reads or writes, or 0. */
static inline int verifier_size(int32_t number)
{
	if (number == BPF_FUNC_probe_read || number == BPF_FUNC_probe_read_str ||
	    number == BPF_FUNC_get_current_comm ||
	    (number >= BPF_FUNC_probe_read_user && number <= BPF_FUNC_probe_read_kernel_str))
		return BPF_REG_2;
	if (number == BPF_FUNC_ringbuf_output)
		return BPF_REG_3;
	return number == BPF_FUNC_perf_event_output ? BPF_REG_5 : 0;
}

/* Apply the call @insn. Return why @release refuses it, or NULL. */
static inline const char *verifier_call(struct verifier_state *state, const struct bpf_insn *insn,
					uint32_t release)
{
	bool pointer = insn->imm == BPF_FUNC_map_lookup_elem ||
		       insn->imm == BPF_FUNC_ringbuf_reserve;
	int n = insn->src_reg ? 0 : verifier_size(insn->imm);
	const struct verifier_range *size = &state->regs[n], *to = &state->regs[BPF_REG_1];

	if (n && release < VERIFIER_RELEASE(5, 10)) {
		if (size->kind != RANGE_SCALAR || size->max >= RANGE_UNBOUNDED)
			return "a size without a bound";
		if (n == BPF_REG_2 && to->kind == RANGE_STACK && size->max > to->max)
			return "a size beyond the stack";
	}
	for (int i = 0; n == BPF_REG_2 && i < VERIFIER_STACK && (uint64_t)i < size->max; i++) {
		struct verifier_range *slot = verifier_slot(state, to, i);

		if (slot)
			*slot = verifier_unbounded();
	}
	/* A function may write pointers to what it has an address of. */
	for (int i = 0; insn->src_reg && i < VERIFIER_STACK / 8; i++)
		if (state->stack[i].kind > RANGE_SCALAR)
			state->stack[i] = verifier_range(RANGE_UNSEEN, 0);
	memset(state->regs, 0, (BPF_REG_5 + 1) * sizeof(*state->regs));
	if (!insn->src_reg)
		state->regs[BPF_REG_0] = verifier_range(pointer ? RANGE_POINTER : RANGE_SCALAR,
							UINT64_MAX);
	return NULL;
}

/* Apply @insn, except a branch, to @state. Return why @release refuses it, or NULL. */
static inline const char *verifier_apply(struct verifier_state *state, const struct bpf_insn *insn,
					 uint32_t release)
{
	switch (BPF_CLASS(insn->code)) {
	case BPF_ALU:
	case BPF_ALU64:
		return verifier_alu(state->regs, insn, release);
	case BPF_LDX:
		verifier_load(state, insn);
		return NULL;
	case BPF_ST:
	case BPF_STX:
		verifier_store(state, insn);
		return NULL;
	default:
		if (insn_is_wide(insn))
			state->regs[insn->dst_reg] = (struct verifier_range){
				insn->src_reg ? RANGE_UNSEEN : RANGE_SCALAR,
				(uint32_t)insn->imm | (uint64_t)(uint32_t)insn[1].imm << 32,
				!insn->src_reg
			};
		return insn->code == (BPF_JMP | BPF_CALL) ? verifier_call(state, insn, release) :
							    NULL;
	}
}

/* Add what follows from the jump @insn, @taken or not. */
static inline void verifier_compare(struct verifier_range *regs, const struct bpf_insn *insn,
				    bool taken)
{
	struct verifier_range *dst = &regs[insn->dst_reg];
	uint64_t k = (uint64_t)(int64_t)insn->imm, max = UINT64_MAX;
	uint8_t op = BPF_OP(insn->code);

	if (BPF_CLASS(insn->code) != BPF_JMP || BPF_SRC(insn->code) != BPF_K ||
	    dst->kind > RANGE_SCALAR)
		return;
	if ((op == BPF_JGT && !taken) || (op == BPF_JLE && taken) || (op == BPF_JEQ && taken) ||
	    (op == BPF_JNE && !taken))
		max = k;
	if (k && ((op == BPF_JGE && !taken) || (op == BPF_JLT && taken)))
		max = k - 1;
	/* Only a number is compared so. */
	if (dst->kind < RANGE_SCALAR && k && max != UINT64_MAX)
		*dst = verifier_unbounded();
	if (dst->kind == RANGE_SCALAR && dst->max > max)
		dst->max = max;
}

/* Add to the state @to of a function's first instruction that it is called in the state @from. */
static inline void verifier_enter(struct verifier_state *to, const struct verifier_state *from)
{
	struct verifier_state entry = { .reached = true };

	/* The caller's stack is not followed. */
	for (int i = BPF_REG_1; i <= BPF_REG_5; i++)
		if (from->regs[i].kind != RANGE_STACK)
			entry.regs[i] = from->regs[i];
	entry.regs[BPF_REG_10].kind = RANGE_STACK;
	verifier_join(to, &entry);
}

/* Return why @release refuses the program, whose jumps lead forward; or NULL. */
static inline const char *verifier_ranges(const struct bpf_insn *insns, uint32_t count,
					  struct verifier_state *states, uint32_t release,
					  uint32_t *at)
{
	const struct verifier_state entry = {
		.reached = true, .regs[BPF_REG_1] = { RANGE_POINTER, 0, false },
		.regs[BPF_REG_10] = { RANGE_STACK, 0, false },
	};
	const char *why = NULL;
	uint32_t next;

	verifier_join(&states[0], &entry);
	for (uint32_t pc = 0; pc < count && !why; pc++) {
		const struct bpf_insn *insn = &insns[pc];

		*at = pc;
		if (!states[pc].reached) {
			/* A function before its caller: see verifier_enter(). */
			states[pc].reached = true;
			states[pc].regs[BPF_REG_10].kind = RANGE_STACK;
		}
		if (verifier_is_wild(states[pc].regs, insn) &&
		    release < VERIFIER_RELEASE(5, 10))
			return "an index without a bound";
		/* verifier_flow() has found that its first instruction is in the program. */
		if (insn_calls_function(insn) && insn->imm >= 0)
			verifier_enter(&states[pc + 1 + (uint32_t)insn->imm], &states[pc]);
		for (int i = 0; i < 2 && !why; i++) {
			struct verifier_state after = states[pc];

			if (!insn_next(insn, pc, i, &next) || next <= pc || next >= count)
				continue;
			if (insn_is_branch(insn))
				verifier_compare(after.regs, insn, i);
			else
				why = verifier_apply(&after, insn, release);
			verifier_join(&states[next], &after);
		}
		pc += insn_is_wide(insn);
	}
	return why;
}

#endif
