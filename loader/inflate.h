/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decompression of gzip files (RFC 1951, RFC 1952): the format of the embedded BPF objects. */
#ifndef LOADER_INFLATE_H
#define LOADER_INFLATE_H

#include <stddef.h>

#define INFLATE_MAX	(1024 * 1024)	/* bytes of output */

/*
 * Decompress the @size bytes at @data: one member of a gzip file, with no optional field in its
 * header. The checksum is not verified. Return 0 with *@out, which the caller frees, and
 * *@out_size; -EINVAL for anything else, or -ENOMEM.
 */
int inflate_gzip(const void *data, size_t size, void **out, size_t *out_size);

#endif
