// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/kind.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "host/process.h"
#include "usdt/elf_symbol.h"

#define WORKER_TYPE	96	/* bgw_type of struct BackgroundWorker, behind bgw_name[96] */

void postgres_kinds_find(const struct elf *elf, struct postgres_kinds *kinds)
{
	*kinds = (struct postgres_kinds){
		.client = elf_symbol_value(elf, "MyProcPort"),
		.replication = elf_symbol_value(elf, "am_walsender"),
		.worker = elf_symbol_value(elf, "MyBgworkerEntry"),
		.has_types = elf_symbol_value(elf, "GetBackgroundWorkerTypeByPid"),
	};
}

uint64_t postgres_pointer(const struct process_memory *memory, uint64_t variable)
{
	uint64_t value = 0;

	if (!variable || process_memory_variable(memory, variable, &value, sizeof(value)))
		return 0;
	return value;
}

bool postgres_kind_is_client(const struct postgres_kinds *kinds,
			     const struct process_memory *memory)
{
	uint8_t replication;

	return postgres_pointer(memory, kinds->client) &&
	       !process_memory_variable(memory, kinds->replication, &replication,
					sizeof(replication)) && !replication;
}

bool postgres_kind_is_worker(const struct postgres_kinds *kinds,
			     const struct process_memory *memory)
{
	return postgres_pointer(memory, kinds->worker);
}

/* What pg_stat_activity calls the processes with these titles, of 10 and later ones. */
static const struct title {
	const char *title, *name;
} titles[] = {
	{ "walsender ", "walsender" },
	{ "wal sender process ", "walsender" },
	{ "autovacuum launcher", "autovacuum launcher" },
	{ "autovacuum worker", "autovacuum worker" },
	{ "background writer", "background writer" },
	{ "writer process", "background writer" },
	{ "checkpointer", "checkpointer" },
	{ "walwriter", "walwriter" },
	{ "wal writer", "walwriter" },
	{ "startup", "startup" },
	{ "walreceiver", "walreceiver" },
	{ "wal receiver", "walreceiver" },
	{ "archiver", "archiver" },
	{ "walsummarizer", "walsummarizer" },
	{ "slotsync worker", "slotsync worker" },
	{ "io worker", "io worker" },
};

/* Find the kind that @title has behind ": ", and what follows it; NULL: none. */
static const struct title *title_kind(const char *title, const char **rest)
{
	for (const char *at = title; (at = strstr(at, ": ")); ) {
		at += 2;
		for (size_t i = 0; i < ARRAY_SIZE(titles); i++) {
			size_t len = strlen(titles[i].title);

			if (strncmp(at, titles[i].title, len))
				continue;
			*rest = at + len;
			return &titles[i];
		}
	}
	return NULL;
}

void postgres_kind_title(uint32_t pid, char title[KIND_TITLE])
{
	ssize_t len = process_title(pid, title, KIND_TITLE - 1);

	title[len > 0 ? len : 0] = '\0';
}

const char *postgres_kind_rest(const char *title)
{
	const char *rest;

	return title_kind(title, &rest) ? rest : NULL;
}

/* Read the type of a background worker. Return whether it is one. */
static bool worker_type(const struct postgres_kinds *kinds, const struct process_memory *memory,
			char type[BACKEND_NAME])
{
	uint64_t worker = postgres_pointer(memory, kinds->worker);
	ssize_t n;

	if (!worker)
		return false;
	n = kinds->has_types ? process_memory_read(memory, worker + WORKER_TYPE, type,
						   BACKEND_NAME - 1) : 0;
	type[n > 0 ? n : 0] = '\0';
	if (!*type)
		snprintf(type, BACKEND_NAME, "background worker");
	return true;
}

void postgres_kind_read(const struct postgres_kinds *kinds, const struct process_memory *memory,
			uint32_t pid, char kind[BACKEND_NAME])
{
	const struct title *known;
	char title[KIND_TITLE];
	const char *rest;

	if (worker_type(kinds, memory, kind))
		return;
	if (postgres_kind_is_client(kinds, memory)) {
		snprintf(kind, BACKEND_NAME, "client");
		return;
	}
	postgres_kind_title(pid, title);
	known = title_kind(title, &rest);
	snprintf(kind, BACKEND_NAME, "%s", known ? known->name : "");
}
