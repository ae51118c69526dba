/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DB_STATEMENT_H
#define DB_STATEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/owners.h"
#include "sql/fingerprint.h"

struct event_breakdown;
struct server;
struct tags;
struct traceparent;

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

/* A transaction for output. */
struct transaction {
	enum transaction_state state;
	bool open;			/* not ended */
	bool dated;			/* its begin is known */
	bool counted;			/* all statements were seen: */
	uint64_t statements, idle_ns;
};

/*
 * A statement for output. Values that are unknown are NULL, 0 or false and absent from the
 * output. Strings are foreign bytes of any content, borrowed until the callback that was given
 * the statement returns.
 */
struct statement {
	const char *engine;		/* "postgresql" */
	const char *otel_system;	/* db.system.name of OpenTelemetry: "mariadb" */
	const char *service;		/* the name of the product: "mariadb" */
	const struct server *server;	/* NULL: unknown, or not wanted */
	bool has_uid;			/* known, if ->server was wanted: */
	uint32_t uid;			/* the user of its process, by the kernel */
	const char *path;		/* of the server's file */
	const char *version;		/* of the server, or of its file; "": unknown */
	enum fingerprint_dialect dialect;
	uint32_t pid, tid;
	uint64_t start_ns;		/* CLOCK_MONOTONIC */
	uint64_t wall_ns;		/* the start by CLOCK_REALTIME */
	uint64_t duration_ns;
	const char *user, *database, *client;	/* NUL-terminated */
	const char *application;	/* its name, as the client has set it */
	const char *container;		/* id or name */
	uint64_t connection_id;		/* the server's number; 0: unknown */
	uint64_t query_id;		/* as computed by the server; 0: unknown */
	uint32_t error_code;		/* the server's number; 0: unknown */
	char sqlstate[6];		/* "" if unknown */
	bool no_text;			/* the server has no text; none was lost */
	bool running;			/* not ended: the duration is that so far */
	bool prepare;			/* it prepared a statement and executed nothing */
	bool alone;			/* it was a transaction of its own, if that was traced */
	uint32_t fetches;		/* Executes of its portal, which was suspended; or 0 */
	bool has_rows, has_status, failed;
	uint64_t rows;
	bool has_counts;		/* rows sent and affected, as in a slow log */
	uint64_t sent, affected;
	bool has_examined, has_lock;
	uint64_t examined;		/* rows that were read */
	uint64_t lock_ns;		/* until locks of tables and rows were granted */
	bool has_index, has_plan;	/* bits of PLAN_INDEX in ->plan are known; and all others */
	uint16_t plan;			/* bits of enum plan */
	const char *text;		/* not NUL-terminated; NULL: could not be read */
	size_t text_len;
	bool truncated;			/* ->text is only the first text_len bytes */
	/* Not 0: those of the same number and dialect have the same fingerprint. */
	uint64_t alike;
	size_t original_len;		/* of ->text before redaction; 0: not redacted */
	const char *span_text;		/* for spans, as ->text; NULL: unknown, or not wanted */
	size_t span_text_len;
	bool has_query_bytes;
	uint64_t query_bytes;		/* length of the whole text */
	const struct event_breakdown *why;	/* time breakdown; NULL: unknown */
	/*
	 * Not NULL: this is a transaction, with its start, its duration (so far, if it is open) and
	 * the text of its longest statement.
	 */
	const struct transaction *transaction;
	const struct tags *tags;	/* from comments of the text; NULL: none, or not wanted */
	/* The caller's trace context, from a comment of the text; NULL: none, or not wanted. */
	const struct traceparent *parent;
};

/* Counts since the start of statements and losses. JSON has the same names. */
struct summary {
	uint64_t statements, printed;
	uint64_t ring_full, table_full, start_without_end, end_without_start, who_unknown;
	uint64_t text_unreadable, text_truncated;
	uint64_t value_unreadable, undecided;	/* of the command trace */
	/* For the overhead limit: left out of those printed; time without probes. */
	uint64_t text_dropped, why_dropped, untraced_ns;
	uint64_t boundary;	/* statements that ran when tracing began or ended: not a loss */
	const char *printed_noun;	/* unit of ->printed, "waits"; NULL: as ->statements */
	struct owners_report users;	/* losses by the user of the traced process */
	struct owners_report servers;	/* by this and by its file; not of the command trace */
	struct target *targets;	/* for target_by_id(), borrowed; NULL: ->servers is empty */
	size_t ntargets;
};

#endif
