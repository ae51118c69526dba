/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The readings of a statement: how servers with other settings than the defaults split it into
 * tokens. MySQL: NO_BACKSLASH_ESCAPES, ANSI_QUOTES, and client character sets in which a backslash
 * may end a character; PostgreSQL: standard_conforming_strings. PostgreSQL converts a statement to
 * the server's encoding first, in which a backslash is always a character of its own. Internal to
 * sql/.
 *
 * The text is read by the defaults, once, until the end of a token depends on the settings. From
 * there on each possible reading has its own printer, and they advance together: what is a literal
 * or comment in any of them is one. Where all agree again, one printer goes on.
 *
 * In the correct reading of a complete statement the quotes are balanced. The others are dropped.
 *
 * A text with doubts throughout takes 30 times as long as others. After READINGS_WORK the rest is a
 * literal. No text of 32 KiB reaches that.
 */
#ifndef SQL_READINGS_H
#define SQL_READINGS_H

#include "sql/printer.h"

#define READINGS_WORK	(6u << 20)	/* bytes that all readings of one text read, about */

enum piece {
	PIECE_BLANK,		/* white space, or a delimiter of a comment that is executed */
	PIECE_CODE,		/* a token that is no literal */
	PIECE_LITERAL,
	PIECE_JOINED,		/* a string that continues the one before */
	PIECE_COMMENT,
};

struct readings {
	struct printer p;	/* of the result */
	bool any_dialect;	/* readings of all dialects, from the beginning on */
	bool examined;		/* ->possible contains only readings whose quotes are balanced */
	unsigned int possible;	/* bits of readings; 0: all agreed so far */
	size_t work;		/* bytes that they have read */
	void *arg;
	/* NULL, or called for each piece in turn; may overwrite the text before its end. */
	void (*each)(void *arg, enum piece piece, size_t start, size_t end);
};

/*
 * Prepare for the @len bytes of @text in MySQL's or else PostgreSQL's dialect, or @any of them;
 * @cut: the statement continues after it.
 */
void readings_open(struct readings *r, bool mysql, bool any, const char *text, size_t len,
		   bool cut);

/* Read and write the next piece, or all up to where the readings agree again. */
void readings_next(struct readings *r);

#endif
