// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/names.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"

/* The member objsubid of an advisory lock's tag: keys are one bigint (1) or two integers (2). */
#define ADVISORY_TWO_KEYS	2

/* A lock and the text of its relation. */
struct object {
	const struct event_lock *event;
	const char *relation;
	bool each;
	char *to;
	size_t size;
};

static void object_relation(const struct object *o)
{
	snprintf(o->to, o->size, "%s", o->relation);
}

static void object_page(const struct object *o)
{
	if (o->each)
		snprintf(o->to, o->size, "%u of %s", o->event->field[2], o->relation);
	else
		snprintf(o->to, o->size, "of %s", o->relation);
}

static void object_tuple(const struct object *o)
{
	const uint32_t *field = o->event->field;

	if (o->each)
		snprintf(o->to, o->size, "(%u,%u) of %s", field[2], field[3], o->relation);
	else
		snprintf(o->to, o->size, "of %s", o->relation);
}

static void object_first(const struct object *o)
{
	if (o->each)
		snprintf(o->to, o->size, "%u", o->event->field[0]);
}

static void object_virtualxid(const struct object *o)
{
	if (o->each)
		snprintf(o->to, o->size, "%u/%u", o->event->field[0], o->event->field[1]);
}

static void object_catalog(const struct object *o)
{
	snprintf(o->to, o->size, "%u of class %u", o->event->field[2], o->event->field[1]);
}

static void object_advisory(const struct object *o)
{
	const uint32_t *field = o->event->field;

	if (field[3] == ADVISORY_TWO_KEYS)
		snprintf(o->to, o->size, "%d,%d", (int)field[1], (int)field[2]);
	else
		snprintf(o->to, o->size, "%lld",
			 (long long)((uint64_t)field[1] << 32 | field[2]));
}

/* The meaning of a LOCKTAG's fields by kind of lock (src/include/storage/lock.h). */
static const struct tag {
	const char *kind;
	uint32_t fields;
	void (*object)(const struct object *o);
} tags[] = {
	{ "relation", LOCK_TAG_DATABASE | LOCK_TAG_RELATION, object_relation },
	{ "extend", LOCK_TAG_DATABASE | LOCK_TAG_RELATION, object_relation },
	{ "page", LOCK_TAG_DATABASE | LOCK_TAG_RELATION, object_page },
	{ "tuple", LOCK_TAG_DATABASE | LOCK_TAG_RELATION, object_tuple },
	{ "transactionid", LOCK_TAG_TRANSACTION, object_first },
	{ "virtualxid", 0, object_virtualxid },
	{ "object", LOCK_TAG_DATABASE, object_catalog },
	{ "advisory", LOCK_TAG_DATABASE, object_advisory },
};

static const struct tag tag_unknown = { "", 0, object_first };

static const struct tag *tag_find(const char *kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(tags); i++)
		if (!strcmp(tags[i].kind, kind))
			return &tags[i];
	return &tag_unknown;
}

uint32_t postgres_lock_fields(const char *kind)
{
	return tag_find(kind)->fields;
}

uint32_t postgres_lock_relation(const char *kind, const struct event_lock *event,
				const struct lock_info *info)
{
	if (postgres_lock_fields(kind) & LOCK_TAG_RELATION)
		return event->field[1];
	return info ? info->relation : 0;
}

const char *postgres_lock_mode(const struct event_lock *event)
{
	static const char *const heavyweight[] = {
		"", "AccessShareLock", "RowShareLock", "RowExclusiveLock",
		"ShareUpdateExclusiveLock", "ShareLock", "ShareRowExclusiveLock",
		"ExclusiveLock", "AccessExclusiveLock",
	};
	static const char *const lwlock[LWLOCK_MODES] = { "exclusive", "shared", "until free" };

	if (event->flags & LOCK_LWLOCK)
		return event->mode < LWLOCK_MODES ? lwlock[event->mode] : "";
	return event->mode < ARRAY_SIZE(heavyweight) ? heavyweight[event->mode] : "";
}

/* The relation's name and OID, or the OID alone if the name is unknown. */
static void relation_text(uint32_t relation, const struct lock_info *info, char *to, size_t size)
{
	if (info && *info->name)
		snprintf(to, size, "%s (%u)", info->name, relation);
	else
		snprintf(to, size, "%u", relation);
}

void postgres_lock_object(const char *kind, const struct event_lock *event,
			  const struct lock_info *info, bool each, char *to, size_t size)
{
	const struct tag *tag = tag_find(kind);
	char relation[LOCK_RELATION + 16];
	struct object o = { event, relation, each, to, size };

	*to = '\0';
	if (event->flags & LOCK_LWLOCK) {
		snprintf(to, size, "%.*s", LOCK_NAME, event->name);
		return;
	}
	relation_text(postgres_lock_relation(kind, event, info), info, relation,
		      sizeof(relation));
	/* A wait for the transaction that changed a row. */
	if (tag->object != object_tuple && info && info->relation && each)
		snprintf(to, size, "%u, row (%u,%u) of %s", event->field[0], event->block,
			 event->offset, relation);
	else if (tag->object != object_tuple && info && info->relation)
		snprintf(to, size, "rows of %s", relation);
	else
		tag->object(&o);
}
