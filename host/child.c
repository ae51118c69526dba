// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/child.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Headers may be older than the kernel. */
#ifndef __NR_close_range
#define __NR_close_range	436
#endif

bool child_write(int socket, const void *data, size_t size)
{
	const char *from = data;
	ssize_t n;

	for (; size; from += n, size -= (size_t)n) {
		n = write(socket, from, size);
		if (n <= 0)
			return false;
	}
	return true;
}

bool child_read(int socket, void *data, size_t size)
{
	char *to = data;
	ssize_t n;

	for (; size; to += n, size -= (size_t)n) {
		n = read(socket, to, size);
		if (n <= 0)
			return false;
	}
	return true;
}

/* Close all descriptors from @first to @last. Return success. */
static bool close_range_of(int first, int last)
{
	return first > last || !syscall(__NR_close_range, first, last, 0);
}

/* Close all inherited descriptors but @kept. */
static void child_close(int kept)
{
	DIR *dir;

	if (close_range_of(0, kept - 1) && close_range_of(kept + 1, INT_MAX))
		return;
	/* Kernels before 5.9 (278a5fbaed89). */
	dir = opendir("/proc/self/fd");
	for (const struct dirent *entry; dir && (entry = readdir(dir)); ) {
		int fd = (int)strtoull(entry->d_name, NULL, 10);

		if (*entry->d_name != '.' && fd != kept && fd != dirfd(dir))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

pid_t child_start(const char *name, void (*run)(void *arg, int socket), void *arg, int *socket)
{
	sigset_t all, before;
	int ends[2];
	pid_t child;

	if (syscall(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return 0;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (!child) {
		setsid();
		prctl(PR_SET_NAME, name);
		child_close(ends[1]);
		run(arg, ends[1]);
		_exit(0);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	*socket = ends[0];
	if (child > 0)
		return child;
	close(ends[0]);
	return 0;
}
