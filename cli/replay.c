// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/replay.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "cli/banner.h"
#include "cli/format/escape.h"
#include "cli/format/json.h"
#include "cli/message.h"
#include "host/open.h"
#include "loader/sandbox.h"

#define NS_PER_DAY	(86400 * NS_PER_S)
#define WAKES_MAX	1000000		/* ticks without an event; then time leaps */

/* A time in a recording: since its start, a local time of day, or since 1970 in UTC. */
struct option_time {
	enum { OPTION_TIME_NONE, OPTION_TIME_START, OPTION_TIME_DAY, OPTION_TIME_UTC } of;
	uint64_t ns;
};

static struct {
	struct option_time since, until;	/* events that ended then */
} own;

/* The state of a replay beyond struct loop; one exists at a time. */
static struct {
	struct replay *replay;		/* owned */
	const char *path;
	uint64_t now_ns, wall_ns;	/* its time */
	bool read;			/* it is a recording */
	bool begun;			/* the first tick was requested */
	bool stopped;			/* no event is reported any more */
	uint64_t wakes;			/* without an event */
	uint64_t since_ns, until_ns;
	bool waits;			/* events are lock waits */
} state;

/* Begin a message on the recording at @path. */
static void replay_subject(struct output *err, const char *path)
{
	output_string(err, "dbslower: ");
	escape_terminal(err, path, strlen(path), false);
}

int replay_open_path(struct replay **replay, const char *path, struct output *err)
{
	struct error error = { .kind = ERROR_NONE };
	int fd = open_regular(path);

	*replay = NULL;
	if (fd < 0) {
		error_set(&error, ERROR_FILE, fd, path, NULL);
		message_error(err, &error);
		output_flush(err);
		return EXIT_FAILED;
	}
	*replay = replay_new(fd);
	return *replay ? EXIT_OK : message_no_memory();
}

/* Return whether the loop is to end. */
static bool recording_stopped(void *arg)
{
	const struct loop *loop = arg;
	struct pollfd stop = { .fd = loop->stop, .events = POLLIN };

	return poll(&stop, 1, 0) > 0;
}

/* Report whose events were displaced, unless all are of one user. */
static void replay_displaced(const struct replay *replay, const char *path, struct output *err)
{
	const struct replay_info *info = replay_info(replay);

	for (size_t i = 0; info->nusers > 1 && i < info->nusers; i++) {
		const struct recorded_user *user = &info->users[i];
		char last[JSON_TIME];

		if (!user->statements && !user->waits)
			continue;
		json_time_text(last, replay_wall(replay, user->last_ns));
		replay_subject(err, path);
		output_printf(err, ": no room was left for up to %llu statements and %llu lock "
			      "waits, until %.19sZ, of ", (unsigned long long)user->statements,
			      (unsigned long long)user->waits, last);
		if (!user->known || user->uid == UINT32_MAX)
			output_string(err, user->known ? "unknown users\n" : "other users\n");
		else
			output_printf(err, "user %u\n", user->uid);
	}
	output_flush(err);
}

int replay_read_path(struct replay *replay, const char *path, unsigned int needs,
		     struct loop *loop, struct output *err)
{
	struct error error = { .kind = ERROR_NONE };
	struct sandbox sandbox;
	int ret;

	sandbox_enter(needs | SANDBOX_READ, &sandbox);
	ret = replay_read(replay, loop ? recording_stopped : NULL, loop);
	if (!ret) {
		replay_displaced(replay, path, err);
		return EXIT_OK;
	}
	if (ret == -EINTR) {
		replay_subject(err, path);
		output_string(err, ": interrupted before its first event\n");
	} else if (ret == -EPROTONOSUPPORT) {
		replay_subject(err, path);
		output_string(err, replay_damage(replay)->unstarted ?
			      ": the start is missing, and it was written by another version of "
			      "dbslower; use that one\n" :
			      ": written by a later version of dbslower; use that one\n");
	} else if (ret == -EINVAL) {
		replay_subject(err, path);
		output_string(err, ": not a recording; specify a file that dbslower record has "
			      "written\n");
	} else {
		error_set(&error, ERROR_FILE, ret, path, NULL);
		message_error(err, &error);
	}
	output_flush(err);
	return EXIT_FAILED;
}

/* Return the local time of day @ns after midnight, at or after the start of the recording. */
static uint64_t replay_day(uint64_t start_wall_ns, uint64_t ns)
{
	time_t start = (time_t)(start_wall_ns / NS_PER_S);
	uint64_t seconds = ns / NS_PER_S, at = 0;
	struct tm tm;

	/* Today or tomorrow, whose days may have 23 or 25 hours. */
	for (int days = 0; days < 2 && at + NS_PER_S <= start_wall_ns; days++) {
		localtime_r(&start, &tm);
		tm.tm_mday += days;
		tm.tm_hour = (int)(seconds / 3600);
		tm.tm_min = (int)(seconds / 60 % 60);
		tm.tm_sec = (int)(seconds % 60);
		tm.tm_isdst = -1;
		at = (uint64_t)mktime(&tm) * NS_PER_S + ns % NS_PER_S;
	}
	return at;
}

/* Return @time of the options as CLOCK_MONOTONIC of the recording, or @none. */
static uint64_t replay_time(const struct replay *replay, const struct option_time *time,
			    uint64_t none)
{
	const struct replay_info *info = replay_info(replay);
	uint64_t wall;

	if (time->of == OPTION_TIME_NONE)
		return none;
	if (time->of == OPTION_TIME_START)
		return info->start_ns + time->ns;
	wall = time->of == OPTION_TIME_UTC ? time->ns : replay_day(info->start_wall_ns, time->ns);
	return wall > info->start_wall_ns ? info->start_ns + (wall - info->start_wall_ns) : 0;
}

/* Report that no event can have ended in the range, and when they did. */
static void replay_outside(const struct replay *replay, uint64_t since_ns, uint64_t until_ns,
			   struct output *err)
{
	const struct replay_info *info = replay_info(replay);
	char begin[JSON_TIME], end[JSON_TIME];

	if (!info->end_ns || (since_ns <= info->end_ns && until_ns >= info->begin_ns))
		return;
	json_time_text(begin, replay_wall(replay, info->begin_ns));
	json_time_text(end, replay_wall(replay, info->end_ns));
	output_printf(err, "dbslower: %s: outside of the recording, whose events ended from "
		      "%.19sZ to %.19sZ\n", since_ns > info->end_ns ? "--since" : "--until", begin,
		      end);
	output_flush(err);
}

int replay_times(const struct replay *replay, uint64_t *since_ns, uint64_t *until_ns,
		 struct output *err)
{
	*since_ns = replay_time(replay, &own.since, 0);
	*until_ns = replay_time(replay, &own.until, UINT64_MAX);
	if (*since_ns <= *until_ns) {
		replay_outside(replay, *since_ns, *until_ns, err);
		return EXIT_OK;
	}
	output_string(err, "dbslower: --until: earlier than --since; specify a later time\n");
	output_flush(err);
	return EXIT_USAGE;
}

/* Set the time of the recording that was reached. */
static void recording_time(uint64_t now_ns)
{
	state.now_ns = now_ns;
	state.wall_ns = replay_wall(state.replay, now_ns);
}

/* Open the recording of a command. It is read once everything else is open. */
static int recording_open(struct loop *loop)
{
	int status;

	memset(&state, 0, sizeof(state));
	state.path = loop->command->recording;
	status = replay_open_path(&state.replay, state.path, &loop->err);
	return status == EXIT_OK ? START_GO : status;
}

/* Begin to read the recording, and set the clock. Return EXIT_OK or an exit status. */
static int recording_read(struct loop *loop, unsigned int needs)
{
	const struct replay_info *info = replay_info(state.replay);
	int status = replay_read_path(state.replay, state.path, needs, loop, &loop->err);

	if (status != EXIT_OK)
		return status;
	state.read = true;
	status = replay_times(state.replay, &state.since_ns, &state.until_ns, &loop->err);
	loop->start_ns = info->start_ns;
	recording_time(state.since_ns > info->start_ns ? state.since_ns : info->start_ns);
	loop->end_ns = state.until_ns < info->end_ns ? state.until_ns : info->end_ns;
	if (loop->end_ns < state.now_ns)
		loop->end_ns = state.now_ns;
	loop->host = info->host;
	loop->banner.npids = info->npids;
	memcpy(loop->banner.pids, info->pids, sizeof(info->pids));
	return status;
}

static int recording_start(struct loop *loop, const struct tracer_config *config)
{
	struct replay_config replay = {
		.engine = config->servers.engine, .threshold_ns = config->threshold_ns,
		.prepares = config->prepares, .transactions = config->transactions,
		.why = config->why, .use = config->use, .phases = config->phases,
		.sink = config->sink, .arg = loop, .server = config->server,
	};
	int status = loop_ready(loop);

	state.waits = config->sink.wait;
	if (status == EXIT_OK)
		status = recording_read(loop, config->needs);
	if (status != EXIT_OK)
		return status;
	loop_json(loop);
	/* It does not wait between its events. */
	loop->nap_ms = 0;
	loop->banner.silent = true;
	replay.since_ns = state.since_ns;
	replay.until_ns = state.until_ns;
	if (replay_start(state.replay, &replay))
		return message_no_memory();
	loop->banner.opened = loop->banner.begun = true;
	loop->ops->begin(loop);
	return EXIT_OK;
}

/* Report events until the next tick that the command wants. */
static int recording_drain(struct loop *loop)
{
	uint64_t limit_ns = loop->wake_ns ? loop->wake_ns : UINT64_MAX;
	uint64_t next_ns = replay_next(state.replay);
	int ret;

	if (state.stopped)
		return 0;
	if (next_ns > limit_ns && state.wakes++ > WAKES_MAX)
		limit_ns = next_ns;
	/* The first tick is at the start, before all events. */
	if (!state.begun)
		limit_ns = state.now_ns;
	state.begun = true;
	ret = replay_drain(state.replay, limit_ns);
	loop->wake_ns = 0;
	recording_time(replay_now(state.replay));
	if (ret > 0)
		return 100;
	if (!ret && loop->stays) {
		recording_time(limit_ns < UINT64_MAX ? limit_ns : state.now_ns);
		return 100;
	}
	if (ret < 0 && ret != -EINTR)
		loop->failed = message_unread(&loop->err, state.path, ret);
	loop->done = true;
	return 0;
}

static void recording_rewind(struct loop *loop)
{
	(void)loop;
	replay_rewind(state.replay);
	recording_time(replay_now(state.replay));
}

static void recording_running(struct loop *loop)
{
	if (loop->ending)
		replay_running(state.replay);
}

static void recording_detach(struct loop *loop)
{
	(void)loop;
	state.stopped = true;
}

static void recording_summary(struct loop *loop, struct summary *summary, bool waits)
{
	(void)loop;
	(void)waits;
	replay_summary(state.replay, summary, state.waits);
}

static ssize_t recording_histogram(const struct loop *loop, struct histogram_row **rows)
{
	(void)loop;
	return replay_histogram(state.replay, rows);
}

static int recording_sleep(struct loop *loop)
{
	(void)loop;
	return -EAGAIN;
}

static uint64_t recording_now(const struct loop *loop)
{
	(void)loop;
	return state.now_ns;
}

static uint64_t recording_wall(const struct loop *loop)
{
	(void)loop;
	return state.wall_ns;
}

static void recording_close(struct loop *loop)
{
	if (state.read)
		replay_report(state.replay, state.path, &loop->err);
	replay_close(state.replay);
}

const struct source source_recording = {
	.open = recording_open, .start = recording_start, .now = recording_now,
	.wall = recording_wall, .drain = recording_drain, .sleep = recording_sleep,
	.running = recording_running, .detach = recording_detach, .summary = recording_summary,
	.histogram = recording_histogram, .lwlocks = source_no_lwlocks,
	.run_ns = source_no_run_ns, .rewind = recording_rewind, .close = recording_close,
};

void replay_report(const struct replay *replay, const char *path, struct output *err)
{
	const struct reader_damage *damage = replay_damage(replay);

	if (damage->unstarted) {
		replay_subject(err, path);
		output_string(err, ": the start is missing; times are since the first event\n");
	}
	if (damage->missing) {
		replay_subject(err, path);
		output_printf(err, ": %llu blocks are missing; their events are not shown\n",
			      (unsigned long long)damage->missing);
	}
	if (damage->broken) {
		replay_subject(err, path);
		output_printf(err, ": %llu blocks are damaged, the first one at byte %llu; their "
			      "events are not shown\n", (unsigned long long)damage->broken,
			      (unsigned long long)damage->offset);
	}
	if (damage->unended) {
		replay_subject(err, path);
		output_string(err, damage->cut ?
			      ": ends within a block; the recorder was killed, or the file is "
			      "cut\n" :
			      ": has no end; the recorder was killed, or is running\n");
	}
	output_flush(err);
}

/* Parse two digits or more, up to @max. Return false if there are none. */
static bool time_number(const char **text, uint64_t max, uint64_t *value)
{
	size_t len = strspn(*text, "0123456789");

	if (!len || option_read_number(*text, len, value) || *value > max)
		return false;
	*text += len;
	return true;
}

/* Parse "HH:MM" or "HH:MM:SS", with decimals, as ns since midnight. */
static bool time_of_day(const char **text, uint64_t *ns)
{
	uint64_t hour, minute, second = 0, unit = NS_PER_S;

	if (!time_number(text, 23, &hour) || *(*text)++ != ':' || !time_number(text, 59, &minute))
		return false;
	if (**text == ':') {
		++*text;
		if (!time_number(text, 60, &second))
			return false;
	}
	*ns = (hour * 3600 + minute * 60 + second) * NS_PER_S;
	if (**text == '.')
		for (++*text; **text >= '0' && **text <= '9'; ++*text)
			*ns += (uint64_t)(**text - '0') * (unit /= 10);
	return true;
}

/* Parse "2024-02-29T23:59:59Z" as ns since 1970. */
static bool time_utc(const char *text, uint64_t *ns)
{
	static const uint16_t before[] = {
		0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365
	};
	uint64_t year, month, day, days;
	bool leap;

	if (!time_number(&text, 2200, &year) || year < 1970 || *text++ != '-' ||
	    !time_number(&text, 12, &month) || !month || *text++ != '-' ||
	    !time_number(&text, 31, &day) || !day || *text++ != 'T' || !time_of_day(&text, ns) ||
	    strcmp(text, "Z"))
		return false;
	leap = year % 4 == 0 && (year % 100 || year % 400 == 0);
	if (day > before[month] - before[month - 1] + (uint64_t)(leap && month == 2))
		return false;
	days = (year - 1970) * 365 + (year - 1969) / 4 - (year - 1901) / 100 + (year - 1601) / 400 +
	       before[month - 1] + day - 1;
	days += leap && month > 2;
	*ns += days * NS_PER_DAY;
	return true;
}

static int set_time(struct option_parser *p, const struct option_row *row, const char *value)
{
	struct option_time *time = option_target(p, row);
	const char *text = value, *why;

	if (strchr(value, 'T')) {
		time->of = OPTION_TIME_UTC;
		return time_utc(value, &time->ns) ? 0 : option_refuse(p, row, value, "not a time");
	}
	if (strchr(value, ':')) {
		time->of = OPTION_TIME_DAY;
		return time_of_day(&text, &time->ns) && !*text ? 0 :
		       option_refuse(p, row, value, "not a time");
	}
	time->of = OPTION_TIME_START;
	return option_read_duration(value, NS_PER_S, &time->ns, &why) ?
	       option_refuse(p, row, value, why) : 0;
}

#define TIMES	"expected a time of day (14:05:30), a time in UTC (2024-02-29T14:05:30Z), or a " \
		"time since the start of the recording (90s, 5m)"

const struct option_row option_since = {
	.name = "since", .arg = "TIME",
	.help = "only what ended at that time or later: 14:05:30, 90s",
	.accepts = TIMES,
	.set = set_time, OPTION_OWN(own.since),
};

const struct option_row option_until = {
	.name = "until", .arg = "TIME",
	.help = "only what ended until then",
	.accepts = TIMES,
	.set = set_time, OPTION_OWN(own.until),
};
