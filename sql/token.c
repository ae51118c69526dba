// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/token.h"

#include <stdlib.h>
#include <string.h>

#define OPERATOR_MAX	63	/* bytes of a PostgreSQL operator: NAMEDATALEN - 1 */

struct keyword {
	char name[KEYWORD_MAX];
	unsigned char meaning;
};

/* Sorted. Words that an expression follows, and those that mean something here. */
static const struct keyword keywords[] = {
	{ "all", LAST_KEYWORD }, { "and", LAST_KEYWORD }, { "array", LAST_ARRAY },
	{ "as", LAST_AS }, { "asc", WORD_ASC }, { "between", LAST_KEYWORD },
	{ "by", LAST_KEYWORD }, { "call", LAST_KEYWORD }, { "case", LAST_KEYWORD },
	{ "distinct", LAST_KEYWORD }, { "div", LAST_KEYWORD }, { "else", LAST_KEYWORD },
	{ "escape", LAST_KEYWORD }, { "except", LAST_KEYWORD }, { "exists", LAST_KEYWORD },
	{ "explain", LAST_KEYWORD }, { "false", WORD_BOOLEAN }, { "filter", LAST_KEYWORD },
	{ "from", LAST_KEYWORD }, { "having", LAST_KEYWORD }, { "ilike", LAST_KEYWORD },
	{ "in", LAST_IN }, { "intersect", LAST_KEYWORD }, { "interval", LAST_KEYWORD },
	{ "is", LAST_IS }, { "join", LAST_KEYWORD }, { "like", LAST_KEYWORD },
	{ "limit", LAST_LIMIT }, { "not", LAST_NOT }, { "null", WORD_NULL },
	{ "offset", WORD_OFFSET }, { "on", LAST_KEYWORD }, { "or", LAST_KEYWORD },
	{ "over", LAST_KEYWORD }, { "regexp", LAST_KEYWORD }, { "return", LAST_KEYWORD },
	{ "returning", LAST_KEYWORD }, { "rlike", LAST_KEYWORD }, { "select", LAST_KEYWORD },
	{ "set", LAST_KEYWORD }, { "then", LAST_KEYWORD }, { "true", WORD_BOOLEAN },
	{ "union", LAST_KEYWORD }, { "using", LAST_KEYWORD }, { "value", LAST_VALUE },
	{ "values", LAST_VALUES }, { "when", LAST_KEYWORD }, { "where", LAST_KEYWORD },
	{ "with", LAST_KEYWORD }, { "xor", LAST_KEYWORD },
};

/* Whether a dot can follow. */
static bool is_named(enum last last)
{
	return last >= LAST_OPERAND && last != LAST_LITERAL;
}

/* A piece that the text's end may have made shorter is not shown. */
static bool is_partial(const struct printer *p)
{
	return p->in.cut && p->in.pos == p->in.end;
}

static int keyword_compare(const void *name, const void *row)
{
	return strncmp(name, ((const struct keyword *)row)->name, KEYWORD_MAX);
}

static enum last word_meaning(const struct printer *p, size_t start)
{
	char name[KEYWORD_MAX] = "";
	const struct keyword *keyword;
	size_t len = p->in.pos - start;

	if (p->now.last == LAST_DOT || len >= sizeof(name))
		return LAST_WORD;
	for (size_t i = 0; i < len; i++)
		name[i] = (char)lexer_lower(p->in.text[start + i]);
	keyword = bsearch(name, keywords, sizeof(keywords) / sizeof(keywords[0]), sizeof(*keywords),
			  keyword_compare);
	return keyword ? keyword->meaning : LAST_WORD;
}

/* Whether "null", "true" or "false" is a value here. */
static bool is_value(const struct printer *p, enum last meaning)
{
	enum last last = p->now.last;

	if (p->in.mysql)
		return meaning == WORD_NULL;
	return last != LAST_IS && last != LAST_IS_NOT && (last != LAST_NOT || meaning != WORD_NULL);
}

static void read_word(struct printer *p)
{
	size_t start = p->in.pos;
	enum last meaning;

	while (lexer_is_name(&p->in, lexer_peek(&p->in, 0)))
		p->in.pos++;
	if (is_partial(p))
		return;
	meaning = word_meaning(p, start);
	switch (meaning) {
	case WORD_NULL:
	case WORD_BOOLEAN:
		if (is_value(p, meaning)) {
			printer_literal(p, false);
			p->token = meaning == WORD_NULL ? OTHER : LITERAL;
			return;
		}
		meaning = LAST_WORD;
		break;
	case WORD_ASC:
		/* "order by a asc" is "order by a". */
		if (p->now.last >= LAST_OPERAND)
			return;
		meaning = LAST_WORD;
		break;
	case WORD_OFFSET:
		printer_separator(p, LAST_KEYWORD, "offset", 6);
		return;
	case LAST_NOT:
		if (p->now.last == LAST_IS)
			meaning = LAST_IS_NOT;
		break;
	default:
		break;
	}
	printer_token(p, meaning, p->in.text + start, p->in.pos - start, true);
}

/* A name in quotes, with @prefix bytes before them. */
static void read_quoted_name(struct printer *p, size_t prefix)
{
	size_t start = p->in.pos;

	p->in.pos += prefix;
	if (lexer_skip_quoted(&p->in, false)) {
		if (!is_partial(p))
			printer_token(p, LAST_WORD, p->in.text + start, p->in.pos - start, false);
	} else if (!p->in.cut) {
		printer_literal(p, false);
	}
}

/* Strings, with their prefixes. Whether it was one. */
static bool read_string(struct printer *p)
{
	int c = lexer_lower(lexer_peek(&p->in, 0));
	bool backslash = p->in.mysql;
	size_t prefix = 0;

	if (c == '$' && !p->in.mysql) {
		if (!lexer_skip_dollar(&p->in))
			return false;
		p->escapes = false;
		printer_literal(p, true);
		return true;
	}
	if ((c == 'n' || c == 'b' || c == 'x' || (c == 'e' && !p->in.mysql)) && lexer_peek(&p->in, 1) == '\'')
		prefix = 1;
	else if (c == 'u' && !p->in.mysql && lexer_peek(&p->in, 1) == '&' && lexer_peek(&p->in, 2) == '\'')
		prefix = 2;
	else if (c != '\'' && (c != '"' || !p->in.mysql))
		return false;
	/* PostgreSQL reads a string that goes on in another line as it began. */
	if (c == 'e' || (!prefix && p->now.string && p->escapes))
		backslash = true;
	p->escapes = backslash;
	p->in.pos += prefix;
	lexer_skip_quoted(&p->in, backslash);
	printer_literal(p, true);
	return true;
}

/* $1, ?, :name and %s, which only a driver knows. Whether it was one. */
static bool read_parameter(struct printer *p)
{
	bool operand = p->now.last < LAST_OPERAND;
	int c = lexer_peek(&p->in, 0), after = lexer_peek(&p->in, 1);

	if (c == '$' && lexer_is_digit(after)) {
		p->in.pos++;
		lexer_skip_digits(&p->in);
	} else if (c == '?' && (operand || p->in.mysql)) {
		p->in.pos++;
	} else if (c == ':' && operand && lexer_is_name_start(&p->in, after)) {
		for (p->in.pos++; lexer_is_name(&p->in, lexer_peek(&p->in, 0));)
			p->in.pos++;
	} else if (c == '%' && operand && after == 's' && !lexer_is_name(&p->in, lexer_peek(&p->in, 2))) {
		p->in.pos += 2;
	} else {
		return false;
	}
	printer_literal(p, false);
	p->token = OTHER;
	return true;
}

/* Whether it was a number. MySQL's names may begin with digits behind a dot. */
static bool read_number(struct printer *p)
{
	enum last last = p->now.last;
	size_t len = 0;

	if (lexer_peek(&p->in, 0) == '.') {
		if (!lexer_is_digit(lexer_peek(&p->in, 1)) || is_named(last))
			return false;
	} else if (!lexer_is_digit(lexer_peek(&p->in, 0))) {
		return false;
	}
	if (last == LAST_DOT && p->in.mysql) {
		while (lexer_is_digit(lexer_peek(&p->in, len)))
			len++;
		if (lexer_is_name(&p->in, lexer_peek(&p->in, len))) {
			read_word(p);
			return true;
		}
	}
	lexer_skip_number(&p->in);
	printer_literal(p, false);
	return true;
}

/* PostgreSQL's own rule for where an operator of any characters ends. */
static size_t operator_postgres(const struct printer *p)
{
	static const char all[] = "~!@#^&|`?+-*/%<>=", special[] = "~!@#%^&|`?";
	bool has_special = false;
	size_t len = 0;
	int c;

	for (; len < OPERATOR_MAX && (c = lexer_peek(&p->in, len)) > 0 && strchr(all, c); len++) {
		if (len && ((c == '-' && lexer_peek(&p->in, len + 1) == '-') ||
			    (c == '/' && lexer_peek(&p->in, len + 1) == '*')))
			break;
		/* "=?" is rather a parameter. */
		if (len && c == '?' && lexer_peek(&p->in, len - 1) != '@' && lexer_peek(&p->in, 0) != '?')
			break;
		has_special |= strchr(special, c) != NULL;
	}
	while (len > 1 && !has_special && strchr("+-", lexer_peek(&p->in, len - 1)))
		len--;
	return len ? len : 1;
}

static size_t operator_mysql(const struct printer *p)
{
	static const char *const table[] = {
		"<=>", "->>", "<=", ">=", "<>", "!=", "||", "&&", "<<", ">>", "->",
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (lexer_is_at(&p->in, table[i]))
			return strlen(table[i]);
	return 1;
}

static void read_operator(struct printer *p)
{
	size_t start = p->in.pos, len;
	char c = (char)p->in.text[start];

	if (lexer_is_at(&p->in, "::") || lexer_is_at(&p->in, ":="))
		len = 2;
	else
		len = p->in.mysql ? operator_mysql(p) : operator_postgres(p);
	p->in.pos += len;
	if (is_partial(p))
		return;
	if (len == 1 && (c == '-' || c == '+') && p->now.last < LAST_OPERAND)
		printer_sign(p, c);
	else if (len == 1 && c == '?')
		printer_literal(p, false);
	else
		printer_token(p, len == 2 && !memcmp(p->in.text + start, "::", 2) ? LAST_CAST :
			    LAST_OPERATOR, p->in.text + start, len, false);
}

/* MySQL's @name and @@name. Whether it was one. */
static bool read_variable(struct printer *p)
{
	size_t start = p->in.pos, len = lexer_is_at(&p->in, "@@") ? 2 : 1;

	if (!p->in.mysql || lexer_peek(&p->in, 0) != '@' || !lexer_is_name(&p->in, lexer_peek(&p->in, len)))
		return false;
	for (p->in.pos += len; lexer_is_name(&p->in, lexer_peek(&p->in, 0));)
		p->in.pos++;
	if (!is_partial(p))
		printer_token(p, LAST_WORD, p->in.text + start, p->in.pos - start, true);
	return true;
}

/* (?+) and [?+] as a fingerprint has them. Whether it was one. */
static bool read_list(struct printer *p)
{
	char c = (char)lexer_peek(&p->in, 0);

	if (!printer_starts_list(p, c) || (!lexer_is_at(&p->in, "(?+)") && !lexer_is_at(&p->in, "[?+]")))
		return false;
	p->in.pos += 4;
	printer_open(p, c);
	printer_literal(p, false);
	printer_close(p, p->closer);
	return true;
}

/* Most tokens are: what begins as a word and is no string's prefix and no parameter. */
static bool is_plain_word(const struct printer *p)
{
	int c = lexer_peek(&p->in, 0), after = lexer_peek(&p->in, 1);

	return lexer_is_name_start(&p->in, c) && c != '$' && after != '\'' && after != '&';
}

void token_read(struct printer *p)
{
	int c = lexer_peek(&p->in, 0);

	if (is_plain_word(p)) {
		read_word(p);
	} else if (lexer_is_at(&p->in, "...")) {
		p->in.pos += 3;
		printer_token(p, LAST_MORE, "...", 3, false);
	} else if (c == (p->in.mysql ? '`' : '"')) {
		read_quoted_name(p, 0);
	} else if (!p->in.mysql && lexer_lower(c) == 'u' && lexer_peek(&p->in, 1) == '&' && lexer_peek(&p->in, 2) == '"') {
		read_quoted_name(p, 2);
	} else if (read_string(p) || read_parameter(p) || read_number(p) || read_variable(p) ||
		   read_list(p)) {
		return;
	} else if (lexer_is_name_start(&p->in, c)) {
		read_word(p);
	} else if (c == '(' || c == '[') {
		p->in.pos++;
		printer_open(p, (char)c);
	} else if (c == ')' || c == ']') {
		p->in.pos++;
		printer_close(p, (char)c);
	} else if (c == ',') {
		p->in.pos++;
		printer_separator(p, LAST_COMMA, ",", 1);
	} else if (c == '.') {
		p->in.pos++;
		printer_token(p, is_named(p->now.last) ? LAST_DOT : LAST_OPERATOR, ".", 1, false);
	} else if (c == ';') {
		p->in.pos++;
		printer_end(p);
	} else {
		read_operator(p);
	}
}
