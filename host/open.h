/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files that another user may have placed. Opening a device, a FIFO or a file with a lease blocks
 * or has side effects, and a symbolic link or a mount can lead anywhere. Therefore a file is found
 * by O_PATH, which does not open it, its type and owner are checked, and the same inode is opened
 * by its descriptor, always with O_NONBLOCK.
 */
#ifndef HOST_OPEN_H
#define HOST_OPEN_H

#include <stdbool.h>

/*
 * Open a regular file for reading by a path that the user or the kernel chose: links are followed.
 * Return a descriptor, owned by the caller; -EISDIR or -EINVAL if it is not a regular file; -EAGAIN
 * if another process has a lease on it; or another -errno.
 */
int open_regular(const char *path);

/*
 * The same for the file @path below the directory open as @dir, possibly by O_PATH; borrowed.
 * Refuse symbolic links (-ELOOP), "..", and, unless @mounts, other mounts (-EXDEV), as openat2(2)
 * does with RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_XDEV.
 */
int open_beneath(int dir, const char *path, bool mounts);

/* Return the id of the mount of @fd, or -1. It is not accessed; a bind mount has its own id. */
long open_mount_id(int fd);

/*
 * Open a file for writing: append to it, or if @truncate, empty it; or create it with mode 0600.
 * Where other users can change a directory of the path, refuse a symbolic link of another user
 * (-ELOOP), and a file that neither belongs to root or this user, with one name, nor to the owner
 * of the directory, to whom alone that is open (-EEXIST). A FIFO must have a reader (-ENXIO).
 * Return a descriptor, owned by the caller, or another -errno.
 */
int open_output(const char *path, bool truncate);

/*
 * Open by O_PATH the directory of @path, a file that need not exist, following links as
 * open_output() does. Return a descriptor, owned by the caller, or -errno.
 */
int open_parent(const char *path);

#endif
