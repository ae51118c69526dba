/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decode the events of a block of a recording to statements, lock waits and losses. A recording
 * may have any content.
 */
#ifndef DB_RECORDING_DECODE_H
#define DB_RECORDING_DECODE_H

#include "bpf/lock_event.h"
#include "db/engine.h"
#include "db/event.h"
#include "db/locks/info.h"
#include "db/loss.h"
#include "db/recording/codec.h"
#include "db/recording/encode.h"
#include "db/recording/format.h"
#include "sql/traceparent.h"

/* A server of the recording. It is valid until decode_close(). */
struct decode_server {
	struct server server;
	struct engine unknown;		/* ->engine of ->server, if it is not of the registry */
	char name[32], product[32], otel_system[32];
};

struct decode_session {
	const struct server *server;	/* of struct decode, or .. */
	struct server other;		/* .. this one, which is the same but for its user */
	struct who who;
};

/* One event. Everything is borrowed, until the next one is decoded. */
struct decode_event {
	enum recording_type type;
	uint64_t end_ns;		/* CLOCK_MONOTONIC */
	union {
		struct statement statement;	/* RECORDING_STATEMENT, RECORDING_TRANSACTION */
		struct lock_wait wait;		/* RECORDING_WAIT */
		struct {			/* RECORDING_STATUS */
			struct summary statements, waits;
			struct recorded_cost cost;
		} status;
		struct {			/* RECORDING_OPTIONS; without a NUL */
			const char *key, *value;
			size_t key_len, value_len;
		} option;
	};
};

#define DECODE_SERVERS	1024		/* different servers of one recording */

/* Opened by decode_open(). */
struct decode {
	struct decoder block;		/* of the current one */
	struct decode_server *servers;	/* all so far, DECODE_SERVERS; owned */
	struct {			/* their bytes in the recording, owned */
		uint8_t *data;
		size_t len;
	} bytes[DECODE_SERVERS];
	size_t nservers;
	/* The dictionaries of the block; the number of entries so far. */
	uint32_t server[RECORDING_SERVERS], nserver;
	struct decode_session *sessions;	/* RECORDING_SESSIONS, owned */
	uint32_t nsessions;
	uint32_t calls[RECORDING_CALLS], ncalls;
	uint64_t queries[RECORDING_QUERIES];
	uint32_t nqueries;
	struct {
		char *text;		/* owned */
		size_t len;
		uint64_t alike;		/* see struct statement */
		bool plain;		/* see shape_is_plain() */
	} texts[RECORDING_TEXTS];
	uint32_t ntexts;
	uint64_t alike;			/* the last number */
	uint64_t start_ns, wall_offset_ns;
	/* Of the current event. */
	char *text;			/* owned */
	struct event_breakdown why;
	struct transaction transaction;
	struct traceparent parent;
	struct event_lock lock;
	struct lock_info info;
	struct who who;			/* of a lock wait whose session is not recorded */
	char kind[32];
};

/* Return 0 or -ENOMEM. decode_close() ends it in both cases. */
int decode_open(struct decode *decode);

void decode_close(struct decode *decode);

/* Begin to decode the @len bytes of the events of a block, borrowed until the next call. */
void decode_block(struct decode *decode, const uint8_t *events, size_t len);

/*
 * Decode the next event to @event; unknown ones are skipped. Return 1; 0 at the end of the block;
 * -EBADMSG if the rest of the block is invalid; or -ENOMEM.
 */
int decode_next(struct decode *decode, struct decode_event *event);

#endif
