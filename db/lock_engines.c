// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/lock_engines.h"

#include <stddef.h>

#include "db/mysql/lock_ops.h"
#include "db/mysql/probes.h"
#include "db/postgres/lock_ops.h"
#include "db/postgres/probes.h"

/* Not in the engines' rows, so that a program without the command locks is linked without them. */
static const struct {
	const struct engine *engine;
	const struct lock_ops *ops;
} lock_ops_table[] = {
	{ &engine_mysql, &mysql_lock_ops },
	{ &engine_postgres, &postgres_lock_ops },
};

const struct lock_ops *lock_engines_ops(const struct engine *engine)
{
	for (size_t i = 0; i < sizeof(lock_ops_table) / sizeof(lock_ops_table[0]); i++)
		if (lock_ops_table[i].engine == engine)
			return lock_ops_table[i].ops;
	return NULL;
}
