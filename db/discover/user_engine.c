// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/user_engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "db/engines.h"

/* The client is unknown. */
static void user_engine_client(const char *host, const char *port, char *client, size_t size)
{
	(void)host;
	(void)port;
	snprintf(client, size, "%s", "");
}

/* Split "PROVIDER:NAME"; either may have hyphens. Return 0 or -EINVAL. */
static int user_engine_split(const char *text, char provider[USER_ENGINE_NAME],
			     char probe[USER_ENGINE_NAME])
{
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;

	if (!len || !colon[1] || len >= USER_ENGINE_NAME ||
	    strlen(colon + 1) >= USER_ENGINE_NAME)
		return -EINVAL;
	memcpy(provider, text, len);
	provider[len] = '\0';
	strcpy(probe, colon + 1);
	return 0;
}

int user_engine_init(struct user_engine *user_engine, const char *start, const char *done,
		     unsigned int text_arg)
{
	static const char *const none[] = { NULL };
	struct user_engine *u = user_engine;
	const struct engine *engine;

	*u = (struct user_engine){ .engine = { .name = u->provider[1] } };
	if (user_engine_split(done, u->provider[0], u->probe[0]) ||
	    user_engine_split(start, u->provider[1], u->probe[1]))
		return -EINVAL;
	u->probes[0] = (struct engine_probe){
		.step = "done", .program = "pair_done",
		.provider = u->provider[0], .probe = u->probe[0],
	};
	u->args[0] = (struct engine_arg){ .name = "arg_text",
					  .probe_arg = text_arg ? (int)text_arg : 1,
					  .fallback = text_arg ? -1 : 0 };
	u->probes[1] = (struct engine_probe){
		.step = "start", .program = "pair_start",
		.provider = u->provider[1], .probe = u->probe[1], .args = u->args,
	};
	u->probe_set = (struct engine_probe_set){ .probes = u->probes, .nprobes = 2 };
	/* A provider called as a known engine has its SQL dialect. */
	engine = engines_by_name(u->provider[1]);
	u->engine = (struct engine){
		.name = u->provider[1], .title = u->provider[1],
		.otel_system = engine ? engine->otel_system : "other_sql",
		.dialect = engine ? engine->dialect : FINGERPRINT_UNKNOWN,
		.words = none, .executables = none, .signature_symbols = none,
		.probe_sets = &u->probe_set, .nprobe_sets = 1,
		.client = user_engine_client,
	};
	return 0;
}
