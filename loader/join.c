// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/join.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/*
 * The layout of a joined program of n parts:
 *
 *	0		r6 = ctx
 *	1		r0 = bpf_get_attach_cookie(ctx)
 *	2		r1 = r6
 *	3		if r0 == n - 1 goto the body of part n - 1
 *	...
 *	n + 2		if r0 == 0 goto the body of part 0
 *	n + 3		r0 = 0
 *	n + 4		exit
 *	n + 5		the bodies: part n - 1, ..., part 0
 *	...		their functions: of part n - 1, ..., of part 0
 *
 * A part is linked as its body followed by the functions that it calls. Both are separated here
 * because the kernel requires each function to be contiguous, and all bodies together are the main
 * function. Calls from a body to its functions are adjusted, as their distance changes; calls among
 * the functions of a part are relative and remain valid. The last part comes first because engine
 * tables have their busiest probe there.
 */
#define JOIN_HEAD	3	/* instructions before the comparisons */
#define JOIN_TAIL	2	/* .. and after them */

/* State of joining; positions are indices of instructions. */
struct join {
	struct bpf_insn *insns;
	uint32_t at;			/* the next instruction of the head */
	uint32_t body, functions;	/* positions of the next part's body and functions */
};

static bool is_local_call(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL;
}

uint32_t join_fit(const struct join_part *parts, uint32_t nparts, uint32_t max)
{
	uint32_t used = JOIN_HEAD + JOIN_TAIL, functions = 1, n;

	for (n = 0; n < nparts; n++) {
		const struct join_part *part = &parts[n];

		if (used > max || part->count + 1 > max - used)
			break;
		used += part->count + 1;
		/* An upper bound: a function that is called twice counts twice. */
		for (uint32_t i = 0; i < part->count; i++)
			functions += is_local_call(&part->insns[i]);
		if (functions > JOIN_FUNCTIONS_MAX)
			break;
	}
	return n;
}

/* Return the length of the body of @part in instructions: up to the first function called. */
static uint32_t part_body(const struct join_part *part)
{
	uint32_t body = part->count;

	for (uint32_t i = 0; i < part->count; i++) {
		uint32_t called = i + 1 + (uint32_t)part->insns[i].imm;

		if (is_local_call(&part->insns[i]) && called < body)
			body = called;
	}
	return body;
}

static void join_put(struct join *join, struct bpf_insn insn)
{
	join->insns[join->at++] = insn;
}

static void join_head(struct join *join)
{
	join_put(join, (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X,
					  .dst_reg = BPF_REG_6, .src_reg = BPF_REG_1 });
	join_put(join, (struct bpf_insn){ .code = BPF_JMP | BPF_CALL,
					  .imm = BPF_FUNC_get_attach_cookie });
	join_put(join, (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X,
					  .dst_reg = BPF_REG_1, .src_reg = BPF_REG_6 });
}

static void join_tail(struct join *join)
{
	join_put(join, (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K });
	join_put(join, (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT });
}

/* Add part @number. Return false if its body calls itself, which the kernel does not permit. */
static bool join_part(struct join *join, const struct join_part *part, uint32_t number)
{
	uint32_t own = part_body(part), moved = join->functions - own - join->body;
	struct bpf_insn *body = join->insns + join->body;

	if (!own)
		return false;
	join_put(join, (struct bpf_insn){ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_0,
					  .off = (int16_t)(join->body - join->at - 1),
					  .imm = (int32_t)number });
	memcpy(body, part->insns, own * sizeof(*body));
	memcpy(join->insns + join->functions, part->insns + own,
	       (part->count - own) * sizeof(*body));
	for (uint32_t i = 0; i < own; i++)
		if (is_local_call(&body[i]))
			body[i].imm += (int32_t)moved;
	join->body += own;
	join->functions += part->count - own;
	return true;
}

int join_programs(const struct join_part *parts, uint32_t nparts, struct bpf_insn *insns,
		  uint32_t max)
{
	struct join join = { .insns = insns, .body = JOIN_HEAD + nparts + JOIN_TAIL };

	if (join_fit(parts, nparts, max) < nparts)
		return -ENOSPC;
	join.functions = join.body;
	for (uint32_t i = 0; i < nparts; i++)
		join.functions += part_body(&parts[i]);
	join_head(&join);
	for (uint32_t i = nparts; i--;)
		if (!join_part(&join, &parts[i], i))
			return -ENOSPC;
	join_tail(&join);
	return (int)join.functions;
}

_Static_assert(JOIN_INSNS_MAX <= INT16_MAX, "a jump reaches each part");
