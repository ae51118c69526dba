/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events for output, as plain data: statements, transactions and lock waits, and the server and the
 * session that each of them belongs to, which are resolved once, where a record is read. Sessions
 * as ps lists them have the same two, see db/ps/session.h.
 * All strings are foreign bytes. Pointers are borrowed until the callback that was given the event
 * returns.
 */
#ifndef DB_EVENT_H
#define DB_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/event.h"

struct engine;
struct event_breakdown;
struct event_lock;
struct lock_info;
struct tags;
struct traceparent;

#define SERVER_VERSION	64	/* bytes of a version, with the NUL */
#define WAIT_EVENT	80	/* bytes of a wait event's name, with the NUL */
#define BACKEND_NAME	48	/* bytes of the name of what a session serves, with the NUL */

/*
 * A server, or, as long as its process is unknown, what is known of it: at least its file. "", 0
 * and false are unknown.
 */
struct server {
	const struct engine *engine;	/* of the registry, or the user's, or a recording's */
	const char *product;		/* "mariadb"; never unknown */
	const char *otel_system;	/* db.system.name of OpenTelemetry: "mariadb" */
	char version[SERVER_VERSION];	/* of the server, or of its file */
	char path[256];			/* of its file */
	uint32_t pid;			/* of its main process */
	bool has_uid;
	uint32_t uid;			/* the user of its processes, as the kernel knows it */
	char container[64];		/* ID or name; "" also if there is none */
	char directory[256];		/* its data directory, which no other server has */
};

/* A session. "" and 0 are unknown. */
struct who {
	uint32_t pid, tid;		/* of the process and the thread that serve it */
	uint64_t connection;		/* the server's number of it */
	char user[64], database[64], client[96];
	char application[64];		/* its name, as the client has set it */
	char backend[BACKEND_NAME];	/* what it serves, in PostgreSQL's words: "client" */
};

enum transaction_state {
	TRANSACTION_IS_UNKNOWN,
	TRANSACTION_IS_COMMITTED,
	TRANSACTION_IS_ROLLED_BACK,
	TRANSACTION_IS_PREPARED,	/* for a two-phase commit */
	/* Not ended: */
	TRANSACTION_IS_RUNNING,		/* a statement is */
	TRANSACTION_IS_IDLE,		/* the client is silent */
	TRANSACTION_IS_ABORTED,		/* the same, after a failure */
	TRANSACTION_STATES
};

struct transaction {
	enum transaction_state state;
	bool open;			/* not ended */
	bool dated;			/* its begin is known */
	bool counted;			/* all statements were seen: */
	uint64_t statements, idle_ns;
};

#define SQLSTATE_CHARACTERS	"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

/* Values that are unknown are NULL, 0 or false and absent from the output. */
struct statement {
	const struct server *server;	/* never NULL */
	const struct who *who;		/* the same */
	uint64_t start_ns;		/* CLOCK_MONOTONIC */
	uint64_t wall_ns;		/* the start by CLOCK_REALTIME */
	uint64_t duration_ns;
	uint64_t duration_error_ns;	/* it was sampled: plus or minus this */
	uint64_t query_id;		/* as computed by the server */
	uint32_t error_code;		/* the server's number */
	char sqlstate[SQLSTATE_LENGTH + 1];	/* of SQLSTATE_CHARACTERS; "": unknown */
	bool no_text;			/* the server has no text; none was lost */
	bool running;			/* not ended: the duration is that so far */
	bool prepare;			/* it prepared a statement and executed nothing */
	bool alone;			/* it was a transaction of its own, if that was traced */
	uint32_t fetches;		/* Executes of its portal, which was suspended */
	bool has_rows, has_status, failed;
	bool died;			/* its backend, or its server, ended before it did */
	uint64_t rows;
	bool has_counts, has_affected;	/* rows sent and affected, as in a slow log */
	uint64_t sent, affected;
	bool has_examined, has_lock;
	uint64_t examined;		/* rows that were read */
	uint64_t lock_ns;		/* until locks of tables and rows were granted */
	bool has_index, has_plan;	/* bits of PLAN_INDEX in ->plan are known; and all others */
	uint16_t plan;			/* bits of enum plan */
	const char *text;		/* not NUL-terminated; NULL: could not be read */
	size_t text_len;
	bool truncated;			/* ->text is only the first text_len bytes */
	bool unended;			/* a literal in ->text may have no end */
	/* Not 0: those of the same number and dialect have the same fingerprint. */
	uint64_t alike;
	size_t original_len;		/* of ->text before redaction; 0: not redacted */
	/*
	 * Of an EXECUTE or a FETCH: the text behind it, as the server keeps it: "PREPARE ..",
	 * "DECLARE ..". With ->level: the text of the statement that calls the routine. NULL:
	 * none, or unknown. Not NULL only if ->text is not.
	 */
	const char *of;
	size_t of_len;
	bool of_cut;			/* it is only the first of_len bytes */
	/* In a routine: 1 if a statement of the session calls that, 2 if one in that does, .. */
	uint32_t level;
	const char *span_text;		/* for spans, as ->text; NULL: unknown, or not wanted */
	size_t span_text_len;
	const char *span_of;		/* .. as ->of */
	size_t span_of_len;
	bool has_query_bytes;
	uint64_t query_bytes;		/* length of the whole text */
	const struct event_breakdown *why;	/* time breakdown */
	/* Names of the wait events of ->why->waits; each "" if unknown or none, NULL if all are. */
	const char (*events)[WAIT_EVENT];
	const uint64_t *waits;		/* durations of waits within it, if these are counted */
	size_t nwaits;
	/*
	 * Not NULL: this is a transaction, with its start, its duration (so far, if it is open) and
	 * the text of its longest statement.
	 */
	const struct transaction *transaction;
	const struct tags *tags;	/* from comments of the text; NULL: none, or not wanted */
	/* The caller's trace context, from a comment of the text; NULL: none, or not wanted. */
	const struct traceparent *parent;
};

#define LOCK_CYCLE	16	/* maximum backends of a deadlock to report */

/* A wait for a lock. */
struct lock_wait {
	const struct server *server;	/* never NULL */
	const struct who *who;		/* the waiting session; the same */
	const struct event_lock *event;
	uint64_t start_ns;		/* CLOCK_MONOTONIC */
	uint64_t wall_ns;		/* start, CLOCK_REALTIME */
	uint64_t duration_ns;		/* until now, if ->running */
	bool running;			/* has not ended */
	bool joined;			/* began before tracing: lasted longer than measured */
	const char *kind;		/* "transactionid", "row"; "": unknown */
	const struct lock_info *info;	/* NULL: it could not be resolved */
	/* With LOCK_DEADLOCK: PIDs of the cycle, each waiting for the next, this one first. */
	uint32_t cycle[LOCK_CYCLE];
	unsigned int ncycle;
};

#endif
