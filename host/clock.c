// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OFFSET_TRIES	16
#define OFFSET_NS	1000u	/* error that no other try is made for */

int64_t clock_ahead(uint32_t pid)
{
	static const char name[] = "monotonic";
	char path[48] = "/proc/self/timens_offsets", text[128], *at;
	int64_t seconds;
	ssize_t n;
	int fd;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%u/timens_offsets", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, name);
	if (!at)
		return 0;
	/* The kernel limits the shifted clock to KTIME_SEC_MAX / 2, so this does not overflow. */
	seconds = strtoull(at + strlen(name), &at, 10);
	return seconds * 1000000000 + strtoull(at, NULL, 10);
}

uint64_t clock_wall_offset(int64_t ahead)
{
	uint64_t least = UINT64_MAX, offset = 0;

	/* This process can be preempted between the two readings. */
	for (int i = 0; i < OFFSET_TRIES && least > OFFSET_NS; i++) {
		uint64_t before = clock_kernel_ns(ahead), wall = clock_ns(CLOCK_REALTIME);
		uint64_t took = clock_kernel_ns(ahead) - before;

		if (took < least) {
			least = took;
			offset = wall - before - took / 2;
		}
	}
	return offset;
}
