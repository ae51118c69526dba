// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/locks_wait.h"

#include "db/locks/ops.h"

const char *locks_wait_mode(const struct engine *engine, const struct event_lock *event)
{
	const struct lock_ops *ops = engine->lock_ops;

	return ops && ops->mode ? ops->mode(event) : "";
}

const char *locks_wait_outcome(const struct lock_wait *wait)
{
	if (wait->running)
		return "waiting";
	if (wait->event->flags & LOCK_DEADLOCK)
		return "deadlock";
	if (wait->event->flags & LOCK_FAILED)
		return wait->event->flags & LOCK_TIMEOUT ? "timeout" :
		       wait->event->flags & LOCK_KILLED ? "killed" : "failed";
	/* MySQL and MariaDB report failures only, after the wait. */
	return wait->event->flags & LOCK_SESSION && !(wait->event->flags & LOCK_GRANTED) ?
	       "ended" : "granted";
}

void locks_wait_object(const struct lock_wait *wait, bool each, char *to, size_t size)
{
	const struct lock_ops *ops = wait->server->engine->lock_ops;

	*to = '\0';
	if (ops)
		ops->object(wait->kind, wait->event, wait->info, each, to, size);
}

uint64_t locks_backend_id(const struct lock_backend *backend)
{
	return backend->connection ? backend->connection : backend->pid;
}
