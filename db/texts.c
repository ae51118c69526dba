// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/texts.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>

#include "sql/fingerprint.h"

int texts_open(struct texts *texts, const struct texts_config *config)
{
	*texts = (struct texts){ .config = *config };
	if (!config->redact && !config->redact_spans)
		return 0;
	texts->redacted = malloc(config->text_bytes);
	return texts->redacted ? 0 : -ENOMEM;
}

void texts_close(struct texts *texts)
{
	free(texts->redacted);
	texts->redacted = NULL;
}

/*
 * Redact the text to ->redacted. Return its length, or -EINVAL. A statement that failed may lack
 * the end of a string, as a cut one does.
 */
static ssize_t texts_redact(struct texts *texts, const struct statement *s)
{
	if (!s->text || s->text_len > texts->config.text_bytes)
		return -EINVAL;
	return (ssize_t)fingerprint_redact(s->dialect, s->text, s->text_len,
					   s->truncated || s->failed, texts->redacted);
}

void texts_apply(struct texts *texts, struct statement *s)
{
	const struct texts_config *config = &texts->config;
	/* A recording may have been redacted. */
	bool redacted = s->original_len;
	ssize_t len = -EINVAL;

	if (config->spans && s->text && !redacted &&
	    traceparent_find(s->dialect, s->text, s->text_len, s->truncated, &texts->parent))
		s->parent = &texts->parent;
	if (config->tags && !config->redact && s->text && !redacted &&
	    tags_find(s->dialect, s->text, s->text_len, s->truncated, &texts->tags))
		s->tags = &texts->tags;
	if (texts->redacted)
		len = texts_redact(texts, s);
	if (config->redact) {
		if (!redacted)
			s->original_len = s->text && len >= 0 ? s->text_len : 0;
		s->text = len >= 0 ? texts->redacted : NULL;
		s->text_len = len >= 0 ? (size_t)len : 0;
		s->alike = 0;
	}
	s->span_text = s->text;
	s->span_text_len = s->text_len;
	if (config->redact_spans) {
		s->span_text = len >= 0 ? texts->redacted : NULL;
		s->span_text_len = len >= 0 ? (size_t)len : 0;
	}
}
