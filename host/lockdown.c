// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/lockdown.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "host/mount.h"

/* The file reads "none [integrity] confidentiality"; the mode is in brackets. */
int lockdown_read(char *mode, size_t size)
{
	char text[128], *begin, *end;
	int fd = mount_open_file(MOUNT_SECURITYFS, "lockdown");
	ssize_t n;

	*mode = '\0';
	if (fd < 0)
		return fd;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	begin = strchr(text, '[');
	end = begin ? strchr(begin, ']') : NULL;
	if (!end || (size_t)(end - begin) > size)
		return -EINVAL;
	memcpy(mode, begin + 1, (size_t)(end - begin) - 1);
	mode[end - begin - 1] = '\0';
	return 0;
}
