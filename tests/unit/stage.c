// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * db/mysql/stage.c: names of stages in the memory of a hostile server, which is that of this
 * process. tests/e2e/test_mysql_releases.py compares them with those of the servers.
 */
#include <string.h>
#include <unistd.h>

#include "db/mysql/stage.h"
#include "tests/unit/check.h"

static const char constants[4][2 * PS_STAGE] = { "Sending data", "a\033[2J", "" };
static char writable[] = "Sending data";

static struct mysql_stages stages = {
	.constants = { .count = 1, .segment = { { .filesz = sizeof(constants) } } },
};

static uint32_t event_of(const char *text)
{
	return (uint32_t)((uint64_t)(uintptr_t)text - stages.from);
}

static void check_name(const struct process_memory *memory, const char *text, const char *name)
{
	const char *known;

	mysql_stage_learn(&stages, memory, event_of(text));
	known = mysql_stage_known(&stages, event_of(text));
	CHECK(known && !strcmp(known, name));
}

static void names(void)
{
	struct process_memory memory;

	CHECK(!process_memory_open((uint32_t)getpid(), &memory));
	/* The process is its own, without a slide: as linked is as loaded. */
	memory.slide = 0;
	stages.from = (uint64_t)(uintptr_t)&stages;
	stages.constants.segment[0].vaddr = (uint64_t)(uintptr_t)constants;
	CHECK(!mysql_stage_known(&stages, event_of(constants[0])));
	check_name(&memory, constants[0], "Sending data");
	check_name(&memory, constants[0] + 8, "data");
	check_name(&memory, constants[1], "");
	check_name(&memory, constants[2], "");
	/* Another text may be there by now. */
	check_name(&memory, writable, "");
	/* The first one makes room. */
	for (int i = 0; i < STAGES_KNOWN - 4; i++)
		check_name(&memory, constants[3] + i, "");
	CHECK(!mysql_stage_known(&stages, event_of(constants[0])));
	CHECK(mysql_stage_known(&stages, event_of(writable)));
	process_memory_close(&memory);
}

int main(void)
{
	RUN(names);
	return check_done();
}
