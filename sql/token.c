// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/token.h"

#include <stdlib.h>
#include <string.h>

#define OPERATOR_MAX	63	/* bytes of a PostgreSQL operator: NAMEDATALEN - 1 */

struct keyword {
	char name[KEYWORD_MAX];
	unsigned char kind;	/* enum token */
};

/* Sorted by name: words before an expression, and words with a rule of their own. */
static const struct keyword keywords[] = {
	{ "all", TOKEN_KEYWORD }, { "and", TOKEN_KEYWORD }, { "array", TOKEN_ARRAY },
	{ "as", TOKEN_AS }, { "asc", TOKEN_ASC }, { "between", TOKEN_KEYWORD },
	{ "by", TOKEN_KEYWORD }, { "call", TOKEN_KEYWORD }, { "case", TOKEN_KEYWORD },
	{ "distinct", TOKEN_KEYWORD }, { "div", TOKEN_KEYWORD }, { "else", TOKEN_KEYWORD },
	{ "escape", TOKEN_KEYWORD }, { "except", TOKEN_KEYWORD }, { "exists", TOKEN_KEYWORD },
	{ "explain", TOKEN_KEYWORD }, { "false", TOKEN_BOOLEAN }, { "filter", TOKEN_KEYWORD },
	{ "from", TOKEN_KEYWORD }, { "having", TOKEN_KEYWORD }, { "ilike", TOKEN_KEYWORD },
	{ "in", TOKEN_IN }, { "intersect", TOKEN_KEYWORD }, { "interval", TOKEN_KEYWORD },
	{ "is", TOKEN_IS }, { "join", TOKEN_KEYWORD }, { "like", TOKEN_KEYWORD },
	{ "limit", TOKEN_LIMIT }, { "not", TOKEN_NOT }, { "null", TOKEN_NULL },
	{ "offset", TOKEN_OFFSET }, { "on", TOKEN_KEYWORD }, { "or", TOKEN_KEYWORD },
	{ "over", TOKEN_KEYWORD }, { "regexp", TOKEN_KEYWORD }, { "return", TOKEN_KEYWORD },
	{ "returning", TOKEN_KEYWORD }, { "rlike", TOKEN_KEYWORD }, { "select", TOKEN_KEYWORD },
	{ "set", TOKEN_KEYWORD }, { "then", TOKEN_KEYWORD }, { "true", TOKEN_BOOLEAN },
	{ "union", TOKEN_KEYWORD }, { "using", TOKEN_KEYWORD }, { "value", TOKEN_VALUE },
	{ "values", TOKEN_VALUES }, { "when", TOKEN_KEYWORD }, { "where", TOKEN_KEYWORD },
	{ "with", TOKEN_KEYWORD }, { "xor", TOKEN_KEYWORD },
};

static int peek(const struct printer *p, size_t ahead)
{
	return lexer_peek(&p->in, ahead);
}

static bool is_at(const struct printer *p, const char *string)
{
	return lexer_is_at(&p->in, string);
}

static bool is_name(const struct printer *p, int c)
{
	return lexer_is_name(&p->in, c);
}

static bool is_name_start(const struct printer *p, int c)
{
	return lexer_is_name_start(&p->in, c);
}

/* Return whether a dot after @last separates the parts of a qualified name. */
static bool is_qualifier(enum token last)
{
	return last >= TOKEN_OPERAND && last != TOKEN_LITERAL;
}

/* Return whether the token is not written: the cut may have shortened it, or its end is unknown. */
static bool is_partial(const struct printer *p)
{
	return (p->in.cut && p->in.pos == p->in.end) || p->in.doubtful;
}

static int keyword_compare(const void *name, const void *row)
{
	return strncmp(name, ((const struct keyword *)row)->name, KEYWORD_MAX);
}

/* Return the kind of the word from @start to the current position. */
static enum token word_kind(const struct printer *p, size_t start)
{
	char name[KEYWORD_MAX] = "";
	const struct keyword *keyword;
	size_t len = p->in.pos - start;

	if (p->now.last == TOKEN_DOT || len >= sizeof(name))
		return TOKEN_NAME;
	for (size_t i = 0; i < len; i++)
		name[i] = (char)lexer_lower(p->in.text[start + i]);
	keyword = bsearch(name, keywords, sizeof(keywords) / sizeof(keywords[0]), sizeof(*keywords),
			  keyword_compare);
	return keyword ? keyword->kind : TOKEN_NAME;
}

/* Return whether "null", "true" or "false", of kind @next, is a literal at this position. */
static bool is_literal(const struct printer *p, enum token next)
{
	enum token last = p->now.last;

	if (p->in.mysql)
		return next == TOKEN_NULL;
	return last != TOKEN_IS && last != TOKEN_IS_NOT &&
	       (last != TOKEN_NOT || next != TOKEN_NULL);
}

/* Return whether the word from @start on is the beginning of PostgreSQL's "true" or "false". */
static bool is_cut_boolean(const struct printer *p, size_t start)
{
	static const char *const words[] = { "true", "false" };
	size_t len = p->in.pos - start, same;

	for (size_t i = 0; !p->in.mysql && i < sizeof(words) / sizeof(words[0]); i++) {
		for (same = 0; same < len && words[i][same]; same++)
			if (lexer_lower(p->in.text[start + same]) != words[i][same])
				break;
		if (same == len)
			return true;
	}
	return false;
}

static void read_word(struct printer *p)
{
	size_t start = p->in.pos;
	bool number = lexer_skip_word(&p->in);
	enum token next;

	if (number && !p->in.doubtful) {
		printer_literal(p, false);
		return;
	}
	if (is_partial(p)) {
		p->redact = is_cut_boolean(p, start) ? REDACT_LITERAL : REDACT_NOTHING;
		return;
	}
	next = word_kind(p, start);
	switch (next) {
	case TOKEN_NULL:
	case TOKEN_BOOLEAN:
		if (is_literal(p, next)) {
			printer_literal(p, false);
			p->redact = next == TOKEN_NULL ? REDACT_NOTHING : REDACT_LITERAL;
			return;
		}
		next = TOKEN_NAME;
		break;
	case TOKEN_ASC:
		/* "asc" is the default order: drop it after an expression. */
		if (p->now.last >= TOKEN_OPERAND)
			return;
		next = TOKEN_NAME;
		break;
	case TOKEN_OFFSET:
		printer_separator(p, TOKEN_KEYWORD, "offset", 6);
		return;
	case TOKEN_NOT:
		if (p->now.last == TOKEN_IS)
			next = TOKEN_IS_NOT;
		break;
	default:
		break;
	}
	printer_token(p, next, p->in.text + start, p->in.pos - start, true);
}

/* Read a quoted name with @prefix bytes before the quote. */
static void read_quoted_name(struct printer *p, size_t prefix)
{
	size_t start = p->in.pos;

	p->in.pos += prefix;
	if (lexer_skip_quoted(&p->in, BACKSLASH_PLAIN)) {
		if (!is_partial(p))
			printer_token(p, TOKEN_NAME, p->in.text + start, p->in.pos - start, false);
	} else if (!p->in.cut && !p->in.doubtful) {
		printer_literal(p, false);
	}
}

/* Read a string with its prefix. Return whether there is one. */
static bool read_string(struct printer *p)
{
	int c = lexer_lower(peek(p, 0));
	enum lexer_backslash backslash = BACKSLASH_SESSION;
	size_t prefix = 0;

	if (c == '$') {
		if (!lexer_skip_dollar(&p->in))
			return false;
		p->backslash = BACKSLASH_PLAIN;
		printer_literal(p, !p->in.mysql);
		return true;
	}
	if ((c == 'n' || c == 'b' || c == 'x' || (c == 'e' && !p->in.mysql)) && peek(p, 1) == '\'')
		prefix = 1;
	else if (c == 'u' && !p->in.mysql && peek(p, 1) == '&' && peek(p, 2) == '\'')
		prefix = 2;
	else if (c != '\'' && (c != '"' || !p->in.mysql))
		return false;
	/* In PostgreSQL a string that continues on another line keeps its rule for backslashes. */
	if (c == 'e')
		backslash = BACKSLASH_ESCAPE;
	else if ((prefix && c != 'n' && !p->in.mysql) || (c == '"' && p->in.ansi))
		backslash = BACKSLASH_PLAIN;
	else if (!prefix && !p->in.mysql && p->now.string && p->gap == GAP_NEWLINE)
		backslash = p->backslash;
	p->in.pos += prefix;
	lexer_skip_quoted(&p->in, backslash);
	if (p->in.doubtful)
		return true;
	p->backslash = backslash;
	printer_literal(p, true);
	return true;
}

/* Read a parameter: $1, ?, or a driver's :name or %s. Return whether there is one. */
static bool read_parameter(struct printer *p)
{
	bool operand = p->now.last < TOKEN_OPERAND;
	int c = peek(p, 0), after = peek(p, 1);

	if (c == '$' && lexer_is_digit(after)) {
		p->in.pos++;
		lexer_skip_digits(&p->in);
	} else if (c == '?' && (operand || p->in.mysql)) {
		p->in.pos++;
	} else if (c == ':' && operand && is_name_start(p, after)) {
		p->in.pos++;
		lexer_skip_word(&p->in);
	} else if (c == '%' && operand && after == 's' && !is_name(p, peek(p, 2))) {
		p->in.pos += 2;
	} else {
		return false;
	}
	if (p->in.doubtful)
		return true;
	printer_literal(p, false);
	p->redact = REDACT_NOTHING;
	return true;
}

/* Return whether a dot at the current position, followed by digits, continues a name. */
static bool is_after_name(const struct printer *p)
{
	return p->gap == GAP_NONE && is_qualifier(p->now.last) && p->now.last != TOKEN_CLOSE;
}

/*
 * Read a number, or directly after a dot a name that begins with digits, as MySQL permits. Return
 * whether there is one.
 */
static bool read_number(struct printer *p)
{
	enum token last = p->now.last;
	size_t len = 0;

	if (peek(p, 0) == '.') {
		if (!lexer_is_digit(peek(p, 1)) || is_after_name(p))
			return false;
	} else if (!lexer_is_digit(peek(p, 0))) {
		return false;
	}
	if (last == TOKEN_DOT && p->gap == GAP_NONE && p->in.mysql) {
		while (lexer_is_digit(peek(p, len)))
			len++;
		if (is_name(p, peek(p, len))) {
			read_word(p);
			return true;
		}
	}
	lexer_skip_number(&p->in);
	if (!p->in.doubtful)
		printer_literal(p, false);
	return true;
}

/*
 * Return the length of an operator by PostgreSQL's rules: any sequence of operator characters up to
 * a comment, where a trailing + or - requires one of @special; lexical structure, "Operators".
 */
static size_t operator_postgres(const struct printer *p)
{
	static const char all[] = "~!@#^&|`?+-*/%<>=", special[] = "~!@#%^&|`?";
	bool has_special = false;
	size_t len = 0;
	int c;

	for (; len < OPERATOR_MAX && (c = peek(p, len)) > 0 && strchr(all, c); len++) {
		if (len && ((c == '-' && peek(p, len + 1) == '-') ||
			    (c == '/' && peek(p, len + 1) == '*')))
			break;
		/* In "=?" the ? is a parameter, in "@?" and "?|" it is part of the operator. */
		if (len && c == '?' && peek(p, len - 1) != '@' && peek(p, 0) != '?')
			break;
		has_special |= strchr(special, c) != NULL;
	}
	while (len > 1 && !has_special && strchr("+-", peek(p, len - 1)))
		len--;
	return len ? len : 1;
}

static size_t operator_mysql(const struct printer *p)
{
	static const char *const table[] = {
		"<=>", "->>", "<=", ">=", "<>", "!=", "||", "&&", "<<", ">>", "->",
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (is_at(p, table[i]))
			return strlen(table[i]);
	return 1;
}

static void read_operator(struct printer *p)
{
	size_t start = p->in.pos, len;
	char c = (char)p->in.text[start];

	if (is_at(p, "::") || is_at(p, ":="))
		len = 2;
	else
		len = p->in.mysql ? operator_mysql(p) : operator_postgres(p);
	p->in.pos += len;
	if (is_partial(p))
		return;
	if (len == 1 && (c == '-' || c == '+') && p->now.last < TOKEN_OPERAND)
		printer_sign(p, c);
	else if (len == 1 && c == '?')
		printer_literal(p, false);
	else
		printer_token(p, len == 2 && !memcmp(p->in.text + start, "::", 2) ?
			      TOKEN_CAST : TOKEN_OPERATOR, p->in.text + start, len, false);
}

/* Read MySQL's @name or @@name. Return whether there is one. */
static bool read_variable(struct printer *p)
{
	size_t start = p->in.pos, len = is_at(p, "@@") ? 2 : 1;

	if (!p->in.mysql || peek(p, 0) != '@' || !is_name(p, peek(p, len)))
		return false;
	p->in.pos += len;
	lexer_skip_word(&p->in);
	if (!is_partial(p))
		printer_token(p, TOKEN_NAME, p->in.text + start, p->in.pos - start, true);
	return true;
}

/* Read (?+) or [?+] of a fingerprint. Return whether there is one. */
static bool read_list(struct printer *p)
{
	char c = (char)peek(p, 0);

	if (!printer_starts_list(p, c) || (!is_at(p, "(?+)") && !is_at(p, "[?+]")))
		return false;
	p->in.pos += 4;
	printer_open(p, c);
	printer_literal(p, false);
	printer_close(p, p->closer);
	return true;
}

/* Return whether a word begins that is neither a parameter nor the prefix of a string or name. */
static bool is_plain_word(const struct printer *p)
{
	int c = peek(p, 0), after = peek(p, 1);

	return is_name_start(p, c) && c != '$' && after != '\'' && after != '&';
}

void token_read(struct printer *p)
{
	int c = peek(p, 0);

	if (is_plain_word(p)) {		/* most tokens */
		read_word(p);
	} else if (is_at(p, "...")) {
		p->in.pos += 3;
		printer_token(p, TOKEN_ELLIPSIS, "...", 3, false);
	} else if (c == (p->in.mysql ? '`' : '"')) {
		read_quoted_name(p, 0);
	} else if (!p->in.mysql && lexer_lower(c) == 'u' && peek(p, 1) == '&' &&
		   peek(p, 2) == '"') {
		read_quoted_name(p, 2);
	} else if (read_string(p) || read_parameter(p) || read_number(p) || read_variable(p) ||
		   read_list(p)) {
		return;
	} else if (is_name_start(p, c)) {
		read_word(p);
	} else if (c == '(' || c == '[') {
		p->in.pos++;
		printer_open(p, (char)c);
	} else if (c == ')' || c == ']') {
		p->in.pos++;
		printer_close(p, (char)c);
	} else if (c == ',') {
		p->in.pos++;
		printer_separator(p, TOKEN_COMMA, ",", 1);
	} else if (c == '.') {
		p->in.pos++;
		printer_token(p, is_qualifier(p->now.last) ? TOKEN_DOT : TOKEN_OPERATOR, ".", 1,
			      false);
	} else if (c == ';') {
		p->in.pos++;
		printer_end(p);
	} else {
		read_operator(p);
	}
}
