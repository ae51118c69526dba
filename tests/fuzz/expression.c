/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Expressions of dbslower trace: two bytes with the mask of signed variables, one
 * that seeds their values, then the text. The generated function is run by the
 * tests' interpreter and, if permitted, loaded into the kernel.
 */
#include <errno.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/interp.h"
#include "tests/unit/load.h"
#include "usdt/expression.h"

#define TEXTS	16	/* addresses with a text; others are not readable */

static char texts[TEXTS][EXPRESSION_TEXT];

static long read_text(char *to, unsigned int size, uint64_t address)
{
	size_t len;

	if (address >= TEXTS)
		return -EFAULT;
	len = strnlen(texts[address], EXPRESSION_TEXT - 1);
	len = len < size ? len : size - 1;
	memcpy(to, texts[address], len);
	to[len] = '\0';
	return (long)len + 1;
}

/* Load a program that calls f(variables), with the variables on the stack. */
static void check_loads(const struct bpf_insn *function, int n)
{
	struct bpf_insn insns[EXPRESSION_WORDS + 8 + EXPRESSION_INSNS_MAX];
	int at = 0, bytes = 8 * EXPRESSION_WORDS;
	static int can = -1;

	if (can < 0)
		can = !load_forbidden();
	if (!can)
		return;
	for (int i = 0; i < EXPRESSION_WORDS; i++)
		insns[at++] = (struct bpf_insn){ .code = BPF_ST | BPF_MEM | BPF_DW,
						 .dst_reg = BPF_REG_10,
						 .off = (int16_t)(8 * i - bytes), .imm = i };
	insns[at++] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1,
					 .src_reg = BPF_REG_10 };
	insns[at++] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_1,
					 .imm = -bytes };
	insns[at++] = (struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL,
					 .imm = 2 };
	insns[at++] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K };
	insns[at++] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	memcpy(insns + at, function, (size_t)n * sizeof(*insns));
	REQUIRE(!load_insns(insns, at + n), "%s", load_log);
}

static void check_emitted(const struct expression *e, uint32_t signed_mask, uint8_t seed)
{
	struct bpf_insn insns[EXPRESSION_INSNS_MAX], *less;
	const struct expression_site site = { signed_mask, seed * 0x101u };
	uint64_t variables[EXPRESSION_WORDS];
	struct interp vm = { .insns = insns, .ctx = variables, .ctx_size = sizeof(variables),
			     .word_in_ctx = EXPRESSION_UNREAD * 8, .read_text = read_text };
	int n = expression_emit(e, &site, 1 << 20, insns, EXPRESSION_INSNS_MAX);

	if (n == -ENOSPC)
		return;
	REQUIRE(n >= 2 && n <= EXPRESSION_INSNS_MAX, "%d", n);
	REQUIRE(expression_plain(e) < 0 || n == 2 || site.fails_mask & e->uses, "%d", n);
	less = malloc((size_t)(n - 1) * sizeof(*less));
	REQUIRE(expression_emit(e, &site, 1 << 20, less, (size_t)n - 1) == -ENOSPC);
	free(less);
	for (int i = 0; i < EXPRESSION_UNREAD; i++)
		variables[i] = (uint64_t)(seed + i) * 0x9e3779b97f4a7c15u >> (3 * i);
	variables[EXPRESSION_UNREAD] = seed;
	vm.n = n;
	interp_run(&vm);
	REQUIRE(!vm.error, "%s", vm.error);
	check_loads(insns, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint32_t signed_mask = input_byte(&in);
	struct expression e;
	enum expression_reason reason;
	uint8_t seed;
	size_t end;
	char *text;

	signed_mask |= (uint32_t)input_byte(&in) << 8;
	seed = input_byte(&in);
	for (size_t i = 0; i < TEXTS; i++)
		input_bytes(&(struct input){ in.at, in.left < i ? in.left : i }, texts[i],
			    sizeof(texts[i]));
	text = input_until(&in, '\0');
	reason = expression_parse(&e, text, &end);
	REQUIRE(end <= strlen(text), "%zu", end);
	if (reason == EXPRESSION_OK) {
		REQUIRE(e.count && e.count <= EXPRESSION_NODES && e.root < e.count);
		REQUIRE(e.texts_len <= EXPRESSION_TEXTS);
		check_emitted(&e, signed_mask, seed);
	}
	free(text);
	return 0;
}
