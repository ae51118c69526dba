/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random BPF instructions: each results in one printable line. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/valid.h"
#include "usdt/disasm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = size / sizeof(struct bpf_insn);
	struct bpf_insn *insns = input_copy(data, n * sizeof(*insns));

	for (size_t i = 0; i < n;) {
		char line[128], *tight = malloc(16);
		int taken = disasm_insn(&insns[i], i + 1 < n ? &insns[i + 1] : NULL, line,
					sizeof(line));
		size_t len = strnlen(line, sizeof(line));

		REQUIRE(taken == 1 || taken == 2);
		REQUIRE(len && len < sizeof(line) && is_harmless(line, len), "%s", line);
		disasm_insn(&insns[i], NULL, tight, 16);
		REQUIRE(memchr(tight, '\0', 16));
		free(tight);
		i += (size_t)taken;
	}
	free(insns);
	return 0;
}
