/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/format/field_table.h"

#include <string.h>

#include "base/base.h"
#include "cli/format/escape.h"
#include "sql/tags.h"

#define US_PER_MINUTE	60000000u

/* With --wall "HH:MM:SS.123456" takes one column more than seconds do, whose header has a unit. */
#define WALL_WIDTH	15
#define SECONDS		"(s)"

/* Round to the nearest microsecond, as printf() does. */
static uint64_t microseconds(uint64_t ns)
{
	return ns / 1000 + (ns % 1000 >= 500);
}

/* The start of a statement that was running before the table's start is negative. */
static size_t format_time(const struct field_table *table, uint64_t time_ns, char *buf)
{
	bool before = time_ns < table->start_ns;
	uint64_t ns = before ? table->start_ns - time_ns : time_ns - table->start_ns;

	buf[0] = '-';
	return before + output_format(buf + before, microseconds(ns), 6);
}

/* localtime_r() takes a lock and searches the time zone's table, so call it once a minute only. */
static void wall_minute(struct field_table *table, uint64_t minute)
{
	char text[OUTPUT_NUMBER];

	output_clock(text, minute * 60 * NS_PER_S, 3);
	memcpy(table->wall_text, text, sizeof(table->wall_text));
	table->wall_minute = minute;
}

static size_t format_wall(struct field_table *table, uint64_t wall_ns, char *buf)
{
	uint64_t us = wall_ns / 1000, minute = us / US_PER_MINUTE, rest = us % US_PER_MINUTE;
	size_t len = sizeof(table->wall_text);

	if (minute != table->wall_minute)
		wall_minute(table, minute);
	memcpy(buf, table->wall_text, len);
	if (rest < 10000000)
		buf[len++] = '0';
	return len + output_format(buf + len, rest, 6);
}

void field_table_init(struct field_table *table, const struct field_list *list,
		      uint64_t start_ns, bool wall)
{
	*table = (struct field_table){ .list = *list, .start_ns = start_ns, .wall = wall };
	wall_minute(table, 0);
}

static unsigned int field_width(const struct field_table *table, const struct field *field)
{
	return table->wall && field->type == FIELD_TIME ? WALL_WIDTH : field->width;
}

/* Append @text padded to the width of its column; nothing follows the last one. */
static void put_cell(struct output *out, const struct field *field, unsigned int columns,
		     const char *text, size_t len, bool last)
{
	size_t width = columns && (field->right || !last) ? escape_width(text, len) : 0;
	size_t pad = columns > width ? columns - width : 0;

	if (field->right)
		output_spaces(out, pad);
	escape_terminal(out, text, len, false);
	if (!last)
		output_spaces(out, field->right ? 1 : pad + 1);
}

void field_query_note(struct output *out, const struct statement *st)
{
	if (!st->text)
		output_string(out, st->running ? "[text not known]" :
				   st->no_text ? "[no text]" : "[text unreadable]");
	if (st->text && st->truncated) {
		output_string(out, st->has_query_bytes ? " [cut: " : " [cut at ");
		output_u64(out, st->original_len ? st->original_len : st->text_len);
		if (st->has_query_bytes) {
			output_string(out, " of ");
			output_u64(out, st->query_bytes);
		}
		output_string(out, " bytes]");
	}
}

/* Append the text without a limit on its width. */
static void put_query(struct output *out, const struct statement *st, bool last)
{
	for (uint32_t i = 0; i < st->level && i < NESTED_LEVELS; i++)
		output_char(out, '>');
	if (st->level)
		output_char(out, ' ');
	if (st->text)
		escape_terminal(out, st->text, st->text_len, st->truncated);
	field_query_note(out, st);
	if (st->of) {
		output_string(out, st->level ? " [in: " : " [of: ");
		escape_terminal(out, st->of, st->of_len, st->of_cut);
		output_string(out, st->of_cut ? " ...]" : "]");
	}
	if (!last)
		output_char(out, ' ');
}

static void put_field(struct output *out, struct field_table *table, unsigned int column,
		      const struct statement *st, bool last)
{
	const struct field *field = table->list.field[column];
	const struct tag *tag;
	struct field_value value;
	const char *text = value.buf;
	size_t len = 0;

	if (field->get(st, field->which, &value)) {
		switch (field->type) {
		case FIELD_TIME:
			len = table->wall ?
			      format_wall(table, st->wall_ns + value.number, value.buf) :
			      format_time(table, st->start_ns + value.number, value.buf);
			break;
		case FIELD_MS:
			len = output_format(value.buf, microseconds(value.number), 3);
			break;
		case FIELD_NUMBER:
			len = output_format(value.buf, value.number, 0);
			break;
		case FIELD_TAGS:
			tag = tags_get(st->tags, table->list.tag[column],
				       table->list.tag_len[column]);
			text = tag ? tag->value : text;
			len = tag ? tag->len : 0;
			break;
		default:
			text = value.text;
			len = value.len;
		}
	}
	put_cell(out, field, field_width(table, field), len ? text : "-", len ? len : 1, last);
}

void field_table_header(struct output *out, const struct field_table *table)
{
	for (unsigned int i = 0; i < table->list.count; i++) {
		const struct field *field = table->list.field[i];
		bool tag = field->type == FIELD_TAGS;
		size_t len = tag ? table->list.tag_len[i] : strlen(field->header);

		if (table->wall && field->type == FIELD_TIME)
			len -= sizeof(SECONDS) - 1;
		put_cell(out, field, field_width(table, field),
			 tag ? table->list.tag[i] : field->header, len, i + 1 == table->list.count);
	}
	output_char(out, '\n');
}

void field_table_row(struct output *out, struct field_table *table, const struct statement *st)
{
	for (unsigned int i = 0; i < table->list.count; i++) {
		const struct field *field = table->list.field[i];
		bool last = i + 1 == table->list.count;

		if (field->type == FIELD_QUERY)
			put_query(out, st, last);
		else
			put_field(out, table, i, st, last);
	}
	output_char(out, '\n');
}
