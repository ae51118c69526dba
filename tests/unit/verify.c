/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's verifier accepts all code that spec_emit() generates for this architecture. */
#include "host/arch.h"
#include "tests/unit/check.h"
#include "tests/unit/corpus.h"
#include "tests/unit/genspec.h"
#include "tests/unit/host.h"
#include "tests/unit/load.h"
#include "tests/unit/random.h"
#include "usdt/emit.h"

#define RANDOM_SPECS	(getenv("UNIT_SHORT") ? 100 : 3000)
#define MUTATED_SPECS	(getenv("UNIT_SHORT") ? 1000 : 60000)
#define MAIN_INSNS	5

static int any_symbol(void *arg, const char *name, size_t len, uint64_t *vaddr)
{
	(void)arg;
	*vaddr = gen_mix(len) >> 17;
	return name ? 0 : -ENOENT;
}

/*
 * Emit a function for @text after a main function that calls it, and load both. Return 0, or
 * -ENOTSUP with *@reason if the argument is not supported.
 */
static int load_text(const char *text, int32_t read_helper, enum spec_reason *reason)
{
	struct bpf_insn insns[MAIN_INSNS + EMIT_INSNS_MAX] = {
		{ .code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_10, .off = -8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2,
		  .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_2, .imm = -8 },
		{ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct emit_target target = {
		.machine = HOST_ELF_MACHINE, .site_vaddr = GEN_SITE,
		.read_helper = read_helper, .symbol = any_symbol,
		.unread = strlen(text) & 1 ? 1 << 12 : 0,
	};
	struct spec spec;
	int n, err;

	spec_parse(HOST_ELF_MACHINE, true, text, strlen(text), &spec);
	n = spec_emit(&spec, &target, insns + MAIN_INSNS, EMIT_INSNS_MAX, reason);
	if (n < 0)
		return n;
	err = load_insns(insns, MAIN_INSNS + n);
	CHECK(!err, "%s: error %d\n%s", text, -err, load_log);
	return 0;
}

static void load_spec(const char *text, void *arg)
{
	enum spec_reason reason;
	int err = load_text(text, BPF_FUNC_probe_read_user, &reason);

	CHECK(!err || reason == SPEC_PARTIAL_SYMBOL, "%s: %d, %s", text, err, spec_reason(reason));
	*(int *)arg += !err;
}

static void verifier_accepts_corpus(void)
{
	const char *why = load_forbidden();
	int loaded = 0;

	if (why) {
		SKIP(why);
		return;
	}
	CHECK(corpus_each(HOST_CORPUS, load_spec, &loaded) > 0, "in %s", corpus_dir);
	CHECK(loaded > 100, "%d", loaded);
}

static void verifier_accepts_random(void)
{
	const char *why = load_forbidden();
	uint64_t seed = 4;
	int loaded = 0;

	if (why) {
		SKIP(why);
		return;
	}
	for (int i = 0; i < RANDOM_SPECS && check_failures < 3; i++) {
		struct gen_spec g;

		gen_spec(&seed, HOST_ELF_MACHINE, &g);
		load_spec(g.text, &loaded);
	}
	CHECK(loaded == RANDOM_SPECS, "%d", loaded);
}

/* Write pieces of specs in random order, some of which form valid specs, many nearly valid ones. */
static void spec_of_pieces(char *text, size_t size)
{
	static const char *const pieces[] = {
		"8@", "-4@", "2@", "-1@", "4f@", "@", "%", "$", "(", ")", "[", "]", ",", ", ",
		"-", "+", "#", "lsl ", "0", "1", "8", "-136", "0x7fffffff",
		"-9223372036854775808", "4294967296", "%rax", "%ah", "%r15d", "%sp", "%rip",
		"%eip", "x0", "w30", "sp", "xzr", "%arg0", "%ret", "%ip", "NBuffers", "a.b$c",
		"(%rbp)", "8(%rsi,%rdi,4)", "[x19, 8]", "%fs:",
	};
	size_t len = 0;

	*text = '\0';
	for (size_t n = 1 + random_below(7); n && len < size - 1; n--)
		len += (size_t)snprintf(text + len, size - len, "%s",
					pieces[random_below(sizeof(pieces) / sizeof(*pieces))]);
}

/* Specs that no compiler writes: what is emitted for them loads as well. */
static void verifier_accepts_mutated(void)
{
	const char *why = load_forbidden();
	int loaded = 0;

	if (why) {
		SKIP(why);
		return;
	}
	for (int i = 0; i < MUTATED_SPECS && check_failures < 3; i++) {
		static const int32_t helpers[] = { BPF_FUNC_probe_read_user, BPF_FUNC_probe_read };
		enum spec_reason reason;
		char text[96];
		int err;

		spec_of_pieces(text, sizeof(text));
		err = load_text(text, helpers[i & 1], &reason);
		CHECK(!err || err == -ENOTSUP, "%s: %d", text, err);
		loaded += !err;
	}
	CHECK(loaded > MUTATED_SPECS / 100, "%d", loaded);
}

/* Check the check: the verifier rejects a function that reads past ctx. */
static void verifier_refuses(void)
{
	static const struct bpf_insn bad[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .src_reg = BPF_REG_1, .off = 4096 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	const char *why = load_forbidden();

	if (why)
		SKIP(why);
	else
		CHECK(load_once(bad, 2, false) < 0);
}

int main(int argc, char **argv)
{
	corpus_init(argc, argv);
	RUN(verifier_refuses);
	RUN(verifier_accepts_corpus);
	RUN(verifier_accepts_random);
	RUN(verifier_accepts_mutated);
	return check_done();
}
