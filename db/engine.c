// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/engine.h"

#include <string.h>

#include "db/postgres.h"

const struct engine *const engine_table[] = { &engine_postgres, NULL };

const struct engine *engine_find(const char *name)
{
	for (size_t i = 0; engine_table[i]; i++)
		if (!strcmp(engine_table[i]->name, name))
			return engine_table[i];
	return NULL;
}

const struct engine *engine_of_file(const char *file)
{
	for (size_t i = 0; engine_table[i]; i++)
		for (const char *const *name = engine_table[i]->executables; *name; name++)
			if (!strcmp(*name, file))
				return engine_table[i];
	return NULL;
}
