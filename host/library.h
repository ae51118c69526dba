/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Search for libraries and programs by short names, such as "c" for libc.so.6, or "python3". */
#ifndef HOST_LIBRARY_H
#define HOST_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Find the file called @name, which contains no '/': a library in the dynamic loader's search path
 * ("c", "libc" and "libc.so.6" are equivalent); else a program in $PATH; else a file of that name
 * in the current directory. Store its path in the @size bytes of @path, NUL included. Return 0,
 * -ENOENT or -ENAMETOOLONG.
 */
int library_find(const char *name, char *path, size_t size);

/*
 * Find library @name in @cache, the untrusted content of an ld.so.cache. Libraries of the host's
 * architecture are preferred, and among these the ones that any processor can run. Return 0,
 * -ENOENT or -ENAMETOOLONG.
 */
int library_find_cached(const void *cache, size_t cache_size, const char *name, char *path,
			size_t size);

/* Return whether @name is a short name or the whole name of the library @file (no directory). */
bool library_is(const char *file, const char *name);

#endif
