// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/session/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "bpf/event.h"
#include "host/process.h"

static struct identity_entry **identity_place(struct identity_table *table, uint32_t tid)
{
	struct identity_entry **place = &table->bucket[tid % IDENTITY_BUCKETS];

	while (*place && (*place)->who.tid != tid)
		place = &(*place)->next;
	return place;
}

void identity_read(const struct engine *engine, uint32_t tid, struct who *who)
{
	char title[512];
	ssize_t len;

	*who->user = *who->database = *who->client = *who->backend = '\0';
	if (engine->identify) {
		len = process_title(tid, title, sizeof(title));
		engine->identify(title, len > 0 ? (size_t)len : 0, who);
	}
	if (!engine->identify || *who->user)
		snprintf(who->backend, sizeof(who->backend), "client");
}

/* Return the entry of @tid, which @*added tells to be new, or NULL. */
static struct identity_entry *identity_entry(struct identity_table *table, uint32_t tid,
					     bool *added)
{
	struct identity_entry **place = identity_place(table, tid);

	*added = !*place;
	if (!*place) {
		*place = calloc(1, sizeof(**place));
		if (*place)
			(*place)->who.tid = tid;
	}
	return *place;
}

struct identity_entry *identity_of(struct identity_table *table, const struct engine *engine,
				   uint32_t tid)
{
	bool added;
	struct identity_entry *entry = identity_entry(table, tid, &added);

	if (entry && added)
		identity_read(engine, tid, &entry->who);
	return entry;
}

void identity_set(struct identity_table *table, uint32_t tid, const struct who *who)
{
	bool added;
	struct identity_entry *entry = identity_entry(table, tid, &added);

	if (!entry)
		return;
	memcpy(entry->who.user, who->user, sizeof(who->user));
	memcpy(entry->who.database, who->database, sizeof(who->database));
	memcpy(entry->who.client, who->client, sizeof(who->client));
	memcpy(entry->who.backend, who->backend, sizeof(who->backend));
}

/*
 * A name that was given after a statement had completed or failed becomes current with the next
 * statement, or the present one, which began at @start_ns, if it has not @failed after all.
 */
static void identity_apply(struct identity_entry *entry, uint64_t start_ns, bool failed)
{
	if (!entry->renamed_in ||
	    (entry->renamed_in == start_ns && (failed || !entry->renamed_failed)))
		return;
	memcpy(entry->who.application, entry->renamed, sizeof(entry->renamed));
	entry->renamed_in = 0;
}

void identity_rename(struct identity_table *table, const struct event_application *event)
{
	bool added;
	struct identity_entry *entry = identity_entry(table, event->session.tid, &added);
	char *name;

	if (!entry)
		return;
	identity_apply(entry, event->start_ns, event->failed);
	entry->renamed_in = event->start_ns;
	entry->renamed_failed = event->failed;
	name = event->start_ns ? entry->renamed : entry->who.application;
	snprintf(name, sizeof(entry->renamed), "%.*s", (int)sizeof(event->name), event->name);
	utf8_trim(name, sizeof(entry->renamed));
}

void identity_settle(struct identity_entry *entry, const struct event_statement *event)
{
	identity_apply(entry, event->start_ns, event->flags & STATEMENT_ERROR);
}

void identity_forget_servers(struct identity_table *table)
{
	for (uint32_t i = 0; i < IDENTITY_BUCKETS; i++)
		for (struct identity_entry *one = table->bucket[i]; one; one = one->next)
			one->server = NULL;
}

void identity_forget(struct identity_table *table, uint32_t tid)
{
	struct identity_entry **place = identity_place(table, tid);
	struct identity_entry *entry = *place;

	if (entry) {
		*place = entry->next;
		free(entry);
	}
}

void identity_clear(struct identity_table *table)
{
	for (uint32_t i = 0; i < IDENTITY_BUCKETS; i++)
		while (table->bucket[i])
			identity_forget(table, table->bucket[i]->who.tid);
}
