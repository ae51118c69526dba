// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/entry.h"

bool postgres_entry_cuts(const struct process_memory *memory, uint64_t entry_size, size_t len)
{
	int32_t size;

	/* It does not cut characters, which have up to 4 bytes. */
	return !entry_size ||
	       process_memory_variable(memory, entry_size, &size, sizeof(size)) || size < 0 ||
	       len + 4 >= (size_t)size;
}
