/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Widths of characters on a terminal. */
#ifndef CLI_FORMAT_WIDTH_H
#define CLI_FORMAT_WIDTH_H

#include <stdint.h>

/*
 * Return the number of columns of the printable character @code, at least U+0080: 0 for a mark that
 * combines with the character before it, 1 or 2.
 */
unsigned int width_of(uint32_t code);

#endif
