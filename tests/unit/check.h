/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The harness of the unit tests: a test is a function, its result is one TAP line. A failed CHECK
 * prints its location and continues, so that one run shows all failures.
 */
#ifndef TESTS_UNIT_CHECK_H
#define TESTS_UNIT_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_number, check_failures, check_failed_tests;
static const char *check_skip_why;

/* Fail the current test unless @cond; the rest is a printf format that describes the values. */
#define CHECK(cond, ...)                                                     \
	do {                                                                 \
		if (!(cond)) {                                               \
			check_failures++;                                    \
			printf("# %s:%d: %s:", __FILE__, __LINE__, #cond);   \
			printf(" " __VA_ARGS__);                             \
			printf("\n");                                        \
		}                                                            \
	} while (0)

/* Mark the current test as skipped, with the reason. */
#define SKIP(why) (check_skip_why = (why))

/* Run test function @fn under its own name. */
#define RUN(fn) check_run(#fn, fn)

/* Run a test that takes long or measures time, unless UNIT_SHORT is set, as in an emulator. */
#define RUN_LONG(fn) check_run(#fn, getenv("UNIT_SHORT") ? check_short : fn)

static inline void check_short(void)
{
	SKIP("UNIT_SHORT is set");
}

static inline void check_run(const char *name, void (*fn)(void))
{
	check_failures = 0;
	check_skip_why = NULL;
	fn();
	if (check_failures)
		check_failed_tests++;
	printf("%sok %d - %s", check_failures ? "not " : "", ++check_number, name);
	if (!check_failures && check_skip_why)
		printf(" # SKIP %s", check_skip_why);
	printf("\n");
}

/* Print the plan. Return the exit status of main(). */
static inline int check_done(void)
{
	printf("1..%d\n", check_number);
	return check_failed_tests ? 1 : 0;
}

#endif
