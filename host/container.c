// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/container.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "host/process.h"

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* A container's id has 64 hexadecimal digits; shorter runs are a pod's or a session's. */
#define ID_LEAST	64
#define ID_SHOWN	12

static bool container_id(const char *line, const char *end, char *container, size_t size)
{
	size_t run = 0;

	/* The last one counts: containers inside others stand behind them. */
	for (const char *p = end; p > line; p--) {
		run = is_hex(p[-1]) ? run + 1 : 0;
		if (run >= ID_LEAST && (p - 1 == line || !is_hex(p[-2]))) {
			snprintf(container, size, "%.*s", ID_SHOWN, p - 1);
			return true;
		}
	}
	return false;
}

/* "/lxc/NAME", "/lxc.payload.NAME", "/machine.slice/machine-NAME.scope". */
static bool container_name(const char *line, const char *end, char *container, size_t size)
{
	static const char *const before[] = { "/lxc.payload.", "/lxc.payload/", "/lxc/",
					      "/machine.slice/machine-" };

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		const char *at = memmem(line, (size_t)(end - line), before[i], strlen(before[i]));
		const char *stop;

		if (!at)
			continue;
		at += strlen(before[i]);
		stop = memchr(at, '/', (size_t)(end - at));
		stop = stop ? stop : end;
		if (stop - at > 6 && !memcmp(stop - 6, ".scope", 6))
			stop -= 6;
		snprintf(container, size, "%.*s", (int)(stop - at), at);
		return stop > at;
	}
	return false;
}

void container_parse(const char *cgroups, size_t len, char *container, size_t size)
{
	const char *end = cgroups + len;

	*container = '\0';
	for (const char *line = cgroups, *next; line < end; line = next + 1) {
		next = memchr(line, '\n', (size_t)(end - line));
		next = next ? next : end;
		if (container_id(line, next, container, size) ||
		    container_name(line, next, container, size))
			return;
	}
}

void container_read(uint32_t pid, char *container, size_t size)
{
	char cgroups[4096];
	ssize_t n = process_read_file(pid, "cgroup", cgroups, sizeof(cgroups));

	container_parse(cgroups, n > 0 ? (size_t)n : 0, container, size);
}
