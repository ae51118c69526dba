// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Each rule of tests/unit/verifier.h: what a kernel refuses, and the release that accepts it. */
#include "tests/unit/verifier.h"

#include "tests/unit/check.h"
#include "tests/unit/load.h"

#define END		ALU(BPF_MOV, 0, 0), EXIT
#define CALL_FUNCTION(to) \
	{ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = (to) }
#define CALL_NEXT	CALL_FUNCTION(1), EXIT

/* Releases before @release refuse the @n instructions for a reason with @word, it accepts them. */
static void check_since(const struct bpf_insn *insns, uint32_t n, uint32_t release,
			const char *word)
{
	uint32_t at;
	const char *before = verifier_refuses(insns, n, release - 1, &at);
	const char *since = verifier_refuses(insns, n, release, &at);

	CHECK(before && strstr(before, word), "%s, not %s", before ? before : "accepted", word);
	CHECK(!since, "%s: %s at %u", word, since, at);
}

#define SINCE_RELEASE(insns, major, minor, word)	\
	check_since(insns, sizeof(insns) / sizeof(*(insns)), VERIFIER_RELEASE(major, minor), word)

/* Check the reason with which 5.4 refuses the @n instructions; NULL: it accepts them. */
static void check_refused(const struct bpf_insn *insns, uint32_t n, const char *word)
{
	uint32_t at;
	const char *why = verifier_refuses(insns, n, VERIFIER_RELEASE(5, 4), &at);

	CHECK(word ? why && strstr(why, word) : !why, "%s at %u, not %s", why ? why : "accepted",
	      at, word ? word : "accepted");
}

#define REFUSED(insns, word)	check_refused(insns, sizeof(insns) / sizeof(*(insns)), word)

static void instructions(void)
{
	static const struct bpf_insn fetch[] = {
		ALU(BPF_MOV, 0, 0),
		{ .code = BPF_STX | BPF_ATOMIC | BPF_DW, .dst_reg = 10, .off = -8,
		  .imm = BPF_FETCH },
		EXIT,
	};
	static const struct bpf_insn extended[] = {
		{ .code = BPF_LDX | 0x80 | BPF_B, .src_reg = 1 }, EXIT,
	};
	static const struct bpf_insn division[] = {
		ALU(BPF_MOV, 0, 9), { .code = BPF_ALU64 | BPF_DIV | BPF_K, .imm = 3, .off = 1 },
		EXIT,
	};
	static const struct bpf_insn kernel[] = {
		{ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_KFUNC_CALL }, END,
	};

	SINCE_RELEASE(fetch, 5, 12, "atomic");
	SINCE_RELEASE(extended, 6, 6, "sign extension");
	SINCE_RELEASE(division, 6, 6, "signed division");
	SINCE_RELEASE(kernel, 5, 13, "function of the kernel");
}

static void helpers(void)
{
	struct bpf_insn insns[] = {
		ALU(BPF_MOV, 2, 8), ALU(BPF_MOV, 3, 8), ALU(BPF_MOV, 5, 8), CALL(0), END,
	};
	uint32_t at;

	for (const struct verifier_since *row = verifier_helpers; row->commit; row++) {
		insns[3].imm = (int32_t)row->number;
		check_since(insns, 6, row->release, "helper");
	}
	insns[3].imm = 9999;
	CHECK(verifier_refuses(insns, 6, UINT32_MAX, &at));
}

static void flow(void)
{
	static const struct bpf_insn loop[] = {
		ALU(BPF_MOV, 0, 0), ALU(BPF_ADD, 0, 1), JUMP(BPF_JLT, 0, 9, -2), EXIT,
	};
	static const struct bpf_insn unreached[] = { END, EXIT };
	static const struct bpf_insn outside[] = { JUMP(BPF_JA, 0, 0, 7), EXIT };
	static const struct bpf_insn called[] = {
		CALL_NEXT, END,
	};

	REFUSED(loop, NULL);
	REFUSED(unreached, "not reached");
	REFUSED(outside, "out of the program");
	REFUSED(called, NULL);
}

#define STORE(at)	{ .code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = 10, .off = (at) }

/* Fill @insns with @functions, each of which calls the next one, and a last one. */
static void deep(struct bpf_insn *insns, int functions)
{
	static const struct bpf_insn one[] = { CALL_NEXT, END };

	for (int i = 0; i < functions; i++)
		memcpy(&insns[2 * i], one, sizeof(one));
}

static void stack(void)
{
	static const struct bpf_insn large[] = { STORE(-480), CALL_NEXT, STORE(-32), END };
	static const struct bpf_insn too_large[] = { STORE(-480), CALL_NEXT, STORE(-40), END };
	static const struct bpf_insn rounded[] = { STORE(-488), CALL_NEXT, STORE(-8), END };
	static const struct bpf_insn addressed[] = {
		STORE(-256), CALL_NEXT, ALU_X(BPF_MOV, 1, 10), ALU(BPF_ADD, 1, -264), END,
	};
	struct bpf_insn nested[2 * 9 + 2];

	REFUSED(large, NULL);
	REFUSED(too_large, "512 bytes");
	REFUSED(rounded, "512 bytes");
	REFUSED(addressed, "512 bytes");
	deep(nested, 7);
	check_refused(nested, 16, NULL);
	deep(nested, 8);
	check_refused(nested, 18, "512 bytes");
}

/* R1 = a number from a map, of which R0 is a value; without one, skip @n instructions. */
#define VALUE_OF_MAP(n)							\
	CALL(BPF_FUNC_map_lookup_elem), JUMP(BPF_JEQ, 0, 0, 1 + (n)),	\
	{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 1, .src_reg = 0 }
/* Read @size bytes at address 0 to 16 below the top of the stack. */
#define READ(size)							\
	ALU_X(BPF_MOV, 1, 10), ALU(BPF_ADD, 1, -16), ALU(BPF_MOV, 2, size), ALU(BPF_MOV, 3, 0),	\
	CALL(BPF_FUNC_probe_read)
#define LOAD(dst, src, at) \
	{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = (dst), .src_reg = (src), .off = (at) }

static void ranges(void)
{
	static const struct bpf_insn bounded[] = {
		VALUE_OF_MAP(3), JUMP(BPF_JGT, 1, 10, 2), ALU(BPF_LSH, 1, 3),
		ALU_X(BPF_ADD, 0, 1), END,
	};
	static const struct bpf_insn masked[] = {
		VALUE_OF_MAP(3), ALU(BPF_AND, 1, 7), ALU(BPF_LSH, 1, 3), ALU_X(BPF_ADD, 0, 1), END,
	};
	/* As clang compiled it. */
	static const struct bpf_insn copied[] = {
		VALUE_OF_MAP(4), ALU_X(BPF_MOV, 2, 1), JUMP(BPF_JGT, 2, 10, 2), ALU(BPF_LSH, 1, 3),
		ALU_X(BPF_ADD, 0, 1), END,
	};
	static const struct bpf_insn merged[] = {
		VALUE_OF_MAP(3), JUMP(BPF_JSET, 1, 1, 1), ALU(BPF_AND, 1, 7),
		ALU_X(BPF_ADD, 0, 1), END,
	};
	/* In a function that is called with the address. */
	static const struct bpf_insn passed[] = {
		CALL_NEXT,
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 2, .src_reg = 10, .off = -8 },
		CALL(BPF_FUNC_ktime_get_ns), ALU_X(BPF_ADD, 6, 0),
		{ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = 6 }, END,
	};
	static const struct bpf_insn other[] = { ALU_X(BPF_MOV, 1, 10), ALU(BPF_OR, 1, 8), END };
	static const struct bpf_insn on_stack[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_B, .dst_reg = 2, .src_reg = 1 },
		ALU_X(BPF_MOV, 1, 10), ALU_X(BPF_ADD, 1, 2), END,
	};
	/* The place depends on what a helper wrote. */
	static const struct bpf_insn by_stack[] = {
		READ(16), LOAD(1, 10, -8), JUMP(BPF_JGT, 1, 10, 3), ALU_X(BPF_MOV, 2, 10),
		ALU_X(BPF_ADD, 2, 1),
		{ .code = BPF_ST | BPF_MEM | BPF_B, .dst_reg = 2, .off = -64 }, END,
	};

	/* On one of the paths the place is a constant. */
	static const struct bpf_insn lesser[] = {
		CALL(BPF_FUNC_ktime_get_ns), ALU(BPF_MOV, 2, 15), JUMP(BPF_JGT, 0, 15, 1),
		ALU_X(BPF_MOV, 2, 0), ALU_X(BPF_MOV, 1, 10), ALU_X(BPF_ADD, 1, 2),
		{ .code = BPF_ST | BPF_MEM | BPF_B, .dst_reg = 1, .off = -16 }, END,
	};
	static const struct bpf_insn returned[] = {
		CALL_FUNCTION(6), ALU(BPF_AND, 0, 7), ALU_X(BPF_MOV, 1, 10), ALU_X(BPF_ADD, 1, 0),
		{ .code = BPF_ST | BPF_MEM | BPF_B, .dst_reg = 1, .off = -16 }, END, END,
	};
	static const struct bpf_insn flipped[] = {
		VALUE_OF_MAP(3), ALU(BPF_AND, 1, 7), ALU(BPF_XOR, 1, 1), ALU_X(BPF_ADD, 0, 1), END,
	};
	static const struct bpf_insn unknown[] = { ALU(BPF_MOV, 11, 0), END };

	REFUSED(bounded, NULL);
	REFUSED(masked, NULL);
	SINCE_RELEASE(lesser, 5, 12, "on the stack");
	SINCE_RELEASE(returned, 5, 12, "on the stack");
	SINCE_RELEASE(flipped, 5, 10, "without a bound");
	REFUSED(unknown, "unknown register");
	SINCE_RELEASE(copied, 5, 10, "without a bound");
	REFUSED(merged, "without a bound");
	REFUSED(passed, "without a bound");
	REFUSED(other, "on a pointer");
	SINCE_RELEASE(on_stack, 5, 12, "on the stack");
	SINCE_RELEASE(by_stack, 5, 12, "on the stack");
}

/* Values on the stack, and the sizes that helpers are given. */
static void stored(void)
{
	static const struct bpf_insn pointer[] = {
		{ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = 10, .src_reg = 1, .off = -16 },
		VALUE_OF_MAP(3), LOAD(2, 10, -16), ALU_X(BPF_ADD, 2, 1), END,
	};
	static const struct bpf_insn scalar[] = {
		VALUE_OF_MAP(4), ALU(BPF_AND, 1, 7),
		{ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = 10, .src_reg = 1, .off = -16 },
		LOAD(2, 10, -16), ALU_X(BPF_ADD, 0, 2), END,
	};
	static const struct bpf_insn sized[] = {
		READ(16), LOAD(2, 10, -8), JUMP(BPF_JGT, 2, 32, 4), ALU_X(BPF_MOV, 1, 10),
		ALU(BPF_ADD, 1, -32), ALU(BPF_MOV, 3, 0), CALL(BPF_FUNC_probe_read), END,
	};
	static const struct bpf_insn any_size[] = {
		READ(16), LOAD(2, 10, -8), ALU_X(BPF_MOV, 1, 10), ALU(BPF_ADD, 1, -32),
		ALU(BPF_MOV, 3, 0), CALL(BPF_FUNC_probe_read), END,
	};
	static const struct bpf_insn beyond[] = { READ(17), END };
	/* In a function: the number is compared after another was computed from it. */
	static const struct bpf_insn late[] = {
		CALL(BPF_FUNC_ktime_get_ns), ALU_X(BPF_MOV, 1, 0), CALL_NEXT,
		ALU_X(BPF_MOV, 2, 1), ALU(BPF_ADD, 2, 1), JUMP(BPF_JGT, 1, 7, 4),
		ALU_X(BPF_MOV, 1, 10), ALU(BPF_ADD, 1, -32), ALU(BPF_MOV, 3, 0),
		CALL(BPF_FUNC_probe_read), END,
	};

	/* A function is called meanwhile. */
	static const struct bpf_insn kept[] = {
		VALUE_OF_MAP(6), ALU(BPF_AND, 1, 7),
		{ .code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = 10, .src_reg = 1, .off = -16 },
		ALU_X(BPF_MOV, 6, 0), CALL_FUNCTION(4), LOAD(2, 10, -16), ALU_X(BPF_ADD, 6, 2),
		END, END,
	};
	static const struct bpf_insn named[] = {
		ALU_X(BPF_MOV, 1, 10), ALU(BPF_ADD, 1, -16), ALU(BPF_MOV, 2, 16),
		CALL(BPF_FUNC_get_current_comm), VALUE_OF_MAP(2), LOAD(6, 10, -16),
		ALU_X(BPF_ADD, 0, 6), END,
	};
	static const struct bpf_insn sent[] = {
		LOAD(3, 1, 0), ALU_X(BPF_MOV, 2, 10), ALU(BPF_ADD, 2, -8), ALU(BPF_MOV, 4, 0),
		CALL(BPF_FUNC_ringbuf_output), END,
	};

	REFUSED(pointer, "without a bound");
	SINCE_RELEASE(kept, 5, 10, "without a bound");
	SINCE_RELEASE(named, 5, 10, "without a bound");
	SINCE_RELEASE(sent, 5, 10, "a size without a bound");
	SINCE_RELEASE(scalar, 5, 10, "without a bound");
	REFUSED(sized, NULL);
	SINCE_RELEASE(any_size, 5, 10, "a size without a bound");
	REFUSED(beyond, "beyond the stack");
	SINCE_RELEASE(late, 5, 10, "a size without a bound");
}

/* Check the check: what it refuses as malformed, and accepts as new, so does this kernel. */
static void this_kernel_agrees(void)
{
	static const struct bpf_insn good[] = { ALU_X(BPF_MOV, 1, 10), ALU(BPF_ADD, 1, -8), END };
	static const struct bpf_insn bad[] = { END, EXIT };
	const char *why = load_forbidden();

	if (why) {
		SKIP(why);
		return;
	}
	REFUSED(good, NULL);
	CHECK(!load_once(good, 4, false));
	REFUSED(bad, "not reached");
	CHECK(load_once(bad, 3, false));
}

int main(void)
{
	RUN(instructions);
	RUN(helpers);
	RUN(flow);
	RUN(stack);
	RUN(ranges);
	RUN(stored);
	RUN(this_kernel_agrees);
	return check_done();
}
