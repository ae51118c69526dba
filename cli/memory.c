/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/memory.h"

#include <string.h>

#include "cli/option/option.h"
#include "host/limits.h"

/* Measured; the tests load with as much. */
const struct memory_need memory_needs[] = {
	[MEMORY_STATEMENTS] = { 23, "statements and locks" },
	[MEMORY_BREAKDOWN] = { 30, "--why, --use, --phases and transactions" },
	[MEMORY_RECORD] = { 46, "record" },
	[MEMORY_RECORD_BREAKDOWN] = { 58, "record --why" },
};

static enum memory_use memory_use(const struct tracer_config *config)
{
	if (config->both)
		return config->why ? MEMORY_RECORD_BREAKDOWN : MEMORY_RECORD;
	return config->why || config->transactions ? MEMORY_BREAKDOWN : MEMORY_STATEMENTS;
}

const char *memory_other(const struct command *command)
{
	return option_find(command, "sample", strlen("sample")) ?
	       "; or, without programs and probes, specify --sample 10ms" : "";
}

int memory_check(struct loop *loop, const struct tracer_config *config)
{
	unsigned int needed = memory_needs[memory_use(config)].mib;
	uint64_t left = limits_memory(true);

	if (left >> 20 >= needed || loop->options.little_memory)
		return EXIT_OK;
	output_printf(&loop->err, "dbslower: memory: %llu MiB are left to the control group, and "
		      "loading the programs takes %u; raise its limit (memory.max, docker run "
		      "--memory), or specify --force=little-memory%s\n",
		      (unsigned long long)(left >> 20), needed, memory_other(loop->command));
	output_flush(&loop->err);
	return EXIT_FAILED;
}
