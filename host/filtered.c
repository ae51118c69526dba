// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/filtered.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/fuse.h"
#include "host/process.h"

#define NAMES		3		/* of processes that are named */
#define CARRY		64		/* more bytes than the line in /proc/PID/status has */
#define SEARCH_NS	1000000000u	/* for the mappings of all processes */

/* The file to find in the mappings of a process. */
struct search {
	struct process_file file;
	dev_t dev;			/* as in /proc/PID/maps */
	ino_t ino;
	uint32_t pid;
	uint64_t end_ns;		/* CLOCK_MONOTONIC; nothing is read from then on */
};

/* Return 1 if @map is an executable mapping of the file, or one that may be. */
static int search_map(void *arg, const struct process_map *map)
{
	const struct search *search = arg;
	struct process_file file;
	bool same = true;
	int fd;

	if (!map->executable || map->ino != search->ino)
		return 0;
	if (map->dev == search->dev || clock_ns(CLOCK_MONOTONIC) > search->end_ns)
		return 1;
	/* Another file, or the same one in another overlay mount. */
	fd = fuse_map_open(search->pid, map);
	if (fd < 0)
		return 1;
	same = process_file_read(fd, &file) || process_file_same(&file, &search->file);
	close(fd);
	return same;
}

/* Return whether seccomp restricts thread @tid. A thread that has ended is not restricted. */
static bool thread_is_filtered(uint32_t tid)
{
	char path[PROCESS_PATH], buf[4096 + CARRY];
	const char *line = NULL;
	size_t len = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/status", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	/* The line follows the list of groups, which can have many thousands. */
	while (!(line && strchr(line + 1, '\n')) &&
	       (n = read(fd, buf + len, sizeof(buf) - 1 - len)) > 0) {
		const char *end = buf + len + n;

		buf[len + (size_t)n] = '\0';
		line = strstr(buf, "\nSeccomp:");
		len = line ? (size_t)(end - line) : len + (size_t)n;
		len = line || len < CARRY ? len : CARRY;
		memmove(buf, end - len, len + 1);
		line = line ? buf : NULL;
	}
	close(fd);
	return line && process_status_number(line, "\nSeccomp:");
}

/* A filter is a thread's own, unless it was installed before the others were started. */
static bool process_is_filtered(uint32_t pid)
{
	const struct dirent *entry;
	char path[PROCESS_PATH];
	bool filtered = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	while (dir && !filtered && (entry = readdir(dir)))
		filtered = *entry->d_name != '.' &&
			   thread_is_filtered((uint32_t)strtoull(entry->d_name, NULL, 10));
	if (dir)
		closedir(dir);
	return filtered;
}

static void filtered_add(struct filtered *found, uint32_t pid)
{
	size_t at = strlen(found->names);
	char comm[17];
	ssize_t n;

	if (found->count++ >= NAMES)
		return;
	n = process_read_file(pid, "comm", comm, sizeof(comm) - 1);
	comm[n > 0 ? n - (comm[n - 1] == '\n') : 0] = '\0';
	snprintf(found->names + at, sizeof(found->names) - at, "%s%u %s", at ? ", " : "PID ", pid,
		 comm);
}

void filtered_find(int fd, struct filtered *found)
{
	struct search search = { .end_ns = clock_ns(CLOCK_MONOTONIC) + SEARCH_NS };
	bool known = !process_file_read(fd, &search.file) &&
		     !process_map_identity(fd, &search.dev, &search.ino);
	DIR *dir = opendir("/proc");
	const struct dirent *entry;
	size_t at;

	*found = (struct filtered){ .count = 0 };
	while (dir && (entry = readdir(dir))) {
		char *end;
		unsigned long pid = strtoull(entry->d_name, &end, 10);

		if (*end || !pid || pid > UINT32_MAX)
			continue;
		search.pid = (uint32_t)pid;
		if ((!known || clock_ns(CLOCK_MONOTONIC) > search.end_ns ||
		     process_maps(search.pid, search_map, &search)) &&
		    process_is_filtered(search.pid))
			filtered_add(found, search.pid);
	}
	if (dir)
		closedir(dir);
	at = strlen(found->names);
	if (found->count > NAMES)
		snprintf(found->names + at, sizeof(found->names) - at, " and %u more",
			 found->count - NAMES);
}
