// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/limits.h"

#include <sys/resource.h>

static void limit_raise(int which)
{
	struct rlimit limit;

	if (getrlimit(which, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(which, &limit);
}

void limits_raise(void)
{
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };

	if (setrlimit(RLIMIT_MEMLOCK, &none))
		limit_raise(RLIMIT_MEMLOCK);
	limit_raise(RLIMIT_NOFILE);
}
