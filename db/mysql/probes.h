/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DB_MYSQL_PROBES_H
#define DB_MYSQL_PROBES_H

#include "db/engine.h"

/* MySQL from 5.7 and MariaDB, by their exported functions. */
extern const struct engine engine_mysql;

/* MySQL 5.5 to 5.7 and old MariaDB that were built with ENABLE_DTRACE, by their USDT probes. */
extern const struct engine engine_mysql_usdt;

#endif
