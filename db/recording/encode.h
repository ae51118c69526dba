/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Encode statements, lock waits and losses as the events of a block of a recording. */
#ifndef DB_RECORDING_ENCODE_H
#define DB_RECORDING_ENCODE_H

#include "db/event.h"
#include "db/loss.h"
#include "db/recording/codec.h"
#include "db/recording/format.h"

/* The cost of the recorder itself so far. */
struct recorded_cost {
	uint64_t cpu_ns;		/* of its process */
	bool has_bpf;
	uint64_t bpf_ns;		/* of the BPF programs */
};

#define RECORDED_USERS	8

/* The events of one user, or with ->known false of all other ones, that newer ones displaced. */
struct recorded_user {
	bool known;
	uint32_t uid;			/* UINT32_MAX: those whose user is unknown */
	uint64_t statements, waits;
	uint64_t last_ns;		/* the last end of one of these, CLOCK_MONOTONIC; 0: none */
};

/* A text of the dictionary. */
struct encode_text {
	uint64_t shape;			/* hash of what is not a literal */
	char *text;			/* owned */
	size_t len;
};

#define ENCODE_SLOTS	1024		/* of a table of what was used last, a power of two */

/* One type of entries, of which a reader keeps the last ones. */
struct encode_dictionary {
	enum recording_type type;
	uint32_t size;			/* entries that a reader keeps */
	uint32_t count;			/* added so far */
	struct encode_entry {
		uint8_t *data;		/* as it was encoded, owned; NULL: unused */
		size_t len;
		uint32_t number;
	} slot[ENCODE_SLOTS];
};

/* The events of one block. encode_open() opens it. */
struct encode {
	struct encoder events;		/* the block so far */
	struct encoder body;		/* of the current event */
	struct encoder entry;		/* of a dictionary */
	uint64_t begin_ns, end_ns;	/* ends of the events, CLOCK_MONOTONIC; 0: none yet */
	uint64_t statements, waits;	/* that have ended */
	uint64_t start_ns;		/* of the last statement or wait */
	uint64_t wall_offset_ns;	/* as of the last RECORDING_CLOCK */
	bool has_clock;
	struct encode_dictionary servers, sessions, calls, queries;
	struct encode_text texts[RECORDING_TEXTS];
	uint32_t ntexts;		/* added so far */
	uint16_t text_of[ENCODE_SLOTS];	/* by shape: 1 + index in ->texts; 0: none */
};

void encode_open(struct encode *encode);

/* Begin the next block. */
void encode_reset(struct encode *encode);

void encode_close(struct encode *encode);

/* Append an event RECORDING_OPTIONS. */
void encode_option(struct encode *encode, const char *key, const char *value);

/*
 * Append an event, of which all but sessions are as member.h lists them. ->events.failed: it did
 * not fit, or there is no memory.
 */
void encode_statement(struct encode *encode, const struct statement *s);
void encode_wait(struct encode *encode, const struct lock_wait *wait);
void encode_status(struct encode *encode, uint64_t now_ns, const struct summary *statements,
		   const struct summary *waits, const struct recorded_cost *cost,
		   const struct recorded_user *users, size_t nusers);

#endif
