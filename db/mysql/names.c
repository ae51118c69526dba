// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/names.h"

#include <stdio.h>
#include <string.h>

#include "base/hex.h"

const char *mysql_lock_kind(const struct event_lock *event)
{
	/* By enum _thd_wait_type_e; the types that are no locks have no name. */
	static const char *const kinds[LOCK_WAITS_LAST + 1] = {
		"", "", "", "row", "global", "metadata", "table", "user",
	};

	return event->kind <= LOCK_WAITS_LAST ? kinds[event->kind] : "";
}

void mysql_lock_object(const char *kind, const struct event_lock *event,
		       const struct lock_info *info, bool each, char *to, size_t size)
{
	(void)kind;
	(void)event;
	(void)each;
	snprintf(to, size, "%s", info ? info->object : "");
}

void mysql_table_name(const char *name, char *to, size_t size)
{
	int byte;

	for (; *name && size > 1; name++, size--) {
		*to = *name == '/' ? '.' : *name;
		byte = strncmp(name, "@00", 3) ? -1 : hex_byte(name + 3);
		if (byte >= 0 && byte < 0x80) {
			*to = (char)byte;
			name += 4;
		}
		to++;
	}
	*to = '\0';
}
