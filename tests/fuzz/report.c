/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The page of a report. Input: a byte of choices for each call, then numbers and texts that end in
 * a NUL. The page must be markup of our own only, in valid UTF-8, and have all statements.
 */
#include "cli/report/report.h"

#include <unistd.h>

#include "db/engine.h"
#include "db/locks/info.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/valid.h"
#include "tests/fuzz/valid_html.h"

#define CALLS 64

static void take_breakdown(struct input *in, struct event_breakdown *why)
{
	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		why->ns[i] = input_u64(in) >> (input_byte(in) & 63);
	why->used = input_byte(in);
}

/* Copy @name, cut if it is longer, to the @size bytes of @to. */
static void take_name(char *to, size_t size, const char *name)
{
	snprintf(to, size, "%s", name);
}

static void take_statement(struct report *report, struct input *in, uint8_t how)
{
	char *text = input_until(in, '\0'), *name = input_until(in, '\0');
	char *other = input_until(in, '\0');
	struct event_breakdown why = { .used = 0 };
	const struct engine engine = {
		.name = how & 1 ? name : "postgresql",
		.dialect = (enum fingerprint_dialect)(how % 3),
	};
	const struct server server = {
		.engine = &engine, .product = how & 2 ? other : engine.name,
	};
	struct who who = { .pid = input_byte(in), .connection = input_byte(in) & 3 };
	struct statement s = {
		.server = &server, .who = &who, .text = how & 4 ? text : NULL,
		.text_len = how & 4 ? strlen(text) : 0, .truncated = how & 8, .failed = how & 32,
		.running = how & 64, .has_rows = how & 16, .why = how & 32 ? &why : NULL,
	};

	take_name(who.user, sizeof(who.user), name);
	take_name(who.database, sizeof(who.database), how & 16 ? other : "");
	take_name(who.client, sizeof(who.client), other);
	s.wall_ns = input_u64(in) >> (input_byte(in) & 63);
	s.duration_ns = input_u64(in) >> (input_byte(in) & 63);
	s.rows = input_u64(in);
	s.error_code = input_byte(in);
	input_bytes(in, s.sqlstate, 5);
	take_breakdown(in, &why);
	report_statement(report, &s);
	free(text);
	free(name);
	free(other);
}

static void take_backend(struct input *in, struct lock_backend *backend)
{
	backend->text = input_until(in, '\0');
	backend->len = strlen(backend->text);
	backend->pid = input_byte(in) & 15;
	backend->connection = input_byte(in) & 3;
	backend->blocked_ns = input_u64(in);
	backend->valid = backend->pid & 1;
	backend->idle = backend->idle_valid = backend->pid & 2;
	backend->queued = backend->pid & 4;
}

static void take_wait(struct report *report, struct input *in, uint8_t how)
{
	static const struct engine engine = { .name = "postgresql" };
	static const struct server server = { .engine = &engine, .product = "postgresql" };
	char *kind = input_until(in, '\0');
	struct event_lock event = { .flags = input_byte(in) & 31, .pid = input_byte(in) & 15 };
	struct lock_info info = { .nholders = how >> 5, .more = how & 1, .known = how & 4 };
	struct who who = { .pid = event.pid };
	struct lock_wait wait = {
		.server = &server, .who = &who, .event = &event, .kind = kind,
		.info = how & 2 ? &info : NULL,
	};

	event.mode = input_byte(in);
	input_bytes(in, event.name, sizeof(event.name) - 1);
	input_bytes(in, info.object, sizeof(info.object) - 1);
	input_bytes(in, info.name, sizeof(info.name) - 1);
	wait.wall_ns = input_u64(in) >> (input_byte(in) & 63);
	wait.duration_ns = input_u64(in) >> (input_byte(in) & 63);
	wait.running = how & 8;
	wait.ncycle = input_byte(in) % (LOCK_CYCLE + 1);
	take_backend(in, &info.self);
	who.connection = wait.info ? info.self.connection : 0;
	for (unsigned int i = 0; i < info.nholders; i++)
		take_backend(in, &info.holders[i]);
	report_wait(report, &wait);
	free(info.self.text);
	for (unsigned int i = 0; i < info.nholders; i++)
		free(info.holders[i].text);
	free(kind);
}

static void take_server(struct report *report, struct input *in)
{
	char *one = input_until(in, '\0'), *two = input_until(in, '\0');

	report_server(report, one, two, input_byte(in), two, one);
	report_damage(report, two);
	free(one);
	free(two);
}

static void check_page(struct report *report)
{
	static struct output out;
	const char *at = "", *fault;
	FILE *file = tmpfile();
	size_t len;
	char *page;

	if (!file)
		abort();
	output_init(&out, fileno(file));
	REQUIRE(!report_write(report, &out));
	len = (size_t)lseek(fileno(file), 0, SEEK_END);
	page = malloc(len);
	if (!page || pread(fileno(file), page, len, 0) != (ssize_t)len)
		abort();
	fclose(file);
	fault = valid_html(page, len, &at);
	REQUIRE(!fault, "%s: %.100s", fault, at);
	for (size_t i = 0; i < len; i++)
		page[i] = page[i] == '\n' || page[i] == '\t' ? ' ' : page[i];
	REQUIRE(is_harmless(page, len));
	free(page);
}

static void take_events(struct report *report, struct input in)
{
	for (int i = 0; in.left && i < CALLS; i++) {
		uint8_t how = input_byte(&in);

		if (how % 5 < 3)
			take_statement(report, &in, input_byte(&in));
		else if (how % 5 < 4)
			take_wait(report, &in, input_byte(&in));
		else
			take_server(report, &in);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t how = input_byte(&in);
	char *name = input_until(&in, '\0');
	struct report_config config = { .host = name, .threshold = name, .source = name };
	struct report *report;

	if (how & 1)
		config.begin_ns = input_u64(&in);
	if (how & 2)
		config.end_ns = input_u64(&in);
	report = report_new(&config);
	if (!report)
		abort();
	take_events(report, in);
	REQUIRE(!report_again(report));
	take_events(report, in);
	check_page(report);
	report_free(report);
	free(name);
	return 0;
}
