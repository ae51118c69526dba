/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SQL tokens: read one and write it in its normal form. Internal to sql/. */
#ifndef SQL_TOKEN_H
#define SQL_TOKEN_H

#include "sql/printer.h"

/*
 * Read the token at the current position, not a blank, and write it. A literal sets ->redact. If
 * the token's end depends on the session's settings, set ->in.doubtful instead of writing it.
 */
void token_read(struct printer *p);

#endif
