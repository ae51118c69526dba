/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the running kernel keeps what: its types, as it describes them itself.
 *
 * Source of the format: Documentation/bpf/btf.rst of the kernel. /sys/kernel/btf/vmlinux came with
 * 341dfcf8d78e (Linux 5.4).
 */
#ifndef LOADER_BTF_H
#define LOADER_BTF_H

#include <stddef.h>
#include <stdint.h>

struct btf {
	const unsigned char *types, *strings;
	size_t types_size, strings_size;
	unsigned char *data;		/* what btf_load() read; else NULL */
};

struct btf_place {
	uint32_t offset;		/* bytes from the structure's beginning */
	uint32_t bit;			/* of a bit field, in the byte at @offset, from the lowest */
};

/* Opens @size bytes, which must outlive it. 0, or -EINVAL. */
int btf_open(struct btf *btf, const void *data, size_t size);

/* Opens the running kernel's. 0, or -errno: -ENOENT where it has none. btf_close() ends it. */
int btf_load(struct btf *btf);

void btf_close(struct btf *btf);

/*
 * Where @path is in structure @name: a member, or one of a member that is a structure, as in
 * "ioac.read_bytes". 0, -ENOENT, or -EINVAL.
 */
int btf_member(const struct btf *btf, const char *name, const char *path,
	       struct btf_place *member);

/* The size of structure or union @name in bytes: 0, -ENOENT, or -EINVAL. */
int btf_size(const struct btf *btf, const char *name, uint32_t *size);

#endif
