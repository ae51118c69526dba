/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a process of PostgreSQL serves, in the words of pg_stat_activity.backend_type. */
#ifndef DB_POSTGRES_KIND_H
#define DB_POSTGRES_KIND_H

#include "db/event.h"
#include "host/process_memory.h"
#include "usdt/elf.h"

#define KIND_TITLE	512	/* bytes of a process title that are read, with the NUL */

/* Variables as linked; 0: missing. */
struct postgres_kinds {
	uint64_t client;	/* MyProcPort */
	uint64_t replication;	/* am_walsender */
	uint64_t worker;	/* MyBgworkerEntry, which has the type .. */
	bool has_types;		/* .. since 11 */
};

/* Return the pointer in @variable, as linked; 0: none, or it cannot be read. */
uint64_t postgres_pointer(const struct process_memory *memory, uint64_t variable);

void postgres_kinds_find(const struct elf *elf, struct postgres_kinds *kinds);

/* Return whether a process serves a client, other than for replication. */
bool postgres_kind_is_client(const struct postgres_kinds *kinds,
			     const struct process_memory *memory);

/* Return whether a process is a background worker. */
bool postgres_kind_is_worker(const struct postgres_kinds *kinds,
			     const struct process_memory *memory);

/* Write what process @pid serves to @kind: "client" or another word, foreign bytes; "": unknown. */
void postgres_kind_read(const struct postgres_kinds *kinds, const struct process_memory *memory,
			uint32_t pid, char kind[BACKEND_NAME]);

/* Read the title of process @pid; "": it cannot be. */
void postgres_kind_title(uint32_t pid, char title[KIND_TITLE]);

/* Return what follows the kind in the title of a process that serves no client, or NULL. */
const char *postgres_kind_rest(const char *title);

#endif
