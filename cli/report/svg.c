// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/report/svg.h"

#include "cli/format/json.h"

#define LABELS		9		/* at most, of a time axis */
#define MS_PER_DAY	86400000ull

void svg_open(struct output *out, const char *class, unsigned int width, unsigned int height,
	      const char *label)
{
	output_printf(out, "<svg class=\"%s\" viewBox=\"0 0 %u %u\" role=\"img\" "
		      "aria-label=\"%s\">",
		      class, width, height, label);
}

void svg_close(struct output *out)
{
	output_string(out, "</svg>\n");
}

void svg_text(struct output *out, const char *class, uint64_t x, uint64_t y, const char *text)
{
	output_printf(out, "<text class=\"%s\" x=\"%llu\" y=\"%llu\">%s</text>", class,
		      (unsigned long long)x, (unsigned long long)y, text);
}

void svg_line(struct output *out, const char *class, const unsigned int from[2],
	      const unsigned int to[2])
{
	output_printf(out, "<line class=\"%s\" x1=\"%u\" y1=\"%u\" x2=\"%u\" y2=\"%u\"/>", class,
		      from[0], from[1], to[0], to[1]);
}

/* Return the least step that is usual on clocks, in ms, and gives at most LABELS labels. */
static uint64_t time_step(uint64_t ms)
{
	static const uint32_t steps[] = {
		1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 15000, 30000, 60000,
		120000, 300000, 600000, 900000, 1800000, 3600000, 7200000, 10800000, 21600000,
		43200000, 86400000,
	};
	uint64_t step;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		if (ms / steps[i] < LABELS)
			return steps[i];
	for (step = MS_PER_DAY; ms / step >= LABELS; step *= 2)
		continue;
	return step;
}

unsigned int svg_time_x(const struct svg_time *time, uint64_t ms)
{
	uint64_t span = time->to - time->from;

	if (ms < time->from)
		return time->x;
	if (ms >= time->to)
		return time->x + time->width;
	return time->x + (unsigned int)((double)(ms - time->from) / (double)span * time->width);
}

void svg_time_axis(struct output *out, const struct svg_time *time)
{
	uint64_t step = time_step(time->to - time->from);
	uint64_t ms = (time->from + step - 1) / step * step;
	char text[JSON_TIME];

	for (; ms <= time->to; ms += step) {
		unsigned int x = svg_time_x(time, ms);

		json_time_text(text, ms * 1000000);
		/* 2026-11-23T20:39:13.123...: days, else seconds or ms. */
		text[step >= MS_PER_DAY ? 10 : step >= 1000 ? 19 : 23] = '\0';
		svg_line(out, "g", (unsigned int[]){ x, time->top },
			 (unsigned int[]){ x, time->bottom });
		svg_text(out, "tm", x, time->bottom + 14, text + (step >= MS_PER_DAY ? 0 : 11));
	}
}

void svg_path(struct output *out, const char *class, unsigned int x, unsigned int y)
{
	output_printf(out, "<path class=\"%s\" d=\"M%u %u", class, x, y);
}

void svg_path_to(struct output *out, char command, unsigned int to)
{
	output_char(out, command);
	output_u64(out, to);
}

void svg_path_end(struct output *out)
{
	output_string(out, "\"/>");
}
