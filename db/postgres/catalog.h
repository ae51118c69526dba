/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of PostgreSQL's relations, from the files of its catalog: without a login. */
#ifndef DB_POSTGRES_CATALOG_H
#define DB_POSTGRES_CATALOG_H

#include "db/lock_info.h"

/*
 * Looks up relation @relation of database @database of the server that process @pid belongs to.
 * What is not written yet, or has several names until a transaction ends, is not known: -ENOENT
 * or -errno, and @name "". Foreign bytes.
 */
int postgres_catalog_name(uint32_t pid, uint32_t database, uint32_t relation,
			  char name[LOCK_RELATION]);

/* The same for a page of pg_class, 8 KiB: adds up in @name what all pages say. 0, or -EEXIST: two. */
#define PGCATALOG_PAGE	8192

int postgres_catalog_page(const unsigned char page[PGCATALOG_PAGE], uint32_t relation,
			  char name[LOCK_RELATION]);

#endif
