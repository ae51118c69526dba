// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/user_engine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void custom_client(const char *host, const char *port, char *client, size_t size)
{
	(void)host;
	(void)port;
	snprintf(client, size, "%s", "");
}

/* Splits "PROVIDER:NAME"; either may hold hyphens. */
static int custom_split(const char *text, char provider[CUSTOM_NAME], char probe[CUSTOM_NAME])
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

int custom_init(struct custom *custom, const char *start, const char *done, unsigned int text_arg)
{
	static const char *const nothing[] = { NULL };

	*custom = (struct custom){ .engine = { .name = custom->provider[1] } };
	if (custom_split(done, custom->provider[0], custom->probe[0]) ||
	    custom_split(start, custom->provider[1], custom->probe[1]))
		return -EINVAL;
	custom->probes[0] = (struct engine_probe){
		.step = "done", .program = "span_done",
		.provider = custom->provider[0], .probe = custom->probe[0],
	};
	custom->args[0] = (struct engine_arg){ .name = "arg_text", .probe_arg = (int)text_arg,
					       .fallback = -1 };
	custom->probes[1] = (struct engine_probe){
		.step = "start", .program = "span_start",
		.provider = custom->provider[1], .probe = custom->probe[1],
		.args = custom->args,
	};
	custom->engine = (struct engine){
		.name = custom->provider[1], .title = custom->provider[1],
		.executables = nothing, .signs = nothing, .probes = custom->probes, .nprobes = 2,
		.client = custom_client,
	};
	return 0;
}
