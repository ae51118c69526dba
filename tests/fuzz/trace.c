/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A probe request of dbslower trace and records of the ring buffer for it, up to the lines that are
 * printed. Input: a byte of choices, the request up to a NUL, a byte for the type of each field,
 * then records, each preceded by its length.
 */
#include "probe/trace.c"

#include "cli/trace/print.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/valid.h"

#define TEXT_BYTES	64
#define RECORD_MAX	1024

static struct output out;

static void shown_hit(void *arg, const struct probe_hit *hit)
{
	struct trace_view *view = arg;

	for (int json = 0; json < 2; json++) {
		view->json = json;
		output_init(&out, -1);
		trace_show_hit(view, hit);
		REQUIRE(out.len && out.buf[out.len - 1] == '\n');
		REQUIRE(json ? is_json_line(out.buf, out.len) :
			       is_harmless(out.buf, out.len - 1), "%.*s", (int)out.len, out.buf);
	}
}

/* Return a probe as probe/request.c creates it, with types that arguments can have. */
static struct traced_probe probe_of(struct input *in, const struct trace_spec *spec)
{
	struct traced_probe probe = {
		.path = "/bin/a\33b", .name = "probe", .several = spec->request.all,
		.nfields = spec->request.nfields,
	};

	if (spec->request.all)
		probe.nfields = input_byte(in) % (REQUEST_FIELDS + 1);
	probe.texts = spec->request.texts;
	probe.lengths = spec->request.lengths;
	for (unsigned int i = 0; i < probe.nfields; i++) {
		uint8_t choice = input_byte(in);
		struct probe_request_field *field = &probe.fields[i];

		field->type = probe.texts >> i & 1 ? REQUEST_TEXT : choice % REQUEST_TEXT;
		if (!spec->request.all &&
		    expression_plain(spec->request.fields[i]) == EXPRESSION_COMM)
			field->type = REQUEST_COMM;
		field->size = field->type == REQUEST_REGISTER || field->type >= REQUEST_TEXT ? 8 :
			      field->type == REQUEST_FLOAT ? 4u << (choice >> 7) :
							     1u << (choice >> 6);
		field->is_signed = field->type == REQUEST_NUMBER && choice & 0x20;
	}
	return probe;
}

static void check_records(struct input *in, struct trace_spec *spec, uint8_t choice)
{
	struct traced_probe probe = probe_of(in, spec);
	struct trace_view view = { .out = &out, .specs = spec, .wall = choice & 2 };
	struct probe_trace h = {
		.config = { .text_bytes = TEXT_BYTES, .arg = &view, .hit = shown_hit },
		.text_size = (TEXT_BYTES + 2 + 7) & ~7u,
		.table = { .probes = &probe, .count = 1 },
	};
	size_t size;
	char *record;

	if (trace_view_init(&view, TEXT_BYTES))
		abort();
	while (in->left) {
		size = input_byte(in) * 8u % RECORD_MAX;
		record = malloc(size ? size : 1);
		input_bytes(in, record, size);
		if (choice & 4 && size >= 8)
			memcpy(record, (uint32_t[]){ EVENT_HIT, 0 }, 8);
		probe_trace_record(&h, record, size);
		free(record);
	}
	trace_view_free(&view);
}

static void check_shown(bool json)
{
	REQUIRE(out.len && out.buf[out.len - 1] == '\n');
	for (char *line = out.buf, *end; line < out.buf + out.len; line = end + 1) {
		end = memchr(line, '\n', (size_t)(out.buf + out.len - line));
		REQUIRE(json ? is_json_line(line, (size_t)(end + 1 - line)) :
			       is_harmless(line, (size_t)(end - line)), "%s", out.buf);
	}
}

/* Counts with keys from the input, which comes from a map that only the kernel writes. */
static void check_counts(struct input *in, struct trace_spec *spec, bool histogram)
{
	struct traced_probe probe = probe_of(in, spec);
	struct probe_trace_count counts[4] = { 0 };
	struct trace_view view = { .out = &out, .specs = spec };

	if (trace_view_init(&view, TEXT_BYTES))
		abort();
	for (int i = 0; i < 4; i++) {
		counts[i].probe = &probe;
		counts[i].count = input_byte(in) + 1u;
		input_bytes(in, &counts[i].key, sizeof(counts[i].key));
	}
	qsort(counts, 4, sizeof(counts[0]), hit_count_compare);
	for (int json = 0; json < 2; json++) {
		view.json = json;
		output_init(&out, -1);
		if (histogram)
			trace_show_histograms(&view, counts, 4);
		else
			trace_show_counts(&view, counts, 4);
		if (out.len)
			check_shown(json);
	}
	trace_view_free(&view);
}

/* The same bytes are records, then keys of counts. */
static void check_spec(const struct input *in, struct trace_spec *spec, const char *word,
		       uint8_t choice)
{
	struct trace_error error = { NULL, 0 };
	struct input rest = *in;

	check_records(&rest, spec, choice);
	if (trace_spec_countable(spec, word, &error)) {
		REQUIRE(error.why && error.at <= strlen(word), "%zu", error.at);
		return;
	}
	rest = *in;
	if (!spec->request.all)
		check_counts(&rest, spec, false);
	rest = *in;
	if (!trace_spec_histogram(spec, choice & 8 ? word : "arg1 % 3", &error))
		check_counts(&rest, spec, true);
	else
		REQUIRE(error.why && error.at <= strlen(word), "%zu", error.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct trace_spec spec;
	struct input in = { data, size };
	uint8_t choice = input_byte(&in);
	char *word = input_until(&in, '\0');
	struct trace_error error = { NULL, 0 };
	const char *first = strchr(word, ':'), *last = strrchr(word, ':');
	size_t begin = choice & 128 && last > first ? (size_t)(first + 1 - word) : 0;
	size_t path = choice & 64 && last ? (size_t)(last - word) - begin : 0;
	int err = trace_spec_parse(&spec, word, path ? begin : 0, path, choice & 1, &error);

	REQUIRE(!err || err == -EINVAL, "%d", err);
	if (err)
		REQUIRE(error.why && error.at <= strlen(word), "%zu", error.at);
	else
		check_spec(&in, &spec, word, choice);
	trace_spec_free(&spec);
	free(word);
	return 0;
}
