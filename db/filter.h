/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The selection of events by what is known of their sessions and texts, of any kind of event. */
#ifndef DB_FILTER_H
#define DB_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "db/event.h"
#include "sql/regex.h"

/* All is borrowed; NULL: any. An unknown value does not match. */
struct filter {
	const char *user, *database;
	const char *client;		/* with its port or without */
	const char *application;	/* its name */
	const char *backend;		/* what the session serves */
	const char *container;		/* its ID, the beginning of that, or its name */
	const struct regex *match;	/* the text must match */
};

/* Return whether @filter selects anything less than everything. */
bool filter_any(const struct filter *filter);

/*
 * Return whether @filter selects an event of session @who of @server with the @len bytes of @text,
 * which is NULL if it is unknown.
 */
bool filter_selects(const struct filter *filter, const struct server *server,
		    const struct who *who, const char *text, size_t len);

#endif
