// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/pid_namespace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "host/process.h"

/* PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h */
#define INITIAL_PID_NS	0xeffffffcu

static int namespace_read(const char *path, uint64_t *dev, uint64_t *ino)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	*dev = (uint64_t)major(st.st_dev) << 20 | minor(st.st_dev);
	*ino = st.st_ino;
	return 0;
}

int pid_namespace_read(uint32_t pid, uint64_t *dev, uint64_t *ino)
{
	char path[PROCESS_PATH];

	snprintf(path, sizeof(path), "/proc/%u/ns/pid", pid);
	return namespace_read(path, dev, ino);
}

/*
 * Return whether /proc shows the kernel's threads, which only the initial PID namespace has:
 * process 2 is kthreadd, whose parent is 0 and which has no memory.
 */
static bool proc_is_initial(void)
{
	char status[2048];
	ssize_t n = process_read_file(2, "status", status, sizeof(status) - 1);

	status[n > 0 ? n : 0] = '\0';
	return !strncmp(status, "Name:\tkthreadd\n", 15) && strstr(status, "\nPPid:\t0\n") &&
	       !strstr(status, "\nVm");
}

int pid_namespace_own(uint64_t *dev, uint64_t *ino)
{
	char link[16] = "", status[2048] = "";
	uint32_t self;
	ssize_t n;
	int err;

	/*
	 * /proc may belong to an ancestor of this process's PID namespace. This process has a PID
	 * in each of them; if the innermost one is not the PID of /proc/self, /proc's namespace
	 * is that of its process 1.
	 */
	if (readlink("/proc/self", link, sizeof(link) - 1) < 0)
		return -errno;
	self = (uint32_t)strtoull(link, NULL, 10);
	n = process_read_file(self, "status", status, sizeof(status) - 1);
	if (n < 0)
		return (int)n;
	if (process_status_number(status, "\nNSpid:") == self)
		err = pid_namespace_read(self, dev, ino);
	else
		err = pid_namespace_read(1, dev, ino);
	/* A security module may hide process 1 from root. */
	if (err && !proc_is_initial())
		return err;
	if (err || *ino == INITIAL_PID_NS)
		*dev = *ino = 0;
	return 0;
}

bool pid_namespace_is_nested(uint32_t pid, uint64_t own_ino)
{
	uint64_t dev, ino = 0;

	return own_ino && !pid_namespace_read(pid, &dev, &ino) && ino != own_ino;
}
