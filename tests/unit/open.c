// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* host/open: files that other users have placed. openat2(2) is the judge of open_beneath(). */
#include "host/open.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/check.h"

#define OTHER		1001
#define OPENAT2		437	/* all architectures */
#define NO_XDEV		0x01
#define NO_MAGICLINKS	0x02
#define NO_SYMLINKS	0x04
#define BENEATH		0x08

static char dir[] = "/tmp/open-XXXXXX";

static void at(char path[128], const char *name)
{
	snprintf(path, 128, "%s/%s", dir, name);
}

/* Create a file with its name as its content. */
static void file_make(const char *name, mode_t mode, uid_t owner)
{
	char path[128];
	int fd;

	at(path, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, name, strlen(name)) > 0 && !fchmod(fd, mode) &&
	      (geteuid() || !fchown(fd, owner, owner)), "%s", path);
	close(fd);
}

static void dir_make(const char *name, mode_t mode, uid_t owner)
{
	char path[128];

	at(path, name);
	CHECK(!mkdir(path, 0700) && !chmod(path, mode) && (geteuid() || !chown(path, owner, owner)),
	      "%s", path);
}

static void link_make(const char *name, const char *target, uid_t owner)
{
	char path[128];

	at(path, name);
	CHECK(!symlink(target, path) && (geteuid() || !lchown(path, owner, owner)), "%s", path);
}

/* Return a descriptor, or -1 if the kernel refuses; -2 if it has no openat2(2). */
static int judge(const char *path, bool mounts)
{
	uint64_t how[3] = { O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0,
			    BENEATH | NO_SYMLINKS | NO_MAGICLINKS | (mounts ? 0 : NO_XDEV) };
	int base = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = (int)syscall(OPENAT2, base, path, how, sizeof(how));
	struct stat st;

	if (fd < 0 && errno == ENOSYS)
		fd = -2;
	close(base);
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int beneath(const char *path, bool mounts)
{
	int base = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = open_beneath(base, path, mounts);

	close(base);
	return fd;
}

static bool same(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static void compare(const char *path, bool mounts)
{
	int expected = judge(path, mounts), fd = beneath( path, mounts);

	if (expected != -2)
		CHECK(expected < 0 ? fd < 0 : fd >= 0 && same(expected, fd), "%s: %d, not %d",
		      path, fd, expected);
	if (fd >= 0)
		CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC, "%s", path);
	close(expected);
	close(fd);
}

static void tree_make(void)
{
	char path[128];

	dir_make("base", 0755, 0);
	dir_make("base/5", 0755, 0);
	dir_make("mount", 0755, 0);
	file_make("base/5/file", 0600, 0);
	file_make("base/5/none", 0, 0);
	link_make("base/5/link", "file", 0);
	link_make("base/5/outside", "/proc/kmsg", 0);
	link_make("base/5/self", "/proc/self/fd/0", 0);
	link_make("link", "base", 0);
	at(path, "base/5/fifo");
	CHECK(!mkfifo(path, 0666));
}

/* Every kind of entry, by every kind of path. */
static void beneath_is_as_openat2(void)
{
	static const char *const paths[] = {
		"base/5/file", "/base//5/./file", "base/5", "base", "base/5/none", "base/5/link",
		"base/5/outside", "base/5/self", "base/5/fifo", "link/5/file", "base/5/fifo/x",
		"base/5/file/x", "missing", "base/missing/x", "../../../etc/passwd",
		"..", ".", "mount/5/file", "mount/5/link", "mount", "file",
	};

	alarm(60);	/* a hang is a failure */
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (*paths[i] == '/')	/* openat2() has no absolute paths below a directory */
			CHECK(close(beneath( paths[i], false)) == 0, "%s", paths[i]);
		else
			compare(paths[i], false);
		if (*paths[i] != '/')
			compare(paths[i], true);
	}
	/* openat2() permits ".." that stays below the directory. */
	CHECK(beneath( "base/../base/5/file", true) == -EXDEV);
	alarm(0);
}

/* A bind mount has the device of the directory itself. */
static void mounts_are_refused(void)
{
	char from[128], to[128];
	int status;
	pid_t pid;

	at(from, "base");
	at(to, "mount");
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount(from, to, NULL, MS_BIND, NULL))
			_exit(77);
		compare("mount/5/file", false);
		compare("mount/5/file", true);
		_exit(beneath( "mount/5/file", false) != -EXDEV ||
		      beneath( "mount/5/file", true) < 0);
	}
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("no mount namespaces");
	else
		CHECK(!status, "%x", (unsigned int)status);
}

/* A lease of another process delays open(2) for /proc/sys/fs/lease-break-time, 45 s. */
static void leases_are_not_awaited(void)
{
	char path[128];
	int fds[2], fd;
	pid_t pid;
	char byte;

	file_make("leased", 0644, 0);
	at(path, "leased");
	if (pipe(fds))
		return;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		signal(SIGIO, SIG_IGN);
		fd = open(path, O_RDWR | O_CLOEXEC);
		byte = fd < 0 || fcntl(fd, F_SETLEASE, F_WRLCK) ? 'n' : 'y';
		if (write(fds[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	if (read(fds[0], &byte, 1) == 1 && byte == 'y') {
		alarm(20);
		CHECK(beneath( "leased", false) == -EAGAIN);
		CHECK(open_regular(path) == -EAGAIN);
		CHECK(open_output(path, false) == -EAGAIN);
		alarm(0);
	} else {
		SKIP("no leases");
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fds[0]);
	close(fds[1]);
}

static void special_files_are_refused(void)
{
	char path[128];

	alarm(60);
	at(path, "base/5/fifo");
	CHECK(open_regular(path) == -EINVAL);
	CHECK(open_output(path, false) == -ENXIO && open_output(path, true) == -ENXIO);
	CHECK(open_regular("/dev/null") == -EINVAL && open_regular(dir) == -EISDIR);
	CHECK(open_output(dir, false) == -EISDIR && open_output("", false) == -ENOENT);
	CHECK(open_output("/tmp/", false) == -EISDIR);
	alarm(0);
}

/* Write to the file as the tool does. Return 0 or -errno. */
static int output(const char *name, bool truncate)
{
	char path[128];
	int fd, err;

	at(path, name);
	fd = open_output(*name == '/' ? name : path, truncate);
	if (fd < 0)
		return fd;
	err = write(fd, "+", 1) == 1 ? 0 : -errno;
	close(fd);
	return err;
}

/* Return whether the file's content is @text. */
static bool holds(const char *name, const char *text)
{
	char path[128], content[64];
	ssize_t n;
	int fd;

	at(path, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, content, sizeof(content));
	close(fd);
	return n == (ssize_t)strlen(text) && !memcmp(content, text, (size_t)n);
}

static void output_is_written(void)
{
	struct stat st;
	char path[128];

	dir_make("own", 0755, 0);
	CHECK(!output("own/new", false) && !output("own/new", false) && holds("own/new", "++"));
	CHECK(!output("own/new", true) && holds("own/new", "+"));
	at(path, "own/new");
	CHECK(!stat(path, &st) && (st.st_mode & 07777) == 0600, "%o", st.st_mode);
	link_make("own/link", "new", 0);
	link_make("own/absolute", path, 0);
	link_make("own/dangling", "later", 0);
	link_make("own/up", "../own", 0);
	link_make("own/loop", "loop", 0);
	CHECK(!output("own/link", false) && !output("own/absolute", false) &&
	      !output("own/up/up/link", false) && holds("own/new", "++++"));
	CHECK(!output("own/dangling", false) && holds("own/later", "+"));
	CHECK(output("own/loop", false) == -ELOOP);
	CHECK(output("own/missing/x", false) == -ENOENT && output("own/new/x", false) == -ENOTDIR);
}

static void devices_are_written(void)
{
	char path[128];
	int fds[2], fd;

	CHECK(!output("/dev/null", false) && !output("/dev/null", true));
	if (pipe(fds))
		return;
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), i == 0 ? "/dev/fd/%d" : i == 1 ? "/proc/self/fd/%d" :
			 "/proc/thread-self/fd/%d", fds[1]);
		fd = open_output(path, i == 1);
		CHECK(fd >= 0 && write(fd, "1", 1) == 1 && read(fds[0], path, 1) == 1, "%d", i);
		close(fd);
	}
	/* A FIFO with a reader. */
	at(path, "base/5/fifo");
	close(fds[0]);
	fds[0] = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	CHECK(!output("base/5/fifo", false) && read(fds[0], path, 8) == 1);
	close(fds[0]);
	close(fds[1]);
}

/* Directories that another user can change: world-writable, writable by a group, and his own. */
static void files_of_others_are_refused(void)
{
	static const struct {
		mode_t mode;
		uid_t owner;
		int file;		/* expected for a file of the user */
	} dirs[] = {
		{ 01777, 0, -EEXIST }, { 0777, 0, -EEXIST }, { 0775, 0, -EEXIST },
		{ 0777, OTHER, -EEXIST }, { 01777, OTHER, -EEXIST }, { 0755, OTHER, 0 },
	};
	char base[16], name[64], path[128], second[128];

	if (geteuid()) {
		SKIP("root only");
		return;
	}
	file_make("target", 0600, 0);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
#define IN(file) (snprintf(name, sizeof(name), "%s/%s", base, file), name)
		snprintf(base, sizeof(base), "dir%zu", i);
		dir_make(base, dirs[i].mode, dirs[i].owner);
		link_make(IN("link"), "../target", OTHER);
		link_make(IN("created"), "../created", OTHER);
		link_make(IN("directory"), "..", OTHER);
		link_make(IN("mine"), "../target", 0);
		file_make(IN("file"), 0666, OTHER);
		file_make(IN("root"), 0600, 0);
		at(path, "target");
		at(second, IN("second"));
		CHECK(!link(path, second));
		at(path, IN("fifo"));
		CHECK(!mkfifo(path, 0666) && !chown(path, OTHER, OTHER));
		CHECK(output(IN("link"), true) == -ELOOP, "%zu", i);
		CHECK(output(IN("created"), false) == -ELOOP, "%zu", i);
		CHECK(output(IN("directory/target"), false) == -ELOOP, "%zu", i);
		CHECK(output(IN("second"), false) == -EEXIST, "%zu", i);
		CHECK(holds("target", "target"), "%zu", i);
		CHECK(output(IN("file"), false) == dirs[i].file, "%zu", i);
		CHECK(output(IN("fifo"), false) == (dirs[i].file ? dirs[i].file : -ENXIO), "%zu",
		      i);
		CHECK(!output(IN("root"), false) && !output(IN("new"), false), "%zu", i);
		unlink(second);
		CHECK(!output(IN("mine"), true) && holds("target", "+"), "%zu", i);
		at(path, "target");
		unlink(path);
		file_make("target", 0600, 0);
	}
	at(path, "created");
	CHECK(access(path, F_OK), "a link was followed");
}

int main(void)
{
	char command[64];

	umask(022);
	if (!mkdtemp(dir) || chmod(dir, 0755))
		return 1;
	tree_make();
	RUN(beneath_is_as_openat2);
	RUN(mounts_are_refused);
	RUN(leases_are_not_awaited);
	RUN(special_files_are_refused);
	RUN(output_is_written);
	RUN(devices_are_written);
	RUN(files_of_others_are_refused);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) ? 1 : check_done();
}
