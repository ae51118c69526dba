// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/regex.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define REPEAT_MAX	64	/* of {LOW,HIGH} */
#define DEPTH_MAX	32	/* of nested groups */
#define NODE_NONE	UINT16_MAX

enum node_kind {
	NODE_BYTE, NODE_SET, NODE_ANY, NODE_BEGIN, NODE_END, NODE_FORK, NODE_EMPTY, NODE_MATCH,
};

struct parse {
	struct regex *regex;
	const char *source;
	size_t at, end;
	unsigned int depth;
	int error;
};

/* A part of the NFA: its first state, and the empty state that it ends in. */
struct fragment {
	uint16_t in, out;
};

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static uint16_t node_add(struct parse *p, enum node_kind kind, uint16_t set)
{
	struct regex *regex = p->regex;

	if (regex->nnodes == REGEX_NODES) {
		p->error = p->error ? p->error : -E2BIG;
		return 0;
	}
	regex->nodes[regex->nnodes] = (struct regex_node){ kind, NODE_NONE, NODE_NONE, set };
	return (uint16_t)regex->nnodes++;
}

static void node_link(struct parse *p, uint16_t from, uint16_t to)
{
	p->regex->nodes[from].next = to;
}

static struct fragment fragment_new(struct parse *p, enum node_kind kind, uint16_t set)
{
	struct fragment fragment = { node_add(p, kind, set), node_add(p, NODE_EMPTY, 0) };

	node_link(p, fragment.in, fragment.out);
	return fragment;
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

/*
 * Add the class @name of "[:NAME:]". As case is ignored, upper and lower are all letters. Return
 * false if it is unknown.
 */
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

/* Parse a member of a set: a byte, a range, or a class. */
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

/* Add the lower-case letter of each upper-case one, since the text is matched in lower case. */
static void set_fold(uint8_t *set)
{
	for (unsigned int c = 'a'; c <= 'z'; c++)
		if (set[c / 8] >> c % 8 & 1 || set[(c - 32) / 8] >> (c - 32) % 8 & 1)
			set_add(set, c, c);
}

/* Return the index of @set; the copies of a repeated atom share one. */
static uint16_t set_index(struct parse *p, const uint8_t *set)
{
	struct regex *regex = p->regex;
	size_t i;

	for (i = 0; i < regex->nsets; i++)
		if (!memcmp(regex->sets[i], set, REGEX_SET_SIZE))
			return (uint16_t)i;
	if (i == REGEX_SETS) {
		p->error = p->error ? p->error : -E2BIG;
		return 0;
	}
	memcpy(regex->sets[regex->nsets++], set, REGEX_SET_SIZE);
	return (uint16_t)i;
}

static struct fragment parse_set(struct parse *p)
{
	uint8_t set[REGEX_SET_SIZE] = { 0 };
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
		return (struct fragment){ 0, 0 };
	}
	p->at++;
	set_fold(set);
	for (size_t i = 0; negated && i < REGEX_SET_SIZE; i++)
		set[i] = (uint8_t)~set[i];
	return fragment_new(p, NODE_SET, set_index(p, set));
}

static struct fragment parse_alternatives(struct parse *p);

static struct fragment parse_group(struct parse *p)
{
	struct fragment fragment;

	if (++p->depth > DEPTH_MAX) {
		p->error = -E2BIG;
		return (struct fragment){ 0, 0 };
	}
	fragment = parse_alternatives(p);
	p->depth--;
	if (parse_peek(p) != ')')
		p->error = p->error ? p->error : -EINVAL;
	else
		p->at++;
	return fragment;
}

static struct fragment parse_atom(struct parse *p)
{
	int c = parse_peek(p);

	p->at++;
	switch (c) {
	case '(':
		return parse_group(p);
	case '[':
		return parse_set(p);
	case '.':
		return fragment_new(p, NODE_ANY, 0);
	case '^':
		return fragment_new(p, NODE_BEGIN, 0);
	case '$':
		return fragment_new(p, NODE_END, 0);
	case '*': case '+': case '?': case '{':
		p->at--;
		p->error = -EINVAL;
		return (struct fragment){ 0, 0 };
	case '\\':
		c = parse_peek(p);
		if (c < 0)
			p->error = -EINVAL;
		p->at++;
	}
	return fragment_new(p, NODE_BYTE, lower((uint8_t)c));
}

/* Repeat @fragment any number of times (@again), or make it optional. */
static struct fragment fragment_optional(struct parse *p, struct fragment fragment, bool again)
{
	uint16_t fork = node_add(p, NODE_FORK, 0), out = node_add(p, NODE_EMPTY, 0);

	node_link(p, fork, fragment.in);
	p->regex->nodes[fork].other = out;
	node_link(p, fragment.out, again ? fork : out);
	return (struct fragment){ fork, out };
}

/*
 * Parse "{LOW}", "{LOW,}" or "{LOW,HIGH}" after the brace; *@high is -1 if unlimited. Return false
 * for a syntax error.
 */
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

/* Parse the atom at @from again, for one of its repetitions. */
static struct fragment parse_again(struct parse *p, size_t from)
{
	size_t at = p->at;
	struct fragment fragment;

	p->at = from;
	fragment = parse_atom(p);
	p->at = at;
	return fragment;
}

static struct fragment fragment_join(struct parse *p, struct fragment a, struct fragment b)
{
	node_link(p, a.out, b.in);
	return (struct fragment){ a.in, b.out };
}

/* Repeat the atom at @from @low to @high times; @high -1: unlimited. */
static struct fragment fragment_repeat(struct parse *p, size_t from, int low, int high)
{
	struct fragment whole = fragment_new(p, NODE_EMPTY, 0);

	for (int i = 0; !p->error && i < low; i++)
		whole = fragment_join(p, whole, parse_again(p, from));
	if (high < 0)
		return fragment_join(p, whole, fragment_optional(p, parse_again(p, from), true));
	for (int i = low; !p->error && i < high; i++)
		whole = fragment_join(p, whole, fragment_optional(p, parse_again(p, from), false));
	return whole;
}

static struct fragment parse_repeated(struct parse *p)
{
	size_t from = p->at, first;
	struct fragment fragment = parse_atom(p);
	int low, high, c;

	first = p->at;
	while (!p->error && (c = parse_peek(p)) >= 0 && strchr("*+?{", c)) {
		if (c == '{' && p->at != first) {	/* a bound after another quantifier */
			p->error = -EINVAL;
			break;
		}
		p->at++;
		if (c == '*') {
			fragment = fragment_optional(p, fragment, true);
		} else if (c == '?') {
			fragment = fragment_optional(p, fragment, false);
		} else if (c == '+') {
			struct fragment more = fragment_optional(p, fragment, true);

			fragment = (struct fragment){ fragment.in, more.out };
		} else if (parse_bounds(p, &low, &high) && !strchr("*+?{", p->source[p->at])) {
			return fragment_repeat(p, from, low, high);
		} else {
			p->error = -EINVAL;
		}
	}
	return fragment;
}

static struct fragment parse_sequence(struct parse *p)
{
	struct fragment whole = fragment_new(p, NODE_EMPTY, 0);

	while (!p->error && parse_peek(p) >= 0 && parse_peek(p) != '|' && parse_peek(p) != ')')
		whole = fragment_join(p, whole, parse_repeated(p));
	return whole;
}

static struct fragment parse_alternatives(struct parse *p)
{
	struct fragment whole = parse_sequence(p), next;

	while (!p->error && parse_peek(p) == '|') {
		uint16_t fork = node_add(p, NODE_FORK, 0), out = node_add(p, NODE_EMPTY, 0);

		p->at++;
		next = parse_sequence(p);
		node_link(p, fork, whole.in);
		p->regex->nodes[fork].other = next.in;
		node_link(p, whole.out, out);
		node_link(p, next.out, out);
		whole = (struct fragment){ fork, out };
	}
	return whole;
}

int regex_parse(struct regex *regex, const char *source, size_t *at)
{
	size_t len = strlen(source);
	struct parse p = { .regex = regex, .source = source, .at = 1, .end = len - 1 };
	struct fragment whole;

	*regex = (struct regex){ .text = source, .len = len };
	if (len < 3 || source[0] != '/' || source[len - 1] != '/')
		return 0;
	regex->text = NULL;
	whole = parse_alternatives(&p);
	node_link(&p, whole.out, node_add(&p, NODE_MATCH, 0));
	regex->start = whole.in;
	/* An unbalanced closing parenthesis. */
	if (!p.error && p.at < p.end)
		p.error = -EINVAL;
	*at = p.at;
	return p.error;
}

/* A set of current states. */
struct states {
	uint16_t list[REGEX_NODES];
	size_t count;
	uint8_t has[REGEX_NODES / 8];
};

/*
 * Add @node and all states reachable from it without consuming a byte. Return whether the match is
 * among them.
 */
static bool states_add(const struct regex *regex, struct states *states, uint16_t node,
		       bool begin, bool end)
{
	uint16_t stack[2 * REGEX_NODES + 1];	/* each node has at most two successors */
	size_t depth = 0;

	stack[depth++] = node;
	while (depth) {
		const struct regex_node *n;

		node = stack[--depth];
		if (node == NODE_NONE || states->has[node / 8] >> node % 8 & 1)
			continue;
		n = &regex->nodes[node];
		if (n->kind == NODE_MATCH)
			return true;
		/* Do not mark an anchor that fails: it may hold at another position. */
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

static bool node_matches(const struct regex *regex, const struct regex_node *n, uint8_t c)
{
	if (n->kind == NODE_BYTE)
		return n->set == c;
	return n->kind == NODE_ANY || regex->sets[n->set][c / 8] >> c % 8 & 1;
}

static bool nfa_match(const struct regex *regex, const char *text, size_t len)
{
	struct states states[2];
	struct states *now = &states[0], *next = &states[1], *swap;

	now->count = 0;
	memset(now->has, 0, sizeof(now->has));
	for (size_t at = 0; ; at++) {
		/* A match may begin anywhere. */
		if (states_add(regex, now, regex->start, at == 0, at == len))
			return true;
		if (at == len)
			return false;
		next->count = 0;
		memset(next->has, 0, sizeof(next->has));
		for (size_t i = 0; i < now->count; i++) {
			const struct regex_node *n = &regex->nodes[now->list[i]];

			if (node_matches(regex, n, lower((uint8_t)text[at])) &&
			    states_add(regex, next, n->next, false, at + 1 == len))
				return true;
		}
		swap = now;
		now = next;
		next = swap;
	}
}

bool regex_match(const struct regex *regex, const char *text, size_t len)
{
	if (!regex->text)
		return nfa_match(regex, text, len);
	for (size_t i = 0; regex->len <= len && i <= len - regex->len; i++)
		if (!strncasecmp(text + i, regex->text, regex->len))
			return true;
	return false;
}
