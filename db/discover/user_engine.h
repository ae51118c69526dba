/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* An engine that the user describes by the USDT probes around its statements. */
#ifndef DB_DISCOVER_USER_ENGINE_H
#define DB_DISCOVER_USER_ENGINE_H

#include "db/engine.h"

#define USER_ENGINE_NAME	64	/* bytes of a provider's or probe's name, with the NUL */

struct user_engine {
	struct engine engine;		/* points to the rest, which must not be moved */
	struct engine_probe_set probe_set;
	struct engine_probe probes[2];
	struct engine_arg args[2];
	char provider[2][USER_ENGINE_NAME], probe[2][USER_ENGINE_NAME];
};

/*
 * Make an engine of the USDT probes @start and @done, each "PROVIDER:NAME". Argument @text_arg of
 * @start, from 1, points to the statement's text; 0: the first one, if there is one. The provider
 * of @start is the engine's name. Return 0, or -EINVAL if a probe is not of that form.
 */
int user_engine_init(struct user_engine *user_engine, const char *start, const char *done,
		     unsigned int text_arg);

#endif
