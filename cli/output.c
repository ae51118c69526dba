/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Time that a stalled reader has once the end was requested. */
#define GRACE_MS	1000
#define PAUSE_MS	20

/* Bytes that a pipe accepts without blocking once poll() returned it as writable. */
#define CHUNK		4096	/* PIPE_BUF */

/*
 * Wait until the descriptor is writable, or has an error that write() will return. Return 0,
 * -errno, or -EINTR if the end was requested and the reader stalls.
 */
static int output_wait(const struct output *out)
{
	struct pollfd fds[] = {
		{ .fd = out->fd, .events = POLLOUT },
		{ .fd = out->stop_fd, .events = POLLIN },
	};

	for (;;) {
		int n = poll(fds, 2, -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && !fds[0].revents)
			return poll(fds, 1, GRACE_MS) > 0 ? 0 : -EINTR;
		if (n > 0)
			return 0;
	}
}

/*
 * Wait after @stalled writes in a row that would have blocked. A terminal is writable also if there
 * is no room for a line end, which is two bytes. Return as output_wait().
 */
static int output_again(const struct output *out, unsigned int stalled)
{
	struct pollfd stop = { .fd = out->stop_fd, .events = POLLIN };

	if (stalled)
		poll(NULL, 0, PAUSE_MS);
	if (stalled > GRACE_MS / PAUSE_MS && poll(&stop, 1, 0) > 0)
		return -EINTR;
	return output_wait(out);
}

static void output_write(struct output *out, const char *data, size_t len)
{
	unsigned int stalled = 0;

	while (len && !out->error) {
		size_t size = out->stop_fd >= 0 && len > CHUNK ? CHUNK : len;
		ssize_t n;

		if (out->stop_fd >= 0) {
			out->error = output_wait(out);
			if (out->error)
				return;
		}
		n = write(out->fd, data, size);
		if (n > 0) {
			data += n;
			len -= (size_t)n;
			stalled = 0;
		} else if (n == 0) {
			out->error = -EIO;
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			out->error = output_again(out, stalled++);
		} else if (errno != EINTR) {
			out->error = -errno;
		}
	}
}

/*
 * Copy a piece of text. Most are a few bytes, for which musl's memcpy() needs 50 ns. Copies of a
 * constant size are single moves; the last one may overlap the one before.
 */
static inline void copy_piece(char *to, const char *from, size_t len)
{
	if (len > 256) {
		memcpy(to, from, len);
	} else if (len >= 16) {
		for (size_t i = 0; i < len - 16; i += 16)
			memcpy(to + i, from + i, 16);
		memcpy(to + len - 16, from + len - 16, 16);
	} else if (len >= 8) {
		memcpy(to, from, 8);
		memcpy(to + len - 8, from + len - 8, 8);
	} else if (len >= 4) {
		memcpy(to, from, 4);
		memcpy(to + len - 4, from + len - 4, 4);
	} else {
		for (size_t i = 0; i < len; i++)
			to[i] = from[i];
	}
}

bool output_is_standard(const char *path)
{
	return path && !strcmp(path, "-");
}

void output_init(struct output *out, int fd)
{
	out->fd = fd;
	out->stop_fd = -1;
	out->error = 0;
	out->held = false;
	out->len = 0;
}

void output_stoppable(struct output *out, int stop_fd)
{
	char path[32];
	struct stat st;
	int fd;

	if (fstat(out->fd, &st) || S_ISREG(st.st_mode))
		return;
	out->stop_fd = stop_fd;
	if (!isatty(out->fd))
		return;
	/* A write to a terminal may block in any case; a description of its own need not. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", out->fd);
	fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	out->fd = fd < 0 ? out->fd : fd;
}

int output_flush(struct output *out)
{
	if (out->held)
		return out->error;
	output_write(out, out->buf, out->len);
	out->len = 0;
	return out->error;
}

void output_bytes(struct output *out, const void *data, size_t len)
{
	if (len > sizeof(out->buf) - out->len) {
		output_flush(out);
		if (out->held)
			return;
		if (len > sizeof(out->buf)) {
			output_write(out, data, len);
			return;
		}
	}
	if (!len || out->error)
		return;
	copy_piece(out->buf + out->len, data, len);
	out->len += len;
}

void output_string(struct output *out, const char *text)
{
	output_bytes(out, text, strlen(text));
}

void output_char(struct output *out, char c)
{
	output_bytes(out, &c, 1);
}

void output_spaces(struct output *out, size_t count)
{
	static const char spaces[] = "                                ";

	while (count) {
		size_t n = count < sizeof(spaces) - 1 ? count : sizeof(spaces) - 1;

		output_bytes(out, spaces, n);
		count -= n;
	}
}

size_t output_format(char buf[OUTPUT_NUMBER], uint64_t value, unsigned int decimals)
{
	char reversed[OUTPUT_NUMBER];
	size_t len = 0, digits = 0;

	do {
		if (decimals && digits == decimals)
			reversed[len++] = '.';
		reversed[len++] = '0' + value % 10;
		value /= 10;
		digits++;
	} while (value || digits <= decimals);
	for (size_t i = 0; i < len; i++)
		buf[i] = reversed[len - 1 - i];
	return len;
}

void output_u64(struct output *out, uint64_t value)
{
	output_fixed(out, value, 0);
}

void output_fixed(struct output *out, uint64_t value, unsigned int decimals)
{
	char buf[OUTPUT_NUMBER];

	output_bytes(out, buf, output_format(buf, value, decimals));
}

void output_ms(struct output *out, uint64_t ns)
{
	char buf[OUTPUT_NUMBER];
	size_t len = output_format(buf, ns, 6);

	while (len && buf[len - 1] == '0')
		len--;
	if (len && buf[len - 1] == '.')
		len--;
	output_bytes(out, buf, len);
}

size_t output_clock(char buf[OUTPUT_NUMBER], uint64_t wall_ns, unsigned int decimals)
{
	time_t seconds = (time_t)(wall_ns / 1000000000u);
	uint64_t part = wall_ns % 1000000000u / (decimals == 3 ? 1000000u : 1000u);
	struct tm tm = { 0 };

	localtime_r(&seconds, &tm);
	return (size_t)snprintf(buf, OUTPUT_NUMBER, "%02d:%02d:%02d.%0*u", tm.tm_hour % 100,
				tm.tm_min % 100, tm.tm_sec % 100, (int)decimals,
				(unsigned int)part);
}

void output_printf(struct output *out, const char *format, ...)
{
	char buf[1024];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(buf, sizeof(buf), format, args);
	va_end(args);
	if (n > 0)
		output_bytes(out, buf, (size_t)n < sizeof(buf) ? (size_t)n : sizeof(buf) - 1);
}
