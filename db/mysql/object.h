/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a session of MySQL or MariaDB, an object of class THD, has where: decoded from exported
 * accessors.
 */
#ifndef DB_MYSQL_OBJECT_H
#define DB_MYSQL_OBJECT_H

#include "usdt/elf.h"

struct object_places;

/*
 * The client's attributes are in the session's PFS_thread of the Performance Schema: their address,
 * and their length. MySQL has an accessor of that, and the function that clears them is exported.
 */
#define MYSQL_PSI		"_Z11thd_get_psiP3THD"
#define MYSQL_ATTRIBUTES	"_ZN10PFS_thread27reset_session_connect_attrsEv"

/*
 * MariaDB has the PFS_thread in the PSI_statement_locker_state of a statement, to which this
 * function passes the number of rows. The state is of an earlier statement but for its flags while
 * the consumer thread_instrumentation is off: STATE_FLAG_THREAD in them tells. Where the PFS_thread
 * has the attributes, no function tells: from 11.5 on, and before, on x86-64. A list at a wrong
 * place would not be one with the name of a program.
 */
#define MARIADB_STATEMENT	"_ZN3THD18set_sent_row_countEy"
#define MARIADB_FLAGS		4
#define MARIADB_HAS_PSI		2
#define MARIADB_PSI		16
#define MARIADB_FROM_11_5	"_ZN3THD28ps_report_examined_row_countEv"
#define MARIADB_ATTRIBUTES	5728
#define MARIADB_ATTRIBUTES_OLD	5688

/* Find the offsets in the server's file; -1: unknown. */
void mysql_object_find(const struct elf *elf, struct object_places *places);

#endif
