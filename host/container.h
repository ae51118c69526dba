/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The container that a process runs in, by its control group. */
#ifndef HOST_CONTAINER_H
#define HOST_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

/*
 * The container that the process runs in: 12 characters of the id that docker, podman, containerd,
 * CRI-O and Kubernetes put into its control group's name, or LXC's and systemd-nspawn's name;
 * "" where it is in none. At most @size bytes with the NUL.
 */
void container_read(uint32_t pid, char *container, size_t size);

/* The same for the text of a /proc/PID/cgroup, @len bytes. */
void container_parse(const char *cgroups, size_t len, char *container, size_t size);

#endif
