// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The interactive top without a terminal: frames of all sizes, keys, and what is selected. */
#include <stdint.h>
#include <stdlib.h>
#include <wchar.h>

#include "cli/format/escape.h"
#include "cli/format/short.h"
#include "cli/format/width.h"
#include "cli/top/ui.h"
#include "tests/unit/check.h"
#include "tests/unit/random.h"

#define ROWS_MAX 80
#define LINE_MAX_BYTES 4096
#define TEXTS (sizeof(texts) / sizeof(texts[0]))

/* The lines of the last frame, without SGR sequences. */
static struct {
	char text[ROWS_MAX][LINE_MAX_BYTES];
	size_t count;
	bool bad;			/* a line has other control characters, or is too wide */
	size_t width;
} frame;

static const char *const texts[] = {
	"select ?", "select * from t where a = ? and b in (...)",
	"select '\xe4\xb8\xad\xe6\x96\x87\xe4\xb8\xad\xe6\x96\x87' as \"\xe5\xad\x97\xe5\xad\x97\"",
	"select e\xcc\x81\xcc\x82\xcc\x83 o\xcc\x88 from caf\xc3\xa9",
	"\x1b[2J\x1b]0;title\x07 select \xff\xfe\x80 \r\n\t x\x9b" "31m",
	"\xf0\x9f\x98\x80\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\xae tfel", "",
	"insert into a_table_with_a_name_that_is_very_long (column_one, column_two) values (...)"
	" on conflict do update set column_one = excluded.column_one returning *, ?, ?, ?, ?, ?",
};

static void take(void *arg, const char *text, size_t len)
{
	char *to = frame.text[frame.count % ROWS_MAX], *end = to;

	(void)arg;
	for (size_t i = 0; i < len && end < to + LINE_MAX_BYTES - 1; i++) {
		if (text[i] == '\033' && text[i + 1] == '[') {
			i += strcspn(text + i, "m");
			frame.bad |= i >= len;
			continue;
		}
		frame.bad |= (unsigned char)text[i] < ' ' || text[i] == 127;
		*end++ = text[i];
	}
	*end = '\0';
	frame.bad |= escape_width(to, (size_t)(end - to)) > frame.width;
	frame.count++;
}

static struct top_ui *ui_new(void)
{
	struct top_ui *ui = calloc(1, sizeof(*ui));

	if (!ui || top_ui_open(ui))
		abort();
	ui->view.line = take;
	ui->view.width = 80;
	ui->view.height = 24;
	strcpy(ui->head.host, "host");
	return ui;
}

static void ui_free(struct top_ui *ui)
{
	top_ui_close(ui);
	free(ui);
}

static void add(struct top *top, const char *engine, uint64_t hash, const char *text, uint64_t ns)
{
	struct event_breakdown why = { .used = 3, .use = { 5, 7 } };
	const struct top_call call = {
		.engine = engine, .hash = hash, .fingerprint = text, .text = text,
		.database = hash % 3 ? text : NULL, .text_len = strlen(text), .text_cut = hash & 1,
		.duration_ns = ns, .rows = hash, .failed = hash % 5 == 0, .why = &why,
	};

	why.ns[hash % BREAKDOWN_PARTS] = ns / 2;
	why.ns[0] += ns - ns / 2;
	top_add(top, &call);
}

/* Show groups 1 to @count; group n is n times as expensive as the first. */
static void roll(struct top_ui *ui, unsigned int count)
{
	struct top *top = top_new(TOP_ENTRIES);

	for (unsigned int i = 1; i <= count; i++)
		add(top, i % 4 ? "postgresql" : "mysql", i, texts[i % TEXTS], i * 1000000ull);
	top_ui_roll(ui, top, 2000000000);
}

static void draw(struct top_ui *ui)
{
	frame.count = 0;
	frame.bad = false;
	frame.width = ui->view.width;
	top_ui_draw(ui);
}

static bool has(const char *text)
{
	for (size_t i = 0; i < frame.count; i++)
		if (strstr(frame.text[i], text))
			return true;
	return false;
}

static void keys(struct top_ui *ui, const char *text)
{
	for (; *text; text++)
		top_ui_key(ui, (unsigned char)*text);
	draw(ui);
}

static void fill_running(struct top_head *head, size_t count)
{
	head->running = 7;
	head->nlongest = count;
	for (size_t i = 0; i < count; i++) {
		head->longest[i] = (struct top_running){ .pid = 4194304, .duration_ns = 1ull << 63,
							 .len = strlen(texts[2 + i]) };
		strcpy(head->longest[i].text, texts[2 + i]);
	}
}

/* No line is wider than the terminal, and each frame fills it. */
static void every_size(void)
{
	static const char foreign[] = "MariaDB \xe4\xb8\xad\x1b[31m 10.11, PostgreSQL 15 (pid 419)";
	struct top_ui *ui = ui_new();

	strcpy(ui->head.servers, foreign);
	strcpy(ui->filter, "");
	ui->view.has_why = ui->view.has_use = true;
	ui->head.has_bpf = true;
	ui->head.lost = UINT64_MAX;
	ui->head.uptime_ns = UINT64_MAX;
	roll(ui, 70);
	for (unsigned int width = 1; width <= 250; width++)
		for (unsigned int height = 1; height <= 60; height++) {
			ui->view.width = width;
			ui->view.height = height;
			ui->view.why = width & 1;
			ui->view.delta = height & 1;
			ui->view.paused = width & 2;
			ui->view.typing = height & 2;
			ui->view.mode = height & 4 ? TOP_LIST : (enum top_mode)(width % 4);
			ui->view.order = (enum top_order)(width % TOP_ORDERS);
			ui->view.skip = height % 7;
			fill_running(&ui->head, height % (TOP_RUNNINGS + 1));
			draw(ui);
			CHECK(!frame.bad, "%u x %u, mode %d", width, height, ui->view.mode);
			CHECK(frame.count == height, "%u x %u: %zu lines, mode %d", width, height,
			      frame.count, ui->view.mode);
			if (check_failures > 5)
				return;
		}
	ui_free(ui);
}

/* Random keys on random sizes: nothing but frames that fit. */
static void random_keys(void)
{
	static const int special[] = { SCREEN_UP, SCREEN_DOWN, SCREEN_PAGE_UP, SCREEN_PAGE_DOWN,
				       SCREEN_HOME, SCREEN_END, SCREEN_F6, SCREEN_ESCAPE, '\n' };
	struct top_ui *ui = ui_new();

	ui->view.has_why = true;
	for (int i = 0; i < 30000; i++) {
		uint64_t r = random_next() >> 20;

		if (r % 50 == 0)
			roll(ui, (unsigned int)(r >> 8) % 90);
		if (r % 60 == 0) {
			ui->view.width = 1 + (r >> 8) % 200;
			ui->view.height = 1 + (r >> 16) % 70;
		}
		top_ui_key(ui, r & 1 ? special[(r >> 1) % (sizeof(special) / sizeof(special[0]))] :
				       (int)(r >> 1) % 256);
		if (r % 3)
			continue;
		draw(ui);
		CHECK(!frame.bad && frame.count == ui->view.height);
		CHECK(!ui->view.count || ui->view.selected <= ui->view.count);
		if (check_failures)
			return;
	}
	ui_free(ui);
}

static void many_groups(void)
{
	struct top_ui *ui = ui_new();
	struct top *top = top_new(TOP_ENTRIES);
	char text[32];

	for (unsigned int i = 0; i < 4000; i++) {
		snprintf(text, sizeof(text), "select name%u", i);
		add(top, "mysql", i + 1, text, 1000 + i);
	}
	top_ui_roll(ui, top, 1000000000);
	draw(ui);
	CHECK(has("select name3999"));
	top_ui_key(ui, 'G');
	draw(ui);
	CHECK(has("(others: "));
	keys(ui, "/name2999");
	CHECK(has("select name2999") && ui->view.count == 1, "%zu", ui->view.count);
	ui_free(ui);
}

/* Keys that sort, filter, and select what is shown. */
static void what_keys_do(void)
{
	struct top_ui *ui = ui_new();

	roll(ui, 20);
	draw(ui);
	CHECK(ui->view.rows[0]->hash == 20 && ui->view.selected == 0);
	keys(ui, "c");
	CHECK(has("by calls"));
	keys(ui, ">");
	CHECK(has("by mean"));
	keys(ui, "<<<");
	CHECK(has("by errors"), "the sort keys are a ring");
	keys(ui, "xsk\n");
	CHECK(has("by p99") && ui->view.mode == TOP_LIST);
	keys(ui, "t");
	CHECK(has("by total"));
	keys(ui, "jj");
	CHECK(ui->view.selected == 2 && ui->view.rows[2]->hash == 18);
	roll(ui, 30);
	draw(ui);
	CHECK(ui->view.rows[ui->view.selected]->hash == 18, "the selection follows its group");
	keys(ui, "g");
	CHECK(ui->view.selected == 0);
	keys(ui, "e");
	CHECK(has("engine: mysql") && !strcmp(ui->view.rows[0]->engine, "mysql"));
	keys(ui, "e");
	CHECK(has("engine: postgresql"));
	keys(ui, "e");
	CHECK(!has("engine: "));
	keys(ui, "/IN (");
	CHECK(ui->view.typing && ui->view.count == 4 && has("filter: IN ("), "%zu", ui->view.count);
	keys(ui, "\n");
	CHECK(!ui->view.typing && has("filter: IN ("));
	keys(ui, "/\x7f\x7f\x7f\x7f\n");
	CHECK(!has("filter: "));
	keys(ui, "//^insert|^select \\?$/\n");
	CHECK(has("insert") && has("select ?") && !has("select *"));
	top_ui_key(ui, SCREEN_ESCAPE);
	keys(ui, "w");
	CHECK(!has("BREAKDOWN"), "not recorded");
	ui->view.has_why = true;
	keys(ui, "w");
	CHECK(!strstr(ui->view.message ? ui->view.message : "", "recorded"));
	ui->view.width = 140;
	draw(ui);
	CHECK(has("BREAKDOWN") && has("50%"));
	keys(ui, "?");
	CHECK(ui->view.mode == TOP_HELP && has("Ctrl-L"));
	CHECK(!top_ui_key(ui, 'q') && ui->view.mode == TOP_LIST);
	CHECK(top_ui_key(ui, 'q'));
	ui_free(ui);
}

/* The interval and all since the start; a group that does not come again keeps its place. */
static void intervals(void)
{
	struct top_ui *ui = ui_new();

	roll(ui, 3);
	roll(ui, 2);
	draw(ui);
	CHECK(ui->view.count == 3 && ui->view.span_ns == 4000000000 &&
	      ui->view.rows[0]->calls == 2 && ui->view.rows[0]->hash == 2);
	keys(ui, "j\n");
	CHECK(ui->view.mode == TOP_DETAIL && has("0000000000000003") && has("Statement:"));
	keys(ui, "d");
	CHECK(has("not executed in this interval"));
	keys(ui, "q\n");
	CHECK(ui->view.count == 2 && ui->view.span_ns == 2000000000 &&
	      ui->view.rows[0]->calls == 1);
	CHECK(ui->view.total_ns == 3000000, "%llu", (unsigned long long)ui->view.total_ns);
	ui_free(ui);
}

/* The whole text, which lines of any width do not cut, and all bars of the histogram. */
static void detail(void)
{
	struct top_ui *ui = ui_new();
	struct top *top = top_new(TOP_ENTRIES);
	char joined[4096] = "";

	for (unsigned int i = 0; i < 100; i++)
		add(top, "mysql", 7, texts[7], 1000000 + i * 20000);
	top_ui_roll(ui, top, 1000000000);
	draw(ui);
	ui->view.width = 33;
	ui->view.height = 60;
	keys(ui, "\n");
	CHECK(has("calls") && has("100") && has("Time breakdown:"));
	for (size_t i = 0; i < frame.count; i++)
		strcat(joined, frame.text[i]);
	CHECK(strstr(joined, texts[7]));
	ui->view.height = 10;
	draw(ui);
	CHECK(!has("Durations:"));
	top_ui_key(ui, 'G');
	draw(ui);
	CHECK(has("ms  ") || has("##"), "%s", frame.text[8]);
	ui_free(ui);
}

static void short_numbers(void)
{
	static const struct {
		uint64_t ns;
		const char *want;
	} durations[] = {
		{ 0, "0" }, { 1, "1ns" }, { 999, "999ns" }, { 1000, "1.00us" }, { 12345, "12.3us" },
		{ 999999, "999us" }, { 1234567, "1.23ms" }, { 59999999999, "59.9s" },
		{ 3599999999999, "3599s" }, { 5400000000000, "1.50h" },
	}, numbers[] = {
		{ 0, "0" }, { 10, "0.01" }, { 999, "0.99" }, { 1000, "1.00" }, { 123456, "123" },
		{ 1234567, "1.23k" }, { 999999999, "999k" }, { 45600000000, "45.6M" },
	};
	char text[SHORT_TEXT];

	for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++)
		CHECK(!strcmp(short_duration(text, durations[i].ns), durations[i].want), "%s",
		      text);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		CHECK(!strcmp(short_number(text, numbers[i].ns), numbers[i].want), "%s", text);
	CHECK(!strcmp(short_count(text, 999999), "999999") &&
	      !strcmp(short_count(text, 1234567), "1.23M"));
	for (int i = 0; i < 1000000; i++) {
		uint64_t value = random_next() >> random_next() % 64;

		CHECK(strlen(short_duration(text, value)) < SHORT_TEXT - 8);
		CHECK(value > 3600000000000000 || strlen(text) <= 6, "%s", text);
		CHECK(strlen(short_number(text, value)) < SHORT_TEXT - 8);
		if (check_failures)
			return;
	}
}

static int decode(struct screen_input *input, const char *bytes)
{
	int key = SCREEN_NO_KEY;

	for (; *bytes; bytes++) {
		CHECK(key == SCREEN_NO_KEY);
		key = screen_decode(input, (unsigned char)*bytes);
	}
	CHECK(input->state == INPUT_PLAIN);
	return key;
}

/* Sequences of xterm, of the kernel's console and of rxvt. Unknown ones are ignored. */
static void key_sequences(void)
{
	static const struct {
		const char *bytes;
		int key;
	} cases[] = {
		{ "a", 'a' }, { "\n", '\n' }, { "\033[A", SCREEN_UP }, { "\033OB", SCREEN_DOWN },
		{ "\033[H", SCREEN_HOME }, { "\033[4~", SCREEN_END }, { "\033[5~", SCREEN_PAGE_UP },
		{ "\033[6~", SCREEN_PAGE_DOWN }, { "\033[17~", SCREEN_F6 },
		{ "\033[1;5A", SCREEN_UP }, { "\033[5;2~", SCREEN_PAGE_UP },
		{ "\033[[A", SCREEN_NO_KEY }, { "\033[200~", SCREEN_NO_KEY },
		{ "\033[?62;c", SCREEN_NO_KEY }, { "\033x", SCREEN_NO_KEY },
		{ "\033[99999999999999999999~", SCREEN_NO_KEY }, { "\033[\033[A", SCREEN_UP },
	};
	struct screen_input input = { 0 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK(decode(&input, cases[i].bytes) == cases[i].key, "%zu", i);
}

/* A line is as long as its part of the text, and never longer than the room. */
static void text_that_fits(void)
{
	for (size_t i = 0; i < TEXTS; i++)
		for (size_t room = 0; room < 60; room++) {
			size_t columns, len = strlen(texts[i]);
			size_t fit = escape_fit(texts[i], len, room, &columns);

			CHECK(columns <= room && escape_width(texts[i], fit) == columns);
			CHECK(fit == len || escape_width(texts[i], len) > room);
		}
}

/* As the C library has it, whose Unicode is older; it has a width for what is escaped here, too. */
static void widths(void)
{
	for (unsigned int code = 0x80; code < 0x40000; code++) {
		int want = wcwidth((wchar_t)code);

		if (want == 2 && code != 0x115f && code < 0x1f000 &&
		    (code < 0xfada || code > 0xfaff))
			CHECK(width_of(code) == 2, "U+%x", code);
		if (want == 0)
			CHECK(width_of(code) < 2, "U+%x", code);
		if (check_failures)
			return;
	}
	CHECK(!width_of(0x301) && !width_of(0x20dd) && !width_of(0x1d167) && !width_of(0xd7fb));
	CHECK(width_of(0xe9) == 1 && width_of(0x903) == 1 && width_of(0x1d400) == 1);
	CHECK(width_of(0x4dc0) == 2 && width_of(0x1f600) == 2 && width_of(0x1fad0) == 2);
	CHECK(width_of(0x2fffd) == 2 && width_of(0x40000) == 1);
}

int main(void)
{
	RUN(every_size);
	RUN(random_keys);
	RUN(many_groups);
	RUN(what_keys_do);
	RUN(intervals);
	RUN(detail);
	RUN(short_numbers);
	RUN(key_sequences);
	RUN(text_that_fits);
	RUN(widths);
	return check_done();
}
