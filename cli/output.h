/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A buffered writer over a file descriptor. Errors are not returned by each
 * call: the first one sticks, what follows is dropped, output_flush() tells.
 * SIGPIPE must be ignored for a closed pipe to be seen as -EPIPE.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stddef.h>
#include <stdint.h>

#define OUTPUT_SIZE 32768
#define OUTPUT_NUMBER 24	/* room for any number of output_format() */

struct output {
	int fd;
	int stop_fd;		/* see output_stoppable(); -1: none */
	int error;		/* 0, or the first error as a negative errno */
	size_t len;
	char buf[OUTPUT_SIZE];
};

/* Starts an empty buffer over @fd, which stays the caller's to close. */
void output_init(struct output *out, int fd);

/*
 * A reader that has stopped must not keep us from ending: once @stop_fd is
 * readable, a write to a pipe or terminal waits a second at most, and then
 * fails with -EINTR.
 */
void output_stoppable(struct output *out, int stop_fd);

/* Adds @len bytes of @data. Writes what is buffered when the buffer is full. */
void output_bytes(struct output *out, const void *data, size_t len);

/* Adds the NUL-terminated @text. */
void output_string(struct output *out, const char *text);

/* Adds one byte. */
void output_char(struct output *out, char c);

/* Adds @count spaces. */
void output_spaces(struct output *out, size_t count);

/* Adds @value in decimal. */
void output_u64(struct output *out, uint64_t value);

/*
 * Adds @value / 10^@decimals, exactly, with @decimals digits after the point:
 * nanoseconds with 6 decimals are milliseconds. At most 18 decimals.
 */
void output_fixed(struct output *out, uint64_t value, unsigned int decimals);

/* As output_fixed(), into @buf, without a NUL. Returns the number of bytes. */
size_t output_format(char buf[OUTPUT_NUMBER], uint64_t value, unsigned int decimals);

/*
 * The local time of day of @wall_ns, of CLOCK_REALTIME, with 3 or 6 decimals: "23:59:59.123". Into
 * @buf, without a NUL; the number of bytes. Not for the hot path.
 */
size_t output_clock(char buf[OUTPUT_NUMBER], uint64_t wall_ns, unsigned int decimals);

/* Adds what printf would print, cut at 1023 bytes. Not for the hot path. */
void output_printf(struct output *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Writes everything that is buffered, and waits where the descriptor is
 * non-blocking. Returns 0, or the first error since output_init() as a negative errno.
 */
int output_flush(struct output *out);

#endif
