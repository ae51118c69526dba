// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/object.h"

#include "bpf/event.h"
#include "usdt/accessor.h"
#include "usdt/elf_symbol.h"

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

/* Find the client's attributes, as arg_attributes in db/mysql/probes.c. */
static void find_attributes(const struct elf *elf, struct object_places *places)
{
	struct accessor accessor;
	struct elf_symbol symbol;

	places->attributes_of = places->attributes_by = places->attributes = -1;
	places->attributes_if = 0;
	if (elf_symbol_value(elf, "server_threads")) {
		if (accessor_read_given(elf, MARIADB_STATEMENT, &accessor))
			return;
		places->attributes_of = accessor.offset;
		places->attributes_by = MARIADB_PSI;
		places->attributes_if = (uint64_t)MARIADB_HAS_PSI << 8 * MARIADB_FLAGS;
		places->attributes = elf_symbol_find(elf, MARIADB_FROM_11_5, &symbol) ?
				     MARIADB_ATTRIBUTES_OLD : MARIADB_ATTRIBUTES;
		return;
	}
	if (!accessor_read(elf, MYSQL_PSI, &accessor) && accessor.kind == ACCESSOR_VALUE)
		places->attributes_of = accessor.offset;
	if (!accessor_read_given(elf, MYSQL_ATTRIBUTES, &accessor))
		places->attributes = accessor.offset;
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
	find_attributes(elf, places);
	places->database = -1;
	if ((!accessor_read(elf, "thd_current_db", &accessor) ||
	     !accessor_read(elf, "_Z20thd_binlog_filter_okPK3THD", &accessor)) &&
	    accessor.kind <= ACCESSOR_VALUE)
		places->database = accessor.offset;
}
