/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The memory that loading the programs takes, and whether the control groups have it left. */
#ifndef CLI_MEMORY_H
#define CLI_MEMORY_H

#include "cli/loop.h"
#include "cli/source.h"

enum memory_use {
	MEMORY_STATEMENTS,
	MEMORY_BREAKDOWN,
	MEMORY_RECORD,
	MEMORY_RECORD_BREAKDOWN,
	MEMORY_USES,
};

/* What each takes for a moment, in ascending order: the kernel's verifier, and the maps. */
extern const struct memory_need {
	unsigned int mib;
	const char *words;	/* the commands and options that do it */
} memory_needs[MEMORY_USES];

/* Return what a message offers that works without programs, if @command has it; else "". Static. */
const char *memory_other(const struct command *command);

/*
 * Check that the control groups have the memory that loading the programs of @config takes: without
 * it the kernel ends this process or another one of them. Return EXIT_OK or EXIT_FAILED.
 */
int memory_check(struct loop *loop, const struct tracer_config *config);

#endif
