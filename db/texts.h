/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tags, the trace context and the redacted text of a statement. */
#ifndef DB_TEXTS_H
#define DB_TEXTS_H

#include "db/statement.h"
#include "sql/tags.h"
#include "sql/traceparent.h"

struct texts_config {
	uint32_t text_bytes;		/* of a text, at most */
	bool tags;			/* find the tags, unless the text is redacted */
	bool spans;			/* find the traceparent */
	bool redact;			/* remove literals and comments from texts */
	bool redact_spans;		/* only in ->span_text */
};

/* Closed if all zero. */
struct texts {
	struct texts_config config;
	struct traceparent parent;	/* of the current statement */
	struct tags tags;		/* the same */
	char *redacted;			/* buffer of ->text_bytes, owned; NULL: do not redact */
};

/* Return 0 or -ENOMEM. texts_close() ends it in both cases. */
int texts_open(struct texts *texts, const struct texts_config *config);

/* Set the members of @s that depend on its text. They are valid until the next call. */
void texts_apply(struct texts *texts, struct statement *s);

void texts_close(struct texts *texts);

#endif
