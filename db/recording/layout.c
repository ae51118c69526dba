// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recording/layout.h"

#include <string.h>

#include "bpf/plan.h"
#include "db/loss.h"
#include "db/session/breakdown.h"

static const char *const list_names[LAYOUT_LISTS] = {
	[LAYOUT_STATEMENT] = "statement", [LAYOUT_WAIT] = "wait", [LAYOUT_BACKEND] = "backend",
	[LAYOUT_PARTS] = "parts", [LAYOUT_PHASES] = "phases", [LAYOUT_RESOURCES] = "resources",
	[LAYOUT_PLAN] = "plan", [LAYOUT_LOSSES] = "losses",
};

static const struct member *const members[LAYOUT_LISTS] = {
	[LAYOUT_STATEMENT] = statement_members, [LAYOUT_WAIT] = wait_members,
	[LAYOUT_BACKEND] = backend_members,
};

/* Return name @i of our list, or NULL at its end. */
static const char *list_name(enum layout_of of, int i)
{
#define PLAN_NAME(bit, name)	name,
	static const char *const plan[] = { PLAN_TABLE(PLAN_NAME) };
#undef PLAN_NAME

	switch (of) {
	case LAYOUT_PARTS:
		return i < BREAKDOWN_PARTS ? breakdown_part_name((enum breakdown_part)i) : NULL;
	case LAYOUT_PHASES:
		return i < PHASES ? breakdown_phase_name((enum phase)i) : NULL;
	case LAYOUT_RESOURCES:
		return i < USES ? breakdown_use_name((enum use)i) : NULL;
	case LAYOUT_PLAN:
		return i < PLAN_BITS ? plan[i] : NULL;
	case LAYOUT_LOSSES:
		return i < LOSSES ? loss_rows[i].name : NULL;
	default:
		return members[of][i].name;
	}
}

/* Return the type of member @i of our list; of other lists, that of all names. */
static char list_type(enum layout_of of, int i)
{
	return members[of] ? (char)members[of][i].type : (char)MEMBER_FLAG;
}

/* Append @word to the @len bytes of @text. Return the new length. */
static size_t append(char text[LAYOUT_TEXT], size_t len, const char *word)
{
	size_t more = strlen(word);

	if (more >= LAYOUT_TEXT - len)
		return len;
	memcpy(text + len, word, more + 1);
	return len + more;
}

size_t layout_write(char text[LAYOUT_TEXT])
{
	size_t len = 0;

	for (int of = 0; of < LAYOUT_LISTS; of++) {
		len = append(text, len, list_names[of]);
		for (int i = 0; list_name(of, i); i++) {
			const char type[] = { ':', list_type(of, i), '\0' };

			len = append(text, len, " ");
			len = append(text, len, list_name(of, i));
			len = append(text, len, type[1] == MEMBER_FLAG ? "" : type);
		}
		len = append(text, len, "\n");
	}
	return len;
}

/* Return the first word from @text to @end, and set its @size; 0: there is none. */
static const char *first_word(const char *text, const char *end, size_t *size)
{
	const char *word = text;

	while (word < end && *word == ' ')
		word++;
	for (*size = 0; word + *size < end && word[*size] != ' ';)
		++*size;
	return word;
}

static bool is_word(const char *word, size_t size, const char *name)
{
	return strlen(name) == size && !memcmp(word, name, size);
}

/* Add a name, or a name and a type, to the list of @of. */
static void layout_add(struct layout_list *list, enum layout_of of, const char *word, size_t size)
{
	char type = MEMBER_FLAG;

	if (list->count == MEMBERS_MAX)
		return;
	if (size > 2 && word[size - 2] == ':') {
		type = word[size - 1];
		size -= 2;
	}
	list->type[list->count] = type;
	list->flags |= (uint64_t)(type == MEMBER_FLAG) << list->count;
	list->to[list->count] = -1;
	for (int i = 0; list_name(of, i); i++)
		if (is_word(word, size, list_name(of, i)) && list_type(of, i) == type)
			list->to[list->count] = (int8_t)i;
	if (members[of] && list->to[list->count] >= 0)
		list->member[list->count] = &members[of][list->to[list->count]];
	list->count++;
}

static void layout_line(struct layout *layout, const char *line, const char *end)
{
	const char *word;
	size_t size;
	int of = 0;

	word = first_word(line, end, &size);
	while (of < LAYOUT_LISTS && !is_word(word, size, list_names[of]))
		of++;
	if (of == LAYOUT_LISTS)
		return;
	layout->lists[of] = (struct layout_list){ .count = 0 };
	for (word = first_word(word + size, end, &size); size;
	     word = first_word(word + size, end, &size))
		layout_add(&layout->lists[of], of, word, size);
}

void layout_read(struct layout *layout, const char *text, size_t len)
{
	const char *end = text + len, *newline;

	*layout = (struct layout){ .lists[0].count = 0 };
	for (; text < end; text = newline < end ? newline + 1 : end) {
		newline = memchr(text, '\n', (size_t)(end - text));
		if (!newline)
			newline = end;
		layout_line(layout, text, newline);
	}
}
