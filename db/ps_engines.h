/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The engines whose sessions can be listed. */
#ifndef DB_PS_ENGINES_H
#define DB_PS_ENGINES_H

#include "db/ps_ops.h"

/* Return the operations of a row of engine_table, or NULL if it has none. Static. */
const struct ps_ops *ps_engines_ops(const struct engine *engine);

#endif
