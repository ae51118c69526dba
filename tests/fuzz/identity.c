/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Input: the title of a PostgreSQL process, the content of a /proc/PID/cmdline. */
#include "db/event.h"
#include "db/postgres/probes.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t len = strnlen((const char *)data, size);
	struct who who;
	char want[300];
	int n;

	memset(&who, 0xa5, sizeof(who));
	postgres_identify((const char *)data, size, &who);
	REQUIRE(memchr(who.user, 0, sizeof(who.user)));
	REQUIRE(memchr(who.database, 0, sizeof(who.database)));
	REQUIRE(memchr(who.client, 0, sizeof(who.client)));
	/* The title contains all three in this order. */
	if (!*who.user || !*who.database || !*who.client)
		return 0;
	n = snprintf(want, sizeof(want), " %s %s %s", who.user, who.database, who.client);
	REQUIRE(memmem(data, len, want, (size_t)n), "%s", want);
	return 0;
}
