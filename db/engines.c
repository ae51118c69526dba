// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/engines.h"

#include <string.h>

#include "db/mysql/probes.h"
#include "db/postgres/probes.h"

const struct engine *const engine_table[] = {
	&engine_mysql,
	&engine_postgres,
	NULL,
};

const struct engine *engines_by_name(const char *name)
{
	for (size_t i = 0; engine_table[i]; i++)
		if (!strcmp(engine_table[i]->name, name))
			return engine_table[i];
	return NULL;
}

static bool list_has(const char *const *list, const char *word)
{
	while (*list && strcmp(*list, word))
		list++;
	return *list;
}

const struct engine *engines_by_word(const char *word)
{
	for (size_t i = 0; engine_table[i]; i++)
		if (list_has(engine_table[i]->words, word))
			return engine_table[i];
	return NULL;
}

const struct engine *engines_by_file(const char *file)
{
	for (size_t i = 0; engine_table[i]; i++)
		if (list_has(engine_table[i]->executables, file))
			return engine_table[i];
	return NULL;
}

bool engine_is_executable(const char *file)
{
	return engines_by_file(file);
}
