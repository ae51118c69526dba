// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/fuse.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/mount.h"
#include "host/open.h"

#define TYPE_SIZE	16	/* bytes; longer names are cut */
#define MOUNTS_MAX	(1u << 20)	/* bytes of mountinfo: a user may have 100,000 mounts */

/*
 * Parse a line of mountinfo, "ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - TYPE SOURCE ...".
 * Spaces in paths are escaped. Return whether it is mount @id, and its type.
 */
static bool line_parse(const char *line, long id, char *type)
{
	const char *end = strstr(line, " - ");

	if ((long)strtoull(line, NULL, 10) != id || !end)
		return false;
	end += 3;
	snprintf(type, TYPE_SIZE, "%.*s", (int)strcspn(end, " "), end);
	return true;
}

/* Find mount @id in the mountinfo file @path. Return whether it is there, and its type. */
static bool mount_type(const char *path, long id, char *type)
{
	char buf[16384], *line, *end;
	bool found = false;
	size_t len = 0, sum = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return false;
	while (!found && sum < MOUNTS_MAX && len < sizeof(buf) &&
	       (n = read(fd, buf + len, sizeof(buf) - len)) > 0) {
		len += (size_t)n;
		sum += (size_t)n;
		for (line = buf; !found && (end = memchr(line, '\n', len)); line = end + 1) {
			*end = '\0';
			found = line_parse(line, id, type);
			len -= (size_t)(end + 1 - line);
		}
		memmove(buf, line, len);
	}
	close(fd);
	return found;
}

static bool user_namespace_is_own(uint32_t pid)
{
	char path[PROCESS_PATH], own[64], other[64];
	ssize_t n = readlink("/proc/self/ns/user", own, sizeof(own));

	snprintf(path, sizeof(path), "/proc/%u/ns/user", pid);
	return n > 0 && readlink(path, other, sizeof(other)) == n && !memcmp(own, other, (size_t)n);
}

/* Return whether an ordinary user has mounted FUSE in any namespace; true if that is unknown. */
static bool users_have_fuse(void)
{
	int fd = mount_open_file(MOUNT_FUSECTL, ".");
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	bool found = !dir;
	struct stat st;

	while (!found && (entry = readdir(dir)))
		found = *entry->d_name != '.' && !fstatat(fd, entry->d_name, &st, 0) && st.st_uid;
	if (dir)
		closedir(dir);
	return found;
}

bool fuse_may_serve_file(uint32_t pid, int fd)
{
	char path[PROCESS_PATH], type[TYPE_SIZE] = "";
	long id = open_mount_id(fd);
	bool known;

	snprintf(path, sizeof(path), "/proc/%u/mountinfo", pid);
	/* Not by our PID: /proc may be that of another PID namespace. */
	known = mount_type(path, id, type) || mount_type("/proc/self/mountinfo", id, type);
	if (!strncmp(type, "fuse", 4))
		return true;
	/* The layers of an overlay are not visible, and their mounts may be gone. */
	if (known && (strcmp(type, "overlay") || user_namespace_is_own(pid)))
		return false;
	return users_have_fuse();
}

bool fuse_may_serve(const struct process *process)
{
	int fd = process_open_path(process);
	bool may = fd >= 0 && fuse_may_serve_file(process->pid, fd);

	if (fd >= 0)
		close(fd);
	return may;
}

int fuse_map_open(uint32_t pid, const struct process_map *map)
{
	char path[PROCESS_PATH + 40];
	int inode, fd = -1;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", pid,
		 (unsigned long long)map->start, (unsigned long long)map->end);
	inode = open(path, O_PATH | O_CLOEXEC);
	if (inode < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", inode);
	if (!fuse_may_serve_file(pid, inode))
		fd = open_regular(path);
	close(inode);
	/* The process may have replaced the mapping. */
	return fd < 0 ? -1 : process_map_check(fd, map);
}
