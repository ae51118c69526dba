/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The event loop of the commands that trace, over a table of functions of the command.
 *
 * The loop drains and naps. Records gather during a nap, so that servers never pay for a wake-up;
 * naps are short while the buffer fills quickly. After a nap without records the loop sleeps until
 * the kernel has one. It ends on a signal, after the time of -d, or when a function of the command
 * sets ->done.
 */
#ifndef CLI_LOOP_H
#define CLI_LOOP_H

#include "cli/format/server_set.h"
#include "cli/format/summary.h"
#include "cli/start.h"
#include "db/discover/announce.h"
#include "db/loss.h"
#include "loader/error.h"

struct loop;
struct source;
struct tracer;

/* Losses that are reported while the loop runs; at the end, all are. */
enum loop_report {
	LOOP_REPORT_NONE,
	LOOP_REPORT_EVENTS,		/* events that were dropped */
	LOOP_REPORT_TEXTS,		/* and texts that could not be read */
};

/*
 * The differences between the commands that trace. The functions receive the loop, the first member
 * of the command's state.
 */
struct loop_ops {
	size_t size;			/* of the command's state, which is zeroed */
	const char *noun;		/* of the events in the summary: "statements" */
	const char *unfinished;		/* the line before events that have not ended; or NULL */
	unsigned int losses;		/* in JSON, LOSSES_OF_* */
	enum loop_report report;
	/* Trace as the options ask for it, by loop_run(). Return the exit status. */
	int (*run)(struct loop *loop);
	/*
	 * Open what requires privileges that are then dropped, once servers can be traced. Return
	 * EXIT_OK or an exit status. May be NULL.
	 */
	int (*opened)(struct loop *loop);
	/* Free what the state owns, after ->run, whether or not that succeeded. May be NULL. */
	void (*close)(struct loop *loop);
	/* Print the head of the output, once a file is traced. */
	void (*begin)(struct loop *loop);
	/* Handle the records in the buffer. Return its fill level in percent. */
	int (*drain)(struct loop *loop);
	/* Ask for a wake-up. Return a descriptor to poll, or -EAGAIN. NULL: the loop only naps. */
	int (*sleep)(struct loop *loop);
	/* Called after each drain. Return 0, or -errno of the output. May be NULL. */
	int (*tick)(struct loop *loop);
	/* Print what has not ended, on SIGUSR1 and at the end. May be NULL. */
	void (*running)(struct loop *loop);
	/* SIGUSR2 was received; NULL: it ends the process. */
	void (*triggered)(struct loop *loop);
	/* Remove the probes; records in the buffer remain. */
	void (*detach)(struct loop *loop);
	/*
	 * Print what is printed once, at the end, unless *@err: that is the output's error, and
	 * updated. Return EXIT_OK or EXIT_FAILED. May be NULL.
	 */
	int (*finish)(struct loop *loop, int *err);
	/* Fill @summary. */
	void (*summary)(struct loop *loop, struct summary *summary);
};

struct loop {
	const struct loop_ops *ops;
	const struct command *command;
	struct options options;
	struct output out, err;
	uint64_t start_ns;		/* CLOCK_MONOTONIC */
	int nap_ms;			/* length of a nap; 0: adaptive */
	int sleep_ms;			/* longest sleep, set by ->ops->sleep; 0: the default */
	const struct source *source;	/* see cli/source.h; it sets these: */
	struct tracer *tracer;		/* owned by it; NULL: not open, or a recording */
	bool waits;			/* lock waits are counted, not statements */
	const char *host;		/* of the events, foreign bytes, borrowed; NULL: this one */
	uint64_t end_ns;		/* of the events, if it is known */
	bool stays;			/* set by the command: their end does not end the loop */
	uint64_t wake_ns;		/* until when time may pass before the next tick; 0: any */
	uint64_t counted;		/* limited by -n, see loop_count() */
	uint64_t next_ns;		/* end of the interval of -i; 0: none yet */
	bool done;			/* nothing more is printed */
	bool failed;			/* ended by an error of the command */
	bool ending;			/* the probes are removed */
	bool terminal;			/* the standard output is one: no event waits in ->out */
	bool unfinished;		/* the event last printed had not ended */
	/* State of the loop itself. */
	bool asked;			/* SIGUSR1 was received */
	uint64_t reported_ns, reported;	/* when losses were last reported, and how many */
	int usr1;			/* a signalfd(2) of SIGUSR1, and of SIGUSR2 if it is used */
	int signals;			/* a signalfd(2) of those that end the loop */
	int stop;			/* an epoll descriptor, readable when the loop is to end */
	bool interrupted;		/* loop_interrupted() has returned true */
	/* For banner.h. */
	struct {
		const char *subject;	/* of the first line; NULL: "database queries" */
		const char *than;	/* NULL: " slower than " */
		uint32_t pids[SERVER_PIDS];	/* main processes of the servers */
		size_t npids;
		struct server_set servers;
		char absent[2048];	/* arguments of the file that cannot be read; foreign */
		bool phases;		/* statements are shown with their phases */
		bool transactions;	/* transactions are shown */
		bool silent;		/* servers are not reported one by one */
		bool opened;		/* servers reported from now on started later */
		bool begun;		/* ->ops->begin was called */
		bool explained;		/* why a server that runs is not traced */
	} banner;
};

/* Return CLOCK_MONOTONIC and CLOCK_REALTIME of the source, in ns. */
uint64_t loop_now(const struct loop *loop);
uint64_t loop_wall(const struct loop *loop);

/* Return the groups of losses, LOSSES_OF_*, that the command can have with its options. */
unsigned int loop_losses(const struct loop *loop);

/* Request a tick at @ns of loop_now(), which a recording otherwise does not wait for. */
void loop_wake(struct loop *loop, uint64_t ns);

/* The ->run of a command that traces: parse the command line and call ->run of its loop_ops. */
int loop_command(const struct command *command, int argc, char *argv[]);

/*
 * Route signals and the time of -d to loop_run(), instead of ending the process. Called before the
 * first probe is attached: a fatal signal in the system call that attaches makes the kernel leave
 * breakpoints behind. Return EXIT_OK, or EXIT_FAILED after a message.
 */
int loop_ready(struct loop *loop);

/* Begin the output if it is JSON; nothing is written yet. */
void loop_json(struct loop *loop);

/*
 * Return whether a signal that ends the loop is pending. Called between two files to attach to: if
 * so, the rest is not attached. @arg is the loop.
 */
bool loop_interrupted(void *arg);

/* Print the message for @error, which is cleared. Return EXIT_FAILED. */
int loop_refuse(struct loop *loop, struct error *error);

/* Begin to print an event, which has ended or not: add the line before those that have not. */
void loop_begin_event(struct loop *loop, bool ended);

/* End printing an event. One that has ended counts towards the limit of -n. */
void loop_end_event(struct loop *loop, bool ended);

/* Count one event towards the limit of -n; set ->done at the limit. */
void loop_count(struct loop *loop);

/* Return whether the interval of -i has ended; if so, the next one begins. */
bool loop_interval(struct loop *loop);

/* Begin what is printed at each interval: with -i, print @wall_ns as a time of day, not in JSON. */
void loop_stamp(struct loop *loop, uint64_t wall_ns);

/* Run until the end. Print what is left, the summary and the losses. Return the exit status. */
int loop_run(struct loop *loop);

#endif
