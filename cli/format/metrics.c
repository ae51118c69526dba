// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/format/escape.h"
#include "cli/format/otlp.h"
#include "loader/owners.h"

#define LABEL_MAX	256	/* bytes, with the NUL */
#define TEXT_MAX	1024	/* of a fingerprint, the same */
#define BOUND_FIRST	10000	/* ns */

/* The labels of one statement, in order. */
struct key {
	size_t len;
	char text[METRICS_LABELS * LABEL_MAX];
};

/* Without characters that an output would escape: each label occurs in many lines. */
static void key_add(struct key *key, const char *text)
{
	char *at = key->text + key->len;

	key->len += escape_copy(at, LABEL_MAX, text ? text : "") + 1;
	for (; *at; at++)
		*at = strchr("\"\\\n", *at) ? '?' : *at;
}

/* Add the command of @s in lower case. Others than these are any word that a client has sent. */
static void key_add_command(struct key *key, const struct statement *s)
{
	static const char *const commands =
		" alter analyze begin call checkpoint close comment commit copy create deallocate "
		"declare delete describe discard do drop execute explain fetch flush grant handler "
		"insert kill listen load lock merge move notify optimize prepare reindex release "
		"rename repair replace reset revoke rollback savepoint select set show start "
		"truncate unlisten unlock update use vacuum values with xa ";
	char word[OTLP_OPERATION + 3] = " ";
	size_t len;

	otlp_operation(s, word + 1);
	len = strlen(word + 1);
	for (size_t i = 1; i <= len; i++)
		word[i] |= 0x20;
	strcpy(word + len + 1, " ");
	if (len && strstr(commands, word))
		word[len + 1] = '\0';
	else
		strcpy(word + 1, len || (s->text && !s->truncated) ? "other" : "");
	key_add(key, word + 1);
}

/*
 * Add the server, its container and its data directory, which it keeps when it restarts, and the
 * user, which is known also of a process whose server was not found.
 */
static void key_add_server(struct key *key, const struct statement *s)
{
	const struct server *server = s->server;
	char text[sizeof(server->container) + sizeof(server->directory) + 2] = "", uid[16] = "";

	if (server->pid)
		snprintf(text, sizeof(text), "%s%s%s", server->container,
			 *server->container && *server->directory ? ":" : "", server->directory);
	if (server->has_uid)
		snprintf(uid, sizeof(uid), "%u", server->uid);
	key_add(key, text);
	key_add(key, uid);
}

static void key_make(struct key *key, const struct statement *s, uint64_t hash, bool by_hash)
{
	char digits[17] = "";

	key->len = 0;
	key_add(key, s->server->product);
	key_add_server(key, s);
	key_add(key, s->who->database);
	if (by_hash) {
		snprintf(digits, sizeof(digits), "%016llx", (unsigned long long)hash);
		key_add(key, "");
		key_add(key, "");
	} else {
		key_add(key, s->who->user);
		key_add_command(key, s);
	}
	key_add(key, digits);
	key_add(key, s->who->backend);
}

/* FNV-1a */
static uint64_t key_hash(const struct key *key)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < key->len; i++)
		hash = (hash ^ (unsigned char)key->text[i]) * 0x100000001b3;
	return hash;
}

static struct metrics_series *series_new(const struct key *key, uint64_t hash, uint32_t uid,
					 const char *fingerprint)
{
	struct metrics_series *series = calloc(1, sizeof(*series) + key->len);

	if (!series)
		return NULL;
	series->hash = hash;
	series->uid = uid;
	series->len = (uint32_t)key->len;
	memcpy(series->labels, key->text, key->len);
	if (!fingerprint)
		return series;
	series->text = malloc(TEXT_MAX);
	if (series->text)
		escape_copy(series->text, TEXT_MAX, fingerprint);
	return series;
}

/* Return which limits another series for the user @uid would exceed; 0: it fits. */
static unsigned int metrics_limits(const struct metrics *m, uint32_t uid)
{
	size_t used = 0;

	if (m->count > METRICS_SERIES)
		return METRICS_LIMIT_ALL;
	for (size_t i = 1; i < m->count; i++)
		used += m->series[i]->uid == uid;
	return used < OWNER_SHARE(METRICS_SERIES) ? 0 : METRICS_LIMIT_USER;
}

/* Return the series with the labels @key, a new one if necessary. */
static struct metrics_series *metrics_find(struct metrics *m, const struct key *key, uint32_t uid,
					   const char *fingerprint)
{
	uint64_t hash = key_hash(key);
	size_t at = hash % METRICS_SLOTS;
	struct metrics_series *series;
	unsigned int limits;

	for (; m->slot[at]; at = (at + 1) % METRICS_SLOTS) {
		series = m->series[m->slot[at]];
		if (series->hash == hash && series->len == key->len &&
		    !memcmp(series->labels, key->text, key->len))
			return series;
	}
	limits = metrics_limits(m, uid);
	series = !limits ? series_new(key, hash, uid, fingerprint) : NULL;
	if (!series) {
		m->limited |= limits ? limits : METRICS_LIMIT_ALL;
		return m->series[0];
	}
	m->slot[at] = (uint16_t)m->count;
	m->series[m->count++] = series;
	return series;
}

int metrics_open(struct metrics *m)
{
	struct key none = { .len = METRICS_LABELS };

	*m = (struct metrics){ .count = 1 };
	m->series[0] = series_new(&none, 0, 0, NULL);
	return m->series[0] ? 0 : -ENOMEM;
}

void metrics_close(struct metrics *m)
{
	for (size_t i = 0; i < m->count && m->series[i]; i++) {
		free(m->series[i]->text);
		free(m->series[i]);
	}
	m->count = 0;
}

uint64_t metrics_bound_ns(unsigned int i)
{
	uint64_t bound = BOUND_FIRST;

	for (; i >= 3; i -= 3)
		bound *= 10;
	return i == 2 ? bound * 5 : i ? bound * 5 / 2 : bound;
}

const char *metrics_bound_text(unsigned int i)
{
	static const char bounds[METRICS_BOUNDS + 1][8] = {
		"1e-05", "2.5e-05", "5e-05", "0.0001", "0.00025", "0.0005", "0.001", "0.0025",
		"0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1.0", "2.5", "5.0", "10.0",
		"25.0", "50.0", "100.0", "+Inf",
	};

	return bounds[i];
}

void metrics_add(struct metrics *m, const struct statement *s, uint64_t hash,
		 const char *fingerprint)
{
	uint32_t uid = s->server->has_uid ? s->server->uid : UINT32_MAX;
	struct metrics_series *series;
	unsigned int bucket = 0;
	struct key key;

	key_make(&key, s, hash, fingerprint);
	series = metrics_find(m, &key, uid, fingerprint);
	while (bucket < METRICS_BOUNDS && s->duration_ns > metrics_bound_ns(bucket))
		bucket++;
	series->bucket[bucket]++;
	series->count++;
	series->sum_ns += s->duration_ns;
	series->errors += s->failed;
	series->rows += s->has_rows ? s->rows : 0;
	for (int i = 0; s->why && i < BREAKDOWN_PARTS; i++)
		series->part_ns[i] += s->why->ns[i];
}

const char *metrics_label(const struct metrics_series *series, enum metrics_label label)
{
	const char *text = series->labels;

	while (label--)
		text += strlen(text) + 1;
	return text;
}
