/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Input: a BPF object, whose functions are linked and joined. */
#include <errno.h>

#include "loader/join.h"
#include "loader/linker.h"
#include "tests/fuzz/fuzz.h"

#define VALUES	128

static const struct bpf_insn emitted[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 1 },
	{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .imm = 1 },
	{ .code = BPF_JMP | BPF_EXIT },
};

/* Define each undefined symbol; the first letter of its name selects the kind. */
static size_t fill_values(const struct object *object, struct object_value *values)
{
	struct elf_symbol_iter iter = object->symbols;
	struct elf_symbol symbol;
	size_t n = 0;

	while (n < VALUES && elf_symbol_next(&iter, &symbol)) {
		if (symbol.shndx || !*symbol.name)
			continue;
		values[n++] = (struct object_value){
			.name = symbol.name, .map = 7, .number = ~0ull, .insns = emitted,
			.count = *symbol.name & 1 ? 3 : 2,
			.kind = *symbol.name == 'a' ? OBJECT_CODE :
				*symbol.name == 'c' ? OBJECT_NUMBER : OBJECT_MAP,
		};
	}
	return n;
}

/* The targets of all calls are within the program. */
static void check_program(const struct bpf_insn *insns, int n)
{
	for (int i = 0; i < n; i++)
		if (insns[i].code == (BPF_JMP | BPF_CALL) && insns[i].src_reg == BPF_PSEUDO_CALL)
			REQUIRE(i + 1 + (int64_t)insns[i].imm >= 0 &&
				i + 1 + (int64_t)insns[i].imm <= n, "%d of %d: %d", i, n,
				insns[i].imm);
}

static void link_all(const struct object *object)
{
	struct bpf_insn *insns = malloc(OBJECT_INSNS_MAX * sizeof(*insns));
	struct bpf_insn *joined = malloc(2 * OBJECT_INSNS_MAX * sizeof(*insns));
	struct object_value values[VALUES];
	size_t nvalues = fill_values(object, values);
	struct elf_symbol_iter iter = object->symbols;
	struct elf_symbol symbol;
	const char *culprit;
	unsigned int linked = 0;

	while (linked < 16 && elf_symbol_next(&iter, &symbol)) {
		struct join_part part = { .insns = insns };
		int n;

		if (symbol.type != 2 || !*symbol.name)
			continue;
		linked++;
		n = object_link(object, symbol.name, values, nvalues, insns, &culprit);
		REQUIRE(n <= OBJECT_INSNS_MAX && (n >= 0 || n == -ENOENT || n == -ENOEXEC ||
						  n == -ENOSPC), "%d", n);
		REQUIRE(culprit);
		if (n < 0)
			continue;
		check_program(insns, n);
		part.count = (uint32_t)n;
		n = join_programs(&part, 1, joined, 2 * OBJECT_INSNS_MAX);
		REQUIRE(n == (int)part.count + 6 || n == -ENOSPC, "%d", n);
		if (n > 0)
			check_program(joined, n);
	}
	free(joined);
	free(insns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct object object;

	if (object_open(&object, data, size))
		return 0;
	object.old_reads = size & 1;
	link_all(&object);
	return 0;
}
