/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decompression of .lzma files: the format of the embedded BPF objects. */
#ifndef LOADER_LZMA_H
#define LOADER_LZMA_H

#include <stddef.h>

#define LZMA_MAX	(256 * 1024)	/* bytes of output, and the size of the dictionary */

/*
 * Decompress the @size bytes at @data: a .lzma file with an end marker and without a size in its
 * header, as xz writes it, with lc + lp of at most 4. Return 0 with *@out, which the caller frees,
 * and *@out_size; -EINVAL for anything else, or -ENOMEM.
 */
int lzma_decode(const void *data, size_t size, void **out, size_t *out_size);

#endif
