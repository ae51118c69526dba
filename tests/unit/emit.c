/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Generated functions, interpreted with random registers and memory, compared with the specs. */
#include "usdt/emit.h"

#include <errno.h>

#include "tests/unit/check.h"
#include "tests/unit/corpus.h"
#include "tests/unit/genspec.h"
#include "tests/unit/interp.h"

#define RANDOM_SPECS	40000

struct machine {
	uint16_t machine;
	unsigned int pc_offset;
};

static const struct machine x86 = { EM_X86_64, 128 }, a64 = { EM_AARCH64, 256 };
static const struct machine riscv = { EM_RISCV, 0 };
static const struct machine i386 = { EM_386, 128 }, s390 = { EM_S390, 0 }, unknown;

static struct emit_target target_of(const struct machine *m)
{
	return (struct emit_target){
		.machine = m->machine, .site_vaddr = GEN_SITE,
		.read_helper = BPF_FUNC_probe_read_user, .symbol = gen_find_symbol,
	};
}

static int emit_text(const struct machine *m, const char *text, struct bpf_insn *insns, size_t max,
		     enum spec_reason *reason)
{
	struct emit_target target = target_of(m);
	struct spec spec;

	spec_parse(m->machine, true, text, strlen(text), &spec);
	return spec_emit(&spec, &target, insns, max, reason);
}

/* Check the invariants of every generated function. */
static void check_code(const char *text, const struct bpf_insn *insns, int n)
{
	int targets = 0;

	CHECK(n >= 2 && n <= EMIT_INSNS_MAX, "%s: %d", text, n);
	CHECK(insns[n - 1].code == (BPF_JMP | BPF_EXIT), "%s", text);
	for (int i = 0; i < n; i++) {
		if (insns[i].code != (BPF_JMP | BPF_JNE | BPF_K))
			continue;
		targets++;
		CHECK(i + 1 + insns[i].off < n && insns[i].off >= 0, "%s: insn %d", text, i);
		/* The second half of an LD_IMM64 has code 0 and is not a valid target. */
		CHECK(insns[i + 1 + insns[i].off].code != 0, "%s: insn %d", text, i);
	}
	CHECK(targets <= SPEC_DEREF_MAX + 1, "%s", text);
}

/* gen_read(), which keeps whether it failed. */
static bool read_failed;

static bool read_memory(uint64_t addr, unsigned int size, uint64_t *value)
{
	bool ok = gen_read(addr, size, value);

	read_failed |= !ok;
	return ok;
}

static uint64_t run(const struct machine *m, const char *text, const struct bpf_insn *insns, int n,
		    const uint64_t *regs)
{
	struct interp vm = {
		.insns = insns, .n = n, .ctx = (void *)regs, .ctx_size = gen_context(m->machine),
		.read_helper = BPF_FUNC_probe_read_user, .read = read_memory,
	};
	uint64_t value = interp_run(&vm);

	CHECK(!vm.error, "%s: %s", text, vm.error);
	return value;
}

/* The function that reports a failure returns the same, and sets its bit only then. */
static void check_unread(const struct machine *m, const char *text, const uint64_t *regs,
			 uint64_t want, unsigned int counts[2])
{
	struct emit_target target = target_of(m);
	struct bpf_insn insns[EMIT_INSNS_MAX];
	uint64_t word = 1, value;
	struct interp vm = {
		.insns = insns, .ctx = (void *)regs, .ctx_size = gen_context(m->machine),
		.word = &word, .read_helper = BPF_FUNC_probe_read_user, .read = read_memory,
	};
	enum spec_reason reason;
	struct spec spec;

	target.unread = 1 << 12;
	spec_parse(m->machine, true, text, strlen(text), &spec);
	vm.n = spec_emit(&spec, &target, insns, EMIT_INSNS_MAX, &reason);
	CHECK(vm.n > 0, "%s: %d", text, vm.n);
	read_failed = false;
	value = interp_run(&vm);
	CHECK(!vm.error && value == want, "%s: %s, %" PRIx64, text, vm.error ? vm.error : "ran",
	      value);
	CHECK(word == (read_failed ? 0x1001 : 1), "%s: %" PRIx64, text, word);
	CHECK(spec_reads(&spec) || !read_failed, "%s", text);
	counts[read_failed]++;
}

static void random_regs(uint64_t *seed, uint64_t *regs)
{
	for (int i = 0; i < GEN_REGS; i++)
		regs[i] = gen_below(seed, 3) ? gen_next(seed) : gen_number(seed);
}

static void random_specs(const struct machine *m, uint64_t seed)
{
	unsigned int missing = 0, zeros = 0, failed[2] = { 0 };

	for (int i = 0; i < RANDOM_SPECS && check_failures < 20; i++) {
		struct bpf_insn insns[EMIT_INSNS_MAX];
		uint64_t regs[GEN_REGS], want, got;
		enum spec_reason reason;
		struct gen_spec g;
		int n;

		gen_spec(&seed, m->machine, &g);
		random_regs(&seed, regs);
		n = emit_text(m, g.text, insns, EMIT_INSNS_MAX, &reason);
		if (g.bad_symbol) {
			missing++;
			CHECK(n == -ENOTSUP && reason == SPEC_NO_SYMBOL, "%s: %d", g.text, n);
			continue;
		}
		CHECK(n > 0, "%s: %d, %s", g.text, n, spec_reason(reason));
		if (n <= 0)
			continue;
		check_code(g.text, insns, n);
		want = gen_expect(&g, regs, m->pc_offset);
		got = run(m, g.text, insns, n, regs);
		zeros += !want;
		CHECK(got == want, "%s: %" PRIx64 " instead of %" PRIx64, g.text, got, want);
		check_unread(m, g.text, regs, want, failed);
	}
	CHECK(failed[0] > RANDOM_SPECS / 50 && failed[1] > RANDOM_SPECS / 50, "%u %u", failed[0],
	      failed[1]);
	CHECK(missing > RANDOM_SPECS / 100 && zeros > RANDOM_SPECS / 50, "%u %u", missing, zeros);
}

static void random_x86_64(void)
{
	random_specs(&x86, 1);
}

static void random_aarch64(void)
{
	random_specs(&a64, 2);
}

static void random_riscv(void)
{
	random_specs(&riscv, 4);
}

static const struct gen_reg *corpus_reg(const struct machine *m, const char *name)
{
	static struct gen_reg other;
	const struct gen_machine *gen = gen_machine_of(m->machine);
	unsigned int number;
	char suffix = '\0';

	for (size_t i = 0; i < gen->nregs; i++)
		if (!strcmp(gen->regs[i].name, name))
			return &gen->regs[i];
	if (m == &a64 && sscanf(name, "x%u", &number) == 1 && number < 31) {
		other = (struct gen_reg){ "", number * 8, 64 };
		return &other;
	}
	if (m == &x86 && sscanf(name, "r%u%c", &number, &suffix) >= 1 && number - 8 < 8) {
		static const unsigned char offsets[] = { 72, 64, 56, 48, 24, 16, 8, 0 };

		other = (struct gen_reg){ "", offsets[number - 8],
			suffix == 'b' ? 8 : suffix == 'w' ? 16 : suffix == 'd' ? 32 : 64 };
		return &other;
	}
	return NULL;
}

/* Parse the few forms found in the corpora with sscanf(). Return false for any other. */
static bool corpus_parse(const struct machine *m, const char *text, struct gen_spec *g)
{
	static struct gen_symbol symbol;
	static char name[64];
	long long value = 0;
	char reg[16];
	const char *op = strchr(text, '@') + 1;
	int size = atoi(text), end = 0;

	*g = (struct gen_spec){ .size = abs(size), .is_signed = size < 0, .scale = 1 };
	symbol = (struct gen_symbol){ name, 0x9a0040 };
	if (m == &x86 ? sscanf(op, "$%lld%n", &value, &end) == 1 && !op[end] :
			sscanf(op, "%lld%n", &value, &end) == 1 && !op[end]) {
		g->constant = true;
	} else if (m == &x86 ? sscanf(op, "%%%15[a-z0-9]%n", reg, &end) == 1 && !op[end] :
			       sscanf(op, "%15[a-z0-9]%n", reg, &end) == 1 && !op[end]) {
		g->base = corpus_reg(m, reg);
	} else if (sscanf(op, "%lld+%63[A-Za-z](%%rip)%n", &value, name, &end) == 2 && end) {
		g->memory = true;
		g->symbol = &symbol;
	} else if (value = 0, sscanf(op, "%63[A-Za-z](%%rip)%n", name, &end) == 1 && end) {
		g->memory = true;
		g->symbol = &symbol;
	} else if (m == &x86 ? sscanf(op, "(%%%15[a-z0-9])%n", reg, &end) == 1 && end :
			       sscanf(op, "[%15[a-z0-9]]%n", reg, &end) == 1 && end) {
		g->memory = true;
		g->base = corpus_reg(m, reg);
	} else if (m == &riscv && sscanf(op, "%lld(%15[a-z0-9])%n", &value, reg, &end) == 2 &&
		   end) {
		g->memory = true;
		g->base = corpus_reg(m, reg);
	} else if (m == &x86 ? sscanf(op, "%lld(%%%15[a-z0-9])%n", &value, reg, &end) == 2 && end :
			       sscanf(op, "[%15[a-z0-9], %lld]%n", reg, &value, &end) == 2 && end) {
		g->memory = true;
		g->base = corpus_reg(m, reg);
	} else {
		return false;
	}
	g->value = (uint64_t)value;
	return g->constant || g->symbol || g->base;
}

static int any_symbol(void *arg, const char *name, size_t len, uint64_t *vaddr)
{
	(void)arg;
	(void)name;
	*vaddr = 0x9a0040;
	return len ? 0 : -ENOENT;
}

static void corpus_spec(const char *text, void *arg)
{
	const struct machine *m = arg;
	struct emit_target target = target_of(m);
	struct bpf_insn insns[EMIT_INSNS_MAX];
	uint64_t regs[GEN_REGS], seed = 3;
	enum spec_reason reason;
	struct gen_spec g;
	struct spec spec;
	int n;

	target.symbol = any_symbol;
	if (strstr(text, ":lo12:"))
		return;
	spec_parse(m->machine, true, text, strlen(text), &spec);
	n = spec_emit(&spec, &target, insns, EMIT_INSNS_MAX, &reason);
	CHECK(n > 0, "%s: %s", text, spec_reason(reason));
	CHECK(corpus_parse(m, text, &g), "%s", text);
	if (n <= 0)
		return;
	check_code(text, insns, n);
	for (int i = 0; i < 16; i++) {
		uint64_t want, got;

		random_regs(&seed, regs);
		want = gen_expect(&g, regs, m->pc_offset);
		got = run(m, text, insns, n, regs);
		CHECK(got == want, "%s: %" PRIx64 " instead of %" PRIx64, text, got, want);
	}
}

static void corpus_x86_64(void)
{
	CHECK(corpus_each("x86_64", corpus_spec, (void *)&x86) > 200, "in %s", corpus_dir);
}

static void corpus_aarch64(void)
{
	CHECK(corpus_each("aarch64", corpus_spec, (void *)&a64) > 160, "in %s", corpus_dir);
}

static void corpus_riscv(void)
{
	CHECK(corpus_each("riscv64", corpus_spec, (void *)&riscv) > 180, "in %s", corpus_dir);
}

/* One instruction and the exit, which a linker may substitute for the call. */
static void short_functions(void)
{
	static const struct {
		const struct machine *m;
		const char *text;
		unsigned char code;
		short off;
		int imm, n;
	} table[] = {
		{ &x86, "8@%rdi", BPF_LDX | BPF_MEM | BPF_DW, 112, 0, 2 },
		{ &x86, "8@%arg1", BPF_LDX | BPF_MEM | BPF_DW, 104, 0, 2 },
		{ &x86, "-8@%r15", BPF_LDX | BPF_MEM | BPF_DW, 0, 0, 2 },
		{ &x86, "4@%edi", BPF_LDX | BPF_MEM | BPF_W, 112, 0, 2 },
		{ &x86, "4@%rdi", BPF_LDX | BPF_MEM | BPF_W, 112, 0, 2 },
		{ &x86, "2@%ax", BPF_LDX | BPF_MEM | BPF_H, 80, 0, 2 },
		{ &x86, "1@%al", BPF_LDX | BPF_MEM | BPF_B, 80, 0, 2 },
		{ &x86, "1@%ah", BPF_LDX | BPF_MEM | BPF_B, 81, 0, 2 },
		{ &x86, "-4@%eax", BPF_LDX | BPF_MEM | BPF_W, 80, 0, 4 },
		{ &x86, "-4f@%eax", BPF_LDX | BPF_MEM | BPF_W, 80, 0, 2 },
		{ &x86, "4@%ret", BPF_LDX | BPF_MEM | BPF_W, 80, 0, 2 },
		{ &x86, "8@%ip", BPF_LDX | BPF_MEM | BPF_DW, 128, 0, 2 },
		{ &x86, "-4@$-1", BPF_ALU64 | BPF_MOV | BPF_K, 0, -1, 2 },
		{ &x86, "4@$-1", BPF_ALU | BPF_MOV | BPF_K, 0, -1, 2 },
		{ &x86, "1@$-1", BPF_ALU64 | BPF_MOV | BPF_K, 0, 255, 2 },
		{ &x86, "-1@$255", BPF_ALU64 | BPF_MOV | BPF_K, 0, -1, 2 },
		{ &x86, "-8@$140737488355327", BPF_LD | BPF_IMM | BPF_DW, 0, -1, 3 },
		{ &a64, "8@x0", BPF_LDX | BPF_MEM | BPF_DW, 0, 0, 2 },
		{ &a64, "8@sp", BPF_LDX | BPF_MEM | BPF_DW, 248, 0, 2 },
		{ &a64, "4@w30", BPF_LDX | BPF_MEM | BPF_W, 240, 0, 2 },
		{ &a64, "1@x21", BPF_LDX | BPF_MEM | BPF_B, 168, 0, 2 },
		{ &a64, "8@xzr", BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 2 },
		{ &a64, "4@-1", BPF_ALU | BPF_MOV | BPF_K, 0, -1, 2 },
		{ &a64, "8@%ip", BPF_LDX | BPF_MEM | BPF_DW, 256, 0, 2 },
	};

	for (size_t i = 0; i < GEN_COUNT(table); i++) {
		struct bpf_insn insns[EMIT_INSNS_MAX];
		enum spec_reason reason;
		int n = emit_text(table[i].m, table[i].text, insns, EMIT_INSNS_MAX, &reason);

		CHECK(n == table[i].n, "%s: %d", table[i].text, n);
		CHECK(insns[0].code == table[i].code && insns[0].off == table[i].off &&
		      insns[0].imm == table[i].imm, "%s: %02x %d %d", table[i].text, insns[0].code,
		      insns[0].off, insns[0].imm);
	}
}

static void longest_function(void)
{
	static const char text[] = "-1@0x7000000000000001(0x7000000000000002(0x7000000000000003("
				   "0x7000000000000004(0x7000000000000005(%arg0)))))";
	struct bpf_insn insns[EMIT_INSNS_MAX];
	struct emit_target target = target_of(&x86);
	enum spec_reason reason;
	struct spec spec;
	int n;

	CHECK(spec_parse(EM_X86_64, true, text, strlen(text), &spec) == SPEC_OK);
	CHECK(spec.nderef == SPEC_DEREF_MAX, "%d", spec.nderef);
	/* No text results in this combination, but the struct allows it. */
	spec.index = spec.base;
	spec.scale = 8;
	spec.symbol = "NBuffers";
	spec.symbol_len = strlen(spec.symbol);
	spec.reg_bits = 32;
	target.unread = 1 << 12;
	n = spec_emit(&spec, &target, insns, EMIT_INSNS_MAX, &reason);
	CHECK(n > 40 && n <= EMIT_INSNS_MAX, "%d", n);
	for (int max = 0; max < n; max++) {
		struct bpf_insn guarded[EMIT_INSNS_MAX];

		memset(guarded, 0xa5, sizeof(guarded));
		CHECK(spec_emit(&spec, &target, guarded, max, &reason) == -ENOSPC, "%d", max);
		CHECK(*(unsigned char *)&guarded[max] == 0xa5, "writes past %d", max);
	}
}

static void unavailable(void)
{
	static const struct {
		const struct machine *m;
		const char *text;
		enum spec_reason reason;
	} table[] = {
		{ &x86, "8f@%xmm0", SPEC_NO_PT_REGS },
		{ &x86, "-4@%fs:tls@tpoff", SPEC_TLS },
		{ &x86, "8@nothing(%rip)", SPEC_NO_SYMBOL },
		{ &x86, "8@nothing(,%rax,8)", SPEC_NO_SYMBOL },
		{ &x86, "8@NBuffers@GOTPCREL(%rip)", SPEC_NO_SYMBOL },
		{ &x86, "3@%rax", SPEC_BAD_SIZE },
		{ &x86, "8@x0", SPEC_NO_SYMBOL },
		{ &a64, "8@[x0, #:lo12:.LANCHOR2]", SPEC_PARTIAL_SYMBOL },
		{ &a64, "8@d0", SPEC_NO_PT_REGS },
		{ &a64, "8@%rax", SPEC_BAD_REGISTER },
		{ &i386, "8@%rax", SPEC_BAD_REGISTER },
		{ &i386, "4@%r8d", SPEC_BAD_REGISTER },
		{ &i386, "4@NBuffers@GOTOFF(%ebx)", SPEC_NO_SYMBOL },
		{ &s390, "8@%r2", SPEC_NO_EMITTER },
		{ &unknown, "8@%r2", SPEC_NO_EMITTER },
	};
	struct emit_target target = target_of(&x86);
	enum spec_reason reason;
	struct bpf_insn insns[4];
	struct spec spec;

	for (size_t i = 0; i < GEN_COUNT(table); i++) {
		int n = emit_text(table[i].m, table[i].text, insns, 4, &reason);

		CHECK(n == -ENOTSUP && reason == table[i].reason, "%s: %d, %s", table[i].text, n,
		      spec_reason(reason));
	}
	target.symbol = NULL;
	spec_parse(EM_X86_64, true, "8@a(%rip)", 9, &spec);
	CHECK(spec_emit(&spec, &target, insns, 4, &reason) == -ENOTSUP);
	CHECK(reason == SPEC_NO_SYMBOL);
}

static unsigned int null_reads;

static bool read_null(uint64_t addr, unsigned int size, uint64_t *value)
{
	(void)addr;
	(void)size;
	null_reads++;
	*value = 0;
	return true;
}

/* A member of NULL has no address, and nothing is read to find that. */
static void null_pointers(void)
{
	static const struct {
		const char *text;
		unsigned int reads;
	} table[] = {
		{ "8@&16(8(%rdi))", 1 }, { "8@&16(8(24(%rdi)))", 1 }, { "8@16(8(%rdi))", 2 },
	};
	uint64_t regs[32] = { 0 };

	for (size_t i = 0; i < GEN_COUNT(table); i++) {
		struct bpf_insn insns[EMIT_INSNS_MAX];
		enum spec_reason reason;
		struct interp vm = {
			.insns = insns, .ctx = regs, .ctx_size = gen_context(EM_X86_64),
			.read_helper = BPF_FUNC_probe_read_user, .read = read_null,
		};

		vm.n = emit_text(&x86, table[i].text, insns, EMIT_INSNS_MAX, &reason);
		null_reads = 0;
		CHECK(vm.n > 0 && !interp_run(&vm) && !vm.error, "%s", table[i].text);
		CHECK(null_reads == table[i].reads, "%s: %u", table[i].text, null_reads);
	}
}

/* 32-bit programs on a 64-bit kernel: only the low halves of the registers count. */
static void i386_programs(void)
{
	enum { AX = 10, BX = 5, SP = 19 };
	static const uint64_t regs[GEN_REGS] = {
		[AX] = 0xdeadbeef87654321, [BX] = 0xffffffff00001000, [SP] = 0xfffffffffffffff8,
	};
	static const struct {
		const char *text;
		uint64_t value;		/* or, of memory, its address */
		bool memory;
	} table[] = {
		{ "4@%eax", 0x87654321, false }, { "-4@%eax", 0xffffffff87654321, false },
		{ "2@%ax", 0x4321, false }, { "1@%ah", 0x43, false },
		{ "4@%ret", 0x87654321, false },
		{ "-4@$-2", (uint64_t)-2, false }, { "4@-8(%ebx)", 0xff8, true },
		{ "4@16(%esp)", 8, true }, { "4@4(%eax,%ebx,4)", 0x87658325, true },
	};
	enum spec_reason reason;
	struct bpf_insn insns[EMIT_INSNS_MAX];

	for (size_t i = 0; i < GEN_COUNT(table); i++) {
		int n = emit_text(&i386, table[i].text, insns, EMIT_INSNS_MAX, &reason);
		uint64_t want = table[i].value;

		CHECK(n > 0, "%s: %s", table[i].text, spec_reason(reason));
		if (table[i].memory && !gen_read(table[i].value, 4, &want))
			want = 0;
		CHECK(n > 0 && run(&i386, table[i].text, insns, n, regs) == want, "%s",
		      table[i].text);
	}
}

int main(int argc, char **argv)
{
	corpus_init(argc, argv);
	RUN(short_functions);
	RUN(longest_function);
	RUN(unavailable);
	RUN(null_pointers);
	RUN(i386_programs);
	RUN(corpus_x86_64);
	RUN(corpus_aarch64);
	RUN(corpus_riscv);
	RUN(random_x86_64);
	RUN(random_aarch64);
	RUN(random_riscv);
	return check_done();
}
