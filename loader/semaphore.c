// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/semaphore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/pid_namespace.h"
#include "loader/sys.h"
#include "usdt/fmt.h"
#include "usdt/text.h"

#define FOLDER		"/run/dbslower"
#define NOTE		"semaphores."
#define MARK		"%" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIx64 " %" PRIx64 " %" PRIu64 \
			" %" PRIu64 " %" PRIu64 " %" PRIu64 "\n"
#define NUMBERS		9		/* in one */
#define LINE		192		/* room for one */
#define START_FIELD	22	/* of /proc/PID/stat */
#define TRIES		3
#define WRITE_PASSES	16	/* over all processes: a user can keep on executing the file */
#define VALUE_MAX	1024		/* of a semaphore: tracers at the same time */
#define RANGES		8		/* writable mappings of a program */

static uint64_t ticks_now(void)
{
	return clock_ns(CLOCK_BOOTTIME) / (1000000000u / (uint64_t)getauxval(AT_CLKTCK));
}

/* Return the start of the process in clock ticks since boot, or 0 if it has ended. */
static uint64_t process_start(uint32_t pid)
{
	char path[32], text[1024];
	const char *at;
	ssize_t n;
	int fd;

	fmt_text(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* The second field, the program's name, may contain blanks and parentheses. */
	at = strrchr(text, ')');
	for (int field = 2; at && field < START_FIELD; field++)
		at = strchr(at + 1, ' ');
	return at ? text_number(at, NULL, 10) : 0;
}

/*
 * Check that the process of @mark still runs its program. Return 0; -ESRCH if it does not; or
 * -EPERM if the program is set-user-ID.
 */
static int mark_check(const struct semaphore_mark *mark, bool (*is_program)(const char *name))
{
	struct process process;

	if (process_start(mark->pid) != mark->start ||
	    process_read(mark->pid, is_program, &process) ||
	    process.file.dev != mark->dev || process.file.ino != mark->ino)
		return -ESRCH;
	return process.file.set_id ? -EPERM : 0;
}

/* The memory of a process, open for writing to its program's variables. */
struct memory {
	int fd;
	const struct process *process;	/* finds the program; NULL: it is known: */
	uint64_t dev, ino;		/* as in /proc/PID/maps */
	uint64_t base;			/* with ->process: the program's load address */
	unsigned int count;
	struct { uint64_t start, end, offset; } ranges[RANGES];
};

/* Collect the private writable mappings of the program. */
static int memory_map(void *arg, const struct process_map *map)
{
	struct memory *memory = arg;

	if (memory->process && !memory->ino && process_maps_program(memory->process, map)) {
		memory->dev = map->dev;
		memory->ino = map->ino;
		memory->base = map->start;
	}
	if (!memory->ino || map->dev != memory->dev || map->ino != memory->ino ||
	    !map->writable || map->shared)
		return 0;
	memory->ranges[memory->count].start = map->start;
	memory->ranges[memory->count].end = map->end;
	memory->ranges[memory->count].offset = map->offset;
	return ++memory->count == RANGES;
}

/*
 * Open the memory of the process of @mark, which has ->dev and ->ino, or ->process. The descriptor
 * keeps referring to the address space that the process has when it is opened, so that after
 * execve(2) writes fail. The program is checked before and after that moment. Return 0; -ESRCH if
 * the process has ended or runs another program; or another -errno. The caller closes ->fd.
 */
static int memory_open(struct memory *memory, const struct semaphore_mark *mark,
		       bool (*is_program)(const char *name))
{
	int err = mark_check(mark, is_program);
	char path[PROCESS_PATH];

	if (err)
		return err;
	fmt_text(path, sizeof(path), "/proc/%u/mem", mark->pid);
	memory->fd = open(path, O_RDWR | O_CLOEXEC);
	if (memory->fd < 0)
		return -errno;
	err = process_maps(mark->pid, memory_map, memory);
	if (err >= 0)
		err = mark_check(mark, is_program);
	if (!err)
		return 0;
	close(memory->fd);
	return err;
}

/*
 * Return the value of the semaphore at @address and store its offset in the file; -ENXIO if that is
 * not in a variable of the program; -ERANGE if the value is not a count of tracers; or
 * another -errno.
 */
static int memory_get(const struct memory *memory, uint64_t address, uint64_t *offset)
{
	uint16_t value;
	ssize_t n;

	for (unsigned int i = 0; i < memory->count; i++) {
		if (address < memory->ranges[i].start || address >= memory->ranges[i].end)
			continue;
		*offset = memory->ranges[i].offset + (address - memory->ranges[i].start);
		n = pread(memory->fd, &value, sizeof(value), (off_t)address);
		if (n != sizeof(value))
			return n < 0 ? -errno : -ESRCH;
		return value > VALUE_MAX ? -ERANGE : value;
	}
	return -ENXIO;
}

/* Return 0 or -errno. */
static int memory_put(const struct memory *memory, uint64_t address, int value)
{
	uint16_t next = (uint16_t)value;
	ssize_t n = pwrite(memory->fd, &next, sizeof(next), (off_t)address);

	return n == sizeof(next) ? 0 : n < 0 ? -errno : -ESRCH;
}

/* Decrement the semaphore of @mark, unless it is 0 or @memory has something else there. */
static void memory_undo(const struct memory *memory, const struct semaphore_mark *mark)
{
	uint64_t offset;
	int value = memory_get(memory, mark->address, &offset);

	if (value > 0 && offset == mark->offset)
		memory_put(memory, mark->address, value - 1);
}

/*
 * Return whether @process, started at @start, inherited the increment: it was forked from the
 * marked process afterwards.
 */
static bool mark_inherited(const struct semaphore_mark *mark, const struct process *process,
			   uint64_t start)
{
	return mark->pid == process->ppid && start >= mark->written &&
	       mark->dev == process->file.dev && mark->ino == process->file.ino &&
	       process_start(mark->pid) == mark->start;
}

/* Return whether @mark is of the process @pid that was started at @start. */
static bool mark_matches(const struct semaphore_mark *mark, uint32_t pid, uint64_t start)
{
	return mark->pid == pid && mark->start == start;
}

/* Return whether both marks are of the same program of the same process. */
static bool mark_beside(const struct semaphore_mark *a, const struct semaphore_mark *b)
{
	return mark_matches(a, b->pid, b->start) && a->dev == b->dev && a->ino == b->ino &&
	       a->map_dev == b->map_dev && a->map_ino == b->map_ino;
}

/* Argument of undo_each(). */
struct undo {
	const struct semaphores *semaphores;
	uint64_t until;		/* clock ticks: only children started up to then inherited */
};

/* Decrement in a child that inherited the increment. */
static int undo_each(void *arg, const struct process *process)
{
	const struct undo *undo = arg;
	const struct semaphore_mark *marks = undo->semaphores->marks;
	uint64_t start = process_start(process->pid);
	struct memory memory = { .fd = -1 };
	struct semaphore_mark own;

	for (size_t i = 0; i < undo->semaphores->nmarks; i++)
		if (mark_matches(&marks[i], process->pid, start))
			return 0;
	for (size_t i = 0; i < undo->semaphores->nmarks; i++) {
		if (start > undo->until || !mark_inherited(&marks[i], process, start))
			continue;
		own = marks[i];
		own.pid = process->pid;
		own.start = start;
		if (memory.fd < 0) {
			memory.dev = own.map_dev;
			memory.ino = own.map_ino;
			if (memory_open(&memory, &own, undo->semaphores->is_program))
				return 0;
		}
		memory_undo(&memory, &own);
	}
	if (memory.fd >= 0)
		close(memory.fd);
	return 0;
}

/* Undo the marks, in the marked processes first: later children do not inherit them then. */
static void marks_undo(const struct semaphores *s)
{
	struct undo undo = { s, 0 };
	const struct semaphore_mark *marks = s->marks;

	if (!s->nmarks)
		return;
	for (size_t i = 0, next; i < s->nmarks; i = next) {
		struct memory memory = { .dev = marks[i].map_dev, .ino = marks[i].map_ino };
		bool open = !memory_open(&memory, &marks[i], s->is_program);

		for (next = i; next < s->nmarks && mark_beside(&marks[i], &marks[next]); next++)
			if (open)
				memory_undo(&memory, &marks[next]);
		if (open)
			close(memory.fd);
	}
	undo.until = ticks_now();
	process_each(s->is_program, undo_each, &undo);
}

/* Return 0 if no other user can change the directory of notes, -EPERM, or another -errno. */
static int folder_check(void)
{
	struct stat st;

	if (lstat(FOLDER, &st))
		return -errno;
	return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -EPERM;
}

/*
 * Create the note under a temporary name, so that it is not found before it is locked. Return 0 or
 * -errno.
 */
static int note_create(struct semaphores *s, uint64_t ns_ino)
{
	char temporary[sizeof(s->path)];
	int fd, n;

	if (mkdir(FOLDER, 0700) && errno != EEXIST)
		return -errno;
	n = folder_check();
	if (n)
		return n;
	fmt_text(temporary, sizeof(temporary), FOLDER "/.%ld_%" PRIu64, (long)getpid(), ns_ino);
	n = fmt_text(s->path, sizeof(s->path), FOLDER "/" NOTE "%ld.%" PRIu64, (long)getpid(),
		     ns_ino);
	unlink(temporary);
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (n < 0 || (size_t)n >= sizeof(s->path) || flock(fd, LOCK_EX | LOCK_NB) ||
	    rename(temporary, s->path)) {
		n = errno ? -errno : -EIO;
		unlink(temporary);
		close(fd);
		return n;
	}
	s->note = fd;
	s->noted = true;
	return 0;
}

/* Return the inode of our PID namespace, or 0 if it cannot be read. */
static uint64_t own_namespace(void)
{
	uint64_t dev, ino;

	return pid_namespace_read((uint32_t)getpid(), &dev, &ino) ? 0 : ino;
}

int semaphores_open(struct semaphores *s)
{
	int err = -ENOENT;

	s->on = true;
	/* Another process of this program may remove the directory when it ends. */
	for (int i = 0; i < TRIES && err == -ENOENT; i++)
		err = note_create(s, own_namespace());
	return err;
}

/* Write a mark to the note and add it to ->marks. Return 0, or -errno with neither. */
static int mark_add(struct semaphores *s, const struct semaphore_mark *mark)
{
	struct semaphore_mark *marks = realloc(s->marks, (s->nmarks + 1) * sizeof(*marks));
	char line[LINE];
	int n;

	if (!marks)
		return -ENOMEM;
	s->marks = marks;
	n = fmt_text(line, sizeof(line), MARK, mark->pid, mark->start, mark->written,
		     mark->address, mark->offset, mark->dev, mark->ino, mark->map_dev,
		     mark->map_ino);
	if (s->noted && write(s->note, line, (size_t)n) != n)
		return errno ? -errno : -EIO;
	marks[s->nmarks++] = *mark;
	return 0;
}

/* Return whether there is a mark of this semaphore, which is @value now, in the process. */
static bool mark_exists(const struct semaphores *s, const struct process *process, uint64_t start,
			uint64_t address, int value)
{
	for (size_t i = 0; i < s->nmarks; i++) {
		const struct semaphore_mark *mark = &s->marks[i];

		if (mark->address != address)
			continue;
		if (mark_matches(mark, process->pid, start) ||
		    (value && mark_inherited(mark, process, start)))
			return true;
	}
	return false;
}

/* Increment the semaphore of @mark unless that was done. Return 0 or -errno. */
static int semaphore_write(struct semaphores *s, const struct memory *memory,
			   struct semaphore_mark *mark)
{
	int value = memory_get(memory, mark->address, &mark->offset), err;

	if (value < 0)
		return value;
	if (mark_exists(s, memory->process, mark->start, mark->address, value))
		return 0;
	mark->map_dev = memory->dev;
	mark->map_ino = memory->ino;
	mark->written = ticks_now();
	err = mark_add(s, mark);
	return err ? err : memory_put(memory, mark->address, value + 1);
}

void semaphores_write(struct semaphores *s, const struct process *process, uint64_t lowest,
		      const uint64_t *vaddrs, size_t count)
{
	struct semaphore_mark mark = { .pid = process->pid, .dev = process->file.dev,
				       .ino = process->file.ino };
	struct memory memory = { .process = process };
	int err;

	if (s->on && count)
		mark.start = process_start(process->pid);
	if (!mark.start)
		return;
	err = memory_open(&memory, &mark, s->is_program);
	if (!err) {
		for (size_t i = 0; !err && i < count; i++) {
			mark.address = vaddrs[i] - lowest + memory.base;
			err = semaphore_write(s, &memory, &mark);
		}
		close(memory.fd);
	}
	/* Nothing has failed if the process has ended or has executed another program. */
	if (!err || err == -ESRCH || s->error || process_start(process->pid) != mark.start)
		return;
	s->error = err;
	s->error_pid = process->pid;
}

/* Argument of write_each(), the parameters of semaphores_write(). */
struct write_request {
	struct semaphores *semaphores;
	const struct process_file *file;
	uint64_t lowest;
	const uint64_t *vaddrs;
	size_t count;
};

static int write_each(void *arg, const struct process *process)
{
	const struct write_request *w = arg;

	if (process_file_same(&process->file, w->file))
		semaphores_write(w->semaphores, process, w->lowest, w->vaddrs, w->count);
	return 0;
}

void semaphores_write_all(struct semaphores *s, const struct process_file *file, uint64_t lowest,
			  const uint64_t *vaddrs, size_t count)
{
	struct write_request request = { s, file, lowest, vaddrs, count };
	size_t before;
	int passes = 0;

	do {
		before = s->nmarks;
		process_each(s->is_program, write_each, &request);
	} while (s->on && count && s->nmarks > before && ++passes < WRITE_PASSES);
}

void semaphores_close(struct semaphores *s)
{
	marks_undo(s);
	free(s->marks);
	if (s->noted) {
		unlink(s->path);
		close(s->note);
		rmdir(FOLDER);
	}
	*s = (struct semaphores){ .on = false };
}

bool semaphores_parse(const char *line, struct semaphore_mark *mark)
{
	static const int bases[NUMBERS] = { 10, 10, 10, 16, 16, 10, 10, 10, 10 };
	uint64_t numbers[NUMBERS];
	char *end;

	for (int i = 0; i < NUMBERS; i++) {
		if (*line < '0' || (*line > '9' && bases[i] == 10))
			return false;
		numbers[i] = text_number(line, &end, bases[i]);
		if (*end != (i < NUMBERS - 1 ? ' ' : '\n'))
			return false;
		line = end + 1;
	}
	*mark = (struct semaphore_mark){
		.pid = (uint32_t)numbers[0], .start = numbers[1], .written = numbers[2],
		.address = numbers[3], .offset = numbers[4], .dev = numbers[5], .ino = numbers[6],
		.map_dev = numbers[7], .map_ino = numbers[8],
	};
	return mark->pid && mark->start;
}

/* Undo the marks of the note open as @fd. Return false with none undone if memory is short. */
static bool note_repair(int fd, bool (*is_program)(const char *name))
{
	struct semaphores s = { .is_program = is_program };
	char *lines = sys_read_text(fd);
	struct semaphore_mark mark;
	bool complete = lines;

	for (const char *line = lines; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (semaphores_parse(line, &mark) && mark_add(&s, &mark))
			complete = false;
	}
	if (complete)
		marks_undo(&s);
	free(s.marks);
	free(lines);
	return complete;
}

/* Return whether the note is a regular file that only this user can write. */
static bool note_is_ours(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 077) && st.st_nlink == 1;
}

void semaphores_repair(bool (*is_program)(const char *name))
{
	int folder = open(FOLDER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = folder < 0 ? NULL : fdopendir(folder);
	char own[32];
	const struct dirent *entry;

	if (!dir)
		return;
	/* The PIDs in a note are those of its PID namespace. */
	fmt_text(own, sizeof(own), ".%" PRIu64, own_namespace());
	while ((entry = readdir(dir))) {
		const char *ns = strrchr(entry->d_name, '.');
		int fd;

		if (strncmp(entry->d_name, NOTE, strlen(NOTE)) || !ns || strcmp(ns, own))
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		/* A running process holds the lock. */
		if (fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB) && note_is_ours(fd) &&
		    note_repair(fd, is_program))
			unlinkat(dirfd(dir), entry->d_name, 0);
		if (fd >= 0)
			close(fd);
	}
	closedir(dir);
	rmdir(FOLDER);
}
