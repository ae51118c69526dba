// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/ps_engines.h"

#include <stddef.h>

#include "db/mysql/probes.h"
#include "db/mysql/ps.h"
#include "db/postgres/probes.h"
#include "db/postgres/ps.h"

/* Not in the engines' rows, so that a program without the command ps is linked without them. */
static const struct {
	const struct engine *engine;
	const struct ps_ops *ops;
} ps_ops_table[] = {
	{ &engine_mysql, &mysql_ps_ops },
	{ &engine_postgres, &postgres_ps_ops },
};

const struct ps_ops *ps_engines_ops(const struct engine *engine)
{
	for (size_t i = 0; i < sizeof(ps_ops_table) / sizeof(ps_ops_table[0]); i++)
		if (ps_ops_table[i].engine == engine)
			return ps_ops_table[i].ops;
	return NULL;
}
