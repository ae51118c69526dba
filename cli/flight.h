/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The files of a recording: one, or with --memory one for each trigger. */
#ifndef CLI_FLIGHT_H
#define CLI_FLIGHT_H

#include <limits.h>

#include "cli/loop.h"
#include "db/recording/writer.h"

/* A flight recorder keeps the last events in memory until it is triggered. Closed if all zero. */
struct flight {
	struct loop *loop;		/* borrowed; its options decide */
	struct writer *writer;		/* borrowed */
	uint64_t memory;		/* bytes of --memory; 0: there is one file */
	int dir;			/* of the files, by O_PATH; owned */
	int fd;				/* of the current file, owned; -1: none */
	char name[NAME_MAX + 1];	/* of the current file .. */
	char (*names)[NAME_MAX + 1];	/* .. and of those so far, the oldest at ->nfiles % limit */
	uint64_t nfiles;
	uint64_t until_ns;		/* when the current file ends, CLOCK_MONOTONIC; 0: never */
	/* Statements and waits that have not ended, CLOCK_MONOTONIC: */
	uint64_t look_ns;		/* when they are checked again .. */
	uint64_t seen_ns, before_ns;	/* .. when they were, and before that */
	uint64_t second, errors;	/* failed statements in this second of CLOCK_MONOTONIC */
	char reason[64];		/* of the trigger that fired; "": none */
};

/*
 * Open the file that the options name, or prepare to. Return EXIT_OK, EXIT_USAGE or EXIT_FAILED.
 * flight_close() ends it.
 */
int flight_open(struct flight *flight, struct loop *loop, struct writer *writer);

/*
 * Empty the file and begin to write it, once nothing can fail any more but before privileges are
 * dropped. Return EXIT_OK or EXIT_FAILED.
 */
int flight_start(struct flight *flight);

/* Fire if an option requests it. The caller begins the file. */
void flight_statement(struct flight *flight, const struct statement *statement);
void flight_wait(struct flight *flight, uint64_t duration_ns);
void flight_signal(struct flight *flight);

/*
 * Return whether it is time to check the statements and waits that have not ended, by
 * flight_running(): a few times within the durations of the options, and not more than once a
 * second.
 */
bool flight_looks(struct flight *flight, uint64_t now_ns);

/* Fire if a @wait, or statement, since @start_ns has reached the option's duration just now. */
void flight_running(struct flight *flight, bool wait, uint64_t start_ns);

/* Return whether something has fired for which there is no file yet. */
bool flight_fired(const struct flight *flight);

/* Return whether the current file is to end at @now_ns, CLOCK_MONOTONIC. */
bool flight_ends(const struct flight *flight, uint64_t now_ns);

/* Begin a file for what has fired. A failure is reported; then recording goes on in memory. */
void flight_begin(struct flight *flight, uint64_t now_ns);

/* End the current file, whose last block was written with the result @err, and report it. */
void flight_end(struct flight *flight, int err);

void flight_close(struct flight *flight);

extern const struct option_row option_max_size, option_memory, option_on_slow, option_on_lock,
	option_on_error_rate, option_after, option_max_files;
extern const struct option_rule rule_trigger, rule_max_files;

#endif
