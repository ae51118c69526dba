// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/catalog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/fuse.h"
#include "host/open.h"

#define PAGES_MAX	4096		/* that are searched */

/* Source: storage/bufpage.h, itemid.h, access/htup_details.h; the same since 8.3. */
#define PAGE_LOWER	12		/* u16: end of the line pointers */
#define PAGE_POINTERS	24		/* their start */
#define TUPLE_XMAX	4
#define TUPLE_INFO	20		/* u16 */
#define TUPLE_DATA	22		/* u8: offset of the columns */
#define TUPLE_HEAD	23
#define INFO_HAS_OID	0x0008		/* before 12: the OID precedes the columns */
#define INFO_LOCKED	0x0080		/* xmax only locked the row */
#define INFO_XMIN_BAD	0x0200
#define INFO_XMIN_OLD	0x0300		/* with the bit above: frozen */
#define INFO_XMAX_DONE	0x0400
#define INFO_XMAX_BAD	0x0800

/* Source: utils/cache/relmapper.c. */
#define MAP_MAGIC	0x592717
#define MAP_BYTES	512

static uint32_t load16(const unsigned char *at)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static uint32_t load32(const unsigned char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* Return the name in the row of @size bytes at @tuple, NULL if not of @wanted or deleted. */
static const char *tuple_name(const unsigned char *tuple, size_t size, uint32_t wanted)
{
	uint32_t info, data, oid;
	const char *name;

	if (size < TUPLE_HEAD)
		return NULL;
	info = load16(tuple + TUPLE_INFO);
	data = tuple[TUPLE_DATA];
	oid = info & INFO_HAS_OID ? 4 : 0;
	if ((info & INFO_XMIN_OLD) == INFO_XMIN_BAD ||
	    (info & INFO_XMAX_DONE && !(info & (INFO_XMAX_BAD | INFO_LOCKED))))
		return NULL;
	if (data < TUPLE_HEAD + oid || data + 4 - oid + LOCK_RELATION - 1 > size ||
	    load32(tuple + data - oid) != wanted)
		return NULL;
	name = (const char *)tuple + data + 4 - oid;
	return *name && memchr(name, '\0', LOCK_RELATION - 1) ? name : NULL;
}

int postgres_catalog_page(const unsigned char page[POSTGRES_PAGE], uint32_t oid,
			  char name[LOCK_RELATION])
{
	uint32_t lower = load16(page + PAGE_LOWER);

	for (uint32_t at = PAGE_POINTERS; at + 4 <= lower && at + 4 <= POSTGRES_PAGE; at += 4) {
		uint32_t pointer = load32(page + at), offset = pointer & 0x7fff;
		uint32_t size = pointer >> 17;
		const char *found;

		if ((pointer >> 15 & 3) != 1 || offset + size > POSTGRES_PAGE)
			continue;
		found = tuple_name(page + offset, size, oid);
		if (found && *name && strcmp(found, name))
			return -EEXIST;
		if (found)
			snprintf(name, LOCK_RELATION, "%s", found);
	}
	return 0;
}

/*
 * Open the server's data directory, in which its processes run, unless another user's process may
 * serve it. Return a descriptor or -errno.
 */
static int catalog_directory(uint32_t pid)
{
	char path[32];
	int dir;

	snprintf(path, sizeof(path), "/proc/%u/cwd", pid);
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	if (!fuse_may_serve_file(pid, dir))
		return dir;
	close(dir);
	return -EXDEV;
}

/* Open file @file of the database, or of all if that is 0. Return a descriptor or -errno. */
static int catalog_open(int dir, uint32_t database, const char *file)
{
	char path[64];

	if (database)
		snprintf(path, sizeof(path), "base/%u/%s", database, file);
	else
		snprintf(path, sizeof(path), "global/%s", file);
	return open_beneath(dir, path, false);
}

/* Find the name of the file with @catalog, which a relation map has. Return 0 or -errno. */
static int catalog_file(int dir, enum postgres_catalog catalog, uint32_t database, char file[16])
{
	unsigned char map[MAP_BYTES];
	ssize_t n;
	int fd;

	/* That is not in the map. Its file has its OID until it is rewritten as a whole. */
	if (catalog == CATALOG_SCHEMAS) {
		snprintf(file, 16, "%u", (uint32_t)catalog);
		return 0;
	}
	fd = catalog_open(dir, database, "pg_filenode.map");
	if (fd < 0)
		return fd;
	n = read(fd, map, sizeof(map));
	close(fd);
	if (n < 16 || load32(map) != MAP_MAGIC)
		return -ENOENT;
	for (ssize_t at = 8; at + 8 <= n && at < 8 + 8 * (ssize_t)load32(map + 4); at += 8) {
		if (load32(map + at) != (uint32_t)catalog)
			continue;
		snprintf(file, 16, "%u", load32(map + at + 4));
		return 0;
	}
	return -ENOENT;
}

int postgres_catalog_name(uint32_t pid, enum postgres_catalog catalog, uint32_t database,
			  uint32_t oid, char name[LOCK_RELATION])
{
	int dir = catalog_directory(pid), fd, err;
	unsigned char page[POSTGRES_PAGE];
	char file[16];

	*name = '\0';
	if (dir < 0)
		return dir;
	err = catalog_file(dir, catalog, database, file);
	fd = err ? err : catalog_open(dir, database, file);
	close(dir);
	if (fd < 0)
		return fd;
	for (int i = 0; !err && i < PAGES_MAX && read(fd, page, sizeof(page)) == sizeof(page); i++)
		err = postgres_catalog_page(page, oid, name);
	close(fd);
	if (err)
		*name = '\0';
	return err ? err : *name ? 0 : -ENOENT;
}

void postgres_catalog_who(uint32_t pid, uint32_t database, uint32_t user, struct who *who)
{
	char name[LOCK_RELATION];

	if (database && !postgres_catalog_name(pid, CATALOG_DATABASES, 0, database, name))
		snprintf(who->database, sizeof(who->database), "%.63s", name);
	if (user && !postgres_catalog_name(pid, CATALOG_USERS, 0, user, name))
		snprintf(who->user, sizeof(who->user), "%.63s", name);
}
