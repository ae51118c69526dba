// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/run_time.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/sys.h"

void run_time_add(struct run_time *run_time, int prog)
{
	if (run_time->on && run_time->count < RUN_TIME_PROGRAMS) {
		run_time->progs[run_time->count++] = prog;
		return;
	}
	run_time->incomplete = true;
	close(prog);
}

/* Return the text of the file, which the caller frees, or NULL with errno set. */
static char *run_time_text(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text;

	if (fd < 0)
		return NULL;
	text = sys_read_text(fd);
	close(fd);
	return text;
}

static bool run_time_measured(void)
{
	char *text = run_time_text("/proc/sys/kernel/bpf_stats_enabled");
	bool on = text && *text == '1';

	free(text);
	return on;
}

int run_time_read(const struct run_time *run_time, uint64_t *ns)
{
	*ns = 0;
	if (run_time->incomplete || !run_time_measured())
		return -ENODATA;
	for (size_t i = 0; i < run_time->count; i++) {
		const char *key = "run_time_ns:", *at;
		char path[40], *text;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", run_time->progs[i]);
		text = run_time_text(path);
		at = text ? strstr(text, key) : NULL;
		*ns += at ? strtoull(at + strlen(key), NULL, 10) : 0;
		free(text);
		if (!at)
			return -ENODATA;
	}
	return 0;
}

void run_time_close(struct run_time *run_time)
{
	while (run_time->count)
		close(run_time->progs[--run_time->count]);
}
