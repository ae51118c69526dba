/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cli/: output, escaping, columns, JSON, the command line. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "bpf/event.h"
#include "cli/format/fields.h"
#include "cli/command.h"
#include "cli/format/escape.h"
#include "cli/option/help.h"
#include "cli/loop.h"
#include "sql/glob.h"
#include "cli/format/field_json.h"
#include "cli/format/field_table.h"
#include "cli/format/summary.h"
#include "cli/option/option.h"
#include "cli/source.h"
#include "cli/output.h"
#include "tests/unit/check.h"
#include "tests/unit/random.h"

#define BYTES(literal) literal, sizeof(literal) - 1
#define FUZZ_ROUNDS 20000

/* An output to a file in memory, and the text read back from it. */
static struct output sink;
static char seen[1 << 21];
static size_t seen_len;

static void sink_start(void)
{
	if (!sink.fd)
		output_init(&sink, memfd_create("sink", MFD_CLOEXEC));
	output_init(&sink, sink.fd);
	if (ftruncate(sink.fd, 0) || lseek(sink.fd, 0, SEEK_SET))
		abort();
}

/* Read the output since sink_start() into @seen, with a NUL. Return @seen. */
static const char *sink_take(void)
{
	ssize_t n;

	CHECK(!output_flush(&sink), "%d", sink.error);
	n = pread(sink.fd, seen, sizeof(seen) - 1, 0);
	seen_len = n < 0 ? 0 : n;
	seen[seen_len] = 0;
	return seen;
}

/* Fill @buf with random bytes, mostly pieces of special sequences. Return the length. */
static size_t random_text(char *buf, size_t size)
{
	static const char *const pieces[] = {
		"select 1", "\n\t", "\xc3\xa9", "\xe2\x80\xae", "\xf0\x9f\x98\x80", "\"", "\\",
		"\xed\xa0\x80", "\xc0\x80", "\xf4\x90\x80\x80", "\xe2\x80", "\xf0\x9f", "\xc2\x85",
		"\x1b[2J", "\xf3\xa0\x80\xa1", "\xef\xbb\xbf", "\x7f", "\x80", "\xff", "'; --",
	};
	size_t want = random_next() % size, len = 0;

	while (len < want) {
		const char *piece = pieces[random_next() % ARRAY_SIZE(pieces)];
		size_t n = strlen(piece);

		if (random_next() % 3 == 0) {
			buf[len++] = random_next();
			continue;
		}
		n = n > want - len ? want - len : n;
		memcpy(buf + len, piece, n);
		len += n;
	}
	return len;
}

/* Return the length of the UTF-8 character at @p, 0 if invalid. Independent of escape.c. */
static int utf8_length(const unsigned char *p, size_t left, unsigned int *code)
{
	int n = p[0] < 0x80	  ? 1
		: p[0] >> 5 == 6  ? 2
		: p[0] >> 4 == 14 ? 3
		: p[0] >> 3 == 30 ? 4
				  : 0;
	static const unsigned int least[] = { 0, 0, 0x80, 0x800, 0x10000 };

	if (!n || (size_t)n > left)
		return 0;
	*code = n == 1 ? p[0] : p[0] & ((1 << (7 - n)) - 1);
	for (int i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (p[i] & 0x3f);
	}
	if (*code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000))
		return 0;
	return n;
}

/* Return whether the text is UTF-8 without control characters and bidirectional formatting. */
static bool is_harmless(const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text;
	unsigned int code;
	int n;

	for (size_t i = 0; i < len; i += n) {
		n = utf8_length(p + i, len - i, &code);
		if (!n || code < 0x20 || (code >= 0x7f && code < 0xa0))
			return false;
		if ((code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
		    (code >= 0x2066 && code <= 0x2069) || code == 0x61c || code == 0xfeff ||
		    (code >= 0xe0000 && code <= 0xe0fff))
			return false;
	}
	return true;
}

/* --- output ------------------------------------------------------------- */

static void output_numbers(void)
{
	static const struct {
		uint64_t value;
		unsigned int decimals;
		const char *want;
	} cases[] = {
		{ 0, 0, "0" },
		{ 7, 0, "7" },
		{ UINT64_MAX, 0, "18446744073709551615" },
		{ 0, 6, "0.000000" },
		{ 1, 6, "0.000001" },
		{ 999999, 6, "0.999999" },
		{ 1000000, 6, "1.000000" },
		{ 2002183456, 6, "2002.183456" },
		{ UINT64_MAX, 6, "18446744073709.551615" },
		{ 5, 3, "0.005" },
		{ 12345, 3, "12.345" },
		{ UINT64_MAX, 18, "18.446744073709551615" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		sink_start();
		output_fixed(&sink, cases[i].value, cases[i].decimals);
		sink_take();
		CHECK(!strcmp(seen, cases[i].want), "%s, not %s", seen, cases[i].want);
	}
	sink_start();
	output_u64(&sink, 42);
	output_char(&sink, '|');
	output_spaces(&sink, 70);
	output_printf(&sink, "|%d %s", -3, "x");
	CHECK(strlen(sink_take()) == 78, "%zu", seen_len);
	CHECK(!strncmp(seen, "42|   ", 6) && !strcmp(seen + 73, "|-3 x"), "%s", seen);
}

static void output_printf_is_bounded(void)
{
	char *big = malloc(5001);

	memset(big, 'x', 5000);
	big[5000] = 0;
	sink_start();
	output_printf(&sink, "%s", big);
	sink_take();
	CHECK(seen_len == 1023, "%zu", seen_len);
	free(big);
}

static void output_sizes(void)
{
	static const size_t sizes[] = {
		0, 1, OUTPUT_SIZE - 1, OUTPUT_SIZE, OUTPUT_SIZE + 1, 300000
	};
	char *big = malloc(300000);

	for (size_t i = 0; i < 300000; i++)
		big[i] = i * 7 % 251;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(sizes); j++) {
			sink_start();
			output_bytes(&sink, big, sizes[i]);
			output_bytes(&sink, big, sizes[j]);
			sink_take();
			CHECK(seen_len == sizes[i] + sizes[j], "%zu", seen_len);
			CHECK(!memcmp(seen, big, sizes[i]) &&
			      !memcmp(seen + sizes[i], big, sizes[j]), "%zu %zu", i, j);
		}
	}
	for (size_t size = 0; size < 600; size++) {
		sink_start();
		output_bytes(&sink, big + size, size);
		output_char(&sink, '.');
		sink_take();
		CHECK(seen_len == size + 1 && !memcmp(seen, big + size, size) && seen[size] == '.',
		      "%zu", size);
	}
	free(big);
}

static void output_errors_stick(void)
{
	static struct output out;
	int fds[2];

	signal(SIGPIPE, SIG_IGN);
	CHECK(!pipe(fds), "%d", errno);
	close(fds[0]);
	output_init(&out, fds[1]);
	output_string(&out, "x");
	CHECK(output_flush(&out) == -EPIPE, "%d", out.error);
	for (int i = 0; i < 100000; i++)
		output_string(&out, "more than fits");
	CHECK(output_flush(&out) == -EPIPE, "%d", out.error);
	close(fds[1]);
	output_init(&out, open("/dev/full", O_WRONLY | O_CLOEXEC));
	output_string(&out, "x");
	CHECK(output_flush(&out) == -ENOSPC, "%d", out.error);
	CHECK(output_flush(&out) == -ENOSPC, "%d", out.error);
	close(out.fd);
	output_init(&out, -1);
	CHECK(output_flush(&out) == 0, "nothing to write is no error");
	output_char(&out, 'x');
	CHECK(output_flush(&out) == -EBADF, "%d", out.error);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* Read all of @fd slowly and exit, with status 0 if it is the pattern that was sent. */
static void slow_reader(int fd, size_t want)
{
	unsigned char buf[5000];
	size_t got = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < n; i++, got++) {
			if (buf[i] != got * 13 % 251)
				_exit(1);
		}
		usleep(300);
	}
	_exit(got == want ? 0 : 2);
}

/* Write to a pipe that is full most of the time, interrupted by signals. */
static void output_to_slow_pipe(int nonblock)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval often = { { 0, 500 }, { 0, 500 } }, never = { { 0, 0 }, { 0, 0 } };
	static struct output out;
	size_t want = 700000;
	int fds[2], status = -1;
	pid_t pid;

	CHECK(!pipe(fds), "%d", errno);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		close(fds[1]);
		slow_reader(fds[0], want);
	}
	close(fds[0]);
	fcntl(fds[1], F_SETFL, nonblock);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	output_init(&out, fds[1]);
	for (size_t i = 0; i < want; i++)
		output_char(&out, i * 13 % 251);
	CHECK(!output_flush(&out), "%d", out.error);
	setitimer(ITIMER_REAL, &never, NULL);
	close(fds[1]);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	CHECK(!status, "%x", status);
}

static void output_waits(void)
{
	output_to_slow_pipe(0);
	output_to_slow_pipe(O_NONBLOCK);
}

/* --- escape ------------------------------------------------------------- */

static void terminal_table(void)
{
	static const struct {
		const char *text;
		size_t len;
		bool cut;
		const char *want;
		size_t width;
	} cases[] = {
		{ BYTES(""), false, "", 0 },
		{ BYTES("select 1"), false, "select 1", 8 },
		{ BYTES("a\n\t\r\v\fb"), false, "a b", 3 },
		{ BYTES("a\n \nb"), false, "a   b", 5 },
		{ BYTES("\na\n"), false, " a ", 3 },
		{ BYTES("\x1b[2J\x07\x7f"), false, "\\x1b[2J\\x07\\x7f", 15 },
		{ BYTES("a\0b"), false, "a\\x00b", 6 },
		{ BYTES("\"\\'"), false, "\"\\'", 3 },
		{ BYTES("caf\xc3\xa9"), false, "caf\xc3\xa9", 4 },
		{ BYTES("\xe6\x97\xa5\xe6\x9c\xac"), false, "\xe6\x97\xa5\xe6\x9c\xac", 4 },
		{ BYTES("e\xcc\x81"), false, "e\xcc\x81", 1 },
		{ BYTES("\xf0\x9f\x98\x80"), false, "\xf0\x9f\x98\x80", 2 },
		{ BYTES("\xc2\x9b"
			"1m"),
		  false, "\\u{009b}1m", 10 },
		{ BYTES("\x9b"
			"1m"),
		  false, "\\x9b1m", 6 },
		{ BYTES("\xe2\x80\xae|\xe2\x81\xa6|\xe2\x80\x8f"), false,
		  "\\u{202e}|\\u{2066}|\\u{200f}", 26 },
		{ BYTES("\xd8\x9c\xe2\x80\xa8\xe2\x80\xa9"), false, "\\u{061c}\\u{2028}\\u{2029}",
		  24 },
		{ BYTES("\xef\xbb\xbf\xe2\x80\x8b"), false, "\\u{feff}\\u{200b}", 16 },
		{ BYTES("\xf3\xa0\x81\x81"), false, "\\u{e0041}", 9 },
		{ BYTES("\xc3("), false, "\\xc3(", 5 },
		{ BYTES("\xc0\x80\xed\xa0\x80"), false, "\\xc0\\x80\\xed\\xa0\\x80", 20 },
		{ BYTES("\xf4\x90\x80\x80\xff"), false, "\\xf4\\x90\\x80\\x80\\xff", 20 },
		{ BYTES("\xf4\x8f\xbf\xbd"), false, "\xf4\x8f\xbf\xbd", 1 },
		{ BYTES("x\xe2\x82"), false, "x\\xe2\\x82", 9 },
		{ BYTES("x\xe2\x82"), true, "x", 9 },
		{ BYTES("x\xf0\x9f\x98"), true, "x", 13 },
		{ BYTES("x\xc3"), true, "x", 5 },
		{ BYTES("x\x80"), true, "x\\x80", 5 },
		{ BYTES("\xe2(\xe2"), true, "\\xe2(", 9 },
		{ BYTES("\xc3\xa9"), true, "\xc3\xa9", 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t width = escape_width(cases[i].text, cases[i].len);

		sink_start();
		escape_terminal(&sink, cases[i].text, cases[i].len, cases[i].cut);
		sink_take();
		CHECK(!strcmp(seen, cases[i].want), "%zu: %s, not %s", i, seen, cases[i].want);
		CHECK(width == cases[i].width, "%zu: %zu", i, width);
	}
}

static void terminal_fuzz(void)
{
	char text[200];

	for (int i = 0; i < FUZZ_ROUNDS; i++) {
		size_t len = random_text(text, sizeof(text));

		sink_start();
		escape_terminal(&sink, text, len, i & 1);
		sink_take();
		CHECK(is_harmless(seen, seen_len), "round %d: %s", i, seen);
		if (check_failures)
			return;
	}
}

/* Every Unicode character is passed or escaped, never lost, and valid in both forms. */
static void every_character(void)
{
	for (unsigned int code = 0x80; code <= 0x10ffff; code++) {
		char text[5] = "";
		unsigned int back = 0;
		size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

		if (code >= 0xd800 && code < 0xe000)
			continue;
		text[0] = (0xf00 >> n) | code >> 6 * (n - 1);
		for (size_t i = 1; i < n; i++)
			text[i] = 0x80 | (code >> 6 * (n - 1 - i) & 0x3f);
		sink.len = 0;
		escape_terminal(&sink, text, n, false);
		if (sink.len == n && !memcmp(sink.buf, text, n)) {
			CHECK(is_harmless(text, n), "U+%x", code);
		} else {
			sink.buf[sink.len] = 0;
			CHECK(sscanf(sink.buf, "\\u{%x}", &back) == 1 && back == code, "U+%x",
			      code);
			CHECK(escape_width(text, n) == sink.len, "U+%x", code);
		}
		sink.len = 0;
		CHECK(escape_json(&sink, text, n, false), "U+%x", code);
	}
	sink.len = 0;
}

static void json_escape_table(void)
{
	static const struct {
		const char *text;
		size_t len;
		bool cut;
		const char *want;
		bool valid;
	} cases[] = {
		{ BYTES(""), false, "", true },
		{ BYTES("select \"a\\b\""), false, "select \\\"a\\\\b\\\"", true },
		{ BYTES("\b\t\n\f\r\v"), false, "\\b\\t\\n\\f\\r\\u000b", true },
		{ BYTES("a\0\x1b\x7f"), false, "a\\u0000\\u001b\\u007f", true },
		{ BYTES("caf\xc3\xa9\xf0\x9f\x98\x80"), false, "caf\xc3\xa9\xf0\x9f\x98\x80",
		  true },
		{ BYTES("\xc2\x9b\xe2\x80\xae"), false, "\\u009b\\u202e", true },
		{ BYTES("\xf3\xa0\x81\x81"), false, "\\udb40\\udc41", true },
		{ BYTES("\xff"), false, "\xef\xbf\xbd", false },
		{ BYTES("a\xe2\x82z"), false, "a\xef\xbf\xbdz", false },
		{ BYTES("\xed\xa0\x80"), false, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", false },
		{ BYTES("a\xe2\x82"), false, "a\xef\xbf\xbd", false },
		{ BYTES("a\xe2\x82"), true, "a", true },
		{ BYTES("\xff"
			"a\xe2\x82"),
		  true,
		  "\xef\xbf\xbd"
		  "a",
		  false },
		{ BYTES("\xef\xbf\xbd"), false, "\xef\xbf\xbd", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool valid;

		sink_start();
		valid = escape_json(&sink, cases[i].text, cases[i].len, cases[i].cut);
		sink_take();
		CHECK(!strcmp(seen, cases[i].want), "%zu: %s", i, seen);
		CHECK(valid == cases[i].valid, "%zu", i);
	}
}

/* --- json --------------------------------------------------------------- */

/*
 * A strict JSON reader, independent of the writer. It checks a line and keeps the decoded strings
 * of the selected keys.
 */
struct reader {
	const char *p, *end;
	bool bad;
	char text[4096];		/* the last string */
	size_t len;
	char query[4096], base64[4096];	/* the values of these keys */
	size_t query_len, base64_len;
	bool has_base64;
};

static void read_value(struct reader *r);

static bool accept(struct reader *r, char c)
{
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

static void expect(struct reader *r, const char *text)
{
	while (*text && !r->bad)
		r->bad = !accept(r, *text++);
}

static void keep(struct reader *r, unsigned int code)
{
	char *p = r->text + r->len;
	int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	if (r->len + 4 > sizeof(r->text)) {
		r->bad = true;
		return;
	}
	if (n == 1)
		p[0] = code;
	else
		p[0] = (0xf00 >> n) | code >> 6 * (n - 1);
	for (int i = 1; i < n; i++)
		p[i] = 0x80 | (code >> 6 * (n - 1 - i) & 0x3f);
	r->len += n;
}

static unsigned int read_unit(struct reader *r)
{
	unsigned int unit = 0;

	for (int i = 0; i < 4; i++, r->p++) {
		char digits[] = "0123456789abcdef";
		char *at = r->p < r->end && *r->p ? strchr(digits, *r->p) : NULL;

		if (!at) {
			r->bad = true;
			return 0;
		}
		unit = unit * 16 + (at - digits);
	}
	return unit;
}

static void read_escape(struct reader *r)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	char c = r->p < r->end ? *r->p++ : 0;
	unsigned int unit, low;

	if (c && strchr(from, c)) {
		keep(r, to[strchr(from, c) - from]);
		return;
	}
	unit = c == 'u' ? read_unit(r) : 0xdc00;
	if (unit >= 0xd800 && unit < 0xdc00) {
		expect(r, "\\u");
		low = read_unit(r);
		r->bad |= low < 0xdc00 || low > 0xdfff;
		unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
	} else {
		r->bad |= unit >= 0xdc00 && unit < 0xe000;
	}
	if (!r->bad)
		keep(r, unit);
}

static void read_string(struct reader *r)
{
	unsigned int code;
	int n;

	r->len = 0;
	expect(r, "\"");
	while (!r->bad && !accept(r, '"')) {
		if (accept(r, '\\')) {
			read_escape(r);
			continue;
		}
		n = r->p < r->end ? utf8_length((const void *)r->p, r->end - r->p, &code) : 0;
		if (!n || code < 0x20) {
			r->bad = true;
			return;
		}
		keep(r, code);
		r->p += n;
	}
}

static void read_number(struct reader *r)
{
	const char *start = r->p;

	accept(r, '-');
	if (!accept(r, '0')) {
		r->bad |= r->p == r->end || *r->p < '1' || *r->p > '9';
		while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
			r->p++;
	}
	if (accept(r, '.')) {
		start = r->p;
		while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
			r->p++;
	}
	r->bad |= r->p == start;
}

static void read_member(struct reader *r)
{
	char key[32] = "";

	read_string(r);
	if (r->len < sizeof(key))
		memcpy(key, r->text, r->len);
	expect(r, ":");
	read_value(r);
	if (!strcmp(key, "query")) {
		memcpy(r->query, r->text, r->len);
		r->query_len = r->len;
	} else if (!strcmp(key, "query_base64")) {
		memcpy(r->base64, r->text, r->len);
		r->base64_len = r->len;
		r->has_base64 = true;
	}
}

static void read_object(struct reader *r)
{
	expect(r, "{");
	if (accept(r, '}'))
		return;
	do {
		read_member(r);
	} while (!r->bad && accept(r, ','));
	expect(r, "}");
}

static void read_value(struct reader *r)
{
	char c = r->p < r->end ? *r->p : 0;

	if (r->bad)
		return;
	if (c == '{')
		read_object(r);
	else if (c == '"')
		read_string(r);
	else if (c == 't')
		expect(r, "true");
	else if (c == 'f')
		expect(r, "false");
	else
		read_number(r);
}

/* Parse @seen, which must be one object and a newline. */
static void read_line(struct reader *r)
{
	r->p = seen;
	r->end = seen + seen_len;
	r->bad = r->has_base64 = false;
	r->query_len = r->base64_len = 0;
	read_object(r);
	expect(r, "\n");
	r->bad |= r->p != r->end;
}

static void the_reader_refuses(void)
{
	static const char *const bad[] = {
		"",
		"{",
		"{}",
		"{\"a\":1}\n\n",
		"{\"a\":01}\n",
		"{\"a\":1.}\n",
		"{\"a\":\"\n\"}\n",
		"{\"a\":\"\\x00\"}\n",
		"{\"a\":\"\\ud800\"}\n",
		"{\"a\":\"\xff\"}\n",
		"{\"a\":1,}\n",
	};
	static const char good[] = "{\"a\":{\"b\":-0.5},\"c\":\"\\ud83d\\ude00\",\"d\":true}\n";
	static struct reader r;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		strcpy(seen, bad[i]);
		seen_len = strlen(bad[i]);
		read_line(&r);
		CHECK(r.bad, "%zu", i);
	}
	strcpy(seen, good);
	seen_len = strlen(good);
	read_line(&r);
	CHECK(!r.bad, "good");
}

static const struct engine engine = { .name = "postgresql" };

static const struct server server = {
	.engine = &engine, .product = "mariadb", .version = "10.11.14-MariaDB", .path = "/bin/db",
};

static const struct who app = {
	.pid = 25776, .tid = 25777, .user = "app", .database = "shop", .client = "10.0.0.7:53122",
};

static const struct statement whole = {
	.server = &server, .who = &app, .has_status = true, .start_ns = 11421264000,
	.wall_ns = 1709251199123456789, .duration_ns = 2002183456, .has_rows = true, .rows = 97,
	.text = "call getproduct(97)", .text_len = 19, .has_query_bytes = true, .query_bytes = 19,
};

#define JSON_HEAD "{\"type\":\"statement\",\"time\":\"2024-02-29T23:59:59.123456789Z\"," \
	"\"server\":{\"engine\":\"mariadb\",\"version\":\"10.11.14-MariaDB\"," \
	"\"path\":\"/bin/db\"}," \
	"\"pid\":25776,\"tid\":25777,\"duration_ms\":2002.183456,"

static void json_lines(void)
{
	static const struct who unknown = { .pid = 25776, .tid = 25777 };
	struct statement st = whole;
	static const unsigned int groups = LOSSES_OF_SESSIONS | LOSSES_OF_TEXTS;
	struct summary sum = { .statements = 10, .printed = 9, .boundary = 1 };
	char want[1024];
	int n;

	sink_start();
	field_json(&sink, &st);
	sink_take();
	CHECK(!strcmp(seen, JSON_HEAD "\"user\":\"app\",\"database\":\"shop\","
		      "\"client\":\"10.0.0.7:53122\",\"rows\":97,\"status\":\"ok\","
		      "\"query\":\"call getproduct(97)\",\"query_bytes\":19,"
		      "\"truncated\":false}\n"), "%s", seen);

	st = (struct statement){ .server = &server, .who = &unknown, .wall_ns = st.wall_ns,
				 .duration_ns = st.duration_ns, .has_status = true,
				 .failed = true };
	sink_start();
	field_json(&sink, &st);
	sink_take();
	CHECK(!strcmp(seen, JSON_HEAD "\"status\":\"error\"}\n"), "%s", seen);

	st.text = "\xff\xe2\x82";
	st.text_len = 3;
	st.truncated = true;
	sink_start();
	field_json(&sink, &st);
	sink_take();
	CHECK(!strcmp(seen, JSON_HEAD "\"status\":\"error\",\"query\":\"\xef\xbf\xbd\","
		      "\"truncated\":true,\"query_base64\":\"/+KC\"}\n"), "%s", seen);

	sink_start();
	n = snprintf(want, sizeof(want), "Z\",\"statements\":10,\"printed\":9,\"lost\":{");
	for (size_t i = 0; i < LOSSES; i++) {
		sum.lost[i] = 3 + i;
		if (!loss_rows[i].group || loss_rows[i].group & groups)
			n += snprintf(want + n, sizeof(want) - n, "%s\"%s\":%zu",
				      i ? "," : "", loss_rows[i].name, 3 + i);
	}
	snprintf(want + n, sizeof(want) - n, "},\"boundary\":1}\n");
	summary_json(&sink, 1700000000000000000, "statements", groups, &sum);
	sink_take();
	CHECK(!strncmp(seen, "{\"type\":\"summary\",\"time\":\"20", 27), "%s", seen);
	CHECK(!strcmp(strchr(seen, 'Z'), want), "%s", seen);
}

/* Dates are those of the C library. */
static void json_times(void)
{
	struct statement st = whole;
	char want[64];
	struct tm tm;

	for (int i = 0; i < 20000; i++) {
		uint64_t s = i < 2 ? (uint64_t)i * 18446744073 : random_next() % 18446744073;
		time_t t = s;

		gmtime_r(&t, &tm);
		strftime(want, sizeof(want), "\"time\":\"%Y-%m-%dT%H:%M:%S.000000007Z\"", &tm);
		st.wall_ns = s * 1000000000 + 7;
		sink.len = 0;
		field_json(&sink, &st);
		sink.buf[sink.len] = 0;
		CHECK(strstr(sink.buf, want), "%s not in %s", want, sink.buf);
		if (check_failures)
			break;
	}
	sink.len = 0;
}

static size_t base64_decode(const char *text, size_t len, char *out)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned int bits = 0, have = 0;
	size_t n = 0;

	for (size_t i = 0; i < len && text[i] != '='; i++) {
		bits = bits << 6 | (strchr(digits, text[i]) - digits);
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[n++] = bits >> have;
		}
	}
	return n;
}

/* Make the user, the database and the client of @who the same random text. */
static void random_names(struct who *who)
{
	who->user[random_text(who->user, 40)] = 0;
	memcpy(who->database, who->user, sizeof(who->user));
	memcpy(who->client, who->user, sizeof(who->user));
}

static void json_fuzz(void)
{
	static struct reader r;
	char text[300], decoded[600];
	struct statement st = whole;
	struct who who = app;

	st.who = &who;
	for (int i = 0; i < FUZZ_ROUNDS; i++) {
		random_names(&who);
		st.text = text;
		st.text_len = random_text(text, sizeof(text));
		st.truncated = i & 1;
		st.duration_ns = random_next() >> (i & 63);
		sink_start();
		field_json(&sink, &st);
		sink_take();
		read_line(&r);
		CHECK(!r.bad, "round %d: %s", i, seen);
		CHECK(is_harmless(seen, seen_len - 1), "round %d: %s", i, seen);
		if (r.has_base64)
			CHECK(base64_decode(r.base64, r.base64_len, decoded) == st.text_len &&
			      !memcmp(decoded, text, st.text_len), "round %d: %s", i, seen);
		else
			CHECK((r.query_len == st.text_len ||
			       (st.truncated && r.query_len < st.text_len &&
				r.query_len + 3 >= st.text_len)) &&
			      !memcmp(r.query, text, r.query_len), "round %d: %s", i, seen);
		if (check_failures)
			return;
	}
}

/* --- columns ------------------------------------------------------------ */

static const char *table(const char *spec, bool wall, const struct statement *st)
{
	struct field_list list = { .count = 0 };
	struct field_table view;
	const char *bad;
	size_t bad_len;

	if (spec)
		CHECK(!field_parse(&list, spec, &bad, &bad_len), "%s", bad);
	else
		field_default(&list);
	field_table_init(&view, &list, 10000000000, wall);
	sink_start();
	field_table_header(&sink, &view);
	field_table_row(&sink, &view, st);
	return sink_take();
}

/* The default columns have the format of bcc, as printf() writes it. */
static void columns_as_in_bcc(void)
{
	static const struct {
		uint64_t start, duration;
		unsigned int pid;
	} cases[] = {
		{ 1421264000, 2002183000, 25776 }, { 0, 0, 1 }, { 999999999, 1499999, 4194304 },
		{ 123456789012345678, 98765432109876, 12345678 }, { 1999999400, 999400, 7 },
		{ 1999999600, 999600, 7 },
	};
	struct statement st = whole;
	struct who who = app;
	char want[256];

	st.who = &who;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int n = snprintf(want, sizeof(want), "%-14s %-7s %8s %s\n", "TIME(s)", "PID", "MS",
				 "QUERY");

		snprintf(want + n, sizeof(want) - n, "%-14.6f %-7d %8.3f %s\n",
			 cases[i].start / 1e9, cases[i].pid, cases[i].duration / 1e6,
			 "call getproduct(97)");
		st.start_ns = 10000000000 + cases[i].start;
		st.duration_ns = cases[i].duration;
		who.pid = cases[i].pid;
		CHECK(!strcmp(table(NULL, false, &st), want), "%s, not %s", seen, want);
	}
}

static void columns_by_name(void)
{
	static const struct who unknown = { .pid = 5, .tid = 6 };
	struct statement none = { .server = &server, .who = &unknown, .start_ns = 9500000000,
				  .has_status = true, .failed = true };
	struct statement st = whole;
	struct who who = app;

	table("user,db,client,rows,status,engine,tid,query", false, &st);
	CHECK(!strcmp(seen,
		      "USER         DB           CLIENT                    ROWS "
		      "STATUS ENGINE     TID     QUERY\n"
		      "app          shop         10.0.0.7:53122              97 "
		      "ok     postgresql 25777   call getproduct(97)\n"),
	      "%s", seen);
	table("time,user,db,client,rows,engine,status", false, &none);
	CHECK(!strcmp(seen,
		      "TIME(s)        USER         DB           CLIENT                    ROWS "
		      "ENGINE     STATUS\n"
		      "-0.500000      -            -            -                            - "
		      "postgresql error\n"),
	      "%s", seen);
	table("query,ms", false, &st);
	CHECK(!strcmp(seen, "QUERY       MS\ncall getproduct(97) 2002.183\n"), "%s", seen);
	table("pid,rows", false, &none);
	CHECK(!strcmp(seen, "PID         ROWS\n5              -\n"), "%s", seen);
	strcpy(who.user, "a longer name than fits");
	*who.database = 0;
	strcpy(who.client, "[\x1b\xe6\x97\xa5]");
	st.who = &who;
	table("user,db,client,pid", false, &st);
	CHECK(!strcmp(strchr(seen, '\n') + 1, "a longer name than fits -            "
		      "[\\x1b\xe6\x97\xa5]              25776\n"), "%s", seen);
}

static void columns_of_queries(void)
{
	struct statement st = whole;

	st.text = "select\n\t1 \x1b\xe2";
	st.text_len = 11;
	st.truncated = true;
	st.query_bytes = 9000;
	table("query", false, &st);
	CHECK(!strcmp(seen, "QUERY\nselect 1 \\x1b [cut: 11 of 9000 bytes]\n"), "%s", seen);
	st.text_len = 12;
	st.has_query_bytes = false;
	table("query,pid", false, &st);
	CHECK(!strcmp(seen, "QUERY PID\nselect 1 \\x1b [cut at 12 bytes] 25776\n"), "%s", seen);
	st.text = NULL;
	table("query", false, &st);
	CHECK(!strcmp(seen, "QUERY\n[text unreadable]\n"), "%s", seen);
}

static void columns_on_the_wall(void)
{
	struct field_list list = { .count = 0 };
	struct field_table view;
	struct statement st = whole;
	char want[64];
	struct tm tm;

	setenv("TZ", "XXX-05:45", 1);
	tzset();
	table(NULL, true, &st);
	CHECK(!strcmp(seen, "TIME            PID           MS QUERY\n"
		      "05:44:59.123456 25776   2002.183 call getproduct(97)\n"), "%s", seen);
	field_default(&list);
	list.count = 1;
	field_table_init(&view, &list, 0, true);
	for (int i = 0; i < 1000; i++) {
		time_t t = i ? random_next() % 4000000000 : 3;

		st.wall_ns = t * 1000000000ull + 1999;
		sink_start();
		field_table_row(&sink, &view, &st);
		localtime_r(&t, &tm);
		strftime(want, sizeof(want), "%H:%M:%S.000001\n", &tm);
		CHECK(!strcmp(sink_take(), want), "%s, not %s", seen, want);
	}
	unsetenv("TZ");
	tzset();
}

/* Columns of the time breakdown; an unknown value differs from zero. */
static void columns_of_parts(void)
{
	static const struct event_breakdown why = {
		.ns = { [BREAKDOWN_CPU] = 1234567, [BREAKDOWN_LOCK] = 2000500,
			[BREAKDOWN_OTHER] = 499 },
		.phases = { [PHASE_PLAN] = { .first_ns = 1, .ns = 250000 },
			    [PHASE_EXECUTE] = { .first_ns = 2 } },
	};
	struct statement st = whole;

	st.why = &why;
	CHECK(!strcmp(table("cpu,lock,other,parse,plan,execute,query", false, &st),
		      "     CPU     LOCK    OTHER    PARSE     PLAN  EXECUTE QUERY\n"
		      "   1.235    2.001    0.000        -    0.250    0.000 "
		      "call getproduct(97)\n"), "%s", seen);
	st.why = NULL;
	CHECK(!strcmp(table("sleep,plan", false, &st),
		      "   SLEEP     PLAN\n       -        -\n"), "%s", seen);
}

static void columns_refused(void)
{
	static const struct {
		const char *spec, *bad;
		int want;
	} cases[] = {
		{ "", "", -EINVAL },
		{ "pid,,ms", "", -EINVAL },
		{ "pid,", "", -EINVAL },
		{ "pids", "pids", -ENOENT },
		{ "pid,p,ms", "p", -ENOENT },
		{ "PID", "PID", -ENOENT },
		{ " pid", " pid", -ENOENT },
		{ "ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,"
		  "ms,ms,ms,ms,ms,ms,user", "user", -E2BIG },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct field_list list = { .count = 0 };
		const char *bad;
		size_t len;
		int err = field_parse(&list, cases[i].spec, &bad, &len);

		CHECK(err == cases[i].want, "%zu: %d", i, err);
		CHECK(len == strlen(cases[i].bad) && !memcmp(bad, cases[i].bad, len), "%zu", i);
	}
}

static void columns_fuzz(void)
{
	struct field_list list = { .count = 0 };
	struct field_table view;
	struct statement st = whole;
	struct who who = app;
	char text[200];

	st.who = &who;
	for (size_t i = 0, len; i < FUZZ_ROUNDS; i++) {
		const char *bad;

		list.count = 0;
		field_parse(&list, "time,pid,tid,ms,user,db,client,rows,status,engine,query", &bad,
			     &len);
		field_table_init(&view, &list, random_next(), i & 1);
		random_names(&who);
		st.text = text;
		st.text_len = random_text(text, sizeof(text));
		st.truncated = i & 2;
		st.duration_ns = random_next();
		st.wall_ns = random_next();
		sink_start();
		field_table_row(&sink, &view, &st);
		sink_take();
		CHECK(seen[seen_len - 1] == '\n' && is_harmless(seen, seen_len - 1), "%s", seen);
		if (check_failures)
			return;
	}
}

/* --- options ------------------------------------------------------------ */

static struct options opts;
static char line[1024];

/* Parse @words, separated by blanks ('' is an empty one). Error messages are stored in @seen. */
static int parse(const char *words)
{
	char *argv[64] = { "dbslower" }, *save = NULL;
	int argc = 1, err;

	snprintf(line, sizeof(line), "%s", words);
	for (char *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[argc++] = strcmp(w, "''") ? w : "";
	sink_start();
	err = option_parse(command_table[0], argc, argv, &opts, &sink);
	sink_take();
	CHECK(err ? seen_len > 0 : !seen_len, "%s: %d: %s", words, err, seen);
	return err;
}

static void durations(void)
{
	static const struct {
		const char *text;
		uint64_t unit, want;
	} good[] = {
		{ "0", 1000000, 0 },
		{ "1", 1000000, 1000000 },
		{ "0.25", 1000000, 250000 },
		{ "30", 1000000, 30000000 },
		{ ".5", 1000000, 500000 },
		{ "1s", 1000000, 1000000000 },
		{ "250us", 1000000, 250000 },
		{ "250.5us", 1000000, 250500 },
		{ "17ns", 1000000, 17 },
		{ "1.5ms", 1000000000, 1500000 },
		{ "0.000001", 1000000, 1 },
		{ "0.1", 1000000, 100000 },
		{ "0.3", 1000000, 300000 },
		{ "1.10000000000", 1000000, 1100000 },
		{ "007", 1000000, 7000000 },
		{ "5", 1000000000, 5000000000 },
		{ "9223372036854775807ns", 1000000, INT64_MAX },
		{ "9223372036.854775807s", 1000000, INT64_MAX },
		{ "3.0ns", 1, 3 },
	};
	static const char *const bad[][2] = {
		{ "", "not a number" },
		{ "-1", "must not be negative" },
		{ "-0", "must not be negative" },
		{ "nan", "not a number" },
		{ "inf", "not a number" },
		{ "+1", "not a number" },
		{ ".", "not a number" },
		{ "1.", "known unit" },
		{ "1.ms", "known unit" },
		{ "1 ms", "known unit" },
		{ " 1", "not a number" },
		{ "1e3", "known unit" },
		{ "0x10", "known unit" },
		{ "1d", "known unit" },
		{ "1MS", "known unit" },
		{ "1,5", "known unit" },
		{ "1.2.3", "known unit" },
		{ "5msx", "known unit" },
		{ "0.0000001", "finer" },
		{ "0.5ns", "finer" },
		{ "1.0000000001s", "finer" },
		{ "9223372036854775808ns", "too large" },
		{ "9223372036.854775808s", "too large" },
		{ "18446744073709551616", "too large" },
		{ "99999999999999999999999999", "too large" },
		{ "9223372036855", "too large" },
	};
	const char *why;
	uint64_t ns;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		int err = option_read_duration(good[i].text, good[i].unit, &ns, &why);

		CHECK(!err && ns == good[i].want, "%s: %d %llu", good[i].text, err,
		      (unsigned long long)ns);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int err = option_read_duration(bad[i][0], 1000000, &ns, &why);

		CHECK(err == -EINVAL && why && strstr(why, bad[i][1]), "'%s': %d %s", bad[i][0],
		      err, why ? why : "");
	}
}

static void options_words(void)
{
	static const struct {
		const char *words, *engine;
		uint64_t threshold;
	} cases[] = {
		{ "", NULL, 1000000 },
		{ "postgres", "postgresql", 1000000 },
		{ "postgres 30", "postgresql", 30000000 },
		{ "30", NULL, 30000000 },
		{ "postgres 0.25", "postgresql", 250000 },
		{ "mysql 1s", "mysql", 1000000000 },
		{ "mariadb", "mysql", 1000000 },
		{ "pg .5", "postgresql", 500000 },
		{ "postgresql 250us", "postgresql", 250000 },
		{ "30 pg", "postgresql", 30000000 },
		{ "postgres -m 0", "postgresql", 0 },
		{ "-m 0 postgres", "postgresql", 0 },
		{ "-m0 pg", "postgresql", 0 },
		{ "--min=2.5 pg", "postgresql", 2500000 },
		{ "--min 2us pg", "postgresql", 2000 },
		{ "-m 3 -m 4", NULL, 4000000 },
		{ "-- pg 7", "postgresql", 7000000 },
		{ "-p 1 pg -x /a 7 -v", "postgresql", 7000000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CHECK(!parse(cases[i].words), "%s: %s", cases[i].words, seen);
		CHECK(opts.threshold_ns == cases[i].threshold, "%s", cases[i].words);
		CHECK(!opts.engine == !cases[i].engine, "%s", cases[i].words);
		if (opts.engine && cases[i].engine)
			CHECK(!strcmp(opts.engine, cases[i].engine), "%s", cases[i].words);
	}
}

static void options_all(void)
{
	CHECK(!parse("-p 1,2 30") && opts.pid_count == 2 && opts.threshold_ns == 30000000, "%s",
	      seen);
	CHECK(!parse(""), "%s", seen);
	CHECK(!opts.pid_count && !opts.path_count && !opts.verbose && !opts.duration_ns,
	      "defaults");
	CHECK(!opts.count && opts.text_bytes == 4096 && opts.columns.count == 4, "defaults");
	CHECK(!opts.json && !opts.wall && !opts.strict && !opts.help && !opts.version, "defaults");
	CHECK(!parse("-p 1,2 --pid=3 -p2,4194304 -x /a --path /b -x/c -vtv --strict"), "%s", seen);
	CHECK(opts.pid_count == 4 && opts.pids[0] == 1 && opts.pids[1] == 2 && opts.pids[2] == 3 &&
	      opts.pids[3] == 4194304, "%u", opts.pid_count);
	CHECK(opts.path_count == 3 && !strcmp(opts.paths[0], "/a") &&
		      !strcmp(opts.paths[1], "/b") && !strcmp(opts.paths[2], "/c"),
	      "%u", opts.path_count);
	CHECK(opts.verbose == 2 && opts.wall && opts.strict && !opts.json, "flags");
	CHECK(!parse("--json -tn 5 -d 0.5 --text 64k -v -v -v"), "%s", seen);
	CHECK(opts.json && opts.wall && opts.count == 5 && opts.duration_ns == 500000000, "values");
	CHECK(opts.text_bytes == 65536 && opts.verbose == 3, "values");
	CHECK(!parse("-d 500ms -o pid,query -o ms --text=1024K"), "%s", seen);
	CHECK(opts.duration_ns == 500000000 && opts.columns.count == 3, "values");
	CHECK(opts.text_bytes == 1048576, "%u", opts.text_bytes);
	CHECK(!parse("--text 16 -n 18446744073709551615"), "%s", seen);
	CHECK(opts.text_bytes == 16 && opts.count == UINT64_MAX, "values");
	CHECK(!parse("-d 1h 1.5m") && opts.duration_ns == 3600000000000 &&
	      opts.threshold_ns == 90000000000, "%s", seen);
	CHECK(!parse("--threshold 2 --exe /a --text 1M") && opts.threshold_ns == 2000000 &&
	      opts.path_count == 1 && opts.text_bytes == 1048576, "%s", seen);
	CHECK(!parse("--engine pg --client db1 --user u") && !strcmp(opts.engine, "postgresql") &&
	      !strcmp(opts.client, "db1"), "%s", seen);
	CHECK(!parse("-p 188 0.5") && !parse("-p 188 -t 5") && !parse("-p 188 5ms"), "%s", seen);
	CHECK(!parse("-p 188 0") && !opts.threshold_ns && opts.has_threshold, "%s", seen);
	CHECK(!parse("pg --help nonsense --nonsense") && opts.help, "%s", seen);
	CHECK(!parse("-h") && opts.help && !parse("-V") && opts.version, "%s", seen);
	CHECK(!parse("--version -q") && opts.version && !opts.help, "%s", seen);
}

/* Each error message names the tool and the subject, and what is accepted. */
static void options_refused(void)
{
	static const char *const cases[][2] = {
		{ "oracle",
		  "dbslower: oracle: neither a command, a database nor a threshold; databases: " },
		{ "nan", "dbslower: nan: neither" },
		{ "''", "dbslower: '': neither" },
		{ "-", "dbslower: -: neither" },
		{ "-- -v", "dbslower: -v: neither" },
		{ "pg 5x",
		  "dbslower: threshold 5x: unknown unit; expected "
		  "milliseconds, or a number with a unit (ns, us, ms, s, m, h): 30, 0.25, "
		  "250us, 1s\n" },
		{ "1.0000000000003h", "dbslower: threshold 1.0000000000003h: finer than 1 ns" },
		{ "0.0000000000001h", "dbslower: threshold 0.0000000000001h: finer than 1 ns" },
		{ "5 ms", "dbslower: ms: unit without a number; specify 5ms\n" },
		{ "-d 5 s", "dbslower: s: unit without a number; specify 5s\n" },
		{ "-n 5 s", "dbslower: s: neither a database" },
		{ "pg ms", "dbslower: ms: neither a database" },
		{ "-p 188 322", "dbslower: 322: process ID or threshold; specify -p 188,322 for "
		  "processes, or -m 322 for a threshold\n" },
		{ "-p188 322", "dbslower: 322: process ID or threshold; specify -p 188,322 for" },
		{ "psotgres", "dbslower: psotgres: neither a command, a database nor a threshold; "
		  "did you mean postgres?\n" },
		{ "lost", "dbslower: lost: neither a command, a database nor a threshold; did you "
		  "mean list?\n" },
		{ "--jsno", "dbslower: --jsno: unknown option; did you mean --json?\n" },
		{ "--dur=3", "dbslower: --dur: unknown option; did you mean --duration?\n" },
		{ "--thresholds 3", "dbslower: --thresholds: unknown option; see" },
		{ "-o tmie", "dbslower: -o tmie: unknown column; did you mean time?\n" },
		{ "-o pid,qeury", "dbslower: -o qeury: unknown column; did you mean query?\n" },
		{ "pg -5", "dbslower: threshold -5: must not be negative; expected" },
		{ "pg -.5", "dbslower: threshold -.5: must not be negative; expected" },
		{ "pg +5", "dbslower: threshold +5: not a number; expected" },
		{ "pg mysql", "dbslower: mysql: second database; specify one" },
		{ "pg --engine pg", "dbslower: --engine pg: second database; specify one" },
		{ "--engine pgx", "dbslower: --engine pgx: unknown database; expected" },
		{ "--client ''", "dbslower: --client '': must not be empty; expected a host" },
		{ "5 6", "dbslower: 6: second threshold; specify one" },
		{ "5 -m 6", "dbslower: 5: second threshold; specify THRESHOLD or -m" },
		{ "-m 6 5", "dbslower: 5: second threshold; specify THRESHOLD or -m" },
		{ "-m", "dbslower: -m: requires an argument, MS; expected milliseconds" },
		{ "-m inf", "dbslower: -m inf: not a number; expected" },
		{ "-m -1", "dbslower: -m -1: must not be negative; expected" },
		{ "-m ''", "dbslower: -m '': not a number; expected" },
		{ "--min=", "dbslower: -m '': not a number; expected" },
		{ "--min", "dbslower: -m: requires an argument, MS" },
		{ "--otlp ''",
		  "dbslower: --otlp '': must not be empty; expected the path of a file" },
		{ "--otlp - --json", "dbslower: --otlp -: cannot be combined with --json or -o" },
		{ "--otlp - -o ms", "dbslower: --otlp -: cannot be combined with --json or -o" },
		{ "--text", "dbslower: --text: requires an argument, BYTES; expected" },
		{ "--text 15",
		  "dbslower: --text 15: too small; expected bytes from 16" },
		{ "--text 1025k", "dbslower: --text 1025k: too large; expected" },
		{ "--text k", "dbslower: --text k: not a number of bytes; expected" },
		{ "--text 1048577", "dbslower: --text 1048577: too large" },
		{ "--text 99999999999999999999k",
		  "dbslower: --text 99999999999999999999k: too large" },
		{ "-p 0", "dbslower: -p 0: not a process ID; expected a number from 1" },
		{ "-p 1,,2", "dbslower: -p '': not a process ID" },
		{ "-p 1,x,2", "dbslower: -p x: not a process ID" },
		{ "-p 4194305", "dbslower: -p 4194305: not a process ID" },
		{ "-p -1", "dbslower: -p -1: not a process ID" },
		{ "-x ''", "dbslower: -x '': must not be empty; expected the path" },
		{ "-d 0", "dbslower: -d 0: must be greater than 0; expected seconds" },
		{ "-d x", "dbslower: -d x: not a number; expected seconds" },
		{ "-n 0", "dbslower: -n 0: must be at least 1; expected a whole number" },
		{ "-n 1.5", "dbslower: -n 1.5: not a number; expected" },
		{ "-n 18446744073709551616", "dbslower: -n 18446744073709551616: too large" },
		{ "-o nope",
		  "dbslower: -o nope: unknown column; the columns are time, pid, tid, ms, " },
		{ "-o pid,,ms",
		  "dbslower: -o '': column name missing; the columns are time" },
		{ "-o pid --json",
		  "dbslower: -o: cannot be combined with --json, which prints all fields; omit" },
		{ "-q", "dbslower: -q: unknown option; see dbslower --help" },
		{ "-vq", "dbslower: -vq: unknown option" },
		{ "--no", "dbslower: --no: unknown option" },
		{ "--=", "dbslower: --: unknown option" },
		{ "--json=1", "dbslower: --json: does not take an argument; omit =1" },
		{ "-q\x1b[2J", "dbslower: -q\\x1b[2J: unknown option" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int err = parse(cases[i][0]);

		CHECK(err == -EINVAL, "%s: %d", cases[i][0], err);
		CHECK(!strncmp(seen, cases[i][1], strlen(cases[i][1])), "%s: %s", cases[i][0],
		      seen);
	}
	CHECK(parse("oracle") == -EINVAL && strstr(seen, "mysql (or mariadb)") &&
	      strstr(seen, "postgres (or postgresql, pg); thresholds: 30, 0.25, 250us, 1s; "
			   "dbslower --help"), "%s", seen);
}

static void options_limits(void)
{
	char *argv[2 * SERVER_PIDS + 4] = { "dbslower" }, words[SERVER_PIDS + 1][8];
	int argc = 1;

	for (int i = 0; i <= SERVER_PIDS; i++) {
		snprintf(words[i], sizeof(words[i]), "%d", i + 1);
		argv[argc++] = "-p";
		argv[argc++] = words[i];
	}
	sink_start();
	CHECK(!option_parse(command_table[0], argc - 2, argv, &opts, &sink) &&
	      opts.pid_count == SERVER_PIDS, "64");
	CHECK(option_parse(command_table[0], argc, argv, &opts, &sink) == -EINVAL, "65");
	CHECK(!strcmp(sink_take(),
		      "dbslower: -p 65: too many processes (maximum 64); specify fewer\n"),
	      "%s", seen);
	for (int i = 1; i < argc; i += 2)
		argv[i] = "-x";
	sink_start();
	CHECK(!option_parse(command_table[0], 1 + 2 * OPTION_PATHS, argv, &opts, &sink), "16");
	CHECK(option_parse(command_table[0], 3 + 2 * OPTION_PATHS, argv, &opts, &sink) == -EINVAL,
	      "17");
	CHECK(!strcmp(sink_take(),
		      "dbslower: -x 17: too many files (maximum 16); specify fewer\n"), "%s", seen);
	CHECK(parse("-o ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms "
		    "-o ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,ms,user") == -EINVAL, "33");
	CHECK(!strcmp(seen, "dbslower: -o user: too many columns (maximum 32); specify fewer\n"),
	      "%s", seen);
	sink_start();
	CHECK(!option_parse(command_table[0], 0, argv, &opts, &sink) && opts.columns.count == 4,
	      "no words at all");
}

static void options_fuzz(void)
{
	static char *const pieces[] = {
		"pg",  "mysql",	    "-m",     "-p",  "1,2",	     "-x",	"/a",
		"0.5", "1s",	    "-v",     "-d",  "-n",	     "--text",	"4k",
		"-o",  "pid,query", "--json", "-t",  "--strict",     "--min=3", "--pid",
		"--",  "-",	    "-tv",    "-m5", "--columns=ms", "",
	};
	char *argv[8] = { "dbslower" }, random[8][40];
	int good = 0;

	for (int i = 0; i < FUZZ_ROUNDS; i++) {
		int argc = 1 + random_next() % 7, err;

		for (int j = 1; j < argc; j++) {
			random[j][random_text(random[j], sizeof(random[j]))] = 0;
			argv[j] = random_next() % 6 ? pieces[random_next() % ARRAY_SIZE(pieces)]
						    : random[j];
		}
		sink_start();
		err = option_parse(command_table[0], argc, argv, &opts, &sink);
		sink_take();
		good += !err;
		CHECK(err == 0 || err == -EINVAL, "%d", err);
		CHECK(!err == !seen_len, "%s", seen);
		CHECK(!err || (!strncmp(seen, "dbslower: ", 10) && seen[seen_len - 1] == '\n' &&
			       is_harmless(seen, seen_len - 1)), "%s", seen);
		CHECK(err || (opts.columns.count && opts.columns.count <= FIELD_LIST_MAX &&
			      opts.text_bytes >= OPTION_TEXT_MIN), "round %d", i);
		if (check_failures)
			return;
	}
	CHECK(good > FUZZ_ROUNDS / 50, "only %d were accepted", good);
}

/* The help fits a terminal and contains every option and column. */
static void options_help(void)
{
	static const char *const words[] = {
		"-p, --pid ", "-x, --path ", "-m, --min ", "-v, --verbose", "-d, --duration ",
		"-n, --count ", "--text ", "-o, --columns ", "--json", "-t, --wall", "--strict",
		"-h, --help", "-V, --version", "  client  ", "Exit status: 0", "mysql|postgres",
	};
	char *save = NULL;

	sink_start();
	help_print(command_table[0], &sink);
	sink_take();
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		CHECK(strstr(seen, words[i]), "no %s", words[i]);
	for (char *l = strtok_r(seen, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
		CHECK(strlen(l) <= 90 && l[strlen(l) - 1] != ' ', "%zu: %s", strlen(l), l);
}

/* The command of a command line. */
static void commands(void)
{
	static const struct {
		const char *argv[3];
		const char *name;
		int taken;
	} cases[] = {
		{ { "dbslower" }, "slow", 0 },
		{ { "dbslower", "slow", "1" }, "slow", 1 },
		{ { "dbslower", "postgres" }, "slow", 0 },
		{ { "/a/dbslower", "-m", "slow" }, "slow", 0 },
		{ { "" }, "slow", 0 },
		{ { "dbslower", "list", "list" }, "list", 1 },
		{ { "tplist", "list" }, "list", 0 },
		{ { "/usr/bin/tplist" }, "list", 0 },
		{ { "tplist2", "-m", "list" }, "slow", 0 },
		{ { "dbslower", "tplist" }, "slow", 0 },
		{ { "/" }, "slow", 0 },
		{ { NULL }, "slow", 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct command *command;
		int argc = 0, taken;

		while (argc < 3 && cases[i].argv[argc])
			argc++;
		command = command_choose(argc, (char *const *)cases[i].argv, &taken);
		CHECK(!strcmp(command->name, cases[i].name) && taken == cases[i].taken,
		      "%zu: %s, %d", i, command->name, taken);
	}
	CHECK(!command_find("") && !command_find("slo"), "a command without a name");
	CHECK(parse("postgres slow") == -EINVAL && strstr(seen, "first argument"), "%s", seen);
}

/* The same letter is a different option in another command, and words differ. */
static void options_of_list(void)
{
	const struct command *list = command_find("list");
	char *good[] = {
		"list", "-lc", "-vv", "a*", "./x", "-p", "1,2", "--json", "5", "--", "-l",
	};
	char *const bad[][3] = {
		{ "list", "-m", "1" }, { "list", "-x", "/a" }, { "list", "-o", "pid" },
		{ "list", "-l", "" }, { "list", "-v", "" }, { "list", "-p", "x" },
		{ "list", "-5", "x" },
	};

	sink_start();
	CHECK(!option_parse(list, ARRAY_SIZE(good), good, &opts, &sink), "%s", sink_take());
	CHECK(opts.path_count == 2 && !strcmp(opts.paths[0], "c") &&
	      !strcmp(opts.paths[1], "./x") && opts.verbose == 2 && opts.pid_count == 2 &&
	      opts.json && opts.word_count == 3 &&
	      !strcmp(opts.words[0], "a*") && !strcmp(opts.words[1], "5") &&
	      !strcmp(opts.words[2], "-l"), "%u words", opts.word_count);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		sink_start();
		CHECK(option_parse(list, 3, bad[i], &opts, &sink) == -EINVAL, "%s", bad[i][1]);
		sink_take();
		CHECK(i > 2 || strstr(seen, "dbslower list --help"), "%s", seen);
	}
	CHECK(parse("-l c") == -EINVAL && strstr(seen, "; see dbslower --help"), "%s", seen);
	for (int i = 0; i < 11; i++)
		good[i] = i ? "w" : "list";
	sink_start();
	CHECK(!option_parse(list, 11, good, &opts, &sink) && opts.word_count == 10, "10 words");
}

static void globs(void)
{
	static const struct {
		const char *pattern, *text;
		bool want;
	} cases[] = {
		{ "", "", true }, { "", "a", false }, { "*", "", true }, { "*", "ab", true },
		{ "a*", "a", true }, { "a*", "ba", false }, { "*a", "ba", true },
		{ "*a", "ab", false },
		{ "a?c", "abc", true }, { "a?c", "ac", false }, { "?", "", false },
		{ "*:query*", "postgresql:query__start", true }, { "*b*c", "abbc", true },
		{ "*ab", "aab", true }, { "a*b*c", "axbxbxc", true }, { "a*b*c", "axbxbx", false },
		{ "[abc]", "b", true }, { "[abc]", "d", false }, { "[a-c]x", "bx", true },
		{ "[!a-c]", "b", false }, { "[^a-c]", "d", true }, { "[]a]", "]", true },
		{ "[a-]", "-", true }, { "[ab", "[ab", true }, { "[ab", "a", false },
		{ "[", "[", true },
		{ "x[", "x[", true }, { "[]", "[]", true }, { "**", "", true }, { "*?", "", false },
		{ "[\xc3]", "\xc3", true }, { "[!]]", "a", true }, { "[!]]", "]", false },
	};
	char stars[2048], as[2048];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		CHECK(glob_match(cases[i].pattern, cases[i].text) == cases[i].want, "%s, %s",
		      cases[i].pattern, cases[i].text);
	for (size_t i = 0; i < sizeof(stars); i++) {
		stars[i] = i & 1 ? 'a' : '*';
		as[i] = 'a';
	}
	stars[sizeof(stars) - 2] = 'b';
	stars[sizeof(stars) - 1] = as[sizeof(as) - 1] = 0;
	CHECK(!glob_match(stars, as), "many stars");
}

/* No command has two options with the same letter or name. */
static void commands_have_each_option_once(void)
{
	for (size_t row = 0; command_table[row]; row++) {
		const struct command *c = command_table[row];
		char *save = NULL, letters[128] = { 0 }, names[64][24];
		size_t n = 0;

		sink_start();
		help_print(c, &sink);
		sink_take();
		for (char *l = strtok_r(seen, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
			CHECK(strlen(l) <= 80, "%s: %s", c->name, l);
			if (strncmp(l + strspn(l, " "), "-", 1))
				continue;
			if (l[2] == '-')
				CHECK(!letters[l[3] & 127]++, "%s: %s", c->name, l);
			CHECK(sscanf(strstr(l, "--"), "%23s", names[n]) == 1, "%s", l);
			for (size_t i = 0; i < n; i++)
				CHECK(strcmp(names[i], names[n]), "%s: %s", c->name, l);
			n++;
		}
		CHECK(n >= 2, "%s: %zu options", c->name, n);
	}
}

static int never_empty(struct loop *loop)
{
	(void)loop;
	return 1;
}

static void nothing(struct loop *loop)
{
	(void)loop;
}

static void no_summary(struct loop *loop, struct summary *summary)
{
	(void)loop;
	*summary = (struct summary){ .printed = 0 };
}

/* A record that never becomes readable does not keep it from ending. */
static void loop_ends(void)
{
	static const struct loop_ops ops = {
		.noun = "hits", .drain = never_empty, .detach = nothing, .summary = no_summary,
	};
	struct loop loop = { .ops = &ops, .source = &source_live, .done = true };
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	output_init(&loop.out, null);
	output_init(&loop.err, null);
	CHECK(loop_run(&loop) == EXIT_OK);
	close(null);
}

int main(void)
{
	RUN(output_numbers);
	RUN(output_printf_is_bounded);
	RUN(output_sizes);
	RUN(output_errors_stick);
	RUN(output_waits);
	RUN(terminal_table);
	RUN(terminal_fuzz);
	RUN(every_character);
	RUN(json_escape_table);
	RUN(the_reader_refuses);
	RUN(json_lines);
	RUN(json_times);
	RUN(json_fuzz);
	RUN(columns_as_in_bcc);
	RUN(columns_by_name);
	RUN(columns_of_queries);
	RUN(columns_on_the_wall);
	RUN(columns_of_parts);
	RUN(columns_refused);
	RUN(columns_fuzz);
	RUN(durations);
	RUN(options_words);
	RUN(options_all);
	RUN(options_refused);
	RUN(options_limits);
	RUN(options_fuzz);
	RUN(options_help);
	RUN(commands);
	RUN(options_of_list);
	RUN(globs);
	RUN(commands_have_each_option_once);
	RUN(loop_ends);
	return check_done();
}
