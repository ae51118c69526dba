/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's pseudo file systems, also on hosts where they are not mounted. */
#ifndef HOST_MOUNT_H
#define HOST_MOUNT_H

enum mount_type {
	MOUNT_SYSFS,
	MOUNT_TRACEFS,
	MOUNT_FUSECTL,
	MOUNT_SECURITYFS,
};

/*
 * Open the root of a file system (O_PATH) at its usual mount point, else as a private mount, which
 * is invisible to other processes and disappears when the descriptor is closed. The host's mounts
 * do not change. Return a descriptor, owned by the caller, or -errno.
 */
int mount_open(enum mount_type type);

/*
 * Open the file at @path, relative to that root, for reading. Return a descriptor, owned by the
 * caller, or -errno.
 */
int mount_open_file(enum mount_type type, const char *path);

#endif
