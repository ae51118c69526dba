/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef USDT_LENGTH_H
#define USDT_LENGTH_H

#include <stddef.h>

/*
 * The bytes that the x86-64 instruction at @code takes, at most @size of which are there. 0: it is
 * cut off, or none that is known; what is longer or shorter than it seems is never guessed.
 */
unsigned int length_x86(const unsigned char *code, size_t size);

#endif
