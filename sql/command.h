/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The command of a text, which may have several statements. */
#ifndef SQL_COMMAND_H
#define SQL_COMMAND_H

#include <stddef.h>

#include "sql/fingerprint.h"

/*
 * Return the offset of the command in the @len bytes at @text, any bytes: behind blanks and opening
 * parentheses and, of PostgreSQL, behind up to two statements that only prepare for what follows in
 * the same text: BEGIN, START, SAVEPOINT, SET and RESET, without anything that may be a quote. The
 * same is in stat_command() of bpf/.
 */
size_t command_skip(enum fingerprint_dialect dialect, const char *text, size_t len);

/* Commands of PostgreSQL that run what has another text. */
enum command_runs { COMMAND_OWN, COMMAND_EXECUTE, COMMAND_FETCH };	/* or MOVE */

/* Return which one the text's command is. It is found as by command_skip(), and behind comments. */
enum command_runs command_runs(const char *text, size_t len);

/*
 * Return the offset of the statement for which the command of PostgreSQL's @text, a PREPARE or
 * DECLARE, has a name; 0: there is none.
 */
size_t command_named(const char *text, size_t len);

#endif
