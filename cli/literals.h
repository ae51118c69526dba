/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The string literals, which the file contains compressed. */
#ifndef CLI_LITERALS_H
#define CLI_LITERALS_H

/*
 * Decompress the string literals to where the code expects them, and make them read-only. Before,
 * each of them is empty. Exit with a message if memory is exhausted.
 */
void literals_unpack(void);

#endif
