// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/flight.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/format/escape.h"
#include "cli/format/json.h"
#include "cli/message.h"
#include "cli/option/set.h"
#include "cli/option/table.h"
#include "host/clock.h"
#include "host/open.h"

#define AFTER_NS	(30ull * NS_PER_S)	/* default of --after */
#define FILES		10			/* default of --max-files */
#define FILES_MAX	1000
#define SIZE		(256ull << 20)		/* default of --max-size, with --memory */
#define CREATES		(O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC)

static struct {
	uint64_t max_size;		/* of a recording, in bytes; 0: any */
	uint64_t memory;		/* bytes of a flight recorder; 0: none */
	uint64_t on_slow_ns, on_lock_ns, on_errors;	/* its triggers; 0: none */
	uint64_t after_ns, max_files;	/* 0: the default */
} own;

static const char *flight_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static uint64_t flight_limit(void)
{
	return own.max_files ? own.max_files : FILES;
}

/* Report @cause of the file @name. */
static void flight_message(struct flight *flight, const char *name, const char *cause)
{
	struct output *err = &flight->loop->err;

	output_string(err, "dbslower: ");
	escape_terminal(err, name, strlen(name), false);
	output_printf(err, ": %s\n", cause);
	output_flush(err);
}

/* Prepare to create files named by the options' pattern. Return EXIT_OK or an exit status. */
static int flight_prepare(struct flight *flight)
{
	const struct options *options = &flight->loop->options;
	struct error error = { .kind = ERROR_NONE };

	if (!strstr(flight_base(options->file), "%t")) {
		flight_message(flight, options->file, "with --memory, there is a file for each "
			       "trigger; specify a name with %t, which becomes the time");
		return EXIT_USAGE;
	}
	flight->names = calloc(flight_limit(), sizeof(*flight->names));
	if (!flight->names)
		return message_no_memory();
	flight->dir = open_parent(options->file);
	if (flight->dir >= 0)
		return EXIT_OK;
	error_set(&error, ERROR_OUTPUT, flight->dir, options->file, NULL);
	return loop_refuse(flight->loop, &error);
}

/* Report that the file is a pipe. Return EXIT_FAILED. */
static int flight_pipe(struct flight *flight)
{
	const char *path = flight->loop->options.file;
	struct output *err = &flight->loop->err;

	output_string(err, "dbslower: ");
	escape_terminal(err, path, strlen(path), false);
	output_string(err, ": a pipe cannot have a recording; specify a regular file\n");
	output_flush(err);
	return EXIT_FAILED;
}

/*
 * Refuse a file that other users may open, as it gets texts. Lock it, so that no other recorder
 * writes to it as long as this process has it open, where files can be locked. Return EXIT_OK or
 * EXIT_FAILED.
 */
static int flight_take(struct flight *flight)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	const char *path = flight->loop->options.file;
	struct output *err = &flight->loop->err;
	struct stat st;
	bool open;

	if (fstat(flight->fd, &st) || !S_ISREG(st.st_mode))
		return EXIT_OK;
	open = st.st_mode & S_IRWXO;
	if (!open && (!fcntl(flight->fd, F_SETLK, &lock) || (errno != EAGAIN && errno != EACCES)))
		return EXIT_OK;
	output_string(err, "dbslower: ");
	escape_terminal(err, path, strlen(path), false);
	if (open)
		output_string(err, ": other users may open it; chmod o= it, or specify another "
			      "file\n");
	else if (!fcntl(flight->fd, F_GETLK, &lock) && lock.l_type != F_UNLCK && lock.l_pid > 0)
		output_printf(err, ": process %d records to it; specify another file\n",
			      lock.l_pid);
	else
		output_string(err, ": another process has locked it; specify another file\n");
	output_flush(err);
	return EXIT_FAILED;
}

int flight_open(struct flight *flight, struct loop *loop, struct writer *writer)
{
	const struct options *options = &loop->options;
	struct error error = { .kind = ERROR_NONE };
	uint64_t id = clock_ns(CLOCK_REALTIME);

	*flight = (struct flight){
		.loop = loop, .writer = writer, .memory = own.memory, .dir = -1, .fd = -1,
	};
	if (!options->file) {
		flight_message(flight, "record", "no file; specify one: dbslower record FILE");
		return EXIT_USAGE;
	}
	getrandom(&id, sizeof(id), GRND_NONBLOCK);
	writer_open(writer, id, own.memory, options->text_bytes);
	if (own.memory)
		return flight_prepare(flight);
	flight->fd = open_output(options->file, false);
	if (flight->fd < 0) {
		error_set(&error, ERROR_OUTPUT, flight->fd, options->file, NULL);
		return loop_refuse(loop, &error);
	}
	/* Writing to a pipe would wait for its reader, or fail, and a ring cannot be written. */
	return lseek(flight->fd, 0, SEEK_CUR) < 0 ? flight_pipe(flight) : flight_take(flight);
}

int flight_start(struct flight *flight)
{
	struct loop *loop = flight->loop;
	int err = 0;

	if (flight->fd < 0)
		return EXIT_OK;
	/* Until here an earlier recording is kept. A ring is not written at the end of the file. */
	if (fcntl(flight->fd, F_SETFL, O_NONBLOCK) || (ftruncate(flight->fd, 0) && errno != EINVAL))
		err = -errno;
	if (!err)
		err = writer_file(flight->writer, flight->fd, own.max_size);
	return err ? message_unwritten(&loop->err, loop->options.file, err) : EXIT_OK;
}

/* Note what has fired, unless there is a file. */
static void flight_fire(struct flight *flight, const char *what, uint64_t ns)
{
	char number[OUTPUT_NUMBER];
	size_t len = output_format(number, ns / 1000000, 3);

	if (!own.memory || flight->fd >= 0 || *flight->reason)
		return;
	snprintf(flight->reason, sizeof(flight->reason), "%s%.*s%s", what, ns ? (int)len : 0,
		 number, ns ? " s" : "");
}

void flight_statement(struct flight *flight, const struct statement *s)
{
	uint64_t second = (s->start_ns + s->duration_ns) / NS_PER_S;

	if (s->running)
		return;
	if (own.on_slow_ns && s->duration_ns >= own.on_slow_ns)
		flight_fire(flight, "statement of ", s->duration_ns);
	if (!s->failed || !own.on_errors || second < flight->second)
		return;
	flight->errors = flight->second == second ? flight->errors + 1 : 1;
	flight->second = second;
	if (flight->errors >= own.on_errors)
		flight_fire(flight, "errors", 0);
}

void flight_wait(struct flight *flight, uint64_t duration_ns)
{
	uint64_t on_lock_ns = own.on_lock_ns;

	if (on_lock_ns && duration_ns >= on_lock_ns)
		flight_fire(flight, "lock wait of ", duration_ns);
}

bool flight_looks(struct flight *flight, uint64_t now_ns)
{
	uint64_t slow_ns = own.on_slow_ns, lock_ns = own.on_lock_ns;
	uint64_t least_ns = !slow_ns || (lock_ns && lock_ns < slow_ns) ? lock_ns : slow_ns;

	if (!own.memory || !least_ns || now_ns < flight->look_ns)
		return false;
	flight->look_ns = now_ns + (least_ns / 2 < NS_PER_S ? NS_PER_S : least_ns / 2);
	flight->before_ns = flight->seen_ns;
	flight->seen_ns = now_ns;
	return true;
}

void flight_running(struct flight *flight, bool wait, uint64_t start_ns)
{
	uint64_t limit_ns = wait ? own.on_lock_ns : own.on_slow_ns;
	uint64_t reached_ns = start_ns + limit_ns;

	/* Once only: it is still there when the file has ended. */
	if (limit_ns && reached_ns <= flight->seen_ns && reached_ns > flight->before_ns)
		flight_fire(flight, wait ? "lock waited for " : "statement running for ",
			    flight->seen_ns - start_ns);
}

void flight_signal(struct flight *flight)
{
	flight_fire(flight, "SIGUSR2", 0);
}

bool flight_fired(const struct flight *flight)
{
	return *flight->reason;
}

bool flight_ends(const struct flight *flight, uint64_t now_ns)
{
	return flight->until_ns && now_ns >= flight->until_ns;
}

/* Write the pattern of the options with the time in place of %t to ->name. Return 0 or -errno. */
static int flight_name(struct flight *flight)
{
	const char *pattern = flight_base(flight->loop->options.file), *at = strstr(pattern, "%t");
	char time[JSON_TIME];
	size_t len;

	json_time_text(time, clock_ns(CLOCK_REALTIME));
	/* 2024-02-29T23:59:59.123456789Z without the colons, to the millisecond */
	len = (size_t)snprintf(flight->name, sizeof(flight->name), "%.*s%.13s%.2s%.6sZ%s",
			       (int)(at - pattern), pattern, time, time + 14, time + 17, at + 2);
	return len < sizeof(flight->name) ? 0 : -ENAMETOOLONG;
}

/* Remove the oldest file if there are as many as the options permit; remember the current one. */
static void flight_rotate(struct flight *flight)
{
	char *oldest = flight->names[flight->nfiles++ % flight_limit()];

	if (*oldest && !unlinkat(flight->dir, oldest, 0))
		flight_message(flight, oldest, "removed: limit of --max-files");
	memcpy(oldest, flight->name, sizeof(flight->name));
}

void flight_begin(struct flight *flight, uint64_t now_ns)
{
	int err = flight_name(flight);

	if (!err) {
		flight->fd = openat(flight->dir, flight->name, CREATES, 0600);
		err = flight->fd < 0 ? -errno : 0;
	}
	if (!err) {
		flight_rotate(flight);
		flight_message(flight, flight->name, flight->reason);
		flight->until_ns = now_ns + (own.after_ns ? own.after_ns : AFTER_NS);
		err = writer_file(flight->writer, flight->fd,
				  own.max_size ? own.max_size : SIZE);
	}
	*flight->reason = '\0';
	if (!err)
		return;
	message_unwritten(&flight->loop->err, flight->name, err);
	/* Without a file, the events are still in memory. */
	if (flight->fd >= 0)
		flight_end(flight, err);
}

void flight_end(struct flight *flight, int err)
{
	const struct writer *writer = flight->writer;
	const char *name = *flight->name ? flight->name : flight->loop->options.file;
	char text[192];
	int len;

	len = snprintf(text, sizeof(text), "%llu bytes, %llu statements, %llu lock waits",
		       (unsigned long long)writer->written, (unsigned long long)writer->statements,
		       (unsigned long long)writer->waits);
	if (writer->dropped)
		snprintf(text + len, sizeof(text) - (size_t)len, "; %llu blocks did not fit: "
			 "specify a larger --max-size or --memory",
			 (unsigned long long)writer->dropped);
	if (!err)
		flight_message(flight, name, text);
	writer_no_file(flight->writer);
	if (flight->fd >= 0)
		close(flight->fd);
	flight->fd = -1;
	flight->until_ns = 0;
}

void flight_close(struct flight *flight)
{
	free(flight->names);
	if (flight->loop && flight->dir >= 0)
		close(flight->dir);
	if (flight->loop && flight->fd >= 0)
		close(flight->fd);
}

const struct option_row option_memory = {
	.name = "memory", .arg = "BYTES",
	.help = "keep the newest in memory; write FILE on a trigger",
	.accepts = "expected bytes, at least 1M: 8M, 64M",
	.set = option_set_size, OPTION_OWN(own.memory),
};

const struct option_row option_on_slow = {
	.name = "on-slow", .arg = "SECONDS",
	.help = "trigger: a statement runs so long, or has ended",
	.accepts = OPTION_SECONDS,
	.set = option_set_time, OPTION_OWN(own.on_slow_ns),
};

const struct option_row option_on_lock = {
	.name = "on-lock", .arg = "SECONDS",
	.help = "trigger: a lock wait takes so long, or has ended",
	.accepts = OPTION_SECONDS,
	.set = option_set_time, OPTION_OWN(own.on_lock_ns),
};

const struct option_row option_on_error_rate = {
	.name = "on-error-rate", .arg = "N",
	.help = "trigger: N statements failed within a second",
	.accepts = "expected a whole number",
	.set = option_set_number, OPTION_OWN(own.on_errors),
};

const struct option_row option_after = {
	.name = "after", .arg = "SECONDS",
	.help = "record so long after a trigger (default 30)",
	.accepts = OPTION_SECONDS,
	.set = option_set_time, OPTION_OWN(own.after_ns),
};

const struct option_row option_max_files = {
	.name = "max-files", .arg = "N",
	.help = "remove the oldest of more files (default 10)",
	.accepts = "expected a whole number from 1 to 1000",
	.set = option_set_number, OPTION_OWN(own.max_files),
};

const struct option_row option_max_size = {
	.name = "max-size", .arg = "BYTES",
	.help = "keep only the newest statements: 100M, 1G",
	.accepts = "expected bytes, at least 1M: 100M, 1G",
	.set = option_set_size, OPTION_OWN(own.max_size),
};

static bool trigger_alone(const struct options *opts)
{
	(void)opts;
	return !own.memory && (own.on_slow_ns || own.on_lock_ns || own.on_errors || own.after_ns ||
			       own.max_files);
}

static bool too_many_files(const struct options *opts)
{
	(void)opts;
	return own.max_files > FILES_MAX;
}

const struct option_rule rule_trigger = {
	trigger_alone, "--on-slow, --on-lock, --on-error-rate, --after, --max-files",
	"require --memory", "specify --memory 8M",
};

const struct option_rule rule_max_files = {
	too_many_files, "--max-files", "too large", "expected a number up to 1000",
};
