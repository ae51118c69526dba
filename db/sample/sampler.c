// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/sample/sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sched/types.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "db/engines.h"
#include "db/sample/message.h"
#include "db/sample/served.h"
#include "host/child.h"
#include "host/clock.h"

#define LOOK_NS		NS_PER_S	/* between two looks for new servers, at least .. */
#define LOOK_SHARE	100		/* .. and so many times what the last one took */
#define LOOK_PART	4		/* of an interval, for a part of a look */
#define AGAIN_NS	NS_PER_S	/* until a server is sampled again that could not be */
#define SHARE_NS	(NS_PER_S / 4)	/* of a second, for the servers of one user, except root */
#define USER_PART	2		/* of an interval, for a server, the same */
#define SERVERS_OF_USER	64		/* except root */
#define CLOCK_NS	(NS_PER_MS / 2)	/* by which two readings of clocks may differ */
#define BATCH_BYTES	65536		/* of messages that are written at once */
#define SLICE_NS	100000		/* of a CPU; the shortest that the kernel grants */

/* A session, which has run a statement. */
struct sampled {
	struct sampled *next, **self;	/* of its server */
	bool active;
	uint64_t key, begin_ns;		/* of the statement, see struct sample */
	uint64_t start_ns;		/* the same by CLOCK_MONOTONIC, .. */
	uint64_t start_error_ns;	/* .. plus or minus this */
	uint64_t query_id;
	struct who who;
	char *text;			/* owned; NULL: unknown */
	uint32_t len;
	bool cut;
};

/* A server that is sampled. */
struct sampled_server {
	uint32_t number;		/* 1 + that of the messages; 0: not sent yet */
	const struct served_file *file;
	struct process process;		/* its main one */
	struct helper_user *user;
	void *state;			/* of the engine; owned */
	struct sampled *sessions;	/* owned by the engine */
	uint64_t last_ns;	/* CLOCK_MONOTONIC at the begin of the last sample; or 0 .. */
	uint64_t before_ns;		/* .. and of the one before that */
	uint64_t unsampled;
	uint64_t again_ns;		/* when it is sampled again, if it could not be; or 0 */
	bool refused;			/* its sessions cannot be sampled */
};

struct sampler {
	const struct sampler_config *config;
	int socket;
	int schedstat;			/* an open file of /proc, or -1 */
	bool failed;			/* the socket was closed */
	struct served served;
	struct sampled_server **server;	/* owned */
	size_t nservers;
	uint32_t number;		/* of the next server */
	uint64_t look_ns, next_ns;	/* when to look for servers, and to sample */
	uint64_t second_ns;		/* when users' shares begin anew */
	bool looking;			/* a look has begun .. */
	uint64_t looked_ns;		/* .. and has taken this so far */
	char *text;			/* of ->text_bytes */
	struct sample_status status;
	/* Of the sample: */
	struct sampled_server *current;
	int64_t wall_ns;		/* CLOCK_REALTIME - CLOCK_MONOTONIC */
	char *batch;			/* messages that are not written yet, of BATCH_BYTES */
	size_t batched;
};

/* Write the messages. The child may be killed only while it reads a process. */
static void sampler_flush(struct sampler *s)
{
	uint32_t pid = s->config->shared->pid, uid = s->config->shared->uid;

	if (!s->batched || s->failed)
		return;
	helper_leave(s->config->shared);
	s->failed = !child_write(s->socket, s->batch, s->batched);
	s->batched = 0;
	if (pid)
		helper_enter(s->config->shared, pid, uid);
}

/* Add @size bytes to the messages. */
static void sampler_put(struct sampler *s, const void *data, size_t size)
{
	const char *from = data;

	while (size && !s->failed) {
		size_t n = BATCH_BYTES - s->batched < size ? BATCH_BYTES - s->batched : size;

		memcpy(s->batch + s->batched, from, n);
		s->batched += n;
		from += n;
		size -= n;
		if (s->batched == BATCH_BYTES)
			sampler_flush(s);
	}
}

static void sampler_send(struct sampler *s, enum sample_kind kind, const void *data, size_t size)
{
	uint32_t number = kind;

	sampler_put(s, &number, sizeof(number));
	sampler_put(s, data, size);
}

static void sampler_error(void *arg, const struct error *error)
{
	sampler_send(arg, SAMPLE_ERROR, error, sizeof(*error));
}

/* Send what the server is, before its first statement. */
static void server_send(struct sampler *s, struct sampled_server *server)
{
	struct sample_server message;

	if (server->number)
		return;
	memset(&message, 0, sizeof(message));
	message.number = s->number++;
	server->number = s->number;
	served_server(server->file, server->process.pid, server->process.pid, &message.server);
	sampler_send(s, SAMPLE_SERVER, &message, sizeof(message));
}

/* Send the statement of @one, which ended @end_ns, or runs, plus or minus @error_ns. */
static void sampled_send(struct sampler *s, const struct sampled *one, uint64_t end_ns,
			 uint64_t error_ns, bool running)
{
	struct sample_statement statement = {
		.running = running, .cut = one->cut,
		.has_text = one->text, .len = one->len, .start_ns = one->start_ns,
		.wall_ns = one->begin_ns ? one->begin_ns :
					   one->start_ns + (uint64_t)s->wall_ns,
		.duration_ns = end_ns > one->start_ns ? end_ns - one->start_ns : 0,
		.error_ns = one->start_error_ns + error_ns, .query_id = one->query_id,
		.who = one->who,
	};

	if (statement.duration_ns < s->config->threshold_ns)
		return;
	server_send(s, s->current);
	statement.server = s->current->number - 1;
	sampler_send(s, SAMPLE_STATEMENT, &statement, sizeof(statement));
	sampler_put(s, one->text, one->len);
}

/*
 * Set *@at_ns to the CLOCK_MONOTONIC of @wall_ns, the server's time of what happened between @from
 * and @to. Return false if it does not agree with these, or is 0: the clock may have been set.
 */
static bool sampler_agrees(const struct sampler *s, uint64_t wall_ns, uint64_t from, uint64_t to,
			   uint64_t *at_ns)
{
	uint64_t at = wall_ns - (uint64_t)s->wall_ns;

	if (!wall_ns || at + CLOCK_NS < from || at > to + CLOCK_NS)
		return false;
	*at_ns = at;
	return true;
}

/* The same; without a time that agrees it is the middle. Return by how much it may be wrong. */
static uint64_t sampler_time(const struct sampler *s, uint64_t wall_ns, uint64_t from, uint64_t to,
			     uint64_t *at_ns)
{
	if (sampler_agrees(s, wall_ns, from, to, at_ns))
		return 0;
	*at_ns = from + (to - from) / 2;
	return (to - from + 1) / 2;
}

/* The statement of @one has ended: as @next says, which is NULL if the session has ended. */
static void sampled_end(struct sampler *s, struct sampled *one, const struct sample *next)
{
	uint64_t from = s->current->last_ns, before = s->current->before_ns;
	uint64_t to = clock_ns(CLOCK_MONOTONIC), end_ns, error_ns = 0;
	bool same = next && next->key == one->key;

	/* The next one began after it had ended, as did those between them that were not seen. */
	if (next && !same) {
		sampler_agrees(s, next->begin_ns, from, to, &to);
		sampler_agrees(s, next->end_ns, from, to, &to);
	}
	from = from < one->start_ns ? one->start_ns : from;
	before = before < one->start_ns ? one->start_ns : before;
	to = to < from ? from : to;
	/*
	 * A server may have noted the end before it removes the text. If another statement runs,
	 * one that was not seen may have ended since the last sample: the end is that one's.
	 */
	if (!next || !(same || next->active) ||
	    !sampler_agrees(s, next->end_ns, before, same ? to : from, &end_ns))
		error_ns = sampler_time(s, 0, from, to, &end_ns);
	if (same)
		one->query_id = next->query_id;
	sampled_send(s, one, end_ns, error_ns, false);
	one->active = false;
	s->current->user->text_bytes -= one->len;
	free(one->text);
	one->text = NULL;
	one->len = 0;
}

/* Keep the text, cut if all of the user's have become too long. */
static void sampled_text(struct sampled *one, struct helper_user *user, const struct sample *now)
{
	size_t len = now->len;

	if (user->text_bytes > PS_TEXT_BYTES && len > PS_TEXT_LEAST)
		len = PS_TEXT_LEAST;
	one->cut = now->cut || len < now->len;
	one->text = now->text ? malloc(len + 1) : NULL;
	one->len = one->text ? (uint32_t)len : 0;
	if (one->text)
		memcpy(one->text, now->text, len);
	user->text_bytes += one->len;
}

/* A statement of @one was found. */
static void sampled_begin(struct sampler *s, struct sampled *one, const struct sample *now)
{
	/* It may have begun before the last sample, which had no text of it. */
	uint64_t from = s->current->before_ns, to = clock_ns(CLOCK_MONOTONIC);

	if (!from && now->begin_ns)
		from = now->begin_ns - (uint64_t)s->wall_ns;
	if (!from || from > to || (int64_t)from < 0)
		from = to;
	one->start_error_ns = sampler_time(s, now->begin_ns, from, to, &one->start_ns);
	one->active = true;
	one->key = now->key;
	one->begin_ns = now->begin_ns;
	one->query_id = now->query_id;
	one->who = *now->who;
	sampled_text(one, s->current->user, now);
}

static struct sampled *sampled_new(struct sampled_server *server)
{
	struct sampled *one = calloc(1, sizeof(*one));

	if (!one)
		return NULL;
	one->next = server->sessions;
	one->self = &server->sessions;
	if (one->next)
		one->next->self = &one->next;
	server->sessions = one;
	return one;
}

static void sampler_changed(void *arg, struct sampled **sampled, const struct sample *now)
{
	struct sampler *s = arg;
	struct sampled *one = *sampled;

	if (one && one->active && (!now->active || now->key != one->key))
		sampled_end(s, one, now);
	if (one && one->active)
		one->query_id = now->query_id;
	if (!now->active || (one && one->active))
		return;
	if (!one)
		*sampled = one = sampled_new(s->current);
	if (one)
		sampled_begin(s, one, now);
}

static void sampler_gone(void *arg, struct sampled **sampled)
{
	struct sampler *s = arg;

	if (!*sampled)
		return;
	if ((*sampled)->active)
		sampled_end(s, *sampled, NULL);
	*(*sampled)->self = (*sampled)->next;
	if ((*sampled)->next)
		(*sampled)->next->self = (*sampled)->self;
	free(*sampled);
	*sampled = NULL;
}

static bool sampler_wants(void *arg, uint32_t pid)
{
	const struct sampler *s = arg;
	const struct server_filter *filter = s->config->filter;

	for (size_t i = 0; i < filter->npids; i++)
		if (filter->pids[i] == pid || filter->pids[i] == s->current->process.pid)
			return true;
	return !filter->npids;
}

static struct sample_query sampler_query(struct sampler *s, struct sampled_server *server)
{
	const struct target *target = &server->file->target;

	s->current = server;
	return (struct sample_query){
		.engine = target->engine, .process = &server->process, .places = &target->places,
		.lowest = target->lowest_vaddr, .text = s->text,
		.text_bytes = s->config->text_bytes,
		.unsampled = &server->unsampled, .sessions = &server->user->sessions,
		.most = server->process.uid ? PS_USER_SESSIONS : PS_SESSIONS,
		.arg = s, .wants = sampler_wants,
		.changed = sampler_changed, .gone = sampler_gone,
	};
}

static void server_close(struct sampler *s, struct sampled_server *server)
{
	struct sample_query query = sampler_query(s, server);

	server->file->ops->forget(server->state, &query);
	free(server->state);
	free(server);
}

/* The time, and how much of it this process has waited for a CPU; 0: the kernel does not count. */
struct spent {
	uint64_t ns, queued_ns;
};

static struct spent spent_now(const struct sampler *s)
{
	char text[64] = "", *second;

	if (s->schedstat >= 0 && pread(s->schedstat, text, sizeof(text) - 1, 0) < 0)
		*text = '\0';
	second = strchr(text, ' ');
	return (struct spent){
		.ns = clock_ns(CLOCK_MONOTONIC),
		.queued_ns = second ? strtoull(second, NULL, 10) : 0,
	};
}

/* Return the ns since @before in which it ran, or waited for a page of another process. */
static uint64_t spent_since(const struct sampler *s, const struct spent *before)
{
	struct spent now = spent_now(s);
	uint64_t ns = now.ns - before->ns, queued_ns = now.queued_ns - before->queued_ns;

	return ns > queued_ns ? ns - queued_ns : 0;
}

/* Sample a server. Return false if it has ended. */
static bool server_sample(struct sampler *s, struct sampled_server *server)
{
	struct helper_user *user = server->user;
	struct sample_query query = sampler_query(s, server);
	struct spent before = spent_now(s);
	uint64_t begin_ns = before.ns;
	int err;

	if (server->refused)
		return process_runs(server->process.pid, engine_is_executable,
				    &server->process.file);
	if (helper_excludes(user) || (server->process.uid && user->spent_ns > SHARE_NS)) {
		s->status.late++;
		return true;
	}
	if (begin_ns < server->again_ns)
		return true;
	/* What is sent is not to be lost with a read that does not end. */
	sampler_flush(s);
	helper_enter(s->config->shared, server->process.pid, server->process.uid);
	server->unsampled = 0;
	query.now_ns = begin_ns;
	query.deadline_ns = server->process.uid ? begin_ns + s->config->interval_ns / USER_PART :
						  UINT64_MAX;
	s->wall_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
	err = server->file->ops->sample(server->file->state, server->state, &query);
	helper_leave(s->config->shared);
	if (!err) {
		server_send(s, server);
		server->before_ns = server->last_ns;
		server->last_ns = begin_ns;
	}
	user->spent_ns += spent_since(s, &before);
	server->again_ns = err == -EAGAIN ? begin_ns + AGAIN_NS : 0;
	server->refused = err == -ENOTSUP || err == -EACCES || err == -EPERM;
	if (err == -ENOTSUP)
		files_report(&s->served.files, ERROR_NO_SAMPLES, err, server->process.exe);
	else if (server->refused)
		served_deny(&s->served, server->process.pid, err);
	return !err || server->refused || err == -EAGAIN;
}

/* Sample all servers. Those that have ended are forgotten. */
static void sampler_sample(struct sampler *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->nservers; i++) {
		if (server_sample(s, s->server[i]))
			s->server[n++] = s->server[i];
		else
			server_close(s, s->server[i]);
	}
	s->nservers = n;
}

/* Return the server whose main process is @process, or NULL. */
static struct sampled_server *sampler_find(const struct sampler *s, const struct process *process)
{
	for (size_t i = 0; i < s->nservers; i++)
		if (s->server[i]->process.pid == process->pid &&
		    process_file_same(&s->server[i]->process.file, &process->file))
			return s->server[i];
	return NULL;
}

static bool sampler_room(const struct sampler *s, uint32_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < s->nservers; i++)
		n += s->server[i]->process.uid == uid;
	return !uid || n < SERVERS_OF_USER;
}

/* Add the server of @file whose main process is @main. */
static void sampler_add(struct sampler *s, const struct served_process *of,
			const struct process *main)
{
	struct sampled_server **more, *server;

	if (!sampler_room(s, main->uid))
		return;
	more = realloc(s->server, (s->nservers + 1) * sizeof(struct sampled_server *));
	if (!more)
		return;
	s->server = more;
	server = calloc(1, sizeof(*server));
	if (server)
		server->state = calloc(1, of->file->ops->server_bytes);
	if (!server || !server->state) {
		free(server);
		return;
	}
	server->file = of->file;
	server->process = *main;
	server->user = of->user;
	s->server[s->nservers++] = server;
}

static int sampler_process(void *arg, const struct served_process *of)
{
	struct sampler *s = arg;
	struct process main = *of->process;

	/* With -p, the main process may not be selected. */
	if (!process_is_main(of->process, engine_is_executable) &&
	    (process_read(of->process->ppid, engine_is_executable, &main) ||
	     main.uid != of->process->uid ||
	     !process_file_same(&main.file, &of->process->file)))
		return 0;
	if (!sampler_find(s, &main))
		sampler_add(s, of, &main);
	return s->failed;
}

/* Look for servers. Return as served_each(). */
static int sampler_look(struct sampler *s, struct error *error)
{
	struct spent before = spent_now(s);
	int ret;

	if (!s->looking) {
		s->served.reached = 0;
		s->looked_ns = s->config->shared->matches = 0;
	}
	ret = served_each(&s->served, s->served.reached, sampler_process, s, error);
	s->looked_ns += spent_since(s, &before);
	s->looking = ret > 0;
	s->look_ns = before.ns + LOOK_NS;
	if (s->look_ns < before.ns + LOOK_SHARE * s->looked_ns)
		s->look_ns = before.ns + LOOK_SHARE * s->looked_ns;
	return ret;
}

/* Send the counts. */
static void sampler_status(struct sampler *s, enum sample_kind kind)
{
	s->status.unsampled = 0;
	for (size_t i = 0; i < s->nservers; i++)
		s->status.unsampled += s->server[i]->unsampled;
	sampler_send(s, kind, &s->status, sizeof(s->status));
}

/* A new second: what a user has spent beyond its share counts for this one. */
static void sampler_pay(struct helper_user *user)
{
	user->spent_ns -= user->spent_ns < SHARE_NS ? user->spent_ns : SHARE_NS;
	user->left_out = 0;
}

/* What is done once a second: users' shares begin anew. */
static void sampler_second(struct sampler *s, uint64_t now_ns)
{
	struct helper_shared *shared = s->config->shared;

	if (now_ns < s->second_ns)
		return;
	s->second_ns = now_ns + NS_PER_S;
	for (size_t i = 0; i < shared->nusers; i++)
		sampler_pay(&shared->users[i]);
	sampler_status(s, SAMPLE_STATUS);
}

/* Sample if it is time, and set when it is again. */
static void sampler_tick(struct sampler *s)
{
	uint64_t interval_ns = s->config->interval_ns, least_ns;
	struct error error = { .kind = ERROR_NONE };
	struct spent before = spent_now(s);

	if (before.ns < s->next_ns)
		return;
	sampler_second(s, before.ns);
	sampler_sample(s);
	if (s->looking || before.ns >= s->look_ns) {
		s->served.until_ns = clock_ns(CLOCK_MONOTONIC) + interval_ns / LOOK_PART;
		sampler_look(s, &error);
	}
	/* Half of a CPU at most. */
	least_ns = clock_ns(CLOCK_MONOTONIC) + spent_since(s, &before);
	s->next_ns += interval_ns;
	if (s->next_ns < least_ns) {
		uint64_t missed = (least_ns - s->next_ns) / interval_ns + 1;

		s->status.late += missed;
		s->next_ns += missed * interval_ns;
	}
}

/* Send the statements that run. */
static void sampler_running(struct sampler *s)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < s->nservers; i++) {
		s->current = s->server[i];
		for (const struct sampled *one = s->current->sessions; one; one = one->next)
			if (one->active)
				sampled_send(s, one, now_ns, 0, true);
	}
}

static void sampler_begin(struct sampler *s)
{
	struct error error = { .kind = ERROR_NONE };
	int32_t err = sampler_look(s, &error);

	sampler_sample(s);
	sampler_send(s, SAMPLE_READY, &err, sizeof(err));
	sampler_put(s, &error, sizeof(error));
	s->next_ns = clock_ns(CLOCK_MONOTONIC);
}

/* Answer a request. Return false if the socket was closed. */
static bool sampler_answer(struct sampler *s)
{
	uint32_t request;

	if (!child_read(s->socket, &request, sizeof(request)))
		return false;
	switch (request) {
	case SAMPLE_BEGIN:
		sampler_begin(s);
		break;
	case SAMPLE_FINISH:
		sampler_sample(s);
		s->next_ns = UINT64_MAX;
		sampler_status(s, SAMPLE_DONE);
		break;
	default:
		sampler_running(s);
		sampler_status(s, SAMPLE_DONE);
	}
	return true;
}

/* Wait for a request until the next sample. Return whether there is one. */
static bool sampler_wait(const struct sampler *s)
{
	struct pollfd request = { .fd = s->socket, .events = POLLIN };
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t ns = s->next_ns > now_ns ? s->next_ns - now_ns : 0;
	struct timespec left = { .tv_sec = (time_t)(ns / NS_PER_S),
				 .tv_nsec = (long)(ns % NS_PER_S) };

	/* Nothing is sampled before the first request. */
	return ppoll(&request, 1, s->next_ns ? &left : NULL, NULL) > 0;
}

/*
 * Where it counts most, all CPUs are busy, and what wakes up waits for the end of a time slice,
 * unless its own is shorter (Linux 6.12, 857b158dc5e8).
 */
static void sampler_hurry(void)
{
	struct sched_attr attr = {
		.size = SCHED_ATTR_SIZE_VER0, .sched_policy = SCHED_NORMAL,
		.sched_nice = getpriority(PRIO_PROCESS, 0), .sched_runtime = SLICE_NS,
	};

	syscall(SYS_sched_setattr, 0, &attr, 0);
}

void sampler_run(const struct sampler_config *config, int socket)
{
	struct sampler s = {
		.config = config, .socket = socket,
		.schedstat = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC),
		.served = { .filter = config->filter, .shared = config->shared,
			    .files = { .error = sampler_error } },
		.text = malloc(config->text_bytes), .batch = malloc(BATCH_BYTES),
	};

	s.served.files.arg = &s;
	helper_begin(config->shared);
	sampler_hurry();
	while (s.text && s.batch && !s.failed) {
		if (sampler_wait(&s) && !sampler_answer(&s))
			break;
		if (s.next_ns)
			sampler_tick(&s);
		sampler_flush(&s);
	}
	for (size_t i = 0; i < s.nservers; i++)
		server_close(&s, s.server[i]);
	free(s.server);
	free(s.text);
	free(s.batch);
	served_clear(&s.served);
}
