// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/report/kept.h"

#include <stdlib.h>
#include <string.h>

#define HOLDER_TEXT	512

int report_longest_add(struct report_longest *longest, uint64_t ns)
{
	unsigned int at = longest->least;

	if (longest->count < REPORT_KEPT)
		at = longest->count++;
	else if (ns <= longest->ns[at])
		return -1;
	longest->ns[at] = ns;
	for (unsigned int i = longest->least = 0; i < longest->count; i++)
		if (longest->ns[i] < longest->ns[longest->least])
			longest->least = i;
	return (int)at;
}

void report_longest_sort(const struct report_longest *longest, unsigned int order[REPORT_KEPT])
{
	for (unsigned int i = 0; i < longest->count; i++) {
		unsigned int at = i;

		for (; at && longest->ns[order[at - 1]] < longest->ns[i]; at--)
			order[at] = order[at - 1];
		order[at] = i;
	}
}

static void keep_name(char to[REPORT_NAME], const char *from)
{
	size_t len = from ? strnlen(from, REPORT_NAME - 1) : 0;

	if (len)
		memcpy(to, from, len);
	to[len] = '\0';
}

static void keep_text(struct report_text *to, const char *text, size_t len, bool cut, size_t most)
{
	*to = (struct report_text){ .cut = cut || len > most };
	to->len = (uint32_t)(len < most ? len : most);
	to->bytes = text ? malloc(to->len + 1) : NULL;
	if (to->bytes)
		memcpy(to->bytes, text, to->len);
}

/* Append @len bytes of @text, of which there is room for @most. */
static void text_append(struct report_text *to, const char *text, size_t len, size_t most)
{
	if (len > most - to->len)
		len = most - to->len;
	memcpy(to->bytes + to->len, text, len);
	to->len += (uint32_t)len;
}

/* Mark the text of a statement in a routine, as field_table.c does. */
static void keep_level(struct report_text *to, uint32_t level)
{
	size_t marks = level < NESTED_LEVELS ? level : NESTED_LEVELS;
	char *more = to->bytes ? realloc(to->bytes, to->len + marks + 2) : NULL;

	if (!more)
		return;
	memmove(more + marks + 1, more, to->len);
	memset(more, '>', marks);
	more[marks] = ' ';
	to->bytes = more;
	to->len += (uint32_t)marks + 1;
}

/*
 * Append the text behind that of an EXECUTE or a FETCH, or that of the caller, as field_table.c
 * does.
 */
static void keep_other(struct report_text *to, const struct statement *s)
{
	const char *before = s->level ? " [in: " : " [of: ";
	size_t most = 2 * REPORT_TEXT;
	char *more = to->bytes ? realloc(to->bytes, most) : NULL;

	if (!more)
		return;
	to->bytes = more;
	if (to->cut)
		text_append(to, "...", 3, most);
	text_append(to, before, strlen(before), most);
	to->cut = s->of_cut || s->of_len > REPORT_TEXT / 2;
	text_append(to, s->of, s->of_len < REPORT_TEXT / 2 ? s->of_len : REPORT_TEXT / 2, most);
	if (!to->cut)
		text_append(to, "]", 1, most);
}

void report_keep_statement(struct report_statement *to, const struct statement *s,
			   const char *engine, uint64_t hash)
{
	report_drop_statement(to);
	*to = (struct report_statement){
		.kept = { .wall_ns = s->wall_ns, .duration_ns = s->duration_ns, .engine = engine,
			  .session = { s->who->pid, s->who->connection }, .running = s->running },
		.hash = hash, .rows = s->rows, .has_rows = s->has_rows, .failed = s->failed,
		.error_code = s->error_code, .has_why = s->why,
	};
	keep_name(to->user, s->who->user);
	keep_name(to->database, s->who->database);
	keep_name(to->client, s->who->client);
	memcpy(to->sqlstate, s->sqlstate, sizeof(to->sqlstate) - 1);
	if (s->why)
		memcpy(to->part_ns, s->why->ns, sizeof(to->part_ns));
	keep_text(&to->kept.text, s->text, s->text_len, s->truncated, REPORT_TEXT);
	if (s->level)
		keep_level(&to->kept.text, s->level);
	if (s->of)
		keep_other(&to->kept.text, s);
}

static void keep_holder(struct report_holder *to, const struct lock_backend *from)
{
	*to = (struct report_holder){
		.session = { from->pid, from->connection }, .blocked_ns = from->blocked_ns,
		.queued = from->queued, .running = from->valid && from->running,
		.idle = from->valid && from->idle_valid && from->idle,
	};
	if (from->valid)
		keep_text(&to->text, from->text, from->len, from->cut, HOLDER_TEXT);
}

static void keep_info(struct report_lock_wait *to, const struct lock_info *info)
{
	to->kept.session.connection = info->self.connection;
	keep_text(&to->kept.text, info->self.text, info->self.len, info->self.cut, HOLDER_TEXT);
	to->nholders = info->nholders < LOCK_HOLDERS_KEPT ? info->nholders : LOCK_HOLDERS_KEPT;
	to->more = info->more;
	to->all = info->known && !info->more;
	for (unsigned int i = 0; i < to->nholders; i++)
		keep_holder(&to->holders[i], &info->holders[i]);
}

void report_keep_wait(struct report_lock_wait *to, const struct lock_wait *wait,
		      const char *engine)
{
	report_drop_wait(to);
	*to = (struct report_lock_wait){
		.kept = { .wall_ns = wait->wall_ns, .duration_ns = wait->duration_ns,
			  .engine = engine, .session = { wait->who->pid, 0 },
			  .running = wait->running },
		.joined = wait->joined, .deadlock = wait->event->flags & LOCK_DEADLOCK,
		.outcome = locks_wait_outcome(wait),
		.mode = locks_wait_mode(wait->server->engine, wait->event),
		.ncycle = wait->ncycle < LOCK_CYCLE ? wait->ncycle : LOCK_CYCLE,
	};
	keep_name(to->kind, wait->kind);
	locks_wait_object(wait, true, to->object, sizeof(to->object));
	memcpy(to->cycle, wait->cycle, sizeof(to->cycle));
	if (wait->info)
		keep_info(to, wait->info);
}

void report_drop_statement(struct report_statement *statement)
{
	free(statement->kept.text.bytes);
	statement->kept.text.bytes = NULL;
}

void report_drop_wait(struct report_lock_wait *wait)
{
	free(wait->kept.text.bytes);
	wait->kept.text.bytes = NULL;
	for (unsigned int i = 0; i < wait->nholders; i++)
		free(wait->holders[i].text.bytes);
	wait->nholders = 0;
}

bool report_session_known(const struct report_session *session)
{
	return session->connection || session->pid;
}

bool report_session_same(const struct report_session *a, const struct report_session *b)
{
	return a->pid == b->pid && a->connection == b->connection;
}
