/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opened files, selected by a path, by a library's short name, or as the mappings of a process. */
#ifndef HOST_FILE_H
#define HOST_FILE_H

#include "host/process.h"

struct file {
	int fd;				/* owned by the list */
	char *path;			/* for messages: valid in the file's own mount namespace */
	uint32_t pid;			/* a process in that namespace; 0: this one */
	struct process_file id;
};

/* A set of files, each once. All zero is an empty one; release it with file_list_free(). */
struct file_list {
	struct file *files;
	size_t count;
};

/*
 * Add the files called @name: those that the processes @pids map under that name, or else this
 * host's own. Return 0, -ENOENT if there is none, or -errno.
 */
int file_list_named(struct file_list *list, const char *name, const uint32_t *pids, size_t npids);

/* Add every executable mapping of a file in process @pid. Return 0 or -errno. */
int file_list_process(struct file_list *list, uint32_t pid);

/* Close all files and empty the list. */
void file_list_free(struct file_list *list);

#endif
