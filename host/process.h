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
int process_read(uint32_t pid, struct process *process);

/* Whether it is a program that the dynamic loader, started by hand, has not mapped yet. */
bool process_is_loading(const struct process *process);

struct process_memory {
	int fd;
	uint64_t slide;		/* of the program: addresses in memory less those it was linked with */
};

/* Opens the memory of process @pid, for addresses. 0 or -errno; process_memory_close() ends it. */
int process_memory_open(uint32_t pid, struct process_memory *memory);

/* As above, for the variables of its program, too, whose lowest address, as linked, is @lowest. */
int process_memory_open_program(const struct process *process, uint64_t lowest,
				struct process_memory *memory);

/* Reads what is there at @address, at most @size bytes: how many, or -errno. */
ssize_t process_memory_read(const struct process_memory *memory, uint64_t address, void *buf,
			    size_t size);

/* Reads the program's variable of @size bytes that was linked to @vaddr. 0 or -errno. */
int process_memory_variable(const struct process_memory *memory, uint64_t vaddr, void *buf,
			    size_t size);

void process_memory_close(struct process_memory *memory);

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
int process_each(int (*each)(void *arg, const struct process *process), void *arg);

/* Whether it is a server's main process: one whose parent runs something else. */
bool process_is_main(const struct process *process);

/* Whether process @pid is in another PID namespace than @own_ino; 0 is the one that sees all. */
bool process_is_nested(uint32_t pid, uint64_t own_ino);

/* Whether there is a process @pid. */
bool process_exists(uint32_t pid);

/* The kernel's dev_t and the inode of the process's PID namespace. 0 or -errno. */
int process_pid_namespace(uint32_t pid, uint64_t *dev, uint64_t *ino);

/*
 * The container that the process runs in: 12 characters of the id that docker, podman, containerd,
 * CRI-O and Kubernetes put into its control group's name, or LXC's and systemd-nspawn's name;
 * "" where it is in none. At most @size bytes with the NUL.
 */
void process_container(uint32_t pid, char *container, size_t size);

/* The same for the text of a /proc/PID/cgroup, @len bytes. */
void process_container_of(const char *cgroups, size_t len, char *container, size_t size);

/*
 * The PID namespace that /proc counts in, as above; both 0 where that is the initial one. 0, or
 * -errno where it cannot be told.
 */
int process_own_namespace(uint64_t *dev, uint64_t *ino);

/* The process's command line as its title shows it; bytes in @buf without a NUL, or -errno. */
ssize_t process_title(uint32_t pid, char *buf, size_t size);

#endif
