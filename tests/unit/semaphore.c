// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of loader/semaphore: notes of killed processes are repaired, others are left alone. */
#include "loader/semaphore.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
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

/* The mapping with the semaphore, which forked processes inherit. */
static void mapping_find(uint64_t *offset, uint64_t *dev, uint64_t *ino)
{
	uint64_t at = (uintptr_t)&semaphore, start, end, from;
	FILE *file = fopen("/proc/self/maps", "re");
	unsigned int high, low;
	char line[512];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %x:%x %" SCNu64, &start,
			   &end, &from, &high, &low, ino) != 6 || at < start || at >= end)
			continue;
		*offset = from + (at - start);
		*dev = makedev(high, low);
		break;
	}
	if (file)
		fclose(file);
}

/* A line whose numbers are off by those of @off: address, offset, device, inode, mapping's. */
static void line_of_other(char line[256], pid_t pid, unsigned long long start, const int off[6])
{
	uint64_t offset = 0, dev = 0, ino = 0;
	struct stat st;

	CHECK(!stat("/proc/self/exe", &st));
	mapping_find(&offset, &dev, &ino);
	snprintf(line, 256, "%d %llu %llu %" PRIxPTR " %" PRIx64 " %ju %ju %" PRIu64 " %" PRIu64
		 "\n", (int)pid, start, start, (uintptr_t)&semaphore + (uintptr_t)off[0],
		 offset + (uint64_t)off[1], (uintmax_t)st.st_dev + (uintmax_t)off[2],
		 (uintmax_t)st.st_ino + (uintmax_t)off[3], dev + (uint64_t)off[4],
		 ino + (uint64_t)off[5]);
}

static void line_of(char line[256], pid_t pid, unsigned long long start)
{
	line_of_other(line, pid, start, (const int[6]){ 0 });
}

/* Repair a note of @text around a mark of a living process. Return what its semaphore is then. */
static int repaired(const char *format, mode_t mode, bool locked, bool *removed)
{
	char path[96], line[256], text[512];
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
	CHECK(repaired("1 2 3 4 5 6 7 8 9 10\n%.9s", 0600, false, &removed) == 3 && removed);
}

/* Another process with the PID, known by its start, has nothing to be undone. */
static void stale_marks_are_dropped(void)
{
	const char *why = forbidden();
	char path[96], line[256];
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

/* Nothing is written if the process runs another program or maps something else there. */
static void other_memory_is_left(void)
{
	const char *why = forbidden();
	char path[96], line[256];
	pid_t pid;

	if (why) {
		SKIP(why);
		return;
	}
	note_path(path, "other");
	for (int i = 0; i < 6; i++) {
		int off[6] = { 0 };

		off[i] = 2;
		pid = process_begin();
		line_of_other(line, pid, start_of(pid), off);
		close(note_write(path, 0600, line));
		semaphores_repair(no_program);
		CHECK(process_end(pid) == 3, "%d", i);
	}
	/* Not a count of tracers. */
	semaphore = 2000;
	pid = process_begin();
	line_of(line, pid, start_of(pid));
	close(note_write(path, 0600, line));
	semaphores_repair(no_program);
	CHECK(process_end(pid) == (2000 & 0xff));
	semaphore = 3;
}

/* The descriptor of a process's memory refers to nothing else after execve(2). */
static void memory_is_of_one_program(void)
{
	char path[32], byte = 0;
	int fds[2], fd;
	pid_t pid;

	if (pipe(fds))
		return;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (read(fds[0], &byte, 1) == 1)
			execl("/bin/sleep", "sleep", "150", NULL);
		_exit(1);
	}
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0 && pread(fd, &byte, 1, (off_t)(uintptr_t)&semaphore) == 1);
	CHECK(write(fds[1], "", 1) == 1);
	alarm(120);	/* a hang is a failure */
	while (pread(fd, &byte, 1, (off_t)(uintptr_t)&semaphore) == 1)
		usleep(10000);
	alarm(0);
	CHECK(pread(fd, &byte, 1, (off_t)(uintptr_t)&semaphore) <= 0);
	CHECK(pwrite(fd, &byte, 1, (off_t)(uintptr_t)&semaphore) <= 0);
	CHECK(!kill(pid, SIGKILL));
	waitpid(pid, NULL, 0);
	close(fd);
	close(fds[0]);
	close(fds[1]);
}

#define STARTS_MAX	40

extern const char __executable_start[];
static pid_t starts[STARTS_MAX];
static int nstarts;

/* A mark is written: start a process that has none, with a PID that this pass is beyond. */
static void on_mark(int sig)
{
	pid_t pid = nstarts ? starts[nstarts - 1] : getpid();
	struct clone_args args = { .exit_signal = SIGCHLD, .set_tid = (uintptr_t)&pid,
				   .set_tid_size = 1 };
	uint16_t own = semaphore;
	long child = -1;

	(void)sig;
	semaphore = 0;
	while (child < 0 && nstarts < STARTS_MAX && --pid > 1)
		child = syscall(SYS_clone3, &args, sizeof(args));
	while (!child)
		pause();
	semaphore = own;
	if (child > 0)
		starts[nstarts++] = (pid_t)child;
}

/* A user who keeps on executing the file does not keep the writing from its end. */
static void new_processes_have_an_end(void)
{
	struct semaphores s = { .is_program = no_program, .on = true, .noted = true };
	uint64_t vaddr = (uintptr_t)&semaphore, lowest = (uintptr_t)__executable_start;
	struct process self;
	int fds[2];

	if (geteuid() || (syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS)) {
		SKIP(geteuid() ? "root only" : "no clone3()");
		return;
	}
	semaphore = 0;
	CHECK(!pipe(fds) && !fcntl(fds[0], F_SETOWN, getpid()));
	signal(SIGIO, on_mark);
	CHECK(!fcntl(fds[0], F_SETFL, O_ASYNC));
	s.note = fds[1];
	CHECK(!process_read((uint32_t)getpid(), no_program, &self));
	semaphores_write_all(&s, &self.file, lowest, &vaddr, 1);
	CHECK(s.nmarks > 3 && nstarts < STARTS_MAX, "%zu marks, %d", s.nmarks, nstarts);
	CHECK(semaphore == 1, "%u", semaphore);
	semaphores_close(&s);
	CHECK(semaphore == 0, "%u", semaphore);
	close(fds[0]);
	for (int i = 0; i < nstarts; i++)
		CHECK(!kill(starts[i], SIGKILL) && waitpid(starts[i], NULL, 0) == starts[i]);
	semaphore = 3;
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

/* Open semaphores in a /run of our own, in which the directory is @uid's and of @mode. */
static int opened(uid_t uid, mode_t mode)
{
	struct semaphores s = { .on = false };
	int status = 0;
	pid_t child = fork();

	if (!child) {
		int err;

		if (unshare(CLONE_NEWNS) || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("run", "/run", "tmpfs", 0, NULL) || mkdir(FOLDER, mode) ||
		    chown(FOLDER, uid, uid))
			_exit(255);
		err = semaphores_open(&s);
		semaphores_close(&s);
		_exit(-err);
	}
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

/* Notes that others can rename could be removed, or repaired twice. */
static void directory_of_others_is_refused(void)
{
	const char *why = forbidden();

	if (why || opened(0, 0700) == 255) {
		SKIP(why ? why : "no mount namespaces");
		return;
	}
	CHECK(!opened(0, 0700) && !opened(0, 0755));
	CHECK(opened(1001, 0700) == EPERM && opened(0, 0777) == EPERM);
}

int main(void)
{
	umask(0);
	RUN(notes_are_repaired);
	RUN(malformed_lines_are_skipped);
	RUN(stale_marks_are_dropped);
	RUN(other_memory_is_left);
	RUN(memory_is_of_one_program);
	RUN(new_processes_have_an_end);
	RUN(foreign_notes_are_left);
	RUN(directory_of_others_is_refused);
	return check_done();
}
