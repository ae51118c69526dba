/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fold_program() keeps what a program calculates, by the kernel that runs both. */
#include "loader/fold.h"
#include "tests/unit/check.h"
#include "tests/unit/load.h"
#include "tests/unit/random.h"

#define PROGRAMS	(getenv("UNIT_SHORT") ? 50 : 1500)
#define INSNS_MAX	4096
#define COUNTER		8	/* R8 and R9 count the iterations of nested loops */
#define FIRST_SIZE	14	/* of a packet: its Ethernet header */

#define GOTO(to)	{ .code = BPF_JMP | BPF_JA, .off = (to) }
#define WIDE(dst, k)	{ .code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = (dst), .imm = (k) }, { 0 }

/* Fold the @count instructions of @from: the @nwanted of @wanted must be left. */
static void check_folded(const struct bpf_insn *from, uint32_t count,
			 const struct bpf_insn *wanted, int nwanted)
{
	struct bpf_insn insns[64];
	int n;

	memcpy(insns, from, count * sizeof(*insns));
	n = fold_program(insns, count, 64);
	CHECK(n == nwanted, "%d, not %d", n, nwanted);
	for (int i = 0; i < n && i < nwanted; i++)
		CHECK(!memcmp(&insns[i], &wanted[i], sizeof(*insns)), "instruction %d", i);
}

#define FOLDED(from, wanted)						\
	check_folded(from, sizeof(from) / sizeof(*(from)),		\
		     wanted, sizeof(wanted) / sizeof(*(wanted)))

/* The branch that a constant excludes is removed, and so is the comparison. */
static void constants_decide(void)
{
	static const struct bpf_insn from[] = {
		WIDE(6, 1),
		JUMP(BPF_JEQ, 6, 0, 2),
		CALL(BPF_FUNC_ktime_get_ns),
		GOTO(1),
		CALL(BPF_FUNC_get_prandom_u32),
		ALU(BPF_MOV, 0, 0),
		EXIT,
	};
	static const struct bpf_insn wanted[] = {
		CALL(BPF_FUNC_ktime_get_ns), ALU(BPF_MOV, 0, 0), EXIT,
	};

	FOLDED(from, wanted);
}

/* In a branch that an equality leads to, the register has the value. */
static void equality_tells(void)
{
	static const struct bpf_insn from[] = {
		CALL(BPF_FUNC_get_prandom_u32),
		JUMP(BPF_JNE, 0, 7, 2),
		JUMP(BPF_JGT, 0, 6, 1),
		CALL(BPF_FUNC_ktime_get_ns),
		EXIT,
	};
	static const struct bpf_insn wanted[] = {
		CALL(BPF_FUNC_get_prandom_u32), JUMP(BPF_JNE, 0, 7, 0), EXIT,
	};

	FOLDED(from, wanted);
}

/* A register that differs between two paths is not known where they meet. */
static void paths_meet(void)
{
	static const struct bpf_insn from[] = {
		ALU(BPF_MOV, 6, 1),
		CALL(BPF_FUNC_get_prandom_u32),
		JUMP(BPF_JGT, 0, 9, 1),
		ALU(BPF_MOV, 6, 2),
		JUMP(BPF_JEQ, 6, 1, 1),
		ALU(BPF_MOV, 0, 3),
		EXIT,
	};

	FOLDED(from, from);
}

static void malformed(void)
{
	struct bpf_insn outside[] = { GOTO(5), EXIT }, endless[] = { ALU(BPF_MOV, 0, 0), GOTO(-1) };
	struct bpf_insn no_exit[] = { ALU(BPF_MOV, 0, 0) };
	struct bpf_insn half[] = { GOTO(1), WIDE(1, 1), EXIT };
	struct bpf_insn registers[] = { ALU(BPF_MOV, 12, 0), EXIT };
	struct bpf_insn callee[] = { CALL(77), EXIT };
	struct bpf_insn itself[] = {
		CALL(BPF_FUNC_get_prandom_u32), JUMP(BPF_JGT, 0, 1, -1), EXIT,
	};
	struct bpf_insn unbounded[] = {
		CALL(BPF_FUNC_get_prandom_u32), JUMP(BPF_JGT, 0, 1, -2), EXIT,
	};

	callee[0].src_reg = BPF_PSEUDO_CALL;
	CHECK(fold_program(outside, 2, 2) == -ENOEXEC);
	CHECK(fold_program(endless, 2, 2) == -ENOEXEC);
	CHECK(fold_program(no_exit, 1, 1) == -ENOEXEC);
	CHECK(fold_program(half, 4, 4) == -ENOEXEC);
	CHECK(fold_program(half + 1, 1, 1) == -ENOEXEC);
	CHECK(fold_program(registers, 2, 2) == -ENOEXEC);
	CHECK(fold_program(callee, 2, 2) == -ENOEXEC);
	CHECK(fold_program(unbounded, 3, 3) == 3);
	CHECK(fold_program(itself, 3, 3) == 3 && itself[1].off == -1);
}

/* A program that is being generated. */
struct program {
	struct bpf_insn insns[INSNS_MAX];
	int count;
};

static void add(struct program *p, struct bpf_insn insn)
{
	p->insns[p->count++] = insn;
}

/* Return one of R0 and R2 to R7. */
static uint8_t any_register(void)
{
	uint8_t reg = (uint8_t)random_below(7);

	return reg ? reg + 1 : 0;
}

static int32_t any_number(void)
{
	static const int32_t numbers[] = { 0, 1, 2, -1, 0x7fffffff, INT32_MIN };
	size_t i = random_below(sizeof(numbers) / sizeof(*numbers) * 2);

	return i < sizeof(numbers) / sizeof(*numbers) ? numbers[i] : (int32_t)random_next();
}

static void add_alu(struct program *p)
{
	static const uint8_t ops[] = {
		BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_OR, BPF_AND, BPF_LSH, BPF_RSH, BPF_NEG,
		BPF_MOD, BPF_XOR, BPF_MOV, BPF_MOV, BPF_ARSH,
	};
	uint8_t op = ops[random_below(sizeof(ops))];
	uint8_t class = random_next() & 1 ? BPF_ALU64 : BPF_ALU;
	bool shift = op == BPF_LSH || op == BPF_RSH || op == BPF_ARSH;
	struct bpf_insn insn = { .code = class | op, .dst_reg = any_register() };

	if (op == BPF_NEG) {
		/* no operand */
	} else if (random_next() & 1) {
		insn.code |= BPF_X;
		insn.src_reg = any_register();
	} else {
		insn.imm = shift ? (int32_t)random_below(32) : any_number();
		if ((op == BPF_DIV || op == BPF_MOD) && !insn.imm)
			insn.imm = 3;
	}
	add(p, insn);
}

/* Store a register or a number on the stack, or load what is there, by a pointer in R1 or R10. */
static void add_memory(struct program *p)
{
	struct bpf_insn insn = { .off = (int16_t)(-8 * (1 + (int)random_below(3))) };
	uint8_t pointer = random_next() & 1 ? BPF_REG_1 : BPF_REG_10;

	if (pointer == BPF_REG_1)
		add(p, (struct bpf_insn)ALU_X(BPF_MOV, pointer, BPF_REG_10));
	switch (random_below(3)) {
	case 0:
		insn.code = BPF_STX | BPF_MEM | BPF_DW;
		insn.dst_reg = pointer;
		insn.src_reg = any_register();
		break;
	case 1:
		insn.code = BPF_ST | BPF_MEM | BPF_DW;
		insn.dst_reg = pointer;
		insn.imm = any_number();
		break;
	default:
		insn.code = BPF_LDX | BPF_MEM | BPF_DW;
		insn.dst_reg = any_register();
		insn.src_reg = pointer;
	}
	add(p, insn);
}

static void add_block(struct program *p, int depth);

/* A comparison that skips a block. */
static void add_branch(struct program *p, int depth)
{
	static const uint8_t ops[] = { BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET, BPF_JNE, BPF_JSGT,
				       BPF_JSGE, BPF_JLT, BPF_JLE, BPF_JSLT, BPF_JSLE };
	uint8_t class = random_below(4) ? BPF_JMP : BPF_JMP32;
	struct bpf_insn insn = { .code = class | ops[random_below(sizeof(ops))],
				 .dst_reg = any_register() };
	int at = p->count;

	if (random_next() & 1) {
		insn.code |= BPF_X;
		insn.src_reg = any_register();
	} else {
		insn.imm = any_number();
	}
	add(p, insn);
	add_block(p, depth + 1);
	p->insns[at].off = (int16_t)(p->count - at - 1);
}

static void add_loop(struct program *p, int depth, uint8_t counter)
{
	int first;

	add(p, (struct bpf_insn)ALU(BPF_MOV, counter, 0));
	first = p->count;
	add_block(p, depth + 1);
	add(p, (struct bpf_insn)ALU(BPF_ADD, counter, 1));
	add(p, (struct bpf_insn)JUMP(BPF_JLT, counter, 1 + (int32_t)random_below(4),
				     (int16_t)(first - p->count - 1)));
}

static void add_block(struct program *p, int depth)
{
	static bool counting[2];

	for (size_t n = 1 + random_below(6); n; n--) {
		size_t kind = random_below(12);

		if (kind < 2) {
			add_memory(p);
		} else if (kind < 4 && depth < 4) {
			add_branch(p, depth);
		} else if (kind == 4 && depth < 3 && !(counting[0] && counting[1])) {
			uint8_t i = counting[0];

			counting[i] = true;
			add_loop(p, depth, (uint8_t)(COUNTER + i));
			counting[i] = false;
		} else {
			add_alu(p);
		}
	}
}

/* Set R2 to R7 and the stack, and calculate; then R0 from all of them. R6 is not known. */
static void add_function(struct program *p)
{
	for (uint8_t reg = 2; reg < 8; reg++)
		if (reg != 6)
			add(p, (struct bpf_insn)ALU(BPF_MOV, reg, any_number()));
	add(p, (struct bpf_insn)ALU(BPF_MOV, 0, any_number()));
	for (int i = 1; i <= 3; i++)
		add(p, (struct bpf_insn){ .code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_10,
					  .off = (int16_t)(-8 * i), .imm = any_number() });
	add_block(p, 0);
	for (uint8_t reg = 2; reg < 8; reg++) {
		add(p, (struct bpf_insn)ALU(BPF_MUL, 0, 31));
		add(p, (struct bpf_insn)ALU_X(BPF_ADD, 0, reg));
	}
}

/* A program that adds what a function of the packet's length returns to a number from it. */
static void generate(struct program *p)
{
	int call;

	p->count = 0;
	add(p, (struct bpf_insn){ .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 6, .src_reg = 1 });
	add_function(p);
	add(p, (struct bpf_insn)ALU_X(BPF_MOV, 9, 0));
	add(p, (struct bpf_insn)ALU_X(BPF_MOV, 1, 6));
	add(p, (struct bpf_insn)ALU(BPF_MOV, 0, 1));
	call = p->count;
	add(p, (struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL });
	add(p, (struct bpf_insn)ALU_X(BPF_ADD, 9, 0));
	add(p, (struct bpf_insn)ALU_X(BPF_MOV, 0, 9));
	add(p, (struct bpf_insn)EXIT);
	p->insns[call].imm = p->count - call - 1;
	add(p, (struct bpf_insn)ALU_X(BPF_MOV, 6, 1));
	add_function(p);
	add(p, (struct bpf_insn)EXIT);
}

/* Run a socket filter on a packet of @size bytes. Return what it returns. */
static uint32_t run_filter(int prog, uint32_t size)
{
	static char packet[256];
	union bpf_attr attr;
	long err;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)prog;
	attr.test.data_in = (uintptr_t)packet;
	attr.test.data_size_in = size;
	do
		err = syscall(__NR_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr));
	while (err < 0 && errno == EINTR);
	CHECK(!err, "error %d", errno);
	return attr.test.retval;
}

/* Fold @from. The kernel must calculate the same by it. */
static void check_same(const struct program *from, int prog)
{
	static struct program p;
	int n, folded;

	p = *from;
	n = fold_program(p.insns, (uint32_t)p.count, INSNS_MAX);
	CHECK(n > 0, "%d instructions: %d", from->count, n);
	if (n <= 0)
		return;
	folded = load_program(BPF_PROG_TYPE_SOCKET_FILTER, p.insns, n, false);
	CHECK(folded >= 0, "%d instructions: error %d", n, -folded);
	if (folded < 0)
		return;
	for (uint32_t size = FIRST_SIZE; size < 256; size += 60)
		CHECK(run_filter(prog, size) == run_filter(folded, size), "%u bytes", size);
	close(folded);
}

static void kernel_calculates_the_same(void)
{
	static struct program p;
	const char *why = load_forbidden();
	int loaded = 0;

	if (why) {
		SKIP(why);
		return;
	}
	for (int i = 0; i < PROGRAMS && check_failures < 3; i++) {
		int prog;

		generate(&p);
		prog = load_program(BPF_PROG_TYPE_SOCKET_FILTER, p.insns, p.count, false);
		/* Some are too complex for the verifier. */
		if (prog < 0)
			continue;
		loaded++;
		check_same(&p, prog);
		close(prog);
	}
	CHECK(loaded > PROGRAMS / 2, "%d of %d", loaded, PROGRAMS);
}

int main(void)
{
	RUN(constants_decide);
	RUN(equality_tells);
	RUN(paths_meet);
	RUN(malformed);
	RUN(kernel_calculates_the_same);
	return check_done();
}
