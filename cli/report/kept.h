/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The longest statements and lock waits of a report, copied. */
#ifndef CLI_REPORT_KEPT_H
#define CLI_REPORT_KEPT_H

#include "cli/format/locks_wait.h"
#include "db/event.h"

#define REPORT_KEPT	200
#define REPORT_TEXT	2048		/* bytes of a statement that are kept */
#define REPORT_NAME	96		/* of a name, with the NUL */

/* A text of foreign bytes, owned. ->bytes NULL: unknown. */
struct report_text {
	char *bytes;
	uint32_t len;
	bool cut;
};

/*
 * A session: a connection of the server's process if ->connection is not 0, else a process. Both 0:
 * a prepared transaction.
 */
struct report_session {
	uint32_t pid;
	uint64_t connection;
};

struct report_kept {
	uint64_t wall_ns, duration_ns;	/* ->wall_ns 0: unknown */
	const char *engine;		/* name of the product; owned by the report */
	struct report_session session;
	bool running;			/* has not ended */
	struct report_text text;
};

struct report_statement {
	struct report_kept kept;
	uint64_t hash;			/* of its fingerprint */
	char user[REPORT_NAME], database[REPORT_NAME], client[REPORT_NAME];
	uint64_t rows;
	uint32_t error_code;
	char sqlstate[SQLSTATE_LENGTH + 1];
	bool has_rows, failed, has_why;
	__u64 part_ns[BREAKDOWN_PARTS];
};

struct report_holder {
	struct report_session session;
	uint64_t blocked_ns;
	bool queued, idle, running;
	struct report_text text;	/* its statement, the last one unless ->running */
};

struct report_lock_wait {
	struct report_kept kept;
	bool joined, deadlock, all;	/* ->all: no other holders */
	const char *outcome, *mode;	/* static */
	char kind[REPORT_NAME], object[LOCKS_OBJECT];
	struct report_holder holders[LOCK_HOLDERS_KEPT];
	unsigned int nholders, more;
	uint32_t cycle[LOCK_CYCLE];
	unsigned int ncycle;
};

/* The order of the longest of them, by index. All zero: empty. */
struct report_longest {
	uint64_t ns[REPORT_KEPT];
	unsigned int count, least;
};

/*
 * Return the index at which to keep one of @ns, in place of the shortest if all are used; -1: it is
 * not one of the longest.
 */
int report_longest_add(struct report_longest *longest, uint64_t ns);

/* Write the indices to @order, the longest first. */
void report_longest_sort(const struct report_longest *longest, unsigned int order[REPORT_KEPT]);

/* Replace @to by a copy. @engine is borrowed. Without memory, a text is unknown. */
void report_keep_statement(struct report_statement *to, const struct statement *s,
			   const char *engine, uint64_t hash);
void report_keep_wait(struct report_lock_wait *to, const struct lock_wait *wait,
		      const char *engine);

/* Free the texts. */
void report_drop_statement(struct report_statement *statement);
void report_drop_wait(struct report_lock_wait *wait);

/* Return whether @session is known; a holder that is not is a prepared transaction. */
bool report_session_known(const struct report_session *session);

/* Return whether both are the same session of one engine. */
bool report_session_same(const struct report_session *a, const struct report_session *b);

#endif
