/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What holds for each event: its server and its session are there, and their strings end. */
#ifndef TESTS_FUZZ_EVENT_H
#define TESTS_FUZZ_EVENT_H

#include "db/engine.h"
#include "db/event.h"
#include "tests/fuzz/fuzz.h"

#define REQUIRE_STRING(array)	REQUIRE(memchr(array, '\0', sizeof(array)))

static inline void check_event(const struct server *server, const struct who *who)
{
	REQUIRE(server && server->engine && server->engine->name);
	REQUIRE(server->product && server->otel_system);
	REQUIRE_STRING(server->version);
	REQUIRE_STRING(server->path);
	REQUIRE_STRING(server->container);
	REQUIRE_STRING(server->directory);
	REQUIRE(who);
	REQUIRE_STRING(who->user);
	REQUIRE_STRING(who->database);
	REQUIRE_STRING(who->client);
	REQUIRE_STRING(who->application);
	REQUIRE_STRING(who->backend);
}

#endif
