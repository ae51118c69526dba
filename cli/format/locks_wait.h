/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Words for lock waits that the table, JSON and the graph share. */
#ifndef CLI_FORMAT_LOCKS_WAIT_H
#define CLI_FORMAT_LOCKS_WAIT_H

#include "db/locks/locks.h"

#define LOCKS_OBJECT	192	/* size of the text of an object */

/* Return the name of the mode that @event of a server of @engine waits for; "": unknown. Static. */
const char *locks_wait_mode(const struct engine *engine, const struct event_lock *event);

/* Return the outcome of the wait: "granted", "failed", "timeout", ... Static. */
const char *locks_wait_outcome(const struct lock_wait *wait);

/*
 * Describe the awaited object in @to, in foreign bytes; without @each only the part that many waits
 * share, as the relation of a row.
 */
void locks_wait_object(const struct lock_wait *wait, bool each, char *to, size_t size);

/* Return the id that users know a backend by: its connection, else its PID. 0: it has none. */
uint64_t locks_backend_id(const struct lock_backend *backend);

#endif
