// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * usdt/accessor_riscv.c with the machine code of Debian's servers for riscv64. What compressed
 * instructions are expanded to is compared with objdump by tests/e2e/test_architectures.py.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/check.h"
#include "usdt/accessor.h"
#include "usdt/arch.h"

#define COUNT(a)	(sizeof(a) / sizeof(*(a)))
#define BODY_MAX	256
#define AT		0x100000	/* link-time address of code */

typedef int (*read_body)(uint16_t machine, const void *code, size_t size, struct accessor *out);

struct body {
	const char *name, *hex;
	read_body read;
	struct accessor want;		/* ->size 0: an error */
};

#define READ(name, hex, ...)	{ name, hex, accessor_body, __VA_ARGS__ }
#define SET(name, hex, ...)	{ name, hex, accessor_body_setter, __VA_ARGS__ }
#define THIRD(name, hex, ...)	{ name, hex, accessor_body_third, __VA_ARGS__ }
#define CMP(name, hex, ...)	{ name, hex, accessor_body_compared, __VA_ARGS__ }
#define FLAG(name, hex, ...)	{ name, hex, accessor_body_flag, __VA_ARGS__ }
#define PASS(name, hex, ...)	{ name, hex, accessor_body_passed, __VA_ARGS__ }
#define GLOBAL(name, hex, ...)	{ name, hex, accessor_body_global, __VA_ARGS__ }
#define ADDRESS(off)		{ ACCESSOR_ADDRESS, off, 0, 0, -1, 8 }
#define VALUE(off, bytes)	{ ACCESSOR_VALUE, off, 0, 0, -1, bytes }
#define POINTER(off, in, bytes)	{ ACCESSOR_POINTER, off, in, 0, -1, bytes }
#define SETS(off, bits, size)	{ ACCESSOR_FLAG, off, 0, bits, -1, size }
#define EQUALS(off, in, number)	{ ACCESSOR_EQUALS, off, in, number, -1, 4 }

/* From Debian's packages: MariaDB 11.8, PostgreSQL 17 and 18. */
static const struct body server_bodies[] = {
	THIRD("17 PortalDefineQuery", "05482338050434c50ce510fd38ed3cf1232205098280",
	      VALUE(0x38, 8)),
	READ("11.8 thd_query_string",
	     "411122e006e40008a26002641305850641018280", ADDRESS(0x68)),
	READ("11.8 thd_user_name",
	     "4111896722e006e400083e950335057211c10865a260026441018280", POINTER(0x2720, 8, 8)),
	READ("11.8 thd_client_host",
	     "4111896722e006e400083e950335057211c10861a260026441018280", POINTER(0x2720, 0, 8)),
	READ("11.8 thd_get_thread_id",
	     "411122e006e40008a260026491673e95286d41018280", VALUE(0x4058, 8)),
	READ("11.8 thd_get_error_number",
	     "4111996722e006e400083e958337053da2600264884741018280", POINTER(0x63d0, 8, 4)),
	READ("11.8 thd_binlog_filter_ok",
	     "411122e006e4000897c7050183b7472002644c71a260886341016f10caea", VALUE(0xa0, 8)),
	READ("11.8 ps_report_examined_row_count",
	     "4111916722e006e400083e95833505cd81c5033585d809e5a26002644101828097d7050183b7e7e4"
	     "9c630264a26083b7872841018287", VALUE(0x3cd0, 8)),
	SET("32 bits", "2cd58280", VALUE(0x68, 4)),
	SET("11.8 set_sent_row_count",
	     "4111916722e0aa9706e4000803b787cc03b587d823b0b7cc2e9723b4e7cc09e5a260026441018280"
	     "97d7050183b747ec9c630264a26083b7072841018287", VALUE(0x3cc0, 8)),
	SET("11.8 set_ok_status",
	     "411122e006e400088327452305471b88b7ff63760705033705300d48785363840705834785232328"
	     "e5222330b52293b71700b307f040f99b8d07232af5222334c52281ce0264a260b68569051306f01f"
	     "410117536f006700e360230d0500a26002644101828003280523833705223b07e800ae972328e522"
	     "2330f522c9b7", VALUE(0x220, 8)),
	CMP("11.8 thd_current_status",
	     "4111996722e006e400083e958337053d91c783a6472315476387e600a2600264014541018280a260"
	     "0264884741018280", EQUALS(0x63d0, 0x234, 5)),
	FLAG("11.8 no index",
	     "4111916722e006e40008aa9717d70501033787ba1463f85b026483b6862ea26003b587d813670702"
	     "f8db41018286", SETS(0x4074, 32, 4)),
	FLAG("11.8 temporary table",
	     "4111916722e006e4aa97000883b687fd03b787fc856585061367072023b4e7fc23bcd7fc3307b500"
	     "17d60501033606dc8336072e1062026403b587d803368629a260938716002330f72e854541010286",
	     SETS(0x3fc8, 512, 8)),
	PASS("11.8 wait_for_wakeup_ready",
	     "7971996722f04ae852e006f426ec0018aa9783b707531969130989502a8a2a99a9ef4a85ef60c2c6"
	     "9964d29483c704508de34ee4996993898953d29983b78456ca854e85a9e7ef50a2f683c70450fdd7"
	     "a26999673305fa000335055311e90274a270e264026a4a85426945616f60529d97d04400e780e0ee"
	     "ddb709663d06973577009385a5044a85efc043f171bf8966c5061736770013066603efc0b39c75b7",
	     ADDRESS(0x6508)),
	GLOBAL("18 pgstat_get_my_query_id",
	     "97674a0083b767b4014599c303b5871a8280", POINTER(0, 0x1a8, 8)),
};

/* Accessors compiled by clang 14, and instructions that are not compressed. */
static const struct body variant_bodies[] = {
	READ("clang: a large offset", "8d659b85853c2e9508618280", VALUE(0x33c8, 8)),
	READ("clang: == 3", "8d659b85053a2e95086108457515133515008280", EQUALS(0x33a0, 8, 3)),
	READ("clang: == 0", "8d659b85053a2e9508610845133515008280", EQUALS(0x33a0, 8, 0)),
	READ("not compressed", "03358506" "67800000", VALUE(0x68, 8)),
	READ("behind lpad", "17000000" "28758280", VALUE(0x68, 8)),
	READ("a byte", "03458506" "8280", VALUE(0x68, 1)),
	READ("nops", "0100" "13000000" "28758280", VALUE(0x68, 8)),
	SET("set only", "2cf5" "8280", VALUE(0x68, 8)),
	SET("added to", "3c75" "ae97" "3cf5" "8280", VALUE(0x68, 8)),
};

static const struct body refused_bodies[] = {
	READ("nothing", "", { 0 }),
	READ("the stack", "22658280", { 0 }),
	READ("a call", "2875" "ef000000" "8280", { 0 }),
	READ("a floating point register", "2835" "8280", { 0 }),
	READ("32 bits of a pointer", "1b050500" "8280", { 0 }),
	READ("a helper of prologues", "ef020000" "28758280", { 0 }),
	READ("fence", "0f00f00f" "28758280", { 0 }),
	READ("undefined", "0000" "28758280", { 0 }),
	READ("three pointers", "08750865086508658280", { 0 }),
	READ("compared with a register", "2875" "3305b540" "13351500" "8280", { 0 }),
	SET("an accessor", "28758280", { 0 }),
	SET("two members", "2cf5" "2cf9" "8280", { 0 }),
	CMP("two members", "3c759847" "8d46" "6307d700" "984b" "6303d700" "82808280", { 0 }),
};

static size_t unhex(const char *hex, unsigned char *bytes)
{
	size_t n = 0;

	for (; *hex; hex += 2) {
		char pair[3] = { hex[0], hex[1], '\0' };

		bytes[n++] = (unsigned char)strtoul(pair, NULL, 16);
	}
	return n;
}

/* Read from a copy of exactly @size bytes, so that a sanitizer detects an overread. */
static int read_exactly(const struct body *body, const unsigned char *bytes, size_t size,
			struct accessor *out)
{
	unsigned char *copy = malloc(size + !size);
	int err;

	if (!copy)
		abort();
	memcpy(copy, bytes, size);
	err = body->read(EM_RISCV, copy, size, out);
	free(copy);
	return err;
}

static void check_bodies(const struct body *bodies, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct accessor *want = &bodies[i].want;
		unsigned char bytes[BODY_MAX];
		struct accessor got = { 0 };
		int err = read_exactly(&bodies[i], bytes, unhex(bodies[i].hex, bytes), &got);

		if (!want->size) {
			CHECK(err == -EINVAL, "%s: %d", bodies[i].name, err);
			continue;
		}
		CHECK(!err && got.kind == want->kind && got.offset == want->offset &&
		      got.inner == want->inner && got.expected == want->expected &&
		      got.second == want->second && got.size == want->size,
		      "%s: %d, kind %d, offset %#lx, inner %#lx, expected %ld, size %u",
		      bodies[i].name, err, got.kind, (long)got.offset, (long)got.inner,
		      (long)got.expected, got.size);
	}
}

static void servers(void)
{
	check_bodies(server_bodies, COUNT(server_bodies));
}

static void variants(void)
{
	check_bodies(variant_bodies, COUNT(variant_bodies));
}

static void refused(void)
{
	check_bodies(refused_bodies, COUNT(refused_bodies));
}

/* Every truncation of a body is refused. */
static void truncated(void)
{
	for (size_t i = 0; i < COUNT(server_bodies); i++) {
		unsigned char bytes[BODY_MAX];
		size_t size = unhex(server_bodies[i].hex, bytes);
		struct accessor got;

		if (server_bodies[i].read == accessor_body_passed)
			continue;	/* it ends at the call */
		for (size_t cut = 0; cut < size; cut++)
			CHECK(read_exactly(&server_bodies[i], bytes, cut, &got) == -EINVAL,
			      "%s at %zu", server_bodies[i].name, cut);
	}
}

/* Any bytes are read without a crash or a hang. */
static void mutated(void)
{
	for (size_t i = 0; i < COUNT(server_bodies); i++) {
		unsigned char bytes[BODY_MAX];
		size_t size = unhex(server_bodies[i].hex, bytes);
		struct accessor got;

		for (size_t bit = 0; bit < 8 * size; bit++) {
			int err;

			bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
			err = read_exactly(&server_bodies[i], bytes, size, &got);
			CHECK(!err || err == -EINVAL, "%s: %d", server_bodies[i].name, err);
			bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
		}
	}
}

/* PostgreSQL 18's GetCurrentTransactionStartTimestamp() and geterrcode(). */
static void variables(void)
{
	static const char timestamp[] = "17d575000335c5bf8280";
	static const char code[] =
		"97e7370083a7e74863ce07001307800bb387e70217e73a001307a7b1ba9703a5071a82804111fd57"
		"8145554506e417e737002320f746efc07ff317650d001305c55aefe0efc617362100130606f49305"
		"406317650d001305c55aefe06fa0";
	const struct arch_code *arch = arch_code_of(EM_RISCV);
	struct accessor_element element = { 0 };
	unsigned char bytes[BODY_MAX];
	uint64_t variable = 0;
	size_t size = unhex(timestamp, bytes);

	CHECK(!arch->global(bytes, size, 0x16f75c, &variable) && variable == 0x8cc358, "%#lx",
	      (long)variable);
	CHECK(arch->global(bytes, size - 2, 0x16f75c, &variable) == -EINVAL);
	size = unhex(code, bytes);
	CHECK(!accessor_body_element(EM_RISCV, bytes, size, 0x538d72, &element) &&
	      element.index == 0x8b7200 - 0x538d72 &&
	      element.member == 0x8e68a0 + 0x1a0 - 0x538d72, "%#lx %#lx", (long)element.index,
	      (long)element.member);
	CHECK(accessor_body_element(EM_RISCV, bytes, 8, 0x538d72, &element) == -EINVAL);
}

/* An instruction as llvm-mc encodes it, its length, and the targets of a call and a jump, or 0. */
static void calls_and_jumps(void)
{
	static const struct {
		const char *name, *hex;
		unsigned int length;
		uint64_t call, jump;
	} cases[] = {
		{ "jal ra, 1024", "ef000040", 4, AT + 1024, 0 },
		{ "jal ra, -4", "eff0dfff", 4, AT - 4, 0 },
		{ "jal t0, 1024", "ef020040", 4, 0, 0 },
		{ "auipc ra, 1214; jalr ra, -1674(ra)", "97e04b00e7806097", 4,
		  AT + (1214 << 12) - 1674, 0 },
		{ "auipc ra, -16; jalr ra, 16(ra)", "9700ffffe7800001", 4,
		  AT - (16 << 12) + 16, 0 },
		{ "auipc ra, 1214; jalr zero, -1674(ra)", "97e04b0067806097", 4, 0, 0 },
		{ "auipc ra, 1214; half", "97e04b00e780", 4, 0, 0 },
		{ "jal zero, -1048576", "6f000080", 4, 0, AT - 1048576 },
		{ "beq a0, a1, 2046", "630fb57e", 4, 0, AT + 2046 },
		{ "bgeu a0, a1, -4096", "6370b580", 4, 0, AT - 4096 },
		{ "c.j 2046", "fdaf", 2, 0, AT + 2046 }, { "c.j -2048", "01b0", 2, 0, AT - 2048 },
		{ "c.beqz a0, 254", "7dcd", 2, 0, AT + 254 },
		{ "c.bnez s1, -256", "81f0", 2, 0, AT - 256 },
		{ "c.jr a5", "8287", 2, 0, 0 }, { "c.jalr a5", "8297", 2, 0, 0 },
		{ "half of jal", "ef00", 0, 0, 0 }, { "undefined", "0000", 0, 0, 0 },
		{ "48 bits", "1f0000000000", 0, 0, 0 }, { "one byte", "01", 0, 0, 0 },
	};
	const struct arch_code *arch = arch_code_of(EM_RISCV);

	for (size_t i = 0; i < COUNT(cases); i++) {
		unsigned char bytes[BODY_MAX];
		size_t size = unhex(cases[i].hex, bytes);
		struct cursor code = cursor_over(bytes, size, false);
		unsigned int length = arch->length(bytes, size);
		uint64_t call = arch->call_target(code, AT);
		uint64_t jump = arch->jump_target(code, AT, length);

		CHECK(length == cases[i].length, "%s: %u", cases[i].name, length);
		CHECK(call == cases[i].call, "%s: %#lx", cases[i].name, (long)call);
		CHECK(jump == cases[i].jump, "%s: %#lx", cases[i].name, (long)jump);
	}
}

/* The four bytes before a call: the register that points to the member at 104, or none. */
static void member_loads(void)
{
	static const struct {
		const char *hex, *reg;
	} cases[] = {
		{ "0100a874", "s1" },		/* c.nop; c.ld a0, 104(s1) */
		{ "c074a874", "s1" },		/* the end of another instruction */
		{ "03358d06", "s10" }, { "0100ac74", NULL },
		{ "0100a878", NULL }, { "01002675", NULL }, { "03350106", NULL },
		{ "a8740100", NULL }, { "01000100", NULL },
	};
	const struct arch *arch = arch_of(EM_RISCV);

	for (size_t i = 0; i < COUNT(cases); i++) {
		unsigned char bytes[BODY_MAX] = { 0 };
		char name[ARCH_REG_NAME] = "";
		uint32_t word;
		int n;

		unhex(cases[i].hex, bytes);
		memcpy(&word, bytes, sizeof(word));
		n = arch->code->member_load(word, 104);
		if (n >= 0)
			arch_reg_name(arch, (unsigned int)n, name);
		CHECK(!strcmp(name, cases[i].reg ? cases[i].reg : ""), "%zu: %s", i, name);
	}
}

/* Behind what writes ra, the return address is not known. */
static void prologues(void)
{
	static const char *const keep[] = {
		"0111", "06ec", "97170000", "6384a000", "13010000", "0100",
	};
	static const char *const lose[] = {
		"ef000040", "8297", "97100000", "e260", "8680", "0000",
	};
	const struct arch_code *arch = arch_code_of(EM_RISCV);

	for (size_t i = 0; i < COUNT(keep) + COUNT(lose); i++) {
		bool kept = i < COUNT(keep);
		const char *hex = kept ? keep[i] : lose[i - COUNT(keep)];
		unsigned char bytes[BODY_MAX];
		size_t size = unhex(hex, bytes);

		CHECK(arch->stack_growth(cursor_over(bytes, size, false)) == (kept ? 0 : -1), "%s",
		      hex);
	}
}

int main(void)
{
	RUN(servers);
	RUN(variants);
	RUN(refused);
	RUN(truncated);
	RUN(mutated);
	RUN(variables);
	RUN(calls_and_jumps);
	RUN(member_loads);
	RUN(prologues);
	return check_done();
}
