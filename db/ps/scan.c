// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/ps/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/ps/message.h"
#include "db/sample/served.h"
#include "host/child.h"
#include "loader/sandbox.h"

#define PLANS_USER	16	/* plans of one user at once */

struct scan {
	uint32_t text_bytes;
	uint64_t session;		/* that is asked for, or 0 */
	struct served served;
	int socket;
	const struct served_process *of;	/* the process that is read */
	struct server server;		/* that was sent last */
	bool failed;			/* the socket was closed */
};

/* Send a message of up to three parts; the others may be empty. */
static void scan_send3(struct scan *scan, enum ps_kind kind, const void *data, size_t size,
		       const void *more, size_t len, const void *last, size_t last_len)
{
	uint32_t number = kind;

	if (scan->failed)
		return;
	helper_leave(scan->served.shared);
	scan->failed = !child_write(scan->socket, &number, sizeof(number)) ||
		       !child_write(scan->socket, data, size) ||
		       !child_write(scan->socket, more, len) ||
		       !child_write(scan->socket, last, last_len);
	if (scan->of)
		helper_enter(scan->served.shared, scan->of->process->pid,
			     scan->of->process->uid);
}

static void scan_send(struct scan *scan, enum ps_kind kind, const void *data, size_t size,
		      const void *more, size_t len)
{
	scan_send3(scan, kind, data, size, more, len, NULL, 0);
}

static void scan_error(void *arg, const struct error *error)
{
	scan_send(arg, PS_ERROR, error, sizeof(*error), NULL, 0);
}

/* Return whether there is room for another session. */
static bool scan_room(const struct scan *scan)
{
	struct helper_shared *shared = scan->served.shared;

	if (shared->sessions < PS_SESSIONS && scan->of->user->sessions < PS_USER_SESSIONS)
		return true;
	shared->more++;
	return false;
}

/* Cut the text if all of the user's have become too long. */
static void scan_text(const struct scan *scan, struct ps_session *session)
{
	struct helper_user *user = scan->of->user;

	if (user->text_bytes > PS_TEXT_BYTES && session->len > PS_TEXT_LEAST) {
		session->len = PS_TEXT_LEAST;
		session->cut = true;
	}
	user->text_bytes += session->len;
}

/* Send the server of the sessions that follow, unless it is that of the last ones. */
static void scan_server(struct scan *scan, uint32_t pid, uint32_t main)
{
	struct server server;

	memset(&server, 0, sizeof(server));
	served_server(scan->of->file, main, pid, &server);
	if (!memcmp(&server, &scan->server, sizeof(server)))
		return;
	scan->server = server;
	scan_send(scan, PS_SERVER, &server, sizeof(server), NULL, 0);
}

static bool scan_add(void *arg, struct ps_session *session, uint32_t main)
{
	struct scan *scan = arg;
	bool room = scan_room(scan);

	/* Only PIDs and connections of several servers are alike. */
	if (scan->of->user->sessions >= PLANS_USER)
		session->plan_len = 0;
	if (room) {
		scan_text(scan, session);
		scan_server(scan, session->who.pid, main);
		scan_send3(scan, PS_SESSION, session, sizeof(*session), session->text,
			   session->len, session->plan, session->plan_len);
		scan->of->user->sessions++;
		scan->served.shared->sessions++;
	}
	free(session->text);
	free(session->plan);
	return room && !scan->failed;
}

/* Read the sessions of a process. Return 0, or another value to read no other one. */
static int scan_process(void *arg, const struct served_process *of)
{
	struct scan *scan = arg;
	int err;

	scan->of = of;
	err = of->file->ops->read(of->file->state, &(struct ps_query){
		.engine = of->file->target.engine, .process = of->process,
		.places = &of->file->target.places, .version = of->file->target.version,
		.lowest = of->file->target.lowest_vaddr,
		.text_bytes = scan->text_bytes, .session = scan->session,
		.deadline_ns = of->deadline_ns,
		.more = &scan->served.shared->more, .add = scan_add, .arg = scan,
	});
	scan->of = NULL;
	if (err == -EACCES || err == -EPERM)
		served_deny(&scan->served, of->process->pid, err);
	if (err == -EAGAIN)
		files_report(&scan->served.files, ERROR_NO_SESSIONS, err, of->process->exe);
	return scan->failed;
}

void scan_run(const struct server_filter *filter, uint32_t text_bytes,
	      struct helper_shared *shared, int socket)
{
	struct scan scan = {
		.text_bytes = text_bytes, .socket = socket,
		.served = { .filter = filter, .shared = shared,
			    .files = { .error = scan_error } },
	};
	struct ps_request request;
	struct sandbox sandbox;

	scan.served.files.arg = &scan;
	sandbox_enter(SANDBOX_READ | SANDBOX_NO_BPF, &sandbox);
	helper_bind();
	while (!scan.failed && child_read(socket, &request, sizeof(request))) {
		struct error error = { .kind = ERROR_NONE };
		int32_t err;

		scan.session = request.session;
		err = served_each(&scan.served, request.from, scan_process, &scan, &error);
		memset(&scan.server, 0, sizeof(scan.server));
		scan_send(&scan, PS_END, &err, sizeof(err), &error, sizeof(error));
	}
	served_clear(&scan.served);
}
