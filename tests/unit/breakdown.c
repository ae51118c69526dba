// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Kernel offsets from hand-made BTF with types as bpftool prints them, and breakdown records: their
 * parts must add up to the statement's duration.
 */
#include <errno.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "db/engine.h"
#include "db/session/breakdown.h"
#include "db/count/histogram.h"
#include "db/session/kernel_offsets.h"
#include "loader/btf.h"
#include "tests/unit/check.h"

static const char strings[] =
	"\0task\0pid\0state\0flag\0ioac\0bytes\0inner\0u32\0account\0alias\0loop";

/* A BTF file that is written type by type. */
static struct {
	unsigned char bytes[1024];
	size_t types;			/* bytes of types so far */
} file;

#define HEAD	sizeof(struct btf_header)

static void put(uint32_t value)
{
	memcpy(file.bytes + HEAD + file.types, &value, sizeof(value));
	file.types += sizeof(value);
}

static uint32_t name(const char *word)
{
	for (uint32_t i = 1; i < sizeof(strings); i += (uint32_t)strlen(&strings[i]) + 1)
		if (!strcmp(&strings[i], word))
			return i;
	return 0;
}

static void type(const char *word, uint32_t kind, uint32_t vlen, bool flag, uint32_t size)
{
	put(name(word));
	put(kind << 24 | vlen | (uint32_t)flag << 31);
	put(size);
}

static void member(const char *word, uint32_t number, uint32_t bits)
{
	put(name(word));
	put(number);
	put(bits);
}

static size_t finish(void)
{
	struct btf_header head = { .magic = BTF_MAGIC, .version = 1, .hdr_len = HEAD,
				   .type_len = (uint32_t)file.types,
				   .str_off = (uint32_t)file.types, .str_len = sizeof(strings) };

	memcpy(file.bytes, &head, sizeof(head));
	memcpy(file.bytes + HEAD + file.types, strings, sizeof(strings));
	return HEAD + file.types + sizeof(strings);
}

static size_t make(void)
{
	file.types = 0;
	type("u32", BTF_KIND_INT, 0, false, 4);			/* 1 */
	put(32);
	type("task", BTF_KIND_FWD, 0, false, 0);		/* 2: not the one */
	type("account", BTF_KIND_STRUCT, 2, false, 16);		/* 3 */
	member("pid", 1, 0);
	member("bytes", 1, 64);
	type("alias", BTF_KIND_TYPEDEF, 0, false, 3);		/* 4 */
	type("", BTF_KIND_UNION, 2, false, 8);			/* 5: nameless */
	member("inner", 1, 0);
	member("", 6, 32);
	type("", BTF_KIND_STRUCT, 1, true, 4);			/* 6 */
	member("flag", 1, 1u << 24 | 11);
	type("", BTF_KIND_ENUM, 2, false, 4);			/* 7: has a tail of its own */
	put(0), put(1), put(0), put(2);
	type("task", BTF_KIND_STRUCT, 4, true, 64);		/* 8 */
	member("state", 1, 24 * 8);
	member("", 5, 40 * 8);
	member("ioac", 9, 48 * 8);
	member("pid", 1, 60 * 8);
	type("", BTF_KIND_CONST, 0, false, 4);			/* 9 */
	type("loop", BTF_KIND_TYPEDEF, 0, false, 10);		/* 10: itself */
	type("inner", BTF_KIND_STRUCT, 1, false, 4);		/* 11 */
	member("loop", 10, 0);
	return finish();
}

static void members(void)
{
	static const struct {
		const char *path;
		int err;
		uint32_t offset, bit;
	} table[] = {
		{ "pid", 0, 60, 0 }, { "state", 0, 24, 0 }, { "inner", 0, 40, 0 },
		{ "flag", 0, 45, 3 }, { "ioac", 0, 48, 0 }, { "ioac.bytes", 0, 56, 0 },
		{ "ioac.none", -ENOENT, 0, 0 }, { "pid.bytes", -ENOENT, 0, 0 },
		{ "none", -ENOENT, 0, 0 }, { "pi", -ENOENT, 0, 0 },
	};
	size_t size = make();
	struct btf_place place;
	struct btf btf;
	uint32_t bytes;

	CHECK(!btf_open(&btf, file.bytes, size));
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		int err = btf_member(&btf, "task", table[i].path, &place);

		CHECK(err == table[i].err && place.offset == table[i].offset &&
		      place.bit == table[i].bit, "%s: %d %u.%u", table[i].path, err, place.offset,
		      place.bit);
	}
	CHECK(btf_member(&btf, "nothing", "pid", &place) == -ENOENT);
	CHECK(btf_member(&btf, "inner", "loop.pid", &place) == -EINVAL);
	CHECK(!btf_size(&btf, "task", &bytes) && bytes == 64);
	CHECK(btf_size(&btf, "u32", &bytes) == -ENOENT);
}

/* Each beginning of a file, and each byte of it wrong, is an answer or an error. */
static void damaged(void)
{
	size_t size = make();
	struct btf_place place;
	struct btf btf;

	for (size_t n = 0; n < size; n++) {
		unsigned char *copy = malloc(n ? n : 1);

		memcpy(copy, file.bytes, n);
		CHECK(btf_open(&btf, copy, n) == -EINVAL, "%zu", n);
		free(copy);
	}
	for (size_t n = 0; n < size * 8; n++) {
		file.bytes[n / 8] ^= 1u << n % 8;
		if (!btf_open(&btf, file.bytes, size))
			btf_member(&btf, "task", "ioac.bytes", &place);
		file.bytes[n / 8] ^= 1u << n % 8;
	}
}

static void kernel(void)
{
	struct object_value numbers[KERNEL_OFFSETS];
	struct features features = { .row = { { .probed = false } } };
	int events[KERNEL_EVENTS], err = kernel_offsets_read(&features, numbers, events);

	/* Neither BTF nor tracefs may be available, or to root only, or not in an emulator. */
	CHECK(!err || err == -ENOENT || err == -EPERM || err == -EACCES || err == -EOPNOTSUPP ||
	      err == -ENOSYS, "%d", err);
	CHECK(err || !events[0] == !events[1]);
	for (size_t i = 0; !err && i < KERNEL_OFFSETS; i++)
		CHECK(numbers[i].name && numbers[i].number < 1 << 20, "%s", numbers[i].name);
}

static uint64_t sum_of(const struct event_breakdown *why)
{
	uint64_t sum = 0;

	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		sum += why->ns[i];
	return sum;
}

static void parts(void)
{
	static struct event_breakdown rows[BREAKDOWN_PENDING];
	struct breakdown_pending pending = { .rows = rows }, none = { .rows = NULL };
	struct event_breakdown one = { .tid = 7, .start_ns = 1000,
				       .ns = { [BREAKDOWN_CPU] = 50, [BREAKDOWN_NETWORK] = 30 },
				       .waits = { { .call = 3, .part = BREAKDOWN_NETWORK,
						    .sleeps = 1, .ns = 10 },
						  { .call = 1, .part = BREAKDOWN_NETWORK,
						    .sleeps = 2, .ns = 20 } } };
	const struct event_breakdown *got;

	breakdown_put(&none, &one, 0);
	CHECK(!breakdown_take(&none, 7, 1000, 80));
	CHECK(!breakdown_take(&pending, 0, 1, 80));
	breakdown_put(&pending, &one, 0);
	CHECK(!breakdown_take(&pending, 7, 1001, 80) && !breakdown_take(&pending, 8, 1000, 80));
	got = breakdown_take(&pending, 7, 1000, 80);
	CHECK(got && sum_of(got) == 80 && got->ns[BREAKDOWN_CPU] == 50);
	/* The longest wait is first. */
	CHECK(got && got->waits[0].ns == 20 && got->waits[1].ns == 10 && !got->waits[2].sleeps);
	/* Missing time is added to other; excess time was spent waiting for the client. */
	got = breakdown_take(&pending, 7, 1000, 90);
	CHECK(got && sum_of(got) == 90 && got->ns[BREAKDOWN_OTHER] == 10);
	breakdown_put(&pending, &one, 0);
	got = breakdown_take(&pending, 7, 1000, 65);
	CHECK(got && sum_of(got) == 65 && got->ns[BREAKDOWN_CPU] == 50 &&
	      got->ns[BREAKDOWN_NETWORK] == 15);
	for (uint64_t duration = 0; duration < 100; duration++) {
		uint64_t waited = 0;

		breakdown_put(&pending, &one, 0);
		got = breakdown_take(&pending, 7, 1000, duration);
		CHECK(got && sum_of(got) == duration, "%u", (unsigned int)duration);
		for (int i = 0; i < BREAKDOWN_WAITS; i++)
			waited += got->waits[i].ns * !!got->waits[i].sleeps;
		CHECK(waited <= (duration < 30 ? 30 : duration), "%u", (unsigned int)duration);
	}
	/* Waits in the same call, of which the longer one is for a lock. */
	one.ns[BREAKDOWN_LOCK] = 20;
	one.waits[0] = (struct breakdown_wait){ .call = 7, .event = 1, .part = BREAKDOWN_LOCK,
						.sleeps = 1, .ns = 20 };
	one.waits[1] = (struct breakdown_wait){ .call = 7, .event = 2, .part = BREAKDOWN_NETWORK,
						.sleeps = 1, .ns = 30 };
	breakdown_put(&pending, &one, 0);
	got = breakdown_take(&pending, 7, 1000, 75);
	CHECK(got && got->ns[BREAKDOWN_LOCK] == 20 && got->ns[BREAKDOWN_NETWORK] == 5);
	CHECK(got && got->waits[0].event == 1 && got->waits[0].ns == 20 && got->waits[1].ns == 5);
	/* The oldest one goes. */
	for (uint32_t i = 0; i < BREAKDOWN_PENDING; i++) {
		one.tid = 100 + i;
		breakdown_put(&pending, &one, 0);
	}
	CHECK(!breakdown_take(&pending, 7, 1000, 80) && breakdown_take(&pending, 100, 1000, 80));
}

/* Sorts are known if the server can count them, their space if all of them have ended. */
static void sorts(void)
{
	static struct event_breakdown rows[BREAKDOWN_PENDING];
	struct breakdown_pending pending = { .rows = rows };
	struct event_breakdown one = { .tid = 7, .start_ns = 1000, .used = 1, .sorted = 2,
				       .workers = { .count = 0, .use = { 10, 5, 999, 50 } } };
	uint32_t sorts = 1u << USE_SORTS, space = 7u << USE_SORTS_EXTERNAL;
	static const __u64 with_workers[] = { 12, 5, 999, 57 };
	const struct event_breakdown *got;

	one.use[USE_PEAK_GROWTH] = 3;
	one.use[USE_SORTS] = 2;
	one.use[USE_SORT_BYTES] = 700;
	one.use[USE_SORT_BLOCKS] = 7;
	breakdown_put(&pending, &one, TARGET_HAS_ROWS);
	got = breakdown_take(&pending, 7, 1000, 80);
	CHECK(got->used == 1 && got->use[USE_PEAK_GROWTH] == 3 * (__u64)sysconf(_SC_PAGESIZE));
	breakdown_put(&pending, &one, TARGET_HAS_SORTS);
	CHECK(breakdown_take(&pending, 7, 1000, 80)->used == (1 | sorts));
	breakdown_put(&pending, &one, TARGET_HAS_SORTS | TARGET_HAS_SORT_SPACE);
	got = breakdown_take(&pending, 7, 1000, 80);
	CHECK(got->used == (1 | sorts | space) && got->use[USE_SORTS] == 2);
	one.workers.count = 2;
	breakdown_put(&pending, &one, TARGET_HAS_SORTS | TARGET_HAS_SORT_SPACE);
	got = breakdown_take(&pending, 7, 1000, 80);
	CHECK(!memcmp(&got->use[USE_SORTS], with_workers, sizeof(with_workers)));
	one.sorted = 1;
	one.use[USE_PEAK_GROWTH] = -3ULL;
	breakdown_put(&pending, &one, TARGET_HAS_SORTS | TARGET_HAS_SORT_SPACE);
	got = breakdown_take(&pending, 7, 1000, 80);
	CHECK(got->used == (1 | sorts) && !got->use[USE_PEAK_GROWTH]);
	one.used = 0;
	breakdown_put(&pending, &one, TARGET_HAS_SORTS | TARGET_HAS_SORT_SPACE);
	CHECK(!breakdown_take(&pending, 7, 1000, 80)->used);
}

static void calls(void)
{
	static const struct {
		uint32_t call;
		const char *name;
	} table[] = {
		{ SYS_read, "read" }, { SYS_fstat, "fstat" }, { SYS_preadv2, "preadv2" },
		{ SYS_mprotect, "mprotect" }, { SYS_fallocate, "fallocate" },
		{ SYS_io_uring_enter, "io_uring_enter" }, { 424, "pidfd_send_signal" },
		{ 450, "set_mempolicy_home_node" }, { 469, "file_setattr" },
		{ BREAKDOWN_CALLS - 1, "syscall_511" }, { 423, "syscall_423" },
		{ BREAKDOWN_NO_CALL, "page_fault" }, { BREAKDOWN_OTHERS, "others" },
		{ BREAKDOWN_STOP, "stopped" },
	};
	char name[SYSCALL_NAME];

	for (uint32_t call = 0; call < BREAKDOWN_CALLS * 2; call++)
		CHECK((breakdown_call_value(call) & BREAKDOWN_PART) < BREAKDOWN_PARTS);
	CHECK(breakdown_call_value(SYS_read) == (BREAKDOWN_NETWORK | BREAKDOWN_ON_FILE));
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		breakdown_call_name(table[i].call, name);
		CHECK(!strcmp(name, table[i].name), "%u: %s", table[i].call, name);
	}
	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		CHECK(breakdown_part_name((enum breakdown_part)i));
	for (int i = 0; i < PHASES; i++)
		CHECK(breakdown_phase_name((enum phase)i));
	for (int i = 0; i < USES; i++)
		CHECK(breakdown_use_name((enum use)i));
}

static void names(void)
{
	enum breakdown_part part;
	uint32_t call;

	CHECK(!breakdown_by_name("futex", &part, &call) && part == BREAKDOWN_FUTEX &&
	      call == SYS_futex);
	CHECK(!breakdown_by_name("network", &part, &call) && part == BREAKDOWN_NETWORK &&
	      call == BREAKDOWN_NONE);
	CHECK(!breakdown_by_name("pread64", &part, &call) && part == BREAKDOWN_PARTS &&
	      call == SYS_pread64);
	CHECK(!breakdown_by_name("mprotect", &part, &call) && call == SYS_mprotect);
	CHECK(!breakdown_by_name("stopped", &part, &call) && part == BREAKDOWN_STOPPED &&
	      call == BREAKDOWN_NONE);
	CHECK(!breakdown_by_name("page_fault", &part, &call) && part == BREAKDOWN_PARTS &&
	      call == BREAKDOWN_NO_CALL);
	CHECK(breakdown_by_name("-", &part, &call) == -ENOENT);
	CHECK(breakdown_by_name("", &part, &call) == -ENOENT && part == BREAKDOWN_PARTS &&
	      call == BREAKDOWN_NONE);
}

static struct owners owners;

static void put_wait(struct breakdown_waits *w, uint16_t owner, uint32_t pid, uint64_t start_ns,
		     uint64_t ns)
{
	breakdown_wait_put(w, &(struct event_wait){ .head.owner = owner, .pid = pid,
						    .start_ns = start_ns, .ns = ns });
}

static uint64_t lost_of(uint16_t owner)
{
	return owners.lost[owner][LOST_TABLE_FULL];
}

/* Waits of many statements at once, some of which never end. */
static void waits(void)
{
	struct breakdown_waits w = { .rows = calloc(BREAKDOWN_OPEN, sizeof(*w.rows)),
				     .owners = &owners };
	const uint64_t *ns;
	size_t count;

	for (uint32_t i = 0; i < 100 * 40; i++)
		put_wait(&w, 1, i % 40, 7 + i % 2, i);
	CHECK(w.nrows == 40 && !lost_of(1));
	CHECK(!breakdown_wait_take(&w, 3, 7, &count) && !count);
	ns = breakdown_wait_take(&w, 3, 8, &count);
	CHECK(ns && count == 100);
	for (uint32_t i = 0; ns && i < count; i++)
		CHECK(ns[i] == i * 40 + 3);
	CHECK(!breakdown_wait_take(&w, 3, 8, &count) && !count);
	/* It was the only one that ended: the others make room, the oldest first. */
	for (uint32_t i = 0; i < BREAKDOWN_OPEN / 2; i++) {
		put_wait(&w, 2, 1000 + i, 9, i);
		put_wait(&w, 3, 1000 + i, 8, i);
	}
	CHECK(w.nrows == BREAKDOWN_OPEN && lost_of(1) == 39 * 100 && !lost_of(2) && !lost_of(3),
	      "%llu", (unsigned long long)lost_of(1));
	CHECK(breakdown_wait_take(&w, 1000, 9, &count) && count == 1);
	breakdown_waits_free(&w);
	CHECK(!breakdown_wait_take(&w, 1, 1, &count) && !count);
}

/* A user whose waits do not fit, in one statement or in many, displaces those of no other one. */
static void shares_of_waits(void)
{
	struct breakdown_waits w = { .rows = calloc(BREAKDOWN_OPEN, sizeof(*w.rows)),
				     .owners = &owners };
	size_t count;

	memset(&owners, 0, sizeof(owners));
	for (uint32_t i = 0; i < BREAKDOWN_ROOM + 10; i++)
		put_wait(&w, 1, 1, 1, i);
	CHECK(w.room == OWNER_SHARE(BREAKDOWN_ROOM));
	CHECK(lost_of(1) == BREAKDOWN_ROOM + 10 - OWNER_SHARE(BREAKDOWN_ROOM));
	for (uint32_t i = 0; i < 1000; i++)
		put_wait(&w, 2, 2, 2, i);
	CHECK(breakdown_wait_take(&w, 2, 2, &count) && count == 1000 && !lost_of(2), "%zu", count);
	CHECK(breakdown_wait_take(&w, 1, 1, &count) && count == OWNER_SHARE(BREAKDOWN_ROOM));
	/* Waits of statements that have ended take no memory. */
	CHECK(!breakdown_wait_take(&w, 1, 1, &count) && !w.room);
	memset(&owners, 0, sizeof(owners));
	for (uint32_t i = 0; i < BREAKDOWN_OPEN / 4; i++)
		put_wait(&w, 2, i, 2, i);
	for (uint32_t i = 0; i < 3 * BREAKDOWN_OPEN; i++)
		put_wait(&w, 1, i, 1, i);
	for (uint32_t i = 0; i < BREAKDOWN_OPEN / 4; i++)
		CHECK(breakdown_wait_take(&w, i, 2, &count) && count == 1, "%u", i);
	CHECK(!lost_of(2) && lost_of(1) == 3 * BREAKDOWN_OPEN - OWNER_SHARE(BREAKDOWN_OPEN));
	CHECK(owners.lost_sum[LOST_TABLE_FULL] == lost_of(1));
	breakdown_waits_free(&w);
}

/* The same of rows of a histogram. */
static void shares_of_rows(void)
{
	static const struct engine engine = { .name = "postgresql" };
	static const struct server server = { .engine = &engine };
	struct who who = { .user = "" };
	struct statement one = { .server = &server, .who = &who };
	struct histogram h;

	memset(&owners, 0, sizeof(owners));
	CHECK(!histogram_open(&h, 1000, STAT_BY_DATABASE, &owners));
	for (uint32_t i = 0; i < HISTOGRAM_MAX; i++) {
		snprintf(who.database, sizeof(who.database), "a%u", i);
		histogram_add(&h, 1, &one, 1000);
	}
	CHECK(h.nrows == OWNER_SHARE(HISTOGRAM_MAX) && lost_of(1) == HISTOGRAM_MAX / 4);
	for (uint32_t i = 0; i < HISTOGRAM_MAX / 4; i++) {
		snprintf(who.database, sizeof(who.database), "b%u", i);
		histogram_add(&h, 2, &one, 1000);
	}
	CHECK(h.nrows == HISTOGRAM_MAX && !lost_of(2));
	/* A row that there is counts for all. */
	histogram_add(&h, 1, &one, 1000);
	histogram_add(&h, 2, &one, 2000);
	CHECK(lost_of(1) == HISTOGRAM_MAX / 4 && lost_of(2) == 1);
	histogram_close(&h);
}

int main(void)
{
	RUN(members);
	RUN(damaged);
	RUN(kernel);
	RUN(parts);
	RUN(sorts);
	RUN(calls);
	RUN(names);
	RUN(waits);
	RUN(shares_of_waits);
	RUN(shares_of_rows);
	return check_done();
}
