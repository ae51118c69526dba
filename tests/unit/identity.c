// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of db/mysql/identity: this program exports the accessors of MySQL 8 for its own objects. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/attribute.h"
#include "db/mysql/object.h"
#include "db/session/object.h"
#include "host/elf_map.h"
#include "tests/unit/check.h"

#define ACCESSOR __attribute__((noinline))

struct string {
	const char *text;
	size_t length;
};

struct security {
	struct string user, between, host, ip;
};

struct thd {
	char before[0x2b8];
	struct string db;
	struct security own, *context;
	struct instrumented *psi;
};

struct instrumented {
	char before[0x708];
	char *attributes;
	unsigned int length, charset;
};

#define security_context	_Z24thd_get_security_contextP3THDPP16Security_context
#define context_user		_ZNK16Security_context4userEv
#define context_host		_ZNK16Security_context4hostEv
#define context_ip		_ZNK16Security_context2ipEv
#define binlog_filter_ok	_Z20thd_binlog_filter_okPK3THD
#define get_psi			_Z11thd_get_psiP3THD
#define reset_attributes	_ZN10PFS_thread27reset_session_connect_attrsEv

bool security_context(struct thd *thd, struct security **out);
struct string context_user(const struct security *context);
struct string context_host(const struct security *context);
struct string context_ip(const struct security *context);
const char *binlog_filter_ok(const struct thd *thd);
struct instrumented *get_psi(struct thd *thd);
void reset_attributes(struct instrumented *psi);

ACCESSOR bool security_context(struct thd *thd, struct security **out)
{
	*out = thd->context;
	return false;
}

ACCESSOR struct string context_user(const struct security *context)
{
	return context->user;
}

ACCESSOR struct string context_host(const struct security *context)
{
	return context->host;
}

ACCESSOR struct string context_ip(const struct security *context)
{
	return context->ip;
}

ACCESSOR const char *binlog_filter_ok(const struct thd *thd)
{
	return thd->db.text;
}

ACCESSOR struct instrumented *get_psi(struct thd *thd)
{
	return thd->psi;
}

static volatile size_t attributes_size = 1;

ACCESSOR void reset_attributes(struct instrumented *psi)
{
	psi->length = 0;
	if (psi->attributes && attributes_size)
		memset(psi->attributes, 0, attributes_size);
}

static struct object_places places;
static struct process_memory memory;

static bool begin(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct elf_map map;

	if (fd < 0 || elf_map_open(&map, fd, NULL))
		return false;
	mysql_object_find(&map.elf, &places);
	elf_map_close(&map);
	close(fd);
	return !process_memory_open((uint32_t)getpid(), &memory);
}

/* Of a session with @own as its context, which is that of @definer if it is not NULL. */
static struct who read_of(const struct security *own, const struct security *definer,
			  int64_t *at, const char *database)
{
	struct thd thd = { .db = { database, 0 }, .own = *own };
	struct who who;

	thd.context = &thd.own;
	if (definer)
		memcpy(&thd.context, &definer, sizeof(definer));
	memset(&who, 'x', sizeof(who));
	object_read_who(&memory, &places, (uintptr_t)&thd, at, &who);
	return who;
}

static struct who read_who(const struct security *own, const char *database)
{
	int64_t at = -1;

	return read_of(own, NULL, &at, database);
}

/* The linker drops functions that nothing calls. */
static void accessors(void)
{
	struct security context = { .user = { "u", 1 }, .host = { "h", 1 }, .ip = { "i", 1 } };
	struct security *out = NULL;
	char list[] = "x";
	struct instrumented psi = { .attributes = list, .length = 1 };
	struct thd thd = { .db = { "d", 1 }, .context = &context, .psi = &psi };

	CHECK(!security_context(&thd, &out));
	CHECK(*context_user(out).text == 'u' && *context_host(out).text == 'h');
	CHECK(*context_ip(out).text == 'i' && *binlog_filter_ok(&thd) == 'd');
	CHECK(places.user.counted && places.host.counted && places.address.counted);
	CHECK(places.database == offsetof(struct thd, db));
	reset_attributes(get_psi(&thd));
	CHECK(!psi.length && !*list);
	CHECK(places.attributes_of == offsetof(struct thd, psi));
	CHECK(places.attributes == offsetof(struct instrumented, attributes));
}

/* A NUL ends a name, whatever its length says; but one of length 0 is another's. */
static void names(void)
{
	const struct security context = { .user = { "mysql.session", 4 },
					  .host = { "host of another", 0 },
					  .ip = { "10.0.0.7", 8 } };
	struct who who = read_who(&context, "shop");

	CHECK(!strcmp(who.user, "mysql.session"), "%s", who.user);
	CHECK(!strcmp(who.client, "10.0.0.7"), "%s", who.client);
	CHECK(!strcmp(who.database, "shop"), "%s", who.database);
}

/* A name that is too long, or cannot be read, is unknown. */
static void unknown(void)
{
	static char longer[256];
	struct security context = { .user = { longer, 64 }, .host = { (const char *)8, 4 },
				    .ip = { NULL, 4 } };
	struct who who;

	memset(longer, 'y', sizeof(longer) - 1);
	who = read_who(&context, longer);
	CHECK(!*who.user && !*who.client && !*who.database);
	longer[63] = '\0';
	who = read_who(&context, NULL);
	CHECK(strlen(who.user) == 63 && !*who.database);
}

/* While a client runs a procedure as its definer, others tell where its own context is. */
static void definer(void)
{
	static const struct security other = { .user = { "definer", 7 } };
	const struct security own = { .user = { "caller", 6 } };
	int64_t at = -1;
	struct who who = read_of(&own, &other, &at, "shop");

	CHECK(!*who.user && !strcmp(who.database, "shop") && at == -1);
	who = read_of(&own, (const struct security *)4, &at, "shop");
	CHECK(!*who.user && !strcmp(who.database, "shop") && at == -1);
	who = read_of(&own, NULL, &at, "shop");
	CHECK(!strcmp(who.user, "caller") && at == offsetof(struct thd, own));
	who = read_of(&own, &other, &at, "shop");
	CHECK(!strcmp(who.user, "caller"), "%s", who.user);
	/* That of an event, which has no caller. */
	who = read_of(&own, &other, NULL, "shop");
	CHECK(!strcmp(who.user, "definer") && !strcmp(who.database, "shop"), "%s", who.user);
}

#define NAME	"\x0c" "program_name"

/* The program's name in the @size bytes at @list, as the server keeps them. */
static const char *program(const char *list, size_t size)
{
	static struct who who;
	struct instrumented psi = { .attributes = (char *)list, .length = (unsigned int)size,
				    .charset = 255 };
	struct thd thd = { .psi = &psi };
	int64_t at = -1;

	memset(&who, 'x', sizeof(who));
	object_read_who(&memory, &places, (uintptr_t)&thd, &at, &who);
	return who.application;
}

#define PROGRAM(list)	program(list, sizeof(list) - 1)

static void programs(void)
{
	static const char other[] = "\x04_pid\x03" "123\x03_os\x05Linux";
	char list[5000] = "\x04_pid\xfc\xa0\x0f";	/* a value of 4000 bytes */

	CHECK(!strcmp(PROGRAM(NAME "\x05mysql"), "mysql"));
	CHECK(!strcmp(PROGRAM("\x04_pid\x03" "123" NAME "\x05mysql\x03_os\x05Linux"), "mysql"));
	CHECK(!strcmp(PROGRAM(NAME "\xfc\x05\x00mysql"), "mysql"));
	CHECK(!*PROGRAM(other) && !*program(NULL, 0) && !*program((char *)8, 20));
	CHECK(!*PROGRAM("\x0bprogram_nam\x01x") && !*PROGRAM("\x0dprogram_names\x01x"));
	CHECK(!*PROGRAM("\x01x" NAME) && !*PROGRAM(NAME "\x00"));
	/* What is longer than the list, in any form, is not read. */
	CHECK(!*PROGRAM(NAME "\x06mysql") && !*PROGRAM(NAME "\xfc\x06\x00mysql"));
	CHECK(!*PROGRAM(NAME "\xfc\x05") && !*PROGRAM(NAME "\xfd\x05\x00\x00mysql"));
	CHECK(!*PROGRAM("\xff" NAME "\x01x") && !*PROGRAM("\xfc\xff\xff"));
	memcpy(list + 8 + 4000, NAME "\x01z", 15);
	CHECK(!strcmp(program(list, 8 + 4000 + 15), "z"));
	CHECK(!*program(list, 8 + 4000 + 14));
	memset(list, 'y', sizeof(list));
	memcpy(list, NAME "\xfa", 14);
	CHECK(strlen(program(list, 14 + 250)) == 63);
	/* Cut behind a character. */
	memcpy(list + 14 + 61, "\xe2\x82\xac", 3);
	CHECK(strlen(program(list, 14 + 250)) == 61);
	memcpy(list + 14 + 60, "\xe2\x82\xac", 3);
	CHECK(strlen(program(list, 14 + 250)) == 63);
	/* Behind so many others it is not looked for. */
	for (size_t others = ATTRIBUTES_MAX - 1; others <= ATTRIBUTES_MAX; others++) {
		memset(list, 0, sizeof(list));
		memcpy(list + 2 * others, NAME "\x01z", 15);
		CHECK(!strcmp(program(list, 2 * others + 15),
			      others < ATTRIBUTES_MAX ? "z" : ""), "%zu", others);
	}
}

/* Any bytes are read without a crash, and nothing behind them. */
static void hostile(void)
{
	static const char *const parts[] = {
		NAME, "\x01", "\xfc\x02", "\x04_pid", "\xfb", "\xfe", "ab", "\xff\xff\xff",
	};
	uint32_t seed = 1;

	for (int round = 0; round < 20000; round++) {
		char list[128], *copy;
		const char *name;
		size_t size = 0, len;

		for (int i = 0; i < 8; i++) {
			seed = seed * 1664525 + 1013904223;
			len = strlen(parts[seed >> 16 & 7]);
			memcpy(list + size, parts[seed >> 16 & 7], len);
			size += len;
		}
		size -= seed >> 20 & 7;
		copy = malloc(size + ATTRIBUTE_HEAD);
		memcpy(copy, list, size);
		memset(copy + size, 'Z', ATTRIBUTE_HEAD);
		name = program(copy, size);
		CHECK(!strchr(name, 'Z'));
		CHECK(!*name || memmem(copy, size, name, strlen(name)));
		free(copy);
	}
}

int main(void)
{
	if (!begin()) {
		CHECK(false, "cannot read itself");
		return check_done();
	}
	RUN(accessors);
	RUN(names);
	RUN(unknown);
	RUN(definer);
	RUN(programs);
	RUN(hostile);
	process_memory_close(&memory);
	return check_done();
}
