/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* usdt/spec.c and arch*.c: valid specs, their format, errors, and hostile input. */
#include "usdt/spec.h"

#include <elf.h>
#include <stdlib.h>
#include <time.h>

#include "host/arch.h"
#include "tests/unit/check.h"
#include "tests/unit/corpus.h"
#include "tests/unit/host.h"
#include "tests/unit/machines.h"
#include "usdt/arch.h"

#define COUNT(a)	(sizeof(a) / sizeof(*(a)))

static bool is64(uint16_t machine)
{
	return machine != EM_386 && machine != EM_ARM;
}

struct row {
	const char *text;
	const char *format;		/* the part behind "SIZE type bytes @ " */
	enum spec_kind kind;
	uint8_t bits, shift;		/* registers */
	bool pc_relative;
};

#define REG(text, format, bits, shift)	{ text, format, SPEC_REG, bits, shift, false }
#define CONSTANT(text, format)		{ text, format, SPEC_CONST, 0, 0, false }
#define MEM(text, format)		{ text, format, SPEC_MEM, 0, 0, false }
#define PC(text, format)		{ text, format, SPEC_MEM, 0, 0, true }

static void check_row(uint16_t machine, const struct row *row)
{
	char buf[256];
	const char *shown;
	struct spec spec;
	enum spec_reason reason;

	reason = spec_parse(machine, is64(machine), row->text, strlen(row->text), &spec);
	CHECK(reason == SPEC_OK && spec.reason == SPEC_OK, "%s: %s", row->text,
	      spec_reason(reason));
	CHECK(spec.kind == row->kind, "%s: kind %d", row->text, spec.kind);
	CHECK(spec.text == row->text && spec.text_len == strlen(row->text));
	CHECK(spec.pc_relative == row->pc_relative, "%s", row->text);
	if (row->kind == SPEC_REG)
		CHECK(spec.reg_bits == row->bits && spec.reg_shift == row->shift, "%s: %d >> %d",
		      row->text, spec.reg_bits, spec.reg_shift);
	spec_format(machine, &spec, buf, sizeof(buf));
	shown = strstr(buf, "@ ");
	CHECK(shown && !strcmp(shown + 2, row->format), "%s: %s", row->text, buf);
}

#define CHECK_ROWS(machine, rows)                                \
	do {                                                     \
		for (size_t row_ = 0; row_ < COUNT(rows); row_++) \
			check_row(machine, &(rows)[row_]);       \
	} while (0)

static void x86_64(void)
{
	static const struct row rows[] = {
		REG("8@%rax", "ax", 64, 0), REG("8@%r8", "r8", 64, 0),
		REG("8@%r15", "r15", 64, 0), REG("8@%rsp", "sp", 64, 0),
		REG("8@%rip", "ip", 64, 0), REG("4@%ebp", "bp", 32, 0),
		REG("-4@%r14d", "r14", 32, 0), REG("2@%r13w", "r13", 16, 0),
		REG("2@%si", "si", 16, 0), REG("1@%r12b", "r12", 8, 0),
		REG("1@%al", "ax", 8, 0), REG("1@%dl", "dx", 8, 0),
		REG("1@%dil", "di", 8, 0), REG("1@%sil", "si", 8, 0),
		REG("1@%bpl", "bp", 8, 0), REG("1@%spl", "sp", 8, 0),
		REG("1@%ah", "ah", 8, 8), REG("1@%bh", "bh", 8, 8),
		CONSTANT("-4@$0", "0"), CONSTANT("-4@$-1", "-1"),
		CONSTANT("-8@$140737488355327", "140737488355327"),
		CONSTANT("8@$0xffffffffffffffff", "-1"),
		CONSTANT("-8@$-9223372036854775808", "-9223372036854775808"),
		MEM("4@(%r12)", "*(r12 + 0)"), MEM("4@0(%r13)", "*(r13 + 0)"),
		MEM("-4@-136(%rbp)", "*(bp - 136)"), MEM("8@8(%rsp)", "*(sp + 8)"),
		MEM("4@(%rdi,%r10)", "*(di + 0 + r10)"),
		MEM("4@12(%rdi,%r10)", "*(di + 12 + r10)"),
		MEM("-2@(%r9,%rax,2)", "*(r9 + 0 + ax * 2)"),
		MEM("8@-8(%r9,%rax,8)", "*(r9 - 8 + ax * 8)"),
		MEM("8@arr(,%rax,8)", "*(&arr + 0 + ax * 8)"),
		MEM("8@16(,%rax,8)", "*(ax * 8 + 16)"),
		MEM("8@arr+16(%rdi,%rax,8)", "*(&arr + 16 + di + ax * 8)"),
		MEM("8@4096", "*(0x1000)"),
		MEM("8@global", "*(&global + 0)"),
		PC("-4@NBuffers(%rip)", "*(&NBuffers + 0)"),
		PC("-4@40+CheckpointStats(%rip)", "*(&CheckpointStats + 40)"),
		PC("-4@CheckpointStats+40(%rip)", "*(&CheckpointStats + 40)"),
		PC("-4@-8+a.b$c(%rip)", "*(&a.b$c - 8)"),
		PC("8@8+a-16+4(%rip)", "*(&a - 4)"),
		MEM("4@4(%eax)", "*(ax + 4)"), MEM("4@4(%r8d,%ecx)", "*(r8 + 4 + cx)"),
		REG("8f@%r11", "r11", 64, 0), MEM("8f@56(%r10)", "*(r10 + 56)"),
		REG("%rdi", "di", 64, 0), MEM("16(%rdi)", "*(di + 16)"),
		CONSTANT("$5", "5"),
	};

	CHECK_ROWS(EM_X86_64, rows);
}

static void i386(void)
{
	static const struct row rows[] = {
		REG("-4@%eax", "ax", 32, 0), REG("1@%edx", "dx", 32, 0),
		REG("1@%dl", "dx", 8, 0), CONSTANT("-4@$2", "2"),
		MEM("4@16(%esp)", "*(sp + 16)"),
		MEM("-4@40+CheckpointStats@GOTOFF(%ebx)", "*(&CheckpointStats@GOTOFF + 40 + bx)"),
		REG("%edi", "di", 32, 0), REG("4@%ret", "ax", 32, 0),
		MEM("4@NBuffers", "*(&NBuffers + 0)"),
	};

	CHECK_ROWS(EM_386, rows);
}

static void aarch64(void)
{
	static const struct row rows[] = {
		REG("8@x0", "x0", 64, 0), REG("8@x30", "x30", 64, 0),
		REG("8@sp", "sp", 64, 0), REG("4@w7", "x7", 32, 0),
		REG("4@wsp", "sp", 32, 0), REG("8@fp", "x29", 64, 0),
		REG("8@lr", "x30", 64, 0), CONSTANT("8@xzr", "0"),
		CONSTANT("4@wzr", "0"), CONSTANT("-4@-1", "-1"),
		CONSTANT("-4@#3", "3"), CONSTANT("4@0x10", "16"),
		MEM("4@[x0]", "*(x0 + 0)"), MEM("4@[x0, 12]", "*(x0 + 12)"),
		MEM("4@[x0, #-12]", "*(x0 - 12)"), MEM("4@[x0,12]", "*(x0 + 12)"),
		MEM("8@[sp, 64]", "*(sp + 64)"), MEM("8@[x3, x1]", "*(x3 + 0 + x1)"),
		MEM("8@[x3, x1, lsl 3]", "*(x3 + 0 + x1 * 8)"),
		MEM("8@[x3, x1, lsl #1]", "*(x3 + 0 + x1 * 2)"),
		MEM("8@[x31, 16]", "*(sp + 16)"), MEM("8@[x3, x31]", "*(x3 + 0)"),
		MEM("8@[x3, xzr]", "*(x3 + 0)"), REG("8f@x9", "x9", 64, 0),
		REG("x1", "x1", 64, 0),
	};

	CHECK_ROWS(EM_AARCH64, rows);
}

static void arm(void)
{
	static const struct row rows[] = {
		REG("4@r0", "r0", 32, 0), REG("4@r10", "r10", 32, 0),
		REG("4@fp", "r11", 32, 0), REG("4@ip", "r12", 32, 0),
		REG("4@sp", "sp", 32, 0), REG("4@lr", "lr", 32, 0),
		CONSTANT("-4@#0", "0"), CONSTANT("-4@#-7", "-7"),
		MEM("4@[r0]", "*(r0 + 0)"), MEM("4@[r3, #64]", "*(r3 + 64)"),
		MEM("4@[fp, #-8]", "*(r11 - 8)"),
		MEM("4@[r3, r2, lsl #2]", "*(r3 + 0 + r2 * 4)"),
		REG("4@%arg3", "r3", 32, 0),
	};

	CHECK_ROWS(EM_ARM, rows);
}

static void others(void)
{
	static const struct row ppc[] = {
		REG("8@30", "r30", 64, 0), CONSTANT("-4@i0", "0"),
		CONSTANT("-4@i-1", "-1"), MEM("-4@0(10)", "*(r10 + 0)"),
		MEM("8@-16(1)", "*(r1 - 16)"), REG("8@%r3", "r3", 64, 0),
		MEM("8@8(%arg1)", "*(r4 + 8)"), MEM("8@9,10", "*(r9 + 0 + r10)"),
		MEM("-4@0,9", "*(r9 + 0)"), MEM("4@%r9,%r10", "*(r9 + 0 + r10)"),
	};
	static const struct row s390[] = {
		REG("8@%r2", "r2", 64, 0), CONSTANT("-4@7", "7"),
		CONSTANT("-4@-1", "-1"), MEM("4@12(%r11)", "*(r11 + 12)"),
		MEM("4@12(%r3,%r11)", "*(r11 + 12 + r3)"),
	};
	static const struct row riscv[] = {
		REG("8@a0", "a0", 64, 0), REG("8@s11", "s11", 64, 0),
		REG("8@t3", "t3", 64, 0), REG("8@sp", "sp", 64, 0),
		REG("8@fp", "s0", 64, 0), CONSTANT("-4@zero", "0"),
		CONSTANT("-4@-5", "-5"), MEM("4@12(a5)", "*(a5 + 12)"),
		REG("8@ra", "ra", 64, 0), REG("8@tp", "tp", 64, 0), REG("4@%arg5", "a5", 64, 0),
		REG("8@%ret", "a0", 64, 0), MEM("8@-24(sp)", "*(sp - 24)"),
		MEM("8@8(zero)", "*(0x8)"), MEM("8@8(0x68(%arg0))", "*(*(a0 + 104) + 8)"),
	};
	static const struct row mips[] = {
		REG("8@$16", "$16", 64, 0), REG("8@$fp", "$30", 64, 0),
		REG("8@$sp", "$29", 64, 0), CONSTANT("-4@0", "0"),
		CONSTANT("4@$0", "0"), MEM("4@12($16)", "*($16 + 12)"),
	};
	static const struct row loongarch[] = {
		REG("8@$r23", "$r23", 64, 0), REG("8@$a0", "$r4", 64, 0),
		REG("8@$fp", "$r22", 64, 0), REG("8@%arg5", "$r9", 64, 0),
		CONSTANT("-4@-5", "-5"), CONSTANT("4@$zero", "0"), CONSTANT("4@$r0", "0"),
		MEM("-4@$r22,-20", "*($r22 - 20)"), MEM("8@$r3,0", "*($r3 + 0)"),
		MEM("8@$r12,$r13", "*($r12 + 0 + $r13)"), MEM("8@$r0,2032", "*(0x7f0)"),
		MEM("-1@[$r12, 24]", "*($r12 + 24)"), MEM("1@[$r12]", "*($r12 + 0)"),
		MEM("8@[$r12, $r13]", "*($r12 + 0 + $r13)"),
	};

	CHECK_ROWS(EM_PPC64, ppc);
	CHECK_ROWS(EM_S390, s390);
	CHECK_ROWS(EM_RISCV, riscv);
	CHECK_ROWS(EM_MIPS, mips);
	CHECK_ROWS(EM_LOONGARCH, loongarch);
}

/* The architecture-independent grammar of engine descriptors. */
static void portable(void)
{
	static const struct row x86[] = {
		REG("8@%arg0", "di", 64, 0), REG("8@%arg1", "si", 64, 0),
		REG("4@%arg2", "dx", 64, 0), REG("8@%arg3", "cx", 64, 0),
		REG("8@%arg4", "r8", 64, 0), REG("8@%arg5", "r9", 64, 0),
		REG("-4@%ret", "ax", 64, 0), REG("8@%ip", "ip", 64, 0),
		MEM("8@16(%arg1)", "*(si + 16)"), MEM("8@(%ret)", "*(ax + 0)"),
		MEM("8@8(0x68(%arg0))", "*(*(di + 104) + 8)"),
		MEM("8@((%arg0))", "*(*(di + 0))"),
		MEM("2@1(2(3(4(5(%arg0)))))", "*(*(*(*(*(di + 5) + 4) + 3) + 2) + 1)"),
		MEM("8@-8(16(%rbx))", "*(*(bx + 16) - 8)"),
		PC("8@MyProcPort(%ip)", "*(&MyProcPort + 0)"),
		PC("8@8+MyProcPort(%ip)", "*(&MyProcPort + 8)"),
		PC("8@&MyProcPort(%ip)", "&MyProcPort + 0"),
		PC("8@&0x30(MyProcPort(%ip))", "*(&MyProcPort + 0) + 48"),
		PC("8@0x30(MyProcPort(%ip))", "*(*(&MyProcPort + 0) + 48)"),
	};
	static const struct row a64[] = {
		REG("8@%arg0", "x0", 64, 0), REG("8@%arg5", "x5", 64, 0),
		REG("-4@%ret", "x0", 64, 0), REG("8@%ip", "pc", 64, 0),
		MEM("8@8(0x68(%arg0))", "*(*(x0 + 104) + 8)"),
		PC("8@0x30(MyProcPort(%ip))", "*(*(&MyProcPort + 0) + 48)"),
		MEM("8@8(%x19)", "*(x19 + 8)"),
	};
	static const char deep[] = "8@8(0x68(%arg0))";
	struct spec spec;

	CHECK_ROWS(EM_X86_64, x86);
	CHECK_ROWS(EM_AARCH64, a64);
	CHECK(spec_parse(EM_X86_64, true, deep, strlen(deep), &spec) == SPEC_OK);
	CHECK(spec.nderef == 1 && spec.value == 0x68 && spec.deref[0] == 8);
}

static void unavailable(void)
{
	static const struct {
		uint16_t machine;
		const char *text;
		enum spec_reason reason;
	} table[] = {
		{ EM_X86_64, "8f@%xmm0", SPEC_NO_PT_REGS },
		{ EM_X86_64, "8@%r16", SPEC_NO_PT_REGS },
		{ EM_X86_64, "4f@%st(0)", SPEC_NO_PT_REGS },
		{ EM_X86_64, "2@%cs", SPEC_NO_PT_REGS },
		{ EM_X86_64, "-4@%fs:tls@tpoff", SPEC_TLS }, { EM_X86_64, "8@%fs:0", SPEC_TLS },
		{ EM_X86_64, "8@tls@TPOFF(%rax)", SPEC_TLS },
		{ EM_386, "4@%gs:tls@ntpoff", SPEC_TLS },
		{ EM_X86_64, "3@%rax", SPEC_BAD_SIZE }, { EM_X86_64, "16f@(%rax)", SPEC_BAD_SIZE },
		{ EM_X86_64, "0@%rax", SPEC_BAD_SIZE }, { EM_X86_64, "@%rax", SPEC_BAD_SIZE },
		{ EM_X86_64, "8@", SPEC_BAD_OPERAND }, { EM_X86_64, "8@%", SPEC_BAD_OPERAND },
		{ EM_X86_64, "8@$", SPEC_BAD_OPERAND }, { EM_X86_64, "8@$sym", SPEC_BAD_OPERAND },
		{ EM_X86_64, "8@$18446744073709551616", SPEC_BAD_OPERAND },
		{ EM_X86_64, "8@$-9223372036854775809", SPEC_BAD_OPERAND },
		{ EM_X86_64, "8@$010", SPEC_BAD_OPERAND }, { EM_X86_64, "8@$0x", SPEC_BAD_OPERAND },
		{ EM_X86_64, "8@%rax ", SPEC_BAD_OPERAND },
		{ EM_X86_64, "8@%rax8", SPEC_BAD_REGISTER },
		{ EM_X86_64, "8@%rfoo", SPEC_BAD_REGISTER },
		{ EM_X86_64, "8@%r7", SPEC_BAD_REGISTER },
		{ EM_X86_64, "8@%r8q", SPEC_BAD_REGISTER },
		{ EM_X86_64, "8@%ril", SPEC_BAD_REGISTER },
		{ EM_X86_64, "8@8(%rax", SPEC_BAD_OPERAND },
		{ EM_X86_64, "8@8(rax)", SPEC_BAD_OPERAND },
		{ EM_X86_64, "8@8(%rax,%rbx,3)", SPEC_BAD_OPERAND },
		{ EM_X86_64, "8@8(%rax,%ebx)", SPEC_BAD_REGISTER },
		{ EM_X86_64, "8@8(%ax)", SPEC_BAD_REGISTER },
		{ EM_X86_64, "8@a+b(%rip)", SPEC_BAD_OPERAND },
		{ EM_X86_64, "8@4-a(%rip)", SPEC_BAD_OPERAND },
		{ EM_X86_64, "8@()", SPEC_BAD_OPERAND },
		{ EM_X86_64, "8@%arg6", SPEC_BAD_REGISTER },
		{ EM_X86_64, "8@1(2(3(4(5(6(%arg0))))))", SPEC_TOO_LONG },
		{ EM_X86_64, "8@1(a(8(%arg0)))", SPEC_BAD_OPERAND },
		{ EM_X86_64, "8@8(0x68(%edi))", SPEC_BAD_REGISTER },
		{ EM_386, "8@%rax", SPEC_BAD_REGISTER }, { EM_386, "4@%r8d", SPEC_BAD_REGISTER },
		{ EM_386, "4@%arg0", SPEC_BAD_REGISTER },
		{ EM_AARCH64, "8@[x0, #:lo12:.LANCHOR2]", SPEC_PARTIAL_SYMBOL },
		{ EM_AARCH64, "8@[x0,:lo12:sym]", SPEC_PARTIAL_SYMBOL },
		{ EM_AARCH64, "8@[x0, #:tprel_lo12_nc:tls]", SPEC_TLS },
		{ EM_AARCH64, "8f@d0", SPEC_NO_PT_REGS }, { EM_AARCH64, "4f@s31", SPEC_NO_PT_REGS },
		{ EM_AARCH64, "8@x31", SPEC_AMBIGUOUS }, { EM_AARCH64, "4@w31", SPEC_AMBIGUOUS },
		{ EM_AARCH64, "8@x31 ", SPEC_BAD_OPERAND },
		{ EM_AARCH64, "8@x32", SPEC_BAD_REGISTER },
		{ EM_ARM, "4@x31", SPEC_BAD_REGISTER },
		{ EM_PPC64, "8@9,", SPEC_BAD_OPERAND }, { EM_PPC64, "8@9,10,11", SPEC_BAD_OPERAND },
		{ EM_PPC64, "8@9,32", SPEC_BAD_REGISTER },
		{ EM_LOONGARCH, "8f@$f0", SPEC_NO_PT_REGS },
		{ EM_LOONGARCH, "8f@$fa0", SPEC_NO_PT_REGS },
		{ EM_LOONGARCH, "8@$r12,%pc_lo12(sym)", SPEC_PARTIAL_SYMBOL },
		{ EM_LOONGARCH, "8@$r32", SPEC_BAD_REGISTER },
		{ EM_LOONGARCH, "8@$r12,", SPEC_BAD_OPERAND },
		{ EM_LOONGARCH, "8@$r12,8,8", SPEC_BAD_OPERAND },
		{ EM_LOONGARCH, "8@[$r12,8", SPEC_BAD_OPERAND },
		{ EM_LOONGARCH, "8@[8]", SPEC_BAD_REGISTER },
		{ EM_AARCH64, "8@x01", SPEC_BAD_REGISTER },
		{ EM_AARCH64, "8@w", SPEC_BAD_REGISTER }, { EM_AARCH64, "8@[x0", SPEC_BAD_OPERAND },
		{ EM_AARCH64, "8@[x0, w1, sxtw 2]", SPEC_BAD_OPERAND },
		{ EM_AARCH64, "8@[x0, x1, lsl 4]", SPEC_BAD_OPERAND },
		{ EM_AARCH64, "8@[x0], 16", SPEC_BAD_OPERAND },
		{ EM_AARCH64, "8@[x0, 16]!", SPEC_BAD_OPERAND },
		{ EM_AARCH64, "8@[w0]", SPEC_BAD_REGISTER },
		{ EM_AARCH64, "8@[xzr]", SPEC_BAD_REGISTER },
		{ EM_AARCH64, "8@%rax", SPEC_BAD_REGISTER },
		{ EM_ARM, "8f@d7", SPEC_NO_PT_REGS }, { EM_ARM, "4@%arg4", SPEC_BAD_REGISTER },
		{ EM_PPC64, "8@32", SPEC_BAD_REGISTER }, { EM_PPC64, "8f@%f1", SPEC_NO_PT_REGS },
		{ EM_PPC64, "8@sym@toc@l(9)", SPEC_PARTIAL_SYMBOL },
		{ EM_S390, "8f@%f0", SPEC_NO_PT_REGS }, { EM_S390, "8@%r16", SPEC_BAD_REGISTER },
		{ EM_RISCV, "8@%lo(sym)(a5)", SPEC_PARTIAL_SYMBOL },
		{ EM_RISCV, "8f@fa0", SPEC_NO_PT_REGS },
		{ EM_MIPS, "4@%lo(sym)($2)", SPEC_PARTIAL_SYMBOL },
		{ EM_MIPS, "8f@$f12", SPEC_NO_PT_REGS },
		{ EM_NONE, "8@%rax", SPEC_BAD_OPERAND },
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		enum spec_reason reason;
		struct spec spec;
		char buf[256];

		reason = spec_parse(table[i].machine, is64(table[i].machine), table[i].text,
				    strlen(table[i].text), &spec);
		CHECK(reason == table[i].reason && spec.reason == reason, "%s: %s", table[i].text,
		      spec_reason(reason));
		CHECK(spec.kind == SPEC_UNAVAILABLE, "%s", table[i].text);
		spec_format(table[i].machine, &spec, buf, sizeof(buf));
		CHECK(strstr(buf, spec_reason(reason)), "%s", buf);
		if (reason < SPEC_AMBIGUOUS || reason > SPEC_PARTIAL_SYMBOL)
			CHECK(strstr(buf, "? ("), "%s", buf);
		else
			CHECK(strstr(buf, strchr(table[i].text, '@') + 1), "%s", buf);
	}
}

static void sizes_and_format(void)
{
	static const struct {
		const char *text, *format;
		uint8_t size;
		bool is_signed, is_float;
	} table[] = {
		{ "8@%rax", "8 unsigned bytes @ ax", 8, false, false },
		{ "-4@-136(%rbp)", "4 signed   bytes @ *(bp - 136)", 4, true, false },
		{ "-4@$0", "4 signed   bytes @ 0", 4, true, false },
		{ "-1@$-1", "1 signed   bytes @ -1", 1, true, false },
		{ "2@a+8(%rip)", "2 unsigned bytes @ *(&a + 8)", 2, false, false },
		{ "8f@%r11", "8 float    bytes @ r11", 8, false, true },
		{ "8f@%xmm0", "8 float    bytes @ %xmm0 (a register that the kernel does not save)",
		  8, false, true },
		{ "-4@%fs:a@tpoff", "4 signed   bytes @ %fs:a@tpoff (a thread-local variable)", 4,
		  true, false },
		{ "5@%rax", "? (a size other than 1, 2, 4 or 8 bytes)", 0, false, false },
		{ "%rax", "8 unsigned bytes @ ax", 8, false, false },
	};
	char buf[128];
	struct spec spec;

	for (size_t i = 0; i < COUNT(table); i++) {
		int len;

		spec_parse(EM_X86_64, true, table[i].text, strlen(table[i].text), &spec);
		CHECK(spec.size == table[i].size && spec.is_signed == table[i].is_signed &&
		      spec.is_float == table[i].is_float, "%s", table[i].text);
		len = spec_format(EM_X86_64, &spec, buf, sizeof(buf));
		CHECK(!strcmp(buf, table[i].format), "%s", buf);
		CHECK(len == (int)strlen(buf), "%d", len);
		for (size_t room = 0; room <= (size_t)len; room++) {
			char *small = malloc(room);

			CHECK(spec_format(EM_X86_64, &spec, small, room) == len);
			CHECK(!room || !strncmp(small, table[i].format, room - 1), "%s", small);
			CHECK(!room || !small[room - 1]);
			free(small);
		}
	}
	spec_parse(EM_X86_64, true, "1@%ah", 5, &spec);
	spec_format(EM_X86_64, &spec, buf, sizeof(buf));
	CHECK(!strcmp(buf, "1 unsigned bytes @ ah"), "%s", buf);
	spec_parse(EM_386, false, "%eax", 4, &spec);
	CHECK(spec.size == 4, "%d", spec.size);
}

static void split(void)
{
	static const struct {
		uint16_t machine;
		const char *args;
		size_t n;
		const char *last;
		enum spec_reason last_reason;
	} table[] = {
		{ EM_X86_64, "", 0, NULL, SPEC_OK }, { EM_X86_64, "  ", 0, NULL, SPEC_OK },
		{ EM_X86_64, "8@%rax -4@$0", 2, "-4@$0", SPEC_OK },
		{ EM_X86_64, " 8@%rax  4@%r14d ", 2, "4@%r14d", SPEC_OK },
		{ EM_X86_64, "%rax $5 8(%rbx)", 3, "8(%rbx)", SPEC_OK },
		{ EM_X86_64, "8@(%rax, %rbx) 4@%eax", 2, "4@%eax", SPEC_OK },
		{ EM_X86_64, "8@(%rax 4@%eax", 2, "4@%eax", SPEC_OK },
		{ EM_AARCH64, "-4@[x0, 12] 8@x1 8@[x0, #:lo12:.LANCHOR2] 4@[sp, 64]", 4,
		  "4@[sp, 64]", SPEC_OK },
		{ EM_AARCH64, "8@[x3, x1, lsl 3] -4@-1", 2, "-4@-1", SPEC_OK },
		{ EM_AARCH64, "8@[x3,  -4@-1", 2, "-4@-1", SPEC_OK },
		{ EM_AARCH64, "8@] 4@x2", 2, "4@x2", SPEC_OK },
		{ EM_AARCH64, "8@x1 8@[x0, #:lo12:.LANCHOR2]", 2, "8@[x0, #:lo12:.LANCHOR2]",
		  SPEC_PARTIAL_SYMBOL },
	};
	struct spec specs[SPEC_ARGS_MAX];

	for (size_t i = 0; i < COUNT(table); i++) {
		size_t n = spec_parse_all(table[i].machine, true, table[i].args, specs,
					  SPEC_ARGS_MAX);
		const struct spec *last = &specs[n ? n - 1 : 0];

		CHECK(n == table[i].n, "%s: %zu", table[i].args, n);
		if (!n || n != table[i].n)
			continue;
		CHECK(last->text_len == strlen(table[i].last) &&
		      !memcmp(last->text, table[i].last, last->text_len), "%s: %.*s",
		      table[i].args, (int)last->text_len, last->text);
		CHECK(last->reason == table[i].last_reason, "%s: %s", table[i].args,
		      spec_reason(last->reason));
	}
	CHECK(spec_parse_all(EM_X86_64, true, "1@%al 1@%bl 1@%cl", specs, 2) == 3);
	CHECK(spec_parse_all(EM_X86_64, true, "1@%al 1@%bl 1@%cl", NULL, 0) == 3);
	CHECK(spec_parse_all(EM_X86_64, true, NULL, NULL, 0) == 0);
}

struct corpus {
	uint16_t machine;
	enum spec_reason allowed;	/* besides SPEC_OK */
};

static void corpus_spec(const char *text, void *arg)
{
	const struct corpus *corpus = arg;
	struct spec specs[2];
	enum spec_reason reason;
	size_t n = spec_parse_all(corpus->machine, is64(corpus->machine), text, specs, 2);

	reason = specs[0].reason;
	CHECK(n == 1, "%s: %zu", text, n);
	CHECK(reason == SPEC_OK || reason == corpus->allowed, "%s: %s", text, spec_reason(reason));
}

/* Every spec found in distributions is supported, except aarch64's #:lo12:. */
static void corpora(void)
{
	static const struct {
		const char *name;
		struct corpus corpus;
		int least;
	} table[] = {
		{ "x86_64", { EM_X86_64, SPEC_OK }, 200 }, { "i386", { EM_386, SPEC_OK }, 140 },
		{ "aarch64", { EM_AARCH64, SPEC_PARTIAL_SYMBOL }, 160 },
		{ "ppc64le", { EM_PPC64, SPEC_OK }, 80 }, { "riscv64", { EM_RISCV, SPEC_OK }, 180 },
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		int n = corpus_each(table[i].name, corpus_spec, (void *)&table[i].corpus);

		CHECK(n >= table[i].least, "%s/specs/%s.txt: %d", corpus_dir, table[i].name, n);
	}
}

static void host_registers(void)
{
	const struct arch *arch = arch_of(HOST_ELF_MACHINE);
	static const struct {
		const char *name;
		size_t offset;
	} rows[] = {
#define ROW(name, member)	{ name, offsetof(REGISTERS, member) },
		REGISTER_ROWS(ROW)
#undef ROW
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct arch_reg reg = { .slot = SPEC_NO_REG };

		CHECK(arch->reg(arch, rows[i].name, strlen(rows[i].name), &reg) == SPEC_OK);
		CHECK(reg.slot * 8 == (int)rows[i].offset, "%s", rows[i].name);
	}
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static uint32_t next_random(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	return *seed ^= *seed << 5;
}

/* Parse a heap copy of exactly @len bytes, so that a sanitizer detects an overread. */
static void parse_exactly(const char *bytes, size_t len)
{
	char *text = malloc(len ? len : 1), buf[64];

	memcpy(text, bytes, len);
	for (size_t i = 0; i <= MACHINES; i++) {
		uint16_t machine = machine_at(i);
		struct spec spec;

		spec_parse(machine, is64(machine), text, len, &spec);
		spec_format(machine, &spec, buf, sizeof(buf));
		CHECK(strlen(buf) < sizeof(buf));
	}
	free(text);
}

static void random_bytes(void)
{
	static const char *const tokens[] = {
		"8@", "-4@", "1f@", "%", "$", "#", "(", ")", "[", "]", ",", ", ", "rax", "r8",
		"arg0", "ret", "ip", "x0", "w1", "sp", "lsl ",
		":lo12:", "sym", "+", "-", "0x", "8", "16", "i", "@GOTOFF", "%lo(",
		"a0", "fp", "99999999999999999999", "\xff", "r", "f", "zero", "$f",
	};
	uint32_t seed = 7;

	for (int i = 0; i < 60000; i++) {
		char bytes[128];
		size_t len = 0, want = next_random(&seed) % 12;

		for (size_t n = 0; n < want; n++) {
			const char *token = tokens[next_random(&seed) % COUNT(tokens)];

			if (i % 4) {
				memcpy(bytes + len, token, strlen(token));
				len += strlen(token);
			} else {
				bytes[len++] = (char)next_random(&seed);
			}
			if (len > sizeof(bytes) - 32)
				break;
		}
		parse_exactly(bytes, len);
	}
}

/* A megabyte of each: quadratic time would take minutes. */
static void huge_strings(void)
{
	static const char *const repeated[] = {
		"a", "(", ")", "[", " ", "8", "0", "8@", "8@ ", "8@%", "8@(", "8@[x0, ", "1 ",
		"[ 1 ", "( -", "8@1(", "1+", "a+", "-", "+-", "@", "a@", "%", "%arg0", "$",
		"8@%rax ", "8@[", "\xff", ", ", "8@$1", "-8f", "(%rax,", "8@[x0, #:lo12:a] ",
	};
	static const char *const starts[] = { "", "8@", "8@$", "8@[x0, ", "8@8(", "8@$0x", "8@a@" };
	size_t size = 1 << 20;
	char *text = malloc(size + 1);

	for (size_t i = 0; i < COUNT(repeated) * COUNT(starts); i++) {
		const char *unit = repeated[i / COUNT(starts)], *start = starts[i % COUNT(starts)];
		uint16_t machine = machine_at(i);
		size_t at = strlen(start), n = strlen(unit);
		struct spec specs[SPEC_ARGS_MAX];
		double begun = seconds();
		char buf[64];

		memcpy(text, start, at);
		for (; at < size; at++)
			text[at] = unit[(at - strlen(start)) % n];
		text[size] = '\0';
		spec_parse_all(machine, is64(machine), text, specs, SPEC_ARGS_MAX);
		spec_parse(EM_X86_64, true, text, size, &specs[0]);
		spec_format(EM_X86_64, &specs[0], buf, sizeof(buf));
		spec_parse(EM_AARCH64, true, text, size, &specs[0]);
		spec_format(EM_AARCH64, &specs[0], buf, sizeof(buf));
		CHECK(seconds() - begun < 2, "%s %s: %f s", start, unit, seconds() - begun);
	}
	free(text);
}

int main(int argc, char **argv)
{
	corpus_init(argc, argv);
	RUN(x86_64);
	RUN(i386);
	RUN(aarch64);
	RUN(arm);
	RUN(others);
	RUN(portable);
	RUN(unavailable);
	RUN(sizes_and_format);
	RUN(split);
	RUN(corpora);
	RUN(host_registers);
	RUN(random_bytes);
	RUN_LONG(huge_strings);
	return check_done();
}
