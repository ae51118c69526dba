// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/lockdown.h"
#include "host/mount.h"
#include "loader/sys.h"

#define PATH_SIZE	80
#define RECORD_MAX	8192	/* PERF_MAX_TRACE_SIZE of the kernel, or less */
#define RECORD_HIDDEN	8	/* not readable by programs: the kernel keeps a pointer there */

/* Return the number after @key in a line; 0 if there is none. */
static unsigned long format_number(const char *line, const char *key)
{
	const char *at = memmem(line, strcspn(line, "\n"), key, strlen(key));

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

int tracefs_format(const char *format, const char *field, uint64_t *offset)
{
	size_t n = strlen(field);
	unsigned long id = 0, size;

	for (const char *line = format; line; line = strchr(line, '\n')) {
		size_t len;

		line += *line == '\n';
		len = strcspn(line, ";\n");
		if (!strncmp(line, "ID: ", 4))
			id = format_number(line, "ID: ");
		if (strncmp(line, "\tfield:", 7) || len <= n || line[len - n - 1] != ' ' ||
		    memcmp(line + len - n, field, n))
			continue;
		*offset = format_number(line, "\toffset:");
		size = format_number(line, "\tsize:");
		return id && id <= INT_MAX && (size == 4 || size == 8) &&
		       *offset >= RECORD_HIDDEN && *offset <= RECORD_MAX - size ? (int)id : -EINVAL;
	}
	return -ENOENT;
}

/* Return the contents of a file, which the caller frees; or NULL with errno set. */
static char *tracefs_text(int dir, const char *path)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	char *text = fd < 0 ? NULL : sys_read_text(fd);

	if (fd >= 0)
		close(fd);
	return text;
}

/*
 * Open the root directory. Under lockdown tracefs is useless, and unmounting one triggers a kernel
 * BUG on Linux 7.3, in tracefs_destroy_inode().
 */
static int tracefs_root(void)
{
	char lockdown[24];

	lockdown_read(lockdown, sizeof(lockdown));
	return strcmp(lockdown, "confidentiality") ? mount_open(MOUNT_TRACEFS) : -EOPNOTSUPP;
}

int tracefs_field(const char *event, const char *field, uint64_t *offset)
{
	char path[PATH_SIZE], *text;
	int dir = tracefs_root(), id;

	if (dir < 0)
		return dir;
	snprintf(path, sizeof(path), "events/sched/%s/format", event);
	text = tracefs_text(dir, path);
	id = text ? tracefs_format(text, field, offset) : -errno;
	free(text);
	close(dir);
	return id;
}
