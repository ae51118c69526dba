// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/wait_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/postgres/entry.h"
#include "usdt/elf.h"

#define ELEMENTS_MAX	1024		/* of the array; 280 are usual */
#define CANDIDATES_MAX	16		/* words that may be in it; one is usual */
#define FAILURES_MAX	8		/* of searches for a name in the hash table */
#define BUCKETS		256		/* of the hash table: the first segment; it has 128 */
#define ENTRIES_MAX	1024		/* of it that are read; it has at most 128 */

/* An element of the array; utils/activity/wait_event_funcs.c of 17. */
#define ELEMENT_WORDS	3		/* addresses of class, name, description */
#define ELEMENT_BYTES	(ELEMENT_WORDS * 8)

/* A struct HTAB and its name, which follows it; utils/hash/dynahash.c. */
#define TABLE_DIRECTORY	8		/* address of the addresses of segments */
#define TABLE_BYTES	192
#define TABLE_NAME	"WaitEventCustom hash by wait event information"

/* A HASHELEMENT and its entry; utils/hsearch.h, utils/activity/wait_event.c of 17. */
#define ENTRY_EVENT	16
#define ENTRY_NAME_AT	20
#define ENTRY_BYTES	(ENTRY_NAME_AT + WAIT_NAME)

static const char *const class_names[WAIT_CLASSES] = {
	[WAIT_LWLOCK] = "LWLock", [WAIT_LOCK] = "Lock", [WAIT_BUFFER] = "BufferPin",
	[WAIT_ACTIVITY] = "Activity", [WAIT_CLIENT] = "Client", [WAIT_EXTENSION] = "Extension",
	[WAIT_IPC] = "IPC", [WAIT_TIMEOUT] = "Timeout", [WAIT_IO] = "IO",
	[WAIT_INJECTION_POINT] = "InjectionPoint",
};

void wait_names_find(const struct elf *elf, struct wait_names *names)
{
	static const char text[] = "\0ArchiverMain";
	uint64_t vaddr;
	size_t left;

	names->text = elf_constant(elf, text, sizeof(text), &left, &vaddr) ? vaddr + 1 : 0;
}

/* Return whether @name is a string of printable characters. */
static bool is_name(const char *name)
{
	size_t len = strnlen(name, WAIT_NAME);

	for (size_t i = 0; i < len; i++)
		if (name[i] < ' ' || name[i] > '~')
			return false;
	return len && len < WAIT_NAME;
}

/* Return the class whose name is at @address, or 0. */
static unsigned int read_class(struct wait_names *names, const struct process_memory *memory,
			       uint64_t address)
{
	char name[WAIT_NAME];

	if (!process_memory_string(memory, address, name, sizeof(name)))
		return 0;
	for (unsigned int i = 1; i < WAIT_CLASSES; i++)
		if (class_names[i] && !strcmp(class_names[i], name))
			return i;
	names->has_buffer = names->has_buffer || !strcmp(name, "Buffer");
	return strcmp(name, "Buffer") ? 0 : WAIT_BUFFER;
}

/* Keep the next name of @class, which is at @address; "": it is none. Return false: no room. */
static bool keep_name(struct wait_names *names, const struct process_memory *memory,
		      unsigned int class, uint64_t address)
{
	char name[WAIT_NAME];
	size_t len;

	process_memory_string(memory, address, name, sizeof(name));
	len = strlen(name) + 1;
	if (len > sizeof(names->builtin) - names->used)
		return false;
	memcpy(names->builtin + names->used, name, len);
	names->used += len;
	names->class[class].count++;
	return true;
}

/* Keep the names of the array that begins at @words. */
static void read_classes(struct wait_names *names, const struct process_memory *memory,
			 const uint64_t *words, size_t n)
{
	unsigned int class = 0;

	for (size_t i = 0; i < ELEMENTS_MAX && n >= ELEMENT_WORDS; i++) {
		if (!i || words[0] != words[-ELEMENT_WORDS]) {
			class = read_class(names, memory, words[0]);
			/* The end of the array, or it is not in the order of classes. */
			if (!class || names->class[class].count)
				return;
			names->class[class].first = (uint16_t)names->used;
		}
		if (!keep_name(names, memory, class, words[1]))
			return;
		words += ELEMENT_WORDS;
		n -= ELEMENT_WORDS;
	}
}

/* Find the array among the @n @words. */
static void read_array(struct wait_names *names, const struct process_memory *memory,
		       const uint64_t *words, size_t n)
{
	uint64_t text = names->text + memory->slide;
	unsigned int candidates = 0;

	for (size_t i = 1; i < n && candidates < CANDIDATES_MAX; i++) {
		size_t first = i - 1;

		if (words[i] != text)
			continue;
		candidates++;
		if (read_class(names, memory, words[first]) != WAIT_ACTIVITY)
			continue;
		while (first >= ELEMENT_WORDS && words[first - ELEMENT_WORDS] == words[first])
			first -= ELEMENT_WORDS;
		read_classes(names, memory, words + first, n - first);
		return;
	}
}

void wait_names_read(struct wait_names *names, const struct postgres_locks *locks,
		     const struct process_memory *memory, const char *version)
{
	uint64_t address;

	names->release = (unsigned int)strtoul(version, NULL, 10);
	for (int constant = 0; names->text && !names->used && constant < 2; constant++) {
		size_t n;
		uint64_t *words = variables_words(&locks->variables, memory, constant, &n,
						  &address);

		read_array(names, memory, words, n);
		free(words);
	}
}

/* Return the address of the hash table's directory if the hash table is at @table, or 0. */
static uint64_t custom_directory(const struct process_memory *memory, uint64_t table)
{
	char bytes[TABLE_BYTES], *name = NULL;
	uint64_t address;

	if (!(table & 7) && process_memory_get(memory, table, bytes, sizeof(bytes)))
		name = memmem(bytes, sizeof(bytes), TABLE_NAME, sizeof(TABLE_NAME));
	if (!name)
		return 0;
	/* Something else may be directly before the table, which points to its name. */
	address = table + (uint64_t)(name - bytes);
	return memmem(bytes, (size_t)(name - bytes), &address, sizeof(address)) ?
	       load64(bytes + TABLE_DIRECTORY) : 0;
}

/* Keep an entry of the hash table. */
static void keep_custom(struct wait_names *names, const char entry[ENTRY_BYTES])
{
	struct wait_names_custom *custom = &names->customs[names->ncustom];

	if (names->ncustom == sizeof(names->customs) / sizeof(*names->customs))
		return;
	custom->event = load32(entry + ENTRY_EVENT);
	memcpy(custom->name, entry + ENTRY_NAME_AT, WAIT_NAME);
	names->ncustom += is_name(custom->name);
}

/* Keep the names of the hash table. */
static void custom_read(struct wait_names *names, const struct process_memory *memory,
			uint64_t directory)
{
	uint64_t segment, buckets[BUCKETS];
	unsigned int entries = 0;
	char entry[ENTRY_BYTES];
	uint64_t at;

	if (!process_memory_get(memory, directory, &segment, sizeof(segment)) ||
	    !process_memory_get(memory, segment, buckets, sizeof(buckets)))
		return;
	for (unsigned int i = 0; i < BUCKETS; i++) {
		for (at = buckets[i]; entries++ < ENTRIES_MAX; at = load64(entry)) {
			if (!process_memory_get(memory, at, entry, sizeof(entry)))
				break;
			keep_custom(names, entry);
		}
	}
}

static bool is_custom(const struct process_memory *memory, uint64_t value, void *arg)
{
	(void)arg;
	return custom_directory(memory, value);
}

/* Return the name that an extension of @server gave to @event, or NULL. */
static const char *custom_name(const struct wait_names *names, uint32_t server, uint32_t event)
{
	for (unsigned int i = 0; server == names->server && i < names->ncustom; i++)
		if (names->customs[i].event == event)
			return names->customs[i].name;
	return NULL;
}

void wait_names_custom(struct wait_names *names, const struct postgres_locks *locks,
		       const struct process_memory *memory, uint32_t server, uint32_t event)
{
	uint64_t table;

	if (names->failures >= FAILURES_MAX)
		return;
	names->server = server;
	names->ncustom = 0;
	if (!names->custom)
		names->custom = variables_search(&locks->variables, memory, is_custom, NULL);
	if (names->custom &&
	    !process_memory_variable(memory, names->custom, &table, sizeof(table)))
		custom_read(names, memory, custom_directory(memory, table));
	names->failures += !custom_name(names, server, event);
}

/* Return the name of number @id in @class, since 17, or NULL. */
static const char *builtin_name(const struct wait_names *names, unsigned int class, unsigned int id)
{
	const char *at = names->builtin + names->class[class].first;

	if (id >= names->class[class].count)
		return NULL;
	while (id--)
		at += strlen(at) + 1;
	return at;
}

/* Return the name of @event, foreign bytes; NULL or "": unknown. */
static const char *event_name(const struct wait_names *names, const struct postgres_locks *locks,
			      uint32_t server, uint32_t event)
{
	unsigned int class = event >> 24, id = event & 0xffff;
	const char *name = NULL;

	if (class == WAIT_LWLOCK)
		return id < POSTGRES_TRANCHES ? locks->tranche[id] : NULL;
	if (class == WAIT_LOCK)
		return id < POSTGRES_LOCK_KINDS ? locks->kind[id] : NULL;
	if (class < WAIT_CLASSES)
		name = wait_table_name(names->release, class, id);
	if (!name && class < WAIT_CLASSES)
		name = builtin_name(names, class, id);
	return name ? name : custom_name(names, server, event);
}

/* Return whether an extension may have given a name to wait events of @class. */
static bool is_extensible(const struct wait_names *names, unsigned int class)
{
	return names->class[WAIT_EXTENSION].count && names->failures < FAILURES_MAX &&
	       (class == WAIT_EXTENSION || class == WAIT_INJECTION_POINT);
}

uint32_t wait_names_replication(const char *version)
{
	/* Its position in enum WaitEventIPC; utils/wait_event.h, pgstat.h before 14. */
	static const uint8_t ids[] = { 16, 33, 36, 40, 43, 47, 49, 52, 52, 53 };
	unsigned long release = strtoul(version, NULL, 10) - 10;

	return release < sizeof(ids) ? (uint32_t)WAIT_IPC << 24 | ids[release] : 0;
}

bool wait_names_write(const struct wait_names *names, const struct postgres_locks *locks,
		      uint32_t server, uint32_t event, char to[WAIT_EVENT])
{
	unsigned int class = event >> 24, id = event & 0xffff;
	const char *word = class < WAIT_CLASSES ? class_names[class] : NULL;
	const char *name = event ? event_name(names, locks, server, event) : NULL;
	char number[16];

	*to = '\0';
	if (!event)
		return true;
	if (class == WAIT_BUFFER && names->has_buffer)
		word = "Buffer";
	snprintf(number, sizeof(number), "%u", class);
	if (name && is_name(name))
		snprintf(to, WAIT_EVENT, "%s:%s", word ? word : number, name);
	else
		snprintf(to, WAIT_EVENT, "%s:%u", word ? word : number, id);
	return name || !is_extensible(names, class);
}
