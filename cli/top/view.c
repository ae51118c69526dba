// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/top/view.h"

#include <string.h>

#include "base/base.h"
#include "cli/format/line.h"
#include "cli/format/short.h"
#include "db/session/breakdown.h"

#define TEXT_MIN	16	/* columns of a statement's text at least, .. */
#define TEXT_PART	4	/* .. and this part of the width */
#define BAR		10
#define PARTS_WIDTH	26
#define CELL		64	/* bytes of the text of a column */

#define SGR_NONE	"\033[0m"
#define SGR_REVERSE	"\033[7m"

/* A frame being drawn: lines of the body between those of the head and the foot. */
struct frame {
	const struct top_view *view;
	struct line line;
	unsigned int row, end;		/* of the terminal: the next one, and that after the body */
	size_t index, skip;		/* of the line in the body; this many are not shown */
};

static const char *const sort_names[] = {
	[TOP_TOTAL] = "total", [TOP_CALLS] = "calls", [TOP_MEAN] = "mean", [TOP_P95] = "p95",
	[TOP_P99] = "p99", [TOP_MAX] = "max", [TOP_ROWS] = "rows", [TOP_ERRORS] = "errors",
};

const char *top_order_name(enum top_order order)
{
	return order < TOP_PART ? sort_names[order] :
	       order < TOP_USE ? breakdown_part_name((enum breakdown_part)(order - TOP_PART)) :
				 breakdown_use_name((enum use)(order - TOP_USE));
}

static struct line *frame_begin(struct frame *frame)
{
	frame->line = (struct line){ .out = frame->view->out, .width = frame->view->width };
	frame->line.out->len = 0;
	return &frame->line;
}

static void frame_end(struct frame *frame)
{
	const struct output *out = frame->line.out;

	if (frame->index++ < frame->skip || frame->row >= frame->end)
		return;
	frame->row++;
	frame->view->line(frame->view->arg, out->buf, out->len);
}

static void frame_text(struct frame *frame, const char *text)
{
	line_text(frame_begin(frame), text);
	frame_end(frame);
}

/* A line from edge to edge in reverse video. */
static void frame_reverse_begin(struct frame *frame)
{
	frame_begin(frame);
	output_string(frame->line.out, SGR_REVERSE);
}

static void frame_reverse_end(struct frame *frame)
{
	line_pad(&frame->line, frame->view->width);
	output_string(frame->line.out, SGR_NONE);
	frame_end(frame);
}

/* Return @part of @all in tenths of a percent. */
static unsigned int permille(uint64_t part, uint64_t all)
{
	if (part > UINT64_MAX / 1000)
		return (unsigned int)(part / (all / 1000 + 1));
	return all ? (unsigned int)(part * 1000 / all) : 0;
}

/* Write value @order of @e to @cell. */
static void cell_value(char *cell, const struct top_entry *e, enum top_order order)
{
	uint64_t value = top_value(e, order);

	if (order == TOP_CALLS || order == TOP_ROWS || order == TOP_ERRORS)
		short_count(cell, value);
	else
		short_duration(cell, value);
}

/* Columns */

/* Columns that do not sort have values from TOP_ORDERS on. */
enum { COLUMN_ENGINE = TOP_ORDERS, COLUMN_DATABASE, COLUMN_BAR };

static const struct column {
	char header[9];
	uint8_t width;			/* with the space before or after it */
	uint8_t rank;			/* of importance: 0 is shown on every terminal */
	uint8_t value;			/* enum top_order, or the above, which are left-aligned */
} columns[] = {
	{ "ENGINE", 11, 9, COLUMN_ENGINE }, { "DATABASE", 13, 8, COLUMN_DATABASE },
	{ "CALLS/s", 8, 0, TOP_CALLS }, { "MEAN", 7, 1, TOP_MEAN }, { "P95", 7, 4, TOP_P95 },
	{ "P99", 7, 6, TOP_P99 }, { "MAX", 7, 3, TOP_MAX }, { "ROWS", 7, 11, TOP_ROWS },
	{ "ERR", 7, 10, TOP_ERRORS }, { "TIME", 7, 2, TOP_TOTAL },
	{ "", BAR + 1, 5, COLUMN_BAR },
};

#define RANK_PARTS	7		/* of the column of the time breakdown */
#define RANK_MAX	11

/* Write the ASCII text of a column to @cell. */
static void cell_text(char *cell, const struct top_view *view, const struct top_entry *e,
		      unsigned int value)
{
	unsigned int share = permille(e->total_ns, view->total_ns);

	switch (value) {
	case COLUMN_BAR:
		cell[0] = ' ';
		memset(cell + 1, '#', BAR);
		cell[1 + (share * BAR + 999) / 1000] = '\0';
		break;
	case TOP_CALLS:
		short_number(cell, e->calls * 1000000 / (view->span_ns / 1000000 + 1));
		break;
	case TOP_TOTAL:
		strcpy(cell + output_format(cell, share, 1), "%");
		break;
	default:
		cell_value(cell, e, (enum top_order)value);
	}
}

/* The columns to show: bits by index, and bit ARRAY_SIZE(columns) for the time breakdown. */
struct layout {
	uint32_t shown;
	size_t text;			/* the column of the terminal where the text begins */
};

static bool layout_add(struct layout *layout, const struct top_view *view, size_t i, size_t width)
{
	size_t text = view->width / TEXT_PART;

	if (layout->shown & 1u << i)
		return true;
	if (layout->text + width + 1 + (text < TEXT_MIN ? TEXT_MIN : text) > view->width)
		return false;
	layout->shown |= 1u << i;
	layout->text += width;
	return true;
}

/* Choose columns by importance until the next one does not fit. */
static struct layout layout_choose(const struct top_view *view)
{
	struct layout layout = { 0 };
	bool fits = true;

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		if (columns[i].value == view->order)
			layout_add(&layout, view, i, columns[i].width);
	for (unsigned int rank = 0; fits && rank <= RANK_MAX; rank++) {
		if (rank == RANK_PARTS && view->why)
			fits = layout_add(&layout, view, ARRAY_SIZE(columns), PARTS_WIDTH);
		for (size_t i = 0; fits && i < ARRAY_SIZE(columns); i++)
			if (columns[i].rank == rank)
				fits = layout_add(&layout, view, i, columns[i].width);
	}
	return layout;
}

/* Return the largest part that is not in @shown, but @first before all others; -1: none. */
static int parts_next(const __u64 *ns, uint32_t shown, int first)
{
	int best = -1;

	if (!shown && first >= 0 && first < BREAKDOWN_PARTS)
		return first;
	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		if (!(shown & 1u << i) && ns[i] && (best < 0 || ns[i] > ns[best]))
			best = i;
	return best;
}

static uint64_t parts_sum(const __u64 *ns)
{
	uint64_t sum = 0;

	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		sum += ns[i];
	return sum;
}

/* Append the parts of the time as far as they fit: " lock 62% cpu 20%". */
static void row_parts(struct line *line, const struct top_view *view, const struct top_why *why)
{
	size_t end = line->used + PARTS_WIDTH;
	uint64_t all = parts_sum(why->ns);
	uint32_t shown = 0;
	const char *name;
	int part;

	while ((part = parts_next(why->ns, shown, (int)view->order - TOP_PART)) >= 0) {
		name = breakdown_part_name((enum breakdown_part)part);
		if (line->used + strlen(name) + 6 > end)
			break;
		line_printf(line, " %s %u%%", name, permille(why->ns[part], all) / 10);
		shown |= 1u << part;
	}
}

/* Append the columns of @e, or their headers if it is NULL. */
static void row_columns(struct line *line, const struct top_view *view,
			const struct layout *layout, const struct top_entry *e)
{
	char cell[CELL];
	size_t end = 0;

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		const struct column *column = &columns[i];
		const char *name = NULL;

		if (!(layout->shown & 1u << i))
			continue;
		end += column->width;
		strcpy(cell, e ? "" : column->header);
		if (e && column->value == COLUMN_ENGINE)
			name = e->engine;
		else if (e && column->value == COLUMN_DATABASE)
			name = e->database;
		else if (e)
			cell_text(cell, view, e, column->value);
		if (column->value < TOP_ORDERS && end > strlen(cell))
			line_pad(line, end - strlen(cell));
		line_text(line, cell);
		if (name)
			line_foreign(line, name, strlen(name), false, column->width - 1u);
		line_pad(line, end);
	}
	if (!(layout->shown & 1u << ARRAY_SIZE(columns)))
		return;
	if (!e)
		line_text(line, " TIME BREAKDOWN");
	else if (e->why)
		row_parts(line, view, e->why);
	line_pad(line, end + PARTS_WIDTH);
}

static void row_query(struct line *line, const struct top_view *view, const struct top_entry *e)
{
	line_text(line, e->nested ? " > " : " ");
	if (e->engine)
		line_name(line, e->fingerprint);
	else
		line_printf(line, "(others: %llu fingerprints)", (unsigned long long)view->folded);
}

/* The list */

static void list_body(struct frame *frame)
{
	const struct top_view *view = frame->view;
	struct layout layout = layout_choose(view);

	frame_reverse_begin(frame);
	row_columns(&frame->line, view, &layout, NULL);
	line_text(&frame->line, " QUERY");
	frame_reverse_end(frame);
	for (size_t i = view->first; i < view->count && frame->row < frame->end; i++) {
		const struct top_entry *e = view->rows[i];

		if (i == view->selected)
			frame_reverse_begin(frame);
		else
			frame_begin(frame);
		row_columns(&frame->line, view, &layout, e);
		row_query(&frame->line, view, e);
		if (i == view->selected)
			frame_reverse_end(frame);
		else
			frame_end(frame);
	}
}

/* The statement of the selected group */

/* Percentages follow unless @all is 0. */
static void detail_value(struct frame *frame, const char *name, const char *text, uint64_t part,
			 uint64_t all)
{
	struct line *line = frame_begin(frame);

	line_printf(line, "%-20s%8s", name, text);
	if (all)
		line_printf(line, " %3u%%", permille(part, all) / 10);
	frame_end(frame);
}

/* Foreign text in as many lines as it requires. */
static void detail_text(struct frame *frame, const char *title, const char *text, size_t len)
{
	size_t n;

	frame_text(frame, "");
	frame_text(frame, title);
	for (; len; text += n, len -= n) {
		n = line_foreign(frame_begin(frame), text, len, false, SIZE_MAX);
		frame_end(frame);
		/* Narrower than one character: nothing can be shown. */
		if (!n)
			break;
	}
}

static void detail_breakdown(struct frame *frame, const struct top_why *why)
{
	uint64_t all = parts_sum(why->ns);
	char text[SHORT_TEXT];
	uint32_t shown = 0;
	int part;

	detail_text(frame, "Time breakdown:", "", 0);
	while ((part = parts_next(why->ns, shown, -1)) >= 0) {
		detail_value(frame, breakdown_part_name((enum breakdown_part)part),
			     short_duration(text, why->ns[part]), why->ns[part], all);
		shown |= 1u << part;
	}
	for (int i = 0; i < USES; i++)
		if (why->used & 1u << i)
			detail_value(frame, breakdown_use_name((enum use)i),
				     short_count(text, why->use[i]), 0, 0);
}

static void detail_histogram(struct frame *frame, const struct top_entry *e)
{
	uint64_t slots[TOP_SLOTS], most = 0;
	int first = TOP_SLOTS, last = -1;
	char from[SHORT_TEXT], to[SHORT_TEXT];

	top_slots(e, slots);
	for (int i = 0; i < TOP_SLOTS; i++) {
		if (!slots[i])
			continue;
		most = slots[i] > most ? slots[i] : most;
		first = first < i ? first : i;
		last = i;
	}
	detail_text(frame, "Durations:", "", 0);
	for (int i = first; i <= last; i++) {
		struct line *line = frame_begin(frame);

		line_printf(line, "%7s to %-7s %8llu ", short_duration(from, i ? 1ull << i : 0),
			    short_duration(to, 2ull << i), (unsigned long long)slots[i]);
		for (unsigned int n = permille(slots[i], most); n; n = n > 25 ? n - 25 : 0)
			line_text(line, "#");
		frame_end(frame);
	}
}

static void detail_body(struct frame *frame)
{
	const struct top_view *view = frame->view;
	const struct top_entry *e = view->selected < view->count ? view->rows[view->selected] :
								   NULL;
	char text[SHORT_TEXT];

	if (!e) {
		frame_text(frame, "This statement was not executed in this interval.");
		return;
	}
	line_printf(frame_begin(frame), "%s %016llx ", e->engine ? e->engine : "",
		    (unsigned long long)e->hash);
	if (e->database)
		line_name(&frame->line, e->database);
	frame_end(frame);
	for (int i = 0; i < TOP_PART; i++) {
		cell_value(text, e, (enum top_order)i);
		detail_value(frame, top_order_name((enum top_order)i), text, e->total_ns,
			     i == TOP_TOTAL ? view->total_ns : 0);
	}
	if (e->engine)
		detail_text(frame, "Statement:", e->fingerprint, strlen(e->fingerprint));
	if (e->sample)
		detail_text(frame, e->sample_cut ? "The slowest one (its beginning):" :
						   "The slowest one:", e->sample, e->sample_len);
	if (e->why)
		detail_breakdown(frame, e->why);
	detail_histogram(frame, e);
}

/* Sort keys and help */

static void keys_body(struct frame *frame)
{
	const struct top_view *view = frame->view;
	size_t rows = frame->end - frame->row;

	/* The selected one is the last that fits, or above. */
	frame->skip = view->key + 1 > rows ? view->key + 1 - rows : 0;
	for (size_t i = 0; i < top_view_keys(view); i++) {
		if (i == view->key)
			frame_reverse_begin(frame);
		else
			frame_begin(frame);
		line_text(&frame->line, top_order_name((enum top_order)i));
		if (i == view->key)
			frame_reverse_end(frame);
		else
			frame_end(frame);
	}
}

static void help_body(struct frame *frame)
{
	static const char *const text =
		"Up Down j k        select a statement\n"
		"PgUp PgDn Home End g G\n"
		"Enter              its text, times, histogram\n"
		"< >                previous, next sort key\n"
		"F6 s               choose a sort key\n"
		"t c m 5 9 x r f    sort by total, calls, mean, p95,\n"
		"                   p99, max, rows, errors (failed)\n"
		"/                  filter: a text, or /REGEX/\n"
		"e                  next engine, or all\n"
		"d                  last interval, or since the start\n"
		"w                  time breakdown (--why)\n"
		"Space              pause\n"
		"[ ] { }            1 or 10 intervals back, forth (replay)\n"
		"Ctrl-L             redraw\n"
		"Esc                back; no filter\n"
		"? h                this help\n"
		"q                  back; quit\n";

	for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
		line_foreign(frame_begin(frame), line, strcspn(line, "\n"), false, SIZE_MAX);
		frame_end(frame);
	}
}

/* The head and the foot */

static void head_line(struct frame *frame)
{
	const struct top_head *head = frame->view->head;
	uint64_t s = head->uptime_ns / 1000000000;
	struct line *line = frame_begin(frame);
	char clock[OUTPUT_NUMBER] = "";
	size_t len = 0;

	line_text(line, "dbslower top  ");
	line_name(line, head->host);
	if (head->wall_ns)
		len = output_clock(clock, head->wall_ns, 3);
	line_printf(line, "  %.*s%s %llu:%02u:%02u  ", (int)len, clock, len ? " at" : "up",
		    (unsigned long long)(s / 3600), (unsigned int)(s / 60 % 60),
		    (unsigned int)(s % 60));
	if (*head->servers)
		line_name(line, head->servers);
	else
		line_text(line, "no server found; waiting for one to start");
	frame_end(frame);
}

static void head_numbers(struct frame *frame)
{
	const struct top_head *head = frame->view->head;
	char statements[SHORT_TEXT], errors[SHORT_TEXT], running[SHORT_TEXT], lost[SHORT_TEXT];
	char cpu[SHORT_TEXT], bpf[SHORT_TEXT];

	line_printf(frame_begin(frame), "%s statements/s  %s errors/s  %s running  %s lost",
		    short_number(statements, head->statements), short_number(errors, head->errors),
		    short_count(running, head->running), short_count(lost, head->lost));
	if (!head->wall_ns)
		line_printf(&frame->line, "  overhead %s%% CPU%s%s%s",
			    short_number(cpu, head->cpu), head->has_bpf ? " + " : "",
			    head->has_bpf ? short_number(bpf, head->bpf) : "",
			    head->has_bpf ? "% BPF" : "");
	frame_end(frame);
}

static void head_state(struct frame *frame)
{
	const struct top_view *view = frame->view;
	struct line *line = frame_begin(frame);
	char text[SHORT_TEXT] = "";

	line_printf(line, "by %s, %s%s%s%s%s%s", top_order_name(view->order),
		    view->delta ? "last " : "since the start",
		    view->delta ? short_duration(text, view->span_ns) : "",
		    view->paused ? "  PAUSED" : "", view->engine ? "  engine: " : "",
		    view->engine ? view->engine : "", *view->filter ? "  filter: " : "");
	line_name(line, view->filter);
	frame_end(frame);
}

static void running_body(struct frame *frame)
{
	const struct top_head *head = frame->view->head;
	char text[SHORT_TEXT];

	frame_reverse_begin(frame);
	line_text(&frame->line, "    PID RUNNING QUERY");
	frame_reverse_end(frame);
	for (size_t i = 0; i < head->nlongest; i++) {
		const struct top_running *one = &head->longest[i];
		struct line *line = frame_begin(frame);

		line_printf(line, "%7u %7s ", one->pid, short_duration(text, one->duration_ns));
		line_foreign(line, one->text, one->len, false, SIZE_MAX);
		frame_end(frame);
	}
}

static void foot(struct frame *frame)
{
	const struct top_view *view = frame->view;
	struct line *line = frame_begin(frame);

	if (view->typing) {
		line_text(line, "/");
		line_name(line, view->filter);
		line_text(line, "_");
	} else if (view->message_len) {
		line_foreign(line, view->message, view->message_len, false, SIZE_MAX);
	} else if (view->mode == TOP_LIST) {
		line_text(line, "q quit  ? help  Enter details  < > sort  / filter  d delta  "
				"Space pause");
	} else {
		line_text(line, view->mode == TOP_KEYS ? "Enter choose  Esc back" : "q back");
	}
	frame_end(frame);
}

/* Lines of the head, of the foot, and of running statements below the list. */
static unsigned int head_height(const struct top_view *view)
{
	return view->height >= 10 ? 3 : view->height >= 6 ? 1 : 0;
}

static unsigned int foot_height(const struct top_view *view)
{
	return view->height >= 4;
}

static unsigned int running_height(const struct top_view *view)
{
	return view->head->nlongest && view->height >= 16 ?
	       (unsigned int)view->head->nlongest + 1 : 0;
}

unsigned int top_view_rows(const struct top_view *view)
{
	unsigned int others = head_height(view) + foot_height(view) + running_height(view) + 1;

	return view->height > others ? view->height - others : 0;
}

size_t top_view_keys(const struct top_view *view)
{
	return view->has_use ? TOP_ORDERS : view->has_why ? TOP_USE : TOP_PART;
}

size_t top_view_draw(const struct top_view *view)
{
	static void (*const bodies[])(struct frame *) = {
		[TOP_LIST] = list_body, [TOP_DETAIL] = detail_body, [TOP_KEYS] = keys_body,
		[TOP_HELP] = help_body,
	};
	static void (*const heads[])(struct frame *) = { head_line, head_numbers, head_state };
	unsigned int running = view->mode == TOP_LIST ? running_height(view) : 0;
	struct frame frame = { .view = view, .end = view->height };
	unsigned int body;
	size_t lines;

	for (unsigned int i = 0; i < head_height(view); i++)
		heads[i](&frame);
	frame.end = view->height - foot_height(view) - running;
	body = frame.end - frame.row;
	frame.index = 0;
	frame.skip = view->mode == TOP_DETAIL || view->mode == TOP_HELP ? view->skip : 0;
	bodies[view->mode](&frame);
	lines = frame.index;
	frame.skip = 0;
	while (frame.row < frame.end)
		frame_text(&frame, "");
	frame.end = view->height - foot_height(view);
	if (running)
		running_body(&frame);
	frame.end = view->height;
	if (foot_height(view))
		foot(&frame);
	return lines > body ? lines - body : 0;
}
