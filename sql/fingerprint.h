/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sql/: text: lexers of the SQL dialects, fingerprints, redaction, tags, traceparent, patterns.
 * Pure functions of bytes that an attacker may have chosen: their time is linear.
 * It makes no system call.
 */

/*
 * Statement fingerprints: the text that statements share if they differ in values only. Each
 * literal and parameter becomes a ?; case, white space and comments are normalized.
 *
 * The rules follow the tools that users of the servers know. From pt-query-digest: lists of any
 * length become in(?+) and values(?+), further rows are dropped, and so is "asc"; for MySQL, NULL
 * is a literal, TRUE and FALSE are not, and all forms of LIMIT become "limit ?". From
 * pg_stat_statements, for PostgreSQL: NULL, TRUE and FALSE are literals unless "is" tests for them,
 * and "limit ? offset ?" differs from "limit ?". Unlike both: numbers in names are kept, backticked
 * and quoted names keep their case, rows in in (...) and array[...] collapse as well, and the text
 * after the rows of an INSERT is kept. MySQL's executable comments are code if all supported
 * servers execute them (no version, or up to 5.5), and comments otherwise.
 *
 * Session settings and the server's version are not known. Where they decide what is a literal
 * or a comment, it is one; in a complete statement, settings with which a quoted item does not end
 * are ruled out. "..." is a string in MySQL and a name in PostgreSQL. See sql/readings.h.
 */
#ifndef SQL_FINGERPRINT_H
#define SQL_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fingerprint_dialect {
	FINGERPRINT_POSTGRES,
	FINGERPRINT_MYSQL,
	FINGERPRINT_UNKNOWN,	/* a literal or comment of any of the others is one */
};

struct fingerprint {
	size_t len;		/* bytes of the complete fingerprint, without the NUL */
	uint64_t hash;		/* of the complete fingerprint, whatever the size of the buffer */
};

/*
 * Write the fingerprint of the @len bytes of @text, which may be any bytes, to the @size bytes of
 * @out, with a NUL. If it does not fit it ends in "..." after a complete character; @size may be 0.
 * @cut: the statement continues after @text; then the last, possibly incomplete word is dropped and
 * the fingerprint ends in " ...". Takes time in proportion to @len.
 */
struct fingerprint fingerprint_make(enum fingerprint_dialect dialect, const char *text, size_t len,
				    bool cut, char *out, size_t size);

/*
 * Replace each literal of @text by a ?, by the rules above, and the content of each comment, which
 * may contain anything. Parameters and NULL are kept, and so is all other text: the fingerprint
 * does not change. An unterminated string is a literal. If the quotes of a complete statement are
 * balanced with no settings, one ? replaces everything from the first quoted item on. @out has room
 * for @len bytes and may be @text. Return the number of bytes written; no NUL is added.
 */
size_t fingerprint_redact(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			  char *out);

/*
 * Call @each for each comment of @text, delimiters included, except MySQL's executable comments.
 * The text is read by the defaults, so comments after unbalanced quotes may be missed.
 */
void fingerprint_comments(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			  void (*each)(void *arg, const char *comment, size_t len), void *arg);

#endif
