// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/sink.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/lock_event.h"
#include "db/engine.h"
#include "db/plan/plan.h"
#include "db/ps/session.h"
#include "sql/fingerprint.h"

int sink_open(struct sink *sink, const struct sink_config *config)
{
	*sink = (struct sink){ .config = *config };
	if (!config->stat_unit_ns)
		return 0;
	return histogram_open(&sink->histogram, config->stat_unit_ns, config->stat_by,
			      config->owners);
}

void sink_close(struct sink *sink)
{
	histogram_close(&sink->histogram);
	free(sink->text);
	sink->text = NULL;
	sink->text_size = 0;
}

/* Return a buffer of @size bytes, or NULL: what cannot be redacted is not shown. */
static char *sink_room(struct sink *sink, size_t size)
{
	char *more;

	if (sink->text && size <= sink->text_size)
		return sink->text;
	more = realloc(sink->text, size + 1);
	if (!more)
		return NULL;
	sink->text = more;
	sink->text_size = size + 1;
	return more;
}

/* Set the members of @s that depend on its text. They are valid until the next event. */
static void sink_texts(struct sink *sink, struct statement *s)
{
	const struct sink_config *config = &sink->config;
	enum fingerprint_dialect dialect = s->server->engine->dialect;
	/* A recording may have been redacted. */
	bool redacted = s->original_len;
	char *text = NULL, *of = NULL;
	size_t len = 0, of_len = 0;

	if (config->spans && s->text && !redacted &&
	    traceparent_find(dialect, s->text, s->text_len, s->truncated, &sink->parent))
		s->parent = &sink->parent;
	if (config->tags && !config->redact && s->text && !redacted &&
	    tags_find(dialect, s->text, s->text_len, s->truncated, &sink->tags))
		s->tags = &sink->tags;
	if ((config->redact || config->redact_spans) && s->text)
		text = sink_room(sink, s->text_len + s->of_len);
	if (text)
		len = fingerprint_redact(dialect, s->text, s->text_len,
					 s->truncated || s->unended, text);
	if (text && s->of) {
		of = text + len;
		of_len = fingerprint_redact(dialect, s->of, s->of_len, s->of_cut, of);
	}
	if (config->redact) {
		if (!redacted)
			s->original_len = text ? s->text_len : 0;
		s->text = text;
		s->text_len = len;
		s->of = of;
		s->of_len = of_len;
		s->alike = 0;
	}
	s->span_text = config->redact_spans ? text : s->text;
	s->span_text_len = config->redact_spans ? len : s->text_len;
	s->span_of = config->redact_spans ? of : s->of;
	s->span_of_len = config->redact_spans ? of_len : s->of_len;
}

static void sink_count(struct sink *sink, const struct statement *s, uint16_t owner)
{
	if (!sink->config.stat_waits && !s->prepare)
		histogram_add(&sink->histogram, owner, s, s->duration_ns);
	/* A wait is counted wherever it is, as it is by the programs. */
	for (size_t i = 0; i < s->nwaits; i++)
		histogram_add(&sink->histogram, owner, s, s->waits[i]);
}

bool sink_statement(struct sink *sink, struct statement *s, uint16_t owner)
{
	const struct sink_config *config = &sink->config;
	bool ended = !s->running && !s->transaction;

	if (s->level && !config->nested)
		return false;
	if (!filter_selects(&config->filter, s->server, s->who, s->text, s->text_len) &&
	    !(s->of && filter_selects(&config->filter, s->server, s->who, s->of, s->of_len)))
		return false;
	if (config->stat_unit_ns && ended)
		sink_count(sink, s, owner);
	if (config->stat_unit_ns && !config->records)
		return false;
	sink_texts(sink, s);
	if (!config->statement(config->arg, s))
		return false;
	sink->lost[LOSS_TEXT_UNREADABLE] += ended && !s->text && !s->no_text;
	sink->lost[LOSS_TEXT_TRUNCATED] += ended && s->truncated;
	return true;
}

/*
 * Redact the text of @backend to *@at, which is advanced; NULL: there is no memory. A statement
 * that has ended may have failed as a string had no end.
 */
static void backend_redact(struct lock_backend *backend, enum fingerprint_dialect dialect,
			   char **at)
{
	if (*at && backend->text)
		backend->len = fingerprint_redact(dialect, backend->text, backend->len,
						  backend->cut || !backend->running, *at);
	if (!*at)
		backend->len = 0;
	backend->text = backend->text ? *at : NULL;
	if (*at)
		*at += backend->len;
}

/* Return @info without literals and comments. The name of a user lock is a literal, too. */
static const struct lock_info *sink_redact_wait(struct sink *sink, const struct lock_info *info,
						enum fingerprint_dialect dialect)
{
	struct lock_info *to = &sink->info;
	size_t size = info->self.len;
	char *at;

	for (unsigned int i = 0; i < info->nholders; i++)
		size += info->holders[i].len;
	at = sink_room(sink, size);
	*to = *info;
	backend_redact(&to->self, dialect, &at);
	for (unsigned int i = 0; i < to->nholders; i++)
		backend_redact(&to->holders[i], dialect, &at);
	if (to->event.flags & LOCK_SESSION && to->event.kind == LOCK_WAITS_USER && *to->object)
		memcpy(to->object, "?", 2);
	return to;
}

void sink_wait(struct sink *sink, const struct lock_wait *wait)
{
	const struct lock_backend *self = wait->info ? &wait->info->self : NULL;
	struct lock_wait shown = *wait;

	if (!filter_selects(&sink->config.filter, wait->server, wait->who,
			    self ? self->text : NULL, self ? self->len : 0))
		return;
	if (sink->config.redact && wait->info)
		shown.info = sink_redact_wait(sink, wait->info, wait->server->engine->dialect);
	if (!sink->config.wait(sink->config.arg, &shown))
		owners_lost(sink->config.owners, wait->event->head.owner, LOST_TABLE_FULL, 1);
}

bool sink_session(const struct sink_config *config, struct ps_session *session)
{
	bool selected = filter_selects(&config->filter, session->server, &session->who,
				       session->text, session->len);

	/* A statement that has ended may have failed as a string had no end. */
	if (config->redact && session->text)
		session->len = fingerprint_redact(session->server->engine->dialect, session->text,
						  session->len,
						  session->cut || session->state != PS_ACTIVE,
						  session->text);
	if (config->redact && session->plan)
		session->plan_len = plan_redact(session->plan, session->plan_len,
						session->server->engine->dialect);
	return selected;
}
