// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/filter.h"

#include <string.h>

#include "base/hex.h"
#include "host/container.h"

static bool filter_same(const char *wanted, const char *value)
{
	return !wanted || (*value && !strcmp(wanted, value));
}

/* A client is "HOST", "HOST(PORT)" or "HOST:PORT". */
static bool filter_client(const char *wanted, const char *client)
{
	size_t len = wanted ? strlen(wanted) : 0;

	if (!wanted || !*client || strncmp(wanted, client, len))
		return !wanted;
	return !client[len] || client[len] == '(' ||
	       (client[len] == ':' && !strchr(client + len + 1, ':'));
}

/* Match the first digits of an ID, of which CONTAINER_DIGITS are kept, or a whole name. */
static bool filter_container(const char *wanted, const char *container)
{
	size_t len = wanted ? strlen(wanted) : 0;

	if (!wanted || !*container)
		return !wanted;
	if (strspn(container, HEX_DIGITS) != CONTAINER_DIGITS || container[CONTAINER_DIGITS] ||
	    strspn(wanted, HEX_DIGITS) != len)
		return !strcmp(wanted, container);
	return !strncmp(wanted, container, len < CONTAINER_DIGITS ? len : CONTAINER_DIGITS);
}

bool filter_any(const struct filter *filter)
{
	return filter->user || filter->database || filter->client || filter->container ||
	       filter->application || filter->backend || filter->match;
}

bool filter_selects(const struct filter *filter, const struct server *server,
		    const struct who *who, const char *text, size_t len)
{
	return filter_same(filter->user, who->user) &&
	       filter_same(filter->database, who->database) &&
	       filter_client(filter->client, who->client) &&
	       filter_same(filter->application, who->application) &&
	       filter_same(filter->backend, who->backend) &&
	       filter_container(filter->container, server->container) &&
	       (!filter->match || (text && regex_match(filter->match, text, len)));
}
