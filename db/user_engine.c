// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/user_engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "db/engines.h"

static void user_engine_client(const char *host, const char *port, char *client, size_t size)
{
	(void)host;
	(void)port;
	snprintf(client, size, "%s", "");
}

/* Splits "PROVIDER:NAME"; either may hold hyphens. */
static int user_engine_split(const char *text, char provider[CUSTOM_NAME], char probe[CUSTOM_NAME])
{
	const char *colon = strchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;

	if (!len || !colon[1] || len >= CUSTOM_NAME || strlen(colon + 1) >= CUSTOM_NAME)
		return -EINVAL;
	memcpy(provider, text, len);
	provider[len] = '\0';
	strcpy(probe, colon + 1);
	return 0;
}

int user_engine_init(struct user_engine *user_engine, const char *start, const char *done,
		     unsigned int text_arg)
{
	static const char *const nothing[] = { NULL };
	const struct engine *known;

	*user_engine = (struct user_engine){ .engine = { .name = user_engine->provider[1] } };
	if (user_engine_split(done, user_engine->provider[0], user_engine->probe[0]) ||
	    user_engine_split(start, user_engine->provider[1], user_engine->probe[1]))
		return -EINVAL;
	user_engine->probes[0] = (struct engine_probe){
		.step = "done", .program = "pair_done",
		.provider = user_engine->provider[0], .probe = user_engine->probe[0],
	};
	user_engine->args[0] = (struct engine_arg){ .name = "arg_text", .probe_arg = (int)text_arg,
						    .fallback = -1 };
	user_engine->probes[1] = (struct engine_probe){
		.step = "start", .program = "pair_start",
		.provider = user_engine->provider[1], .probe = user_engine->probe[1],
		.args = user_engine->args,
	};
	user_engine->probe_set = (struct engine_probe_set){ .probes = user_engine->probes,
							    .nprobes = 2 };
	known = engines_by_name(user_engine->provider[1]);
	user_engine->engine = (struct engine){
		.name = user_engine->provider[1], .title = user_engine->provider[1],
		.executables = nothing, .signature_symbols = nothing, .words = nothing,
		.probe_sets = &user_engine->probe_set, .nprobe_sets = 1,
		.otel_system = known ? known->otel_system : "other_sql",
		.dialect = known ? known->dialect : FINGERPRINT_POSTGRES,
		.client = user_engine_client,
	};
	return 0;
}
