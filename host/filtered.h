/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes that map a file and whose system calls seccomp restricts. */
#ifndef HOST_FILTERED_H
#define HOST_FILTERED_H

#include <stdint.h>

struct filtered {
	uint32_t count;
	char names[112];	/* "PID 12 app, 13 app and 2 more"; foreign bytes; "" if none */
};

/*
 * Find the processes that map the file open as @fd executable and have a thread with "Seccomp:" 1
 * or 2 in proc(5). A process counts, too, if its mappings cannot be read, also for lack of time:
 * anyone may have many. Takes a second at most, beside the listing of all threads.
 */
void filtered_find(int fd, struct filtered *found);

#endif
