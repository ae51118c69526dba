/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lexical rules of the SQL dialects: white space, comments, quotes, names and numbers, byte by
 * byte. Sources: PostgreSQL's src/backend/parser/scan.l, MySQL's and MariaDB's sql/sql_lex.cc.
 * Every function takes time in proportion to the bytes that it skips.
 */
#ifndef SQL_LEXER_H
#define SQL_LEXER_H

#include <stdbool.h>
#include <stddef.h>

struct lexer {
	const unsigned char *text;	/* borrowed; any bytes, no NUL */
	size_t pos, end;
	bool mysql;
	bool cut;		/* the statement continues after @end */
	bool hint;		/* inside a comment that MySQL executes */
	bool quoted;		/* a quoted item was read */
	bool open;		/* the last quoted item is unterminated */
	bool doubtful;		/* its end depends on the session's rule for backslashes */
};

static inline bool lexer_is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static inline bool lexer_is_blank(int c)
{
	return c == ' ' || !c || (c >= '\t' && c <= '\r');
}

static inline int lexer_lower(int c)
{
	return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

/* Return whether @c can begin an unquoted name; any byte of a character beyond ASCII can. */
static inline bool lexer_is_name_start(const struct lexer *l, int c)
{
	return (lexer_lower(c) >= 'a' && lexer_lower(c) <= 'z') || c == '_' || c >= 0x80 ||
	       (c == '$' && l->mysql);
}

static inline bool lexer_is_name(const struct lexer *l, int c)
{
	return lexer_is_name_start(l, c) || lexer_is_digit(c) || c == '$';
}

/* Return the byte @ahead bytes after the current one, or -1 past the end. */
static inline int lexer_peek(const struct lexer *l, size_t ahead)
{
	return ahead < l->end - l->pos ? l->text[l->pos + ahead] : -1;
}

static inline bool lexer_is_at(const struct lexer *l, const char *string)
{
	size_t at = l->pos;

	while (*string && at < l->end && l->text[at] == (unsigned char)*string) {
		string++;
		at++;
	}
	return !*string;
}

/*
 * Skip a delimiter of a comment that MySQL executes, with its version. Return whether one was
 * skipped.
 */
bool lexer_skip_hint(struct lexer *l);

/* Skip one byte of white space, or a comment. Return whether one was skipped. */
bool lexer_skip_blank(struct lexer *l);

/*
 * Skip a quoted item, from its opening quote on; @backslash: a backslash is an escape. Return false
 * if it is unterminated.
 */
bool lexer_skip_quoted(struct lexer *l, bool backslash);

/*
 * Skip a dollar-quoted string of PostgreSQL, $tag$...$tag$, or its beginning if the text is cut
 * there. Return false without one. A tag contains no $, so each byte is compared at most twice.
 */
bool lexer_skip_dollar(struct lexer *l);

/* Skip digits and underscores. */
void lexer_skip_digits(struct lexer *l);

/* Skip a number. A name that follows without a blank belongs to it in MySQL, not in PostgreSQL. */
void lexer_skip_number(struct lexer *l);

#endif
