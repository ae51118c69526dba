// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* host/: containers, mounts, libraries, PID namespaces, mappings of files with hostile names. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/arch.h"
#include "host/container.h"
#include "host/file.h"
#include "host/library.h"
#include "host/open.h"
#include "host/pid_namespace.h"
#include "host/privileges.h"
#include "host/process.h"
#include "tests/unit/check.h"
#include "tests/unit/random.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void containers(void)
{
	static const char *const cases[][2] = {
		{ "0::/system.slice/docker-" HEX64 ".scope\n", "0123456789ab" },
		{ "12:pids:/docker/" HEX64 "\n0::/\n", "0123456789ab" },
		{ "0::/machine.slice/libpod-" HEX64 ".scope/container\n", "0123456789ab" },
		{ "0::/kubepods.slice/kubepods-besteffort.slice/"
		  "kubepods-besteffort-pod12345678_1234.slice/cri-containerd-" HEX64 ".scope\n",
		  "0123456789ab" },
		{ "0::/lxc/web1/system.slice\n", "web1" },
		{ "0::/lxc.payload.web1/init.scope\n", "web1" },
		{ "0::/machine.slice/machine-web1.scope\n", "web1" },
		{ "0::/system.slice/postgresql@15-main.service\n", "" },
		{ "4:memory:/process/fa7142eb41cb4bb735811cb5106b7f70\n0::/\n", "" },
		{ "0::/user.slice/user-0.slice/session-1.scope\n", "" },
		{ "", "" },
		{ "\n\n\n", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char seen[64];

		container_parse(cases[i][0], strlen(cases[i][0]), seen, sizeof(seen));
		CHECK(!strcmp(seen, cases[i][1]), "%s: %s", cases[i][0], seen);
	}
}

/* Random bytes: the result is a terminated string, and a part of the input. For sanitizers. */
static void random_containers(void)
{
	static const char piece[] = "0:/lxc/ /lxc.payload./machine.slice/machine-.scope\n" HEX64;

	for (int i = 0; i < 20000; i++) {
		size_t len = random_below(160), size = 1 + random_below(16);
		char *text = malloc(len + !len), *container = malloc(size);

		for (size_t at = 0; at < len;) {
			size_t from = random_below(sizeof(piece)), n = 1 + random_below(70);

			for (; n && at < len && from < sizeof(piece); n--)
				text[at++] = piece[from++];
		}
		container_parse(text, len, container, size);
		CHECK(strnlen(container, size) < size && !strchr(container, '\n'), "%zu", size);
		CHECK(!*container || memmem(text, len, container, strlen(container)), "%s",
		      container);
		free(text);
		free(container);
	}
}

static void mount_options(void)
{
	static const char text[] =
		"22 1 0:21 / /proc rw,hidepid=9 shared:1 - proc proc rw,hidepid=2\n"
		"23 1 0:22 / /proc/sys rw - proc proc rw,hidepid=3\n"
		"24 1 0:23 / /a\\040b rw - proc proc rw,gid=5,hidepid=invisible,subset=pid\n"
		"25 1 0:24 / /twice rw - proc proc rw,hidepid=2\n"
		"26 1 0:25 / /twice rw - proc proc rw\n"
		"27 1 0:26 / /other rw - proc proc rw,nothidepid=1,hidepids=1,hidepid\n"
		"28 1 0:27 / /last rw - proc proc hidepid=123456789";
	static const char *const cases[][2] = {
		{ "/proc", "2" }, { "/proc/sys", "3" }, { "/a\\040b", "invisible" },
		{ "/twice", "" },
		{ "/other", "" }, { "/last", "1234567" }, { "/none", "" }, { "", "" },
	};
	char value[8 + 8];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		privileges_mount_option(text, sizeof(text) - 1, cases[i][0], "hidepid", value,
					i == 5 ? 8 : sizeof(value));
		CHECK(!strcmp(value, cases[i][1]), "%s: %s", cases[i][0], value);
	}
	/* Every truncation, in memory that ends there. */
	for (size_t len = 0; len < sizeof(text); len++) {
		char *copy = malloc(len + !len);

		memcpy(copy, text, len);
		privileges_mount_option(copy, len, "/last", "hidepid", value, sizeof(value));
		free(copy);
	}
}

struct cache_row {
	uint32_t flags, hwcap;
	const char *key, *path;
};

static void library_names(void)
{
	static const struct {
		const char *file, *name;
		bool want;
	} cases[] = {
		{ "libc.so.6", "c", true }, { "libc.so.6", "libc", true },
		{ "libc.so.6", "libc.so", true },
		{ "libc.so.6", "libc.so.6", true }, { "libc.so.6", "c.so.6", true },
		{ "libc.so.6", "libc.so.5", false }, { "libc++.so.1", "c", false },
		{ "libc.so", "c", true }, { "libcrypt.so.1", "c", false },
		{ "libc.so.6", "libc.s", false }, { "libc.so_old", "c", false },
		{ "libc-2.31.so", "c", false }, { "c.so", "c", false },
		{ "postgres", "postgres", true }, { "libstdc++.so.6", "stdc++", true },
		{ "lib.so", "", false }, { "libfoo.so.1.2.3", "libfoo.so.1", true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK(library_is(cases[i].file, cases[i].name) == cases[i].want, "%s %s",
		      cases[i].file, cases[i].name);
}

/* Build a cache of @rows, @old: after one of the older format. Return its length. */
static size_t cache_make(unsigned char *cache, bool old, const struct cache_row *rows, size_t count)
{
	size_t start = 0, strings = 48 + count * 24;

	memset(cache, 0, 4096);
	if (old) {
		memcpy(cache, "ld.so-1.7.0", 12);
		cache[12] = 3;
		start = 56;	/* a header of 16 bytes, 3 entries of 12, padding */
	}
	cache += start;
	memcpy(cache, "glibc-ld.so.cache1.1", 20);
	cache[20] = (unsigned char)count;
	for (size_t i = 0; i < count; i++) {
		uint32_t words[6] = { rows[i].flags, (uint32_t)strings };

		strings += strlen(strcpy((char *)cache + strings, rows[i].key)) + 1;
		words[2] = (uint32_t)strings;
		words[4] = rows[i].hwcap;
		strings += strlen(strcpy((char *)cache + strings, rows[i].path)) + 1;
		memcpy(cache + 48 + i * 24, words, sizeof(words));
	}
	memcpy(cache + strings, "end", 3);	/* the end of a cache need not be a NUL */
	return start + strings + 3;
}

static void library_cache(void)
{
	static const struct cache_row rows[] = {
		{ 0x0003, 0, "libc.so.6", "/lib32/libc.so.6" },
		{ HOST_CACHE_FLAGS, 2, "libc.so.6", "/lib/fast/libc.so.6" },
		{ HOST_CACHE_FLAGS, 0, "libc.so.6", "/lib/libc.so.6" },
		{ HOST_CACHE_FLAGS, 0, "libz.so.2", "/lib/libz.so.2" },
		{ HOST_CACHE_FLAGS, 0, "libz.so.1", "/lib/libz.so.1" },
		{ 0x0003, 0, "libq.so.1", "/lib32/libq.so.1" },
		{ HOST_CACHE_FLAGS, 0, "libr.so.1", "relative" },
	};
	static const char *const found[][2] = {
		{ "c", "/lib/libc.so.6" }, { "libc.so.6", "/lib/libc.so.6" },
		{ "z", "/lib/libz.so.2" }, { "libz.so.1", "/lib/libz.so.1" },
		{ "q", "/lib32/libq.so.1" }, { "r", NULL }, { "x", NULL }, { "", NULL },
	};
	static unsigned char cache[4096];
	char path[64];
	size_t size;

	for (int old = 0; old < 2; old++) {
		size = cache_make(cache, old, rows, sizeof(rows) / sizeof(rows[0]));
		for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++) {
			int err = library_find_cached(cache, size, found[i][0], path, sizeof(path));

			CHECK(err == (found[i][1] ? 0 : -ENOENT), "%s: %d", found[i][0], err);
			CHECK(err || !strcmp(path, found[i][1]), "%s: %s", found[i][0], path);
		}
		CHECK(library_find_cached(cache, size, "c", path, 14) == -ENAMETOOLONG, "14 bytes");
	}
}

/* Truncated and damaged caches: no overread, which sanitizers detect on the heap. */
static void library_cache_damaged(void)
{
	static const struct cache_row row = { HOST_CACHE_FLAGS, 0, "libc.so.6", "/lib/libc.so.6" };
	unsigned char whole[4096];
	uint32_t state = 1;

	for (int old = 0; old < 2; old++) {
		size_t size = cache_make(whole, old, &row, 1);

		for (size_t cut = 0; cut <= size; cut++) {
			for (int round = 0; round < 20; round++) {
				unsigned char *cache = malloc(cut + !cut);
				char path[64] = "/";

				memcpy(cache, whole, cut);
				for (int i = 0; cut && i < round; i++) {
					state = state * 1103515245 + 12345;
					cache[(state >> 8) % cut] = (unsigned char)(state >> 24);
				}
				library_find_cached(cache, cut, "c", path, sizeof(path));
				CHECK(path[0] == '/', "%zu", cut);
				free(cache);
			}
		}
	}
}

static void status_numbers(void)
{
	static const char status[] = "Name:\tPPid:\t7\nPid:\t12\nPPid:\t4294967295\n"
				     "NSpid:\t12\t3\t1\nSigQ:\t\nLast:\t9";

	CHECK(process_status_number(status, "\nPPid:") == UINT32_MAX);
	CHECK(process_status_number(status, "\nPid:") == 12);
	CHECK(process_status_number(status, "\nNSpid:") == 1);
	CHECK(process_status_number(status, "\nLast:") == 9);
	CHECK(!process_status_number(status, "\nSigQ:") && !process_status_number(status, "\nX:"));
	CHECK(!process_status_number("", "\nPPid:"));
}

static void names(void)
{
	static const struct {
		const char *exe, *name;
		bool loader;
	} cases[] = {
		{ "/usr/sbin/mysqld", "mysqld", false }, { "/a/b (deleted)", "b", false },
		{ "/ (deleted)", " (deleted)", false }, { "postgres", "postgres", false },
		{ "/lib64/ld-linux-x86-64.so.2", "ld-linux-x86-64.so.2", true },
		{ "/lib/ld-2.31.so (deleted)", "ld-2.31.so", true }, { "/a/ld", "ld", false },
		{ "/lib/ld64.so.2", "ld64.so.2", true }, { "/ld-/mysqld", "mysqld", false },
		{ "", "", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct process process = { .pid = 1 };
		char name[32];

		strcpy(process.exe, cases[i].exe);
		process_name(&process, name, sizeof(name));
		CHECK(!strcmp(name, cases[i].name), "%s: %s", cases[i].exe, name);
		CHECK(process_is_loading(&process) == cases[i].loader, "%s", cases[i].exe);
		strcpy(process.mapping, "1000-2000");
		CHECK(!process_is_loading(&process), "%s", cases[i].exe);
	}
}

/* The same inode in two overlay mounts has two device numbers; equal times decide. */
static void identities(void)
{
	struct process_file a = { 1, 2, 3, { 4, 5 }, { 6, 7 }, false }, b = a;

	CHECK(process_file_same(&a, &b));
	b.dev = 9;
	CHECK(process_file_same(&a, &b), "another device, the same times");
	b.ctime.tv_nsec++;
	CHECK(!process_file_same(&a, &b), "another device and ctime");
	b.dev = a.dev;
	CHECK(process_file_same(&a, &b), "another ctime");
	b.mtime.tv_nsec++;
	CHECK(!process_file_same(&a, &b), "another mtime");
	b = a;
	b.ino++;
	CHECK(!process_file_same(&a, &b), "another inode");
	b = a;
	b.size++;
	CHECK(!process_file_same(&a, &b), "another size");
}

struct hostile {
	const char *path;	/* expected */
	bool deleted;
	uint64_t start;
	struct process_file file;
	dev_t dev;		/* as in /proc/PID/maps */
	unsigned int found, others;
};

static int hostile_map(void *arg, const struct process_map *map)
{
	struct hostile *h = arg;
	struct process_file file;
	int fd;

	if (map->start != h->start) {
		h->others += !!strstr(map->path, "evil");
		return 0;
	}
	h->found++;
	CHECK(!strcmp(map->path, h->path), "%s", map->path);
	CHECK(map->end == h->start + 4096 && map->executable, "%s", map->path);
	CHECK(map->deleted == h->deleted, "%s", map->path);
	CHECK(map->ino == h->file.ino, "%s: %llu", map->path, (unsigned long long)map->ino);
	h->dev = map->dev;
	fd = process_map_open((uint32_t)getpid(), map);
	if (!geteuid() || !h->deleted)
		CHECK(fd >= 0 && !process_file_read(fd, &file) &&
		      process_file_same(&file, &h->file), "%s: %d", map->path, fd);
	if (fd >= 0)
		close(fd);
	return 0;
}

/* Map @name of directory @dir, and read it back from /proc/PID/maps. Return its device number. */
static dev_t map_hostile(const char *dir, const char *name, bool deleted)
{
	char path[512];
	struct hostile h = { .path = path, .deleted = deleted };
	void *data;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	data = fd < 0 || ftruncate(fd, 4096) ? MAP_FAILED :
	       mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	CHECK(data != MAP_FAILED, "%s: %s", path, strerror(errno));
	if (data == MAP_FAILED)
		return 0;
	if (deleted)
		unlink(path);
	h.start = (uint64_t)(uintptr_t)data;
	CHECK(!process_file_read(fd, &h.file));
	CHECK(!process_maps((uint32_t)getpid(), hostile_map, &h));
	CHECK(h.found == 1 && !h.others, "%s: %u, %u", path, h.found, h.others);
	munmap(data, 4096);
	close(fd);
	if (!deleted)
		unlink(path);
	return h.dev;
}

static int stop_at_second(void *arg, const struct process_map *map)
{
	(void)map;
	return ++*(int *)arg == 2 ? 42 : 0;
}

/* A process chooses the names of its files, such as lines of /proc/PID/maps. */
static void hostile_maps(void)
{
	static const char *const names[] = {
		"a  b\t\x7f\xff", "x\n00400000-00401000 r-xp 00000000 08:01 42 evil", "\n\n\\n",
		"a (deleted) b",
	};
	char dir[] = "/tmp/host-XXXXXX", longest[256];
	int calls = 0;
	dev_t dev;

	if (!mkdtemp(dir)) {
		SKIP("no temporary directory");
		return;
	}
	memset(longest, 'x', 255);
	longest[255] = '\0';
	for (int deleted = 0; deleted < 2; deleted++) {
		dev = map_hostile(dir, "plain", deleted);
		CHECK(dev, "no device number");
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
			CHECK(map_hostile(dir, names[i], deleted) == dev, "%s", names[i]);
		CHECK(map_hostile(dir, longest, deleted) == dev, "longest name");
	}
	rmdir(dir);
	CHECK(process_maps((uint32_t)getpid(), stop_at_second, &calls) == 42 && calls == 2, "%d",
	      calls);
	CHECK(process_maps(UINT32_MAX, stop_at_second, &calls) == -ENOENT);
}

/* Files that are not regular are refused without opening them: a FIFO would block. */
static void special_files(void)
{
	char dir[] = "/tmp/host-XXXXXX", path[64];
	int fd;

	if (!mkdtemp(dir)) {
		SKIP("no temporary directory");
		return;
	}
	alarm(60);	/* a hang is a failure */
	snprintf(path, sizeof(path), "%s/fifo", dir);
	CHECK(!mkfifo(path, 0600) && open_regular(path) == -EINVAL);
	unlink(path);
	CHECK(open_regular(path) == -ENOENT);
	CHECK(open_regular(dir) == -EISDIR);
	CHECK(open_regular("/dev/null") == -EINVAL);
	fd = open_regular("/proc/self/exe");
	CHECK(fd >= 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC, "%d", fd);
	close(fd);
	alarm(0);
	rmdir(dir);
}

static void file_lists(void)
{
	const uint32_t self = (uint32_t)getpid();
	struct file_list list = { .count = 0 };
	char exe[4096] = "";

	CHECK(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	CHECK(!file_list_process(&list, self) && list.count == 1, "%zu", list.count);
	CHECK(!file_list_named(&list, exe, &self, 1) && list.count == 1, "%zu", list.count);
	CHECK(!file_list_named(&list, "host", &self, 1) && list.count == 1, "%zu", list.count);
	CHECK(file_list_named(&list, "/nonexistent", &self, 1) == -ENOENT && list.count == 1);
	CHECK(!file_list_named(&list, "/proc/self/exe", NULL, 0) && list.count == 1);
	file_list_free(&list);
	CHECK(!list.files && !list.count);
}

struct namespaces {
	uint64_t proc_dev, proc_ino;	/* pid_namespace_own() */
	uint64_t new_ino;		/* with a /proc of its own; 0: cannot be mounted */
	uint64_t self_ino;		/* by stat() */
	int err;
};

/* In a new PID namespace, read the namespace of the parent's /proc, then that of a /proc here. */
static void namespace_child(int fd)
{
	struct namespaces n = { .err = -1 };
	struct stat st;
	uint64_t dev;

	n.err = pid_namespace_own(&n.proc_dev, &n.proc_ino);
	if (!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    !mount("proc", "/proc", "proc", 0, NULL) && !stat("/proc/self/ns/pid", &st) &&
	    !pid_namespace_own(&dev, &n.new_ino))
		n.self_ino = st.st_ino;
	_exit(write(fd, &n, sizeof(n)) != sizeof(n));
}

static void pid_namespaces(void)
{
	uint64_t dev, ino, own_dev = 1, own_ino = 1, init_ino;
	struct namespaces n = { .err = -1 };
	int fds[2], status = -1, init_err = pid_namespace_read(1, &dev, &init_ino);
	pid_t pid;

	CHECK(!pid_namespace_read((uint32_t)getpid(), &dev, &ino) && ino);
	CHECK(!pid_namespace_own(&own_dev, &own_ino) && !own_dev == !own_ino);
	CHECK(pid_namespace_read(UINT32_MAX, &dev, &dev) == -ENOENT);
	CHECK(!pid_namespace_is_nested((uint32_t)getpid(), ino));
	CHECK(pid_namespace_is_nested((uint32_t)getpid(), ino + 1));
	CHECK(!pid_namespace_is_nested((uint32_t)getpid(), 0), "0 is the initial one");
	CHECK(!pid_namespace_is_nested(UINT32_MAX, ino), "no such process");
	if (pipe(fds))
		return;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS))
			_exit(77);
		pid = fork();
		if (!pid)
			namespace_child(fds[1]);
		waitpid(pid, &status, 0);
		_exit(!!status);
	}
	waitpid(pid, &status, 0);
	close(fds[1]);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		SKIP("PID namespaces cannot be created");
	} else {
		CHECK(!status && read(fds[0], &n, sizeof(n)) == sizeof(n), "%d", status);
		/* By the parent's /proc it is that of process 1, which may be inaccessible. */
		CHECK(n.err ? n.err == init_err : n.proc_ino == own_ino, "%d %llu", n.err,
		      (unsigned long long)n.proc_ino);
		CHECK(n.new_ino == n.self_ino && n.new_ino != ino, "%llu",
		      (unsigned long long)n.new_ino);
	}
	close(fds[0]);
}

int main(void)
{
	RUN(containers);
	RUN(random_containers);
	RUN(mount_options);
	RUN(library_names);
	RUN(library_cache);
	RUN(library_cache_damaged);
	RUN(status_numbers);
	RUN(names);
	RUN(identities);
	RUN(hostile_maps);
	RUN(special_files);
	RUN(file_lists);
	RUN(pid_namespaces);
	return check_done();
}
