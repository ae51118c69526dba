// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/limits.h"

#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>


/* Version 1 of control groups has the largest multiple of a page if there is no limit. */
#define NO_LIMIT	(INT64_MAX - 0xffff)

/* Raise the soft limit of @resource to its hard limit. */
static void limit_raise(int resource)
{
	struct rlimit limit;

	if (prlimit(0, resource, NULL, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	prlimit(0, resource, &limit, NULL);
}

void limits_raise(void)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	if (prlimit(0, RLIMIT_MEMLOCK, &unlimited, NULL))
		limit_raise(RLIMIT_MEMLOCK);
	limit_raise(RLIMIT_NOFILE);
}

/* Read the first @size - 1 bytes of a file to @text and append a NUL; "" if it cannot be read. */
static void limit_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
}

/* Return the smallest number in files @name of @group and its ancestors below @root. */
static uint64_t limit_group(const char *root, char *group, const char *name)
{
	char path[PATH_MAX], text[32], *slash = group;
	uint64_t least = UINT64_MAX;

	while (slash) {
		snprintf(path, sizeof(path), "%s%s/%s", root, group, name);
		limit_text(path, text, sizeof(text));
		/* Version 2 has the word "max" if there is no limit. */
		if (*text >= '0' && *text <= '9' && strtoull(text, NULL, 10) < least)
			least = strtoull(text, NULL, 10);
		slash = strrchr(group, '/');
		if (slash)
			*slash = '\0';
	}
	return least;
}

uint64_t limits_memory(void)
{
	char groups[4096], *line = groups, *end, *group;
	uint64_t least = UINT64_MAX, limit;

	limit_text("/proc/self/cgroup", groups, sizeof(groups));
	for (; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			break;
		*end = '\0';
		group = strstr(line, ":memory:");
		if (group)
			limit = limit_group("/sys/fs/cgroup/memory", group + 8,
					    "memory.limit_in_bytes");
		else if (!strncmp(line, "0::", 3))
			limit = limit_group("/sys/fs/cgroup", line + 3, "memory.max");
		else
			continue;
		least = limit < least ? limit : least;
	}
	return least < NO_LIMIT ? least : UINT64_MAX;
}
