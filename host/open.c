// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>


#define FIND		(O_PATH | O_NOFOLLOW | O_CLOEXEC)
#define SAFE		(O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
#define LINKS_MAX	40		/* as in the kernel */
#define FOLLOW		(-4096)		/* not an errno: the rest of the path was changed */
#define TRIES		3

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

long open_mount_id(int fd)
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
	return at ? (int)strtoull(at + sizeof(key) - 1, NULL, 10) : -1;
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
int open_beneath(int dir, const char *path, bool mounts)
{
	long mount = mounts ? 0 : open_mount_id(dir);
	int err = mount < 0 ? -EXDEV : 0, at = -1, fd;
	char name[NAME_MAX + 1];

	while (!err && *path) {
		err = next_name(&path, name);
		if (!err && !strcmp(name, ".."))
			err = -EXDEV;
		if (err)
			break;
		fd = openat(at < 0 ? dir : at, name, FIND);
		err = fd < 0 ? -errno : !mounts && open_mount_id(fd) != mount ? -EXDEV : 0;
		if (at >= 0)
			close(at);
		at = fd;
	}
	if (at < 0)
		return err ? err : -EISDIR;
	fd = err ? err : open_handle_regular(at, -1, "");
	close(at);
	return fd;
}

/* A path that is followed to a file to write to. */
struct walk {
	int dir;			/* reached so far, by O_PATH; owned */
	uid_t owner;			/* of that directory */
	bool shared;			/* users other than the owner can change it */
	char path[PATH_MAX];		/* the rest */
	unsigned int links;		/* that were followed */
};

static bool is_own(uid_t uid)
{
	return !uid || uid == geteuid();
}

/* Enter the directory open as @dir, which is owned from then on. Return 0 or -errno. */
static int walk_enter(struct walk *walk, int dir)
{
	struct stat st;

	if (walk->dir >= 0)
		close(walk->dir);
	walk->dir = dir;
	if (dir < 0 || fstat(dir, &st))
		return -errno;
	walk->owner = st.st_uid;
	walk->shared = st.st_mode & (S_IWGRP | S_IWOTH);
	return 0;
}

/*
 * Return whether other users cannot have placed the file there. One of root that has a second name
 * may have been linked by them.
 */
static bool walk_trusts(const struct walk *walk, const struct stat *st)
{
	return (!walk->shared && is_own(walk->owner)) || (is_own(st->st_uid) && st->st_nlink == 1);
}

/*
 * Make the target of the symbolic link @name, open as @link by O_PATH, a part of the path; or if it
 * is a link of /proc, such as that of a descriptor, find its file. Return FOLLOW, that file's
 * descriptor, or -errno.
 */
static int walk_link(struct walk *walk, int link, const char *name)
{
	size_t rest = strlen(walk->path);
	char path[PATH_MAX];
	struct statfs fs;
	struct stat st;
	ssize_t n;
	int fd;

	if (fstat(link, &st) || fstatfs(walk->dir, &fs))
		return -errno;
	if ((unsigned long)fs.f_type == PROC_SUPER_MAGIC) {
		fd = openat(walk->dir, name, O_PATH | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	if (!walk_trusts(walk, &st) || ++walk->links > LINKS_MAX)
		return -ELOOP;
	n = readlinkat(link, "", path, sizeof(path));
	if (n < 0)
		return -errno;
	if ((size_t)n + rest + 2 > sizeof(path))
		return -ENAMETOOLONG;
	memmove(walk->path + n + !!rest, walk->path, rest + 1);
	memcpy(walk->path, path, (size_t)n);
	if (rest)
		walk->path[n] = '/';
	if (*path == '/')
		n = walk_enter(walk, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
	return n < 0 ? (int)n : FOLLOW;
}

/* Find the file @name by O_PATH. Return a descriptor, FOLLOW as walk_link(), or -errno. */
static int walk_find(struct walk *walk, const char *name)
{
	int fd = -1, link;
	struct stat st;

	/* With O_DIRECTORY, an automount point is mounted. */
	if (*walk->path)
		fd = openat(walk->dir, name, FIND | O_DIRECTORY);
	if (fd < 0)
		fd = openat(walk->dir, name, FIND);
	if (fd < 0 || fstat(fd, &st))
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return fd;
	link = fd;
	fd = walk_link(walk, link, name);
	close(link);
	return fd;
}

/* Open for writing the file that is open as @handle by O_PATH. Return a descriptor or -errno. */
static int walk_write(const struct walk *walk, int handle, const char *name, bool truncate)
{
	int append = truncate ? 0 : O_APPEND, fd;
	struct stat st;

	if (fstat(handle, &st))
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!walk_trusts(walk, &st) && (walk->shared || st.st_uid != walk->owner))
		return -EEXIST;
	if (!S_ISREG(st.st_mode))
		return open_handle(handle, walk->dir, name, O_WRONLY | append);
	/* Reading is for the end of the last line. */
	fd = open_handle(handle, walk->dir, name, O_RDWR | append);
	if (fd == -EACCES)
		fd = open_handle(handle, walk->dir, name, O_WRONLY | append);
	if (fd >= 0 && truncate && ftruncate(fd, 0)) {
		close(fd);
		return -EIO;
	}
	return fd;
}

/* Open or create the file @name, the last component. Return as walk_find() does. */
static int walk_end(struct walk *walk, const char *name, bool truncate)
{
	int create = O_RDWR | O_CREAT | O_EXCL | (truncate ? 0 : O_APPEND), fd, handle;

	for (int i = 0; i < TRIES; i++) {
		handle = walk_find(walk, name);
		if (handle >= 0) {
			fd = walk_write(walk, handle, name, truncate);
			close(handle);
			return fd;
		}
		if (handle != -ENOENT)
			return handle;
		fd = openat(walk->dir, name, create | O_NOFOLLOW | SAFE, 0600);
		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? -errno : fd;
	}
	return -EEXIST;
}

/*
 * Follow @path. Return a descriptor of its file as open_output() does; or if @parent, of the
 * directory of its last component.
 */
static int open_walk(const char *path, bool parent, bool truncate)
{
	struct walk walk = { .dir = -1 };
	size_t len = strlen(path);
	char name[NAME_MAX + 1];
	const char *rest;
	bool last = false;
	int fd, err;

	if (len >= sizeof(walk.path))
		return -ENAMETOOLONG;
	if (len && path[len - 1] == '/')
		return -EISDIR;
	memcpy(walk.path, path, len + 1);
	fd = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	err = walk_enter(&walk, fd);
	while (!err && !last) {
		rest = walk.path;
		err = next_name(&rest, name);
		if (err)
			break;
		memmove(walk.path, rest, strlen(rest) + 1);
		last = !*walk.path;
		if (last && parent)
			return walk.dir;
		fd = last ? walk_end(&walk, name, truncate) : walk_find(&walk, name);
		last &= fd != FOLLOW;
		err = fd < 0 && fd != FOLLOW ? fd : 0;
		if (fd >= 0 && !last)
			err = walk_enter(&walk, fd);
	}
	if (walk.dir >= 0)
		close(walk.dir);
	return err ? err : fd;
}

int open_output(const char *path, bool truncate)
{
	return open_walk(path, false, truncate);
}

int open_parent(const char *path)
{
	return open_walk(path, true, false);
}
