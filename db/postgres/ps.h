/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef DB_POSTGRES_PS_H
#define DB_POSTGRES_PS_H

#include "db/ps/ops.h"

extern const struct ps_ops postgres_ps_ops;

#endif
