/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files by the names that people give them: "c" for libc.so.6, "python3", "/a/path". */
#ifndef HOST_LIBRARY_H
#define HOST_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Finds the file that @name stands for, where it has no '/': a library of this host, where the
 * dynamic loader looks for it ("c", "libc" and "libc.so.6" are one); else a program in PATH; else
 * a file of that name in the current folder. @path gets it, up to @size bytes with the NUL.
 * 0, -ENOENT or -ENAMETOOLONG.
 */
int library_find(const char *name, char *path, size_t size);

/*
 * Looks @name up in the bytes of an ld.so.cache, which need not be a good one. Libraries of our own
 * architecture go before others, those for any processor before special ones.
 * 0, -ENOENT, or -ENAMETOOLONG.
 */
int library_find_cached(const void *cache, size_t cache_size, const char *name, char *path,
			size_t size);

/* Whether @name is a short or the whole name of the library @file (no folder). */
bool library_is(const char *file, const char *name);

#endif
