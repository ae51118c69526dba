/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * USDT probes of this program, dbslower:self__start and dbslower:self__done, for the self-test.
 * They have no other effect.
 */
#ifndef DB_SELFTEST_SELFPROBE_H
#define DB_SELFTEST_SELFPROBE_H

#include <stdint.h>

/* The arguments of self__start, from 1. */
#define SELFPROBE_TEXT		1	/* address of the text, in a register */
#define SELFPROBE_NUMBER	2
#define SELFPROBE_TEXT_IN	3	/* address of the text, in memory */

/* Execute the site of self__start. */
void selfprobe_start(const char *text, int32_t number);

/* Execute the site of self__done. */
void selfprobe_done(int32_t number);

/* Return the semaphore of self__start or self__done: the number of its tracers. */
unsigned int selfprobe_start_traced(void);
unsigned int selfprobe_done_traced(void);

#endif
