// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/entry.h"

#define EPOCH_2000_US	946684800000000u	/* epoch of PostgreSQL's timestamps */
#define CENTURY_US	3155760000000000u
#define CANDIDATES_MAX	16	/* in one search; one or two are usual */

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

/* Return whether @next is the element behind @entry. */
static bool entry_follows(const char *entry, const char *next, size_t text)
{
	uint64_t name = load64(entry + ENTRY_NAME(text)), first = load64(entry + text);
	uint64_t second = load64(next + text);

	return name && load64(next + ENTRY_NAME(text)) == name + ENTRY_NAME_BYTES &&
	       first && second > first && second - first <= ENTRY_TEXT_MOST;
}

int64_t postgres_entry_stride(const struct process_memory *memory, uint64_t address, size_t text,
			      int64_t *text_bytes)
{
	char around[2 * ENTRY_MOST + ENTRY_LEAST];
	const char *entry = around + ENTRY_MOST;

	if (!process_memory_get(memory, address - ENTRY_MOST, around, sizeof(around)))
		return 0;
	for (int64_t stride = ENTRY_LEAST; stride <= ENTRY_MOST; stride += 8) {
		const char *first = entry;

		if (!entry_follows(first, first + stride, text))
			first -= stride;
		if (!entry_follows(first, first + stride, text))
			continue;
		*text_bytes = (int64_t)(load64(first + stride + text) - load64(first + text));
		return stride;
	}
	return 0;
}

/* What identifies the entry of a process. */
struct own_entry {
	uint32_t pid;
	size_t text;
	unsigned int candidates;	/* pointers to what has the PID */
};

static bool is_entry(const struct process_memory *memory, uint64_t value, void *arg)
{
	struct own_entry *own = arg;
	char entry[ENTRY_LEAST], before[ENTRY_LEAST];
	int64_t stride, text_bytes;

	if (!process_memory_get(memory, value, entry, sizeof(entry)) ||
	    load32(entry + ENTRY_PID) != own->pid || value <= ENTRY_MOST ||
	    own->candidates++ >= CANDIDATES_MAX)
		return false;
	stride = postgres_entry_stride(memory, value, own->text, &text_bytes);
	return stride &&
	       process_memory_get(memory, value - (uint64_t)stride, before, sizeof(before)) &&
	       entry_follows(before, entry, own->text);
}

uint64_t postgres_entry_find(const struct variables *variables, const struct process_memory *memory,
			     uint32_t pid, size_t text)
{
	return variables_search(variables, memory, is_entry,
				&(struct own_entry){ .pid = pid, .text = text });
}
