/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DB_STATEMENT_H
#define DB_STATEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sql/fingerprint.h"

struct event_breakdown;
struct traceparent;

/*
 * A statement as it is shown. What is not known is NULL or false and is absent from
 * the output. Strings are foreign bytes of any content, borrowed until the
 * callback that was given the statement returns.
 */
struct statement {
	const char *engine;		/* "postgresql" */
	const char *otel_system;	/* db.system.name of OpenTelemetry: "postgresql", "mariadb" */
	enum fingerprint_dialect dialect;
	uint32_t pid, tid;
	uint64_t start_ns;		/* CLOCK_MONOTONIC */
	uint64_t wall_ns;		/* the start in CLOCK_REALTIME */
	uint64_t duration_ns;
	const char *user, *database, *client;	/* NUL-terminated */
	const char *container;		/* its id or name */
	uint64_t connection_id;		/* the server's number for it; 0: not known */
	uint32_t error_code;		/* the server's; 0: not known */
	bool no_text;			/* the server has none; nothing was lost */
	bool running;			/* it has not ended: the duration is until now */
	bool has_rows, has_status, failed;
	uint64_t rows;
	const char *text;		/* not NUL-terminated; NULL: could not be read */
	size_t text_len;
	bool truncated;			/* text is only the first text_len bytes */
	size_t original_len;		/* of text before it was redacted; 0: it was not */
	bool has_query_bytes;
	uint64_t query_bytes;		/* the whole length */
	const struct event_breakdown *why;	/* where its time went; NULL: not known */
	/* Who called, as its text says before it is redacted; NULL: it does not, or was not asked. */
	const struct traceparent *parent;
};

/* What was seen and what was lost since the start; the names in JSON are the same. */
struct summary {
	uint64_t statements, printed;
	uint64_t ring_full, table_full, start_without_end, end_without_start, who_unknown;
	uint64_t text_unreadable, text_truncated;
	bool waits;		/* what was ->printed is waits in them */
};

#endif
