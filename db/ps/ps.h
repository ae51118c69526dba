/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * db/ps/: the sessions of running servers as they are now, read from memory by the operations of
 * ops.h.
 * It attaches nothing, and knows no engine by name.
 */

/*
 * The sessions of the running servers and what they do now, read from the memory of the servers:
 * nothing is attached.
 */
#ifndef DB_PS_PS_H
#define DB_PS_PS_H

#include "db/discover/discover.h"
#include "db/ps/session.h"
#include "db/sample/helper.h"
#include "loader/error.h"

struct ps_list {
	struct ps_session *session;	/* in no particular order */
	size_t n;
	size_t more;			/* not in the list: there are too many */
	size_t servers;			/* processes of servers that were found and selected */
	/* Whose processes were left out, as one did not answer; borrowed until the next list. */
	const struct helper_shared *stalled;
};

struct ps_config {
	struct server_filter servers;	/* without ->start and ->done; borrowed */
	uint32_t text_bytes;		/* maximum length of a text */
	void *arg;
	/* Called once, or again after a stall, for each file whose sessions cannot be listed. */
	void (*error)(void *arg, const struct error *error);
};

struct ps;

/* Return a helper, which ps_close() frees, or NULL: out of memory. @config is copied. */
struct ps *ps_open(const struct ps_config *config);

/*
 * List the sessions, or, unless @session is 0, only those with that ID, with their plans;
 * ps_list_free() frees @list. Of the latter, ->leader is a PID as the server sees it. Return 0, or
 * -errno with the cause in @error: a process or file of the filter is not a server's, or /proc
 * cannot be read.
 */
int ps_read(struct ps *ps, uint64_t session, struct ps_list *list, struct error *error);

void ps_list_free(struct ps_list *list);

void ps_close(struct ps *ps);

#endif
