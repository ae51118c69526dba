// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/wait_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/postgres/entry.h"
#include "usdt/elf.h"

#define RODATA_MAX	(64u << 20)	/* bytes that are searched; 2 MB are usual */
#define ELEMENTS_MAX	1024		/* of the array; 280 are usual */
#define SEARCHES_MAX	8		/* for the hash table */
#define BUCKETS		256		/* of the hash table: the first segment; it has 128 */
#define ENTRIES_MAX	1024		/* of it that are read; 128 are usual */

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
	const unsigned char *data = NULL, *at = NULL;
	struct elf_section section;
	size_t size = 0;

	if (!elf_section_find(elf, ".rodata", &section))
		data = elf_section_data(elf, &section, &size);
	size = size < RODATA_MAX ? size : RODATA_MAX;
	if (data && elf_spend(elf, size))
		at = memmem(data, size, text, sizeof(text));
	names->text = at ? section.addr + (uint64_t)(at - data) + 1 : 0;
}

/* Read @size bytes at @address. Return whether all could be read. */
static bool read_bytes(const struct process_memory *memory, uint64_t address, void *buf,
		       size_t size)
{
	return address >= 4096 && process_memory_read(memory, address, buf, size) == (ssize_t)size;
}

/* Return whether @name is a string of printable characters. */
static bool is_name(const char name[WAIT_NAME])
{
	size_t len = strnlen(name, WAIT_NAME);

	for (size_t i = 0; i < len; i++)
		if (name[i] < ' ' || name[i] > '~')
			return false;
	return len && len < WAIT_NAME;
}

/* Read the string at @address. Return whether it is a name. */
static bool read_name(const struct process_memory *memory, uint64_t address, char name[WAIT_NAME])
{
	ssize_t n = address < 4096 ? 0 : process_memory_read(memory, address, name, WAIT_NAME - 1);

	name[n > 0 ? n : 0] = '\0';
	return is_name(name);
}

/* Return the class whose name is at @address, or 0. */
static unsigned int read_class(struct wait_names *names, const struct process_memory *memory,
			       uint64_t address)
{
	char name[WAIT_NAME];

	if (!read_name(memory, address, name))
		return 0;
	for (unsigned int i = 1; i < WAIT_CLASSES; i++)
		if (class_names[i] && !strcmp(class_names[i], name))
			return i;
	names->has_buffer = names->has_buffer || !strcmp(name, "Buffer");
	return strcmp(name, "Buffer") ? 0 : WAIT_BUFFER;
}

/* Find the classes in the array that begins at @words, as linked at @address. */
static void read_classes(struct wait_names *names, const struct process_memory *memory,
			 const uint64_t *words, size_t n, uint64_t address)
{
	unsigned int class = 0;

	for (size_t i = 0; i < ELEMENTS_MAX && n >= ELEMENT_WORDS; i++) {
		if (!i || words[0] != words[-ELEMENT_WORDS]) {
			class = read_class(names, memory, words[0]);
			/* The end of the array, or it is not in the order of classes. */
			if (!class || names->class[class].count)
				return;
			names->class[class].first = address + i * ELEMENT_BYTES;
		}
		names->class[class].count++;
		words += ELEMENT_WORDS;
		n -= ELEMENT_WORDS;
	}
}

/* Find the array among the @n @words of initialised variables, as linked at @address. */
static void read_array(struct wait_names *names, const struct process_memory *memory,
		       const uint64_t *words, size_t n, uint64_t address)
{
	uint64_t text = names->text + memory->slide;

	for (size_t i = 1; i < n; i++) {
		size_t first = i - 1;

		if (words[i] != text || read_class(names, memory, words[first]) != WAIT_ACTIVITY)
			continue;
		while (first >= ELEMENT_WORDS && words[first - ELEMENT_WORDS] == words[first])
			first -= ELEMENT_WORDS;
		read_classes(names, memory, words + first, n - first, address + first * 8);
		return;
	}
}

void wait_names_read(struct wait_names *names, const struct postgres_locks *locks,
		     const struct process_memory *memory, const char *version)
{
	uint64_t data = (locks->variables.data + 7) & ~7ull;
	size_t size = locks->variables.data_bytes & ~7ull;
	uint64_t *words = names->text && size ? malloc(size) : NULL;
	ssize_t n = words ? process_memory_read(memory, data + memory->slide, words, size) : 0;

	names->release = (unsigned int)strtoul(version, NULL, 10);
	if (n > 0)
		read_array(names, memory, words, (size_t)n / 8, data);
	free(words);
}

/* Read the name of a built-in wait event since 17 from the array. Return whether it has one. */
static bool builtin_name(const struct wait_names *names, const struct process_memory *memory,
			 unsigned int class, unsigned int id, char name[WAIT_NAME])
{
	uint64_t address = names->class[class].first + id * ELEMENT_BYTES + 8;

	return id < names->class[class].count &&
	       !process_memory_variable(memory, address, &address, sizeof(address)) &&
	       read_name(memory, address, name);
}

/* Return the address of the hash table's directory if the hash table is at @table, or 0. */
static uint64_t custom_directory(const struct process_memory *memory, uint64_t table)
{
	char bytes[TABLE_BYTES];
	ssize_t n = table < 4096 || table & 7 ? 0 :
		    process_memory_read(memory, table, bytes, sizeof(bytes));

	if (n <= 0 || !memmem(bytes, (size_t)n, TABLE_NAME, sizeof(TABLE_NAME)))
		return 0;
	return load64(bytes + TABLE_DIRECTORY);
}

/* Read the name of @event from the hash table. Return whether it is there. */
static bool custom_read(const struct process_memory *memory, uint64_t directory, uint32_t event,
			char name[WAIT_NAME])
{
	uint64_t segment, buckets[BUCKETS];
	unsigned int entries = 0;
	char entry[ENTRY_BYTES];

	if (!read_bytes(memory, directory, &segment, sizeof(segment)) ||
	    !read_bytes(memory, segment, buckets, sizeof(buckets)))
		return false;
	for (unsigned int i = 0; i < BUCKETS; i++) {
		uint64_t at = buckets[i];

		while (entries++ < ENTRIES_MAX && read_bytes(memory, at, entry, sizeof(entry))) {
			memcpy(name, entry + ENTRY_NAME_AT, WAIT_NAME);
			if (load32(entry + ENTRY_EVENT) == event)
				return is_name(name);
			at = load64(entry);
		}
	}
	return false;
}

static bool is_custom(const struct process_memory *memory, uint64_t value, const void *arg)
{
	(void)arg;
	return custom_directory(memory, value);
}

/* Read the name that an extension gave to @event. Return whether it has one. */
static bool custom_name(struct wait_names *names, const struct postgres_locks *locks,
			const struct process_memory *memory, uint32_t event, char name[WAIT_NAME])
{
	uint64_t table = 0;

	if (!names->class[WAIT_EXTENSION].count)
		return false;
	if (!names->custom && names->searches < SEARCHES_MAX) {
		names->searches++;
		names->custom = variables_search(&locks->variables, memory, is_custom, NULL);
	}
	return names->custom &&
	       !process_memory_variable(memory, names->custom, &table, sizeof(table)) &&
	       custom_read(memory, custom_directory(memory, table), event, name);
}

/* Write the name of @event to @name. Return whether it has one. */
static bool event_name(struct wait_names *names, const struct postgres_locks *locks,
		       const struct process_memory *memory, uint32_t event, char name[WAIT_NAME])
{
	unsigned int class = event >> 24, id = event & 0xffff;
	const char *text = NULL;

	if (class == WAIT_LWLOCK)
		text = id < POSTGRES_TRANCHES ? locks->tranche[id] : "";
	else if (class == WAIT_LOCK)
		text = id < POSTGRES_LOCK_KINDS ? locks->kind[id] : "";
	else if (class < WAIT_CLASSES)
		text = wait_table_name(names->release, class, id);
	if (text) {
		snprintf(name, WAIT_NAME, "%s", text);
		return is_name(name);
	}
	return (class < WAIT_CLASSES && builtin_name(names, memory, class, id, name)) ||
	       ((class == WAIT_EXTENSION || class == WAIT_INJECTION_POINT) &&
		custom_name(names, locks, memory, event, name));
}

void wait_names_write(struct wait_names *names, const struct postgres_locks *locks,
		      const struct process_memory *memory, uint32_t event, char *to, size_t size)
{
	unsigned int class = event >> 24, id = event & 0xffff;
	char name[WAIT_NAME], number[16];
	const char *word = class < WAIT_CLASSES ? class_names[class] : NULL;

	*to = '\0';
	if (!event)
		return;
	if (class == WAIT_BUFFER && names->has_buffer)
		word = "Buffer";
	if (!event_name(names, locks, memory, event, name))
		snprintf(name, sizeof(name), "%u", id);
	snprintf(number, sizeof(number), "%u", class);
	snprintf(to, size, "%s:%s", word ? word : number, name);
}
