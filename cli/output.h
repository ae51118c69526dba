/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A buffered writer over a file descriptor. The functions that append return no error: after the
 * first one further output is dropped, and output_flush() returns it. A closed pipe is reported as
 * -EPIPE only if SIGPIPE is ignored.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTPUT_SIZE 32768
#define OUTPUT_NUMBER 24	/* bytes of the longest number of output_format() */

struct output {
	int fd;
	int stop_fd;		/* see output_stoppable(); -1: none */
	int error;		/* 0, or the first error as a negative errno */
	bool held;		/* keep output in the buffer, and drop what does not fit */
	size_t len;
	char buf[OUTPUT_SIZE];
};

/* Return whether @path, of an option or NULL, stands for the standard output. */
bool output_is_standard(const char *path);

/* Start with an empty buffer. @fd is borrowed. */
void output_init(struct output *out, int fd);

/*
 * Limit the time that a stalled reader can delay the end: once @stop_fd is readable, a write to a
 * pipe or terminal waits for at most one second and then fails with -EINTR. A terminal is opened
 * once more, until the process ends.
 */
void output_stoppable(struct output *out, int stop_fd);

/* Append @len bytes of @data. Flush the buffer if it is full. */
void output_bytes(struct output *out, const void *data, size_t len);

/* Append the NUL-terminated @text. */
void output_string(struct output *out, const char *text);

/* Append one byte. */
void output_char(struct output *out, char c);

/* Append @count spaces. */
void output_spaces(struct output *out, size_t count);

/* Append @value in decimal. */
void output_u64(struct output *out, uint64_t value);

/*
 * Append @value / 10^@decimals, exactly, with @decimals digits after the point: nanoseconds with 6
 * decimals are milliseconds. At most 18 decimals.
 */
void output_fixed(struct output *out, uint64_t value, unsigned int decimals);

/* Append @ns in milliseconds, with as many decimals as it takes. */
void output_ms(struct output *out, uint64_t ns);

/* Write the text of output_fixed() to @buf, without a NUL. Return the number of bytes. */
size_t output_format(char buf[OUTPUT_NUMBER], uint64_t value, unsigned int decimals);

/*
 * Write the local time of day of @wall_ns, of CLOCK_REALTIME, with 3 or 6 decimals to @buf, without
 * a NUL: "23:59:59.123". Return the number of bytes. Slow.
 */
size_t output_clock(char buf[OUTPUT_NUMBER], uint64_t wall_ns, unsigned int decimals);

/* Append as snprintf() does, cut at 1023 bytes. Slow. */
void output_printf(struct output *out, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Write the buffer; wait if the descriptor is non-blocking. Return 0, or the first error since
 * output_init() as a negative errno.
 */
int output_flush(struct output *out);

#endif
