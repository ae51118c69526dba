/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host/: facts about the Linux host: processes and their memory, namespaces, containers, files,
 * libraries, symbols, clocks, mounts, privileges, limits, and the CPU architecture.
 * It does not call bpf(2) and knows no databases.
 */

/*
 * Processes as described by proc(5). All of it is untrusted: a process can choose its names and may
 * exit at any time.
 */
#ifndef HOST_PROCESS_H
#define HOST_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define PROCESS_PATH	32		/* bytes of "/proc/4294967295/ns/pid" and the like */
#define PROCESS_DELETED	" (deleted)"	/* the kernel's suffix of a deleted file's path */

/*
 * The identity of a file. The kernel attaches probes to an inode; overlay mounts of one image show
 * the same inode with a device number each, so there the timestamps decide.
 */
struct process_file {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec mtime, ctime;
	bool set_id;			/* set-user-ID or set-group-ID; not part of the identity */
};

/* Read the identity of the file that is open as @fd. Return 0 or -errno. */
int process_file_read(int fd, struct process_file *file);

/* Return whether both are the same inode to the kernel, so that a probe on one covers the other. */
bool process_file_same(const struct process_file *a, const struct process_file *b);

/*
 * Return whether both are the same file and it was not changed in between. The owner of a
 * file chooses its modification time, but not its change time.
 */
bool process_file_unchanged(const struct process_file *a, const struct process_file *b);

struct process {
	uint32_t pid, ppid;
	uint32_t ns_pid;		/* its PID in its own, innermost PID namespace */
	uint32_t uid;			/* of its user */
	struct process_file file;	/* its program */
	char mapping[40];		/* "START-END" of the program if that is not exe, else "" */
	char exe[256];			/* path of the program in its own mount namespace */
};

/*
 * Read process @pid. If it was started through the dynamic loader (ld.so PROGRAM), its program is
 * the first executable mapping whose file name @is_program accepts, if any; NULL: none. Return 0,
 * -ENOENT if the process has exited or is a kernel thread, -EACCES, or another -errno of /proc.
 */
int process_read(uint32_t pid, bool (*is_program)(const char *name), struct process *process);

/*
 * Store the user of process @pid in *@uid, without access to its memory or files. Return 0 or
 * -errno.
 */
int process_uid(uint32_t pid, uint32_t *uid);

/* Return whether it is a dynamic loader that has not mapped a known program (yet). */
bool process_is_loading(const struct process *process);

/*
 * Open the process's program, also if it was deleted or is in another mount namespace. Return a
 * descriptor, owned by the caller, or -errno.
 */
int process_open(const struct process *process);

/* The same for its identity only (O_PATH): the file system is not accessed. */
int process_open_path(const struct process *process);

/* A mapping of a file in a process: one line of /proc/PID/maps. */
struct process_map {
	uint64_t start, end;
	uint64_t offset;	/* of ->start in the file, bytes */
	bool writable, executable, shared, deleted;
	dev_t dev;		/* as in /proc; some file systems report another one by stat(2) */
	ino_t ino;
	const char *path;	/* in its mount namespace, without " (deleted)"; borrowed */
};

/* Return whether @map is of the process's program, by its path. */
bool process_maps_program(const struct process *process, const struct process_map *map);

/*
 * Call @each for every file mapping of process @pid until it returns a value other than 0; return
 * that value, 0, or -errno if /proc/PID/maps cannot be read (-EACCES: not permitted).
 */
int process_maps(uint32_t pid, int (*each)(void *arg, const struct process_map *map), void *arg);

/*
 * Open the mapped file, if permitted also if it was deleted or is in another mount namespace, else
 * by its path. Return a descriptor, owned by the caller; -ESTALE if it was deleted or replaced and
 * opening it is not permitted; -EINVAL if it is not a regular file; or another -errno.
 */
int process_map_open(uint32_t pid, const struct process_map *map);

/*
 * Store the device and inode of the file open as @fd as /proc/PID/maps has them: stat(2) may report
 * others, as on btrfs and overlayfs, so it is mapped for a moment. Return 0 or -errno.
 */
int process_map_identity(int fd, dev_t *dev, ino_t *ino);

/*
 * Check that the file open as @fd is that of @map, see process_map_identity(). Return @fd, or
 * close it and return -ESTALE or another -errno.
 */
int process_map_check(int fd, const struct process_map *map);

/* Store the file name in @process->exe, without " (deleted)", in the @size bytes of @name. */
void process_name(const struct process *process, char *name, size_t size);

/*
 * Call @each for every process, in the order of their PIDs, until it returns a value other than 0;
 * return that value, 0, or -errno if /proc cannot be read.
 */
int process_pids(int (*each)(void *arg, uint32_t pid), void *arg);

/*
 * Call @each for every process until it returns a value other than 0; return that value, 0, or
 * -errno if /proc cannot be read. @is_program: see process_read().
 */
int process_each(bool (*is_program)(const char *name),
		 int (*each)(void *arg, const struct process *process), void *arg);

/* Return whether it is a server's main process: one whose parent runs another program. */
bool process_is_main(const struct process *process, bool (*is_program)(const char *name));

/*
 * Return whether process @pid runs the program @file. Check before and after opening its memory or
 * files: exec may replace the program, and the PID may be given to another process.
 */
bool process_runs(uint32_t pid, bool (*is_program)(const char *name),
		  const struct process_file *file);

/* Return whether process @pid exists and is visible. */
bool process_exists(uint32_t pid);

/*
 * Read at most @size bytes of /proc/PID/@file into @buf, without a NUL. Return the number of bytes,
 * or -errno.
 */
ssize_t process_read_file(uint32_t pid, const char *file, char *buf, size_t size);

/*
 * Return the last number on the line of @status, the content of a /proc/PID/status, that begins
 * with @key ("\nNSpid:"); 0 without one.
 */
uint32_t process_status_number(const char *status, const char *key);

/*
 * Read the path of the working directory of process @pid, in its mount namespace and without a NUL,
 * into the @size bytes of @path. Return the number of bytes, or -errno. The file system is not
 * accessed.
 */
ssize_t process_directory(uint32_t pid, char *path, size_t size);

/*
 * Read at most @size bytes of the process title, its command line, into @buf, without a NUL. Return
 * the number of bytes, or -errno.
 */
ssize_t process_title(uint32_t pid, char *buf, size_t size);

#endif
