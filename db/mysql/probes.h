/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * db/mysql/: all that is true of MySQL, MariaDB and Percona Server only: probes, memory, locks. A
 * row of the registry refers to it.
 * Nothing but the registry names it in db/.
 */
#ifndef DB_MYSQL_PROBES_H
#define DB_MYSQL_PROBES_H

#include "db/engine.h"

/* MySQL and MariaDB, from 5.5: by USDT probes if built with them, else by exported functions. */
extern const struct engine engine_mysql;

#endif
