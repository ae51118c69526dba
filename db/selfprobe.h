/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * USDT probes of our own, dbslower:self__start and dbslower:self__done, so that the whole path
 * can be proven without a database. They do nothing.
 */
#ifndef DB_SELFPROBE_H
#define DB_SELFPROBE_H

#include <stdint.h>

/* What self__start's arguments are, by their numbers. */
#define SELFPROBE_TEXT		1	/* the text's address, in a register */
#define SELFPROBE_NUMBER	2
#define SELFPROBE_TEXT_IN	3	/* the text's address, in memory */

/* Passes the probe self__start. */
void selfprobe_start(const char *text, int32_t number);

/* Passes self__done. */
void selfprobe_done(int32_t number);

/* What the semaphores of self__start and self__done count: how many trace them in this process. */
unsigned int selfprobe_start_traced(void);
unsigned int selfprobe_done_traced(void);

#endif
