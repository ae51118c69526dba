// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recording/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DRAIN_EVENTS	4096	/* reported by one call */

struct replay {
	struct replay_info info;
	struct replay_config config;
	struct reader reader;
	struct decode_event *event;	/* the next one, borrowed; NULL: none */
	bool ended;
	bool cut;			/* events were skipped that ended too late */
	size_t running;			/* 1 + first block with an event without an end; 0: none */
	int error;
	uint64_t now_ns;
	uint64_t seen;			/* statements, or waits */
	size_t servers;			/* reported so far */
	struct event_breakdown why;	/* what is wanted of that of the current statement */
	struct sink sink;
	struct owners *owners;		/* of the histogram: none; owned */
	struct summary statements, waits;	/* as of the last RECORDING_STATUS .. */
	struct summary earlier, earlier_waits;	/* .. and of the first one */
	bool based;			/* these two are known */
};

/* Parse the digits of @text. */
static uint64_t info_number(const char **text)
{
	uint64_t value = 0;

	while (**text >= '0' && **text <= '9')
		value = value * 10 + (uint64_t)(*(*text)++ - '0');
	return value;
}

static void info_pids(struct replay_info *info, const char *text)
{
	while (*text && info->npids < SERVER_PIDS) {
		info->pids[info->npids++] = (uint32_t)info_number(&text);
		while (*text && (*text < '0' || *text > '9'))
			text++;
	}
}

/* Copy @len bytes of @from, cut if there are more. */
static void info_copy(char *to, size_t size, const char *from, size_t len)
{
	len = len < size ? len : size - 1;
	memcpy(to, from, len);
	to[len] = '\0';
}

static void info_option(struct replay_info *info, const struct decode_event *event)
{
	const struct {
		const char *key;
		char *text;
		size_t size;
		uint64_t *number;
	} rows[] = {
		{ "host", info->host, sizeof(info->host), NULL },
		{ "dbslower", info->dbslower, sizeof(info->dbslower), NULL },
		{ "options", info->options, sizeof(info->options), NULL },
		{ "start_ns", NULL, 0, &info->start_ns },
		{ "start_wall_ns", NULL, 0, &info->start_wall_ns },
		{ "threshold_ns", NULL, 0, &info->threshold_ns },
		{ "pids", NULL, 0, NULL },
	};
	char value[512];
	const char *text = value;

	info_copy(value, sizeof(value), event->option.value, event->option.value_len);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strlen(rows[i].key) != event->option.key_len ||
		    memcmp(rows[i].key, event->option.key, event->option.key_len))
			continue;
		if (rows[i].text)
			info_copy(rows[i].text, rows[i].size, value, strlen(value));
		else if (rows[i].number)
			*rows[i].number = info_number(&text);
		else
			info_pids(info, value);
	}
}

/* Read the next event that is reported. */
static void replay_fetch(struct replay *r)
{
	int ret;

	do
		ret = reader_next(&r->reader, &r->event);
	while (ret > 0 && r->event->type == RECORDING_OPTIONS);
	if (ret <= 0)
		r->event = NULL;
	r->error = ret < 0 ? ret : 0;
}

/*
 * Without RECORDING_START, the clocks are those of the first statement or wait. A ring or a flight
 * recorder may have been started days earlier: its time begins with the first event that is left.
 * Return 0 or -errno.
 */
static int replay_clock(struct replay *r)
{
	struct decode_event *event;
	int ret;

	if (r->reader.late && r->info.start_ns < r->info.begin_ns)
		r->info.start_ns = r->info.start_wall_ns = 0;
	if (!r->info.start_ns)
		r->info.start_ns = r->info.begin_ns;
	if (r->info.start_wall_ns)
		return 0;
	reader_seek(&r->reader, 0);
	while ((ret = reader_next(&r->reader, &event)) > 0) {
		bool wait = event->type == RECORDING_WAIT;

		if (!wait && event->type != RECORDING_STATEMENT)
			continue;
		r->info.start_wall_ns = r->info.start_ns +
			(wait ? event->wait.wall_ns - event->wait.start_ns :
				event->statement.wall_ns - event->statement.start_ns);
		return 0;
	}
	r->info.start_wall_ns = r->info.start_ns;
	return ret;
}

/*
 * Read what was displaced: the last block has it. Blocks are missing then that were not damaged.
 * Return 0 or -errno.
 */
static int replay_users(struct replay *r)
{
	struct reader *reader = &r->reader;
	struct decode_event *event;
	int ret;

	reader_continue(reader, reader->nblocks - 1);
	while ((ret = reader_next(reader, &event)) > 0) {
		if (event->type != RECORDING_STATUS)
			continue;
		r->info.nusers = event->status.nusers;
		memcpy(r->info.users, event->status.users, sizeof(r->info.users));
	}
	for (size_t i = 0; i < r->info.nusers; i++)
		if (r->info.users[i].last_ns)
			reader->damage.missing = 0;
	return ret;
}

struct replay *replay_new(int fd)
{
	struct replay *r = calloc(1, sizeof(*r));

	if (r)
		r->reader.fd = fd;
	else
		close(fd);
	return r;
}

int replay_read(struct replay *r, bool (*stopped)(void *arg), void *arg)
{
	struct decode_event *event;
	int ret = reader_open(&r->reader, r->reader.fd, stopped, arg);

	while (!ret && !r->reader.damage.unstarted) {
		ret = reader_next(&r->reader, &event);
		if (ret <= 0 || event->type != RECORDING_OPTIONS || reader_first(&r->reader))
			break;
		info_option(&r->info, event);
		ret = 0;
	}
	if (ret >= 0)
		ret = replay_users(r);
	if (ret < 0)
		return ret;
	reader_range(&r->reader, &r->info.begin_ns, &r->info.end_ns);
	return replay_clock(r);
}

const struct replay_info *replay_info(const struct replay *r)
{
	return &r->info;
}

void replay_rewind(struct replay *r)
{
	uint64_t since_ns = r->config.since_ns;

	reader_seek(&r->reader, since_ns);
	r->now_ns = since_ns > r->info.start_ns ? since_ns : r->info.start_ns;
	r->seen = 0;
	memset(r->sink.lost, 0, sizeof(r->sink.lost));
	memset(r->owners, 0, sizeof(*r->owners));
	r->ended = r->cut = r->based = false;
	r->earlier = r->earlier_waits = (struct summary){ .statements = 0 };
	r->statements = r->waits = r->earlier;
	replay_fetch(r);
}

int replay_start(struct replay *r, const struct replay_config *config)
{
	struct sink_config sink = config->sink;
	int err;

	r->config = *config;
	r->owners = sink.owners = calloc(1, sizeof(*r->owners));
	err = r->owners ? sink_open(&r->sink, &sink) : -ENOMEM;
	if (!err)
		replay_rewind(r);
	return err;
}

/* Return whether one of the @n first servers is @server, but for what is not reported. */
static bool replay_reported(const struct replay *r, size_t n, const struct server *server)
{
	for (size_t i = 0; i < n; i++) {
		const struct server *one = &r->reader.file.servers[i].server;

		if (!strcmp(one->engine->name, server->engine->name) && one->pid == server->pid &&
		    !strcmp(one->version, server->version) && !strcmp(one->path, server->path) &&
		    !strcmp(one->container, server->container))
			return true;
	}
	return false;
}

/* Report the servers that were not yet. */
static void replay_servers(struct replay *r)
{
	for (; r->servers < r->reader.file.nservers; r->servers++) {
		const struct server *s = &r->reader.file.servers[r->servers].server;
		const struct server_info info = {
			.engine = s->engine, .path = s->path, .version = s->version,
			.method = "", .title = describe_title(s->engine, s->version),
			.has = ~0u, .pids = &s->pid, .npids = s->pid != 0,
		};

		if (r->config.server && !replay_reported(r, r->servers, s))
			r->config.server(r->config.arg, &info);
	}
}

/* Return whether the event of @server is of the engine that is wanted. */
static bool replay_engine(const struct replay *r, const struct server *server)
{
	return !r->config.engine || !strcmp(r->config.engine, server->engine->name);
}

/* Turn a statement that was a transaction of its own into that, as enrich_transaction() does. */
static void replay_alone(struct statement *s, struct transaction *t)
{
	*t = (struct transaction){
		.state = !s->has_status ? TRANSACTION_IS_UNKNOWN : s->failed ?
			 TRANSACTION_IS_ROLLED_BACK : TRANSACTION_IS_COMMITTED,
		.dated = true, .counted = true, .statements = 1,
	};
	*s = (struct statement){
		.server = s->server, .who = s->who, .transaction = t, .alone = true,
		.start_ns = s->start_ns, .wall_ns = s->wall_ns, .duration_ns = s->duration_ns,
		.text = s->text, .text_len = s->text_len, .truncated = s->truncated,
		.no_text = s->no_text, .unended = true,
		.has_query_bytes = s->has_query_bytes, .query_bytes = s->query_bytes,
	};
}

/* Remove what was recorded of @s and is not wanted. */
static void replay_breakdown(struct replay *r, struct statement *s)
{
	struct event_breakdown *why = &r->why;

	if (!s->why)
		return;
	*why = *s->why;
	s->why = r->config.why ? why : NULL;
	if (!r->config.use)
		why->used = 0;
	if (!r->config.phases)
		memset(why->phases, 0, sizeof(why->phases));
}

static void replay_statement(struct replay *r, const struct decode_event *event)
{
	const struct replay_config *c = &r->config;
	struct statement s = event->statement;
	struct transaction alone;

	if (c->transactions && !s.transaction && s.alone && !s.prepare && !s.running)
		replay_alone(&s, &alone);
	if (!c->sink.statement || !s.transaction != !c->transactions ||
	    !replay_engine(r, s.server))
		return;
	/* As the programs count them. */
	r->seen += !s.running && !s.prepare;
	if ((s.prepare && !c->prepares) || s.duration_ns < c->threshold_ns)
		return;
	replay_breakdown(r, &s);
	sink_statement(&r->sink, &s, 0);
}

static void replay_wait(struct replay *r, const struct decode_event *event)
{
	const struct replay_config *c = &r->config;
	const struct lock_wait *wait = &event->wait;

	if (!c->sink.wait || wait->duration_ns < c->threshold_ns ||
	    !replay_engine(r, wait->server))
		return;
	r->seen += !wait->running;
	sink_wait(&r->sink, wait);
}

/* Return the losses in @now that are not in @before. */
static struct summary summary_since(const struct summary *now, const struct summary *before)
{
	struct summary since = {
		.boundary = now->boundary - before->boundary,
		.untraced_ns = now->untraced_ns - before->untraced_ns,
	};

	for (size_t i = 0; i < LOSSES; i++)
		since.lost[i] = now->lost[i] - before->lost[i];
	return since;
}

/* Keep the losses since the first event that is reported. */
static void replay_status(struct replay *r, const struct decode_event *event)
{
	if (!r->based && (r->reader.late || r->config.since_ns > r->info.start_ns)) {
		r->earlier = event->status.statements;
		r->earlier_waits = event->status.waits;
	}
	r->based = true;
	r->statements = summary_since(&event->status.statements, &r->earlier);
	r->waits = summary_since(&event->status.waits, &r->earlier_waits);
}

/* Report ->event. Those that had not ended come at the end, by replay_running(). */
static void replay_event(struct replay *r, bool running)
{
	const struct decode_event *event = r->event;
	bool open = event->type == RECORDING_STATEMENT ? event->statement.running :
		    event->type == RECORDING_WAIT && event->wait.running;

	replay_servers(r);
	if (open && !r->running)
		r->running = 1 + reader_first(&r->reader);
	switch (event->type) {
	case RECORDING_STATEMENT:
		if (open == running)
			replay_statement(r, event);
		break;
	case RECORDING_WAIT:
		if (open == running)
			replay_wait(r, event);
		break;
	case RECORDING_STATUS:
		replay_status(r, event);
		break;
	default:
		break;
	}
}

/* Return whether ->event and all further ones ended later than is wanted. */
static bool replay_past(const struct replay *r)
{
	const struct reader *reader = &r->reader;

	return reader->blocks[reader_first(reader)].least_ns > r->config.until_ns;
}

int replay_drain(struct replay *r, uint64_t limit_ns)
{
	for (int i = 0; i < DRAIN_EVENTS; i++) {
		uint64_t end_ns;

		if (!r->event || replay_past(r))
			break;
		end_ns = r->event->end_ns;
		/* Events are not exactly in the order of their ends. */
		if (end_ns > r->config.until_ns) {
			r->cut = true;
			replay_fetch(r);
			continue;
		}
		if (end_ns > limit_ns) {
			r->now_ns = limit_ns;
			return 1;
		}
		if (end_ns >= r->config.since_ns)
			replay_event(r, false);
		r->now_ns = end_ns > r->now_ns ? end_ns : r->now_ns;
		replay_fetch(r);
	}
	if (r->event && !replay_past(r))
		return 1;
	r->ended = !r->event && !r->cut && !r->error;
	return r->error;
}

uint64_t replay_now(const struct replay *r)
{
	return r->now_ns;
}

uint64_t replay_next(const struct replay *r)
{
	return r->event ? r->event->end_ns : r->now_ns;
}

uint64_t replay_wall(const struct replay *r, uint64_t ns)
{
	return ns - r->info.start_ns + r->info.start_wall_ns;
}

void replay_running(struct replay *r)
{
	struct reader *reader = &r->reader;

	if (!r->ended || reader->damage.unended || !r->running)
		return;
	reader_continue(reader, r->running - 1);
	for (replay_fetch(r); r->event; replay_fetch(r))
		replay_event(r, true);
}

ssize_t replay_histogram(const struct replay *r, struct histogram_row **rows)
{
	return histogram_copy(&r->sink.histogram, rows);
}

void replay_summary(const struct replay *r, struct summary *summary, bool waits)
{
	*summary = waits ? r->waits : r->statements;
	summary->statements = r->seen;
	loss_add(summary, r->owners);
	if (waits)
		return;
	/* Of texts, what is shown here counts, not what the recorder has shown. */
	for (int i = 0; i < LOSSES; i++)
		if (loss_rows[i].group & LOSSES_OF_TEXTS)
			summary->lost[i] = r->sink.lost[i];
}

const struct reader_damage *replay_damage(const struct replay *r)
{
	return &r->reader.damage;
}

void replay_close(struct replay *r)
{
	if (!r)
		return;
	close(r->reader.fd);
	reader_close(&r->reader);
	sink_close(&r->sink);
	free(r->owners);
	free(r);
}
