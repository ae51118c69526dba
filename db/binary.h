/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An ELF file of this host, mapped to be read by usdt/. */
#ifndef DB_BINARY_H
#define DB_BINARY_H

#include "usdt/elf.h"

struct binary {
	struct elf elf;		/* borrows the mapping */
	void *data;
	size_t size;
};

/*
 * Maps the file open as @fd, which stays the caller's. 0; -ENOEXEC: it is no ELF file; or -errno.
 * binary_unmap() ends it. Its owner may cut it short meanwhile: whoever reads it must live with
 * SIGBUS.
 */
int binary_map(struct binary *binary, int fd);

void binary_unmap(struct binary *binary);

#endif
