/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sessions that are objects of the server, read from its memory: who they belong to, and what they
 * run. struct object_places has the offsets, which engine->find_object() found.
 */
#ifndef DB_SESSION_OBJECT_H
#define DB_SESSION_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/event.h"
#include "db/event.h"
#include "host/process.h"
#include "host/process_memory.h"

/* Set all @places to unknown. */
void object_places_none(struct object_places *places);

/* Return the server's ID of the connection of the session at @object: foreign; 0: unknown. */
uint64_t object_connection(const struct process_memory *memory, const struct object_places *places,
			   uint64_t object);

/*
 * Return the address of the session's own security context, or 0. While it runs a procedure as its
 * definer, it is found by *@own, its offset in each session of the program: -1 unless another
 * session told it, and set if this one tells it. If @own is NULL, return the present one instead.
 */
uint64_t object_context(const struct process_memory *memory, const struct object_places *places,
			uint64_t object, int64_t *own);

/*
 * Read user, database, client, application and connection of the session at @object to @who:
 * foreign bytes; each "" or 0 if unknown. @own: as above; NULL for a session without a client, as
 * that of an event.
 */
void object_read_who(const struct process_memory *memory, const struct object_places *places,
		     uint64_t object, int64_t *own, struct who *who);

/* The process whose memory is read, if it still runs this program. */
struct object_owner {
	uint32_t pid;
	const struct process_file *file;	/* borrowed */
	bool (*is_program)(const char *name);	/* for process_runs() */
};

/*
 * Read at most @size bytes of the text of the session at @object in process @owner. Return how
 * many, with the length of the text in *@len; or -ENOENT or -errno if it has none.
 */
int object_query(const struct object_owner *owner, uint64_t object,
		 const struct object_places *places, char *text, size_t size, size_t *len);

/*
 * Call object_read_who() for process @owner. Return 0, or -errno; -ENOENT also if it runs a
 * procedure as its definer, unless the @present user is asked for.
 */
int object_who(const struct object_owner *owner, uint64_t object,
	       const struct object_places *places, bool present, struct who *who);

#endif
