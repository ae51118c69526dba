/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What statements have in common that differ in their values: the text with a ? for
 * every literal and parameter, in one spelling of case, white space and comments.
 *
 * It follows the tool that each server's users know. As pt-query-digest: in(?+) and
 * values(?+) for lists of any length, the rows behind a first one dropped, NULL is a
 * literal and TRUE and FALSE are not, "limit ?" for all of its forms, no asc. As
 * pg_stat_statements: NULL, TRUE and FALSE are literals unless "is" tests for them, and
 * "limit ? offset ?" is not "limit ?". Other than both: numbers in names stay, backticked
 * and quoted names keep their case, rows inside in (...) and array[...] collapse too, and
 * what follows an insert's rows stays. MySQL's comments that it runs are code.
 *
 * What a session may have changed is not known here: that "..." is a string for MySQL and
 * a name for PostgreSQL, and that a backslash escapes for MySQL, are their defaults.
 */
#ifndef SQL_FINGERPRINT_H
#define SQL_FINGERPRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fingerprint_dialect {
	FINGERPRINT_POSTGRES,	/* and what is not known: closest to the standard */
	FINGERPRINT_MYSQL,
};

struct fingerprint {
	size_t len;		/* of the whole, without the NUL */
	uint64_t hash;		/* of the whole, whatever the size of the buffer */
};

/*
 * Write the fingerprint of the @len bytes of @text, any bytes, to the @size bytes of @out: with a
 * NUL, and if it is longer cut to whole characters and "..."; @size may be 0. @cut: the statement
 * continues after @text; then its last, possibly partial word is dropped and the fingerprint ends
 * in " ...". Takes time in proportion to @len.
 */
struct fingerprint fingerprint_make(enum fingerprint_dialect dialect, const char *text, size_t len,
				    bool cut, char *out, size_t size);

/*
 * Writes @text with a ? for each literal, by the rules above, so that the fingerprint stays the
 * same, but for parameters and NULL, which stay; and for what is in a comment, where anything can
 * be. The rest stays as it is. A string that the end of the text leaves open is a literal, too. Where the
 * quotes show that the session is not by the defaults above, or a cut keeps from seeing that, all
 * from the first one on is one ?. @out has room for @len bytes and may be @text. Returns how many it has;
 * no NUL is added.
 */
size_t fingerprint_redact(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			  char *out);

/*
 * Calls @each for each comment of @text, its marks included; MySQL's comments that it runs are none.
 * Where quotes do not match, it may miss some.
 */
void fingerprint_comments(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			  void (*each)(void *arg, const char *comment, size_t len), void *arg);

#endif
