// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/report/marks.h"

void report_mark_statement(struct report_mark *mark, const struct statement *s,
			   const char *engine, uint64_t hash)
{
	*mark = (struct report_mark){
		.wall_ns = s->wall_ns, .duration_ns = s->duration_ns, .engine = engine,
		.session = { s->who->pid, s->who->connection }, .hash = hash, .failed = s->failed,
	};
}

void report_mark_wait(struct report_mark *mark, const struct lock_wait *wait, const char *engine)
{
	const struct lock_info *info = wait->info;

	*mark = (struct report_mark){
		.wall_ns = wait->wall_ns, .duration_ns = wait->duration_ns, .engine = engine,
		.session = { wait->who->pid, wait->who->connection },
		.failed = wait->event->flags & LOCK_DEADLOCK,
	};
	for (; info && mark->nholders < info->nholders && mark->nholders < LOCK_HOLDERS_KEPT;
	     mark->nholders++) {
		const struct lock_backend *holder = &info->holders[mark->nholders];

		mark->holders[mark->nholders] = (struct report_mark_holder){
			.session = { holder->pid, holder->connection },
			.blocked_ns = holder->blocked_ns, .queued = holder->queued,
			.idle = holder->valid && holder->idle_valid && holder->idle,
		};
	}
}

void report_marks_add(struct report_marks *marks, const struct report_mark *mark)
{
	struct report_mark *to = &marks->marks[0];

	if (marks->count < REPORT_MARKS) {
		marks->marks[marks->count++] = *mark;
		return;
	}
	for (unsigned int i = 1; i < REPORT_MARKS; i++)
		if (marks->marks[i].duration_ns < to->duration_ns)
			to = &marks->marks[i];
	if (to->duration_ns < mark->duration_ns)
		*to = *mark;
}
