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

/* MySQL's client character sets in which a backslash or backtick may end a character. */
enum lexer_charset {
	CHARSET_OTHER,
	CHARSET_SJIS,		/* also cp932 */
	CHARSET_GBK,		/* also gb18030, whose other characters end in a digit */
	CHARSET_BIG5,
	CHARSET_COUNT,
};

/* The rule for backslashes in a quoted item. */
enum lexer_backslash {
	BACKSLASH_PLAIN,	/* no escape: names, and strings with a prefix such as X */
	BACKSLASH_SESSION,	/* an escape if ->escapes */
	BACKSLASH_ESCAPE,	/* an escape: E'...' */
};

struct lexer {
	const unsigned char *text;	/* borrowed; any bytes, no NUL */
	size_t pos, end;
	bool mysql;
	bool cut;		/* the statement continues after @end */
	bool hint;		/* inside a comment that MySQL executes */
	bool quoted;		/* a quoted item was read */
	bool open;		/* the last quoted item is unterminated */
	bool settled;		/* the session's settings are those below: do not set ->doubtful */
	bool doubtful;		/* the end of the last item depends on the session's settings */
	bool escapes;		/* a backslash is an escape, in MySQL also in "..." */
	bool ansi;		/* MySQL: "..." is a name, which has no escapes */
	enum lexer_charset charset;
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
 * Skip a delimiter of a comment that each supported server executes, with its version. Return
 * whether one was skipped.
 */
bool lexer_skip_hint(struct lexer *l);

/*
 * Skip one byte of white space, or a comment, or what is one for some servers or character sets.
 * Return whether one was skipped.
 */
bool lexer_skip_blank(struct lexer *l);

/* Skip a quoted item, from its opening quote on. Return false if it is unterminated. */
bool lexer_skip_quoted(struct lexer *l, enum lexer_backslash backslash);

/*
 * Skip the bytes of an unquoted name. Return whether it may contain a number: a byte beyond ASCII
 * is a blank in some of MySQL's character sets.
 */
bool lexer_skip_word(struct lexer *l);

/*
 * Skip a dollar-quoted string of PostgreSQL or MySQL 9, $tag$...$tag$, or its beginning if the text
 * is cut there. Return false without one. For other servers with MySQL's dialect it is a name;
 * where these would go on reading at another position, all the rest is skipped. A tag contains no
 * $, so each byte is compared at most twice.
 */
bool lexer_skip_dollar(struct lexer *l);

/* Skip digits and underscores. */
void lexer_skip_digits(struct lexer *l);

/* Skip a number. A name that follows without a blank belongs to it in MySQL, not in PostgreSQL. */
void lexer_skip_number(struct lexer *l);

#endif
