/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names in PostgreSQL's catalog, read from its files without a connection. */
#ifndef DB_POSTGRES_CATALOG_H
#define DB_POSTGRES_CATALOG_H

#include "db/locks/info.h"

/* Catalogs whose first columns are an OID and a name, since 8.1; their own OIDs. */
enum postgres_catalog {
	CATALOG_RELATIONS = 1259,	/* pg_class, one in each database */
	CATALOG_USERS = 1260,		/* pg_authid */
	CATALOG_DATABASES = 1262,	/* pg_database */
	CATALOG_SCHEMAS = 2615,		/* pg_namespace, one in each database */
};

/*
 * Find the name of @oid in @catalog, of relations in that of @database, of the server that process
 * @pid belongs to; foreign bytes. Return 0; -ENOENT if it is not written to disk yet; -EEXIST if a
 * transaction that renames it has not ended; or -errno. On errors @name is "".
 */
int postgres_catalog_name(uint32_t pid, enum postgres_catalog catalog, uint32_t database,
			  uint32_t oid, char name[LOCK_RELATION]);

/*
 * Set the names of @database and @user, OIDs of which 0 is none, of the server that process @pid
 * belongs to. What cannot be found stays as it is.
 */
void postgres_catalog_who(uint32_t pid, uint32_t database, uint32_t user, struct who *who);

#define POSTGRES_PAGE	8192	/* bytes */

/*
 * The same for one page of a catalog. @name must be "" before the first page, and is passed on from
 * page to page. Return 0, or -EEXIST if there are two names.
 */
int postgres_catalog_page(const unsigned char page[POSTGRES_PAGE], uint32_t oid,
			  char name[LOCK_RELATION]);

#endif
