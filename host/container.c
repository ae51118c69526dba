// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/container.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/hex.h"
#include "host/process.h"

/* A container id has 64 hexadecimal digits; shorter runs are ids of pods or sessions. */
#define ID_DIGITS	64

/* Parse a container id in the line from @line to @end. Return whether there is one. */
static bool container_id(const char *line, const char *end, char *container, size_t size)
{
	size_t run = 0;

	/* The last id counts: a nested container follows the outer one. */
	for (const char *p = end; p > line; p--) {
		run = hex_lower(p[-1]) >= 0 ? run + 1 : 0;
		if (run >= ID_DIGITS && (p - 1 == line || hex_lower(p[-2]) < 0)) {
			snprintf(container, size, "%.*s", CONTAINER_DIGITS, p - 1);
			return true;
		}
	}
	return false;
}

/*
 * Parse a container name in the line from @line to @end: "/lxc/NAME", "/lxc.payload.NAME" or
 * "/machine.slice/machine-NAME.scope". Return whether there is one.
 */
static bool container_name(const char *line, const char *end, char *container, size_t size)
{
	static const char *const prefixes[] = { "/lxc.payload.", "/lxc.payload/", "/lxc/",
						"/machine.slice/machine-" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		size_t len = strlen(prefixes[i]);
		const char *at = memmem(line, (size_t)(end - line), prefixes[i], len), *stop;

		if (!at)
			continue;
		at += len;
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
