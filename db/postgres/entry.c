// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/entry.h"

#define EPOCH_2000_US	946684800000000u	/* epoch of PostgreSQL's timestamps */
#define CENTURY_US	3155760000000000u

uint64_t postgres_entry_time(uint64_t us)
{
	return us && us < CENTURY_US ? (EPOCH_2000_US + us) * 1000 : 0;
}

enum postgres_state postgres_entry_state(uint32_t state, bool has_starting)
{
	state -= has_starting && state;
	return state < POSTGRES_STATES ? (enum postgres_state)state : POSTGRES_UNDEFINED;
}

bool postgres_entry_cuts(const struct process_memory *memory, uint64_t entry_size, size_t len)
{
	int32_t size;

	/* It does not cut characters, which have up to 4 bytes. */
	return !entry_size ||
	       process_memory_variable(memory, entry_size, &size, sizeof(size)) || size < 0 ||
	       len + 4 >= (size_t)size;
}
