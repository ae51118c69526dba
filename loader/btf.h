/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Member offsets of the running kernel's types, from its BTF.
 *
 * Source of the format: Documentation/bpf/btf.rst of the kernel. /sys/kernel/btf/vmlinux exists
 * from Linux 5.4 on (341dfcf8d78e).
 */
#ifndef LOADER_BTF_H
#define LOADER_BTF_H

#include <stddef.h>
#include <stdint.h>

/* Open BTF. All zero is empty. */
struct btf {
	const unsigned char *types, *strings;
	size_t types_size, strings_size;
	unsigned char *data;		/* read by btf_load(), owned; else NULL */
};

/* The position of a member. */
struct btf_place {
	uint32_t offset;		/* bytes from the start of the structure */
	uint32_t bit;			/* of a bit field: in the byte at ->offset; 0: lowest */
};

/* Open @size bytes, which must outlive @btf. Return 0 or -EINVAL. */
int btf_open(struct btf *btf, const void *data, size_t size);

/* Open the running kernel's BTF. Return 0, or -errno: -ENOENT if there is none. */
int btf_load(struct btf *btf);

/* Free what btf_load() allocated. */
void btf_close(struct btf *btf);

/*
 * Find @path in structure or union @name: a member, or a nested one as in "ioac.read_bytes". Return
 * 0, -ENOENT, or -EINVAL if the BTF is malformed.
 */
int btf_member(const struct btf *btf, const char *name, const char *path,
	       struct btf_place *member);

/* Store the size of structure or union @name in bytes. Return as above. */
int btf_size(const struct btf *btf, const char *name, uint32_t *size);

#endif
