/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DB_POSTGRES_LOCK_OPS_H
#define DB_POSTGRES_LOCK_OPS_H

#include "db/locks/ops.h"

extern const struct lock_ops postgres_lock_ops;

#endif
