/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * base/: what every layer uses, and nothing that one of them could own: macros, the bounds-checked
 * cursor over foreign bytes, the scanner of numbers and names, hexadecimal digits, UTF-8.
 * It knows no ELF, no BPF and no databases, makes no system calls and allocates nothing.
 */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#define NS_PER_MS	1000000ull
#define NS_PER_S	1000000000ull

#endif
