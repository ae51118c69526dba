/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables that the tests compare with documents: "dbslower --tables", not listed by --help. */
#ifndef CLI_TABLES_H
#define CLI_TABLES_H

/* Print a JSON object with a member for each table, in the order of its rows. Return the status. */
int tables_print(void);

#endif
