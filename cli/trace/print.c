// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/trace/print.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/utf8.h"
#include "cli/format/escape.h"
#include "cli/format/histogram.h"
#include "cli/format/json.h"
#include "cli/trace/stack.h"

#define VALUE_SIZE	1024		/* of a formatted number with its padding */
/* Numbers beyond these limits are shown as addresses, in hexadecimal. */
#define SMALL		0xffffffffull
#define SMALL_NEGATIVE	(-65536)
#define LATENCY_WIDTH	12

int trace_view_init(struct trace_view *view, uint32_t text_bytes)
{
	view->size = TRACE_FORMAT + REQUEST_FIELDS * ((size_t)text_bytes + 4 + VALUE_SIZE);
	view->text = malloc(view->size);
	view->symbols = view->stacks ? symbolizer_new() : NULL;
	return view->text && !view->stacks == !view->symbols ? 0 : -ENOMEM;
}

void trace_view_free(struct trace_view *view)
{
	free(view->text);
	view->text = NULL;
	symbolizer_free(view->symbols);
	view->symbols = NULL;
}

static void put(struct trace_view *view, const char *bytes, size_t len)
{
	if (len > view->size - view->len)
		len = view->size - view->len;
	/* Most pieces are a few bytes: see copy_piece() in output.c. */
	if (len < 16)
		for (size_t i = 0; i < len; i++)
			view->text[view->len + i] = bytes[i];
	else
		memcpy(view->text + view->len, bytes, len);
	view->len += len;
}

static double value_float(uint64_t value, unsigned int size)
{
	uint32_t low = (uint32_t)value;
	double d;
	float f;

	if (size == 4) {
		memcpy(&f, &low, sizeof(f));
		return (double)f;
	}
	memcpy(&d, &value, sizeof(d));
	return d;
}

/* Round towards 0 and saturate. NaN becomes the least number. */
static int64_t value_whole(double value)
{
	if (value >= 0x1p63)
		return INT64_MAX;
	return value > -0x1p63 ? (int64_t)value : INT64_MIN;
}

/* Return the lowest @bits of @value, extended to 64. */
static uint64_t value_cut(uint64_t value, unsigned int bits, bool is_signed)
{
	unsigned int unused = bits && bits < 64 ? 64 - bits : 0;

	value <<= unused;
	return is_signed ? (uint64_t)((int64_t)value >> unused) : value >> unused;
}

/* Format a value by its type. */
static int format_by_type(char *buf, const struct probe_request_field *type, uint64_t value)
{
	bool is_signed = type->is_signed;

	if (type->type == REQUEST_FLOAT)
		return snprintf(buf, VALUE_SIZE, "%g", value_float(value, type->size));
	if (type->type == REQUEST_REGISTER)
		is_signed = (int64_t)value < 0 && (int64_t)value >= SMALL_NEGATIVE;
	if (is_signed)
		return snprintf(buf, VALUE_SIZE, "%" PRId64, (int64_t)value);
	return snprintf(buf, VALUE_SIZE, value > SMALL ? "0x%" PRIx64 : "%" PRIu64, value);
}

/* Format a number by the conversion of @field. */
static int format_number(char *buf, const struct trace_field *field,
			 const struct probe_request_field *type,
			 uint64_t value)
{
	/* A register has no type: the format has its size. */
	unsigned int bits = type->type == REQUEST_REGISTER ? field->bits : type->size * 8;
	char format[24], pointer[32], c = field->conversion;
	bool is_signed;

	if (type->type == REQUEST_FLOAT) {
		value = (uint64_t)value_whole(value_float(value, type->size));
		bits = 64;
	}
	if (c == 'c') {
		snprintf(format, sizeof(format), "%%%sc", field->flags);
		return snprintf(buf, VALUE_SIZE, format, (int)(value & 0xff));
	}
	if (c == 'p') {
		snprintf(pointer, sizeof(pointer), "0x%" PRIx64, value);
		snprintf(format, sizeof(format), "%%%ss", field->flags);
		return snprintf(buf, VALUE_SIZE, format, pointer);
	}
	is_signed = c == 'd' && (type->is_signed || type->type == REQUEST_REGISTER);
	snprintf(format, sizeof(format), "%%%sll%c", field->flags, c);
	return snprintf(buf, VALUE_SIZE, format, (long long)value_cut(value, bits, is_signed));
}

static void put_decimal(struct trace_view *view, uint64_t value, bool is_signed)
{
	bool negative = is_signed && (int64_t)value < 0;
	char buf[OUTPUT_NUMBER];

	put(view, "-", negative);
	put(view, buf, output_format(buf, negative ? -value : value, 0));
}

static void put_hex(struct trace_view *view, uint64_t value)
{
	char buf[18] = "0x";
	size_t len = 2;

	for (int shift = 60; shift >= 0; shift -= 4)
		if (value >> shift || !shift)
			buf[len++] = HEX_DIGITS[value >> shift & 15];
	put(view, buf, len);
}

/* The common case, unpadded decimal numbers, without the half microsecond of printf(). */
static bool put_plain(struct trace_view *view, const struct trace_field *field,
		      const struct probe_request_field *type, uint64_t value)
{
	char c = field ? field->conversion : 0;

	if (type->type != REQUEST_NUMBER || (field && *field->flags))
		return false;
	if ((!c || c == 'd') && type->is_signed)
		put_decimal(view, value, true);
	else if (!c && value > SMALL)
		put_hex(view, value);
	else if (!c || c == 'u' || (c == 'd' && type->size < 8))
		put_decimal(view, value_cut(value, type->size * 8, false), false);
	else
		return false;
	return true;
}

static void put_number(struct trace_view *view, const struct trace_field *field,
		       const struct probe_request_field *type, uint64_t value)
{
	char buf[VALUE_SIZE];
	int n;

	if (put_plain(view, field, type, value))
		return;
	n = field && field->conversion ? format_number(buf, field, type, value) :
					 format_by_type(buf, type, value);
	if (n > 0)
		put(view, buf, (size_t)n);
}

/* Append a text, padded as the format has it. Without one, @readable: its address is 0. */
static void put_text(struct trace_view *view, const struct trace_field *field,
		     const struct probe_hit_text *text, bool readable)
{
	const char *flags = field ? field->flags : "", *bytes = text->bytes;
	size_t len = text->cut ? utf8_whole(bytes, text->len) : text->len, width, spaces;
	bool left = *flags == '-';

	if (!text->known) {
		bytes = readable ? "(null)" : "[unreadable]";
		len = strlen(bytes);
	}
	width = strtoull(flags + strspn(flags, "-0# +"), NULL, 10);
	spaces = width > len ? width - len : 0;
	for (size_t i = 0; !left && i < spaces; i++)
		put(view, " ", 1);
	put(view, bytes, len);
	if (text->cut)
		put(view, "...", 3);
	for (size_t i = 0; left && i < spaces; i++)
		put(view, " ", 1);
}

bool trace_unreadable(const struct probe_hit *hit, unsigned int i)
{
	bool text = hit->probe->texts >> i & 1;

	return hit->unknown >> i & 1 || (text && !hit->texts[i].known && hit->values[i]);
}

static bool is_text(const struct traced_probe *probe, unsigned int i)
{
	return probe->fields[i].type >= REQUEST_TEXT;
}

/* Return the field of @spec; NULL if the request names none. */
static const struct trace_field *field_of(const struct trace_spec *spec, unsigned int i)
{
	return spec->request.all ? NULL : &spec->fields[i];
}

static bool is_hidden(const struct trace_spec *spec, unsigned int i)
{
	const struct trace_field *field = field_of(spec, i);

	return field && trace_field_hidden(field);
}

static void put_value(struct trace_view *view, const struct trace_field *field,
		      const struct probe_hit *hit, unsigned int i)
{
	static const struct probe_hit_text unknown = { .bytes = "?", .len = 1, .known = true };

	if (is_text(hit->probe, i))
		put_text(view, field, &hit->texts[i], !trace_unreadable(hit, i));
	else if (hit->unknown >> i & 1 || hit->probe->fields[i].type == REQUEST_UNKNOWN)
		put_text(view, field, &unknown, true);
	else
		put_number(view, field, &hit->probe->fields[i], hit->values[i]);
}

/* Append a value as without a format. Texts are in quotes. */
static void put_quoted(struct trace_view *view, const struct trace_field *field,
		       const struct probe_hit *hit, unsigned int i)
{
	bool quoted = is_text(hit->probe, i) && hit->texts[i].known;

	put(view, "\"", quoted);
	put_value(view, field, hit, i);
	put(view, "\"", quoted);
}

/* Append name=value. */
static void put_named(struct trace_view *view, const struct trace_spec *spec,
		      const struct probe_hit *hit, unsigned int i)
{
	const struct trace_field *field = field_of(spec, i);
	char name[16];

	if (view->len)
		put(view, " ", 1);
	if (field)
		put(view, field->name, field->name_len);
	else if (hit->probe->on_return)
		put(view, "retval", 6);
	else
		put(view, name, (size_t)snprintf(name, sizeof(name), "arg%u", i + 1));
	put(view, "=", 1);
	put_quoted(view, field, hit, i);
}

/* Format the message of @hit, from field @first on, to ->text. */
static void put_message(struct trace_view *view, const struct probe_hit *hit, unsigned int first)
{
	const struct trace_spec *spec = &view->specs[hit->probe->request];

	view->len = 0;
	for (unsigned int i = first; i < hit->probe->nfields; i++) {
		if (spec->has_format)
			put(view, spec->format + spec->piece[i],
			    spec->piece[i + 1] - spec->piece[i]);
		if (is_hidden(spec, i))
			continue;
		if (spec->has_format)
			put_value(view, &spec->fields[i], hit, i);
		else
			put_named(view, spec, hit, i);
	}
	if (spec->has_format) {
		size_t last = spec->piece[hit->probe->nfields];

		put(view, spec->format + last, spec->piece[hit->probe->nfields + 1] - last);
	}
}

static void show_time(const struct trace_view *view, const struct probe_hit *hit)
{
	char buf[OUTPUT_NUMBER];
	uint64_t us = hit->time_ns > view->start_ns ? (hit->time_ns - view->start_ns) / 1000 : 0;
	size_t len = view->wall ? output_clock(buf, hit->wall_ns, 6) : output_format(buf, us, 6);

	output_bytes(view->out, buf, len);
	output_spaces(view->out, len < 15 ? 16 - len : 1);
}

static void show_latency(struct output *out, uint64_t ns)
{
	char buf[OUTPUT_NUMBER];
	size_t len = output_format(buf, ns, 3);

	output_spaces(out, len < LATENCY_WIDTH ? LATENCY_WIDTH - len : 0);
	output_bytes(out, buf, len);
	output_char(out, ' ');
}

static void show_id(struct output *out, uint32_t id)
{
	char buf[OUTPUT_NUMBER];
	size_t len = output_format(buf, id, 0);

	output_bytes(out, buf, len);
	output_spaces(out, len < 7 ? 8 - len : 1);
}

/* Append a foreign name, padded. */
static void show_name(struct output *out, const char *name, size_t width)
{
	size_t len = strlen(name), columns = escape_width(name, len);

	escape_terminal(out, name, len, false);
	output_spaces(out, columns < width ? width - columns : 0);
}

/* Append the name of a probe, and of its file if another one has the same, padded. */
static void show_probe(struct output *out, const struct traced_probe *probe, size_t width)
{
	const char *slash, *file;
	size_t columns;

	if (probe->several) {
		slash = strrchr(probe->path, '/');
		file = slash ? slash + 1 : probe->path;
		columns = escape_width(file, strlen(file)) + 1;
		show_name(out, file, 0);
		output_char(out, ':');
		width = columns < width ? width - columns : 0;
	}
	show_name(out, probe->name, width);
}

void trace_show_header(struct trace_view *view)
{
	if (view->json)
		return;
	output_printf(view->out, "%-15s %-7s %-7s %-15s ", view->wall ? "TIME" : "TIME(s)", "PID",
		      "TID", "COMM");
	if (view->latency)
		output_printf(view->out, "%*s ", LATENCY_WIDTH, "LAT(us)");
	output_printf(view->out, "%-16s %s\n", "FUNC", "-");
}

/* Append a number in JSON, which has neither hexadecimal numbers nor NaN. */
static void json_value(struct trace_view *view, const struct trace_field *field,
		       const struct probe_request_field *type, uint64_t value)
{
	double number = value_float(value, type->size);

	if (type->type == REQUEST_REGISTER && field && field->conversion)
		value = value_cut(value, field->bits, field->conversion == 'd');
	if (type->type == REQUEST_UNKNOWN || (type->type == REQUEST_FLOAT && !isfinite(number)))
		output_string(view->out, "null");
	else if (type->type == REQUEST_FLOAT)
		output_printf(view->out, "%.17g", number);
	else if (type->is_signed && (int64_t)value < 0 &&
		 (!field || !field->conversion || field->conversion == 'd'))
		output_printf(view->out, "%" PRId64, (int64_t)value);
	else
		output_u64(view->out, value);
}

static void json_text(struct output *out, const char *text, size_t len, bool cut)
{
	output_char(out, '"');
	escape_json(out, text, len, cut);
	output_char(out, '"');
}

/* Append value @i, or null. */
static void json_field(struct trace_view *view, const struct probe_hit *hit, unsigned int i)
{
	const struct probe_hit_text *text = &hit->texts[i];

	if (is_text(hit->probe, i) ? !text->known : hit->unknown >> i & 1)
		output_string(view->out, "null");
	else if (is_text(hit->probe, i))
		json_text(view->out, text->bytes, text->len, text->cut);
	else
		json_value(view, field_of(&view->specs[hit->probe->request], i),
			   &hit->probe->fields[i], hit->values[i]);
}

/* Append the values from field @first on that are shown. */
static void json_fields(struct trace_view *view, const struct probe_hit *hit, unsigned int first)
{
	const char *before = "";

	for (unsigned int i = first; i < hit->probe->nfields; i++) {
		if (is_hidden(&view->specs[hit->probe->request], i))
			continue;
		output_string(view->out, before);
		json_field(view, hit, i);
		before = ",";
	}
}

/* Append the members with the file, the provider and the name of a probe. */
static void json_probe_names(struct output *out, const struct traced_probe *probe)
{
	json_string(out, ",\"file\":\"", probe->path);
	json_string(out, ",\"provider\":\"", probe->provider);
	json_string(out, probe->provider ? ",\"probe\":\"" : ",\"function\":\"", probe->name);
	if (probe->on_return)
		output_string(out, ",\"return\":true");
}

static void json_hit(struct trace_view *view, const struct probe_hit *hit)
{
	const struct traced_probe *probe = hit->probe;
	struct output *out = view->out;
	bool cut = false;

	json_head(out, "{\"type\":\"hit\",\"time\":\"", hit->wall_ns, NULL);
	json_number(out, ",\"pid\":", hit->pid);
	json_number(out, ",\"tid\":", hit->tid);
	json_string(out, ",\"comm\":\"", hit->comm);
	json_probe_names(out, probe);
	if (view->latency)
		json_ms(out, ",\"latency_ms\":", hit->latency_ns);
	output_string(out, ",\"args\":[");
	json_fields(view, hit, 0);
	for (unsigned int i = 0; i < probe->nfields; i++)
		cut |= hit->texts[i].cut;
	output_string(out, cut ? "],\"truncated\":true,\"text\":" : "],\"text\":");
	json_text(out, view->text, view->len, false);
	if (view->symbols)
		trace_show_stack(out, true, view->symbols, hit);
	output_string(out, "}\n");
}

void trace_show_hit(struct trace_view *view, const struct probe_hit *hit)
{
	struct output *out = view->out;

	put_message(view, hit, 0);
	if (view->json) {
		json_hit(view, hit);
		return;
	}
	show_time(view, hit);
	show_id(out, hit->pid);
	show_id(out, hit->tid);
	show_name(out, hit->comm, 15);
	output_char(out, ' ');
	if (view->latency)
		show_latency(out, hit->latency_ns);
	show_probe(out, hit->probe, view->len ? 16 : 0);
	if (view->len) {
		output_char(out, ' ');
		escape_terminal(out, view->text, view->len, false);
	}
	output_char(out, '\n');
	if (view->symbols)
		trace_show_stack(out, false, view->symbols, hit);
}

/* The largest count first. */
static int by_count(const void *pa, const void *pb)
{
	const struct probe_trace_count *a = pa, *b = pb;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return hit_count_order(a, b);
}

static void show_count(struct trace_view *view, const struct probe_trace_count *count)
{
	const struct traced_probe *probe = count->probe;
	const struct trace_spec *spec = &view->specs[probe->request];
	struct output *out = view->out;
	unsigned int shown = 0, only = 0;
	struct probe_hit hit;

	probe_trace_count_values(count, &hit);
	for (unsigned int i = 0; i < probe->nfields; i++) {
		only = is_hidden(spec, i) ? only : i;
		shown += !is_hidden(spec, i);
	}
	if (view->json) {
		json_head(out, "{\"type\":\"hit_count\",\"time\":\"", view->wall_ns, NULL);
		json_number(out, ",\"count\":", count->count);
		json_probe_names(out, probe);
		output_string(out, ",\"args\":[");
		json_fields(view, &hit, 0);
		output_string(out, "]}\n");
		return;
	}
	view->len = 0;
	if (shown == 1 && !spec->has_format)
		put_quoted(view, &spec->fields[only], &hit, only);
	else
		put_message(view, &hit, 0);
	output_printf(out, "%10llu ", (unsigned long long)count->count);
	show_probe(out, probe, view->len ? 16 : 0);
	if (view->len) {
		output_char(out, ' ');
		escape_terminal(out, view->text, view->len, false);
	}
	output_char(out, '\n');
}

void trace_show_counts(struct trace_view *view, struct probe_trace_count *counts, size_t n)
{
	qsort(counts, n, sizeof(*counts), by_count);
	if (!view->json)
		output_printf(view->out, "%10s %-16s %s\n", "COUNT", "FUNC", "-");
	for (size_t i = 0; i < n; i++)
		show_count(view, &counts[i]);
}

/* Append the histogram @slots of the hits that have the values of @count. */
static void show_histogram(struct trace_view *view, const struct probe_trace_count *count,
			   const struct histogram_slots *slots, uint64_t total)
{
	const struct traced_probe *probe = count->probe;
	const struct trace_field *field = &view->specs[probe->request].fields[0];
	struct output *out = view->out;
	struct probe_hit hit;
	char title[20];

	probe_trace_count_values(count, &hit);
	snprintf(title, sizeof(title), "%.*s", (int)field->name_len, field->name);
	if (view->json) {
		json_head(out, "{\"type\":\"hit_histogram\",\"time\":\"", view->wall_ns, NULL);
		json_probe_names(out, probe);
		output_string(out, ",\"expression\":");
		json_text(out, field->name, view->by_latency ? strlen("latency") : field->name_len,
			  false);
		output_string(out, ",\"args\":[");
		json_fields(view, &hit, 1);
		json_number(out, "],\"count\":", total);
		histogram_buckets(out, slots, view->by_latency ? 1000 : 0);
		output_string(out, "}\n");
		return;
	}
	put_message(view, &hit, 1);
	output_char(out, '\n');
	show_probe(out, probe, 0);
	output_string(out, view->len ? " " : "");
	escape_terminal(out, view->text, view->len, false);
	output_string(out, ":\n");
	for (char *c = title; *c; c++)
		*c = *c < ' ' || *c > '~' ? '?' : *c;
	histogram_bars(out, slots, title);
}

void trace_show_histograms(struct trace_view *view, const struct probe_trace_count *counts,
			   size_t n)
{
	for (size_t i = 0, first; i < n;) {
		struct histogram_slots slots = { .negative = 0 };
		uint64_t total = 0;

		for (first = i; i < n; i++) {
			const struct probe_hit_key *key = &counts[i].key;

			if (hit_count_order(&counts[first], &counts[i]))
				break;
			if (key->slot == HIT_UNKNOWN)
				continue;
			total += counts[i].count;
			if (key->slot == HIT_NEGATIVE)
				slots.negative += counts[i].count;
			else
				slots.count[key->slot % HISTOGRAM_SLOTS] += counts[i].count;
		}
		if (total)
			show_histogram(view, &counts[first], &slots, total);
	}
}
