// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/path.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool path_search(const char *path, const char *name, char *buf, size_t size)
{
	struct stat st;
	size_t len;

	for (; *name && !strchr(name, '/'); path += len + 1) {
		len = strcspn(path, ":");
		if (*path == '/' && len + 1 + strlen(name) < size) {
			memcpy(buf, path, len);
			snprintf(buf + len, size - len, "/%s", name);
			if (!access(buf, X_OK) && !stat(buf, &st) && S_ISREG(st.st_mode))
				return true;
		}
		if (!path[len])
			break;
	}
	return false;
}
