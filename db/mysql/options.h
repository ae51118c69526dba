/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The option bits of a session, THD::variables.option_bits; sql/query_options.h. */
#ifndef DB_MYSQL_OPTIONS_H
#define DB_MYSQL_OPTIONS_H

#include "usdt/elf.h"

#define OPTION_NOT_AUTOCOMMIT	(1u << 19)
#define OPTION_BEGIN		(1u << 20)	/* BEGIN was executed */

/* Return the offset of the bits, of 8 bytes, in a THD; -1: unknown. */
int64_t mysql_options_find(const struct elf *elf);

#endif
