/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * FUSE file systems: a process of the user who mounted one serves every access, and may never
 * answer. Not even SIGKILL ends the wait once it has received the request.
 */
#ifndef HOST_FUSE_H
#define HOST_FUSE_H

#include <stdbool.h>

#include "host/process.h"

/*
 * Return whether opening the program of @process may wait for an ordinary user's process: it is on
 * a FUSE file system, or on an overlay of one, which needs no privilege in a user namespace (since
 * Linux 5.11, 459c7c565ac3). The file system is not accessed.
 */
bool fuse_may_serve(const struct process *process);

/* The same for opening files below the one of process @pid that is open as @fd by O_PATH. */
bool fuse_may_serve_file(uint32_t pid, int fd);

/*
 * Open the file that @map of process @pid maps, unless that may wait as above. Requires the
 * privilege for /proc/PID/map_files. Return a descriptor, owned by the caller, or a negative
 * number.
 */
int fuse_map_open(uint32_t pid, const struct process_map *map);

#endif
