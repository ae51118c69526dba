/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The container of a process, derived from the path of its control group; cgroups(7). */
#ifndef HOST_CONTAINER_H
#define HOST_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

#define CONTAINER_DIGITS	12	/* of a container's ID, those that are kept */

/*
 * Read the container of process @pid into the @size bytes of @container, NUL included: the first
 * CONTAINER_DIGITS of the id in the control group names of docker, podman, containerd, CRI-O and
 * Kubernetes, or the name of an LXC or systemd-nspawn container. "" without a container, or if
 * /proc/PID/cgroup cannot be read.
 */
void container_read(uint32_t pid, char *container, size_t size);

/* Derive the same from @cgroups, the @len bytes of a /proc/PID/cgroup. */
void container_parse(const char *cgroups, size_t len, char *container, size_t size);

#endif
