// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/sample/sampling.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "db/discover/describe.h"
#include "db/sample/helper.h"
#include "db/sample/message.h"
#include "db/sample/sampler.h"
#include "host/child.h"
#include "host/clock.h"

#define RESTART_NS	NS_PER_S	/* a child that ends so soon is not replaced */
#define STUCK_MOST	64		/* children that SIGKILL does not end */
#define STALLS_MOST	16		/* at the start */
#define ANSWER_NS	(5 * NS_PER_S)	/* to wait for an answer */
#define DRAIN_MESSAGES	4096		/* taken by one call */
#define SERVERS_MOST	1024	/* of one user, except root; of others nothing is reported */

struct sampling {
	struct sampling_config config;
	struct helper helper;
	struct sink sink;
	struct owners *owners;		/* of the sink; owned */
	struct server **kept;		/* all servers; owned */
	size_t nkept;
	const struct server **server;	/* those of the child, of ->kept, or NULL; owned */
	size_t nservers;
	uint64_t statements;		/* that ended */
	char *text;			/* of ->config.text_bytes */
	bool finished;			/* there are no further samples .. */
	bool failed;			/* .. as no child can take them */
	uint64_t begun_ns;		/* CLOCK_MONOTONIC, when the child was started */
	bool ready, answered;		/* SAMPLE_READY, or SAMPLE_DONE, was received */
	int error_code;			/* of the former, .. */
	struct error *error;		/* .. which goes here, or NULL */
	struct sample_status status;	/* of the child */
	uint64_t late;			/* samples of those that have ended */
};

static void sampling_child(void *arg, int socket)
{
	struct sampling *s = arg;

	sampler_run(&(struct sampler_config){
		.filter = &s->config.servers, .interval_ns = s->config.interval_ns,
		.threshold_ns = s->config.threshold_ns, .text_bytes = s->config.text_bytes,
		.shared = s->helper.shared,
	}, socket);
}

struct sampling *sampling_new(const struct sampling_config *config)
{
	struct sampling *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->config = *config;
	s->helper = (struct helper){ .name = "session-reader", .run = sampling_child, .arg = s };
	s->owners = calloc(1, sizeof(*s->owners));
	s->config.sink.owners = s->owners;
	s->text = malloc(config->text_bytes);
	if (s->text && s->owners && !sink_open(&s->sink, &s->config.sink) &&
	    !helper_open(&s->helper))
		return s;
	sampling_close(s);
	return NULL;
}

/* Read a part of a message. Return as helper_receive(). */
static int sampling_part(struct sampling *s, void *data, size_t size, uint32_t *pid)
{
	return helper_receive(&s->helper, data, size, pid);
}

/* Report @server unless it was sampled by an earlier child. */
static void sampling_report(const struct sampling *s, const struct server *server)
{
	const struct server_info info = {
		.engine = server->engine, .path = server->path, .version = server->version,
		.method = "", .title = describe_title(server->engine, server->version),
		.has = ~0u, .pids = &server->pid, .npids = 1,
	};

	s->config.server(s->config.arg, &info);
}

/* Keep @server, and report it if it is a new one. Return it, or NULL: its user has too many. */
static const struct server *sampling_keep(struct sampling *s, const struct server *server)
{
	struct server **more;
	size_t same = 0;

	for (size_t i = 0; i < s->nkept; i++) {
		if (!memcmp(s->kept[i], server, sizeof(*server)))
			return s->kept[i];
		same += s->kept[i]->uid == server->uid;
	}
	if (server->uid && same >= SERVERS_MOST)
		return NULL;
	more = realloc(s->kept, (s->nkept + 1) * sizeof(struct server *));
	if (!more)
		return NULL;
	s->kept = more;
	more[s->nkept] = malloc(sizeof(*server));
	if (!more[s->nkept])
		return NULL;
	*more[s->nkept] = *server;
	sampling_report(s, server);
	return s->kept[s->nkept++];
}

static int sampling_server(struct sampling *s, uint32_t *pid)
{
	struct sample_server message;
	const struct server **more;
	int err = sampling_part(s, &message, sizeof(message), pid);

	if (err)
		return err;
	if (message.number != s->nservers)
		return -ECHILD;
	more = realloc(s->server, (s->nservers + 1) * sizeof(const struct server *));
	if (!more)
		return -ENOMEM;
	s->server = more;
	more[s->nservers++] = sampling_keep(s, &message.server);
	return 0;
}

static int sampling_statement(struct sampling *s, uint32_t *pid)
{
	struct sample_statement one;
	struct statement statement;
	int err = sampling_part(s, &one, sizeof(one), pid);

	if (err)
		return err;
	if (one.server >= s->nservers || one.len > s->config.text_bytes)
		return -ECHILD;
	err = one.len ? sampling_part(s, s->text, one.len, pid) : 0;
	if (err)
		return err;
	statement = (struct statement){
		.server = s->server[one.server], .who = &one.who, .start_ns = one.start_ns,
		.wall_ns = one.wall_ns, .duration_ns = one.duration_ns,
		.duration_error_ns = one.error_ns, .query_id = one.query_id,
		.running = one.running, .text = one.has_text ? s->text : NULL,
		.text_len = one.len, .truncated = one.cut,
		.has_query_bytes = one.has_text && !one.cut, .query_bytes = one.len,
	};
	if (!statement.server)
		return 0;
	s->statements += !statement.running;
	sink_statement(&s->sink, &statement, 0);
	return 0;
}

static int sampling_error(struct sampling *s, uint32_t *pid)
{
	struct error error;
	int err = helper_error(&s->helper, &error, pid);

	if (!err)
		s->config.error(s->config.arg, &error);
	return err;
}

static int sampling_ready(struct sampling *s, uint32_t *pid)
{
	struct error error;
	int32_t code;
	int err = sampling_part(s, &code, sizeof(code), pid);

	if (!err)
		err = helper_error(&s->helper, &error, pid);
	if (err)
		return err;
	s->ready = true;
	s->error_code = code;
	if (s->error)
		*s->error = error;
	return 0;
}

/* Take a message. Return as helper_receive(), or -ENOMEM. */
static int sampling_message(struct sampling *s, uint32_t *pid)
{
	uint32_t kind;
	int err = sampling_part(s, &kind, sizeof(kind), pid);

	if (err)
		return err;
	switch (kind) {
	case SAMPLE_SERVER:
		return sampling_server(s, pid);
	case SAMPLE_STATEMENT:
		return sampling_statement(s, pid);
	case SAMPLE_ERROR:
		return sampling_error(s, pid);
	case SAMPLE_READY:
		return sampling_ready(s, pid);
	default:
		s->answered |= kind == SAMPLE_DONE;
		return sampling_part(s, &s->status, sizeof(s->status), pid);
	}
}

static int sampling_ask(struct sampling *s, enum sample_request request)
{
	uint32_t number = request;

	return child_write(s->helper.socket, &number, sizeof(number)) ? 0 : -ECHILD;
}

/* Start a child, which samples from now on. Return as helper_start(). */
static int sampling_begin(struct sampling *s)
{
	int err;

	s->late += s->status.late;
	s->status = (struct sample_status){ .late = 0 };
	s->nservers = 0;
	s->ready = false;
	s->begun_ns = clock_ns(CLOCK_MONOTONIC);
	err = helper_start(&s->helper);
	return err ? err : sampling_ask(s, SAMPLE_BEGIN);
}

/* Report that process @pid did not answer, if its user is left out therefore. */
static void sampling_stalled(struct sampling *s, uint32_t pid)
{
	uint32_t uid = helper_uid_of(&s->helper, pid);

	if (uid != UINT32_MAX)
		s->config.stalled(s->config.arg, pid, uid);
}

/* The child was killed, or has ended: report why, and begin anew, unless it does that soon. */
static void sampling_restart(struct sampling *s, int err, uint32_t pid)
{
	struct error error = { .kind = ERROR_NONE };
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	helper_stop(&s->helper);
	if (err == -ETIMEDOUT) {
		s->late += (now_ns - s->helper.seen_ns) / s->config.interval_ns;
		sampling_stalled(s, pid);
	} else {
		error_set(&error, ERROR_READER, err, NULL, NULL);
		s->config.error(s->config.arg, &error);
		s->failed = now_ns - s->begun_ns < RESTART_NS;
	}
	s->failed |= s->helper.stuck > STUCK_MOST;
	if (!s->finished && !s->failed)
		s->failed = sampling_begin(s);
	if (s->failed && err == -ETIMEDOUT) {
		error_set(&error, ERROR_READER, -ECHILD, NULL, NULL);
		s->config.error(s->config.arg, &error);
	}
}

int sampling_start(struct sampling *s, struct error *error)
{
	uint32_t pid;
	int err, stalls = 0;

	do {
		err = sampling_begin(s);
		s->error = error;
		while (!err && !s->ready)
			err = sampling_message(s, &pid);
		s->error = NULL;
		if (err == -ETIMEDOUT)
			sampling_stalled(s, pid);
	} while (err == -ETIMEDOUT && ++stalls < STALLS_MOST);
	if (err)
		return error_set(error, ERROR_READER, err, NULL, NULL);
	return s->error_code;
}

int sampling_fd(const struct sampling *s)
{
	return s->helper.child ? s->helper.socket : -EAGAIN;
}

/* Take messages until that of the last sample, if that was asked for, else those that are there. */
static int sampling_take(struct sampling *s, bool *any, uint32_t *pid)
{
	struct pollfd message = { .fd = s->helper.socket, .events = POLLIN };
	int err = 0;

	/* Other things are to be done meanwhile, such as to look for signals. */
	for (int n = 0; !err && n < DRAIN_MESSAGES; n++) {
		if ((!s->finished || s->answered) && poll(&message, 1, 0) <= 0)
			break;
		err = sampling_message(s, pid);
		*any |= !err;
	}
	return err ? err : helper_watch(&s->helper, pid);
}

int sampling_drain(struct sampling *s)
{
	bool any = false;
	uint32_t pid = 0;
	int err = s->helper.child ? sampling_take(s, &any, &pid) : 0;

	if (err)
		sampling_restart(s, err, pid);
	return s->failed ? -ECHILD : any;
}

void sampling_running(struct sampling *s)
{
	uint32_t pid = 0;
	int err;

	if (!s->helper.child)
		return;
	s->answered = false;
	s->helper.until_ns = clock_ns(CLOCK_MONOTONIC) + ANSWER_NS;
	err = sampling_ask(s, SAMPLE_RUNNING);
	while (!err && !s->answered)
		err = sampling_message(s, &pid);
	s->helper.until_ns = 0;
	if (err)
		sampling_restart(s, err, pid);
}

void sampling_finish(struct sampling *s)
{
	s->finished = true;
	s->helper.until_ns = clock_ns(CLOCK_MONOTONIC) + ANSWER_NS;
	s->answered = !s->helper.child || sampling_ask(s, SAMPLE_FINISH);
}

ssize_t sampling_histogram(const struct sampling *s, struct histogram_row **rows)
{
	return histogram_copy(&s->sink.histogram, rows);
}

void sampling_summary(const struct sampling *s, struct summary *summary)
{
	*summary = (struct summary){
		.statements = s->statements,
		.unseen_ns = s->config.interval_ns,
	};
	memcpy(summary->lost, s->sink.lost, sizeof(summary->lost));
	loss_add(summary, s->owners);
	summary->lost[LOSS_LATE_SAMPLES] = s->late + s->status.late;
	summary->lost[LOSS_NOT_SAMPLED] = s->status.unsampled;
}

void sampling_close(struct sampling *s)
{
	if (!s)
		return;
	helper_close(&s->helper);
	sink_close(&s->sink);
	for (size_t i = 0; i < s->nkept; i++)
		free(s->kept[i]);
	free(s->kept);
	free(s->server);
	free(s->owners);
	free(s->text);
	free(s);
}
