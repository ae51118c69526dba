/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Pseudo-random numbers, the same in each run, so that failures can be reproduced. */
#ifndef TESTS_UNIT_RANDOM_H
#define TESTS_UNIT_RANDOM_H

#include <stddef.h>
#include <stdint.h>

static uint64_t random_state = 88172645463325252ull;

/* Return 64 random bits. */
static inline uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Return a random number below @limit. */
static inline size_t random_below(size_t limit)
{
	return (size_t)(random_next() >> 11) % limit;
}

#endif
