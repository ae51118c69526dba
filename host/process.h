/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What /proc says of a process. All of it is foreign: a process can choose its
 * names and can go at any moment.
 */
#ifndef HOST_PROCESS_H
#define HOST_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define PROCESS_PATH	32			/* room for "/proc/4294967295/ns/pid" */
#define PROCESS_DELETED	" (deleted)"		/* the kernel appends it to the path of a deleted file */

/*
 * Which file it is. The kernel attaches to an inode, but overlay mounts of one image show the
 * same inode under a device of their own each: there the times decide.
 */
struct process_file {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime, ctime;
};

/* Reads what file @fd is. 0 or -errno. */
int process_file_read(int fd, struct process_file *file);

/* Whether a probe on one is a probe on the other. */
bool process_file_same(const struct process_file *a, const struct process_file *b);

struct process {
	uint32_t pid, ppid;
	uint32_t ns_pid;	/* in its own, innermost PID namespace */
	struct process_file file;	/* its program */
	char mapping[40];	/* where that is mapped, if it is not the executable; "" */
	char exe[256];		/* the program's path in its own mount namespace */
};

/*
 * Reads process @pid. Of one that was started through the dynamic loader, the program is a server's
 * file that it maps, if there is one. 0; -ENOENT: it is gone or a kernel thread;
 * -EACCES and others as /proc says.
 */
int process_read(uint32_t pid, bool (*is_program)(const char *name), struct process *process);

/* Whether it is a program that the dynamic loader, started by hand, has not mapped yet. */
bool process_is_loading(const struct process *process);

/* Opens the process's program, also where it was deleted or lies in another mount namespace. */
int process_open(const struct process *process);

/* A mapping of a file into a process. */
struct process_map {
	uint64_t start, end;
	bool executable, deleted;
	dev_t dev;		/* as /proc has it, not always as stat() does */
	ino_t ino;
	const char *path;	/* where the process sees it, without " (deleted)"; borrowed */
};

/*
 * Calls @each for every file mapping of process @pid, until it returns other than 0, which is
 * handed back. -errno where /proc/PID/maps cannot be read, -EACCES where it is not to be seen.
 */
int process_maps(uint32_t pid, int (*each)(void *arg, const struct process_map *map), void *arg);

/*
 * Opens the mapped file, also where it was deleted or lies in another mount namespace, if we may:
 * else by its path. A descriptor, or -errno; -ESTALE: it is deleted and may not be looked at;
 * -EINVAL: it is no regular file.
 */
int process_map_open(uint32_t pid, const struct process_map *map);

/*
 * Opens a regular file to be read. Never waits, and touches nothing else: -EINVAL. A descriptor
 * or -errno.
 */
int process_file_open(const char *path);

/* The file name in @process->exe without " (deleted)", to @name of @size bytes. */
void process_name(const struct process *process, char *name, size_t size);

/*
 * Calls @each for every process there is, until it returns other than 0, which is handed back.
 * -errno where /proc cannot be read.
 */
int process_each(bool (*is_program)(const char *name),
		 int (*each)(void *arg, const struct process *process), void *arg);

/* Whether it is a server's main process: one whose parent runs something else. */
bool process_is_main(const struct process *process, bool (*is_program)(const char *name));

/* Whether there is a process @pid. */
bool process_exists(uint32_t pid);

/*
 * Read at most @size bytes of /proc/PID/@file into @buf, without a NUL. Return the number of bytes,
 * or -errno.
 */
ssize_t process_read_file(uint32_t pid, const char *file, char *buf, size_t size);

/* Return the last number on the line of @status, a /proc/PID/status, that begins with @key; 0: none. */
uint32_t process_status_number(const char *status, const char *key);

/* The process's command line as its title shows it; bytes in @buf without a NUL, or -errno. */
ssize_t process_title(uint32_t pid, char *buf, size_t size);

#endif
