// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/heatmap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define OCTAVES		27		/* of durations, from .. */
#define FIRST		((10 - 3) * STAT_FINE)	/* .. that of 2^10 ns, a fine slot */
#define CELLS		(OCTAVES * 8)
#define CLOCK		8		/* columns of the time of day */
#define BESIDE		(CLOCK + 1 + 1 + 8)	/* and of spaces and the number of statements */
#define LEVELS		10
#define SHADES		" .:-=+*#%@"

void heatmap_open(struct heatmap *map)
{
	const char *term = getenv("TERM"), *off = getenv("NO_COLOR");
	struct winsize size = { .ws_col = 0 };
	unsigned int width = 80;

	*map = (struct heatmap){ .scale = 8 };
	if (isatty(STDOUT_FILENO)) {
		map->color = term && *term && strcmp(term, "dumb") && !(off && *off);
		if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
			width = size.ws_col;
	}
	while (map->scale > 1 && map->scale * OCTAVES + BESIDE > width)
		map->scale /= 2;
}

/* Return the cell of a fine slot. */
static unsigned int cell_of(const struct heatmap *map, unsigned int fine)
{
	unsigned int cell = fine < FIRST ? 0 : (fine - FIRST) * map->scale / STAT_FINE;

	return cell < map->scale * OCTAVES ? cell : map->scale * OCTAVES - 1;
}

/* Return the logarithm of @n > 0 in sixteenths, which is the number of a fine slot. */
static unsigned int log_of(uint64_t n)
{
	unsigned int bits = 63 - (unsigned int)__builtin_clzll(n);
	uint64_t rest = bits < 4 ? n << (4 - bits) : n >> (bits - 4);

	return bits * STAT_FINE + (unsigned int)(rest & (STAT_FINE - 1));
}

void heatmap_axis(const struct heatmap *map, struct output *out)
{
	static const char marks[][6] = {
		"1us", "10us", "100us", "1ms", "10ms", "100ms", "1s", "10s", "100s",
	};
	uint64_t ns = 1000;
	unsigned int at = 0, cell;

	output_spaces(out, CLOCK + 1);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++, ns *= 10) {
		cell = cell_of(map, log_of(ns) - 3 * STAT_FINE);
		/* Of a narrow axis, some marks have no room. */
		if (i && cell <= at)
			continue;
		output_spaces(out, cell - at);
		output_string(out, marks[i]);
		at = cell + (unsigned int)strlen(marks[i]);
	}
	output_char(out, '\n');
}

static void heatmap_cell(const struct heatmap *map, struct output *out, unsigned int level,
			 unsigned int before)
{
	static const uint8_t colors[LEVELS] = { 0, 17, 18, 54, 90, 126, 161, 202, 214, 227 };

	if (map->color && level != before)
		output_printf(out, level ? "\033[48;5;%um" : "\033[0m", colors[level]);
	output_char(out, map->color ? ' ' : SHADES[level]);
}

void heatmap_line(struct heatmap *map, struct output *out, uint64_t wall_ns,
		  const struct histogram_row *rows, size_t nrows)
{
	uint64_t cells[CELLS] = { 0 }, total = 0;
	unsigned int before = 0, level, most;
	char clock[OUTPUT_NUMBER];

	for (size_t i = 0; i < nrows; i++) {
		uint64_t *cell = &cells[cell_of(map, rows[i].fine)];

		*cell += rows[i].count;
		total += rows[i].count;
		map->most = *cell > map->most ? *cell : map->most;
	}
	output_clock(clock, wall_ns, 3);
	output_bytes(out, clock, CLOCK);
	output_char(out, ' ');
	most = map->most > 1 ? log_of(map->most) : 1;
	for (unsigned int i = 0; i < map->scale * OCTAVES; i++) {
		level = cells[i] ? 1 + (LEVELS - 2) * log_of(cells[i]) / most : 0;
		heatmap_cell(map, out, level, before);
		before = level;
	}
	if (map->color && before)
		output_string(out, "\033[0m");
	output_char(out, ' ');
	output_u64(out, total);
	output_char(out, '\n');
}
