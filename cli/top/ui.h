/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The interactive top: the groups since the start and of the last interval, and what the keys
 * selected of them.
 *
 * The tables that are shown change only in top_ui_roll(). A pause is therefore no more than not
 * calling it; the statements are counted in the caller's table meanwhile.
 */
#ifndef CLI_TOP_UI_H
#define CLI_TOP_UI_H

#include "cli/top/screen.h"
#include "cli/top/view.h"
#include "sql/regex.h"

#define TOP_FILTER	128		/* bytes, with the NUL */

struct top_ui {
	struct screen screen;
	struct top_head head;		/* filled by the caller before top_ui_roll() */
	struct top_view view;
	struct top *total, *last;	/* since the start, and of the last interval; owned */
	uint64_t total_ns, last_ns;	/* time that they cover */
	const struct top_entry **rows;	/* owned, TOP_ENTRIES + 1 */
	size_t limit;			/* of rows; 0: none */
	const char *engine;		/* only groups of this one; static; NULL: all */
	char filter[TOP_FILTER];
	struct regex regex;		/* of ->filter, if ->filtered */
	bool filtered;
	bool pinned;			/* the selection follows this group, not the first row: */
	uint64_t hash;			/* of the selected group .. */
	bool pinned_nested;		/* .. and whether it is one of routines .. */
	const char *pinned_engine;	/* .. and its engine */
	size_t skip_max;		/* of the last frame */
	const char *note;		/* shown until the next key; NULL: none */
	size_t seen;			/* bytes of the messages that were shown */
	bool dirty;			/* a frame must be drawn */
	bool replay;			/* of a recording: these keys move in time, by .. */
	int64_t steps;			/* .. so many intervals, until the caller has done so */
	struct output out;		/* scratch of the view */
};

/* Allocate the tables, without opening ->screen. Return 0 or -ENOMEM. top_ui_close() ends it. */
int top_ui_open(struct top_ui *ui);

/* Drop what was counted, to count again from the start of the recording. */
int top_ui_reset(struct top_ui *ui);

/* Add @interval, whose statements ran in @ns, and take it over. */
void top_ui_roll(struct top_ui *ui, struct top *interval, uint64_t ns);

/*
 * Handle keys, and draw what has changed; @err has messages that were not written. Return whether
 * the user quits. Errors of the terminal are in ->screen.error.
 */
bool top_ui_update(struct top_ui *ui, const struct output *err, uint64_t now_ns);

/* Handle one key. Return whether the user quits. */
bool top_ui_key(struct top_ui *ui, int key);

/* Sort the rows and draw a frame by ->view.line. */
void top_ui_draw(struct top_ui *ui);

/* Restore the terminal and free what @ui owns. */
void top_ui_close(struct top_ui *ui);

#endif
