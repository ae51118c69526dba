// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of loader/semaphore: notes of killed processes are repaired, others are left alone. */
#include "loader/semaphore.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/check.h"

#define FOLDER	"/run/dbslower"

static uint16_t semaphore = 3;		/* two, and one left by a killed process */

static bool no_program(const char *name)
{
	(void)name;
	return false;
}

static const char *forbidden(void)
{
	if (geteuid())
		return "root only";
	if (mkdir(FOLDER, 0700) && access(FOLDER, W_OK))
		return "no " FOLDER;
	return NULL;
}

static void note_path(char path[96], const char *name)
{
	struct stat st;

	CHECK(!stat("/proc/self/ns/pid", &st));
	snprintf(path, 96, FOLDER "/semaphores.test%ld_%s.%ju", (long)getpid(), name,
		 (uintmax_t)st.st_ino);
}

/* Write a note with @text. Return its descriptor. */
static int note_write(const char *path, mode_t mode, const char *text)
{
	int fd;

	/* A repair removes the directory if it is empty. */
	mkdir(FOLDER, 0700);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s", path);
	return fd;
}

/* The start of a process, field 22 of its stat; the name of this program has no blanks. */
static unsigned long long start_of(pid_t pid)
{
	unsigned long long start = 0;
	char path[32];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	for (int field = 1; field < 22; field++)
		if (fscanf(file, "%*s") < 0)
			break;
	if (fscanf(file, "%llu", &start) != 1)
		start = 0;
	fclose(file);
	return start;
}

/* A process that only lives, and reports its semaphore on SIGTERM as its exit status. */
static volatile sig_atomic_t ended;

static void on_end(int sig)
{
	(void)sig;
	ended = 1;
}

static pid_t process_begin(void)
{
	sigset_t term, old;
	pid_t pid;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &old);
	fflush(stdout);
	pid = fork();
	if (pid)
		return pid;
	signal(SIGTERM, on_end);
	sigdelset(&old, SIGTERM);
	while (!ended)
		sigsuspend(&old);
	_exit(*(volatile uint16_t *)&semaphore);
}

static int process_end(pid_t pid)
{
	int status = 0;

	kill(pid, SIGTERM);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void line_of(char line[160], pid_t pid, unsigned long long start)
{
	struct stat st;

	CHECK(!stat("/proc/self/exe", &st));
	snprintf(line, 160, "%d %llu %llu %" PRIxPTR " %ju %ju\n", (int)pid, start, start,
		 (uintptr_t)&semaphore, (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
}

/* Repair a note of @text around a mark of a living process. Return what its semaphore is then. */
static int repaired(const char *format, mode_t mode, bool locked, bool *removed)
{
	char path[96], line[160], text[512];
	pid_t pid = process_begin();
	int fd, left;

	line_of(line, pid, start_of(pid));
	snprintf(text, sizeof(text), format, line);
	note_path(path, "note");
	fd = note_write(path, mode, text);
	if (locked)
		CHECK(!flock(fd, LOCK_EX | LOCK_NB));
	else
		close(fd);
	semaphores_repair(no_program);
	*removed = access(path, F_OK);
	unlink(path);
	if (locked)
		close(fd);
	left = process_end(pid);
	return left;
}

static void notes_are_repaired(void)
{
	const char *why = forbidden();
	bool removed = false;

	if (why) {
		SKIP(why);
		return;
	}
	CHECK(repaired("%s", 0600, false, &removed) == 2 && removed, "%d", removed);
}

static void malformed_lines_are_skipped(void)
{
	const char *why = forbidden();
	bool removed = false;

	if (why) {
		SKIP(why);
		return;
	}
	CHECK(repaired("\n\nx 1 2 3\n1 2 3\n%s99999999999 1\n%%", 0600, false, &removed) == 2 &&
	      removed);
	/* A line that a kill has cut is none. */
	CHECK(repaired("1 2 3 4 5 6 7\n%.9s", 0600, false, &removed) == 3 && removed);
}

/* Another process with the PID, known by its start, has nothing to be undone. */
static void stale_marks_are_dropped(void)
{
	const char *why = forbidden();
	char path[96], line[160];
	pid_t pid;

	if (why) {
		SKIP(why);
		return;
	}
	pid = process_begin();
	line_of(line, pid, start_of(pid) + 1);
	note_path(path, "stale");
	close(note_write(path, 0600, line));
	semaphores_repair(no_program);
	CHECK(access(path, F_OK), "it is still there");
	unlink(path);
	CHECK(process_end(pid) == 3);
}

static void foreign_notes_are_left(void)
{
	const char *why = forbidden();
	bool removed = true;

	if (why) {
		SKIP(why);
		return;
	}
	/* Its owner lives. */
	CHECK(repaired("%s", 0600, true, &removed) == 3 && !removed);
	/* Others could have written it. */
	CHECK(repaired("%s", 0622, false, &removed) == 3 && !removed);
}

int main(void)
{
	umask(0);
	RUN(notes_are_repaired);
	RUN(malformed_lines_are_skipped);
	RUN(stale_marks_are_dropped);
	RUN(foreign_notes_are_left);
	return check_done();
}
