/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The selection of sessions and statements by what is known of them. */
#ifndef DB_FILTER_H
#define DB_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "sql/regex.h"

/* All is borrowed; NULL: any. An unknown value does not match. */
struct filter {
	const char *user, *database;
	const char *client;		/* with its port or without */
	const char *application;	/* its name */
	const char *container;		/* its ID, the beginning of that, or its name */
	const struct regex *match;	/* the text must match */
};

/* A session; NULL or "": unknown. */
struct filter_session {
	const char *user, *database, *client, *container, *application;
};

/* Return whether @filter selects anything less than everything. */
bool filter_any(const struct filter *filter);

/* Return whether @filter selects the session. ->match is not considered. */
bool filter_session(const struct filter *filter, const struct filter_session *session);

/* Return whether @filter selects the statement with the @len bytes of @text; NULL: unknown. */
bool filter_text(const struct filter *filter, const char *text, size_t len);

#endif
