/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usdt/site.c on this program itself: calls are compared with the return
 * addresses that the callee sees; the loads of a member are written in assembly.
 */
#include "usdt/site.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/check.h"
#include "tests/unit/host.h"

#define CALLS	8
#define MEMBER	0x58
#define NOINLINE __attribute__((noinline))

void called(int number);
void other(int number);
void calls_often(int number);
void seldom(void);
void calls_none(int number);
void loads(void);
void prologue(void);

static uintptr_t returns[CALLS];
static size_t nreturns;
static volatile int sink;

NOINLINE void called(int number)
{
	sink = number;
	if (nreturns < CALLS)
		returns[nreturns++] = (uintptr_t)__builtin_return_address(0);
}

NOINLINE void other(int number)
{
	sink = number;
}

NOINLINE void calls_often(int number)
{
	called(number);
	other(number);
	sink = (int)0xe8e8e8e8;
	called(sink + 1);
	other(number + 2);
	called(sink + 3);
	sink = number;
}

NOINLINE void calls_none(int number)
{
	other(number);
	sink = number;
}

#define INSN(text)	"	" text "\n"
#define LABEL(name)	".globl " name "\n.type " name ", %function\n" name ":\n"

/* Never run. */
__asm__(".text\n.globl loads\n.type loads, %function\nloads:\n" LOADS ".size loads, . - loads\n");

__asm__(".text\n" LABEL("prologue") PROLOGUE);

#define PART(name)	LABEL(name) LINE("") ".size " name ", . - " name "\n"

/* Never run. */
__asm__(".text\n" PART("seldom") PART("seldom.cold") PART("seldom.cold.7") PART("seldom.colder")
	PART("seldom.constprop.0") PART("seldoms.cold")
	LABEL("unlikely") INSN("nop") ".size unlikely, . - unlikely\n" PART("unlikely.cold"));

/* The register that each load is from. */
static const char *const owners[CALLS] = { LOAD_OWNERS };

static struct elf elf;
static uintptr_t base;		/* of this program in memory */

/* Find the calls of @callee in @function. */
static size_t find(const char *function, const char *callee, uint64_t *vaddrs, size_t max)
{
	struct elf_symbol symbol;

	if (elf_symbol_find(&elf, function, &symbol)) {
		CHECK(false, "no symbol %s", function);
		return 0;
	}
	return site_calls(&elf, &symbol, callee, vaddrs, max);
}

static void calls_precede_return_addresses(void)
{
	uint64_t vaddrs[CALLS];
	size_t n = find("calls_often", "called", vaddrs, CALLS);

	nreturns = 0;
	calls_often(1);
	CHECK(nreturns == 3 && n == nreturns, "%zu found, %zu seen", n, nreturns);
	for (size_t i = 0; i < n && i < nreturns; i++)
		CHECK(CALL_LENGTH(returns[i] - base - vaddrs[i]), "%zu: %#lx, not before %#lx", i,
		      (unsigned long)vaddrs[i], (unsigned long)(returns[i] - base));
}

static uint64_t address(const char *name)
{
	return elf_symbol_value(&elf, name);
}

/* Not those of a variant of the function, or of one with a longer name. */
static void calls_in_parts(void)
{
	uint64_t vaddrs[CALLS];

	CHECK(find("seldom", "called", vaddrs, CALLS) == 3);
	CHECK(vaddrs[0] == address("seldom"));
	/* In the order of the symbol table. */
	CHECK(vaddrs[1] + vaddrs[2] == address("seldom.cold") + address("seldom.cold.7") &&
	      (vaddrs[1] == address("seldom.cold") || vaddrs[2] == address("seldom.cold")));
	CHECK(find("seldom", "called", vaddrs, 2) == 0, "more than the buffer holds");
	CHECK(find("unlikely", "called", vaddrs, CALLS) == 0, "none in the body");
}

static void no_calls_found(void)
{
	uint64_t vaddrs[CALLS];

	calls_none(1);
	CHECK(find("calls_none", "called", vaddrs, CALLS) == 0);
	CHECK(find("calls_none", "no_such_function", vaddrs, CALLS) == 0);
	CHECK(find("calls_often", "called", vaddrs, 2) == 0, "more than the buffer holds");
}

static void member_loads(void)
{
	uint64_t vaddrs[CALLS];
	size_t n = find("loads", "called", vaddrs, CALLS);
	void (*volatile kept)(void) = loads;	/* or the linker drops it */

	CHECK(kept && n == CALLS, "%zu", n);
	for (size_t i = 0; i < n; i++) {
		char reg[SITE_REG] = "";
		int err = site_owner(&elf, vaddrs[i], MEMBER, reg);

		CHECK(!err == !!owners[i] && (err || !strcmp(reg, owners[i])), "%zu: %d %s", i,
		      err, reg);
	}
	CHECK(site_owner(&elf, 0, MEMBER, (char[SITE_REG]){ 0 }), "outside the file");
	CHECK(site_owner(&elf, vaddrs[0], -8, (char[SITE_REG]){ 0 }), "another member");
}

/* Find the return address in a prologue, and not where it is not known. */
static void callers(void)
{
	static const struct {
		const char *at, *operand;	/* NULL: unknown */
	} cases[] = {
		{ "prologue", ENTRY }, { "prologue_pushed", PUSHED }, { "prologue_site", SITE },
		{ "prologue_lost", NULL }, { "prologue_end", NULL },
	};
	void (*volatile kept)(void) = prologue;
	struct elf_symbol start, at;

	CHECK(kept && !elf_symbol_find(&elf, "prologue", &start));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char operand[SITE_OPERAND] = "";
		int err = -1;

		if (!elf_symbol_find(&elf, cases[i].at, &at))
			err = site_caller(&elf, start.value, at.value, operand);
		CHECK(!err == !!cases[i].operand && (err || !strcmp(operand, cases[i].operand)),
		      "%s: %d %s", cases[i].at, err, operand);
	}
	CHECK(site_caller(&elf, start.value, start.value - 4, (char[SITE_OPERAND]){ 0 }), "before");
	CHECK(site_caller(&elf, start.value, start.value + 1, (char[SITE_OPERAND]){ 0 }), "inside");
	CHECK(site_caller(&elf, 0, 1, (char[SITE_OPERAND]){ 0 }), "outside the file");
}

/* Prefixes are read as far as an instruction can have them, and not to the end of a file. */
static void refused_instructions(void)
{
	unsigned char code[64];
	struct elf one = { .data = code, .size = sizeof(code), .machine = EM_X86_64,
			   .is64 = true };

	for (size_t prefixes = 0; prefixes < sizeof(code); prefixes++) {
		memset(code, 0x66, sizeof(code));
		code[prefixes] = 0xf4;		/* hlt */
		CHECK(site_is_refused(&one, 0) == (prefixes < 15), "%zu prefixes", prefixes);
	}
	CHECK(!site_is_refused(&one, sizeof(code)), "behind the file");
}

int main(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_symbol symbol;
	struct stat st;
	void *data;

	if (fd < 0 || fstat(fd, &st))
		return 1;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (data == MAP_FAILED || elf_open(&elf, data, (size_t)st.st_size) ||
	    elf_symbol_find(&elf, "called", &symbol))
		return 1;
	base = (uintptr_t)called - symbol.value;
	RUN(calls_precede_return_addresses);
	RUN(calls_in_parts);
	RUN(no_calls_found);
	RUN(member_loads);
	RUN(callers);
	RUN(refused_instructions);
	return check_done();
}
