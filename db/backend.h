/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a server's process says of the statement that it runs, read from its memory: the only way to
 * know of one that began before there were probes.
 */
#ifndef DB_BACKEND_H
#define DB_BACKEND_H

#include "db/engine.h"
#include "db/process.h"
#include "usdt/elf.h"

/* Where the variables of engine->running are, as linked; 0: not there. */
struct backend_places {
	uint64_t text, begun, client, replication;
};

/* Finds them in the server's file. All 0 where the engine has none, or one is missing. */
void backend_find(const struct elf *elf, const struct engine *engine,
		  struct backend_places *places);

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

#endif
