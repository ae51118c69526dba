// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "db/engine.h"

/* Room for "/proc/4294967295/ns/pid". */
#define PROC_PATH	32

static ssize_t process_file(uint32_t pid, const char *file, char *buf, size_t size)
{
	char path[PROC_PATH];
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

static struct process_file file_of(const struct stat *st)
{
	return (struct process_file){ .dev = st->st_dev, .ino = st->st_ino, .size = st->st_size,
				      .mtime = st->st_mtim, .ctime = st->st_ctim };
}

int process_file_read(int fd, struct process_file *file)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	*file = file_of(&st);
	return 0;
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

/* The last number on the line of /proc/PID/status that begins with @key; 0: none. */
static uint32_t status_number(const char *status, const char *key)
{
	const char *line = strstr(status, key);
	const char *last;

	if (!line)
		return 0;
	line += strlen(key);
	for (last = line + strcspn(line, "\n"); last > line; last--)
		if (last[-1] == '\t' || last[-1] == ' ')
			break;
	return (uint32_t)strtoul(last, NULL, 10);
}

static const char deleted[] = " (deleted)";

/* Cuts the mark of a deleted file off @path. Whether it was there. */
static bool path_cut_deleted(char *path)
{
	size_t len = strlen(path), mark = sizeof(deleted) - 1;

	if (len <= mark || strcmp(path + len - mark, deleted))
		return false;
	path[len - mark] = '\0';
	return true;
}

void process_name(const struct process *process, char *name, size_t size)
{
	const char *slash = strrchr(process->exe, '/');

	snprintf(name, size, "%s", slash ? slash + 1 : process->exe);
	path_cut_deleted(name);
}

int process_open(const struct process *process)
{
	char path[PROC_PATH + sizeof(process->mapping)];
	int fd;

	if (*process->mapping)
		snprintf(path, sizeof(path), "/proc/%u/map_files/%s", process->pid,
			 process->mapping);
	else
		snprintf(path, sizeof(path), "/proc/%u/exe", process->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static bool is_loader(const char *exe)
{
	const char *slash = strrchr(exe, '/');
	const char *name = slash ? slash + 1 : exe;

	return !strncmp(name, "ld-", 3) || !strncmp(name, "ld.so", 5) ||
	       !strncmp(name, "ld64.so", 7);
}

/* Line ends are all that the kernel writes in octal there. */
static void path_unescape(char *path)
{
	for (char *p = path; (p = strstr(p, "\\012")); p++) {
		*p = '\n';
		memmove(p + 1, p + 4, strlen(p + 4) + 1);
	}
}

/* "START-END r-xp OFFSET MAJOR:MINOR INODE PATH", in hexadecimal but the inode. */
static bool map_read(char *line, struct process_map *map)
{
	char *path = strchr(line, '/'), *p;
	unsigned int dev_major;

	if (!path)
		return false;
	path_unescape(path);
	*map = (struct process_map){ .start = strtoull(line, &p, 16), .path = path };
	map->deleted = path_cut_deleted(path);
	map->end = strtoull(*p ? p + 1 : p, &p, 16);
	if (strlen(p) < 6)
		return false;
	map->executable = p[3] == 'x';
	strtoull(p + 6, &p, 16);
	dev_major = (unsigned int)strtoul(p, &p, 16);
	map->dev = makedev(dev_major, (unsigned int)strtoul(*p ? p + 1 : p, &p, 16));
	map->ino = (ino_t)strtoull(p, NULL, 10);
	return p < path;
}

/* Hands out the whole lines in @buf and moves the rest to its start; *@len is what is left. */
static int maps_lines(char *buf, size_t *len,
		      int (*each)(void *arg, const struct process_map *map), void *arg)
{
	struct process_map map;
	char *line = buf, *end;
	int ret = 0;

	while (!ret && (end = memchr(line, '\n', *len - (size_t)(line - buf)))) {
		*end = '\0';
		if (map_read(line, &map))
			ret = each(arg, &map);
		line = end + 1;
	}
	*len -= (size_t)(line - buf);
	memmove(buf, line, *len);
	return ret;
}

int process_maps(uint32_t pid, int (*each)(void *arg, const struct process_map *map), void *arg)
{
	char path[PROC_PATH], buf[16384];	/* a line has up to a page, and so has a read */
	size_t len = 0;
	ssize_t n;
	int fd, ret = 0;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	do {
		n = read(fd, buf + len, sizeof(buf) - len);
		ret = n < 0 ? -errno : 0;
		len += n > 0 ? (size_t)n : 0;
		if (!ret)
			ret = maps_lines(buf, &len, each, arg);
	} while (!ret && n > 0 && len < sizeof(buf));
	close(fd);
	return ret;
}

int process_file_open(const char *path)
{
	int found = open(path, O_PATH | O_CLOEXEC), flags = O_RDONLY | O_CLOEXEC | O_NOCTTY, fd;
	char same[PROC_PATH];
	struct stat st;

	if (found < 0)
		return -errno;
	/* Opening a device can set it going: what is opened is what was looked at before. */
	snprintf(same, sizeof(same), "/proc/self/fd/%d", found);
	if (fstat(found, &st)) {
		fd = -errno;
	} else if (!S_ISREG(st.st_mode)) {
		fd = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	} else {
		fd = open(same, flags);
		if (fd < 0 && errno == ENOENT)	/* there is no /proc */
			fd = open(path, flags | O_NONBLOCK);
		fd = fd < 0 ? -errno : fd;
	}
	close(found);
	return fd;
}

/* Whether the map is of the process's program, which may be opened where other maps may not. */
static bool map_is_program(uint32_t pid, const struct process_map *map)
{
	char path[PROC_PATH], exe[4096];
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
	char path[PROC_PATH + 4096];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", pid,
		 (unsigned long long)map->start, (unsigned long long)map->end);
	fd = process_file_open(path);
	if (fd >= 0 || fd == -EINVAL)
		return fd;
	if (map_is_program(pid, map))
		snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	else if (map->deleted)
		return -ESTALE;
	else
		snprintf(path, sizeof(path), "/proc/%u/root%s", pid, map->path);
	return process_file_open(path);
}

/* Takes the server's file from the first map of it. */
static int mapping_take(void *arg, const struct process_map *map)
{
	struct process *process = arg;
	struct process mapped = { .pid = process->pid };
	char name[256];
	int fd;

	if (!map->executable)
		return 0;
	snprintf(mapped.exe, sizeof(mapped.exe), "%s", map->path);
	process_name(&mapped, name, sizeof(name));
	if (!engine_of_file(name))
		return 0;
	snprintf(mapped.mapping, sizeof(mapped.mapping), "%llx-%llx",
		 (unsigned long long)map->start, (unsigned long long)map->end);
	fd = process_open(&mapped);
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

struct base {
	const char *exe;
	uint64_t start;
};

/* The first mapping of the program itself: where it was loaded to. */
static int base_take(void *arg, const struct process_map *map)
{
	struct base *base = arg;
	size_t len = strlen(map->path);

	if (strncmp(base->exe, map->path, len) ||
	    (base->exe[len] && strcmp(base->exe + len, deleted)))
		return 0;
	base->start = map->start;
	return 1;
}

int process_memory_open(uint32_t pid, struct process_memory *memory)
{
	char path[PROC_PATH];

	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	memory->slide = 0;
	memory->fd = open(path, O_RDONLY | O_CLOEXEC);
	return memory->fd < 0 ? -errno : 0;
}

int process_memory_open_program(const struct process *process, uint64_t lowest,
				struct process_memory *memory)
{
	struct base base = { .exe = process->exe };
	int err = process_maps(process->pid, base_take, &base);

	if (err <= 0)
		return err ? err : -ENOENT;
	err = process_memory_open(process->pid, memory);
	memory->slide = base.start - lowest;
	return err;
}

ssize_t process_memory_read(const struct process_memory *memory, uint64_t address, void *buf,
			    size_t size)
{
	ssize_t n = pread(memory->fd, buf, size, (off_t)address);

	return n < 0 ? -errno : n;
}

int process_memory_variable(const struct process_memory *memory, uint64_t vaddr, void *buf,
			    size_t size)
{
	ssize_t n = process_memory_read(memory, vaddr + memory->slide, buf, size);

	return n < 0 ? (int)n : (size_t)n < size ? -EIO : 0;
}

void process_memory_close(struct process_memory *memory)
{
	close(memory->fd);
	memory->fd = -1;
}

int process_read(uint32_t pid, struct process *process)
{
	char path[PROC_PATH], status[2048];
	struct stat st;
	ssize_t n;

	*process = (struct process){ .pid = pid };
	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	n = readlink(path, process->exe, sizeof(process->exe) - 1);
	if (n < 0)
		return -errno;
	if (stat(path, &st))
		return -errno;
	process->file = file_of(&st);
	if (is_loader(process->exe))
		process_maps(pid, mapping_take, process);
	n = process_file(pid, "status", status, sizeof(status) - 1);
	if (n < 0)
		return (int)n;
	status[n] = '\0';
	process->ppid = status_number(status, "\nPPid:");
	process->ns_pid = status_number(status, "\nNSpid:");
	if (!process->ns_pid)
		process->ns_pid = pid;
	return 0;
}

int process_each(int (*each)(void *arg, const struct process *process), void *arg)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int ret = 0;

	if (!dir)
		return -errno;
	while (!ret && (entry = readdir(dir))) {
		struct process process;
		char *end;
		unsigned long pid = strtoul(entry->d_name, &end, 10);

		if (*end || !pid || pid > UINT32_MAX)
			continue;
		if (!process_read((uint32_t)pid, &process))
			ret = each(arg, &process);
	}
	closedir(dir);
	return ret;
}

static int namespace_read(const char *path, uint64_t *dev, uint64_t *ino)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	*dev = (uint64_t)major(st.st_dev) << 20 | minor(st.st_dev);
	*ino = st.st_ino;
	return 0;
}

int process_pid_namespace(uint32_t pid, uint64_t *dev, uint64_t *ino)
{
	char path[PROC_PATH];

	snprintf(path, sizeof(path), "/proc/%u/ns/pid", pid);
	return namespace_read(path, dev, ino);
}

/* PROC_PID_INIT_INO of the kernel's include/linux/proc_ns.h */
#define INITIAL_PID_NS	0xeffffffcu

int process_own_namespace(uint64_t *dev, uint64_t *ino)
{
	char link[16] = "", status[2048] = "";
	uint32_t self;
	int err;

	/* What is mounted at /proc may count in a namespace above ours: two PIDs are ours then. */
	if (readlink("/proc/self", link, sizeof(link) - 1) < 0)
		return -errno;
	self = (uint32_t)strtoul(link, NULL, 10);
	process_file(self, "status", status, sizeof(status) - 1);
	if (status_number(status, "\nNSpid:") == self)
		err = process_pid_namespace(self, dev, ino);
	else
		err = process_pid_namespace(1, dev, ino);
	if (!err && *ino == INITIAL_PID_NS)
		*dev = *ino = 0;
	return err;
}

bool process_is_main(const struct process *process)
{
	struct process parent;

	return process_read(process->ppid, &parent) ||
	       !process_file_same(&parent.file, &process->file);
}

bool process_is_nested(uint32_t pid, uint64_t own_ino)
{
	uint64_t dev, ino = 0;

	return own_ino && !process_pid_namespace(pid, &dev, &ino) && ino != own_ino;
}

bool process_exists(uint32_t pid)
{
	char path[PROC_PATH];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	/* access(2) would leave the capabilities out, which hidden ones are seen by. */
	return !stat(path, &st);
}

ssize_t process_title(uint32_t pid, char *buf, size_t size)
{
	return process_file(pid, "cmdline", buf, size);
}

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

/* A container's id has 64 hexadecimal digits; shorter runs are a pod's or a session's. */
#define ID_LEAST	64
#define ID_SHOWN	12

static bool container_id(const char *line, const char *end, char *container, size_t size)
{
	size_t run = 0;

	/* The last one counts: containers inside others stand behind them. */
	for (const char *p = end; p > line; p--) {
		run = is_hex(p[-1]) ? run + 1 : 0;
		if (run >= ID_LEAST && (p - 1 == line || !is_hex(p[-2]))) {
			snprintf(container, size, "%.*s", ID_SHOWN, p - 1);
			return true;
		}
	}
	return false;
}

/* "/lxc/NAME", "/lxc.payload.NAME", "/machine.slice/machine-NAME.scope". */
static bool container_name(const char *line, const char *end, char *container, size_t size)
{
	static const char *const before[] = { "/lxc.payload.", "/lxc.payload/", "/lxc/",
					      "/machine.slice/machine-" };

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		const char *at = memmem(line, (size_t)(end - line), before[i], strlen(before[i]));
		const char *stop;

		if (!at)
			continue;
		at += strlen(before[i]);
		stop = memchr(at, '/', (size_t)(end - at));
		stop = stop ? stop : end;
		if (stop - at > 6 && !memcmp(stop - 6, ".scope", 6))
			stop -= 6;
		snprintf(container, size, "%.*s", (int)(stop - at), at);
		return stop > at;
	}
	return false;
}

void process_container_of(const char *cgroups, size_t len, char *container, size_t size)
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

void process_container(uint32_t pid, char *container, size_t size)
{
	char cgroups[4096];
	ssize_t n = process_file(pid, "cgroup", cgroups, sizeof(cgroups));

	process_container_of(cgroups, n > 0 ? (size_t)n : 0, container, size);
}
