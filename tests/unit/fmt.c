// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Formatted text, compared with the C library's. */
#include "usdt/fmt.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/check.h"

#define SIZES	6

static const size_t sizes[SIZES] = { 0, 1, 2, 7, 24, 200 };

/* Check @format with the same arguments, in buffers of every size. */
#define SAME(format, ...)                                                              \
	do {                                                                           \
		for (int i_ = 0; i_ < SIZES; i_++) {                                   \
			char ours[200], theirs[200];                                   \
			int n, m;                                                      \
			memset(ours, '~', sizeof(ours));                               \
			memset(theirs, '~', sizeof(theirs));                           \
			n = fmt_text(ours, sizes[i_], format, __VA_ARGS__);            \
			m = snprintf(theirs, sizes[i_], format, __VA_ARGS__);          \
			CHECK(n == m && !memcmp(ours, theirs, sizeof(ours)),           \
			      "%s: %d, not %d: %.40s, not %.40s", #format, n, m, ours, theirs); \
		}                                                                      \
	} while (0)

static void fmt_strings(void)
{
	static const char *const texts[] = { "", "a", "name", "a longer text than the width" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		SAME("%s", texts[i]);
		SAME("<%12s|%-12s>", texts[i], texts[i]);
		SAME("%.3s%.0s%.*s", texts[i], texts[i], (int)i, texts[i]);
		SAME("%*s%-*s%%", (int)i * 3, texts[i], 9, texts[i]);
		SAME("%-8.2s%c%3c%-3c", texts[i], 'x', 'y', 'z');
	}
	SAME("%.4s", (const char[]){ 'f', 'o', 'u', 'r' });
}

static void fmt_numbers_of(uint64_t value)
{
	SAME("%d %u %x %X", (int)value, (unsigned int)value, (unsigned int)value,
	     (unsigned int)value);
	SAME("%ld %lu %lx", (long)value, (unsigned long)value, (unsigned long)value);
	SAME("%lld %llu %016llx", (long long)value, (unsigned long long)value,
	     (unsigned long long)value);
	SAME("%zu %5zu %08x", (size_t)value, (size_t)value, (unsigned int)value);
	SAME("%+d %+lld %07d", (int)value, (long long)value, (int)value);
	SAME("%8d|%-8d|%08d", (int)value, (int)value, (int)value);
	SAME("%-10llu|%0*u", (unsigned long long)value, 12, (unsigned int)value);
}

static void fmt_numbers(void)
{
	static const uint64_t values[] = { 0, 1, 9, 10, 0x7f, INT_MAX, 1ULL << 31, UINT32_MAX,
					   INT64_MAX, 1ULL << 63, UINT64_MAX };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		fmt_numbers_of(values[i]);
	srand(1);
	for (int i = 0; i < 2000; i++)
		fmt_numbers_of(((uint64_t)rand() << 33 ^ (uint64_t)rand() << 11) >> rand() % 64);
}

/* The flags as users write them in formats of trace. */
static void fmt_flags(void)
{
	static const char *const flags[] = { "", "-", "0", "+", " ", "#", "-#", "0#", "#012", "+ 9",
					     "-+12", "#-12", "0 12", "+09", "020", "-020", "999" };
	static const long long values[] = { 0, 1, 8, -1, 255, INT64_MAX, INT64_MIN };
	char format[16], ours[1200], theirs[1200];

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]) * 5 * 7; i++) {
		snprintf(format, sizeof(format), "<%%%sll%c>", flags[i / 35], "duxXo"[i % 5]);
		fmt_text(ours, sizeof(ours), format, values[i / 5 % 7]);
		snprintf(theirs, sizeof(theirs), format, values[i / 5 % 7]);
		CHECK(!strcmp(ours, theirs), "%s: %s, not %s", format, ours, theirs);
	}
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		snprintf(format, sizeof(format), "%%%sc", flags[i]);
		CHECK(fmt_text(ours, sizeof(ours), format, 'c') ==
		      snprintf(theirs, sizeof(theirs), format, 'c') && !strcmp(ours, theirs),
		      "%s: %s, not %s", format, ours, theirs);
		snprintf(format, sizeof(format), "%%%ss", flags[i]);
		CHECK(fmt_text(ours, sizeof(ours), format, "text") ==
		      snprintf(theirs, sizeof(theirs), format, "text") && !strcmp(ours, theirs),
		      "%s: %s, not %s", format, ours, theirs);
	}
}

static void fmt_doubles_of(double value)
{
	for (int digits = 1; digits <= 17; digits++) {
		char ours[FMT_DOUBLE + 1], theirs[40];
		size_t n = fmt_double(ours, value, digits);

		ours[n] = '\0';
		snprintf(theirs, sizeof(theirs), "%.*g", digits, value);
		CHECK(n <= FMT_DOUBLE && !strcmp(ours, theirs), "%.17g: %s, not %s", value, ours,
		      theirs);
	}
}

static void fmt_doubles(void)
{
	static const double values[] = { 0, 0.1, 0.5, 1, 1.5, 2.5, 9.5, 99.95, 123456, 1234565,
					 999999.5, 1e-4, 0.00012345, 9.9999e-5, 1e16, 1e17, 1e22,
					 1e23, 5e-324, 2.2250738585072014e-308,
					 1.7976931348623157e308, 1e300 * 1e10, 0.000244140625 };
	union { uint64_t bits; double value; float half[2]; } u;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		fmt_doubles_of(values[i]);
		fmt_doubles_of(-values[i]);
	}
	srand(2);
	for (int i = 0; i < 2000; i++) {
		u.bits = (uint64_t)rand() << 33 ^ (uint64_t)rand() << 11 ^ (uint64_t)rand();
		fmt_doubles_of(u.value);
		fmt_doubles_of(u.half[0]);
		fmt_doubles_of((double)(u.bits >> u.bits % 64) / 1024);
	}
	for (u.bits = 0x7ff8000000000000; u.bits; u.bits = u.bits >> 63 ? 0 : 0xfff8000000000000)
		fmt_doubles_of(u.value);
}

int main(void)
{
	RUN(fmt_strings);
	RUN(fmt_numbers);
	RUN(fmt_flags);
	RUN(fmt_doubles);
	return check_done();
}
