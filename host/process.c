// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#ifndef STATX_TYPE	/* musl before 1.2.5 */
#include <linux/stat.h>
#endif

#include "host/open.h"

ssize_t process_read_file(uint32_t pid, const char *file, char *buf, size_t size)
{
	char path[PROCESS_PATH];
	ssize_t n;
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, size);
	err = errno;
	close(fd);
	return n < 0 ? -err : n;
}

static struct timespec time_from_statx(const struct statx_timestamp *time)
{
	return (struct timespec){ .tv_sec = time->tv_sec, .tv_nsec = time->tv_nsec };
}

/*
 * Read the identity of the file at @path, relative to @dir, as the kernel has it: the server of a
 * network file system or of FUSE is not asked, which might not answer.
 */
static int file_read(int dir, const char *path, struct process_file *file)
{
	struct statx st;
	dev_t dev;

	if (syscall(SYS_statx, dir, path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS,
		    &st))
		return -errno;
	dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	*file = (struct process_file){ .dev = dev, .ino = (ino_t)st.stx_ino,
				       .size = (off_t)st.stx_size,
				       .mtime = time_from_statx(&st.stx_mtime),
				       .ctime = time_from_statx(&st.stx_ctime),
				       .set_id = st.stx_mode & (S_ISUID | S_ISGID) };
	return 0;
}

int process_file_read(int fd, struct process_file *file)
{
	return file_read(fd, "", file);
}

static bool time_same(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool process_file_same(const struct process_file *a, const struct process_file *b)
{
	if (a->ino != b->ino || a->size != b->size || !time_same(&a->mtime, &b->mtime))
		return false;
	return a->dev == b->dev || time_same(&a->ctime, &b->ctime);
}

bool process_file_unchanged(const struct process_file *a, const struct process_file *b)
{
	return a->dev == b->dev && process_file_same(a, b) && time_same(&a->ctime, &b->ctime);
}

uint32_t process_status_number(const char *status, const char *key)
{
	const char *line = strstr(status, key);
	const char *last;

	if (!line)
		return 0;
	line += strlen(key);
	for (last = line + strcspn(line, "\n"); last > line; last--)
		if (last[-1] == '\t' || last[-1] == ' ')
			break;
	return (uint32_t)strtoull(last, NULL, 10);
}

static const char deleted[] = PROCESS_DELETED;

/* Remove the suffix of a deleted file's path. Return whether it was present. */
static bool path_cut_deleted(char *path)
{
	size_t len = strlen(path), suffix = sizeof(deleted) - 1;

	if (len <= suffix || strcmp(path + len - suffix, deleted))
		return false;
	path[len - suffix] = '\0';
	return true;
}

void process_name(const struct process *process, char *name, size_t size)
{
	const char *slash = strrchr(process->exe, '/');

	snprintf(name, size, "%s", slash ? slash + 1 : process->exe);
	path_cut_deleted(name);
}

/* Store the path of the file that @process executes: a link of /proc, not a name. */
static void program_path(const struct process *process, char *path, size_t size)
{
	if (*process->mapping)
		snprintf(path, size, "/proc/%u/map_files/%s", process->pid, process->mapping);
	else
		snprintf(path, size, "/proc/%u/exe", process->pid);
}

int process_open(const struct process *process)
{
	char path[PROCESS_PATH + sizeof(process->mapping)];

	program_path(process, path, sizeof(path));
	return open_regular(path);
}

int process_open_path(const struct process *process)
{
	char path[PROCESS_PATH + sizeof(process->mapping)];
	int fd;

	program_path(process, path, sizeof(path));
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Return whether @exe is a dynamic loader, such as ld-linux-x86-64.so.2 or ld64.so.1. */
static bool is_loader(const char *exe)
{
	const char *slash = strrchr(exe, '/');
	const char *name = slash ? slash + 1 : exe;

	return !strncmp(name, "ld-", 3) || !strncmp(name, "ld.so", 5) ||
	       !strncmp(name, "ld64.so", 7);
}

/* Decode a path of /proc/PID/maps, in which the kernel escapes newlines only. */
static void path_unescape(char *path)
{
	for (char *p = path; (p = strstr(p, "\\012")); p++) {
		*p = '\n';
		memmove(p + 1, p + 4, strlen(p + 4) + 1);
	}
}

/*
 * Parse a line of /proc/PID/maps, "START-END r-xp OFFSET MAJOR:MINOR INODE PATH", in place: all
 * hexadecimal except INODE. Return false if it is malformed or not a file mapping.
 */
static bool map_parse(char *line, struct process_map *map)
{
	char *path = strchr(line, '/'), *p;
	unsigned int dev_major, dev_minor;

	if (!path)
		return false;
	path_unescape(path);
	*map = (struct process_map){ .start = strtoull(line, &p, 16), .path = path };
	map->deleted = path_cut_deleted(path);
	map->end = strtoull(*p ? p + 1 : p, &p, 16);
	if (strlen(p) < 6)
		return false;
	map->writable = p[2] == 'w';
	map->executable = p[3] == 'x';
	map->shared = p[4] == 's';
	map->offset = strtoull(p + 6, &p, 16);
	dev_major = (unsigned int)strtoull(p, &p, 16);
	/* Not within makedev(), which musl defines as a macro that evaluates it twice. */
	dev_minor = (unsigned int)strtoull(*p ? p + 1 : p, &p, 16);
	map->dev = makedev(dev_major, dev_minor);
	map->ino = (ino_t)strtoull(p, NULL, 10);
	return p < path;
}

/*
 * Call @each for the complete lines in the *@len bytes of @buf, then move the incomplete rest to
 * its beginning and store the rest's length in *@len. Return the last value of @each.
 */
static int maps_parse(char *buf, size_t *len,
		      int (*each)(void *arg, const struct process_map *map), void *arg)
{
	struct process_map map;
	char *line = buf, *end;
	int ret = 0;

	while (!ret && (end = memchr(line, '\n', *len - (size_t)(line - buf)))) {
		*end = '\0';
		if (map_parse(line, &map))
			ret = each(arg, &map);
		line = end + 1;
	}
	*len -= (size_t)(line - buf);
	memmove(buf, line, *len);
	return ret;
}

bool process_maps_program(const struct process *process, const struct process_map *map)
{
	size_t len = strlen(map->path);

	return !strncmp(process->exe, map->path, len) &&
	       (!process->exe[len] || !strcmp(process->exe + len, deleted));
}

/* Parse the maps file @path. Return as process_maps() does. */
static int maps_each(const char *path, int (*each)(void *arg, const struct process_map *map),
		     void *arg)
{
	char buf[16384];	/* a line and a read have at most a page */
	size_t len = 0;
	ssize_t n;
	int fd, ret = 0;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		n = read(fd, buf + len, sizeof(buf) - len);
		ret = n < 0 ? -errno : 0;
		len += n > 0 ? (size_t)n : 0;
		if (!ret)
			ret = maps_parse(buf, &len, each, arg);
	} while (!ret && n > 0 && len < sizeof(buf));
	close(fd);
	return ret;
}

int process_maps(uint32_t pid, int (*each)(void *arg, const struct process_map *map), void *arg)
{
	char path[PROCESS_PATH];

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	return maps_each(path, each, arg);
}

/* A mapping of this process to be found by its address, with the numbers of its file. */
struct map_own {
	uint64_t start;
	dev_t dev;
	ino_t ino;
};

static int map_own_find(void *arg, const struct process_map *map)
{
	struct map_own *own = arg;

	if (map->start != own->start)
		return 0;
	own->dev = map->dev;
	own->ino = map->ino;
	return 1;
}

int process_map_identity(int fd, dev_t *dev, ino_t *ino)
{
	void *mapped = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	struct map_own own = { .start = (uint64_t)(uintptr_t)mapped };
	int found;

	if (mapped == MAP_FAILED)
		return -ESTALE;
	found = maps_each("/proc/self/maps", map_own_find, &own);
	munmap(mapped, 1);
	*dev = own.dev;
	*ino = own.ino;
	return found == 1 ? 0 : found ? found : -ESTALE;
}

int process_map_check(int fd, const struct process_map *map)
{
	dev_t dev;
	ino_t ino;
	int err = process_map_identity(fd, &dev, &ino);

	if (!err && (dev != map->dev || ino != map->ino))
		err = -ESTALE;
	if (!err)
		return fd;
	close(fd);
	return err;
}

/*
 * Return whether @map maps the process's program: /proc/PID/exe can be opened with fewer privileges
 * than /proc/PID/map_files.
 */
static bool map_is_program(uint32_t pid, const struct process_map *map)
{
	char path[PROCESS_PATH], exe[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	n = readlink(path, exe, sizeof(exe) - 1);
	if (n < 0)
		return false;
	exe[n] = '\0';
	return path_cut_deleted(exe) == map->deleted && !strcmp(exe, map->path);
}

int process_map_open(uint32_t pid, const struct process_map *map)
{
	char path[PROCESS_PATH + 40];
	int fd, root;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", pid,
		 (unsigned long long)map->start, (unsigned long long)map->end);
	fd = open_regular(path);
	if (fd >= 0 || fd == -EINVAL)
		return fd;
	if (map_is_program(pid, map)) {
		snprintf(path, sizeof(path), "/proc/%u/exe", pid);
		fd = open_regular(path);
	} else if (map->deleted) {
		return -ESTALE;
	} else {
		/* The kernel's path of a mapping contains no links, but may cross mounts. */
		snprintf(path, sizeof(path), "/proc/%u/root", pid);
		root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (root < 0)
			return -errno;
		fd = open_beneath(root, map->path, true);
		close(root);
	}
	return fd < 0 ? fd : process_map_check(fd, map);
}

struct program {
	struct process *process;
	bool (*is_program)(const char *name);
};

/* Make the mapped file the process's program if ->is_program accepts it; then stop. */
static int program_find(void *arg, const struct process_map *map)
{
	struct program *program = arg;
	struct process *process = program->process;
	struct process mapped = { .pid = process->pid };
	char name[256];
	int fd;

	if (!map->executable)
		return 0;
	snprintf(mapped.exe, sizeof(mapped.exe), "%s", map->path);
	process_name(&mapped, name, sizeof(name));
	if (!program->is_program(name))
		return 0;
	snprintf(mapped.mapping, sizeof(mapped.mapping), "%llx-%llx",
		 (unsigned long long)map->start, (unsigned long long)map->end);
	fd = process_open_path(&mapped);
	if (fd < 0)
		return 0;
	if (!process_file_read(fd, &mapped.file)) {
		memcpy(process->mapping, mapped.mapping, sizeof(mapped.mapping));
		snprintf(process->exe, sizeof(process->exe), "%s%s", map->path,
			 map->deleted ? deleted : "");
		process->file = mapped.file;
	}
	close(fd);
	return *process->mapping;
}

bool process_is_loading(const struct process *process)
{
	return is_loader(process->exe) && !*process->mapping;
}

int process_uid(uint32_t pid, uint32_t *uid)
{
	char status[2048];
	ssize_t n = process_read_file(pid, "status", status, sizeof(status) - 1);

	if (n < 0)
		return (int)n;
	status[n] = '\0';
	*uid = process_status_number(status, "\nUid:");
	return 0;
}

int process_read(uint32_t pid, bool (*is_program)(const char *name), struct process *process)
{
	struct program program;
	char path[PROCESS_PATH], status[2048];
	ssize_t n;
	int err;

	*process = (struct process){ .pid = pid };
	program = (struct program){ process, is_program };
	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	n = readlink(path, process->exe, sizeof(process->exe) - 1);
	if (n < 0)
		return -errno;
	err = file_read(AT_FDCWD, path, &process->file);
	if (err)
		return err;
	if (is_program && is_loader(process->exe))
		process_maps(pid, program_find, &program);
	n = process_read_file(pid, "status", status, sizeof(status) - 1);
	if (n < 0)
		return (int)n;
	status[n] = '\0';
	process->ppid = process_status_number(status, "\nPPid:");
	process->uid = process_status_number(status, "\nUid:");
	process->ns_pid = process_status_number(status, "\nNSpid:");
	if (!process->ns_pid)
		process->ns_pid = pid;
	return 0;
}

int process_pids(int (*each)(void *arg, uint32_t pid), void *arg)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int ret = 0;

	if (!dir)
		return -errno;
	/* Another file system at /proc, or that of another PID namespace, has no such entry. */
	if (access("/proc/self", F_OK))
		ret = -errno;
	while (!ret && (entry = readdir(dir))) {
		char *end;
		unsigned long pid = strtoull(entry->d_name, &end, 10);

		if (!*end && pid && pid <= UINT32_MAX)
			ret = each(arg, (uint32_t)pid);
	}
	closedir(dir);
	return ret;
}

/* The arguments of process_each(). */
struct each {
	bool (*is_program)(const char *name);
	int (*each)(void *arg, const struct process *process);
	void *arg;
};

static int each_pid(void *arg, uint32_t pid)
{
	const struct each *each = arg;
	struct process process;

	return process_read(pid, each->is_program, &process) ? 0 : each->each(each->arg, &process);
}

int process_each(bool (*is_program)(const char *name),
		 int (*each)(void *arg, const struct process *process), void *arg)
{
	return process_pids(each_pid, &(struct each){ is_program, each, arg });
}

bool process_is_main(const struct process *process, bool (*is_program)(const char *name))
{
	struct process parent;

	return process_read(process->ppid, is_program, &parent) ||
	       !process_file_same(&parent.file, &process->file);
}

bool process_runs(uint32_t pid, bool (*is_program)(const char *name),
		  const struct process_file *file)
{
	struct process process;

	return !process_read(pid, is_program, &process) && process_file_same(&process.file, file);
}

bool process_exists(uint32_t pid)
{
	char path[PROCESS_PATH];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	/* Not access(2): it ignores effective capabilities, which make hidden processes visible. */
	return !stat(path, &st);
}

ssize_t process_directory(uint32_t pid, char *path, size_t size)
{
	char link[PROCESS_PATH];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%u/cwd", pid);
	n = readlink(link, path, size);
	return n < 0 ? -errno : n;
}

ssize_t process_title(uint32_t pid, char *buf, size_t size)
{
	return process_read_file(pid, "cmdline", buf, size);
}
