/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files that people name, opened: by a path, by a library's short name, or as what a process
 * maps.
 */
#ifndef HOST_FILE_H
#define HOST_FILE_H

#include "host/process.h"

struct file {
	int fd;
	char *path;			/* for people; in its own mount namespace */
	struct process_file id;
};

/* Each file once. All zero is an empty one; file_list_free() ends it. */
struct file_list {
	struct file *files;
	size_t count;
};

/*
 * Adds the files that @name stands for: those that processes @pids map by that name, or else this
 * host's. 0; -ENOENT: there is none; or -errno.
 */
int file_list_named(struct file_list *list, const char *name, const uint32_t *pids, size_t npids);

/* Adds all programs and libraries that process @pid maps. 0 or -errno. */
int file_list_process(struct file_list *list, uint32_t pid);

void file_list_free(struct file_list *list);

#endif
