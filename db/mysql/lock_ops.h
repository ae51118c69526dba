/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DB_MYSQL_LOCK_OPS_H
#define DB_MYSQL_LOCK_OPS_H

#include "db/locks/ops.h"

extern const struct lock_ops mysql_lock_ops;

#endif
