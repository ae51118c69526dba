/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The normal form of a statement: one spelling of case, white space, lists and literals. Internal
 * to sql/.
 *
 * Each token is written in its only spelling. Tokens that turn out not to belong there (the items
 * of a list, a sign before a number) are undone by restoring a copy of the state, which includes
 * the hash and the length.
 *
 * The effect of a token depends only on the state, and the state only on what was written. So the
 * fingerprint of a fingerprint is the fingerprint itself.
 */
#ifndef SQL_PRINTER_H
#define SQL_PRINTER_H

#include <stdint.h>

#include "sql/lexer.h"

#define KEYWORD_MAX	12

/* The last token written. */
enum last {
	LAST_NONE,
	LAST_KEYWORD,		/* an expression follows */
	LAST_IN,
	LAST_VALUES,
	LAST_IS,
	LAST_NOT,
	LAST_IS_NOT,
	LAST_AS,
	LAST_LIMIT,
	LAST_OPEN,		/* ( or [ */
	LAST_COMMA,
	LAST_DOT,
	LAST_CAST,		/* :: */
	LAST_SIGN,		/* + or - before an expression */
	LAST_OPERATOR,
	LAST_OPERAND,		/* from here on an expression has just ended */
	LAST_WORD = LAST_OPERAND,
	LAST_VALUE,		/* MySQL's other word for values, or a name */
	LAST_ARRAY,
	LAST_LITERAL,
	LAST_CLOSE,
	LAST_MORE,		/* ... */
	/* Only as a keyword's meaning. */
	WORD_NULL, WORD_BOOLEAN, WORD_ASC, WORD_OFFSET,
};

/* Where in a "values (row), (row)" it is. */
enum row {
	ROW_NONE,
	ROW_FIRST,		/* in the first */
	ROW_AFTER,		/* a row has ended */
	ROW_COMMA,
	ROW_SKIP,		/* in one that will be dropped */
};

/* Where in a "limit ?, ?" or "limit ? offset ?" it is. */
enum limit { LIMIT_NONE, LIMIT_WORD, LIMIT_NUMBER, LIMIT_MORE };

struct state {
	uint64_t hash;
	size_t len;		/* of what was written; more than what fits */
	size_t depth;		/* of ( and [ */
	size_t list_depth;	/* of the list that had only literals so far; 0: none */
	size_t row_depth;
	enum last last;
	enum row row;
	enum limit limit;
	bool string;		/* the last token was a quoted string */
	bool semicolon;		/* to be written if anything follows */
};

struct printer {
	struct lexer in;
	struct state now;
	struct state list, row, limit, sign;	/* where to go back to */
	char *out;
	size_t size;
	bool escapes;		/* the last string has backslashes that escape */
	char closer;		/* the list's */
	/* For redacting; of the token that was read, and of all of them. */
	enum { OTHER, LITERAL, LITERAL_JOINED } token;
};

/* Return whether @c, ( or [, begins a list that collapses to (?+) or [?+] if it has only literals. */
bool printer_starts_list(const struct printer *p, char c);

/* Write the @len bytes of @text as a token of the kind @next; @fold: in lower case. */
void printer_token(struct printer *p, enum last next, const void *text, size_t len, bool fold);

/* Write a literal; @string: it was a string, which joins one before it. */
void printer_literal(struct printer *p, bool string);

/* Write a comma or "offset", which is dropped after MySQL's "limit ?". */
void printer_separator(struct printer *p, enum last next, const char *text, size_t len);

/* Write ( or [. */
void printer_open(struct printer *p, char c);

/* Write ) or ]. A list that had only literals collapses, a further row of values is dropped. */
void printer_close(struct printer *p, char c);

/* Write + or - before an expression. */
void printer_sign(struct printer *p, char c);

/* End a statement: a semicolon is written if another one follows. */
void printer_end(struct printer *p);

/* Replace the list that is open by its collapsed form. */
void printer_list(struct printer *p);

#endif
