/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Tokens of SQL: reads one and writes it in its normal form. Internal to sql/. */
#ifndef SQL_TOKEN_H
#define SQL_TOKEN_H

#include "sql/printer.h"

/*
 * Read the token at the current position, which is not white space, and write it. ->token says
 * whether it was a literal.
 */
void token_read(struct printer *p);

#endif
