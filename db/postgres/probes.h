/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DB_POSTGRES_PROBES_H
#define DB_POSTGRES_PROBES_H

#include "db/engine.h"

extern const struct engine engine_postgres;

/*
 * Reads "postgres: [CLUSTER: ]USER DATABASE HOST(PORT)|[local] WHAT" (all
 * releases; ps_status.c). What is ambiguous, such as a name with a blank, stays "".
 */
void postgres_identify(const char *cmdline, size_t len, struct identity *identity);

#endif
