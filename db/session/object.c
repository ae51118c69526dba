// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/session/object.h"

#include <errno.h>
#include <string.h>

#include "base/utf8.h"
#include "bpf/attribute.h"

void object_places_none(struct object_places *places)
{
	const struct object_name none = { .at = -1 };

	*places = (struct object_places){
		.text = -1, .database = -1, .connection = -1, .context = -1,
		.user = none, .host = none, .address = none,
		.attributes_of = -1, .attributes_by = -1, .attributes = -1,
	};
}

/* Read @n words at @address. */
static bool read_words(const struct process_memory *memory, uint64_t address, uint64_t *words,
		       size_t n)
{
	size_t size = n * sizeof(*words);

	return address >= 4096 && !(address & 7) &&
	       process_memory_read(memory, address, words, size) == (ssize_t)size;
}

/* Read the string at @address; "" if it is longer than @size. */
static void read_string(const struct process_memory *memory, uint64_t address, char *to,
			size_t size)
{
	ssize_t n = address < 4096 ? 0 : process_memory_read(memory, address, to, size);

	if (n <= 0 || !memchr(to, '\0', (size_t)n))
		*to = '\0';
}

static void read_name(const struct process_memory *memory, uint64_t context,
		      const struct object_name *name, char *to, size_t size)
{
	uint64_t string[2] = { 0, 1 };

	*to = '\0';
	if (context && name->at >= 0 &&
	    read_words(memory, context + (uint64_t)name->at, string, 1 + name->counted) &&
	    string[1])
		read_string(memory, string[0], to, size);
}

/* Memory that is read in parts which are large enough for most lists of attributes. */
struct window {
	const struct process_memory *memory;
	uint64_t from;
	size_t size;			/* of ->bytes that are read */
	char bytes[1024];
};

/* For attribute_program(). What cannot be read behind the first byte is 0. */
static long attribute_read(const void *arg, void *to, __u64 from)
{
	struct window *window = *(struct window *const *)arg;
	size_t at = from - window->from, n;

	if (from < window->from || at + ATTRIBUTE_HEAD > window->size) {
		ssize_t size = process_memory_read(window->memory, from, window->bytes,
						   sizeof(window->bytes));

		window->from = from;
		window->size = size > 0 ? (size_t)size : 0;
		at = 0;
	}
	n = window->size - at < ATTRIBUTE_HEAD ? window->size - at : ATTRIBUTE_HEAD;
	memset(to, 0, ATTRIBUTE_HEAD);
	memcpy(to, window->bytes + at, n);
	return n ? 0 : -1;
}

/* Read the address of the client's attributes, and their length. Return false: there are none. */
static bool read_pair(const struct process_memory *memory, const struct object_places *places,
		      uint64_t object, uint64_t pair[2])
{
	uint64_t at, flags;

	if (places->attributes_of < 0 || places->attributes < 0 ||
	    !read_words(memory, object + (uint64_t)places->attributes_of, &at, 1) ||
	    (places->attributes_by >= 0 &&
	     (!read_words(memory, at, &flags, 1) || !(flags & places->attributes_if) ||
	      !read_words(memory, at + (uint64_t)places->attributes_by, &at, 1))))
		return false;
	return read_words(memory, at + (uint64_t)places->attributes, pair, 2);
}

/* Read the name of the client's program to the @size bytes at @to; "" if it is unknown. */
static void read_program(const struct process_memory *memory, const struct object_places *places,
			 uint64_t object, char *to, size_t size)
{
	struct window window = { .memory = memory }, *const reader = &window;
	struct attribute list, value;
	uint64_t pair[2], after[2];
	ssize_t n = 0;

	*to = '\0';
	if (!read_pair(memory, places, object, pair))
		return;
	/* The number of their character set follows. */
	list = (struct attribute){ pair[0], (uint32_t)pair[1] };
	if (!attribute_program(attribute_read, &reader, list, &value))
		n = process_memory_read(memory, value.at, to,
					value.length < size ? value.length : size - 1);
	to[n > 0 ? n : 0] = '\0';
	utf8_trim(to, size);
	/* The list that it had then may be another one's. */
	if (*to && (!read_pair(memory, places, object, after) ||
		    memcmp(pair, after, sizeof(pair)) != 0))
		*to = '\0';
}

uint64_t object_connection(const struct process_memory *memory, const struct object_places *places,
			   uint64_t object)
{
	uint64_t id = 0;

	if (places->connection >= 0)
		process_memory_read(memory, object + (uint64_t)places->connection, &id,
				    (size_t)places->connection_bytes);
	return id;
}

uint64_t object_context(const struct process_memory *memory, const struct object_places *places,
			uint64_t object, int64_t *own)
{
	uint64_t context;

	if (places->context < 0 ||
	    !read_words(memory, object + (uint64_t)places->context, &context, 1))
		return 0;
	if (!own)
		return context;
	if (context - object < (uint64_t)places->context)
		*own = (int64_t)(context - object);
	return *own < 0 ? 0 : object + (uint64_t)*own;
}

void object_read_who(const struct process_memory *memory, const struct object_places *places,
		     uint64_t object, int64_t *own, struct who *who)
{
	uint64_t context = object_context(memory, places, object, own), database;

	read_name(memory, context, &places->user, who->user, sizeof(who->user));
	read_name(memory, context, &places->host, who->client, sizeof(who->client));
	if (!*who->client)
		read_name(memory, context, &places->address, who->client,
			  sizeof(who->client));
	/* The one that it had then may be gone. */
	if (!own && object_context(memory, places, object, NULL) != context)
		*who->user = *who->client = '\0';
	*who->database = '\0';
	if (places->database >= 0 &&
	    read_words(memory, object + (uint64_t)places->database, &database, 1))
		read_string(memory, database, who->database, sizeof(who->database));
	read_program(memory, places, object, who->application, sizeof(who->application));
	who->connection = object_connection(memory, places, object);
}

/* Open the memory of @owner, if it still runs its program. Return 0, -ENOENT or -errno. */
static int object_open(const struct object_owner *owner, struct process_memory *memory)
{
	int err;

	if (!process_runs(owner->pid, owner->is_program, owner->file))
		return -ENOENT;
	err = process_memory_open(owner->pid, memory);
	if (err || process_runs(owner->pid, owner->is_program, owner->file))
		return err;
	/* Another process has got its PID. */
	process_memory_close(memory);
	return -ENOENT;
}

int object_query(const struct object_owner *owner, uint64_t object,
		 const struct object_places *places, char *text, size_t size, size_t *len)
{
	struct process_memory memory;
	uint64_t query[2] = { 0 };	/* a pointer and a length */
	ssize_t n = -ENOENT;
	int err = places->text < 0 ? -ENOENT : object_open(owner, &memory);

	if (err)
		return err;
	if (process_memory_read(&memory, object + (uint64_t)places->text, query, sizeof(query)) ==
	    sizeof(query) && query[0])
		n = process_memory_read(&memory, query[0], text, query[1] < size ? query[1] : size);
	process_memory_close(&memory);
	*len = query[1];
	return (int)n;
}

int object_who(const struct object_owner *owner, uint64_t object,
	       const struct object_places *places, bool present, struct who *who)
{
	struct process_memory memory;
	int64_t own = -1;
	int err = object_open(owner, &memory);

	if (err)
		return err;
	object_read_who(&memory, places, object, present ? NULL : &own, who);
	process_memory_close(&memory);
	return !present && own < 0 ? -ENOENT : 0;
}
