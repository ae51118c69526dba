/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of the running statement in a server's memory. Input: a byte of choices, a size, then
 * the variables and the texts. The memory is that of this process; the texts end where an unmapped
 * page begins.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "db/session/backend_state.c"
#include "host/process_memory.h"
#include "tests/fuzz/fuzz.h"

#define PAGE	4096

static struct {
	uint64_t text, begun, client, query[2];
	uint8_t replication;
} variables;

/* Map a page that is followed by an unmapped one. */
static unsigned char *last_page(void)
{
	unsigned char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || munmap(pages + PAGE, PAGE))
		abort();
	return pages;
}

static uint64_t address_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void check_query(const struct backend_places *places, char *text, size_t size)
{
	struct process process;
	struct object_owner owner = { (uint32_t)getpid(), &process.file, NULL };
	size_t len = 0;
	int n = process_read(owner.pid, NULL, &process) ? -ENOENT :
		object_query(&owner, address_of(&variables.query) -
			     (uint64_t)places->object.text, &places->object, text, size, &len);

	REQUIRE(n < 0 || ((size_t)n <= size && (size_t)n <= len), "%d", n);
	if (n > 0)
		REQUIRE(!memcmp(text, (void *)(uintptr_t)variables.query[0], (size_t)n));
}

static void check_statement(const struct backend_places *places, char *text, size_t size)
{
	struct backend_statement statement = { 0 };
	struct process_memory memory;
	struct backend_mark mark;
	int err;

	REQUIRE(!process_memory_open((uint32_t)getpid(), &memory));
	memory.slide = 0;
	err = mark_read(&memory, places, &mark);
	if (!err)
		err = text_read(&memory, mark.text, text, size, &statement);
	if (!err) {
		REQUIRE(statement.len <= size && !memchr(text, 0, statement.len));
		REQUIRE(statement.cut || statement.len < size);
		REQUIRE(!memcmp(text, (void *)(uintptr_t)variables.text, statement.len));
		REQUIRE(mark.begun < CENTURY_US);
	}
	process_memory_close(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned char *page;
	struct input in = { data, size };
	uint8_t choice = input_byte(&in);
	size_t room = 1u + input_byte(&in) * 8u, at;
	struct backend_places places = {
		.text = address_of(&variables.text), .begun = address_of(&variables.begun),
		.client = address_of(&variables.client),
		.replication = address_of(&variables.replication),
	};
	char *text = malloc(room);

	object_places_none(&places.object);
	places.object.text = 8 * (choice & 7);
	page = page ? page : last_page();
	input_bytes(&in, &variables, sizeof(variables));
	at = in.left < PAGE ? PAGE - in.left : 0;
	input_bytes(&in, page + at, PAGE - at);
	if (choice & 0x10)
		variables.text = address_of(page + at);
	if (choice & 0x20)
		variables.query[0] = address_of(page + at);
	if (choice & 0x40)
		variables.query[1] &= 0xfff;
	if (choice & 0x80)
		variables.replication = 0;
	/* Only addresses in the page can be compared with. */
	if (choice & 0x20)
		check_query(&places, text, room);
	if (choice & 0x10)
		check_statement(&places, text, room);
	free(text);
	return 0;
}
