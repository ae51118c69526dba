// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/postgres/catalog.h"
#include "db/postgres/entry.h"
#include "db/session/identity.h"
#include "host/process.h"

#define PORT_WORDS	64	/* of a struct Port that are searched */
#define NAME_BYTES	64	/* of a name, with the NUL: NAMEDATALEN */

/*
 * Set user, database and client of a process if its title begins with @user and @database, behind
 * "postgres: " and the name of the cluster. Return whether it does.
 */
static bool title_names(const char *title, const char *user, const char *database, struct who *who)
{
	size_t len = strlen(user) + strlen(database) + 2;
	const char *at = title;
	char names[2 * NAME_BYTES + 2];

	snprintf(names, sizeof(names), "%s %s ", user, database);
	while ((at = strstr(at, ": "))) {
		at += 2;
		if (strncmp(at, names, len))
			continue;
		snprintf(who->user, sizeof(who->user), "%s", user);
		snprintf(who->database, sizeof(who->database), "%s", database);
		snprintf(who->client, sizeof(who->client), "%.*s", (int)strcspn(at + len, " "),
			 at + len);
		return true;
	}
	return false;
}

static bool name_read(const struct process_memory *memory, uint64_t address,
		      char name[NAME_BYTES])
{
	ssize_t n = address < 4096 ? 0 : process_memory_read(memory, address, name, NAME_BYTES);

	return n > 0 && *name && memchr(name, '\0', (size_t)n);
}

/*
 * Read the names from struct Port (libpq/libpq-be.h): in a process title those with a blank are
 * ambiguous. Where database_name and user_name are depends on the release; the title verifies them.
 */
static void port_names(const struct postgres_ps *ps, const struct process_memory *memory,
		       struct who *who)
{
	char title[512], user[NAME_BYTES], database[NAME_BYTES];
	ssize_t len = process_title(who->pid, title, sizeof(title) - 1);
	uint64_t port = postgres_pointer(memory, ps->locks.serves.client);
	uint64_t words[PORT_WORDS];

	if (len <= 0 || process_memory_read(memory, port, words, sizeof(words)) != sizeof(words))
		return;
	title[len] = '\0';
	for (size_t i = 0; i + 1 < PORT_WORDS; i++)
		if (name_read(memory, words[i], database) &&
		    name_read(memory, words[i + 1], user) &&
		    title_names(title, user, database, who))
			return;
}

void postgres_backend_who(const struct postgres_ps *ps, const struct process_memory *memory,
			  const struct engine *engine, struct who *who)
{
	identity_read(engine, who->pid, who);
	if (!*who->user)
		port_names(ps, memory, who);
	snprintf(who->backend, sizeof(who->backend), "client");
}

uint32_t postgres_backend_internal(const struct postgres_ps *ps,
				   const struct process_memory *memory, const char *entry,
				   struct who *who)
{
	static const char parallel[] = ": parallel worker for PID ";
	char title[KIND_TITLE];
	const char *at;
	size_t len;

	postgres_kind_read(&ps->locks.serves, memory, who->pid, who->backend);
	postgres_catalog_who(who->pid, load32(entry + ENTRY_DATABASE), load32(entry + ENTRY_USER),
			     who);
	postgres_kind_title(who->pid, title);
	at = postgres_kind_is_worker(&ps->locks.serves, memory) ? strstr(title, parallel) : NULL;
	if (at)
		return (uint32_t)strtoul(at + strlen(parallel), NULL, 10);
	/* "walsender USER CLIENT ..." */
	len = strlen(who->user);
	at = strcmp(who->backend, "walsender") ? NULL : postgres_kind_rest(title);
	if (!at || !len || strncmp(at, who->user, len) || at[len] != ' ')
		return 0;
	snprintf(who->client, sizeof(who->client), "%.*s", (int)strcspn(at + len + 1, " "),
		 at + len + 1);
	return 0;
}

const char *postgres_backend_text(const struct postgres_ps *ps, const struct process_memory *memory)
{
	uint8_t applies = 0;

	if (ps->applies)
		process_memory_variable(memory, ps->applies, &applies, sizeof(applies));
	return applies ? EVENT_APPLY : NULL;
}
