/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The registry of database engines: one row an engine. */
#ifndef DB_ENGINES_H
#define DB_ENGINES_H

#include "db/engine.h"

/* All engines, NULL-terminated. Names are unique. */
extern const struct engine *const engine_table[];

/* Return the engine called @name in the output ("postgresql"), or NULL. */
const struct engine *engines_by_name(const char *name);

/* Return the engine called @word on the command line ("pg"), or NULL. */
const struct engine *engines_by_word(const char *word);

/* Return the engine whose server has an executable called @file (without directory), or NULL. */
const struct engine *engines_by_file(const char *file);

/* Return whether @file (without directory) is the name of a server's executable. */
bool engine_is_executable(const char *file);

#endif
