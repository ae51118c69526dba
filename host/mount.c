// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* From linux/mount.h, which conflicts with sys/mount.h. The system calls exist since Linux 5.2. */
#define OPEN_CLOEXEC	1	/* FSOPEN_CLOEXEC, FSMOUNT_CLOEXEC */
#define CMD_CREATE	6	/* FSCONFIG_CMD_CREATE */

#define FUSECTL_MAGIC	0x65735543	/* of fs/fuse/control.c, in no header */

static const struct {
	const char *name;
	unsigned long magic;
	const char *points[3];		/* usual mount points, then NULL */
} mount_types[] = {
	[MOUNT_SYSFS] = { "sysfs", SYSFS_MAGIC, { "/sys" } },
	[MOUNT_TRACEFS] = { "tracefs", TRACEFS_MAGIC,
			    { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" } },
	[MOUNT_FUSECTL] = { "fusectl", FUSECTL_MAGIC, { "/sys/fs/fuse/connections" } },
	[MOUNT_SECURITYFS] = { "securityfs", SECURITYFS_MAGIC, { "/sys/kernel/security" } },
};

/*
 * Open @path if a file system of type @magic is mounted there. O_PATH does not trigger an
 * automount. Return a descriptor or -errno.
 */
static int mount_find(const char *path, unsigned long magic)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0)
		return -errno;
	if (!fstatfs(fd, &fs) && (unsigned long)fs.f_type == magic)
		return fd;
	close(fd);
	return -ENOENT;
}

/* Create a mount of @type without a mount point. Return a descriptor of its root, or -errno. */
static int mount_detached(const char *type)
{
	int fs = (int)syscall(SYS_fsopen, type, OPEN_CLOEXEC), fd;

	if (fs < 0)
		return -errno;
	fd = syscall(SYS_fsconfig, fs, CMD_CREATE, NULL, NULL, 0) ?
		-1 : (int)syscall(SYS_fsmount, fs, OPEN_CLOEXEC, 0);
	if (fd < 0)
		fd = -errno;
	close(fs);
	return fd;
}

/*
 * Before Linux 5.2: a child that shares the descriptor table mounts @type in a mount namespace of
 * its own and opens it. The namespace disappears with the child; the descriptor stays valid. Return
 * the descriptor or -errno.
 */
static int mount_in_child(const char *type)
{
	int fds[2], fd = -ENOSYS, status;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
	if (!pid) {
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount(type, "/proc", type, 0, NULL))
			fd = -errno;
		else
			fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
		status = write(fds[1], &fd, sizeof(fd)) == sizeof(fd);
		syscall(SYS_exit_group, !status);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status ||
	    read(fds[0], &fd, sizeof(fd)) != sizeof(fd))
		fd = -ENOSYS;
	close(fds[0]);
	close(fds[1]);
	return fd;
}

int mount_open(enum mount_type type)
{
	int fd = -ENOENT;

	for (const char *const *point = mount_types[type].points; fd < 0 && *point; point++)
		fd = mount_find(*point, mount_types[type].magic);
	if (fd >= 0)
		return fd;
	fd = mount_detached(mount_types[type].name);
	return fd == -ENOSYS ? mount_in_child(mount_types[type].name) : fd;
}

int mount_open_file(enum mount_type type, const char *path)
{
	int dir = mount_open(type), fd;

	if (dir < 0)
		return dir;
	fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fd = -errno;
	close(dir);
	return fd;
}
