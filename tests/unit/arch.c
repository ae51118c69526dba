/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* usdt/arch*.c: each descriptor is consistent, and its instruction decoders. */
#include "usdt/arch.h"

#include <elf.h>
#include <errno.h>

#include "tests/unit/check.h"
#include "tests/unit/machines.h"

#define COUNT(a)	(sizeof(a) / sizeof(*(a)))

/* The slot of the register called @name, or SPEC_NO_REG. */
static int slot_of(const struct arch *arch, const char *name)
{
	struct arch_reg reg = { .slot = SPEC_NO_REG, .bits = 64 };

	return arch->reg(arch, name, strlen(name), &reg) == SPEC_OK ? reg.slot : SPEC_NO_REG;
}

static void every_machine_has_a_descriptor(void)
{
	for (size_t i = 0; i < MACHINES; i++) {
		const struct arch *arch = machines[i];

		CHECK(arch == arch_of(arch->machine) && *arch->name, "%zu", i);
		CHECK(arch->code == arch_code_of(arch->machine), "%s", arch->name);
		CHECK(!arch->can_emit || arch->code || arch->machine == EM_386, "%s", arch->name);
	}
	CHECK(!arch_of(EM_NONE) && !arch_code_of(EM_NONE));
}

/* The slots and the code numbers of a calling convention name the same registers. */
static void slots_match_code_numbers(void)
{
	char name[ARCH_REG_NAME];

	for (size_t i = 0; i < MACHINES; i++) {
		const struct arch *arch = machines[i];

		if (!arch->code) {
			CHECK(arch_arg_name(arch->machine, 0, name) == -EINVAL, "%s", arch->name);
			continue;
		}
		for (unsigned int n = 0; n < ARCH_ARGS_MAX; n++) {
			CHECK(!arch_arg_name(arch->machine, n, name), "%s %u", arch->name, n);
			CHECK(slot_of(arch, name) == arch->args[n], "%s %s", arch->name, name);
		}
		CHECK(arch_arg_name(arch->machine, ARCH_ARGS_MAX, name) == -EINVAL);
		arch_reg_name(arch, arch->code->returns[0], name);
		CHECK(slot_of(arch, name) == arch->ret, "%s %s", arch->name, name);
		CHECK(!(arch->code->preserved >> arch->code->args[0] & 1), "%s", arch->name);
	}
}

static void argument_registers(void)
{
	static const char *const x86[] = { "rdi", "rsi", "rdx", "rcx", "r8", "r9" };
	static const char *const a64[] = { "x0", "x1", "x2", "x3", "x4", "x5" };
	static const char *const riscv[] = { "a0", "a1", "a2", "a3", "a4", "a5" };
	char name[ARCH_REG_NAME];

	for (unsigned int n = 0; n < ARCH_ARGS_MAX; n++) {
		CHECK(!arch_arg_name(EM_X86_64, n, name) && !strcmp(name, x86[n]), "%s", name);
		CHECK(!arch_arg_name(EM_AARCH64, n, name) && !strcmp(name, a64[n]), "%s", name);
		CHECK(!arch_arg_name(EM_RISCV, n, name) && !strcmp(name, riscv[n]), "%s", name);
	}
}

struct code {
	const char *name;
	uint16_t machine;
	unsigned char bytes[8];
	unsigned int len;
	uint64_t target;		/* 0: none; the code is at 0x1000 */
};

static void call_targets(void)
{
	static const struct code table[] = {
		{ "call", EM_X86_64, { 0xe8, 0xfb, 0x0f, 0, 0 }, 5, 0x2000 },
		{ "call backwards", EM_X86_64, { 0xe8, 0xfb, 0xff, 0xff, 0xff }, 5, 0x1000 },
		{ "truncated call", EM_X86_64, { 0xe8, 0xfb, 0x0f, 0 }, 4, 0 },
		{ "jmp", EM_X86_64, { 0xe9, 0xfb, 0x0f, 0, 0 }, 5, 0 },
		{ "bl", EM_AARCH64, { 0x00, 0x04, 0x00, 0x94 }, 4, 0x2000 },
		{ "bl backwards", EM_AARCH64, { 0xff, 0xff, 0xff, 0x97 }, 4, 0xffc },
		{ "b", EM_AARCH64, { 0x00, 0x04, 0x00, 0x14 }, 4, 0 },
		{ "truncated bl", EM_AARCH64, { 0x00, 0x04, 0x00 }, 3, 0 },
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		struct cursor code = cursor_over(table[i].bytes, table[i].len, false);
		uint64_t target = arch_code_of(table[i].machine)->call_target(code, 0x1000);

		CHECK(target == table[i].target, "%s: %#lx", table[i].name, (long)target);
	}
}

static void jump_targets(void)
{
	static const struct code table[] = {
		{ "je", EM_X86_64, { 0x74, 0x10 }, 2, 0x1012 },
		{ "jmp backwards", EM_X86_64, { 0xeb, 0xfe }, 2, 0x1000 },
		{ "loop", EM_X86_64, { 0xe2, 0x10 }, 2, 0x1012 },
		{ "long jne", EM_X86_64, { 0x0f, 0x85, 0xfa, 0x0f, 0, 0 }, 6, 0x2000 },
		{ "long jmp", EM_X86_64, { 0xe9, 0xfb, 0x0f, 0, 0 }, 5, 0x2000 },
		{ "call", EM_X86_64, { 0xe8, 0xfb, 0x0f, 0, 0 }, 5, 0 },
		{ "mov", EM_X86_64, { 0x89, 0xc0 }, 2, 0 },
		{ "cmov", EM_X86_64, { 0x0f, 0x44, 0xc0 }, 3, 0 },
		/* A REX prefix counts only in front of the opcode. */
		{ "rex.w mov $0x9090,%ax", EM_X86_64, { 0x48, 0x66, 0xb8, 0x90, 0x90 }, 5, 0 },
	};

	for (size_t i = 0; i < COUNT(table); i++) {
		struct cursor code = cursor_over(table[i].bytes, table[i].len, false);
		const struct arch_code *arch = arch_code_of(table[i].machine);
		uint64_t target = arch->jump_target(code, 0x1000, table[i].len);

		CHECK(arch->length(table[i].bytes, table[i].len) == table[i].len, "%s",
		      table[i].name);
		CHECK(target == table[i].target, "%s: %#lx", table[i].name, (long)target);
	}
}

int main(void)
{
	RUN(every_machine_has_a_descriptor);
	RUN(slots_match_code_numbers);
	RUN(argument_registers);
	RUN(call_targets);
	RUN(jump_targets);
	return check_done();
}
