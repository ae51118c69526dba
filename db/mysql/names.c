// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/names.h"

#include <stdio.h>
#include <string.h>

const char *mysql_lock_kind(const struct event_lock *event)
{
	/* By enum _thd_wait_type_e; the types that are no locks have no name. */
	static const char *const kinds[LOCK_WAITS_LAST + 1] = {
		"", "", "", "row", "global", "metadata", "table", "user",
	};

	return event->kind <= LOCK_WAITS_LAST ? kinds[event->kind] : "";
}

void mysql_lock_object(const struct lock_info *info, char *to, size_t size)
{
	snprintf(to, size, "%s", info ? info->object : "");
}

void mysql_table_name(const char *name, char *to, size_t size)
{
	static const char digits[] = "0123456789abcdef";

	for (; *name && size > 1; name++, size--) {
		*to = *name == '/' ? '.' : *name;
		if (!strncmp(name, "@00", 3) && strspn(name + 3, digits) >= 2 && name[3] < '8') {
			*to = (char)((strchr(digits, name[3]) - digits) * 16 +
				     (strchr(digits, name[4]) - digits));
			name += 4;
		}
		to++;
	}
	*to = '\0';
}
