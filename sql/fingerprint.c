// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads token by token and writes each one in its only spelling. What turns out later not to
 * belong there (a list's items, a sign before a number) is taken back by going back to a copy
 * of the state, of which the hash and the length are part.
 *
 * What a token does depends only on the state, and the state only on what was written. So the
 * fingerprint of a fingerprint is itself.
 */
#include "sql/fingerprint.h"

#include <stdlib.h>
#include <string.h>

#define HASH_START	0xcbf29ce484222325u	/* FNV-1a, 64 bits */
#define HASH_PRIME	0x100000001b3u
#define KEYWORD_MAX	12
#define VERSION_DIGITS	6
#define OPERATOR_MAX	63	/* PostgreSQL's; the bound for how far is looked ahead */

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
	struct state now;
	struct state list, row, limit, sign;	/* where to go back to */
	const unsigned char *text;
	size_t pos, end;
	char *out;
	size_t size;
	bool mysql;
	bool cut;
	bool hint;		/* in MySQL's comment that is code */
	bool escapes;		/* the last string has backslashes that escape */
	char closer;		/* the list's */
	/* For redacting; of the token that was read, and of all of them. */
	enum { OTHER, LITERAL, LITERAL_JOINED } token;
	bool quoted;		/* something is in quotes */
	bool open;		/* .. of which the last have no end */
	bool doubtful;		/* .. whose end depends on what a session says of backslashes */
};

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

/* Reading */

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static bool is_blank(int c)
{
	return c == ' ' || !c || (c >= '\t' && c <= '\r');
}

static int lower(int c)
{
	return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

/* Whether @c can start a name without quotes; any byte of a character beyond ASCII can. */
static bool is_name_start(const struct printer *p, int c)
{
	return (lower(c) >= 'a' && lower(c) <= 'z') || c == '_' || c >= 0x80 ||
	       (c == '$' && p->mysql);
}

static bool is_name(const struct printer *p, int c)
{
	return is_name_start(p, c) || is_digit(c) || c == '$';
}

/* The byte @ahead of the current one, or -1. */
static int peek(const struct printer *p, size_t ahead)
{
	return ahead < p->end - p->pos ? p->text[p->pos + ahead] : -1;
}

static bool looking_at(const struct printer *p, const char *string)
{
	size_t at = p->pos;

	while (*string && at < p->end && p->text[at] == (unsigned char)*string) {
		string++;
		at++;
	}
	return !*string;
}

/* To MySQL a carriage return is no end. */
static void skip_line(struct printer *p)
{
	while (p->pos < p->end && p->text[p->pos] != '\n' &&
	       (p->mysql || p->text[p->pos] != '\r'))
		p->pos++;
}

/* PostgreSQL's comments nest. */
static void skip_comment(struct printer *p)
{
	size_t depth = 0;

	do {
		if (looking_at(p, "/*") && (!depth || !p->mysql)) {
			depth++;
			p->pos += 2;
		} else if (looking_at(p, "*/")) {
			depth--;
			p->pos += 2;
		} else {
			p->pos++;
		}
	} while (depth && p->pos < p->end);
}

/* MySQL's comments that it runs: the marks and the version go, what is inside stays. */
static bool skip_hint(struct printer *p)
{
	bool mariadb = looking_at(p, "/*M!");

	if (p->hint && looking_at(p, "*/")) {
		p->hint = false;
		p->pos += 2;
		return true;
	}
	if (!p->mysql || (!mariadb && !looking_at(p, "/*!")))
		return false;
	p->hint = true;
	p->pos += mariadb ? 4 : 3;
	for (int i = 0; i < VERSION_DIGITS && is_digit(peek(p, 0)); i++)
		p->pos++;
	return true;
}

/* Whether it was at white space or a comment. */
static bool skip_blank(struct printer *p)
{
	int after = peek(p, 2);

	if (is_blank(peek(p, 0)))
		p->pos++;
	else if (skip_hint(p))
		return true;
	else if (looking_at(p, "/*"))
		skip_comment(p);
	else if (looking_at(p, "--") && (!p->mysql || after <= ' '))
		skip_line(p);
	else if (p->mysql && peek(p, 0) == '#')
		skip_line(p);
	else
		return false;
	return true;
}

/* Skips what is in quotes. False: its end is not there. */
static bool skip_quoted(struct printer *p, bool backslash)
{
	int quote = p->text[p->pos++], c;

	p->quoted = true;
	while (p->pos < p->end) {
		c = p->text[p->pos++];
		p->doubtful |= c == '\\' && (p->mysql || !backslash) && peek(p, 0) == quote;
		if (c == '\\' && backslash && p->pos < p->end)
			p->pos++;
		else if (c == quote && peek(p, 0) == quote)
			p->pos++;
		else if (c == quote)
			return true;
	}
	p->open = true;
	return false;
}

/*
 * Skips $tag$...$tag$, or its beginning where the text is cut there. False: there is none. A
 * tag has no $, so that comparing goes over each byte at most twice.
 */
static bool skip_dollar(struct printer *p)
{
	const unsigned char *tag = p->text + p->pos;
	size_t len = 1;

	if (is_name_start(p, peek(p, 1)))
		while (is_name(p, peek(p, len)) && peek(p, len) != '$')
			len++;
	if (peek(p, len) == -1 && p->cut)
		p->pos = p->end;
	if (peek(p, len) != '$')
		return p->pos == p->end;
	len++;
	for (p->pos += len; p->pos < p->end; p->pos++)
		if (p->text[p->pos] == '$' && p->end - p->pos >= len &&
		    !memcmp(p->text + p->pos, tag, len)) {
			p->pos += len;
			return true;
		}
	return true;
}

static void skip_digits(struct printer *p)
{
	while (is_digit(peek(p, 0)) || peek(p, 0) == '_')
		p->pos++;
}

static bool is_hex(int c)
{
	return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'f');
}

/* What follows a number without a blank belongs to it for MySQL, but not for PostgreSQL. */
static void skip_number(struct printer *p)
{
	int kind = lower(peek(p, 1)), sign;

	if (peek(p, 0) == '0' && (kind == 'x' || kind == 'b' || kind == 'o') &&
	    is_hex(peek(p, 2))) {
		for (p->pos += 2; is_hex(peek(p, 0)) || peek(p, 0) == '_';)
			p->pos++;
	} else {
		skip_digits(p);
		if (peek(p, 0) == '.' && peek(p, 1) != '.') {
			p->pos++;
			skip_digits(p);
		}
		sign = peek(p, 1) == '+' || peek(p, 1) == '-';
		if (lower(peek(p, 0)) == 'e' && is_digit(peek(p, 1 + (size_t)sign))) {
			p->pos += 1 + (size_t)sign;
			skip_digits(p);
		}
	}
	while (p->mysql && is_name(p, peek(p, 0)))
		p->pos++;
}

/* Writing */

/* A NUL, which only a quoted name can have, would end the result early. */
static void put(struct printer *p, char c)
{
	c = c ? c : ' ';
	p->now.hash = (p->now.hash ^ (unsigned char)c) * HASH_PRIME;
	if (p->now.len < p->size)
		p->out[p->now.len] = c;
	p->now.len++;
}

static bool wants_blank(enum last last, enum last next, char c)
{
	if (last == LAST_NONE)
		return false;
	if (next == LAST_MORE)
		return last != LAST_OPEN;
	if (last == LAST_DOT || last == LAST_OPEN || last == LAST_CAST)
		return false;
	switch (next) {
	case LAST_COMMA:
	case LAST_CLOSE:
		return false;
	case LAST_DOT:
	case LAST_CAST:
		return last == LAST_OPERATOR || last == LAST_SIGN;
	case LAST_OPEN:
		if (c == '[')
			return last < LAST_OPERAND;
		return last != LAST_WORD && last != LAST_ARRAY;
	default:
		return true;
	}
}

/* What follows a row or a limit's number, or makes a list more than one of literals. */
static void follow(struct state *s, enum last next)
{
	if (s->row == ROW_AFTER || s->row == ROW_COMMA)
		s->row = ROW_NONE;
	s->limit = next == LAST_LIMIT ? LIMIT_WORD : LIMIT_NONE;
	if (next != LAST_LITERAL && next != LAST_COMMA && next != LAST_OPEN && next != LAST_CLOSE)
		s->list_depth = 0;
	s->string = false;
}

static void write_token(struct printer *p, enum last next, const void *text, size_t len, bool fold)
{
	const unsigned char *c = text;

	if (p->now.semicolon) {
		p->now.semicolon = false;
		put(p, ';');
		put(p, ' ');
	} else if (wants_blank(p->now.last, next, (char)*c)) {
		put(p, ' ');
	}
	for (size_t i = 0; i < len; i++)
		put(p, (char)(fold ? lower(c[i]) : c[i]));
	follow(&p->now, next);
	p->now.last = next;
}

static void write_literal(struct printer *p, bool string)
{
	enum limit limit;

	if (p->now.last == LAST_SIGN)
		p->now = p->sign;
	p->token = string && p->now.string ? LITERAL_JOINED : LITERAL;
	if (p->token == LITERAL_JOINED)
		return;
	limit = p->now.limit;
	if (limit == LIMIT_MORE) {
		p->now = p->limit;
		return;
	}
	write_token(p, LAST_LITERAL, "?", 1, false);
	p->now.string = string;
	p->now.limit = limit == LIMIT_WORD ? LIMIT_NUMBER : LIMIT_NONE;
}

/* A comma or "offset": behind "limit ?" it may go. */
static void write_separator(struct printer *p, enum last next, const char *text, size_t len)
{
	struct state before = p->now;

	write_token(p, next, text, len, false);
	if (next == LAST_COMMA && before.row == ROW_AFTER) {
		p->row = before;
		p->now.row = ROW_COMMA;
	}
	if (before.limit == LIMIT_NUMBER && p->mysql) {
		p->limit = before;
		p->now.limit = LIMIT_MORE;
	}
}

static bool starts_rows(const struct printer *p, char c)
{
	return c == '(' && (p->now.last == LAST_VALUES || (p->now.last == LAST_VALUE && p->mysql));
}

static bool starts_list(const struct printer *p, char c)
{
	return p->now.last == (c == '(' ? LAST_IN : LAST_ARRAY) || starts_rows(p, c);
}

static void write_open(struct printer *p, char c)
{
	struct state before = p->now;
	bool rows = starts_rows(p, c), list = starts_list(p, c);
	bool nested = before.row == ROW_FIRST || before.row == ROW_SKIP;

	write_token(p, LAST_OPEN, &c, 1, false);
	p->now.depth++;
	if (list) {
		p->list = before;
		p->now.list_depth = p->now.depth;
		p->closer = c == '(' ? ')' : ']';
	}
	if (!nested && (rows || before.row == ROW_COMMA)) {
		p->now.row = before.row == ROW_COMMA ? ROW_SKIP : ROW_FIRST;
		p->now.row_depth = p->now.depth;
	}
}

/* Writes (?+) for a list that began at p->list. */
static void write_list(struct printer *p)
{
	enum row row = p->now.row;
	size_t row_depth = p->now.row_depth;
	char text[] = { p->closer == ')' ? '(' : '[', '?', '+', p->closer };

	p->now = p->list;
	p->now.last = LAST_WORD;
	write_token(p, LAST_CLOSE, text, sizeof(text), false);
	p->now.row = row;
	p->now.row_depth = row_depth;
}

static void write_close(struct printer *p, char c)
{
	size_t depth = p->now.depth;
	bool list = depth && p->now.list_depth == depth && c == p->closer;

	if (list)
		write_list(p);
	else
		write_token(p, LAST_CLOSE, &c, 1, false);
	if (!depth)
		return;
	p->now.depth = depth - 1;
	if (p->now.list_depth == depth)
		p->now.list_depth = 0;
	if (p->now.row_depth != depth)
		return;
	if (p->now.row == ROW_SKIP)
		p->now = p->row;
	else if (p->now.row == ROW_FIRST)
		p->now.row = ROW_AFTER;
}

static void write_sign(struct printer *p, char c)
{
	if (p->now.last != LAST_SIGN)
		p->sign = p->now;
	write_token(p, LAST_SIGN, &c, 1, false);
}

/* Tokens */

/* Whether a dot can follow. */
static bool is_named(enum last last)
{
	return last >= LAST_OPERAND && last != LAST_LITERAL;
}

/* A piece that the text's end may have made shorter is not shown. */
static bool is_partial(const struct printer *p)
{
	return p->cut && p->pos == p->end;
}

static int keyword_compare(const void *name, const void *row)
{
	return strncmp(name, ((const struct keyword *)row)->name, KEYWORD_MAX);
}

static enum last word_meaning(const struct printer *p, size_t start)
{
	char name[KEYWORD_MAX] = "";
	const struct keyword *keyword;
	size_t len = p->pos - start;

	if (p->now.last == LAST_DOT || len >= sizeof(name))
		return LAST_WORD;
	for (size_t i = 0; i < len; i++)
		name[i] = (char)lower(p->text[start + i]);
	keyword = bsearch(name, keywords, sizeof(keywords) / sizeof(keywords[0]), sizeof(*keywords),
			  keyword_compare);
	return keyword ? keyword->meaning : LAST_WORD;
}

/* Whether "null", "true" or "false" is a value here. */
static bool is_value(const struct printer *p, enum last meaning)
{
	enum last last = p->now.last;

	if (p->mysql)
		return meaning == WORD_NULL;
	return last != LAST_IS && last != LAST_IS_NOT && (last != LAST_NOT || meaning != WORD_NULL);
}

static void read_word(struct printer *p)
{
	size_t start = p->pos;
	enum last meaning;

	while (is_name(p, peek(p, 0)))
		p->pos++;
	if (is_partial(p))
		return;
	meaning = word_meaning(p, start);
	switch (meaning) {
	case WORD_NULL:
	case WORD_BOOLEAN:
		if (is_value(p, meaning)) {
			write_literal(p, false);
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
		write_separator(p, LAST_KEYWORD, "offset", 6);
		return;
	case LAST_NOT:
		if (p->now.last == LAST_IS)
			meaning = LAST_IS_NOT;
		break;
	default:
		break;
	}
	write_token(p, meaning, p->text + start, p->pos - start, true);
}

/* A name in quotes, with @prefix bytes before them. */
static void read_quoted_name(struct printer *p, size_t prefix)
{
	size_t start = p->pos;

	p->pos += prefix;
	if (skip_quoted(p, false)) {
		if (!is_partial(p))
			write_token(p, LAST_WORD, p->text + start, p->pos - start, false);
	} else if (!p->cut) {
		write_literal(p, false);
	}
}

/* Strings, with their prefixes. Whether it was one. */
static bool read_string(struct printer *p)
{
	int c = lower(peek(p, 0));
	bool backslash = p->mysql;
	size_t prefix = 0;

	if (c == '$' && !p->mysql) {
		if (!skip_dollar(p))
			return false;
		p->escapes = false;
		write_literal(p, true);
		return true;
	}
	if ((c == 'n' || c == 'b' || c == 'x' || (c == 'e' && !p->mysql)) && peek(p, 1) == '\'')
		prefix = 1;
	else if (c == 'u' && !p->mysql && peek(p, 1) == '&' && peek(p, 2) == '\'')
		prefix = 2;
	else if (c != '\'' && (c != '"' || !p->mysql))
		return false;
	/* PostgreSQL reads a string that goes on in another line as it began. */
	if (c == 'e' || (!prefix && p->now.string && p->escapes))
		backslash = true;
	p->escapes = backslash;
	p->pos += prefix;
	skip_quoted(p, backslash);
	write_literal(p, true);
	return true;
}

/* $1, ?, :name and %s, which only a driver knows. Whether it was one. */
static bool read_parameter(struct printer *p)
{
	bool operand = p->now.last < LAST_OPERAND;
	int c = peek(p, 0), after = peek(p, 1);

	if (c == '$' && is_digit(after)) {
		p->pos++;
		skip_digits(p);
	} else if (c == '?' && (operand || p->mysql)) {
		p->pos++;
	} else if (c == ':' && operand && is_name_start(p, after)) {
		for (p->pos++; is_name(p, peek(p, 0));)
			p->pos++;
	} else if (c == '%' && operand && after == 's' && !is_name(p, peek(p, 2))) {
		p->pos += 2;
	} else {
		return false;
	}
	write_literal(p, false);
	p->token = OTHER;
	return true;
}

/* Whether it was a number. MySQL's names may begin with digits behind a dot. */
static bool read_number(struct printer *p)
{
	enum last last = p->now.last;
	size_t len = 0;

	if (peek(p, 0) == '.') {
		if (!is_digit(peek(p, 1)) || is_named(last))
			return false;
	} else if (!is_digit(peek(p, 0))) {
		return false;
	}
	if (last == LAST_DOT && p->mysql) {
		while (is_digit(peek(p, len)))
			len++;
		if (is_name(p, peek(p, len))) {
			read_word(p);
			return true;
		}
	}
	skip_number(p);
	write_literal(p, false);
	return true;
}

/* PostgreSQL's own rule for where an operator of any characters ends. */
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
		/* "=?" is rather a parameter. */
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
		if (looking_at(p, table[i]))
			return strlen(table[i]);
	return 1;
}

static void read_operator(struct printer *p)
{
	size_t start = p->pos, len;
	char c = (char)p->text[start];

	if (looking_at(p, "::") || looking_at(p, ":="))
		len = 2;
	else
		len = p->mysql ? operator_mysql(p) : operator_postgres(p);
	p->pos += len;
	if (is_partial(p))
		return;
	if (len == 1 && (c == '-' || c == '+') && p->now.last < LAST_OPERAND)
		write_sign(p, c);
	else if (len == 1 && c == '?')
		write_literal(p, false);
	else
		write_token(p, len == 2 && !memcmp(p->text + start, "::", 2) ? LAST_CAST :
			    LAST_OPERATOR, p->text + start, len, false);
}

/* MySQL's @name and @@name. Whether it was one. */
static bool read_variable(struct printer *p)
{
	size_t start = p->pos, len = looking_at(p, "@@") ? 2 : 1;

	if (!p->mysql || peek(p, 0) != '@' || !is_name(p, peek(p, len)))
		return false;
	for (p->pos += len; is_name(p, peek(p, 0));)
		p->pos++;
	if (!is_partial(p))
		write_token(p, LAST_WORD, p->text + start, p->pos - start, true);
	return true;
}

/* (?+) and [?+] as a fingerprint has them. Whether it was one. */
static bool read_list(struct printer *p)
{
	char c = (char)peek(p, 0);

	if (!starts_list(p, c) || (!looking_at(p, "(?+)") && !looking_at(p, "[?+]")))
		return false;
	p->pos += 4;
	write_open(p, c);
	write_literal(p, false);
	write_close(p, p->closer);
	return true;
}

/* Most tokens are: what begins as a word and is no string's prefix and no parameter. */
static bool is_plain_word(const struct printer *p)
{
	int c = peek(p, 0), after = peek(p, 1);

	return is_name_start(p, c) && c != '$' && after != '\'' && after != '&';
}

static void read_token(struct printer *p)
{
	int c = peek(p, 0);

	if (is_plain_word(p)) {
		read_word(p);
	} else if (looking_at(p, "...")) {
		p->pos += 3;
		write_token(p, LAST_MORE, "...", 3, false);
	} else if (c == (p->mysql ? '`' : '"')) {
		read_quoted_name(p, 0);
	} else if (!p->mysql && lower(c) == 'u' && peek(p, 1) == '&' && peek(p, 2) == '"') {
		read_quoted_name(p, 2);
	} else if (read_string(p) || read_parameter(p) || read_number(p) || read_variable(p) ||
		   read_list(p)) {
		return;
	} else if (is_name_start(p, c)) {
		read_word(p);
	} else if (c == '(' || c == '[') {
		p->pos++;
		write_open(p, (char)c);
	} else if (c == ')' || c == ']') {
		p->pos++;
		write_close(p, (char)c);
	} else if (c == ',') {
		p->pos++;
		write_separator(p, LAST_COMMA, ",", 1);
	} else if (c == '.') {
		p->pos++;
		write_token(p, is_named(p->now.last) ? LAST_DOT : LAST_OPERATOR, ".", 1, false);
	} else if (c == ';') {
		p->pos++;
		p->now.semicolon |= p->now.last != LAST_NONE;
		follow(&p->now, LAST_NONE);
		p->now.last = LAST_NONE;
	} else {
		read_operator(p);
	}
}

/* A list or row that the cut left open is told as a whole one: where it was cut says nothing. */
static void finish_cut(struct printer *p)
{
	if (p->now.row == ROW_SKIP || p->now.row == ROW_COMMA)
		p->now = p->row;
	else if (p->now.list_depth)
		write_list(p);
	write_token(p, LAST_MORE, "...", 3, false);
}

/* Where the character that byte @at of @out is in begins; @at itself where that is no UTF-8. */
static size_t character_begin(const char *out, size_t at)
{
	for (size_t back = 0; back <= 3 && back <= at; back++)
		if (((unsigned char)out[at - back] & 0xc0) != 0x80)
			return at - back;
	return at;
}

/* Ends @out, at the last whole character that leaves room for the mark. */
static void finish_out(const struct printer *p)
{
	size_t at;

	if (!p->size)
		return;
	if (p->now.len < p->size) {
		p->out[p->now.len] = 0;
		return;
	}
	at = character_begin(p->out, p->size > 4 ? p->size - 4 : 0);
	for (int i = 0; i < 3 && at < p->size - 1; i++)
		p->out[at++] = '.';
	p->out[at] = 0;
}

/* FNV's high bits depend little on a short text. */
static uint64_t hash_finish(uint64_t hash)
{
	hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
	hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53u;
	return hash ^ (hash >> 33);
}

size_t fingerprint_make(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			char *out, size_t size, uint64_t *hash)
{
	struct printer p = {
		.now = { .hash = HASH_START },
		.text = (const unsigned char *)text, .end = len,
		.out = out, .size = size,
		.mysql = dialect == FINGERPRINT_MYSQL, .cut = cut,
	};

	while (p.pos < p.end)
		if (!skip_blank(&p))
			read_token(&p);
	if (cut)
		finish_cut(&p);
	finish_out(&p);
	*hash = hash_finish(p.now.hash);
	return p.now.len;
}

/* Its marks stay, and a ? says that there was something between them. The new length. */
static size_t redact_comment(const unsigned char *text, size_t len, char *out, size_t at)
{
	bool block = *text == '/', ended = block && len >= 4 && text[len - 1] == '/';
	size_t marks = *text == '#' ? 1 : 2;

	/* MySQL's is none without the blank. */
	if (!block && marks == 2 && len > 2 && is_blank(text[2]))
		marks++;
	memmove(out + at, text, marks);
	at += marks;
	if (len > marks + (ended ? 2 : 0))
		out[at++] = '?';
	if (ended) {
		out[at++] = '*';
		out[at++] = '/';
	}
	return at;
}

size_t fingerprint_redact(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			  char *out)
{
	struct printer p = {
		.text = (const unsigned char *)text, .end = len,
		.mysql = dialect == FINGERPRINT_MYSQL, .cut = cut,
	};
	size_t at = 0, first = 0, start;

	/* What is written is never longer than what was read, so that @out may be @text. */
	while ((start = p.pos) < p.end) {
		bool quoted = p.quoted, blank = is_blank(peek(&p, 0));

		p.token = OTHER;
		if (!blank && !skip_hint(&p) && skip_blank(&p)) {
			at = redact_comment(p.text + start, p.pos - start, out, at);
			continue;
		}
		if (blank)
			p.pos++;
		else if (p.pos == start)
			read_token(&p);
		if (!quoted && p.quoted)
			first = at;
		if (p.token == OTHER) {
			memmove(out + at, p.text + start, p.pos - start);
			at += p.pos - start;
		} else if (p.token == LITERAL) {
			out[at++] = '?';
		}
	}
	/* Quotes that do not match were read in another way than by the server. */
	if (cut ? p.doubtful : p.open) {
		out[first] = '?';
		at = first + 1;
	}
	return at;
}

void fingerprint_comments(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			  void (*each)(void *arg, const char *comment, size_t len), void *arg)
{
	struct printer p = {
		.text = (const unsigned char *)text, .end = len,
		.mysql = dialect == FINGERPRINT_MYSQL, .cut = cut,
	};
	size_t start;

	while ((start = p.pos) < p.end) {
		if (is_blank(peek(&p, 0)))
			p.pos++;
		else if (skip_hint(&p))
			continue;
		else if (skip_blank(&p))
			each(arg, text + start, p.pos - start);
		else
			read_token(&p);
	}
}
