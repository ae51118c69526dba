/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The reader of recordings. Input: a byte of choices; with bit 0 a whole file, else blocks: a byte
 * with the kind, two with the length of the events, the lowest first, and the events. Their heads
 * are made here: of version 1 with bit 1; else with our layout or, with bit 2, with one whose text
 * comes first, after two bytes with its length. All events are printed in every format, and what is
 * printed is checked. tests/fuzz/report.c and top.c do so for the page and the screen.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "cli/families.h"
#include "cli/format/field_json.h"
#include "cli/format/field_table.h"
#include "cli/format/locks_graph.h"
#include "cli/format/locks_json.h"
#include "cli/format/log.h"
#include "cli/format/otlp_metrics.h"
#include "db/discover/describe.h"
#include "db/recording/reader.h"
#include "tests/fuzz/event.h"
#include "tests/fuzz/valid.h"

#define FILE_MAX	(1u << 20)

static uint8_t file[FILE_MAX];
static size_t file_len;
static struct output out;
static struct locks_table table;
static struct locks_graph graph;
static struct field_table columns;
static struct otlp spans;
static struct metrics metrics;
static struct families families;

/* Begin an output; what does not fit in its buffer sets its error. */
static void output_begin(void)
{
	output_init(&out, -1);
}

static void check_json(void)
{
	REQUIRE(out.error || is_json_line(out.buf, out.len), "%.*s", (int)out.len, out.buf);
}

/* Check the lines of a text, each but for the first @skip tabs. Return their number. */
static size_t check_table(size_t skip)
{
	const char *line = out.buf, *end = out.buf + out.len, *next;
	size_t n = 0;

	for (; !out.error && line < end; line = next + 1, n++) {
		next = memchr(line, '\n', (size_t)(end - line));
		REQUIRE(next, "%.*s", (int)(end - line), line);
		if (line < next && *line == '\t')
			line += skip;
		REQUIRE(is_harmless(line, (size_t)(next - line)), "%.*s", (int)(end - line), line);
	}
	return n;
}

/* The entries of logs: lines of a text begin with a tab, and others are ours. */
static void show_logs(const struct statement *s)
{
	for (const struct format_log *log = format_logs; log->name; log++) {
		output_begin();
		log->statement(&out, s);
		check_table(1);
	}
}

static void show_statement(const struct statement *s)
{
	const struct family *family = families_find(&families, s);

	output_begin();
	field_json(&out, s);
	check_json();
	output_begin();
	field_table_row(&out, &columns, s);
	REQUIRE(check_table(0) <= 1);
	REQUIRE(is_harmless(describe_title(s->server->engine, ""),
			    strlen(describe_title(s->server->engine, ""))));
	if (!s->running && !s->transaction) {
		output_begin();
		otlp_statement(&spans, s);
		check_json();
		show_logs(s);
		metrics_add(&metrics, s, family->hash, family->fingerprint);
	}
	REQUIRE(s->start_ns + s->duration_ns >= s->start_ns);
	check_event(s->server, s->who);
	REQUIRE(!s->text == !s->text_len || s->text);
}

static void show_wait(const struct lock_wait *wait)
{
	output_begin();
	locks_json_wait(&out, wait);
	check_json();
	check_event(wait->server, wait->who);
	output_begin();
	locks_table_wait(&table, wait);
	check_table(0);
	locks_table_add(&table, wait);
	locks_graph_add(&graph, wait);
}

/* Print what comes at the end. */
static void show_sums(void)
{
	const struct metrics_tool tool = { .path = "x", .by_fingerprint = true, .why = true };

	output_begin();
	locks_table_sort(&table);
	for (size_t i = 0; i < table.sums.n; i++) {
		output_begin();
		locks_json_sum(&out, &locks_table_sums(&table)[i], 0, NULL);
		check_json();
	}
	output_begin();
	locks_table_print(&table);
	check_table(0);
	output_begin();
	locks_graph_print(&graph, &out);
	check_table(1);
	output_begin();
	openmetrics_put(&out, &metrics, &tool);
	check_table(0);
	output_begin();
	otlp_metrics_put(&spans, &metrics, &tool);
	check_json();
}

static void begin(void)
{
	static const char all[] = "time,pid,tid,ms,user,db,client,app,container,conn,query_id,"
				  "rows,query_plan,fetches,status,errno,sqlstate,engine,cpu,"
				  "query";
	const char *bad;
	size_t bad_len;

	output_begin();
	if (!columns.list.count && field_parse(&columns.list, all, &bad, &bad_len))
		abort();
	if (!spans.out && otlp_open(&spans, "-", &out))
		abort();
	if (metrics_open(&metrics))
		abort();
	locks_table_init(&table, &out, false);
	locks_graph_init(&graph);
	memset(&families, 0, sizeof(families));
}

static void end(void)
{
	show_sums();
	locks_table_free(&table);
	locks_graph_free(&graph);
	metrics_close(&metrics);
}

/* Read the length of what follows in the input. */
static size_t input_length(struct input *in)
{
	size_t len = input_byte(in);

	len |= (size_t)input_byte(in) << 8;
	return len < in->left ? len : in->left;
}

/* Append a block with these events. */
static void add_events(const struct crc32c *crc, struct recording_block block,
		       const uint8_t *events, size_t len)
{
	block.length = (uint32_t)len;
	block.crc = crc32c_of(crc, events, len);
	block_write(crc, &block, file + file_len);
	memcpy(file + file_len + RECORDING_HEAD, events, len);
	file_len += RECORDING_HEAD + len;
}

/* Append a block with the next events of the input. */
static void add_block(struct input *in, const struct crc32c *crc, uint64_t sequence,
		      struct recording_block block)
{
	size_t len;

	block.kind = RECORDING_START + input_byte(in) % 3;
	block.sequence = block.begin_ns = sequence;
	len = input_length(in);
	if (len > FILE_MAX - file_len || FILE_MAX - file_len - len < RECORDING_HEAD)
		len = in->left = 0;
	add_events(crc, block, in->at, len);
	in->at += len;
	in->left -= len;
}

/* Return what all heads have. Append a start with a layout, if @choices ask for it. */
static struct recording_block first_block(struct input *in, const struct crc32c *crc,
					  uint8_t choices)
{
	struct recording_block block = { .version = 2, .id = 5, .end_ns = UINT64_MAX };
	struct encode encode;
	char text[LAYOUT_TEXT];
	size_t len = layout_write(text);

	if (choices & 2)
		block.version = 1;
	else
		block.layout = crc32c_of(crc, text, len);
	if (block.version == 1 || !(choices & 4))
		return block;
	len = input_length(in);
	len = len < sizeof(text) ? len : sizeof(text) - 1;
	memcpy(text, in->at, len);
	text[len] = '\0';
	in->at += len;
	in->left -= len;
	encode_open(&encode);
	encode_option(&encode, LAYOUT_OPTION, text);
	block.layout = crc32c_of(crc, text, strlen(text));
	block.kind = RECORDING_START;
	add_events(crc, block, encode.events.data, encode.events.len);
	encode_close(&encode);
	return block;
}

static void read_all(struct reader *reader)
{
	struct decode_event *event;
	size_t count = 0;
	int ret;

	while ((ret = reader_next(reader, &event)) > 0) {
		REQUIRE(count++ < FILE_MAX);
		if (event->type == RECORDING_STATEMENT)
			show_statement(&event->statement);
		else if (event->type == RECORDING_WAIT)
			show_wait(&event->wait);
		else
			REQUIRE(event->type == RECORDING_OPTIONS ||
				event->type == RECORDING_STATUS);
	}
	REQUIRE(!ret, "%d", ret);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct reader reader;
	struct input in = { data, size };
	uint8_t choices = input_byte(&in);
	static int fd = -1;
	struct crc32c crc;

	if (fd < 0)
		fd = memfd_create("recording", 0);
	crc32c_init(&crc);
	file_len = 0;
	if (choices & 1) {
		file_len = in.left < FILE_MAX ? in.left : FILE_MAX;
		memcpy(file, in.at, file_len);
	} else {
		const struct recording_block block = first_block(&in, &crc, choices);

		for (uint64_t i = 1; in.left && file_len + RECORDING_HEAD < FILE_MAX; i++)
			add_block(&in, &crc, i, block);
	}
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, file, file_len, 0) != (ssize_t)file_len)
		abort();
	begin();
	table.start_ns = choices;
	if (!reader_open(&reader, fd, NULL, NULL)) {
		read_all(&reader);
		reader_seek(&reader, choices);
		read_all(&reader);
	}
	end();
	reader_close(&reader);
	return 0;
}
