// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdlib.h>

#include "db/engine.h"
#include "db/postgres.h"
#include "db/process.h"
#include "tests/unit/check.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void titles(void)
{
	static const struct {
		const char *title, *user, *database, *client;
	} cases[] = {
		{ "postgres: alice shop [local] idle", "alice", "shop", "[local]" },
		{ "postgres: 15/main: alice shop 10.0.0.7(4711) SELECT", "alice", "shop",
		  "10.0.0.7(4711)" },
		{ "postgres: alice shop ::1(4711) idle in transaction", "alice", "shop", "::1(4711)" },
		{ "postgres: a name shop [local] idle", "", "", "" },
		{ "postgres: walsender alice [local] streaming 0/1", "", "", "" },
		{ "postgres: checkpointer ", "", "", "" },
		{ "postgres: autovacuum worker shop", "", "", "" },
		{ "postgres: ", "", "", "" },
		{ "postgres: x: ", "", "", "" },
		{ "/usr/lib/postgresql/15/bin/postgres -D data", "", "", "" },
		{ "", "", "", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct identity who;

		postgres_identify(cases[i].title, strlen(cases[i].title), &who);
		CHECK(!strcmp(who.user, cases[i].user) && !strcmp(who.database, cases[i].database) &&
		      !strcmp(who.client, cases[i].client), "%s: %s, %s, %s", cases[i].title,
		      who.user, who.database, who.client);
	}
}

static void containers(void)
{
	static const char *const cases[][2] = {
		{ "0::/system.slice/docker-" HEX64 ".scope\n", "0123456789ab" },
		{ "12:pids:/docker/" HEX64 "\n0::/\n", "0123456789ab" },
		{ "0::/machine.slice/libpod-" HEX64 ".scope/container\n", "0123456789ab" },
		{ "0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod12345678_1234.slice/"
		  "cri-containerd-" HEX64 ".scope\n", "0123456789ab" },
		{ "0::/lxc/web1/system.slice\n", "web1" },
		{ "0::/lxc.payload.web1/init.scope\n", "web1" },
		{ "0::/machine.slice/machine-web1.scope\n", "web1" },
		{ "0::/system.slice/postgresql@15-main.service\n", "" },
		{ "4:memory:/process/fa7142eb41cb4bb735811cb5106b7f70\n0::/\n", "" },
		{ "0::/user.slice/user-0.slice/session-1.scope\n", "" },
		{ "", "" },
		{ "\n\n\n", "" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char seen[64];

		process_container_of(cases[i][0], strlen(cases[i][0]), seen, sizeof(seen));
		CHECK(!strcmp(seen, cases[i][1]), "%s: %s", cases[i][0], seen);
	}
}

/* Foreign bytes of any kind: nothing but the buffers is touched (run under the sanitizers). */
static void random_bytes(void)
{
	static const char piece[] = "postgres: /lxc/[local](1) 0a\n/machine.slice/machine-";

	srand(1);
	for (int i = 0; i < 20000; i++) {
		char text[96], container[8];
		size_t len = (size_t)rand() % sizeof(text);
		struct identity who;

		for (size_t at = 0; at < len; at++)
			text[at] = piece[(size_t)rand() % sizeof(piece)];
		if (i % 2 && len > 10)
			memcpy(text, "postgres: ", 10);
		postgres_identify(text, len, &who);
		process_container_of(text, len, container, sizeof(container));
		CHECK(strlen(container) < sizeof(container), "%zu", strlen(container));
	}
}

int main(void)
{
	RUN(titles);
	RUN(containers);
	RUN(random_bytes);
	return check_done();
}
