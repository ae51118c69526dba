/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The statement that a server process runs, read from the memory of the process: the only source
 * for one that began before probes were attached.
 */
#ifndef DB_SESSION_BACKEND_STATE_H
#define DB_SESSION_BACKEND_STATE_H

#include "db/engine.h"
#include "db/session/object.h"
#include "host/process.h"
#include "host/process_memory.h"
#include "usdt/elf_symbol.h"

/* Addresses and offsets for a server's file. */
struct backend_places {
	/* Variables of engine->activity_variables as linked; ->text is 0 if one is missing. */
	uint64_t text, begun, client, replication;
	uint64_t application;			/* 0: unknown */
	uint64_t transaction, transaction_begun;	/* the same */
	struct object_places object;		/* all -1 if a session is a process */
};

/* Find the symbols and offsets in @elf by which sessions of @engine are read. */
void backend_find(const struct elf *elf, const struct engine *engine,
		  struct backend_places *places);

struct backend_statement {
	uint64_t begun_ns;	/* CLOCK_REALTIME */
	size_t len;		/* of the text */
	bool cut;		/* the text is incomplete */
};

/*
 * Read the statement that @process runs, with at most @size bytes of its text to @text. @lowest is
 * the lowest address of its program as linked. Return 0; -ENOENT if it runs no client's statement;
 * -EAGAIN if the statement changed meanwhile; or -errno. The results are foreign data.
 */
int backend_read(const struct process *process, uint64_t lowest,
		 const struct backend_places *places, char *text, size_t size,
		 struct backend_statement *statement);

/*
 * Read the begin of the transaction that @process, as above, has open to *@begun_ns, of
 * CLOCK_REALTIME. Return 0; -ENOENT if there is none, or it is unknown; or -errno.
 */
int backend_transaction(const struct process *process, uint64_t lowest,
			const struct backend_places *places, uint64_t *begun_ns);

/* Read the name of the application that the process of @memory serves; "": unknown. */
void backend_application(const struct process_memory *memory,
			 const struct backend_places *places, char name[64]);

#endif
