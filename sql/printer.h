/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The normal form of a statement: one spelling of case, white space, lists and literals. Internal
 * to sql/.
 *
 * Each token is written in its only spelling. Tokens that turn out to be superfluous (the items of
 * a list, a sign before a number) are undone by restoring a copy of the state, which includes the
 * hash and the length.
 *
 * The effect of a token depends only on the state, and the state only on the tokens written. So the
 * fingerprint of a fingerprint is the fingerprint itself.
 */
#ifndef SQL_PRINTER_H
#define SQL_PRINTER_H

#include <stdint.h>

#include "sql/lexer.h"

#define KEYWORD_MAX	12	/* bytes of a keyword, with its NUL */

/* Kinds of tokens, ordered: an expression ends with each one from TOKEN_OPERAND on. */
enum token {
	TOKEN_NONE,		/* the beginning of a statement */
	TOKEN_KEYWORD,		/* an expression follows */
	TOKEN_IN,
	TOKEN_VALUES,
	TOKEN_IS,
	TOKEN_NOT,
	TOKEN_IS_NOT,
	TOKEN_AS,
	TOKEN_LIMIT,
	TOKEN_OPEN,		/* ( or [ */
	TOKEN_COMMA,
	TOKEN_DOT,
	TOKEN_CAST,		/* :: */
	TOKEN_SIGN,		/* + or - before an expression */
	TOKEN_OPERATOR,
	TOKEN_OPERAND,
	TOKEN_NAME = TOKEN_OPERAND,
	TOKEN_VALUE,		/* a name, or MySQL's synonym of VALUES */
	TOKEN_ARRAY,
	TOKEN_LITERAL,
	TOKEN_CLOSE,
	TOKEN_ELLIPSIS,		/* ... */
	/* Only in the table of keywords; written as one of the above. */
	TOKEN_NULL, TOKEN_BOOLEAN, TOKEN_ASC, TOKEN_OFFSET,
};

/* The position within "values (row), (row)". */
enum row_state {
	ROW_NONE,		/* outside */
	ROW_FIRST,		/* in the first row */
	ROW_AFTER,		/* after a row */
	ROW_COMMA,		/* after the comma that follows a row */
	ROW_SKIP,		/* in a further row, which will be dropped */
};

/* The position within "limit ?, ?" or "limit ? offset ?". */
enum limit_state {
	LIMIT_NONE,		/* outside */
	LIMIT_KEYWORD,		/* after "limit" */
	LIMIT_NUMBER,		/* after the first number */
	LIMIT_SEPARATOR,	/* after the comma or "offset" */
};

struct printer_state {
	uint64_t hash;
	size_t len;		/* of the text written, including what does not fit */
	size_t depth;		/* of open ( and [ */
	size_t list_depth;	/* of the list that has only literals so far; 0: none */
	size_t row_depth;	/* of the current row of values */
	enum token last;	/* the last token written */
	enum row_state row;
	enum limit_state limit;
	bool string;		/* the last token was a quoted string */
	bool semicolon;		/* to be written before the next token, if any */
};

/* How fingerprint_redact() writes the token that was read last. */
enum redact {
	REDACT_NOTHING,		/* as it is */
	REDACT_LITERAL,		/* as ? */
	REDACT_JOINED,		/* not at all: a string that continues the one before */
};

/* Blanks and comments between two tokens. */
enum gap {
	GAP_NONE,
	GAP_BLANKS,
	GAP_NEWLINE,		/* in PostgreSQL the next string continues the one before */
	GAP_COMMENT,		/* a block comment: it does not */
};

struct printer {
	struct lexer in;
	struct printer_state now;
	/* Copies of ->now, to be restored if the tokens since are superfluous. */
	struct printer_state before_list, before_row, before_limit, before_sign;
	char *out;
	size_t size;
	enum gap gap;		/* since the last token */
	enum lexer_backslash backslash;	/* of the last string */
	char closer;		/* ) or ] of the list */
	enum redact redact;
};

/* Return whether @c, ( or [, begins a list that collapses to (?+) or [?+] if all are literals. */
bool printer_starts_list(const struct printer *p, char c);

/* Write the @len bytes of @text as a token of the kind @next; @fold: in lower case. */
void printer_token(struct printer *p, enum token next, const void *text, size_t len, bool fold);

/* Write a literal; @string: it is a quoted string, which continues an adjacent one. */
void printer_literal(struct printer *p, bool string);

/* Write a comma or "offset", which is dropped after MySQL's "limit ?". */
void printer_separator(struct printer *p, enum token next, const char *text, size_t len);

/* Write ( or [. */
void printer_open(struct printer *p, char c);

/* Write ) or ]. A list that has only literals collapses; a further row of values is dropped. */
void printer_close(struct printer *p, char c);

/* Write + or - before an expression. */
void printer_sign(struct printer *p, char c);

/* End a statement: a semicolon is written if another one follows. */
void printer_end(struct printer *p);

/* Replace the open list by its collapsed form. */
void printer_list(struct printer *p);

#endif
