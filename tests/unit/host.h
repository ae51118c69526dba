/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What unit tests need of the architecture that they run on, beside host/arch.h. */
#ifndef TESTS_UNIT_HOST_H
#define TESTS_UNIT_HOST_H

#include <asm/ptrace.h>

/*
 * HOST_CORPUS: the directory in tests/data/specs/.
 * REGISTERS, REGISTER_ROWS(): the structure of a program's context, and the member of each name.
 * SAMPLE_*: functions for tests/unit/accessor.c, which read SAMPLE_OFFSET.
 * LINE(): a load before a call. LOADS, LOAD_OWNERS: such loads, and the register of each; none if
 * there are fewer. CALL_LENGTH(n): whether a call may have n bytes.
 * PROLOGUE, ENTRY, PUSHED, SITE: a function's start, and the specs of its return address there, at
 * prologue_pushed and at prologue_site. They use INSN() and LABEL() of tests/unit/site.c.
 */
#if defined(__x86_64__)
#define HOST_CORPUS	"x86_64"
#define REGISTERS	struct pt_regs
#define REGISTER_ROWS(ROW)							\
	ROW("r15", r15) ROW("r14", r14) ROW("r13", r13) ROW("r12", r12) ROW("rbp", rbp)	\
	ROW("rbx", rbx) ROW("r11", r11) ROW("r10", r10) ROW("r9", r9) ROW("r8", r8)	\
	ROW("rax", rax) ROW("rcx", rcx) ROW("rdx", rdx) ROW("rsi", rsi) ROW("rdi", rdi)	\
	ROW("rip", rip) ROW("rsp", rsp)
#define SAMPLE_VALUE	".byte 0x48, 0x8b, 0x87, 0x18, 0x3f, 0x00, 0x00, 0xc3\n"
#define SAMPLE_SETTER	".byte 0x48, 0x89, 0x77, 0x68, 0xc3\n"
#define SAMPLE_COMPARED	".byte 0x48, 0x8b, 0x47, 0x68, 0x83, 0x78, 0x08, 0x05, 0xc3\n"
#define SAMPLE_OFFSET	0x3f18
#define SAMPLE_GLOBAL	".byte 0xf3, 0x0f, 0x1e, 0xfa\nmov sample_variable(%rip), %rax\nret\n"
#define CALL_LENGTH(n)	((n) == 5)
#define LINE(load)	"	" load "\n	call called\n"
#define LOADS LINE("mov 0x58(%rbx),%rdi") LINE("mov 0x58(%r15),%rdi")             \
	LINE("mov 0x58(%rax),%rdi") LINE("mov 0x58(%r13),%rdi")                   \
	LINE("mov 0x58(%r12),%rdi") LINE("mov 0x60(%rbx),%rdi")                   \
	LINE("mov 0x58(%rbx),%rsi") LINE("lea 0x58(%rbx),%rdi")
#define LOAD_OWNERS	"rbx", "r15", "rax", "r13"
#define ENTRY	"0(%rsp)"
#define PUSHED	"24(%rsp)"
#define SITE	"400(%rsp)"
#define PROLOGUE								\
	INSN("endbr64") INSN("push %rbp") INSN("mov %rsp,%rbp") INSN("push %r15")	\
	INSN("push %r12") LABEL("prologue_pushed") INSN("sub $0x38,%rsp")		\
	INSN("sub $0x140,%rsp") INSN("mov %fs:0x28,%rax") LABEL("prologue_site")	\
	INSN("nop") INSN("and $-32,%rsp") LABEL("prologue_lost") INSN("ret")		\
	INSN(".skip 300,0x90") LABEL("prologue_end") INSN("nop")
#elif defined(__aarch64__)
#define HOST_CORPUS	"aarch64"
#define REGISTERS	struct user_pt_regs
#define REGISTER_ROWS(ROW)							\
	ROW("x0", regs[0]) ROW("x1", regs[1]) ROW("x2", regs[2]) ROW("x3", regs[3]) \
	ROW("x4", regs[4]) ROW("x5", regs[5]) ROW("x6", regs[6]) ROW("x7", regs[7]) \
	ROW("x8", regs[8]) ROW("x9", regs[9]) ROW("x10", regs[10]) ROW("x11", regs[11]) \
	ROW("x12", regs[12]) ROW("x13", regs[13]) ROW("x14", regs[14]) ROW("x15", regs[15]) \
	ROW("x16", regs[16]) ROW("x17", regs[17]) ROW("x18", regs[18]) ROW("x19", regs[19]) \
	ROW("x20", regs[20]) ROW("x21", regs[21]) ROW("x22", regs[22]) ROW("x23", regs[23]) \
	ROW("x24", regs[24]) ROW("x25", regs[25]) ROW("x26", regs[26]) ROW("x27", regs[27]) \
	ROW("x28", regs[28]) ROW("x29", regs[29]) ROW("x30", regs[30]) ROW("sp", sp) \
	ROW("pc", pc)
#define SAMPLE_VALUE	".byte 0x00, 0x9c, 0x5f, 0xf9, 0xc0, 0x03, 0x5f, 0xd6\n"
#define SAMPLE_SETTER	".byte 0x01, 0x34, 0x00, 0xf9, 0xc0, 0x03, 0x5f, 0xd6\n"
#define SAMPLE_COMPARED                                                           \
	".byte 0, 0x34, 0x40, 0xf9, 0, 8, 0x40, 0xb9, 0x1f, 0x14, 0, 0x71, 0xc0, 3, 0x5f, 0xd6\n"
#define SAMPLE_OFFSET	0x3f38
#define SAMPLE_GLOBAL                                                             \
	"bti c\nadrp x0, sample_variable\nldr x0, [x0, :lo12:sample_variable]\nret\n"
#define CALL_LENGTH(n)	((n) == 4)
#define LINE(load)	"	" load "\n	bl called\n"
#define LOADS LINE("ldr x0, [x19, #88]") LINE("ldr x0, [x1, #88]")                \
	LINE("ldr x0, [x9, #88]") LINE("ldr x0, [x28, #88]")                      \
	LINE("ldr x0, [sp, #88]") LINE("ldr x0, [x19, #96]")                      \
	LINE("ldr x1, [x19, #88]") LINE("str x0, [x19, #88]")
#define LOAD_OWNERS	"x19", "x1", "x9", "x28"
#define ENTRY	"%x30"
#define PUSHED	"%x30"
#define SITE	"%x30"
#define PROLOGUE								\
	INSN("paciasp") INSN("stp x29, x30, [sp, #-48]!") LABEL("prologue_pushed")	\
	INSN("mov x29, sp") INSN("stp x19, x20, [sp, #16]") LABEL("prologue_site")	\
	INSN("nop") INSN("bl called") LABEL("prologue_lost") INSN("ret")		\
	INSN(".skip 300") LABEL("prologue_end") INSN("nop")
#elif defined(__riscv)
#define HOST_CORPUS	"riscv64"
#define REGISTERS	struct user_regs_struct
#define REGISTER_ROWS(ROW)							\
	ROW("pc", pc) ROW("ra", ra) ROW("sp", sp) ROW("gp", gp) ROW("tp", tp) \
	ROW("t0", t0) ROW("t1", t1) ROW("t2", t2) ROW("s0", s0) ROW("s1", s1) \
	ROW("a0", a0) ROW("a1", a1) ROW("a2", a2) ROW("a3", a3) ROW("a4", a4) \
	ROW("a5", a5) ROW("a6", a6) ROW("a7", a7) ROW("s2", s2) ROW("s3", s3) \
	ROW("s4", s4) ROW("s5", s5) ROW("s6", s6) ROW("s7", s7) ROW("s8", s8) \
	ROW("s9", s9) ROW("s10", s10) ROW("s11", s11) ROW("t3", t3) ROW("t4", t4) \
	ROW("t5", t5) ROW("t6", t6)
#define SAMPLE_VALUE	".byte 0x91, 0x67, 0x3e, 0x95, 0x28, 0x6d, 0x82, 0x80\n"
#define SAMPLE_SETTER	".byte 0x2c, 0xf5, 0x82, 0x80\n"
#define SAMPLE_COMPARED                                                           \
	".byte 0x28, 0x75, 0x08, 0x45, 0x6d, 0x15, 0x13, 0x35, 0x15, 0, 0x82, 0x80\n"
#define SAMPLE_OFFSET	0x4058
#define SAMPLE_GLOBAL	"ld a0, sample_variable\nret\n"
#define CALL_LENGTH(n)	((n) == 4 || (n) == 8)	/* jal; auipc and jalr */
#define LINE(load)	"	" load "\n	call called\n"
#define LOADS LINE("ld a0, 88(s2)") LINE("ld a0, 88(a1)")                         \
	LINE("ld a0, 88(t1)") LINE("c.ld a0, 88(s1)")                             \
	LINE("ld a0, 88(sp)") LINE("ld a0, 96(s2)")                               \
	LINE("ld a1, 88(s2)") LINE("sd a0, 88(s2)")
#define LOAD_OWNERS	"s2", "a1", "t1", "s1"
#define ENTRY	"ra"
#define PUSHED	"ra"
#define SITE	"ra"
#define PROLOGUE								\
	INSN("auipc zero, 0") INSN("addi sp, sp, -48") INSN("sd ra, 40(sp)")		\
	LABEL("prologue_pushed") INSN("addi s0, sp, 48") INSN("lui a5, 4")		\
	LABEL("prologue_site") INSN("nop") INSN("call called") LABEL("prologue_lost")	\
	INSN("ret") INSN(".skip 300") LABEL("prologue_end") INSN("nop")
#else
#error "no code for this architecture"
#endif

#endif
