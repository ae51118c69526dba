/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Parts of the charts of a report. Colours are classes of report.css; coordinates are whole units
 * of the viewBox.
 */
#ifndef CLI_REPORT_SVG_H
#define CLI_REPORT_SVG_H

#include "cli/output.h"
#include "cli/report/state.h"

/* Of charts over time: where the columns begin, and the width of all. */
#define SVG_LEFT	64
#define SVG_WIDTH	960
#define SVG_FULL	(SVG_LEFT + SVG_WIDTH + 16)

/* Append the begin of an image of a size; @label ends it as the alternative text, ASCII. */
void svg_open(struct output *out, const char *class, unsigned int width, unsigned int height,
	      const char *label);
void svg_close(struct output *out);

/* Append a text at a point: of class @class, ASCII. */
void svg_text(struct output *out, const char *class, uint64_t x, uint64_t y, const char *text);

/* Append a line of class @class. */
void svg_line(struct output *out, const char *class, const unsigned int from[2],
	      const unsigned int to[2]);

/* A span of time in ms since 1970, drawn from x on. */
struct svg_time {
	uint64_t from, to;
	unsigned int x, width;
	unsigned int top, bottom;	/* of the grid; the labels are below */
};

/* Append the grid of the time axis with its labels, in UTC. */
void svg_time_axis(struct output *out, const struct svg_time *time);

/* Return where a time is drawn, within the span. */
unsigned int svg_time_x(const struct svg_time *time, uint64_t ms);

/* Append a path up to its first point; svg_path_end() ends it. */
void svg_path(struct output *out, const char *class, unsigned int x, unsigned int y);
void svg_path_to(struct output *out, char command, unsigned int to);
void svg_path_end(struct output *out);

#endif
