/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the commands that trace servers share: opening the tracer as the options have it, saying
 * which servers are traced, and knowing when to end.
 */
#ifndef CLI_LOOP_H
#define CLI_LOOP_H

#include "cli/command.h"
#include "cli/option.h"
#include "cli/output.h"
#include "db/tracer.h"

#define LOOP_PIDS	64

struct loop {
	struct options options;
	struct output out, err;
	struct tracer *tracer;
	uint64_t start_ns;		/* CLOCK_MONOTONIC */
	uint32_t pids[LOOP_PIDS];	/* of the servers, for the first line */
	size_t npids;
	int usr1;		/* a signalfd(2) of SIGUSR1 */
	bool asked;		/* it came: what runs now is to be shown */
	int stop;		/* readable when it is to end: a signal, or the time of -d */
	bool signals;		/* these two are set up */
	bool opened;		/* what is told of servers from now on is of new ones */
	bool begun;
	const char *subject, *than;	/* for the first line; NULL: database queries, slower */
	/* The command's: the first line, printed once there is a server; and a statement. */
	void (*begin)(struct loop *loop);
	bool (*statement)(void *arg, const struct statement *statement);
};

/* Now, in ns of CLOCK_MONOTONIC. */
uint64_t loop_now(void);

/* command_options() for the watch, which begins now. */
bool loop_options(struct loop *loop, const struct command *command, int argc, char *argv[],
		  int *status);

/*
 * From now on a signal, or the time of -d, is told by loop_wait() and ends nothing by itself. 0, or
 * -errno: it cannot be waited for.
 */
int loop_arm(struct loop *loop);

/* -v: prints a program as the kernel gets it. @arg is the watch. */
void loop_program(void *arg, const char *name, const struct bpf_insn *insns, size_t count);

/* -v: prints what decides how it works here. */
void loop_features(struct loop *loop, const struct features *features);

/*
 * Fills @config from the options; a command then changes what it needs. The tracer's calls get the
 * watch, which must be the first member of what ->statement expects.
 */
void loop_config(struct loop *loop, struct tracer_config *config);

/*
 * Opens the tracer and begins, or says why not: EXIT_OK or EXIT_FAILED. The caller closes
 * ->tracer.
 */
int loop_open(struct loop *loop, const struct tracer_config *config);

/* -v: says what was given up, and of what was not, why. */
void loop_sandbox(struct loop *loop, const struct sandbox *sandbox);

/* Arms it, or says why that cannot be: EXIT_OK, or the status to end with. */
int loop_ready(struct loop *loop);

/* What follows once the probes are there, on @targets files: begins, or says that it waits. */
void loop_started(struct loop *loop, const struct features *features, size_t targets);

/* "Tracing database queries for pids 25776 slower than 1 ms...", to the output's buffer. */
void loop_headline(struct loop *loop);

/*
 * Waits for what ends us, for @fd (-1: nothing else), for SIGUSR1, which sets ->asked, or for
 * @timeout_ms. Whether it is to end.
 */
bool loop_wait(struct loop *loop, int fd, int timeout_ms);

/* How long to nap next, in ms, after @nap_ms in which the buffer got @filled, in percent. */
int loop_nap(int nap_ms, int filled);

/*
 * Ends the output, of which @err is what output_flush() told, with a summary in JSON; says what
 * became of it, and what was seen, shown and lost. The exit status, with --strict in it.
 */
int loop_finish(struct loop *loop, int err, const struct summary *summary);

#endif
