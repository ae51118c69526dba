// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/object.h"

#include "bpf/event.h"
#include "usdt/accessor.h"

/*
 * Find the string of the Security_context at places->context that @name returns, or, of MySQL, that
 * @member does.
 */
static struct object_name find_name(const struct elf *elf, const char *name, const char *member,
				    const struct object_places *places)
{
	struct accessor string;

	if (!accessor_read(elf, name, &string) && string.kind == ACCESSOR_POINTER &&
	    string.offset == places->context)
		return (struct object_name){ string.inner, false };
	if (!accessor_read(elf, member, &string) && string.kind == ACCESSOR_VALUE &&
	    string.second == string.offset + 8)
		return (struct object_name){ string.offset, true };
	return (struct object_name){ .at = -1 };
}

#define MYSQL_CONTEXT	"_Z24thd_get_security_contextP3THDPP16Security_context"

/* Return the offset in a THD of the pointer to its Security_context, or -1. */
static int64_t find_context(const struct elf *elf)
{
	struct accessor context;

	if (!accessor_read(elf, "thd_user_name", &context) && context.kind == ACCESSOR_POINTER)
		return context.offset;
	if (!accessor_read(elf, MYSQL_CONTEXT, &context) &&
	    context.kind == ACCESSOR_VALUE)
		return context.offset;
	return -1;
}

/* Return the offset of the text that @name returns, or -1. */
static int64_t find_text(const struct elf *elf, const char *name)
{
	struct accessor accessor;

	return !accessor_read(elf, name, &accessor) && accessor.kind != ACCESSOR_POINTER &&
	       accessor.kind != ACCESSOR_EQUALS ? accessor.offset : -1;
}

void mysql_object_find(const struct elf *elf, struct object_places *places)
{
	struct accessor accessor;

	places->text = find_text(elf, "thd_query_string");
	if (places->text < 0)
		places->text = find_text(elf, "_Z16thd_query_unsafeP3THD");
	places->connection = -1;
	places->connection_bytes = 0;
	if (!accessor_read(elf, "thd_get_thread_id", &accessor) &&
	    accessor.kind == ACCESSOR_VALUE) {
		places->connection = accessor.offset;
		places->connection_bytes = accessor.size < 8 ? 4 : 8;
	}
	places->context = find_context(elf);
	places->user = find_name(elf, "thd_user_name", "_ZNK16Security_context4userEv", places);
	places->host = find_name(elf, "thd_client_host", "_ZNK16Security_context4hostEv", places);
	places->address = find_name(elf, "thd_client_ip", "_ZNK16Security_context2ipEv", places);
	places->database = -1;
	if ((!accessor_read(elf, "thd_current_db", &accessor) ||
	     !accessor_read(elf, "_Z20thd_binlog_filter_okPK3THD", &accessor)) &&
	    accessor.kind <= ACCESSOR_VALUE)
		places->database = accessor.offset;
}
