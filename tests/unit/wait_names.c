// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * db/postgres/wait_names.c: names of the table, and of the memory of a hostile server, which is
 * that of this process. tests/e2e/test_wait_events.py compares all names with those of the servers.
 */
#include <unistd.h>

#include "db/postgres/wait_names.h"
#include "tests/unit/check.h"

#define SERVER	7
#define PAST	(WAIT_EXTENSION << 24 | 9u)	/* a number that no element has */

/* An array as since 17. */
struct element {
	const char *class, *name, *text;
};

static const char activity[] = "Activity", archiver[] = "ArchiverMain";

static struct element elements[] = {
	{ "none", "none", "none" },
	{ activity, "AioWorkerMain", "" }, { activity, archiver, "" },
	{ activity, "AutovacuumMain", "" },
	{ "Buffer", "BufferCleanup", "" },
	{ "Extension", "Extension", "" },
	{ "IO", "BasebackupRead", "" }, { NULL, "BuffileRead", "" }, { NULL, "a\033[2J", "" },
	{ NULL, NULL, "" }, { NULL, (const char *)16, "" },
	{ "Timeout", "PgSleep", "" },
	{ "nonsense", "PgSleep", "" },
};

/* A hash table as since 17. */
struct entry {
	struct entry *next;
	uint32_t hash, pad, event;
	char name[WAIT_NAME];
};

struct table {
	void *header;
	struct entry ***directory;
	uint64_t others[10];
	const char *at;
	char name[128];
};

static struct entry *buckets[256];
static struct entry **segment = buckets;
static struct table table = {
	.directory = &segment, .at = table.name,
	.name = "WaitEventCustom hash by wait event information",
};

/* The variables that are not initialised. */
static struct {
	uint64_t numbers[3];
	void *nowhere;
	struct table *table;
} others = { { 1, 4097, 1ull << 60 }, (void *)4096, &table };

static struct postgres_locks locks;
static struct process_memory memory;

static struct wait_names read_names(const char *version)
{
	struct wait_names names = { .text = (uint64_t)archiver };

	wait_names_read(&names, &locks, &memory, version);
	return names;
}

/* Check the name of @event of @server, and that it is read from there only if it may be. */
static void check_server(struct wait_names *names, uint32_t server, uint32_t event,
			 const char *wanted)
{
	char name[WAIT_EVENT];

	if (!wait_names_write(names, &locks, server, event, name)) {
		wait_names_custom(names, &locks, &memory, server, event);
		wait_names_write(names, &locks, server, event, name);
	}
	CHECK(!strcmp(name, wanted), "%#x: %s, not %s", event, name, wanted);
}

static void check_name(struct wait_names *names, uint32_t event, const char *wanted)
{
	check_server(names, SERVER, event, wanted);
}

static void table_of_each_release(void)
{
	static const struct {
		unsigned int release, class, id;
		const char *name;
	} rows[] = {
		{ 9, WAIT_IO, 0, NULL }, { 10, WAIT_IO, 0, "BufFileRead" },
		{ 12, WAIT_ACTIVITY, 0, "ArchiverMain" }, { 10, WAIT_TIMEOUT, 1, "PgSleep" },
		{ 15, WAIT_TIMEOUT, 2, "PgSleep" }, { 16, WAIT_IO, 74, "VersionFileSync" },
		{ 16, WAIT_IO, 75, NULL }, { 10, WAIT_IO, 66, "WALWrite" },
		{ 10, WAIT_IO, 67, NULL }, { 17, WAIT_IO, 0, NULL }, { 0, WAIT_IO, 0, NULL },
		{ 15, WAIT_EXTENSION, 0, "Extension" }, { 15, WAIT_LOCK, 0, NULL },
		{ 15, WAIT_BUFFER, 0, "BufferPin" }, { 15, 0, 0, NULL }, { 15, 2, 0, NULL },
		{ 15, WAIT_INJECTION_POINT, 0, NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *name = wait_table_name(rows[i].release, rows[i].class, rows[i].id);

		CHECK(name ? rows[i].name && !strcmp(name, rows[i].name) : !rows[i].name,
		      "%zu: %s", i, name ? name : "none");
	}
}

static void numbers_of_an_unknown_release(void)
{
	struct wait_names names = { .release = 20 };

	check_name(&names, 0, "");
	check_name(&names, 5, "0:5");
	check_name(&names, WAIT_IO << 24 | 77, "IO:77");
	check_name(&names, 12u << 24 | 5, "12:5");
	check_name(&names, 0xff00ffff, "255:65535");
	check_name(&names, WAIT_LWLOCK << 24 | 0xffff, "LWLock:65535");
	check_name(&names, WAIT_LOCK << 24 | 0xffff, "Lock:65535");
	check_name(&names, PAST, "Extension:9");
	names.release = 15;
	check_name(&names, WAIT_IO << 24 | 72, "IO:WALWrite");
}

static void names_in_memory(void)
{
	struct wait_names names = read_names("19");

	check_name(&names, WAIT_ACTIVITY << 24, "Activity:AioWorkerMain");
	check_name(&names, WAIT_ACTIVITY << 24 | 1, "Activity:ArchiverMain");
	check_name(&names, WAIT_ACTIVITY << 24 | 2, "Activity:AutovacuumMain");
	check_name(&names, WAIT_ACTIVITY << 24 | 3, "Activity:3");
	check_name(&names, WAIT_BUFFER << 24, "Buffer:BufferCleanup");
	check_name(&names, WAIT_EXTENSION << 24, "Extension:Extension");
	check_name(&names, WAIT_IO << 24 | 1, "IO:BuffileRead");
	check_name(&names, WAIT_IO << 24 | 2, "IO:2");
	check_name(&names, WAIT_IO << 24 | 3, "IO:3");
	check_name(&names, WAIT_IO << 24 | 4, "IO:4");
	check_name(&names, WAIT_TIMEOUT << 24, "Timeout:PgSleep");
	check_name(&names, WAIT_TIMEOUT << 24 | 1, "Timeout:1");
	check_name(&names, WAIT_IPC << 24, "IPC:0");
}

/* Of a program that is not relocated. */
static void names_in_constants(void)
{
	struct variables variables = locks.variables;
	struct wait_names names;

	locks.variables.data = (uint64_t)&others;
	locks.variables.data_bytes = sizeof(others);
	locks.variables.constants = (uint64_t)elements + 1 - 8;
	locks.variables.constant_bytes = sizeof(elements) + 7;
	names = read_names("19");
	check_name(&names, WAIT_ACTIVITY << 24 | 2, "Activity:AutovacuumMain");
	locks.variables = variables;
}

/* The classes are not in one piece: those that are found are kept. */
static void names_out_of_order(void)
{
	struct element *last = &elements[sizeof(elements) / sizeof(*elements) - 2];
	const char *class = last->class;
	struct wait_names names;

	last->class = activity;
	names = read_names("19");
	check_name(&names, WAIT_ACTIVITY << 24 | 2, "Activity:AutovacuumMain");
	check_name(&names, WAIT_ACTIVITY << 24 | 3, "Activity:3");
	last->class = class;
}

/* What looks like an element many times, and an array without an end. */
static void names_of_a_hostile_array(void)
{
	static struct element hostile[3000];
	struct variables variables = locks.variables;
	struct wait_names names;

	for (size_t i = 0; i < 3000; i++)
		hostile[i] = (struct element){ i < 100 ? archiver : activity, archiver, "" };
	locks.variables.data = (uint64_t)hostile;
	locks.variables.data_bytes = sizeof(hostile);
	names = read_names("19");
	check_name(&names, WAIT_ACTIVITY << 24, "Activity:0");
	locks.variables.data = (uint64_t)&hostile[100];
	locks.variables.data_bytes = sizeof(hostile) - 100 * sizeof(*hostile);
	names = read_names("19");
	check_name(&names, WAIT_ACTIVITY << 24 | 1023, "Activity:ArchiverMain");
	check_name(&names, WAIT_ACTIVITY << 24 | 1024, "Activity:1024");
	locks.variables = variables;
}

static void names_of_extensions(void)
{
	static struct entry first = { .event = WAIT_EXTENSION << 24 | 1, .name = "FdwGetResult" };
	static struct entry second = { .event = WAIT_INJECTION_POINT << 24 | 2, .name = "a b" };
	static struct entry bad = { .event = WAIT_EXTENSION << 24 | 3, .name = "a\nb" };
	static struct entry loop = { .next = &loop, .event = WAIT_EXTENSION << 24 | 4,
				     .name = "Loop" };
	static struct entry unending = { .event = WAIT_EXTENSION << 24 | 5 };
	struct wait_names names = read_names("17");

	memset(unending.name, 'x', sizeof(unending.name));
	first.next = &second;
	second.next = &bad;
	bad.next = &unending;
	buckets[0] = (struct entry *)24;
	buckets[7] = &first;
	buckets[255] = &loop;
	check_name(&names, first.event, "Extension:FdwGetResult");
	check_name(&names, second.event, "InjectionPoint:a b");
	check_name(&names, bad.event, "Extension:3");
	check_name(&names, loop.event, "Extension:Loop");
	check_name(&names, unending.event, "Extension:5");
	check_name(&names, PAST, "Extension:9");
	/* Another server has names of its own. */
	table.name[0] = 'w';
	check_name(&names, first.event, "Extension:FdwGetResult");
	check_server(&names, SERVER + 1, first.event, "Extension:1");
	check_name(&names, first.event, "Extension:1");
	table.name[0] = 'W';
	check_name(&names, first.event, "Extension:FdwGetResult");
	/* The name that it is found by is that of a table behind it. */
	table.at = NULL;
	check_server(&names, SERVER + 1, first.event, "Extension:1");
	table.at = table.name;
	check_name(&names, first.event, "Extension:FdwGetResult");
	segment = NULL;
	check_name(&names, first.event, "Extension:FdwGetResult");
	check_server(&names, SERVER + 1, first.event, "Extension:1");
	segment = buckets;
	/* After some failures it is not asked again. */
	check_name(&names, first.event, "Extension:FdwGetResult");
	for (unsigned int i = 0; i < 8; i++)
		check_name(&names, PAST, "Extension:9");
	strcpy(first.name, "Other");
	check_server(&names, SERVER + 1, first.event, "Extension:1");
}

int main(void)
{
	if (process_memory_open((uint32_t)getpid(), &memory))
		return 1;
	for (size_t i = 1; i < sizeof(elements) / sizeof(*elements); i++)
		if (!elements[i].class)
			elements[i].class = elements[i - 1].class;
	locks.variables = (struct variables){
		.data = (uint64_t)elements, .data_bytes = sizeof(elements),
		.bss = (uint64_t)&others, .bss_bytes = sizeof(others),
	};
	RUN(table_of_each_release);
	RUN(numbers_of_an_unknown_release);
	RUN(names_in_memory);
	RUN(names_in_constants);
	RUN(names_out_of_order);
	RUN(names_of_a_hostile_array);
	RUN(names_of_extensions);
	process_memory_close(&memory);
	return check_done();
}
