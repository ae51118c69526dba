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
	const char *version;		/* the same */
	uint64_t lowest;		/* lowest address of the file's segments, as linked */
	uint32_t text_bytes;
	uint64_t session;	/* only that of this ID, and its plan; 0: all */
	uint64_t deadline_ns;		/* CLOCK_MONOTONIC: read no further session from then on */
	size_t *more;			/* how many were left out by then are added */
	/*
	 * Take over a session but for its server, with its text and plan; @main is the PID of the
	 * server's main process. Return false: no further one.
	 */
	bool (*add)(void *arg, struct ps_session *session, uint32_t main);
	void *arg;
};

/* What the sampler knows of a session; it is the sampler's. */
struct sampled;

/* A session that has changed since the last sample. All is borrowed. */
struct sample {
	const struct who *who;
	bool active;			/* it runs a statement, with ->text */
	uint64_t key;			/* of this statement, or the last one: no other has it */
	uint64_t begin_ns;		/* CLOCK_REALTIME of its begin; 0: unknown */
	uint64_t end_ns;		/* of the end of the last one that ended; 0: unknown */
	uint64_t query_id;		/* of that, as computed by the server; or 0 */
	const char *text;		/* NULL: it was gone */
	size_t len;
	bool cut;			/* the text is incomplete */
};

/* A server whose sessions are sampled. All is borrowed. */
struct sample_query {
	const struct engine *engine;
	const struct process *process;	/* its main process */
	const struct backend_places *places;	/* of the server's file */
	uint64_t lowest;		/* lowest address of the file's segments, as linked */
	char *text;			/* room for one .. */
	uint32_t text_bytes;		/* .. of this size */
	uint64_t now_ns;		/* CLOCK_MONOTONIC at the begin of this sample .. */
	uint64_t deadline_ns;		/* .. and when the next one is to go on where this ends */
	uint64_t *unsampled;		/* sessions that hide what they do are added */
	size_t *sessions;		/* of the server's user: to be counted by the engine .. */
	size_t most;			/* .. up to this number */
	void *arg;
	/* Return whether the sessions of process @pid are wanted. */
	bool (*wants)(void *arg, uint32_t pid);
	/*
	 * Compare a session with the last sample. *@sampled is NULL for a new one, and kept by the
	 * engine.
	 */
	void (*changed)(void *arg, struct sampled **sampled, const struct sample *sample);
	/* A session has ended; *@sampled, which may be NULL, is freed. */
	void (*gone)(void *arg, struct sampled **sampled);
};

/* The functions share a state per server's file and user. */
struct ps_ops {
	struct state_ops state;
	/*
	 * Write the name of breakdown_wait.event @event, not 0, of the server whose main process is
	 * @server, 0 if unknown, to @to; "": it has none. Return false if ->learn() may find
	 * another name. NULL: the engine has neither wait events nor stages.
	 */
	bool (*event)(const void *state, uint32_t server, uint32_t event, char to[WAIT_EVENT]);
	/* Read names from @memory of @server, in which @event has one. */
	void (*learn)(void *state, const struct process_memory *memory, uint32_t server,
		      uint32_t event);
	/*
	 * Call @query->add for each session of the process. Return 0, or -errno: its memory cannot
	 * be read; -EAGAIN: there, the sessions are not as this release has them, or change too
	 * fast. Called for each process of the server.
	 */
	int (*read)(void *state, const struct ps_query *query);
	/*
	 * To sample a server: its own state is ->server_bytes, initially zero. Return 0; -EAGAIN:
	 * its sessions cannot be read at the moment; -ENOTSUP: those of this release cannot be; or
	 * another -errno: the server has ended.
	 */
	size_t server_bytes;
	int (*sample)(void *state, void *server, const struct sample_query *query);
	/* Call ->gone for all sessions, and free what the state of the server owns. */
	void (*forget)(void *server, const struct sample_query *query);
};

#endif
