/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A server that is not in the table: the user names the probes around its statements. */
#ifndef DB_USER_ENGINE_H
#define DB_USER_ENGINE_H

#include "db/engine.h"

#define CUSTOM_NAME	64

struct user_engine {
	struct engine engine;		/* borrows from the rest */
	struct engine_probe_set probe_set;
	struct engine_probe probes[2];
	struct engine_arg args[2];
	char provider[2][CUSTOM_NAME], probe[2][CUSTOM_NAME];
};

/*
 * Makes an engine of USDT probes @start and @done, each "PROVIDER:NAME", and the number of the
 * start probe's argument that points to the text. 0, or -EINVAL: not of that form. It must not be
 * moved.
 */
int user_engine_init(struct user_engine *user_engine, const char *start, const char *done,
		     unsigned int text_arg);

#endif
