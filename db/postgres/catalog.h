/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of PostgreSQL's relations, read from the files of the catalog without a connection. */
#ifndef DB_POSTGRES_CATALOG_H
#define DB_POSTGRES_CATALOG_H

#include "db/locks/info.h"

/*
 * Find the name of relation @relation in database @database of the server that process @pid belongs
 * to; foreign bytes. Return 0; -ENOENT if it is not written to disk yet; -EEXIST if a transaction
 * that renames it has not ended; or -errno. On errors @name is "".
 */
int postgres_catalog_name(uint32_t pid, uint32_t database, uint32_t relation,
			  char name[LOCK_RELATION]);

#define POSTGRES_PAGE	8192	/* bytes */

/*
 * The same for one page of pg_class. @name must be "" before the first page, and is passed on from
 * page to page. Return 0, or -EEXIST if there are two names.
 */
int postgres_catalog_page(const unsigned char page[POSTGRES_PAGE], uint32_t relation,
			  char name[LOCK_RELATION]);

#endif
