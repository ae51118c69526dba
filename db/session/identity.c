// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/session/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/event.h"
#include "host/container.h"
#include "host/process.h"

static const struct identity identity_unknown;

static struct identity_entry **identity_place(struct identity_table *table, uint32_t tid)
{
	struct identity_entry **place = &table->bucket[tid % IDENTITY_BUCKETS];

	while (*place && (*place)->tid != tid)
		place = &(*place)->next;
	return place;
}

void identity_read(const struct engine *engine, uint32_t tid, struct identity *identity)
{
	char title[512];
	ssize_t len;

	*identity = identity_unknown;
	if (!engine->identify)
		return;
	len = process_title(tid, title, sizeof(title));
	engine->identify(title, len > 0 ? (size_t)len : 0, identity);
}

static struct identity_entry *identity_entry(struct identity_table *table, uint32_t tid)
{
	struct identity_entry **place = identity_place(table, tid);

	if (!*place) {
		*place = calloc(1, sizeof(**place));
		if (*place) {
			(*place)->tid = tid;
			container_read(tid, (*place)->container, sizeof((*place)->container));
		}
	}
	return *place;
}

void identity_set(struct identity_table *table, uint32_t tid, const struct identity *identity)
{
	struct identity_entry *entry = identity_entry(table, tid);

	if (entry)
		entry->identity = *identity;
}

const char *identity_container(struct identity_table *table, uint32_t tid)
{
	const struct identity_entry *entry = identity_entry(table, tid);

	return entry ? entry->container : "";
}

const struct server **identity_server(struct identity_table *table, uint32_t tid)
{
	struct identity_entry *entry = identity_entry(table, tid);

	return entry ? &entry->server : NULL;
}

/*
 * A name that was given after a statement had completed or failed becomes current with the next
 * statement, or the present one, which began at @start_ns, if it has not @failed after all.
 */
static __attribute__((noinline)) void identity_settle(struct identity_entry *entry,
						       uint64_t start_ns, bool failed)
{
	if (!entry->renamed_in ||
	    (entry->renamed_in == start_ns && (failed || !entry->renamed_failed)))
		return;
	memcpy(entry->application, entry->renamed, sizeof(entry->application));
	entry->renamed_in = 0;
}

void identity_rename(struct identity_table *table, const struct event_application *event)
{
	struct identity_entry *entry = identity_entry(table, event->session.tid);

	if (!entry)
		return;
	identity_settle(entry, event->start_ns, event->failed);
	entry->renamed_in = event->start_ns;
	entry->renamed_failed = event->failed;
	snprintf(event->start_ns ? entry->renamed : entry->application, sizeof(entry->renamed),
		 "%.*s", (int)sizeof(event->name), event->name);
}

const char *identity_application(struct identity_table *table, const struct event_statement *event)
{
	struct identity_entry *entry = identity_entry(table, event->tid);

	if (!entry)
		return "";
	identity_settle(entry, event->start_ns, event->flags & STATEMENT_ERROR);
	return entry->application;
}

void identity_forget_servers(struct identity_table *table)
{
	for (uint32_t i = 0; i < IDENTITY_BUCKETS; i++)
		for (struct identity_entry *one = table->bucket[i]; one; one = one->next)
			one->server = NULL;
}

const struct identity *identity_of(struct identity_table *table, const struct engine *engine,
				   uint32_t tid)
{
	struct identity_entry *entry = *identity_place(table, tid);

	if (!entry) {
		entry = identity_entry(table, tid);
		if (!entry)
			return &identity_unknown;
		identity_read(engine, tid, &entry->identity);
	}
	return &entry->identity;
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
			identity_forget(table, table->bucket[i]->tid);
}
