// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/identity.h"

#include <string.h>

#include "usdt/accessor.h"

/* Find the string that @name returns, or, of MySQL, that @member of a Security_context returns. */
static struct mysql_name find_name(const struct elf *elf, const char *name, const char *member)
{
	struct accessor object, string;

	if (!accessor_read(elf, name, &string) && string.kind == ACCESSOR_POINTER)
		return (struct mysql_name){ string.offset, string.inner, false };
	if (!accessor_read(elf, "_Z24thd_get_security_contextP3THDPP16Security_context", &object) &&
	    object.kind == ACCESSOR_VALUE && !accessor_read(elf, member, &string) &&
	    string.kind == ACCESSOR_VALUE && string.second == string.offset + 8)
		return (struct mysql_name){ object.offset, string.offset, true };
	return (struct mysql_name){ .at = -1 };
}

void mysql_identity_find(const struct elf *elf, struct mysql_identity *places)
{
	struct accessor accessor;

	places->user = find_name(elf, "thd_user_name", "_ZNK16Security_context4userEv");
	places->host = find_name(elf, "thd_client_host", "_ZNK16Security_context4hostEv");
	places->address = find_name(elf, "thd_client_ip", "_ZNK16Security_context2ipEv");
	places->database = -1;
	if ((!accessor_read(elf, "thd_current_db", &accessor) ||
	     !accessor_read(elf, "_Z20thd_binlog_filter_okPK3THD", &accessor)) &&
	    accessor.kind <= ACCESSOR_VALUE)
		places->database = accessor.offset;
}

/* Read @n words at @address. */
static bool read_words(const struct process_memory *memory, uint64_t address, uint64_t *words,
		       size_t n)
{
	size_t size = n * sizeof(*words);

	return address >= 4096 && !(address & 7) &&
	       process_memory_read(memory, address, words, size) == (ssize_t)size;
}

/* Read the string at @address, of @length bytes or up to a NUL; "" if it is longer than @size. */
static void read_string(const struct process_memory *memory, uint64_t address, uint64_t length,
			char *to, size_t size)
{
	ssize_t n = address < 4096 ? 0 : process_memory_read(memory, address, to, size);

	if (n > 0 && length < (size_t)n)
		to[length] = '\0';
	if (n <= 0 || !memchr(to, '\0', (size_t)n))
		*to = '\0';
}

static void read_name(const struct process_memory *memory, uint64_t session,
		      const struct mysql_name *name, char *to, size_t size)
{
	uint64_t object, string[2] = { 0, UINT64_MAX };

	*to = '\0';
	if (name->at >= 0 && read_words(memory, session + (uint64_t)name->at, &object, 1) &&
	    read_words(memory, object + (uint64_t)name->inner, string, 1 + name->counted))
		read_string(memory, string[0], string[1], to, size);
}

void mysql_identity_read(const struct process_memory *memory, const struct mysql_identity *places,
			 uint64_t session, struct who *who)
{
	uint64_t database;

	read_name(memory, session, &places->user, who->user, sizeof(who->user));
	read_name(memory, session, &places->host, who->client, sizeof(who->client));
	if (!*who->client)
		read_name(memory, session, &places->address, who->client,
			  sizeof(who->client));
	*who->database = '\0';
	if (places->database >= 0 &&
	    read_words(memory, session + (uint64_t)places->database, &database, 1))
		read_string(memory, database, UINT64_MAX, who->database,
			    sizeof(who->database));
}
