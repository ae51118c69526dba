// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/locks/info.h"

#include <stdlib.h>
#include <string.h>

void lock_backend_text(struct lock_backend *backend, size_t len)
{
	char *less = realloc(backend->text, len + !len);

	if (less)
		backend->text = less;
	backend->len = len;
}

void lock_info_drop(struct lock_info *info)
{
	for (unsigned int i = 0; i < info->nholders; i++)
		free(info->holders[i].text);
	info->nholders = info->more = 0;
}

void lock_info_clear(struct lock_info *info)
{
	free(info->self.text);
	info->self.text = NULL;
	lock_info_drop(info);
}

/* Return the index for one more backend; LOCK_HOLDERS_KEPT: there is none. */
static unsigned int info_place(const struct lock_info *info, bool queued)
{
	unsigned int i = info->nholders;

	if (i < LOCK_HOLDERS_KEPT || queued)
		return i;
	for (i = 0; i < LOCK_HOLDERS_KEPT && !info->holders[i].queued; i++)
		continue;
	return i;
}

bool lock_info_has_room(const struct lock_info *info, bool queued)
{
	return info_place(info, queued) < LOCK_HOLDERS_KEPT;
}

void lock_info_add(struct lock_info *info, struct lock_backend *backend)
{
	unsigned int at = info_place(info, backend->queued);

	if (at == LOCK_HOLDERS_KEPT) {
		free(backend->text);
		info->more++;
		return;
	}
	if (at == info->nholders) {
		info->nholders++;
	} else {
		free(info->holders[at].text);
		info->more++;
	}
	info->holders[at] = *backend;
}

void lock_info_credit(struct lock_info *info, uint64_t now_ns)
{
	bool blocked = false;

	if (now_ns <= info->credited_ns)
		return;
	for (unsigned int i = 0; i < info->nholders; i++) {
		struct lock_backend *holder = &info->holders[i];

		if (holder->current)
			holder->blocked_ns += now_ns - info->credited_ns;
		blocked |= holder->current;
	}
	/* The first holders to be read are those since the start. */
	if (blocked)
		info->credited_ns = now_ns;
}

/* Return the element for a holder of which none is kept: unused, or of the shortest past one. */
static struct lock_backend *info_room(struct lock_info *info)
{
	struct lock_backend *least = NULL;

	if (info->nholders < LOCK_HOLDERS_KEPT)
		return &info->holders[info->nholders++];
	for (unsigned int i = 0; i < info->nholders; i++) {
		struct lock_backend *holder = &info->holders[i];

		if (!holder->current && (!least || holder->blocked_ns < least->blocked_ns))
			least = holder;
	}
	if (least) {
		free(least->text);
		info->dropped++;
	}
	return least;
}

static struct lock_backend *info_find(struct lock_info *info, const struct lock_backend *backend)
{
	for (unsigned int i = 0; i < info->nholders; i++)
		if (info->holders[i].pid == backend->pid &&
		    info->holders[i].connection == backend->connection &&
		    info->holders[i].queued == backend->queued)
			return &info->holders[i];
	return NULL;
}

/* Mark the holders that are among those in @fresh, and no others, as current. */
static void info_mark(struct lock_info *info, const struct lock_info *fresh)
{
	for (unsigned int i = 0; i < info->nholders; i++)
		info->holders[i].current = false;
	for (unsigned int i = 0; i < fresh->nholders; i++) {
		struct lock_backend *holder = info_find(info, &fresh->holders[i]);

		if (holder)
			holder->current = true;
	}
}

/*
 * Add or update a current holder, which is taken over. What it does is replaced if it has become
 * idle, or if @now: the COMMIT that ends a wait is not the reason for its duration. Return whether
 * there was room.
 */
static bool info_merge(struct lock_info *info, struct lock_backend *fresh, bool now)
{
	struct lock_backend *holder = info_find(info, fresh);

	fresh->current = true;
	if (holder) {
		fresh->blocked_ns = holder->blocked_ns;
		if (holder->valid && !fresh->idle && !now) {
			free(fresh->text);
			return true;
		}
		free(holder->text);
	} else {
		holder = info_room(info);
	}
	if (holder)
		*holder = *fresh;
	else
		free(fresh->text);
	return holder;
}

/* Replace what does not depend on the holders, unless it is unknown in @fresh. */
static void info_replace(struct lock_info *info, struct lock_info *fresh)
{
	free(info->self.text);
	info->self = fresh->self;
	info->event = fresh->event;
	info->lock = fresh->lock;
	info->begun_ns = fresh->begun_ns;
	if (fresh->relation)
		info->relation = fresh->relation;
	if (*fresh->name)
		memcpy(info->name, fresh->name, sizeof(info->name));
	if (*fresh->object)
		memcpy(info->object, fresh->object, sizeof(info->object));
	if (*fresh->who.user)
		info->who = fresh->who;
	if (*fresh->index)
		memcpy(info->index, fresh->index, sizeof(info->index));
}

void lock_info_update(struct lock_info *info, struct lock_info *fresh, int err, uint64_t now_ns,
		      bool now)
{
	unsigned int more = fresh->more;
	bool first = !info->self.pid, stale = info->lock && fresh->lock != info->lock;

	if (!first && (err || stale || (info->nholders && !fresh->nholders))) {
		lock_info_clear(fresh);
		return;
	}
	lock_info_credit(info, now_ns);
	info_replace(info, fresh);
	info->known = !err && fresh->known;
	info_mark(info, fresh);
	for (unsigned int i = 0; i < fresh->nholders; i++)
		more += !info_merge(info, &fresh->holders[i], now);
	more += info->dropped;
	if (info->more < more)
		info->more = more;
}
