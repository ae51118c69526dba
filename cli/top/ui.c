// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/top/ui.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CONTROL(c)	((c) & 31)
#define DELETE		127
#define KEYS_MAX	64	/* at once: a paste must not keep records from being drained */

int top_ui_open(struct top_ui *ui)
{
	ui->total = top_new(TOP_ENTRIES);
	ui->last = top_new(TOP_ENTRIES);
	ui->rows = calloc(TOP_ENTRIES + 1, sizeof(*ui->rows));
	output_init(&ui->out, -1);
	ui->view.head = &ui->head;
	ui->view.rows = ui->rows;
	ui->view.filter = ui->filter;
	ui->view.out = &ui->out;
	ui->view.line = screen_line;
	ui->view.arg = &ui->screen;
	ui->screen.fd = -1;
	ui->dirty = true;
	return ui->total && ui->last && ui->rows ? 0 : -ENOMEM;
}

void top_ui_close(struct top_ui *ui)
{
	screen_close(&ui->screen);
	top_free(ui->total);
	top_free(ui->last);
	free(ui->rows);
}

/* Rows */

static bool ui_wants(const struct top_ui *ui, const struct top_entry *e)
{
	return (!ui->engine || !strcmp(e->engine, ui->engine)) &&
	       (!ui->filtered || regex_match(&ui->regex, e->fingerprint, strlen(e->fingerprint)));
}

/* Select the row of ->hash; without it, keep the position. */
static void ui_select(struct top_ui *ui)
{
	struct top_view *view = &ui->view;
	unsigned int rows = top_view_rows(view);
	size_t i = 0;

	while (i < view->count && ui->pinned &&
	       (view->rows[i]->hash != ui->hash || view->rows[i]->engine != ui->pinned_engine ||
		view->rows[i]->nested != ui->pinned_nested))
		i++;
	/* The text of a group that was not executed is not replaced by that of another one. */
	if (i < view->count || view->mode == TOP_DETAIL)
		view->selected = i;
	else if (view->selected >= view->count)
		view->selected = view->count ? view->count - 1 : 0;
	if (view->first + rows > view->count)
		view->first = view->count > rows ? view->count - rows : 0;
	if (view->selected < view->first)
		view->first = view->selected;
	if (rows && view->selected >= view->first + rows)
		view->first = view->selected - rows + 1;
}

/* Choose and sort the rows. They are valid until a table changes. */
static void ui_sort(struct top_ui *ui)
{
	struct top_view *view = &ui->view;
	struct top *table = view->delta ? ui->last : ui->total;
	const struct top_entry *other = top_other(table, &view->folded);
	const struct top_entry *const *sorted;
	size_t count;

	view->span_ns = view->delta ? ui->last_ns : ui->total_ns;
	view->total_ns = other->total_ns;
	view->engine = ui->engine;
	view->count = 0;
	sorted = top_sort(table, view->order, &count);
	for (size_t i = 0; sorted && i < count; i++) {
		view->total_ns += sorted[i]->nested ? 0 : sorted[i]->total_ns;
		if ((!ui->limit || view->count < ui->limit) && ui_wants(ui, sorted[i]))
			ui->rows[view->count++] = sorted[i];
	}
	if (other->calls && !ui->filtered && !ui->engine)
		ui->rows[view->count++] = other;
	ui_select(ui);
}

void top_ui_roll(struct top_ui *ui, struct top *interval, uint64_t ns)
{
	top_merge(ui->total, interval);
	top_free(ui->last);
	ui->last = interval;
	ui->last_ns = ns;
	ui->total_ns += ns;
	ui_sort(ui);
	ui->dirty = true;
}

int top_ui_reset(struct top_ui *ui)
{
	struct top *total = top_new(TOP_ENTRIES), *last = top_new(TOP_ENTRIES);

	if (!total || !last) {
		top_free(total);
		top_free(last);
		return -ENOMEM;
	}
	top_free(ui->total);
	top_free(ui->last);
	ui->total = total;
	ui->last = last;
	ui->total_ns = ui->last_ns = 0;
	ui_sort(ui);
	return 0;
}

void top_ui_draw(struct top_ui *ui)
{
	ui_sort(ui);
	screen_begin(&ui->screen);
	ui->skip_max = top_view_draw(&ui->view);
	ui->dirty = ui->view.skip > ui->skip_max;
	if (ui->dirty)
		ui->view.skip = ui->skip_max;
}

/* Show the last line of @err that was not seen before, or the note. */
static void ui_message(struct top_ui *ui, const struct output *err)
{
	const char *text = err->buf + ui->seen, *end = err->buf + err->len, *message = ui->note;
	size_t len = message ? strlen(message) : 0;

	if (text < end) {
		end -= end[-1] == '\n';
		for (message = end; message > text && message[-1] != '\n'; message--)
			continue;
		len = (size_t)(end - message);
	}
	ui->dirty = ui->dirty || ui->view.message != message;
	ui->view.message = message;
	ui->view.message_len = len;
}

bool top_ui_update(struct top_ui *ui, const struct output *err, uint64_t now_ns)
{
	struct screen *screen = &ui->screen;
	bool quit = false;
	int key;

	ui->dirty |= screen_update(screen);
	for (int i = 0; i < KEYS_MAX && !quit; i++) {
		key = screen_key(screen, now_ns);
		if (key == SCREEN_NO_KEY)
			break;
		ui->seen = err->len;
		ui->note = NULL;
		quit = top_ui_key(ui, key);
		ui->dirty = true;
	}
	ui_message(ui, err);
	if (!ui->dirty || !screen_is_idle(screen))
		return quit;
	ui->view.width = screen->width;
	ui->view.height = screen->height;
	top_ui_draw(ui);
	ui->dirty |= screen_update(screen);
	return quit;
}

/* Keys */

static size_t moved(size_t position, int key, size_t page, size_t last)
{
	switch (key) {
	case SCREEN_UP: case 'k':
		return position ? position - 1 : 0;
	case SCREEN_DOWN: case 'j':
		return position < last ? position + 1 : last;
	case SCREEN_PAGE_UP:
		return position > page ? position - page : 0;
	case SCREEN_PAGE_DOWN:
		return position + page < last ? position + page : last;
	case SCREEN_HOME: case 'g':
		return 0;
	case SCREEN_END: case 'G':
		return last;
	default:
		return position;
	}
}

static void key_move(struct top_ui *ui, int key)
{
	struct top_view *view = &ui->view;
	size_t page = top_view_rows(view);

	if (view->mode == TOP_KEYS) {
		view->key = moved(view->key, key, page, top_view_keys(view) - 1);
	} else if (view->mode != TOP_LIST) {
		view->skip = moved(view->skip, key, page, ui->skip_max);
	} else if (view->count) {
		size_t selected = moved(view->selected, key, page, view->count - 1);

		if (selected == view->selected)
			return;
		view->selected = selected;
		ui->pinned = selected > 0;
		ui->hash = view->rows[selected]->hash;
		ui->pinned_engine = view->rows[selected]->engine;
		ui->pinned_nested = view->rows[selected]->nested;
	}
}

/* Edit the filter, which is effective at once. */
static void key_filter(struct top_ui *ui, int key)
{
	size_t len = strlen(ui->filter), at;

	if (key == '\n' || key == '\r' || key == SCREEN_ESCAPE)
		ui->view.typing = false;
	if (key == SCREEN_ESCAPE || key == CONTROL('u'))
		len = 0;
	if (key == DELETE || key == CONTROL('h'))
		while (len && (ui->filter[--len] & 0xc0) == 0x80)
			continue;
	if (key >= ' ' && key < 256 && key != DELETE && len + 1 < sizeof(ui->filter))
		ui->filter[len++] = (char)key;
	ui->filter[len] = '\0';
	ui->filtered = len && !regex_parse(&ui->regex, ui->filter, &at);
}

/* The next engine of the groups by name, then all again. */
static void key_engine(struct top_ui *ui)
{
	size_t count;
	const struct top_entry *const *entry = top_sort(ui->total, TOP_TOTAL, &count);
	const char *next = NULL;

	for (size_t i = 0; entry && i < count; i++)
		if ((!ui->engine || strcmp(entry[i]->engine, ui->engine) > 0) &&
		    (!next || strcmp(entry[i]->engine, next) < 0))
			next = entry[i]->engine;
	ui->engine = next;
}

static void key_order(struct top_ui *ui, int key)
{
	static const char letters[] = {
		[TOP_TOTAL] = 't', [TOP_CALLS] = 'c', [TOP_MEAN] = 'm', [TOP_P95] = '5',
		[TOP_P99] = '9', [TOP_MAX] = 'x', [TOP_ROWS] = 'r', [TOP_ERRORS] = 'f',
	};
	struct top_view *view = &ui->view;
	size_t keys = top_view_keys(view);

	if (key == '>')
		view->order = (enum top_order)((view->order + 1) % keys);
	if (key == '<')
		view->order = (enum top_order)((view->order + keys - 1) % keys);
	for (size_t i = 0; i < sizeof(letters); i++)
		if (key == letters[i])
			view->order = (enum top_order)i;
}

/* Move in the time of a recording. */
static void key_time(struct top_ui *ui, int key)
{
	static const struct {
		char key;
		int8_t steps;
	} moves[] = { { '[', -1 }, { ']', 1 }, { '{', -10 }, { '}', 10 } };

	for (size_t i = 0; ui->replay && i < sizeof(moves) / sizeof(moves[0]); i++)
		if (key == moves[i].key)
			ui->steps += moves[i].steps;
}

/* Handle keys that change the mode. Return whether the user quits. */
static bool key_mode(struct top_ui *ui, int key)
{
	struct top_view *view = &ui->view;
	enum top_mode mode = view->mode;

	if (key == 'q' && mode == TOP_LIST)
		return true;
	if (key == SCREEN_ESCAPE && mode == TOP_LIST) {
		key_filter(ui, key);
		ui->engine = NULL;
	}
	if (key == 'q' || key == SCREEN_ESCAPE)
		view->mode = TOP_LIST;
	if (key == '?' || key == 'h')
		view->mode = TOP_HELP;
	if (key == SCREEN_F6 || key == 's') {
		view->mode = TOP_KEYS;
		view->key = view->order;
	}
	if (key == '\n' || key == '\r') {
		if (mode == TOP_KEYS)
			view->order = (enum top_order)view->key;
		view->mode = mode == TOP_LIST && view->selected < view->count ? TOP_DETAIL :
									      TOP_LIST;
	}
	if (mode == TOP_LIST && view->mode == TOP_DETAIL) {
		ui->pinned = true;
		ui->hash = view->rows[view->selected]->hash;
		ui->pinned_engine = view->rows[view->selected]->engine;
		ui->pinned_nested = view->rows[view->selected]->nested;
	}
	if (mode != view->mode)
		view->skip = 0;
	return false;
}

bool top_ui_key(struct top_ui *ui, int key)
{
	struct top_view *view = &ui->view;

	if (view->typing) {
		key_filter(ui, key);
		return false;
	}
	switch (key) {
	case '/':
		view->mode = TOP_LIST;
		view->typing = true;
		break;
	case ' ':
		view->paused = !view->paused && !ui->replay;
		break;
	case 'd':
		view->delta = !view->delta;
		break;
	case 'w':
		view->why = view->has_why && !view->why;
		if (!view->has_why)
			ui->note = "time breakdown: not recorded; start with --why";
		break;
	case 'e':
		key_engine(ui);
		break;
	case CONTROL('l'):
		screen_redraw(&ui->screen);
		break;
	default:
		key_time(ui, key);
		key_move(ui, key);
		key_order(ui, key);
		return key_mode(ui, key);
	}
	return false;
}
