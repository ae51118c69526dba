// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIND		(O_PATH | O_NOFOLLOW | O_CLOEXEC)
#define SAFE		(O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

/*
 * Open the inode that is open as @handle by O_PATH. Without /proc: by its name in @dir, if that is
 * still the same inode. Return a descriptor or -errno.
 */
static int open_handle(int handle, int dir, const char *name, int flags)
{
	struct stat found, opened;
	char path[32];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	fd = open(path, flags | SAFE);
	if (fd < 0 && errno == ENOENT)
		fd = openat(dir, name, flags | SAFE);
	if (fd < 0)
		return -errno;
	err = fstat(handle, &found) || fstat(fd, &opened) ? -errno : 0;
	if (!err && found.st_dev == opened.st_dev && found.st_ino == opened.st_ino)
		return fd;
	close(fd);
	return err ? err : -ESTALE;
}

/* Open the file of @handle for reading if it is a regular one. Return a descriptor or -errno. */
static int open_handle_regular(int handle, int dir, const char *name)
{
	struct stat st;

	if (fstat(handle, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : S_ISLNK(st.st_mode) ? -ELOOP : -EINVAL;
	return open_handle(handle, dir, name, O_RDONLY);
}

int open_regular(const char *path)
{
	int handle = open(path, O_PATH | O_CLOEXEC), fd;

	if (handle < 0)
		return -errno;
	fd = open_handle_regular(handle, AT_FDCWD, path);
	close(handle);
	return fd;
}

/* Return the id of the mount of @fd, or -1. A bind mount has the device of another one. */
static long mount_id(int fd)
{
	static const char key[] = "\nmnt_id:";
	char path[40], text[256], *at;
	ssize_t n;
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return -1;
	n = read(info, text, sizeof(text) - 1);
	close(info);
	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, key);
	return at ? strtol(at + sizeof(key) - 1, NULL, 10) : -1;
}

/*
 * Move the first component of *@path to @name. Return 0; -ENOENT if there is none; or
 * -ENAMETOOLONG.
 */
static int next_name(const char **path, char name[NAME_MAX + 1])
{
	size_t len;

	*path += strspn(*path, "/");
	len = strcspn(*path, "/");
	if (!len)
		return -ENOENT;
	if (len > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, *path, len);
	name[len] = '\0';
	*path += len;
	*path += strspn(*path, "/");
	return 0;
}

/*
 * openat2(2), Linux 5.6, finds the file in one call, but has its flags in memory, where a seccomp
 * filter cannot see them: the sandbox would have to permit opening files for writing.
 */
int open_beneath(const char *directory, const char *path, bool mounts)
{
	int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC), fd, err;
	char name[NAME_MAX + 1];
	long mount;

	if (dir < 0)
		return -errno;
	mount = mounts ? 0 : mount_id(dir);
	err = mount < 0 ? -EXDEV : 0;
	while (!err && *path) {
		err = next_name(&path, name);
		if (!err && !strcmp(name, ".."))
			err = -EXDEV;
		if (err)
			break;
		fd = openat(dir, name, FIND);
		err = fd < 0 ? -errno : !mounts && mount_id(fd) != mount ? -EXDEV : 0;
		close(dir);
		dir = fd;
	}
	fd = err ? err : open_handle_regular(dir, -1, "");
	if (dir >= 0)
		close(dir);
	return fd;
}
