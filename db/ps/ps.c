// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/ps/ps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/discover/servers.h"
#include "db/plan/plan.h"
#include "db/ps/message.h"
#include "db/ps/scan.h"
#include "db/sample/helper.h"
#include "host/child.h"

#define STALLS_MAX	64	/* of users, in one list */

struct ps {
	struct ps_config config;
	struct helper helper;
	struct servers servers;		/* of the sessions of the last ps_read() */
};

/* One reading of all processes. */
struct reading {
	struct ps *ps;
	struct ps_list *list;
	uint64_t session;		/* that is asked for, or 0 */
	size_t room;			/* elements of ->list */
	const struct server *server;	/* of the sessions that follow */
	bool ended;
	int err;			/* of the child's .. */
	struct error *error;		/* .. with its cause */
};

static void ps_child(void *arg, int socket)
{
	struct ps *ps = arg;

	scan_run(&ps->config.servers, ps->config.text_bytes, ps->helper.shared, socket);
}

struct ps *ps_open(const struct ps_config *config)
{
	struct ps *ps = calloc(1, sizeof(*ps));

	if (!ps)
		return NULL;
	ps->config = *config;
	ps->helper = (struct helper){ .name = "session-reader", .run = ps_child, .arg = ps };
	if (!helper_open(&ps->helper))
		return ps;
	free(ps);
	return NULL;
}

/* Read a part of a message. Return as helper_receive(). */
static int reading_part(struct reading *reading, void *data, size_t size, uint32_t *pid)
{
	return helper_receive(&reading->ps->helper, data, size, pid);
}

static int reading_server(struct reading *reading, uint32_t *pid)
{
	struct server server;
	int err = reading_part(reading, &server, sizeof(server), pid);

	if (err)
		return err;
	reading->server = servers_keep(&reading->ps->servers, server.uid, &server);
	return reading->server ? 0 : -ENOMEM;
}

/* Make room for another session. Return success. */
static bool reading_room(struct reading *reading)
{
	size_t room = reading->room ? 2 * reading->room : 64;
	struct ps_session *more;

	if (reading->list->n < reading->room)
		return true;
	more = realloc(reading->list->session, room * sizeof(*more));
	if (!more)
		return false;
	reading->list->session = more;
	reading->room = room;
	return true;
}

static void session_free(struct ps_session *session)
{
	free(session->text);
	free(session->plan);
}

static int reading_session(struct reading *reading, uint32_t *pid)
{
	struct ps_session session;
	int err = reading_part(reading, &session, sizeof(session), pid);

	if (err)
		return err;
	if (!reading->server || session.len > reading->ps->config.text_bytes ||
	    session.plan_len > PLAN_BYTES)
		return -ECHILD;
	session.server = reading->server;
	session.text = session.text ? malloc(session.len + 1) : NULL;
	session.plan = session.plan ? malloc(session.plan_len + 1) : NULL;
	if (session.text)
		err = reading_part(reading, session.text, session.len, pid);
	if (!err && session.plan)
		err = reading_part(reading, session.plan, session.plan_len, pid);
	if (err || (session.len && !session.text) || (session.plan_len && !session.plan) ||
	    !reading_room(reading)) {
		session_free(&session);
		return err ? err : -ENOMEM;
	}
	reading->list->session[reading->list->n++] = session;
	return 0;
}

static int reading_error(struct reading *reading, uint32_t *pid)
{
	const struct ps_config *config = &reading->ps->config;
	struct error error;
	int err = helper_error(&reading->ps->helper, &error, pid);

	if (!err)
		config->error(config->arg, &error);
	return err;
}

static int reading_end(struct reading *reading, uint32_t *pid)
{
	int32_t number;
	int err = reading_part(reading, &number, sizeof(number), pid);

	if (!err)
		err = helper_error(&reading->ps->helper, reading->error, pid);
	reading->ended = !err;
	reading->err = number;
	return err;
}

/* Take a message. Return as helper_receive(), or -ENOMEM. */
static int reading_message(struct reading *reading, uint32_t *pid)
{
	uint32_t kind;
	int err = reading_part(reading, &kind, sizeof(kind), pid);

	if (err)
		return err;
	switch (kind) {
	case PS_SERVER:
		return reading_server(reading, pid);
	case PS_SESSION:
		return reading_session(reading, pid);
	case PS_ERROR:
		return reading_error(reading, pid);
	default:
		return reading_end(reading, pid);
	}
}

/* Remove the sessions of users that are left out, and those of process @pid. */
static void reading_drop(struct reading *reading, uint32_t pid)
{
	struct ps_list *list = reading->list;
	struct helper_shared *shared = reading->ps->helper.shared;
	size_t n = 0;

	for (size_t i = 0; i < list->n; i++) {
		if (helper_user(shared, list->session[i].server->uid)->stalled ||
		    list->session[i].who.pid == pid)
			session_free(&list->session[i]);
		else
			list->session[n++] = list->session[i];
	}
	list->n = n;
}

static int compare_servers(const void *a, const void *b)
{
	const struct ps_session *x = *(const struct ps_session *const *)a;
	const struct ps_session *y = *(const struct ps_session *const *)b;

	if (x->server->pid != y->server->pid)
		return x->server->pid < y->server->pid ? -1 : 1;
	return x->ns_pid < y->ns_pid ? -1 : x->ns_pid > y->ns_pid;
}

/* Set the ->leader of parallel workers, which is a PID as their server sees it. */
static void reading_leaders(const struct reading *reading)
{
	struct ps_list *list = reading->list;
	struct ps_session **sorted = calloc(list->n + 1, sizeof(*sorted)), **found;

	for (size_t i = 0; sorted && i < list->n; i++)
		sorted[i] = &list->session[i];
	if (sorted)
		qsort(sorted, list->n, sizeof(*sorted), compare_servers);
	for (size_t i = 0; i < list->n; i++) {
		struct ps_session *worker = &list->session[i];
		struct ps_session leader = {
			.server = worker->server, .ns_pid = (uint32_t)worker->leader,
		}, *key = &leader;

		found = worker->leader && sorted ? bsearch(&key, sorted, list->n, sizeof(*sorted),
							   compare_servers) : NULL;
		worker->leader = found && *found != worker ? ps_session_id(*found) : 0;
	}
	free(sorted);
}

/* Have the child list the sessions of processes above PID @from. Return as helper_receive(). */
static int reading_from(struct reading *reading, uint32_t *from)
{
	struct helper *helper = &reading->ps->helper;
	struct ps_request request = { *from, reading->session };
	int err = helper_start(helper);

	reading->ended = false;
	reading->server = NULL;
	if (!err && !child_write(helper->socket, &request, sizeof(request)))
		err = -ECHILD;
	while (!err && !reading->ended)
		err = reading_message(reading, from);
	return err;
}

int ps_read(struct ps *ps, uint64_t session, struct ps_list *list, struct error *error)
{
	struct reading reading = { .ps = ps, .list = list, .session = session, .error = error };
	const struct helper_shared *shared = ps->helper.shared;
	uint32_t from = 0;
	int err;

	*list = (struct ps_list){ .session = NULL };
	servers_clear(&ps->servers);
	helper_begin(ps->helper.shared);
	for (int i = 0; (err = reading_from(&reading, &from)) == -ETIMEDOUT && i < STALLS_MAX;
	     i++) {
		reading_drop(&reading, from);
		/* Read it again, unless its user is left out. */
		from -= helper_uid_of(&ps->helper, from) == UINT32_MAX;
	}
	if (err && err != -ETIMEDOUT) {
		helper_stop(&ps->helper);
		error_set(error, err == -ENOMEM ? ERROR_MEMORY : ERROR_READER, err, NULL, NULL);
	} else {
		err = err ? 0 : reading.err;
		if (!session)
			reading_leaders(&reading);
	}
	list->servers = shared->matches;
	list->more = shared->more;
	list->stalled = shared;
	if (err)
		ps_list_free(list);
	return err;
}

void ps_list_free(struct ps_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		session_free(&list->session[i]);
	free(list->session);
	*list = (struct ps_list){ .session = NULL };
}

void ps_close(struct ps *ps)
{
	if (!ps)
		return;
	helper_close(&ps->helper);
	servers_clear(&ps->servers);
	free(ps);
}
