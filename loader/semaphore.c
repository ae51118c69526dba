// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/semaphore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/pid_namespace.h"
#include "host/process_memory.h"
#include "loader/sys.h"

#define FOLDER		"/run/dbslower"
#define NOTE		"semaphores."
#define MARK		"%" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIx64 " %" PRIu64 " %" PRIu64 "\n"
#define LINE		128		/* room for one */
#define START_FIELD	22	/* of /proc/PID/stat */
#define TRIES		3

static uint64_t ticks_now(void)
{
	return clock_ns(CLOCK_BOOTTIME) / (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Return the start of the process in clock ticks since boot, or 0 if it has ended. */
static uint64_t process_start(uint32_t pid)
{
	char path[32], text[1024];
	const char *at;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
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
	return at ? strtoull(at, NULL, 10) : 0;
}

/* Return the value of a semaphore with the process's memory open as *@fd, or -errno. */
static int memory_get(uint32_t pid, uint64_t address, int *fd)
{
	uint16_t value;
	char path[32];
	ssize_t n;
	int err;

	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	*fd = open(path, O_RDWR | O_CLOEXEC);
	if (*fd < 0)
		return -errno;
	n = pread(*fd, &value, sizeof(value), (off_t)address);
	if (n == sizeof(value))
		return value;
	err = n < 0 ? -errno : -ESRCH;
	close(*fd);
	return err;
}

/* Add @delta, 1 or -1, to a semaphore; 0 is not decremented. Return 0 or -errno. */
static int memory_add(uint32_t pid, uint64_t address, int delta)
{
	int fd, value = memory_get(pid, address, &fd);
	uint16_t next = (uint16_t)(value + delta);
	int err = 0;

	if (value < 0)
		return value;
	if ((delta > 0 || value) &&
	    pwrite(fd, &next, sizeof(next), (off_t)address) != sizeof(next))
		err = errno ? -errno : -EIO;
	close(fd);
	return err;
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

/* Argument of undo_each(). */
struct undo {
	const struct semaphore_mark *marks;
	size_t nmarks;
	uint64_t until;		/* clock ticks: only children started up to then inherited */
};

/* Decrement in a child that inherited the increment. */
static int undo_each(void *arg, const struct process *process)
{
	const struct undo *undo = arg;
	uint64_t start = process_start(process->pid);

	for (size_t i = 0; i < undo->nmarks; i++)
		if (mark_matches(&undo->marks[i], process->pid, start))
			return 0;
	for (size_t i = 0; i < undo->nmarks; i++)
		if (start <= undo->until && mark_inherited(&undo->marks[i], process, start))
			memory_add(process->pid, undo->marks[i].address, -1);
	return 0;
}

/* Undo the marks, in the marked processes first: later children do not inherit them then. */
static void marks_undo(const struct semaphores *s)
{
	struct undo undo = { s->marks, s->nmarks, 0 };
	const struct semaphore_mark *marks = s->marks;

	if (!s->nmarks)
		return;
	for (size_t i = 0; i < s->nmarks; i++)
		if (mark_matches(&marks[i], marks[i].pid, process_start(marks[i].pid)))
			memory_add(marks[i].pid, marks[i].address, -1);
	undo.until = ticks_now();
	process_each(s->is_program, undo_each, &undo);
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
	snprintf(temporary, sizeof(temporary), FOLDER "/.%ld_%" PRIu64, (long)getpid(), ns_ino);
	n = snprintf(s->path, sizeof(s->path), FOLDER "/" NOTE "%ld.%" PRIu64, (long)getpid(),
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
	n = snprintf(line, sizeof(line), MARK, mark->pid, mark->start, mark->written,
		     mark->address, mark->dev, mark->ino);
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

/* Increment one semaphore unless that was done. Return 0 or -errno. */
static int semaphore_write(struct semaphores *s, const struct process *process, uint64_t start,
			   uint64_t address)
{
	struct semaphore_mark mark = {
		.pid = process->pid, .start = start, .address = address,
		.dev = process->file.dev, .ino = process->file.ino, .written = ticks_now(),
	};
	int fd, err, value = memory_get(process->pid, address, &fd);

	if (value < 0)
		return value;
	close(fd);
	if (mark_exists(s, process, start, address, value))
		return 0;
	err = mark_add(s, &mark);
	return err ? err : memory_add(process->pid, address, 1);
}

void semaphores_write(struct semaphores *s, const struct process *process, uint64_t lowest,
		      const uint64_t *vaddrs, size_t count)
{
	uint64_t start = process_start(process->pid);
	struct process_memory memory = { .fd = -1 };
	int err;

	if (!s->on || !count || !start)
		return;
	err = process_memory_open_program(process, lowest, &memory);
	for (size_t i = 0; !err && i < count; i++)
		err = semaphore_write(s, process, start, vaddrs[i] + memory.slide);
	if (memory.fd >= 0)
		process_memory_close(&memory);
	/* A failure is ignored if the process has ended. */
	if (!err || s->error || process_start(process->pid) != start)
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

	do {
		before = s->nmarks;
		process_each(s->is_program, write_each, &request);
	} while (s->on && count && s->nmarks > before);
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
	static const int bases[] = { 10, 10, 10, 16, 10, 10 };
	uint64_t numbers[6];
	char *end;

	for (int i = 0; i < 6; i++) {
		if (*line < '0' || (*line > '9' && bases[i] == 10))
			return false;
		numbers[i] = strtoull(line, &end, bases[i]);
		if (*end != (i < 5 ? ' ' : '\n'))
			return false;
		line = end + 1;
	}
	*mark = (struct semaphore_mark){
		.pid = (uint32_t)numbers[0], .start = numbers[1], .written = numbers[2],
		.address = numbers[3], .dev = numbers[4], .ino = numbers[5],
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
	snprintf(own, sizeof(own), ".%" PRIu64, own_namespace());
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
