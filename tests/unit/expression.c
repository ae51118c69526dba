// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* usdt/expression*.c: values computed by the interpreter, syntax errors, limits. */
#include "usdt/expression.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "tests/unit/check.h"
#include "tests/unit/interp.h"

#define RANDOM	20000
#define TEXT_AT	0x1000		/* the address of string n is TEXT_AT + n */

static const char *const strings[] = {
	"", "a", "text", "longer than a word", "0123456", "01234567", "012345678", "caf\xc3\xa9",
	"012345678901234567890123456789012345678901234567890123456789012",
};

#define STRINGS	(sizeof(strings) / sizeof(strings[0]))

static long read_text(char *to, unsigned int size, uint64_t addr)
{
	size_t len;

	if (addr < TEXT_AT || addr >= TEXT_AT + STRINGS)
		return -EFAULT;
	len = strlen(strings[addr - TEXT_AT]);
	if (len > size - 1)
		len = size - 1;
	memcpy(to, strings[addr - TEXT_AT], len);
	to[len] = '\0';
	return (long)len + 1;
}

/* The last two but one are "kworker/1:2-xyz". */
static uint64_t variables[EXPRESSION_WORDS] = {
	5, (uint64_t)-5, 0xffffffffffffffff, 0, 200, 0x80000000, 1, TEXT_AT + 2, TEXT_AT + 3, 0xfff,
	(uint64_t)INT64_MIN, 77, 0x1ffffffffull, 1234, 5678, 33, 0x2f72656b726f776bull,
	0x007a79782d323a31ull,
};

#define SIGNS	0x402u		/* arg2, arg11 */
#define UNKNOWN	(1 << 20)

/* Run @text. The variables in @fails, a bit each, may fail; those in @failed did. */
static uint64_t run_failing(const char *text, uint32_t signed_mask, uint32_t fails,
			    uint32_t failed, bool *unknown)
{
	const struct expression_site site = { signed_mask, fails };
	struct bpf_insn insns[EXPRESSION_INSNS_MAX];
	struct expression e;
	size_t end;
	enum expression_reason reason = expression_parse(&e, text, &end);
	struct interp vm = { .insns = insns, .ctx = variables, .ctx_size = sizeof(variables),
			     .word_in_ctx = EXPRESSION_UNREAD * 8, .read_text = read_text };
	uint64_t value;

	CHECK(reason == EXPRESSION_OK && end == strlen(text), "%s: %d at %zu", text, reason, end);
	if (reason != EXPRESSION_OK)
		return 0;
	vm.n = expression_emit(&e, &site, UNKNOWN, insns, EXPRESSION_INSNS_MAX);
	CHECK(vm.n > 0 && vm.n <= EXPRESSION_INSNS_MAX, "%s: %d", text, vm.n);
	variables[EXPRESSION_UNREAD] = failed;
	value = vm.n > 0 ? interp_run(&vm) : 0;
	CHECK(!vm.error, "%s: %s", text, vm.error);
	for (int i = 0; i < 512 - 168; i++)
		CHECK(!vm.stack_set[i], "%s: uses %d bytes of stack", text, 512 - i);
	*unknown = variables[EXPRESSION_UNREAD] & UNKNOWN;
	CHECK((variables[EXPRESSION_UNREAD] & ~(uint64_t)UNKNOWN) == failed, "%s", text);
	return value;
}

static uint64_t run(const char *text, uint32_t signed_mask)
{
	bool unknown;
	uint64_t value = run_failing(text, signed_mask, 0, 0, &unknown);

	CHECK(!unknown, "%s", text);
	return value;
}

static void values(void)
{
	static const struct {
		const char *text;
		int64_t value;
	} table[] = {
		{ "arg1", 5 }, { " arg2 ", -5 }, { "retval", 0x1ffffffff }, { "pid", 1234 },
		{ "tid", 5678 }, { "arg12", 77 }, { "0x10", 16 }, { "-3", -3 }, { "'a'", 97 },
		{ "'\\n'", 10 }, { "'\\x7f'", 127 }, { "'\\''", 39 }, { "10UL", 10 },
		{ "18446744073709551615", -1 }, { "arg1+arg2", 0 }, { "1+2*3", 7 },
		{ "(1+2)*3", 9 }, { "10-3-2", 5 }, { "1<<4>>2", 4 }, { "arg2>>1", -3 },
		{ "arg3>>60", 15 }, { "6&3|8", 10 }, { "6^3", 5 }, { "~0", -1 }, { "!5", 0 },
		{ "!0", 1 }, { "!!7", 1 }, { "-arg1", -5 }, { "- -3", 3 }, { "1 == 1", 1 },
		{ "1 != 1", 0 }, { "arg2 < 0", 1 }, { "arg3 < 0", 0 }, { "arg3 > -1", 0 },
		{ "arg3 > 1", 1 }, { "arg2 > 1", 0 }, { "arg11 <= -1", 1 }, { "arg6 >= 0x80000000",
									      1 },
		{ "1 < 2 == 1", 1 }, { "1 || 0 && 0", 1 }, { "(1 || 0) && 0", 0 }, { "0 || 0", 0 },
		{ "2 && 3", 1 }, { "arg4 && arg1", 0 }, { "1 | 2 == 2", 1 }, { "4 & 4 == 4", 0 },
		{ "(int)retval", -1 }, { "(unsigned)retval", 0xffffffff }, { "(u8)arg10", 255 },
		{ "(s8)arg10", -1 }, { "(unsigned int) arg2", 0xfffffffb }, { "(long)arg1", 5 },
		{ "(int)retval < 0", 1 }, { "(int64_t)arg3 < 0", 1 }, { "(uint16_t)-1", 65535 },
		{ "(unsigned char)200 == arg5", 1 }, { "1 << 64", 1 }, { "0x7fffffffffffffff + 1",
		INT64_MIN }, { "0x123456789ab", 0x123456789ab }, { "arg1 * arg2", -25 },
		{ "arg1 == 5 && (arg2 == 5 || arg2 == -5) && !(arg3 == 5)", 1 },
		{ "((((((((((arg1))))))))))", 5 }, { "uid", 33 }, { "uid == 33", 1 },
		{ "7 / 2", 3 }, { "7 % 4", 3 }, { "arg1 % 3 * 2 / 2", 2 }, { "arg2 / 2", -2 },
		{ "arg2 % 3", -2 }, { "5 / -3", -1 }, { "5 % -3", 2 }, { "arg2 % -3", -2 },
		{ "arg2 / -2", 2 }, { "arg11 / -1", INT64_MIN }, { "arg11 % -1", 0 },
		{ "arg11 / arg11", 1 }, { "arg3 / 2", INT64_MAX }, { "arg3 % 10", 5 },
		{ "arg3 / arg3", 1 }, { "(s64)arg3 / 2", 0 }, { "1 + 9 / (arg5 - 197)", 4 },
		{ "arg1 || 1 / 0", 1 },
		{ "comm == \"kworker/1:2-xyz\"", 1 }, { "\"kworker/1:2-xy\" == comm", 0 },
		{ "comm != \"kworker/1:2-xyz\"", 0 }, { "comm != \"\"", 1 },
		{ "STRCMP(\"kworker/1:2-xyz\", comm) + 1", 2 }, { "comm == \"kworker/\"", 0 },
		{ "arg8 == \"text\" && comm == \"kworker/1:2-xyz\"", 1 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int64_t value = (int64_t)run(table[i].text, SIGNS);

		CHECK(value == table[i].value, "%s: %" PRId64, table[i].text, value);
	}
}

/* Compare each string with each; some differ in length only. */
static void strings_compared(void)
{
	char text[256];

	for (size_t i = 0; i < STRINGS; i++) {
		for (size_t j = 0; j < STRINGS; j++) {
			snprintf(text, sizeof(text), "%zu == \"%s\"", TEXT_AT + i, strings[j]);
			CHECK(run(text, 0) == (i == j), "%s", text);
			snprintf(text, sizeof(text), "\"%s\" != %zu", strings[j], TEXT_AT + i);
			CHECK(run(text, 0) == (i != j), "%s", text);
			snprintf(text, sizeof(text), "STRCMP(\"%s\", %zu)", strings[j],
				 TEXT_AT + i);
			CHECK(run(text, 0) == (i == j), "%s", text);
		}
	}
	CHECK(!run("0 == \"\"", 0) && run("0 != \"\"", 0), "an unreadable address");
	CHECK(run("arg8 == \"text\" && arg9 != \"text\"", 0), "two strings");
	CHECK(run("1 + (arg8 == \"te\\x78t\") + (arg9 == \"x\")", 0) == 2, "spilled");
}

/* arg1 (5) and arg4 (0) may fail; arg4 did, so it is unknown wherever its value is required. */
static void unread_variables(void)
{
	static const struct {
		const char *text;
		bool unknown;
		uint64_t value;
	} table[] = {
		{ "arg4", true, 0 }, { "arg1", false, 5 }, { "arg4 == 0", true, 0 },
		{ "!arg4", true, 0 }, { "0 == arg4", true, 0 }, { "arg1 == 5", false, 1 },
		{ "arg1 == 5 || arg4 == 0", false, 1 }, { "arg1 != 5 && arg4 == 0", false, 0 },
		{ "arg4 == 0 || arg1 == 5", true, 0 }, { "arg1 == 5 && arg4 == 0", true, 0 },
		{ "arg1 + arg4", true, 0 }, { "(arg1 + 1) * -(int)arg4", true, 0 },
		{ "arg4 == \"\"", true, 0 }, { "arg4 != \"\"", true, 0 },
		{ "arg1 != \"\"", false, 1 }, { "arg5 == 200 && pid", false, 1 },
		{ "arg4 / arg5", true, 0 }, { "arg1 % 5", false, 0 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		bool unknown;
		uint64_t value = run_failing(table[i].text, 0, 1u << 0 | 1u << 3, 1u << 3,
					     &unknown);

		CHECK(unknown == table[i].unknown && value == table[i].value, "%s: %d %" PRIu64,
		      table[i].text, unknown, value);
		/* The same, if both were read. */
		run_failing(table[i].text, 0, 1u << 0 | 1u << 3, 0, &unknown);
		CHECK(!unknown, "%s", table[i].text);
	}
}

/* A division by 0 is unknown, wherever its value is required. */
static void divisions_by_zero(void)
{
	static const char *const unknown[] = {
		"1 / 0", "1 % 0", "arg1 / arg4", "arg2 % arg4", "arg4 / arg4", "!(1 / arg4)",
		"arg11 / (arg1 + arg2)", "1 / 0 || 1", "arg1 && arg1 % arg4 == 0",
	};

	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		bool is_unknown;
		uint64_t value = run_failing(unknown[i], SIGNS, 0, 0, &is_unknown);

		CHECK(is_unknown && !value, "%s: %" PRIu64, unknown[i], value);
	}
}

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

struct random {
	uint64_t value;
	bool is_signed;
	bool unknown;
};

/* Return the quotient, or the remainder. */
static struct random random_division(struct random a, struct random b, bool remainder)
{
	struct random r = { .is_signed = a.is_signed || b.is_signed };

	r.unknown = !b.value;
	if (r.unknown)
		return r;
	if (!r.is_signed)
		r.value = remainder ? a.value % b.value : a.value / b.value;
	else if ((int64_t)b.value == -1)
		r.value = remainder ? 0 : -a.value;
	else
		r.value = (uint64_t)(remainder ? (int64_t)a.value % (int64_t)b.value :
						 (int64_t)a.value / (int64_t)b.value);
	return r;
}

/* Write a random expression to @text. Return its value, computed in C. */
static struct random random_expression(uint64_t *seed, char *text, size_t size, int depth)
{
	static const char *const ops[] = { "+", "-", "*", "&", "|", "^", "==", "!=", "<", "<=",
					   ">", ">=", "&&", "||", ">>", "<<", "/", "%" };
	char left[1024], right[1024];
	unsigned int which = next(seed) % 18;
	struct random a, b, r = { 0 };

	if (!depth || next(seed) % 5 == 0) {
		which = next(seed) % 30;
		if (which < 12)
			snprintf(text, size, "arg%u", which + 1);
		else
			snprintf(text, size, "%u", which);
		return which < 12 ? (struct random){ variables[which], SIGNS >> which & 1, false } :
				    (struct random){ which, false, false };
	}
	a = random_expression(seed, left, sizeof(left), depth - 1);
	if (next(seed) % 8 == 0) {
		snprintf(text, size, "(s16)(%s)", left);
		return (struct random){ (uint64_t)(int64_t)(int16_t)a.value, true, a.unknown };
	}
	b = random_expression(seed, right, sizeof(right), depth - 1);
	snprintf(text, size, "(%s) %s (%s)", left, ops[which], right);
	r.is_signed = (a.is_signed || b.is_signed) && which < 6;
	/* The right operand of && and || may not be evaluated. */
	r.unknown = a.unknown || (b.unknown && !(which == 12 && !a.value) &&
				  !(which == 13 && a.value));
	if (r.unknown)
		return r;
	switch (which) {
	case 0: r.value = a.value + b.value; break;
	case 1: r.value = a.value - b.value; break;
	case 2: r.value = a.value * b.value; break;
	case 3: r.value = a.value & b.value; break;
	case 4: r.value = a.value | b.value; break;
	case 5: r.value = a.value ^ b.value; break;
	case 6: r.value = a.value == b.value; break;
	case 7: r.value = a.value != b.value; break;
	case 12: r.value = a.value && b.value; break;
	case 13: r.value = a.value || b.value; break;
	case 14:
		r.is_signed = a.is_signed;
		r.value = a.is_signed ? (uint64_t)((int64_t)a.value >> (b.value & 63)) :
					a.value >> (b.value & 63);
		break;
	case 15:
		r.is_signed = a.is_signed;
		r.value = a.value << (b.value & 63);
		break;
	case 16:
	case 17:
		return random_division(a, b, which == 17);
	default:
		if (a.is_signed || b.is_signed)
			r.value = which == 8 ? (int64_t)a.value < (int64_t)b.value :
				  which == 9 ? (int64_t)a.value <= (int64_t)b.value :
				  which == 10 ? (int64_t)a.value > (int64_t)b.value :
						(int64_t)a.value >= (int64_t)b.value;
		else
			r.value = which == 8 ? a.value < b.value : which == 9 ? a.value <= b.value :
				  which == 10 ? a.value > b.value : a.value >= b.value;
	}
	return r;
}

static void random_expressions(void)
{
	uint64_t seed = 1;
	char text[4096];

	for (int i = 0; i < RANDOM && check_failures < 10; i++) {
		struct random want = random_expression(&seed, text, sizeof(text), 4);
		bool unknown;
		uint64_t value = run_failing(text, SIGNS, 0, 0, &unknown);

		CHECK(unknown == want.unknown && (unknown || value == want.value),
		      "%s: %" PRIx64 " instead of %" PRIx64, text, value, want.value);
	}
}

static void syntax_errors(void)
{
	static const struct {
		const char *text;
		enum expression_reason reason;
		size_t at;
	} table[] = {
		{ "", EXPRESSION_NO_VALUE, 0 }, { "  ", EXPRESSION_NO_VALUE, 2 },
		{ "arg1 +", EXPRESSION_NO_VALUE, 6 }, { "(", EXPRESSION_NO_VALUE, 1 },
		{ "(arg1", EXPRESSION_NO_OPERATOR, 5 }, { "()", EXPRESSION_NO_VALUE, 1 },
		{ "arg0", EXPRESSION_UNKNOWN_NAME, 0 }, { "arg13", EXPRESSION_UNKNOWN_NAME, 0 },
		{ "arg01", EXPRESSION_UNKNOWN_NAME, 0 }, { "arg", EXPRESSION_UNKNOWN_NAME, 0 },
		{ "arg1x", EXPRESSION_UNKNOWN_NAME, 0 }, { "1 + foo", EXPRESSION_UNKNOWN_NAME, 4 },
		{ "0x", EXPRESSION_BAD_NUMBER, 0 }, { "12ab", EXPRESSION_BAD_NUMBER, 0 },
		{ "18446744073709551616", EXPRESSION_BAD_NUMBER, 0 },
		{ "\"a", EXPRESSION_BAD_STRING, 0 }, { "'", EXPRESSION_BAD_STRING, 0 },
		{ "''", EXPRESSION_BAD_STRING, 0 }, { "'ab'", EXPRESSION_BAD_STRING, 0 },
		{ "arg1 == \"\\q\"", EXPRESSION_BAD_STRING, 9 },
		{ "arg1 == \"\\0\"", EXPRESSION_BAD_STRING, 10 },
		{ "arg1 == \"\\x0g\"", EXPRESSION_BAD_STRING, 9 },
		{ "\"a\"", EXPRESSION_STRING_OPERATOR, 0 }, { "!\"a\"", EXPRESSION_STRING_OPERATOR,
							      0 },
		{ "arg1 < \"a\"", EXPRESSION_STRING_OPERATOR, 5 },
		{ "\"a\" == \"a\"", EXPRESSION_STRING_OPERATOR, 4 },
		{ "(int)\"a\"", EXPRESSION_STRING_OPERATOR, 5 },
		{ "arg1 && \"a\"", EXPRESSION_STRING_OPERATOR, 5 },
		{ "comm == arg1", EXPRESSION_STRING_OPERATOR, 5 },
		{ "!comm", EXPRESSION_STRING_OPERATOR, 0 },
		{ "comm + 1", EXPRESSION_STRING_OPERATOR, 5 },
		{ "(int)comm", EXPRESSION_STRING_OPERATOR, 5 },
		{ "comm < \"a\"", EXPRESSION_STRING_OPERATOR, 5 },
		{ "1 && comm", EXPRESSION_STRING_OPERATOR, 2 },
		{ "comm == \"0123456789abcdef\"", EXPRESSION_LONG_COMM, 5 },
		{ "STRCMP(\"0123456789abcdef\", comm)", EXPRESSION_LONG_COMM, 27 },
		{ "1 /", EXPRESSION_NO_VALUE, 3 },
		{ "STRCMP", EXPRESSION_NO_VALUE, 6 }, { "STRCMP(arg1)", EXPRESSION_BAD_STRING, 7 },
		{ "STRCMP(\"a\")", EXPRESSION_NO_OPERATOR, 10 },
		{ "STRCMP(\"a\", \"b\")", EXPRESSION_STRING_OPERATOR, 12 },
		{ "STRCMP(\"a\", arg1", EXPRESSION_NO_OPERATOR, 16 },
	};
	struct expression e;
	size_t end;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		enum expression_reason reason = expression_parse(&e, table[i].text, &end);

		CHECK(reason == table[i].reason && end == table[i].at, "%s: %d at %zu",
		      table[i].text, reason, end);
	}
}

/* The parser stops at the first byte that is not part of the expression. */
static void trailing_text(void)
{
	static const struct {
		const char *text;
		size_t end;
	} table[] = { { "arg1, arg2", 4 }, { "arg1 ) x", 5 }, { "arg1:s", 4 }, { "arg1 = 2", 5 },
		      { "arg1 \"x\"", 5 }, { "1 $ 2", 2 } };
	struct expression e;
	size_t end;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		CHECK(expression_parse(&e, table[i].text, &end) == EXPRESSION_OK &&
		      end == table[i].end, "%s: %zu", table[i].text, end);
}

static void limits(void)
{
	static const struct expression_site none;
	struct bpf_insn insns[EXPRESSION_INSNS_MAX];
	struct expression e;
	char text[8192];
	size_t end, at;
	int n;

	for (unsigned int count = 1; count < 400; count++) {
		memset(text, '(', count);
		strcpy(text + count, "1");
		memset(text + count + 1, ')', count);
		text[2 * count + 1] = '\0';
		CHECK(expression_parse(&e, text, &end) == (count < 2 * EXPRESSION_DEPTH ?
		      EXPRESSION_OK : EXPRESSION_TOO_LONG), "%u", count);
	}
	/* Every accepted nesting can be emitted, and a short buffer results in -ENOSPC. */
	for (unsigned int count = 1; count < 40; count++) {
		for (at = 0, end = 0; end < count; end++)
			at += (size_t)sprintf(text + at, "arg1+(");
		at += (size_t)sprintf(text + at, "1");
		memset(text + at, ')', count);
		text[at + count] = '\0';
		if (expression_parse(&e, text, &end) != EXPRESSION_OK)
			continue;
		n = expression_emit(&e, &none, 0, insns, EXPRESSION_INSNS_MAX);
		CHECK(n > 0, "%u: %d", count, n);
		CHECK(expression_emit(&e, &none, 0, insns, (size_t)n - 1) == -ENOSPC, "%u", count);
		CHECK(expression_emit(&e, &none, 0, insns, 0) == -ENOSPC, "%u", count);
	}
}

/* Parsing random bytes terminates, with a position inside the text. */
static void random_bytes(void)
{
	static const char bytes[] = "arg123 ()\"'\\x&|=!<>+-*/~^:,retvalpidcommSTRCMPint u8%\x80";
	struct expression e;
	uint64_t seed = 3;
	char text[64];
	size_t end;

	for (int i = 0; i < 200000; i++) {
		size_t len = next(&seed) % (sizeof(text) - 1);

		for (size_t j = 0; j < len; j++)
			text[j] = bytes[next(&seed) % (sizeof(bytes) - 1)];
		text[len] = '\0';
		expression_parse(&e, text, &end);
		CHECK(end <= len, "%s", text);
	}
}

int main(void)
{
	RUN(values);
	RUN(strings_compared);
	RUN(unread_variables);
	RUN(divisions_by_zero);
	RUN(random_expressions);
	RUN(syntax_errors);
	RUN(trailing_text);
	RUN(limits);
	RUN(random_bytes);
	return check_done();
}
