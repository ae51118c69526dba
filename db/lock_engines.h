/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The engines whose lock waits can be traced. */
#ifndef DB_LOCK_ENGINES_H
#define DB_LOCK_ENGINES_H

#include "db/lock_ops.h"

/* Return the lock operations of a row of engine_table, or NULL if it has none. Static. */
const struct lock_ops *lock_engines_ops(const struct engine *engine);

#endif
