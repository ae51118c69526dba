/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of PostgreSQL's lock modes, and of the objects that its lock tags denote. */
#ifndef DB_POSTGRES_NAMES_H
#define DB_POSTGRES_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/lock_event.h"
#include "db/locks/ops.h"

/*
 * Return the LOCK_TAG_* bits of a heavyweight lock of kind @kind, the server's own word
 * ("relation", "transactionid"). An unknown kind has none.
 */
uint32_t postgres_lock_fields(const char *kind);

/*
 * Return the OID of the relation that the wait for a heavyweight lock of kind @kind concerns: that
 * of the tag, or that of the row in @info, which may be NULL. 0: none, or unknown.
 */
uint32_t postgres_lock_relation(const char *kind, const struct event_lock *event,
				const struct lock_info *info);

/*
 * Return the name of the mode that @event waits for: "AccessShareLock" of a heavyweight lock,
 * "exclusive" of an LWLock. "" if the mode is unknown. Static.
 */
const char *postgres_lock_mode(const struct event_lock *event);

/*
 * Describe the awaited object in @to: "orders (16384)", "5, row (0,1) of orders (16384)". Without
 * @each only the part that many waits share: the relation of a row, nothing of a transaction.
 * @info may be NULL. The text may have foreign bytes; it is cut to @size bytes with the NUL.
 */
void postgres_lock_object(const char *kind, const struct event_lock *event,
			  const struct lock_info *info, bool each, char *to, size_t size);

#endif
