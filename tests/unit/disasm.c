/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* usdt/disasm.c: the text of each kind of instruction, and random bytes. */
#include "usdt/disasm.h"

#include <stdint.h>
#include <stdlib.h>

#include "tests/unit/check.h"

#define COUNT(a)	(sizeof(a) / sizeof(*(a)))

struct row {
	uint8_t code, dst, src;
	int16_t off;
	int32_t imm;
	const char *text;
};

static void single_instructions(void)
{
	static const struct row rows[] = {
		{ 0xbf, 6, 1, 0, 0, "r6 = r1" },
		{ 0xb7, 0, 0, 0, -1, "r0 = -1" },
		{ 0xb4, 0, 0, 0, 7, "w0 = 7" },
		{ 0x07, 2, 0, 0, -8, "r2 += -8" },
		{ 0x0c, 1, 2, 0, 0, "w1 += w2" },
		{ 0x67, 3, 0, 0, 32, "r3 <<= 32" },
		{ 0xc7, 3, 0, 0, 32, "r3 s>>= 32" },
		{ 0x97, 3, 0, 0, 10, "r3 %= 10" },
		{ 0x87, 3, 0, 0, 0, "r3 = -r3" },
		{ 0x84, 3, 0, 0, 0, "w3 = -w3" },
		{ 0xdc, 1, 0, 0, 16, "r1 = be16 r1" },
		{ 0xd4, 1, 0, 0, 64, "r1 = le64 r1" },
		{ 0x79, 1, 1, 104, 0, "r1 = *(u64 *)(r1 +104)" },
		{ 0x71, 0, 10, -8, 0, "r0 = *(u8 *)(r10 -8)" },
		{ 0x69, 0, 10, -8, 0, "r0 = *(u16 *)(r10 -8)" },
		{ 0x61, 0, 10, 0, 0, "r0 = *(u32 *)(r10 +0)" },
		{ 0x7b, 10, 1, -16, 0, "*(u64 *)(r10 -16) = r1" },
		{ 0x62, 10, 0, -4, 5, "*(u32 *)(r10 -4) = 5" },
		{ 0xdb, 1, 2, 0, 0, "lock *(u64 *)(r1 +0) += r2" },
		{ 0xc3, 1, 2, 4, 0x40, "lock *(u32 *)(r1 +4) |= w2" },
		{ 0xdb, 1, 2, 0, 0x01, "r2 = atomic64_fetch_add((u64 *)(r1 +0), r2)" },
		{ 0xdb, 1, 2, 0, 0xe1, "r2 = atomic64_xchg((u64 *)(r1 +0), r2)" },
		{ 0xc3, 1, 2, 8, 0xf1, "w0 = atomic_cmpxchg((u32 *)(r1 +8), w0, w2)" },
		{ 0x15, 0, 0, 2, 0, "if r0 == 0x0 goto pc+2" },
		{ 0x55, 0, 0, -3, -1, "if r0 != 0xffffffff goto pc-3" },
		{ 0x2d, 1, 2, 5, 0, "if r1 > r2 goto pc+5" },
		{ 0xd6, 1, 0, 5, 9, "if w1 s<= 0x9 goto pc+5" },
		{ 0x05, 0, 0, -7, 0, "goto pc-7" },
		{ 0x85, 0, 0, 0, 112, "call probe_read_user#112" },
		{ 0x85, 0, 0, 0, 4, "call probe_read#4" },
		{ 0x85, 0, 0, 0, 9999, "call helper#9999" },
		{ 0x85, 0, 1, 0, 5, "call pc+5" },
		{ 0x95, 0, 0, 0, 0, "exit" },
		{ 0x30, 0, 0, 0, 14, "r0 = *(u8 *)skb[14]" },
		{ 0xe7, 1, 0, 0, 3, "(e7) ??? dst 1 src 0 off 0 imm 0x3" },
		{ 0x8d, 0, 0, 0, 0, "(8d) ??? dst 0 src 0 off 0 imm 0x0" },
		{ 0x18, 0, 0, 0, 0, "(18) ??? dst 0 src 0 off 0 imm 0x0" },
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct row *row = &rows[i];
		struct bpf_insn insn = {
			.code = row->code, .dst_reg = row->dst, .src_reg = row->src,
			.off = row->off, .imm = row->imm,
		};
		char buf[96];

		CHECK(disasm_insn(&insn, NULL, buf, sizeof(buf)) == 1, "%s", row->text);
		CHECK(!strcmp(buf, row->text), "%s instead of %s", buf, row->text);
	}
}

static void wide_immediates(void)
{
	static const struct row rows[] = {
		{ 0x18, 1, 0, 0, -1, "r1 = 0x1ffffffff" },
		{ 0x18, 1, 1, 0, 4, "r1 = map[fd:4]" },
		{ 0x18, 2, 2, 0, 4, "r2 = map[fd:4][0]+1" },
		{ 0x18, 2, 4, 0, 9, "r2 = func[pc+9]" },
	};
	const struct bpf_insn next = { .imm = 1 };

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct bpf_insn insn = {
			.code = rows[i].code, .dst_reg = rows[i].dst, .src_reg = rows[i].src,
			.imm = rows[i].imm,
		};
		char buf[96];

		CHECK(disasm_insn(&insn, &next, buf, sizeof(buf)) == 2, "%s", rows[i].text);
		CHECK(!strcmp(buf, rows[i].text), "%s instead of %s", buf, rows[i].text);
	}
}

/* Random bytes result in a terminated line that fits the buffer. */
static void random_bytes(void)
{
	uint64_t random = 1;

	for (int i = 0; i < 300000; i++) {
		struct bpf_insn insns[2];
		size_t room = i % 70;
		char *buf = malloc(room + 1);
		unsigned char bytes[sizeof(insns)];

		for (size_t at = 0; at < sizeof(bytes); at++) {
			random = random * 6364136223846793005 + 1442695040888963407;
			bytes[at] = random >> 56;
		}
		memcpy(insns, bytes, sizeof(insns));
		insns[0].code = i;
		if (i & 256)
			insns[0].imm &= 0xf1;
		if (i & 512)
			insns[1].code = 0;
		buf[room] = '#';
		disasm_insn(&insns[0], i & 1024 ? &insns[1] : NULL, buf, room);
		CHECK(buf[room] == '#', "%d", i);
		CHECK(!room || memchr(buf, '\0', room), "%d", i);
		CHECK(room < 2 || buf[0], "%d", i);
		free(buf);
	}
}

int main(void)
{
	RUN(single_instructions);
	RUN(wide_immediates);
	RUN(random_bytes);
	return check_done();
}
