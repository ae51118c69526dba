// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/regex.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define REPEAT_MAX	64
#define NOWHERE		UINT16_MAX
#define DEPTH_MAX	32

enum node_kind {
	NODE_BYTE, NODE_SET, NODE_ANY, NODE_BEGIN, NODE_END, NODE_FORK, NODE_EMPTY, NODE_MATCH,
};

struct parse {
	struct regex *pattern;
	const char *source;
	size_t at, end;
	unsigned int depth;
	int error;
};

/* A piece of the machine: where it is entered, and the empty state that it leaves by. */
struct piece {
	uint16_t in, out;
};

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static uint16_t node_add(struct parse *p, enum node_kind kind, uint16_t set)
{
	struct regex *pattern = p->pattern;

	if (pattern->nnodes == PATTERN_NODES) {
		p->error = p->error ? p->error : -E2BIG;
		return 0;
	}
	pattern->nodes[pattern->nnodes] = (struct regex_node){ kind, NOWHERE, NOWHERE, set };
	return (uint16_t)pattern->nnodes++;
}

static void node_link(struct parse *p, uint16_t from, uint16_t to)
{
	p->pattern->nodes[from].next = to;
}

static struct piece piece_of(struct parse *p, enum node_kind kind, uint16_t set)
{
	struct piece piece = { node_add(p, kind, set), node_add(p, NODE_EMPTY, 0) };

	node_link(p, piece.in, piece.out);
	return piece;
}

static int parse_peek(const struct parse *p)
{
	return p->at < p->end ? (uint8_t)p->source[p->at] : -1;
}

static void set_add(uint8_t *set, unsigned int low, unsigned int high)
{
	for (unsigned int c = low; c <= high; c++)
		set[c / 8] |= (uint8_t)(1u << c % 8);
}

/* A name between "[:" and ":]". As case does not matter, upper and lower are both all letters. */
static bool set_class(uint8_t *set, const char *name, size_t len)
{
	static const struct {
		const char *name;
		int (*has)(int c);
	} classes[] = {
		{ "alpha", isalpha }, { "digit", isdigit }, { "alnum", isalnum },
		{ "upper", isalpha }, { "lower", isalpha }, { "space", isspace },
		{ "blank", isblank }, { "punct", ispunct }, { "print", isprint },
		{ "graph", isgraph }, { "cntrl", iscntrl }, { "xdigit", isxdigit },
	};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (strlen(classes[i].name) != len || memcmp(classes[i].name, name, len))
			continue;
		for (int c = 0; c < 128; c++)
			if (classes[i].has(c))
				set_add(set, (unsigned int)c, (unsigned int)c);
		return true;
	}
	return false;
}

/* One member of a class: a byte, a range, or a named class. */
static void parse_member(struct parse *p, uint8_t *set)
{
	const char *at = p->source + p->at;
	const char *stop = p->at + 1 < p->end && at[0] == '[' && at[1] == ':'
		? memmem(at + 2, p->end - p->at - 2, ":]", 2) : NULL;
	uint8_t low = (uint8_t)*at, high = low;

	if (stop) {
		if (!set_class(set, at + 2, (size_t)(stop - at - 2)))
			p->error = -EINVAL;
		p->at += (size_t)(stop - at) + 2;
		return;
	}
	if (p->at + 2 < p->end && at[1] == '-' && at[2] != ']') {
		high = (uint8_t)at[2];
		p->at += 2;
	}
	p->at++;
	if (high < low)
		p->error = -EINVAL;
	else
		set_add(set, low, high);
}

static void set_fold(uint8_t *set)
{
	for (unsigned int c = 'a'; c <= 'z'; c++)
		if (set[c / 8] >> c % 8 & 1 || set[(c - 32) / 8] >> (c - 32) % 8 & 1)
			set_add(set, c, c);
}

/* The number of a set with the members of @set; a repetition has the same again and again. */
static uint16_t set_number(struct parse *p, const uint8_t *set)
{
	struct regex *pattern = p->pattern;
	size_t i;

	for (i = 0; i < pattern->nsets; i++)
		if (!memcmp(pattern->sets[i], set, PATTERN_SET))
			return (uint16_t)i;
	if (i == sizeof(pattern->sets) / sizeof(pattern->sets[0])) {
		p->error = p->error ? p->error : -E2BIG;
		return 0;
	}
	memcpy(pattern->sets[pattern->nsets++], set, PATTERN_SET);
	return (uint16_t)i;
}

static struct piece parse_set(struct parse *p)
{
	uint8_t set[PATTERN_SET] = { 0 };
	bool negated = false;
	size_t first;

	if (parse_peek(p) == '^') {
		negated = true;
		p->at++;
	}
	for (first = p->at; !p->error && parse_peek(p) >= 0; )
		if (parse_peek(p) == ']' && p->at > first)
			break;
		else
			parse_member(p, set);
	if (parse_peek(p) != ']') {
		p->error = -EINVAL;
		return (struct piece){ 0, 0 };
	}
	p->at++;
	set_fold(set);
	for (size_t i = 0; negated && i < PATTERN_SET; i++)
		set[i] = (uint8_t)~set[i];
	return piece_of(p, NODE_SET, set_number(p, set));
}

static struct piece parse_alternatives(struct parse *p);

static struct piece parse_group(struct parse *p)
{
	struct piece piece;

	if (++p->depth > DEPTH_MAX) {
		p->error = -E2BIG;
		return (struct piece){ 0, 0 };
	}
	piece = parse_alternatives(p);
	p->depth--;
	if (parse_peek(p) != ')')
		p->error = p->error ? p->error : -EINVAL;
	else
		p->at++;
	return piece;
}

static struct piece parse_atom(struct parse *p)
{
	int c = parse_peek(p);

	p->at++;
	switch (c) {
	case '(':
		return parse_group(p);
	case '[':
		return parse_set(p);
	case '.':
		return piece_of(p, NODE_ANY, 0);
	case '^':
		return piece_of(p, NODE_BEGIN, 0);
	case '$':
		return piece_of(p, NODE_END, 0);
	case '*': case '+': case '?': case '{':
		p->at--;
		p->error = -EINVAL;
		return (struct piece){ 0, 0 };
	case '\\':
		c = parse_peek(p);
		if (c < 0)
			p->error = -EINVAL;
		p->at++;
	}
	return piece_of(p, NODE_BYTE, lower((uint8_t)c));
}

/* @piece any number of times, or once at most. */
static struct piece piece_optional(struct parse *p, struct piece piece, bool again)
{
	uint16_t fork = node_add(p, NODE_FORK, 0), out = node_add(p, NODE_EMPTY, 0);

	node_link(p, fork, piece.in);
	p->pattern->nodes[fork].other = out;
	node_link(p, piece.out, again ? fork : out);
	return (struct piece){ fork, out };
}

/* "{LOW}", "{LOW,}" or "{LOW,HIGH}" behind the brace; @high -1: any number. */
static bool parse_bounds(struct parse *p, int *low, int *high)
{
	int *number = low, digits = 0;

	*low = 0;
	*high = -2;
	for (; parse_peek(p) >= 0 && parse_peek(p) != '}'; p->at++) {
		int c = parse_peek(p);

		if (c == ',' && number == low && digits) {
			number = high;
			*high = -1;
			continue;
		}
		if (c < '0' || c > '9')
			return false;
		*number = (*number < 0 ? 0 : *number) * 10 + c - '0';
		digits++;
		if (*number > REPEAT_MAX)
			return false;
	}
	if (parse_peek(p) != '}' || !digits)
		return false;
	p->at++;
	if (*high == -2)
		*high = *low;
	return *high < 0 || *high >= *low;
}

/* The atom from @from on, parsed anew for each of its repetitions. */
static struct piece parse_again(struct parse *p, size_t from)
{
	size_t at = p->at;
	struct piece piece;

	p->at = from;
	piece = parse_atom(p);
	p->at = at;
	return piece;
}

static struct piece piece_join(struct parse *p, struct piece a, struct piece b)
{
	node_link(p, a.out, b.in);
	return (struct piece){ a.in, b.out };
}

static struct piece piece_repeat(struct parse *p, size_t from, int low, int high)
{
	struct piece whole = piece_of(p, NODE_EMPTY, 0);

	for (int i = 0; !p->error && i < low; i++)
		whole = piece_join(p, whole, parse_again(p, from));
	if (high < 0)
		return piece_join(p, whole, piece_optional(p, parse_again(p, from), true));
	for (int i = low; !p->error && i < high; i++)
		whole = piece_join(p, whole, piece_optional(p, parse_again(p, from), false));
	return whole;
}

static struct piece parse_repeated(struct parse *p)
{
	size_t from = p->at, first;
	struct piece piece = parse_atom(p);
	int low, high, c;

	first = p->at;

	while (!p->error && (c = parse_peek(p)) >= 0 && strchr("*+?{", c)) {
		if (c == '{' && p->at != first) {	/* of what was repeated already */
			p->error = -EINVAL;
			break;
		}
		p->at++;
		if (c == '*') {
			piece = piece_optional(p, piece, true);
		} else if (c == '?') {
			piece = piece_optional(p, piece, false);
		} else if (c == '+') {
			struct piece more = piece_optional(p, piece, true);

			piece = (struct piece){ piece.in, more.out };
		} else if (parse_bounds(p, &low, &high) && !strchr("*+?{", p->source[p->at])) {
			return piece_repeat(p, from, low, high);
		} else {
			p->error = -EINVAL;
		}
	}
	return piece;
}

static struct piece parse_sequence(struct parse *p)
{
	struct piece whole = piece_of(p, NODE_EMPTY, 0);

	while (!p->error && parse_peek(p) >= 0 && parse_peek(p) != '|' && parse_peek(p) != ')')
		whole = piece_join(p, whole, parse_repeated(p));
	return whole;
}

static struct piece parse_alternatives(struct parse *p)
{
	struct piece whole = parse_sequence(p), next;

	while (!p->error && parse_peek(p) == '|') {
		uint16_t fork = node_add(p, NODE_FORK, 0), out = node_add(p, NODE_EMPTY, 0);

		p->at++;
		next = parse_sequence(p);
		node_link(p, fork, whole.in);
		p->pattern->nodes[fork].other = next.in;
		node_link(p, whole.out, out);
		node_link(p, next.out, out);
		whole = (struct piece){ fork, out };
	}
	return whole;
}

int regex_parse(struct regex *pattern, const char *source, size_t *at)
{
	size_t len = strlen(source);
	struct parse p = { .pattern = pattern, .source = source, .at = 1, .end = len - 1 };
	struct piece whole;

	*pattern = (struct regex){ .text = source, .len = len };
	if (len < 3 || source[0] != '/' || source[len - 1] != '/')
		return 0;
	pattern->text = NULL;
	whole = parse_alternatives(&p);
	node_link(&p, whole.out, node_add(&p, NODE_MATCH, 0));
	pattern->start = whole.in;
	/* A parenthesis that nothing opened. */
	if (!p.error && p.at < p.end)
		p.error = -EINVAL;
	*at = p.at;
	return p.error;
}

/* States that the machine is in at once. */
struct states {
	uint16_t list[PATTERN_NODES];
	size_t count;
	uint8_t has[PATTERN_NODES / 8];
};

/* Adds @node and all that is reached from it without a byte. Whether the match is among them. */
static bool states_add(const struct regex *pattern, struct states *states, uint16_t node,
		       bool begin, bool end)
{
	uint16_t stack[2 * PATTERN_NODES + 1];	/* each node is left once, by two ways at most */
	size_t depth = 0;

	stack[depth++] = node;
	while (depth) {
		const struct regex_node *n;

		node = stack[--depth];
		if (node == NOWHERE || states->has[node / 8] >> node % 8 & 1)
			continue;
		n = &pattern->nodes[node];
		if (n->kind == NODE_MATCH)
			return true;
		/* Only what was passed: at another position it may be passed yet. */
		if ((n->kind == NODE_BEGIN && !begin) || (n->kind == NODE_END && !end))
			continue;
		states->has[node / 8] |= (uint8_t)(1u << node % 8);
		if (n->kind < NODE_BEGIN) {
			states->list[states->count++] = node;
			continue;
		}
		stack[depth++] = n->next;
		if (n->kind == NODE_FORK)
			stack[depth++] = n->other;
	}
	return false;
}

static bool node_takes(const struct regex *pattern, const struct regex_node *n, uint8_t c)
{
	if (n->kind == NODE_BYTE)
		return n->set == c;
	return n->kind == NODE_ANY || pattern->sets[n->set][c / 8] >> c % 8 & 1;
}

static bool machine_match(const struct regex *pattern, const char *text, size_t len)
{
	struct states states[2];
	struct states *now = &states[0], *then = &states[1], *swap;

	now->count = 0;
	memset(now->has, 0, sizeof(now->has));
	for (size_t at = 0; ; at++) {
		/* A match may begin anywhere. */
		if (states_add(pattern, now, pattern->start, at == 0, at == len))
			return true;
		if (at == len)
			return false;
		then->count = 0;
		memset(then->has, 0, sizeof(then->has));
		for (size_t i = 0; i < now->count; i++) {
			const struct regex_node *n = &pattern->nodes[now->list[i]];

			if (node_takes(pattern, n, lower((uint8_t)text[at])) &&
			    states_add(pattern, then, n->next, false, at + 1 == len))
				return true;
		}
		swap = now;
		now = then;
		then = swap;
	}
}

bool regex_match(const struct regex *pattern, const char *text, size_t len)
{
	if (!pattern->text)
		return machine_match(pattern, text, len);
	for (size_t i = 0; pattern->len <= len && i <= len - pattern->len; i++)
		if (!strncasecmp(text + i, pattern->text, pattern->len))
			return true;
	return false;
}
