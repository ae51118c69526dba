// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/library.h"

#include <dirent.h>
#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cursor.h"
#include "host/arch.h"
#include "host/open.h"

#define CACHE_MAX	(64u << 20)	/* bytes of an ld.so.cache */

bool library_is(const char *file, const char *name)
{
	size_t len = strlen(name);

	if (!*name || !strcmp(file, name))
		return *name;
	if (strncmp(name, "lib", 3)) {
		if (strncmp(file, "lib", 3))
			return false;
		file += 3;
	}
	if (strncmp(file, name, len))
		return false;
	file += len;
	if (!strstr(name, ".so")) {
		if (strncmp(file, ".so", 3))
			return false;
		file += 3;
	}
	return !*file || *file == '.';
}

/*
 * ld.so.cache is a header, entries, and the strings that these refer to by offset. A cache of the
 * older format may precede it: a header, entries of 12 bytes, padding to 8 bytes. Format: struct
 * cache_file_new and struct cache_file of glibc's sysdeps/generic/dl-cache.h.
 */
static const char cache_old[] = "ld.so-1.7.0";			/* with its NUL */
static const char cache_magic[] = "glibc-ld.so.cache1.1";	/* without a NUL */

#define CACHE_HEADER	48	/* bytes */
#define CACHE_ENTRY	24

/* Return a cursor over the cache from its header on, over 0 bytes if there is none. */
static struct cursor cache_open(const unsigned char *cache, size_t size)
{
	struct cursor c = cursor_over(cache, size, __BYTE_ORDER == __BIG_ENDIAN);
	size_t magic = sizeof(cache_magic) - 1, old = sizeof(cache_old), at = 0;

	if (size > old + 4 && !memcmp(cache, cache_old, old)) {
		cursor_seek(&c, old);
		at = (old + 4 + (size_t)cursor_uint(&c, 4) * 12 + 7) & ~(size_t)7;
	}
	if (at > size || size - at < CACHE_HEADER || memcmp(cache + at, cache_magic, magic))
		return cursor_over(cache, 0, false);
	return cursor_over(cache + at, size - at, c.big_endian);
}

/* Return the string at @offset, "" if that is outside the cache or the string exceeds PATH_MAX. */
static const char *cache_string(const struct cursor *c, uint64_t offset)
{
	const char *string = (const char *)c->data + offset;
	size_t left = offset < c->size ? c->size - offset : 0;

	return left && memchr(string, 0, left < PATH_MAX ? left : PATH_MAX) ? string : "";
}

int library_find_cached(const void *cache, size_t cache_size, const char *name, char *path,
			size_t size)
{
	struct cursor c = cache_open(cache, cache_size);
	const char *best = NULL;
	uint64_t count;
	int best_rank = -1;

	cursor_seek(&c, sizeof(cache_magic) - 1);
	count = cursor_uint(&c, 4);
	cursor_seek(&c, CACHE_HEADER);
	for (uint64_t i = 0; i < count && cursor_left(&c) >= CACHE_ENTRY; i++) {
		bool native = cursor_uint(&c, 4) == HOST_CACHE_FLAGS;
		const char *key = cache_string(&c, cursor_uint(&c, 4));
		const char *value = cache_string(&c, cursor_uint(&c, 4));
		/* osversion, and hwcap: 0 if any processor can run it */
		bool generic = (cursor_uint(&c, 4), !cursor_uint(&c, 8));
		int rank = native * 4 + generic * 2 + !strcmp(key, name);

		/* Of several versions the newest precedes the others. */
		if (rank > best_rank && *value == '/' && library_is(key, name)) {
			best_rank = rank;
			best = value;
		}
	}
	if (!best)
		return -ENOENT;
	return (size_t)snprintf(path, size, "%s", best) < size ? 0 : -ENAMETOOLONG;
}

static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

/* Find library @name in this host's cache. Return 0 or -errno. */
static int find_in_cache(const char *name, char *path, size_t size)
{
	int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC), err = -ENOENT;
	struct stat st;
	void *cache;

	if (fd < 0)
		return -ENOENT;
	if (!fstat(fd, &st) && st.st_size > 0 && st.st_size < CACHE_MAX) {
		cache = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (cache != MAP_FAILED) {
			err = library_find_cached(cache, (size_t)st.st_size, name, path, size);
			munmap(cache, (size_t)st.st_size);
		}
	}
	close(fd);
	if (!err && !is_file(path))
		err = -ENOENT;
	return err;
}

/* Return whether file @a is preferable to file @b of the same library. */
static bool is_better(const char *a, const char *b)
{
	const char *version_a = strstr(a, ".so"), *version_b = strstr(b, ".so");
	bool has_a = version_a && version_a[3], has_b = version_b && version_b[3];

	/* A file without a version may be a linker script. */
	return has_a != has_b ? has_a : strverscmp(a, b) > 0;
}

/* Find the best file of library @name in @directory. Return 0 or -errno. */
static int find_in_directory(const char *directory, const char *name, char *path, size_t size)
{
	char best[NAME_MAX + 1] = "";
	DIR *dir = opendir(directory);
	struct dirent *entry;

	if (!dir)
		return -ENOENT;
	while ((entry = readdir(dir)))
		if (library_is(entry->d_name, name) && (!*best || is_better(entry->d_name, best)))
			snprintf(best, sizeof(best), "%s", entry->d_name);
	closedir(dir);
	if (!*best)
		return -ENOENT;
	if ((size_t)snprintf(path, size, "%s/%s", directory, best) >= size)
		return -ENAMETOOLONG;
	return is_file(path) ? 0 : -ENOENT;
}

/* Return whether the file is an executable ELF file, not a script that starts one. */
static bool is_program(const char *path)
{
	int fd = access(path, X_OK) ? -1 : open_regular(path);
	char magic[4];
	bool ret = fd >= 0 && read(fd, magic, 4) == 4 && !memcmp(magic, ELFMAG, 4);

	if (fd >= 0)
		close(fd);
	return ret;
}

/* Find program @name in $PATH. Return 0 or -ENOENT. */
static int find_program(const char *name, char *path, size_t size)
{
	const char *dir = getenv("PATH");

	dir = dir ? dir : "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin";
	for (const char *next; *dir; dir = next) {
		size_t len = strcspn(dir, ":");

		next = dir + len + (dir[len] == ':');
		if (!len || (size_t)snprintf(path, size, "%.*s/%s", (int)len, dir, name) >= size)
			continue;
		if (is_program(path))
			return 0;
	}
	return -ENOENT;
}

int library_find(const char *name, char *path, size_t size)
{
	static const char *const directories[] = {
		"/lib/" HOST_MULTIARCH, "/usr/lib/" HOST_MULTIARCH,
		"/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib",
	};
	int err;

	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return -ENOENT;
	err = find_in_cache(name, path, size);
	for (size_t i = 0; err && i < sizeof(directories) / sizeof(directories[0]); i++)
		err = find_in_directory(directories[i], name, path, size);
	if (err)
		err = find_program(name, path, size);
	if (err && is_file(name))
		err = (size_t)snprintf(path, size, "./%s", name) < size ? 0 : -ENAMETOOLONG;
	return err;
}
