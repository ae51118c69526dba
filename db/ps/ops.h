/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The operations by which an engine's sessions are listed. */
#ifndef DB_PS_OPS_H
#define DB_PS_OPS_H

#include "db/ps/session.h"
#include "db/session/backend_state.h"
#include "host/process.h"
#include "usdt/elf.h"

/* A process whose sessions are read. All is borrowed. */
struct ps_query {
	const struct engine *engine;	/* of the server */
	const struct process *process;
	const struct backend_places *places;	/* of the server's file */
	uint64_t lowest;		/* lowest address of the file's segments, as linked */
	uint32_t text_bytes;
	uint64_t deadline_ns;		/* CLOCK_MONOTONIC: read no further session from then on */
	size_t *more;			/* how many were left out by then are added */
	/*
	 * Take over a session but for its server, with its text; @main is the PID of the server's
	 * main process. Return false: no further one.
	 */
	bool (*add)(void *arg, struct ps_session *session, uint32_t main);
	void *arg;
};

/* The functions share a state per server's file: ->state_bytes, initially zero. */
struct ps_ops {
	size_t state_bytes;
	/*
	 * Find the symbols and offsets in @elf. @is_program is for process_read(). Return 0, or
	 * -ENOENT: sessions cannot be listed.
	 */
	int (*find)(void *state, const struct elf *elf, bool (*is_program)(const char *name));
	/* Read the server's names from process @pid of release @version. May be NULL. */
	void (*names)(void *state, uint32_t pid, const char *version);
	/*
	 * Call @query->add for each session of the process. Return 0, or -errno: its memory cannot
	 * be read; -EAGAIN: there, the sessions are not as this release has them, or change too
	 * fast. Called for each process of the server.
	 */
	int (*read)(void *state, const struct ps_query *query);
};

#endif
