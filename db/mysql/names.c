// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/mysql/names.h"

#include <stdio.h>

#include "usdt/fmt.h"

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
	fmt_text(to, size, "%s", info ? info->object : "");
}
