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

int main(void)
{
	RUN(fmt_strings);
	RUN(fmt_numbers);
	return check_done();
}
