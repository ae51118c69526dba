/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sampling the sessions of PostgreSQL. */
#ifndef DB_POSTGRES_SAMPLE_H
#define DB_POSTGRES_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/process_memory.h"

struct sample_query;
struct sampled;
struct who;

/* One element of the array. */
struct entry_session {
	uint32_t pid;			/* in the server's PID namespace; 0: none */
	uint32_t changes;		/* st_changecount */
	bool ignored;			/* not wanted */
	bool client;
	/* Of others: the OIDs with which ->who was read, and how often that was. */
	uint32_t database, user;
	unsigned int tries;
	struct who *who;		/* owned */
	struct sampled *sampled;
};

struct postgres_server {
	struct process_memory memory;	/* of the main process; open if ->session is not NULL */
	uint64_t array;			/* address of its first element */
	size_t stride, count;
	size_t next;			/* element that is looked at first */
	char *entries;			/* the elements as read; owned */
	struct entry_session *session;	/* of each element; owned */
	/* Children of the main process when they were last searched. */
	struct child_pid {
		uint32_t pid, ns_pid;
	} *children;			/* owned */
	size_t nchildren;
	uint64_t children_ns;		/* CLOCK_MONOTONIC: they are not searched before */
};

/* As in struct ps_ops; @state is a struct postgres_ps, @server a struct postgres_server. */
int postgres_sample(void *state, void *server, const struct sample_query *query);
void postgres_sample_forget(void *server, const struct sample_query *query);

#endif
