/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a session of MySQL or MariaDB, an object of class THD, has where: decoded from exported
 * accessors.
 */
#ifndef DB_MYSQL_OBJECT_H
#define DB_MYSQL_OBJECT_H

#include "usdt/elf.h"

struct object_places;

/* Find the offsets in the server's file; -1: unknown. */
void mysql_object_find(const struct elf *elf, struct object_places *places);

#endif
