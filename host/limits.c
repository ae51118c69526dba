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

#include "base/base.h"

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

/*
 * A version of control groups: the word before the group in /proc/PID/cgroup (a line's first in
 * version 2), and its files, with the pages of files in memory.stat.
 */
static const struct group_version {
	const char *before;
	bool first;
	const char *root, *limit, *used, *files[2];
} group_versions[] = {
	{ ":memory:", false, "/sys/fs/cgroup/memory",
	  "memory.limit_in_bytes", "memory.usage_in_bytes",
	  { "total_inactive_file", "total_active_file" } },
	{ "0::", true, "/sys/fs/cgroup",
	  "memory.max", "memory.current",
	  { "inactive_file", "active_file" } },
};

/* Return the number in file @name of @group; UINT64_MAX if there is none: version 2 has "max". */
static uint64_t group_number(const char *group, const char *name)
{
	char path[PATH_MAX], text[32];

	snprintf(path, sizeof(path), "%s/%s", group, name);
	limit_text(path, text, sizeof(text));
	return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : UINT64_MAX;
}

/* Return the bytes of @group that the kernel can write to files, or drop. */
static uint64_t group_files(const struct group_version *version, const char *group)
{
	char path[PATH_MAX + 16], text[8192], *line, *rest;
	uint64_t bytes = 0;

	snprintf(path, sizeof(path), "%s/memory.stat", group);
	limit_text(path, text, sizeof(text));
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		for (int i = 0; i < 2; i++) {
			size_t len = strlen(version->files[i]);

			if (!strncmp(line, version->files[i], len) && line[len] == ' ')
				bytes += strtoull(line + len, NULL, 10);
		}
	return bytes;
}

/* Return the limit of @group; with @left, less what it uses. UINT64_MAX: none. */
static uint64_t group_memory(const struct group_version *version, const char *group, bool left)
{
	uint64_t limit = group_number(group, version->limit), used, files;

	if (limit >= NO_LIMIT)
		return UINT64_MAX;
	if (!left)
		return limit;
	used = group_number(group, version->used);
	files = group_files(version, group);
	used = used == UINT64_MAX || files > used ? 0 : used - files;
	return used < limit ? limit - used : 0;
}

/* Return the smallest number of @group and its ancestors. */
static uint64_t group_least(const struct group_version *version, char *group, bool left)
{
	uint64_t least = UINT64_MAX, memory;
	char path[PATH_MAX], *slash = group;

	while (slash) {
		snprintf(path, sizeof(path), "%s%s", version->root, group);
		memory = group_memory(version, path, left);
		least = memory < least ? memory : least;
		slash = strrchr(group, '/');
		if (slash)
			*slash = '\0';
	}
	return least;
}

uint64_t limits_memory(bool left)
{
	char groups[4096], *line = groups, *end, *group;
	uint64_t least = UINT64_MAX, memory;

	limit_text("/proc/self/cgroup", groups, sizeof(groups));
	for (; *line; line = end + 1) {
		end = strchr(line, '\n');
		if (!end)
			break;
		*end = '\0';
		for (size_t i = 0; i < ARRAY_SIZE(group_versions); i++) {
			const struct group_version *version = &group_versions[i];

			group = strstr(line, version->before);
			if (!group || (version->first && group != line))
				continue;
			memory = group_least(version, group + strlen(version->before), left);
			least = memory < least ? memory : least;
		}
	}
	return least;
}
