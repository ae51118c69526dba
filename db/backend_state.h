/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a server's process says of the statement that it runs, read from its memory: the only way to
 * know of one that began before there were probes.
 */
#ifndef DB_BACKEND_STATE_H
#define DB_BACKEND_STATE_H

#include "db/engine.h"
#include "host/process.h"
#include "usdt/elf.h"

struct backend_places {
	uint64_t text;		/* the variables of engine->activity_variables, as linked; 0: not all are there */
	uint64_t begun, client, replication;
	int64_t query;		/* of the text in a session's object, see query_accessors; -1: not known */
};

/* Find them in the server's file, for a session that @set traces. */
void backend_find(const struct elf *elf, const struct engine *engine,
		  const struct engine_probe_set *set, struct backend_places *places);

struct backend_statement {
	uint64_t begun_ns;	/* CLOCK_REALTIME */
	size_t len;		/* of the text */
	bool cut;		/* the text is longer */
};

/*
 * Reads what @process does, whose program's lowest address as linked is @lowest; the first @size
 * bytes of the text to @text. 0; -ENOENT: it runs no client's statement; -EAGAIN: it went on
 * meanwhile; or -errno. All that was read is foreign.
 */
int backend_read(const struct process *process, uint64_t lowest,
		 const struct backend_places *places, char *text, size_t size,
		 struct backend_statement *statement);

/*
 * Reads the text of the session whose object is at address @object of process @pid: how much of it,
 * @size bytes at most, was put to @text; its length to *@len. -ENOENT or -errno: it has none.
 */
int backend_query(uint32_t pid, uint64_t object, const struct backend_places *places, char *text,
		  size_t size, size_t *len);

#endif
