// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/limits.h"

#include <sys/resource.h>

/* Raise the soft limit of @resource to its hard limit. */
static void limit_raise(int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(resource, &limit);
}

void limits_raise(void)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	if (setrlimit(RLIMIT_MEMLOCK, &unlimited))
		limit_raise(RLIMIT_MEMLOCK);
	limit_raise(RLIMIT_NOFILE);
}
