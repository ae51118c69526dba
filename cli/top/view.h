/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cli/top/: the command top: its table, its screen and its keys.
 * It counts nothing itself: see db/count.
 */

/*
 * The layout of the interactive top: a function of the groups, of what the user selected and of the
 * size of the terminal to lines of text.
 */
#ifndef CLI_TOP_VIEW_H
#define CLI_TOP_VIEW_H

#include <stdbool.h>

#include "cli/output.h"
#include "db/count/top.h"

#define TOP_RUNNING_TEXT	512
#define TOP_RUNNINGS		4	/* running statements that are listed */

enum top_mode {
	TOP_LIST,
	TOP_DETAIL,			/* the selected group */
	TOP_KEYS,			/* sort keys, to choose from */
	TOP_HELP,
};

/* A statement that has not ended. */
struct top_running {
	uint32_t pid;
	uint64_t duration_ns;
	size_t len;
	char text[TOP_RUNNING_TEXT];	/* foreign bytes */
};

/* The values of the first lines, of the last interval. */
struct top_head {
	char host[65];
	char servers[256];		/* foreign bytes; "": none was found */
	uint64_t uptime_ns, lost;
	uint64_t wall_ns;		/* the time of a recording, CLOCK_REALTIME; 0: live */
	uint64_t statements, errors;	/* thousandths per second */
	uint64_t cpu, bpf;		/* overhead in thousandths of a percent of one CPU */
	bool has_bpf;			/* the kernel measured ->bpf */
	size_t running;			/* statements */
	size_t nlongest;		/* of them: those of a second or more, the longest first */
	struct top_running longest[TOP_RUNNINGS];
};

/* Everything is borrowed. */
struct top_view {
	const struct top_head *head;
	const struct top_entry *const *rows;	/* sorted */
	size_t count;
	uint64_t total_ns;		/* of all groups, also of those that are not in ->rows */
	uint64_t folded;		/* fingerprints of the row without an engine */
	uint64_t span_ns;		/* time in which the calls were counted */
	bool has_why, has_use;		/* recorded: the breakdown, resources */

	enum top_mode mode;
	enum top_order order;
	size_t selected, first;		/* of the rows; ->first is at the top of the list */
	size_t key;			/* TOP_KEYS: the selected one */
	size_t skip;			/* TOP_DETAIL, TOP_HELP: lines above the first one shown */
	bool delta, paused;
	bool why;			/* show the time breakdown */
	bool typing;			/* of the filter */
	const char *filter, *engine;	/* "", NULL: all */
	const char *message;		/* foreign bytes */
	size_t message_len;

	unsigned int width, height;	/* of the terminal, at least 1 */
	struct output *out;		/* scratch */
	/* Called for each of ->height lines: printable text with SGR sequences, and no line end. */
	void (*line)(void *arg, const char *text, size_t len);
	void *arg;
};

/* Return the number of rows of the list that fit. */
unsigned int top_view_rows(const struct top_view *view);

/* Return the number of sort keys; they are in the order of enum top_order. */
size_t top_view_keys(const struct top_view *view);

/*
 * Call view->line for each line. Return the number of lines above the last one of the text of
 * TOP_DETAIL or TOP_HELP that fills the terminal, the maximum of ->skip.
 */
size_t top_view_draw(const struct top_view *view);

/* Return the word of --sort for @order. Static. */
const char *top_order_name(enum top_order order);

#endif
