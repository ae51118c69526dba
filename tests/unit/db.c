// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "db/engines.h"
#include "db/user_engine.h"
#include "host/container.h"
#include "host/privileges.h"
#include "host/library.h"
#include "db/postgres/probes.h"
#include "host/process.h"
#include "loader/semaphore.h"
#include "tests/unit/check.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void titles(void)
{
	static const struct {
		const char *title, *user, *database, *client;
	} cases[] = {
		{ "postgres: alice shop [local] idle", "alice", "shop", "[local]" },
		{ "postgres: 15/main: alice shop 10.0.0.7(4711) SELECT", "alice", "shop",
		  "10.0.0.7(4711)" },
		{ "postgres: alice shop ::1(4711) idle in transaction", "alice", "shop",
		  "::1(4711)" },
		{ "postgres: a name shop [local] idle", "", "", "" },
		{ "postgres: walsender alice [local] streaming 0/1", "", "", "" },
		{ "postgres: checkpointer ", "", "", "" },
		{ "postgres: autovacuum worker shop", "", "", "" },
		{ "postgres: ", "", "", "" },
		{ "postgres: x: ", "", "", "" },
		{ "/usr/lib/postgresql/15/bin/postgres -D data", "", "", "" },
		{ "", "", "", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct identity who;

		postgres_identify(cases[i].title, strlen(cases[i].title), &who);
		CHECK(!strcmp(who.user, cases[i].user) &&
		      !strcmp(who.database, cases[i].database) &&
		      !strcmp(who.client, cases[i].client), "%s: %s, %s, %s", cases[i].title,
		      who.user, who.database, who.client);
	}
}

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
		{ "/proc", "2" }, { "/proc/sys", "3" }, { "/a\\040b", "invisible" }, { "/twice",
										       "" },
		{ "/other", "" }, { "/last", "1234567" }, { "/none", "" }, { "", "" },
	};
	char value[8 + 8];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		privileges_mount_option(text, sizeof(text) - 1, cases[i][0], "hidepid", value,
					i == 5 ? 8 : sizeof(value));
		CHECK(!strcmp(value, cases[i][1]), "%s: %s", cases[i][0], value);
	}
	/* Cut anywhere, in memory that ends there. */
	for (size_t len = 0; len < sizeof(text); len++) {
		char *copy = malloc(len + !len);

		memcpy(copy, text, len);
		privileges_mount_option(copy, len, "/last", "hidepid", value, sizeof(value));
		free(copy);
	}
}

static void engine_words(void)
{
	static const char *const cases[][2] = {
		{ "postgres", "postgresql" }, { "postgresql", "postgresql" },
		{ "pg", "postgresql" },
		{ "mysql", "mysql" }, { "mariadb", "mysql" }, { "mysqld", NULL }, { "", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct engine *engine = engines_by_word(cases[i][0]);

		CHECK(cases[i][1] ? engine && !strcmp(engine->name, cases[i][1]) : !engine, "%s",
		      cases[i][0]);
	}
	for (size_t i = 0; engine_table[i]; i++)
		CHECK(engines_by_name(engine_table[i]->name) == engine_table[i], "%s",
		      engine_table[i]->name);
	CHECK(!engines_by_name("mysql2") && !engines_by_file("postgre"));
	CHECK(!strcmp(engines_by_file("mariadbd")->name, "mysql"));
}

/* A user's engine has the SQL dialect of the known one of that name, or the standard's. */
static void user_engines(void)
{
	struct user_engine user;

	CHECK(!user_engine_init(&user, "mysql:query__start", "mysql:query__done", 1));
	CHECK(user.engine.dialect == FINGERPRINT_MYSQL &&
	      !strcmp(user.engine.otel_system, "mysql"));
	CHECK(!user_engine_init(&user, "app:start", "other:done", 2));
	CHECK(user.engine.dialect == FINGERPRINT_POSTGRES &&
	      !strcmp(user.engine.otel_system, "other_sql") && !strcmp(user.engine.name, "app"));
	CHECK(user_engine_init(&user, "app", "app:done", 1) == -EINVAL);
	CHECK(user_engine_init(&user, "app:", "app:done", 1) == -EINVAL);
	CHECK(user_engine_init(&user, ":start", "app:done", 1) == -EINVAL);
}

/* Foreign bytes of any kind: nothing but the buffers is touched (run under the sanitizers). */
static void random_bytes(void)
{
	static const char piece[] = "postgres: /lxc/[local](1) 0a\n/machine.slice/machine-";

	srand(1);
	for (int i = 0; i < 20000; i++) {
		char text[96], container[8];
		size_t len = (size_t)rand() % sizeof(text);
		struct identity who;

		for (size_t at = 0; at < len; at++)
			text[at] = piece[(size_t)rand() % sizeof(piece)];
		if (i % 2 && len > 10)
			memcpy(text, "postgres: ", 10);
		postgres_identify(text, len, &who);
		container_parse(text, len, container, sizeof(container));
		CHECK(strlen(container) < sizeof(container), "%zu", strlen(container));
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

/* The entries of a cache, an old one before it or not; the length. */
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
	memcpy(cache + strings, "end", 3);	/* the last string has no NUL */
	return start + strings + 3;
}

#if defined(__x86_64__)
#define OURS	0x0303u
#elif defined(__aarch64__)
#define OURS	0x0a03u
#endif

static void library_cache(void)
{
	static const struct cache_row rows[] = {
		{ 0x0003, 0, "libc.so.6", "/lib32/libc.so.6" },
		{ OURS, 2, "libc.so.6", "/lib/fast/libc.so.6" },
		{ OURS, 0, "libc.so.6", "/lib/libc.so.6" },
		{ OURS, 0, "libz.so.2", "/lib/libz.so.2" },
		{ OURS, 0, "libz.so.1", "/lib/libz.so.1" },
		{ 0x0003, 0, "libq.so.1", "/lib32/libq.so.1" },
		{ OURS, 0, "libr.so.1", "relative" },
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

/* Cut and damaged ones: an answer, and no byte beyond is read (on the heap, for sanitizers). */
static void library_cache_damaged(void)
{
	static const struct cache_row row = { OURS, 0, "libc.so.6", "/lib/libc.so.6" };
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

/* A truncated line of a note is rejected: a truncated number would be a valid other one. */
static void semaphore_notes(void)
{
	static const char whole[] = "12 3456 3500 55d0c0ffee00 64768 131\n";
	static const char *const bad[] = {
		"", "\n", "pid start written address dev ino\n", "0 1 2 3 4 5\n", "1 0 2 3 4 5\n",
		"1 2 3 zz 5 6\n", "1 2 3 4 5 6 7\n",
	};
	struct semaphore_mark mark;
	char cut[sizeof(whole)];

	CHECK(semaphores_parse(whole, &mark));
	CHECK(mark.pid == 12 && mark.start == 3456 && mark.written == 3500 &&
	      mark.address == 0x55d0c0ffee00 && mark.dev == 64768 && mark.ino == 131);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(!semaphores_parse(bad[i], &mark), "%s", bad[i]);
	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		memcpy(cut, whole, n);
		cut[n] = '\0';
		CHECK(!semaphores_parse(cut, &mark), "%s", cut);
	}
}

int main(void)
{
	RUN(titles);
	RUN(containers);
	RUN(mount_options);
	RUN(engine_words);
	RUN(user_engines);
	RUN(random_bytes);
	RUN(library_names);
	RUN(library_cache);
	RUN(library_cache_damaged);
	RUN(semaphore_notes);
	return check_done();
}
