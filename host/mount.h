/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's own file systems, also on systems that have not mounted them. */
#ifndef HOST_MOUNT_H
#define HOST_MOUNT_H

enum mount_type {
	MOUNT_SYSFS,
	MOUNT_TRACEFS,
	MOUNT_SECURITYFS,
};

/*
 * Opens the root of that file system (O_PATH): where it is usually mounted, else of a private mount
 * that nobody else sees and that goes with the descriptor. Mounts over nothing. A descriptor,
 * which is the caller's, or -errno.
 */
int mount_open(enum mount_type type);

/* Opens the file at @path below that root, to be read. A descriptor, the caller's, or -errno. */
int mount_open_file(enum mount_type type, const char *path);

#endif
