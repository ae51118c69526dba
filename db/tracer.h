/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The whole path: finds the servers, puts probes on them, and turns the
 * kernel's records into statements. New servers are found while it runs.
 */
#ifndef DB_TRACER_H
#define DB_TRACER_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <sys/types.h>

#include "bpf/event.h"
#include "db/discover.h"
#include "db/histogram.h"
#include "db/statement.h"
#include "loader/error.h"
#include "loader/feature.h"
#include "loader/sandbox.h"
#include "sql/regex.h"

struct tracer_config {
	struct server_filter servers;
	uint64_t threshold_ns;
	uint32_t text_bytes;
	bool rows;			/* the number of rows is wanted */
	bool why;			/* where the time goes is wanted */
	bool use, phases;		/* with why: what is used, and the phases, too */
	bool identify;			/* user, database, client and container are wanted */
	/* Only statements of these; NULL: all. What is not known does not match. */
	const char *user, *database, *container;
	const struct regex *match;	/* what the text must have; NULL: anything */
	bool parents;			/* statements' ->parent is wanted */
	bool redact;			/* then texts have no literals and no comments any more */
	/*
	 * Statements are counted by their duration in this unit, and not handed on; 0: they are. The
	 * kernel counts, but with ->match, as it does not look into texts.
	 */
	uint64_t stat_unit_ns;
	enum stat_by stat_by;
	/*
	 * With ->wait, ->why and that: what is counted is waits inside statements, for this part of
	 * the time or in this system call; BREAKDOWN_PARTS and BREAKDOWN_NONE: none.
	 */
	bool wait;
	enum breakdown_part wait_part;
	uint32_t wait_call;
	uint32_t denied;		/* features not to be used, see feature_deny() */

	/* Who hears of what; the strings are borrowed for the call. */
	void *arg;
	/* Whether it was shown. */
	bool (*statement)(void *arg, const struct statement *statement);
	void (*server)(void *arg, const struct server_info *server);
	/* A server that started later cannot be traced. */
	void (*error)(void *arg, const struct error *error);
	/*
	 * From here on something is in the kernel that it does not take away with us: only
	 * tracer_close() does. 0, or -errno: it is not to be. May be NULL.
	 */
	int (*lasting)(void *arg);
	/* Each program as it is loaded; may be NULL. */
	void (*program)(void *arg, const char *name, const struct bpf_insn *insns, size_t count);
	/* Each place that is traced; may be NULL. */
	void (*site)(void *arg, const struct target_site *site);
};

struct tracer;

/*
 * Loads all, attaches to the servers that run, and calls config->server for each. 0, or -errno
 * and why in @fault. *@tracer is the caller's to close. No server is no error: one may come.
 */
int tracer_open(struct tracer **tracer, const struct tracer_config *config, struct error *error);

/*
 * Gives up what is not needed any more: all but what new servers take, unless config->pids names
 * all that there will be; see confine().
 */
void tracer_sandbox(const struct tracer *tracer, struct sandbox *sandbox);

/* What the kernel was found to have. Borrowed; not asked for is not known. */
const struct features *tracer_features(const struct tracer *tracer);

/* How many servers' files are traced. */
size_t tracer_targets(const struct tracer *tracer);

/*
 * Handles the records that are there: calls config->statement. How full the buffer was, in
 * percent.
 */
int tracer_drain(struct tracer *tracer);

/*
 * Nothing to do: asks to be woken. The descriptor that becomes readable with the next
 * record, or -EAGAIN: there is something to drain.
 */
int tracer_sleep(struct tracer *tracer);

/* What was counted since the start, of the kernel's counting or ours; see counts.h. */
ssize_t tracer_histogram(const struct tracer *tracer, struct histogram_row **rows);

/*
 * Calls config->statement for each statement over the threshold that has begun and not ended; after
 * tracer_detach(), for those that ran when that began. Without its text where the server's memory
 * does not tell.
 */
void tracer_running(struct tracer *tracer);

/* Takes the probes away, so that only what is in the buffer is still to come. */
void tracer_detach(struct tracer *tracer);

/* Fills what the kernel and this side counted; ->printed is the caller's. */
void tracer_summary(const struct tracer *tracer, struct summary *summary);

/* Detaches, and frees. NULL is fine. */
void tracer_close(struct tracer *tracer);

#endif
