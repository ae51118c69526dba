/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Replay: the statements and lock waits of a recording, as db/tracer.h and db/locks/locks.h report
 * them from a live host. Time is that of the recording, and passes as the caller says.
 */
#ifndef DB_RECORDING_REPLAY_H
#define DB_RECORDING_REPLAY_H

#include "db/discover/announce.h"
#include "db/recording/reader.h"
#include "db/sink.h"

/* The properties of a recording. Strings are foreign bytes; "" and 0 are unknown. */
struct replay_info {
	char host[256], dbslower[64], options[512];
	uint64_t start_ns, start_wall_ns;	/* CLOCK_MONOTONIC and CLOCK_REALTIME */
	uint64_t threshold_ns;			/* of the recording */
	uint32_t pids[SERVER_PIDS];		/* for the first line of the output */
	size_t npids;
	uint64_t begin_ns, end_ns;		/* of its events */
	struct recorded_user users[RECORDED_USERS];	/* what newer events displaced .. */
	size_t nusers;				/* .. of these users */
};

/* The selection of events, as in struct tracer_config; all is borrowed until replay_close(). */
struct replay_config {
	const char *engine;		/* only its servers; NULL: all */
	uint64_t threshold_ns;
	bool prepares;
	bool transactions;		/* instead of statements */
	bool why, use, phases;		/* with the breakdown, and these parts of it */
	uint64_t since_ns, until_ns;	/* ends of events, CLOCK_MONOTONIC */
	/* What becomes of events; a callback that is NULL gets none. ->owners is the replay's. */
	struct sink_config sink;
	void *arg;
	void (*server)(void *arg, const struct server_info *server);	/* or NULL */
};

struct replay;

/*
 * Create a replay of the regular file @fd, which it owns from now on, without reading it. Return
 * NULL if there is no memory; then @fd is closed. replay_close() ends it.
 */
struct replay *replay_new(int fd);

/*
 * Read the properties of the recording and find its blocks. @stopped, or NULL, is called with @arg
 * now and then until replay_close(): if it returns true, this and replay_drain() return -EINTR.
 * Return 0; -EINVAL if it is none; -EPROTONOSUPPORT as reader_open(); or another -errno.
 */
int replay_read(struct replay *replay, bool (*stopped)(void *arg), void *arg);

/* Return the properties of the recording; borrowed. */
const struct replay_info *replay_info(const struct replay *replay);

/* Begin. Return 0 or -ENOMEM. */
int replay_start(struct replay *replay, const struct replay_config *config);

/* Begin again at the start, with the same configuration. */
void replay_rewind(struct replay *replay);

/*
 * Report the events that ended until @limit_ns, at most a few thousand of them. Return 1 if more
 * may follow; 0 at the end of the recording; or -errno.
 */
int replay_drain(struct replay *replay, uint64_t limit_ns);

/* Return the time that was reached, and the end of the next event. */
uint64_t replay_now(const struct replay *replay);
uint64_t replay_next(const struct replay *replay);

/* Convert @ns of the recording's CLOCK_MONOTONIC to CLOCK_REALTIME. */
uint64_t replay_wall(const struct replay *replay, uint64_t ns);

/* Report what had not ended at the end of the recording, if that was reached; until stopped. */
void replay_running(struct replay *replay);

/* As tracer_histogram(). */
ssize_t replay_histogram(const struct replay *replay, struct histogram_row **rows);

/* Fill @summary by what the recorder lost until now, of statements or of @waits. */
void replay_summary(const struct replay *replay, struct summary *summary, bool waits);

/* Return the missing parts of the recording; borrowed. */
const struct reader_damage *replay_damage(const struct replay *replay);

void replay_close(struct replay *replay);

#endif
