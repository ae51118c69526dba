// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/format/escape.h"

static size_t line_room(const struct line *line, size_t wanted)
{
	size_t room = line->width - line->used;

	return wanted < room ? wanted : room;
}

void line_text(struct line *line, const char *text)
{
	size_t len = line_room(line, strlen(text));

	output_bytes(line->out, text, len);
	line->used += len;
}

void line_printf(struct line *line, const char *format, ...)
{
	char buf[256];
	va_list args;

	va_start(args, format);
	vsnprintf(buf, sizeof(buf), format, args);
	va_end(args);
	line_text(line, buf);
}

size_t line_foreign(struct line *line, const char *text, size_t len, bool cut, size_t room)
{
	size_t columns, fit = escape_fit(text, len, line_room(line, room), &columns);

	escape_terminal(line->out, text, fit, cut && fit == len);
	line->used += columns;
	return fit;
}

void line_name(struct line *line, const char *text)
{
	line_foreign(line, text, strlen(text), false, SIZE_MAX);
}

void line_pad(struct line *line, size_t column)
{
	size_t count = column > line->used ? line_room(line, column - line->used) : 0;

	output_spaces(line->out, count);
	line->used += count;
}
