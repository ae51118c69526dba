/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Argument specs: a byte that selects architecture and class, one that seeds the
 * registers, then the text. The generated function is run by the tests'
 * interpreter and, if permitted, loaded into the kernel.
 */
#include <errno.h>

#include "host/arch.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/valid.h"
#include "tests/unit/genspec.h"
#include "tests/unit/interp.h"
#include "tests/unit/load.h"
#include "tests/unit/machines.h"
#include "usdt/emit.h"

/* Resolve every name that does not begin with an x. */
static int find_symbol(void *arg, const char *name, size_t len, uint64_t *vaddr)
{
	(void)arg;
	*vaddr = gen_mix(len) >> 17;
	return len && *name == 'x' ? -ENOENT : 0;
}

static void check_loads(uint16_t machine, const struct bpf_insn *function, int n)
{
	static int can = -1;
	struct bpf_insn insns[2 + EMIT_INSNS_MAX] = {
		{ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	if (can < 0)
		can = !load_forbidden();
	if (!can || machine != HOST_ELF_MACHINE)
		return;
	memcpy(insns + 2, function, (size_t)n * sizeof(*insns));
	REQUIRE(!load_insns(insns, 2 + n), "%s", load_log);
}

static void check_emitted(uint16_t machine, const struct spec *spec, uint64_t seed)
{
	struct emit_target target = {
		.machine = machine, .site_vaddr = GEN_SITE,
		.read_helper = BPF_FUNC_probe_read_user, .symbol = find_symbol,
	};
	struct bpf_insn insns[EMIT_INSNS_MAX], again[EMIT_INSNS_MAX];
	struct interp vm = { .insns = insns, .ctx_size = gen_context(machine),
			     .read_helper = BPF_FUNC_probe_read_user, .read = gen_read };
	enum spec_reason reason = SPEC_OK;
	uint64_t regs[GEN_REGS];
	int n = spec_emit(spec, &target, insns, EMIT_INSNS_MAX, &reason);

	REQUIRE(n == -ENOTSUP ||
		(arch_of(machine)->can_emit && n >= 2 && n <= EMIT_INSNS_MAX), "%d", n);
	if (n < 0) {
		REQUIRE(reason != SPEC_OK);
		return;
	}
	REQUIRE(spec->reason == SPEC_OK);
	REQUIRE(spec_emit(spec, &target, again, (size_t)n, &reason) == n &&
		!memcmp(insns, again, (size_t)n * sizeof(*insns)));
	REQUIRE(spec_emit(spec, &target, again, (size_t)n - 1, &reason) == -ENOSPC);
	for (size_t i = 0; i < GEN_REGS; i++)
		regs[i] = gen_next(&seed) >> (seed & 63);
	vm.n = n;
	vm.ctx = regs;
	interp_run(&vm);
	REQUIRE(!vm.error, "%s", vm.error);
	check_loads(machine, insns, n);
}

static void check_format(uint16_t machine, const struct spec *spec)
{
	int n = spec_format(machine, spec, NULL, 0);
	char *text;

	REQUIRE(n >= 0);
	text = malloc((size_t)n + 1);
	REQUIRE(spec_format(machine, spec, text, (size_t)n + 1) == n &&
		strlen(text) <= (size_t)n);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t choice = input_byte(&in), seed = input_byte(&in);
	uint16_t machine = machine_at(choice & 0x0f);
	bool is64 = !(choice & 0x80);
	char *text = input_until(&in, '\0');
	struct spec specs[SPEC_ARGS_MAX];
	size_t n = spec_parse_all(machine, is64, text, specs, SPEC_ARGS_MAX);

	REQUIRE(n <= strlen(text));
	for (size_t i = 0; i < n && i < SPEC_ARGS_MAX; i++) {
		const struct spec *spec = &specs[i];

		REQUIRE(spec->text >= text && spec->text_len &&
			spec->text + spec->text_len <= text + strlen(text));
		REQUIRE((spec->kind == SPEC_UNAVAILABLE) == (spec->reason != SPEC_OK));
		REQUIRE(spec->nderef <= SPEC_DEREF_MAX);
		if (spec->symbol)
			REQUIRE(spec->symbol >= spec->text && spec->symbol + spec->symbol_len <=
				spec->text + spec->text_len);
		check_format(machine, spec);
		check_emitted(machine, spec, seed);
	}
	free(text);
	return 0;
}
