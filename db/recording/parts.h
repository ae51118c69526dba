/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What all versions of a recording have: the dictionaries of a block, texts and time breakdowns,
 * and what is known while events are decoded. A recording may have any content.
 */
#ifndef DB_RECORDING_PARTS_H
#define DB_RECORDING_PARTS_H

#include "db/engine.h"
#include "db/event.h"
#include "db/loss.h"
#include "db/recording/block.h"
#include "db/recording/encode.h"
#include "db/recording/layout.h"
#include "sql/traceparent.h"

/* A server of the recording. It is valid until decode_file_close(). */
struct decode_server {
	struct server server;
	struct engine unknown;		/* ->engine of ->server, if it is not of the registry */
	char name[32], product[32], otel_system[32];
};

struct decode_session {
	const struct server *server;	/* of struct decode_file, or .. */
	struct server other;		/* .. this one, which is the same but for its user */
	struct who who;
};

/* One event. Everything is borrowed, until the next one is decoded. */
struct decode_event {
	enum recording_type type;
	uint64_t end_ns;		/* CLOCK_MONOTONIC */
	union {
		struct statement statement;	/* RECORDING_STATEMENT */
		struct recorded_statement recorded;	/* .. which begins with it */
		struct lock_wait wait;		/* RECORDING_WAIT */
		struct {			/* RECORDING_STATUS */
			struct summary statements, waits;
			struct recorded_cost cost;
			struct recorded_user users[RECORDED_USERS];
			size_t nusers;
		} status;
		struct {			/* RECORDING_OPTIONS; without a NUL */
			const char *key, *value;
			size_t key_len, value_len;
		} option;
	};
};

#define DECODE_SERVERS	1024		/* different servers of one recording */

/* What all blocks of one recording share. Opened by decode_file_open(). */
struct decode_file {
	struct crc32c crc;
	struct layout ours, of_file, first;	/* ->first: of version 1 */
	bool has_file;			/* ->of_file was read */
	bool limited;			/* newer blocks displaced others, anywhere */
	uint32_t ours_crc, of_file_crc;		/* of their texts */
	struct decode_server *servers;	/* all so far, DECODE_SERVERS; owned */
	struct {			/* their bytes in the recording, owned */
		uint8_t *data;
		size_t len;
		uint32_t crc;
	} bytes[DECODE_SERVERS];
	size_t nservers;
	uint64_t work;			/* bytes read beside those of events; for the caller */
	uint64_t alike;			/* the last number */
};

/* One block at a time. Opened by decode_open(). */
struct decode {
	struct decode_file *file;	/* borrowed */
	struct decoder block;
	unsigned int version;
	enum recording_kind kind;
	const struct layout *layout;	/* one of the file's, or NULL: it is unknown */
	/* The dictionaries of the block; the number of entries so far. */
	uint32_t server[RECORDING_SERVERS], nserver;
	struct decode_session *sessions;	/* RECORDING_SESSIONS, owned */
	uint32_t nsessions;
	struct decode_call {
		uint32_t call;
		char event[WAIT_EVENT];	/* "": none */
	} calls[RECORDING_CALLS];
	uint32_t ncalls;
	uint64_t queries[RECORDING_QUERIES];
	uint32_t nqueries;
	struct {
		char *text;		/* owned */
		size_t len;
		uint64_t alike;		/* see struct statement */
		bool plain;		/* see shape_is_plain() */
	} texts[RECORDING_TEXTS];
	uint32_t ntexts;
	uint64_t start_ns, wall_offset_ns;
	/* Of the current event. */
	char *text;			/* owned */
	struct event_breakdown why;
	char event[BREAKDOWN_WAITS][WAIT_EVENT];	/* see struct statement */
	struct transaction transaction;
	struct traceparent parent;
	struct recorded_wait wait;
	struct who who;			/* of a lock wait whose session is not recorded */
};

/* Return 0 or -ENOMEM. decode_file_close() ends it in both cases. */
int decode_file_open(struct decode_file *file);

void decode_file_close(struct decode_file *file);

/*
 * Return whether the layout of @block is known: it is ours, or that of a RECORDING_START which was
 * decoded.
 */
bool decode_knows(const struct decode_file *file, const struct recording_block *block);

/* @file is borrowed. Return 0 or -ENOMEM. decode_close() ends it in both cases. */
int decode_open(struct decode *decode, struct decode_file *file);

void decode_close(struct decode *decode);

/* Begin to decode the events of @block, borrowed until the next call. */
void decode_block(struct decode *decode, const struct recording_block *block,
		  const uint8_t *events);

/*
 * Add what the body of an event defines to a dictionary; servers of all blocks are kept. Return 0,
 * -EBADMSG or -ENOMEM.
 */
int decode_add_server(struct decode *decode, struct decoder *body);
int decode_add_session(struct decode *decode, struct decoder *body);
int decode_add_call(struct decode *decode, struct decoder *body);
int decode_add_query(struct decode *decode, struct decoder *body);

/* Parts of events. They set ->failed of @body if it is invalid. */

/* Return the index of entry @number of a dictionary of @size with @count entries so far. */
uint32_t decode_index(struct decoder *body, uint64_t number, uint32_t count, uint32_t size);

/* Set *@at to the index in ->servers of the server that @body refers to. */
void decode_server_at(const struct decode *decode, struct decoder *body, uint32_t *at);

/* Return the session that @body refers to, or NULL. */
const struct decode_session *decode_session_of(const struct decode *decode, struct decoder *body);

/* Drop a SQLSTATE that is none. */
void decode_sqlstate(struct statement *statement);

/*
 * Read the text of @statement, which may be the difference from an earlier one. It is valid until
 * the next one; @behind: until the next one that is.
 */
void decode_text(struct decode *decode, struct decoder *body, struct statement *statement,
		 bool behind);

/* Read a time breakdown to ->why. */
void decode_why(struct decode *decode, struct decoder *body);

/* Read a sparse list to @values, all 0, by the names of the file's list @of. */
void decode_sparse(const struct decode *decode, struct decoder *body, enum layout_of of,
		   __u64 *values);

/* Return @bits of the file's list @of as bits of our list. */
uint64_t decode_bits(const struct decode *decode, enum layout_of of, uint64_t bits);

#endif
