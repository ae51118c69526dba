/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * db/postgres/: all that is true of PostgreSQL only: probes, memory, locks, process titles. A row
 * of the registry refers to it.
 * Nothing but the registry names it in db/.
 */
#ifndef DB_POSTGRES_PROBES_H
#define DB_POSTGRES_PROBES_H

#include "db/engine.h"

/* PostgreSQL, from 10. */
extern const struct engine engine_postgres;

/*
 * Parse a process title "postgres: [CLUSTER: ]USER DATABASE HOST(PORT)|[local] ACTIVITY"
 * (utils/misc/ps_status.c; all releases). Ambiguous titles, such as one with a blank in a name,
 * leave user, database and client "".
 */
void postgres_identify(const char *cmdline, size_t len, struct who *who);

#endif
