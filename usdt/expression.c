// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/expression.h"

#include <string.h>

#include "base/hex.h"

#define NONE UINT8_MAX

/* Ordered so that no operator follows a prefix of itself. */
static const struct {
	char text[3];
	uint8_t level;		/* precedence */
	uint8_t op;
} operators[] = {
	{ "||", 1, OP_OR }, { "&&", 2, OP_AND }, { "|", 3, OP_BIT_OR }, { "^", 4, OP_BIT_XOR },
	{ "&", 5, OP_BIT_AND }, { "==", 6, OP_EQ }, { "!=", 6, OP_NE }, { "<<", 8, OP_LEFT },
	{ ">>", 8, OP_RIGHT }, { "<=", 7, OP_LE }, { ">=", 7, OP_GE }, { "<", 7, OP_LT },
	{ ">", 7, OP_GT }, { "+", 9, OP_ADD }, { "-", 9, OP_SUB }, { "*", 10, OP_MUL },
	{ "/", 10, OP_DIV }, { "%", 10, OP_MOD },
};

static const struct {
	const char *name;
	uint8_t bits;
	bool is_signed;
} casts[] = {
	{ "char", 8, true }, { "short", 16, true }, { "int", 32, true }, { "long", 64, true },
	{ "unsigned", 32, false }, { "s8", 8, true }, { "s16", 16, true }, { "s32", 32, true },
	{ "s64", 64, true }, { "u8", 8, false }, { "u16", 16, false }, { "u32", 32, false },
	{ "u64", 64, false }, { "int8_t", 8, true }, { "int16_t", 16, true },
	{ "int32_t", 32, true }, { "int64_t", 64, true }, { "uint8_t", 8, false },
	{ "uint16_t", 16, false }, { "uint32_t", 32, false }, { "uint64_t", 64, false },
	{ "size_t", 64, false }, { "ssize_t", 64, true },
};

struct parser {
	struct expression *e;
	const char *start, *p;
	enum expression_reason reason;
	const char *wrong;		/* the position of the error */
	int depth;
};

static uint8_t parse_binary(struct parser *s, unsigned int level);

static uint8_t fail_at(struct parser *s, const char *at, enum expression_reason reason)
{
	if (s->reason == EXPRESSION_OK) {
		s->reason = reason;
		s->wrong = at;
	}
	return NONE;
}

static void skip_blanks(struct parser *s)
{
	while (*s->p == ' ' || *s->p == '\t' || *s->p == '\n')
		s->p++;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t name_length(const char *p)
{
	size_t n = 0;

	while (is_letter(p[n]) || (n && is_digit(p[n])))
		n++;
	return n;
}

static bool name_is(const char *p, size_t len, const char *name)
{
	return strlen(name) == len && !memcmp(p, name, len);
}

static uint8_t add_node(struct parser *s, const struct expression_node *node)
{
	if (s->e->count == EXPRESSION_NODES)
		return fail_at(s, s->p, EXPRESSION_TOO_LONG);
	s->e->nodes[s->e->count] = *node;
	return s->e->count++;
}

/* Parse an escape, behind the backslash. Return the character, or -1 if it is unknown. */
static int parse_escape(struct parser *s)
{
	static const char from[] = "ntr0\\'\"", to[] = "\n\t\r\0\\'\"";
	const char *at = *s->p ? strchr(from, *s->p) : NULL;
	int value = 0;

	if (at) {
		s->p++;
		return (unsigned char)to[at - from];
	}
	if (*s->p != 'x')
		return -1;
	for (int i = 1; i <= 2; i++) {
		char c = s->p[i] | 0x20;

		if (!is_digit(s->p[i]) && !(c >= 'a' && c <= 'f'))
			return -1;
		value = value * 16 + (is_digit(s->p[i]) ? s->p[i] - '0' : c - 'a' + 10);
	}
	s->p += 3;
	return value;
}

static uint8_t parse_text(struct parser *s)
{
	struct expression *e = s->e;
	struct expression_node node = { .kind = EXPRESSION_STRING, .value = (int64_t)e->texts_len };
	const char *start = s->p++;
	int c;

	while (*s->p != '"') {
		if (!*s->p)
			return fail_at(s, start, EXPRESSION_BAD_STRING);
		c = (unsigned char)*s->p++;
		if (c == '\\')
			c = parse_escape(s);
		/* The traced strings are NUL-terminated. */
		if (c <= 0)
			return fail_at(s, s->p - 1, EXPRESSION_BAD_STRING);
		if (++node.len == EXPRESSION_TEXT || e->texts_len == EXPRESSION_TEXTS)
			return fail_at(s, start, EXPRESSION_LONG_STRING);
		e->texts[e->texts_len++] = (char)c;
	}
	s->p++;
	return add_node(s, &node);
}

static uint8_t parse_character(struct parser *s)
{
	const char *start = s->p++;
	int c = (unsigned char)*s->p;

	if (c)
		s->p++;
	if (c == '\\')
		c = parse_escape(s);
	if (c < 0 || *s->p != '\'' || s->p == start + 1)
		return fail_at(s, start, EXPRESSION_BAD_STRING);
	s->p++;
	return add_node(s, &(struct expression_node){ .kind = EXPRESSION_NUMBER, .value = c });
}

static uint8_t parse_number(struct parser *s)
{
	const char *start = s->p;
	bool hex = s->p[0] == '0' && (s->p[1] | 0x20) == 'x';
	unsigned int base = hex ? 16 : s->p[0] == '0' ? 8 : 10, digit;
	uint64_t value = 0;
	size_t digits = 0;

	for (s->p += hex ? 2 : 0;; s->p++, digits++) {
		digit = (unsigned int)hex_digit(*s->p);
		if (digit >= base)
			break;
		if (value > (UINT64_MAX - digit) / base)
			return fail_at(s, start, EXPRESSION_BAD_NUMBER);
		value = value * base + digit;
	}
	/* Suffixes as in C: 10UL */
	while (digits && *s->p && strchr("uUlL", *s->p))
		s->p++;
	if (!digits || is_letter(*s->p) || is_digit(*s->p))
		return fail_at(s, start, EXPRESSION_BAD_NUMBER);
	return add_node(s, &(struct expression_node){ .kind = EXPRESSION_NUMBER,
						      .value = (int64_t)value });
}

/* The index of variable @name, or -1. */
static int variable_find(const char *name, size_t len)
{
	static const struct {
		const char *name;
		enum expression_variable variable;
	} others[] = { { "retval", EXPRESSION_RETVAL }, { "pid", EXPRESSION_PID },
		       { "tid", EXPRESSION_TID }, { "uid", EXPRESSION_UID },
		       { "comm", EXPRESSION_COMM } };
	int number = 0;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (name_is(name, len, others[i].name))
			return (int)others[i].variable;
	if (len < 4 || len > 5 || memcmp(name, "arg", 3) || name[3] == '0')
		return -1;
	for (size_t i = 3; i < len; i++) {
		if (!is_digit(name[i]))
			return -1;
		number = number * 10 + name[i] - '0';
	}
	return number <= 12 ? EXPRESSION_ARG1 + number - 1 : -1;
}

static bool is_string(const struct parser *s, uint8_t at)
{
	return s->e->nodes[at].kind == EXPRESSION_STRING;
}

static bool is_comm(const struct parser *s, uint8_t at)
{
	const struct expression_node *node = &s->e->nodes[at];

	return node->kind == EXPRESSION_VARIABLE && node->value == EXPRESSION_COMM;
}

/* Fail at @at if node @operand is not a number. */
static bool require_number(struct parser *s, uint8_t operand, const char *at)
{
	if (!is_string(s, operand) && !is_comm(s, operand))
		return true;
	fail_at(s, at, EXPRESSION_STRING_OPERATOR);
	return false;
}

/* Add the comparison @node of comm, or of a number, which is an address, with a string. */
static uint8_t add_comparison(struct parser *s, struct expression_node *node, const char *at)
{
	uint8_t left = node->left;

	/* expression_emit() expects the string on the right. */
	if (is_string(s, left)) {
		node->left = node->right;
		node->right = left;
	}
	if (is_string(s, node->left) || (node->op != OP_EQ && node->op != OP_NE))
		return fail_at(s, at, EXPRESSION_STRING_OPERATOR);
	if (is_comm(s, node->left) && s->e->nodes[node->right].len >= EXPRESSION_COMM_SIZE)
		return fail_at(s, at, EXPRESSION_LONG_COMM);
	return add_node(s, node);
}

/* Parse bcc's STRCMP("text", pointer) as "text" == pointer. */
static uint8_t parse_strcmp(struct parser *s)
{
	struct expression_node node = { .kind = EXPRESSION_BINARY, .op = OP_EQ };
	const char *second;

	skip_blanks(s);
	if (*s->p != '(')
		return fail_at(s, s->p, EXPRESSION_NO_VALUE);
	s->p++;
	skip_blanks(s);
	if (*s->p != '"')
		return fail_at(s, s->p, EXPRESSION_BAD_STRING);
	node.right = parse_text(s);
	skip_blanks(s);
	if (s->reason == EXPRESSION_OK && *s->p != ',')
		return fail_at(s, s->p, EXPRESSION_NO_OPERATOR);
	if (s->reason != EXPRESSION_OK)
		return NONE;
	s->p++;
	skip_blanks(s);
	second = s->p;
	node.left = parse_binary(s, 1);
	if (node.left == NONE)
		return NONE;
	if (*s->p != ')')
		return fail_at(s, s->p, EXPRESSION_NO_OPERATOR);
	s->p++;
	return add_comparison(s, &node, second);
}

static uint8_t parse_name(struct parser *s)
{
	size_t len = name_length(s->p);
	int variable = variable_find(s->p, len);

	if (name_is(s->p, len, "STRCMP")) {
		s->p += len;
		return parse_strcmp(s);
	}
	if (variable < 0)
		return fail_at(s, s->p, EXPRESSION_UNKNOWN_NAME);
	s->p += len;
	s->e->uses |= 1u << variable;
	return add_node(s, &(struct expression_node){ .kind = EXPRESSION_VARIABLE,
						      .value = variable });
}

/* Parse "(int)", "(unsigned int)", "(u8)" to @node. Return false if it is not a cast. */
static bool parse_type(struct parser *s, struct expression_node *node)
{
	const char *p = s->p + 1;
	size_t len = name_length(p);
	bool is_unsigned = name_is(p, len, "unsigned");

	if (is_unsigned && p[len] == ' ') {
		p += len + 1;
		len = name_length(p);
	}
	for (size_t i = 0; i < sizeof(casts) / sizeof(casts[0]); i++) {
		if (!name_is(p, len, casts[i].name) || p[len] != ')')
			continue;
		node->bits = casts[i].bits;
		node->is_signed = casts[i].is_signed && !is_unsigned;
		s->p = p + len + 1;
		return true;
	}
	return false;
}

static uint8_t parse_unary(struct parser *s);

/* Parse an expression in parentheses, or a cast and its operand. */
static uint8_t parse_parentheses(struct parser *s)
{
	struct expression_node cast = { .kind = EXPRESSION_CAST };
	uint8_t inner;
	const char *at;

	if (parse_type(s, &cast)) {
		skip_blanks(s);
		at = s->p;
		cast.left = parse_unary(s);
		if (cast.left == NONE || !require_number(s, cast.left, at))
			return NONE;
		return add_node(s, &cast);
	}
	s->p++;
	inner = parse_binary(s, 1);
	if (inner == NONE)
		return NONE;
	if (*s->p != ')')
		return fail_at(s, s->p, EXPRESSION_NO_OPERATOR);
	s->p++;
	return inner;
}

/* Parse unary operator @op and its operand. A negated number becomes a number. */
static uint8_t parse_prefix(struct parser *s, uint8_t op)
{
	struct expression_node node = { .kind = EXPRESSION_UNARY, .op = op };
	struct expression_node *number;
	const char *at = s->p++;

	node.left = parse_unary(s);
	if (node.left == NONE || !require_number(s, node.left, at))
		return NONE;
	number = &s->e->nodes[node.left];
	if (op != OP_NEGATE || number->kind != EXPRESSION_NUMBER)
		return add_node(s, &node);
	number->value = (int64_t)-(uint64_t)number->value;
	number->is_signed = true;
	return node.left;
}

static uint8_t parse_one(struct parser *s)
{
	skip_blanks(s);
	switch (*s->p) {
	case '!':
		return parse_prefix(s, OP_NOT);
	case '-':
		return parse_prefix(s, OP_NEGATE);
	case '~':
		return parse_prefix(s, OP_INVERT);
	case '(':
		return parse_parentheses(s);
	case '"':
		return parse_text(s);
	case '\'':
		return parse_character(s);
	}
	if (is_digit(*s->p))
		return parse_number(s);
	return is_letter(*s->p) ? parse_name(s) : fail_at(s, s->p, EXPRESSION_NO_VALUE);
}

static uint8_t parse_unary(struct parser *s)
{
	uint8_t node;

	if (s->depth == EXPRESSION_DEPTH * 2)
		return fail_at(s, s->p, EXPRESSION_TOO_LONG);
	s->depth++;
	node = parse_one(s);
	s->depth--;
	return node;
}

/* Parse an operator of precedence @level or higher. Return NONE if there is none. */
static uint8_t parse_operator(struct parser *s, unsigned int level, unsigned int *found)
{
	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++) {
		size_t len = strlen(operators[i].text);

		if (strncmp(s->p, operators[i].text, len))
			continue;
		*found = operators[i].level;
		if (*found < level)
			return NONE;
		s->p += len;
		return operators[i].op;
	}
	return NONE;
}

/* Parse operands joined by operators of precedence @level or higher. */
static uint8_t parse_binary(struct parser *s, unsigned int level)
{
	uint8_t left = parse_unary(s);

	while (left != NONE) {
		struct expression_node node = { .kind = EXPRESSION_BINARY, .left = left };
		unsigned int found = 0;
		const char *at;

		skip_blanks(s);
		at = s->p;
		node.op = parse_operator(s, level, &found);
		if (node.op == NONE)
			break;
		node.right = parse_binary(s, found + 1);
		if (node.right == NONE)
			return NONE;
		if (is_string(s, left) || is_string(s, node.right))
			left = add_comparison(s, &node, at);
		else if (require_number(s, left, at) && require_number(s, node.right, at))
			left = add_node(s, &node);
		else
			return NONE;
	}
	return left;
}

/* The number of stack slots needed to compute the node at @at. */
static int node_depth(const struct expression *e, uint8_t at)
{
	const struct expression_node *node = &e->nodes[at];
	int left, right;

	if (node->kind < EXPRESSION_CAST)
		return 0;
	left = node_depth(e, node->left);
	if (node->kind != EXPRESSION_BINARY)
		return left;
	right = node_depth(e, node->right);
	return left > right + 1 ? left : right + 1;
}

enum expression_reason expression_parse(struct expression *e, const char *text, size_t *end)
{
	struct parser s = { .e = e, .start = text, .p = text };
	const char *first;

	*e = (struct expression){ .count = 0 };
	skip_blanks(&s);
	first = s.p;
	e->root = parse_binary(&s, 1);
	skip_blanks(&s);
	if (e->root != NONE && e->nodes[e->root].kind == EXPRESSION_STRING)
		fail_at(&s, first, EXPRESSION_STRING_OPERATOR);
	else if (e->root != NONE && node_depth(e, e->root) > EXPRESSION_DEPTH)
		fail_at(&s, first, EXPRESSION_TOO_LONG);
	*end = (size_t)((s.reason == EXPRESSION_OK ? s.p : s.wrong) - text);
	return s.reason;
}

void expression_set_plain(struct expression *e, enum expression_variable variable)
{
	*e = (struct expression){ .count = 1, .uses = 1u << variable };
	e->nodes[0] = (struct expression_node){ .kind = EXPRESSION_VARIABLE, .value = variable };
}

void expression_set_number(struct expression *e, uint32_t value)
{
	*e = (struct expression){ .count = 1 };
	e->nodes[0] = (struct expression_node){ .kind = EXPRESSION_NUMBER, .value = value };
}

int expression_plain(const struct expression *e)
{
	const struct expression_node *root = &e->nodes[e->root];

	return root->kind == EXPRESSION_VARIABLE ? (int)root->value : -1;
}
