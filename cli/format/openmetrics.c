// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/openmetrics.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/format/escape.h"
#include "cli/version.h"
#include "db/session/breakdown.h"
#include "host/clock.h"

/* In the order of enum metrics_label. */
static const char label_names[METRICS_LABELS][12] = {
	"engine", "server", "uid", "database", "user", "command", "fingerprint", "backend",
};

/* An exposition being written. */
struct exposition {
	struct output *out;
	const struct metrics *metrics;
	const struct metrics_tool *tool;
};

/* Return the beginning of the names of the families of series. */
static const char *prefix_of(const struct exposition *e)
{
	return e->tool->by_fingerprint ? "dbslower_fingerprint_" : "dbslower_statement_";
}

/* Append the head of a family. */
static void put_family(struct output *out, const char *prefix, const char *name, const char *type,
		       const char *help)
{
	output_printf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", prefix, name, help, prefix, name,
		      type);
}

static void put_label(struct output *out, char before, const char *name, const char *value)
{
	output_char(out, before);
	output_string(out, name);
	output_string(out, "=\"");
	escape_label(out, value);
	output_char(out, '"');
}

/* Append the name and labels of a sample, with one more label unless @name is NULL. */
static void put_sample(const struct exposition *e, const char *sample,
		       const struct metrics_series *series, const char *name, const char *value)
{
	const char *text = series->labels;

	output_string(e->out, prefix_of(e));
	output_string(e->out, sample);
	/* node_exporter refuses all files of its directory if two have the same series. */
	put_label(e->out, '{', "file", e->tool->path);
	for (int i = 0; i < METRICS_LABELS; i++, text += strlen(text) + 1)
		if (*text)
			put_label(e->out, ',', label_names[i], text);
	if (name)
		put_label(e->out, ',', name, value);
	output_string(e->out, "} ");
}

static void put_value(struct output *out, uint64_t value, unsigned int decimals)
{
	output_fixed(out, value, decimals);
	output_char(out, '\n');
}

static void put_histogram(const struct exposition *e, const struct metrics_series *series)
{
	uint64_t count = 0;

	for (unsigned int i = 0; i <= METRICS_BOUNDS; i++) {
		count += series->bucket[i];
		put_sample(e, "duration_seconds_bucket", series, "le", metrics_bound_text(i));
		put_value(e->out, count, 0);
	}
	put_sample(e, "duration_seconds_sum", series, NULL, NULL);
	put_value(e->out, series->sum_ns, 9);
	put_sample(e, "duration_seconds_count", series, NULL, NULL);
	put_value(e->out, series->count, 0);
}

static void put_errors(const struct exposition *e, const struct metrics_series *series)
{
	put_sample(e, "errors_total", series, NULL, NULL);
	put_value(e->out, series->errors, 0);
}

static void put_rows(const struct exposition *e, const struct metrics_series *series)
{
	put_sample(e, "rows_total", series, NULL, NULL);
	put_value(e->out, series->rows, 0);
}

static void put_parts(const struct exposition *e, const struct metrics_series *series)
{
	for (int i = 0; i < BREAKDOWN_PARTS; i++) {
		put_sample(e, "part_seconds_total", series, "part",
			   breakdown_part_name((enum breakdown_part)i));
		put_value(e->out, series->part_ns[i], 9);
	}
}

static void put_text(const struct exposition *e, const struct metrics_series *series)
{
	if (!series->text)
		return;
	put_sample(e, "info", series, "text", series->text);
	put_value(e->out, 1, 0);
}

static void put_series(const struct exposition *e)
{
	static const struct {
		char name[20], type[12];
		const char *help;
		void (*put)(const struct exposition *e, const struct metrics_series *series);
	} families[] = {
		{ "duration_seconds", "histogram", "Durations of statements.", put_histogram },
		{ "errors_total", "counter", "Statements that failed.", put_errors },
		{ "rows_total", "counter", "Rows that statements returned or changed.", put_rows },
		{ "part_seconds_total", "counter", "Time in each part of statements.", put_parts },
		{ "info", "gauge", "The text of a fingerprint.", put_text },
	};

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		if ((families[i].put == put_parts && !e->tool->why) ||
		    (families[i].put == put_text && !e->tool->by_fingerprint))
			continue;
		put_family(e->out, prefix_of(e), families[i].name, families[i].type,
			   families[i].help);
		for (size_t j = !e->metrics->series[0]->count; j < e->metrics->count; j++)
			families[i].put(e, e->metrics->series[j]);
	}
}

/* Append a family of the tracer with one sample. */
static void put_tool(const struct exposition *e, const char *name, const char *type,
		     const char *help, uint64_t value)
{
	bool is_ns = strstr(name, "_seconds");

	put_family(e->out, "dbslower_", name, type, help);
	output_string(e->out, "dbslower_");
	output_string(e->out, name);
	put_label(e->out, '{', "file", e->tool->path);
	output_string(e->out, "} ");
	put_value(e->out, value, is_ns ? 9 : 0);
}

static void put_losses(const struct exposition *e)
{
	put_family(e->out, "dbslower_", "losses_total", "counter",
		   "Statements or texts lost, by cause.");
	for (size_t i = 0; i < LOSSES; i++) {
		if (!loss_is_of((enum loss)i, e->tool->losses))
			continue;
		output_string(e->out, "dbslower_losses_total");
		put_label(e->out, '{', "file", e->tool->path);
		put_label(e->out, ',', "cause", loss_rows[i].name);
		output_string(e->out, "} ");
		put_value(e->out, e->tool->summary.lost[i], 0);
	}
}

static void put_build(const struct exposition *e)
{
	char version[32];

	snprintf(version, sizeof(version), "%.*s", (int)strcspn(version_text, " "), version_text);
	put_family(e->out, "dbslower_", "build_info", "gauge", "The version of dbslower.");
	output_string(e->out, "dbslower_build_info");
	put_label(e->out, '{', "file", e->tool->path);
	put_label(e->out, ',', "version", version);
	output_string(e->out, "} 1\n");
}

void openmetrics_put(struct output *out, const struct metrics *metrics,
		     const struct metrics_tool *tool)
{
	const struct exposition e = { out, metrics, tool };

	put_series(&e);
	put_tool(&e, "running_statements", "gauge", "Statements that are running.", tool->running);
	put_tool(&e, "unlabelled_statements_total", "counter",
		 "Statements counted without labels, beyond the limit of label sets.",
		 metrics->series[0]->count);
	put_tool(&e, "label_sets", "gauge", "Label sets of statements.", metrics->count - 1);
	put_losses(&e);
	put_tool(&e, "events_total", "counter", "Statements that the BPF programs counted.",
		 tool->summary.statements);
	put_tool(&e, "cpu_seconds_total", "counter", "CPU time of dbslower.", tool->cpu_ns);
	if (tool->losses & LOSSES_OF_LIMIT)
		put_tool(&e, "untraced_seconds_total", "counter", "Time of files without probes.",
			 tool->summary.untraced_ns);
	if (tool->has_bpf)
		put_tool(&e, "bpf_seconds_total", "counter", "CPU time of the BPF programs.",
			 tool->bpf_ns);
	put_build(&e);
}

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/*
 * Create a file beside @name in @dir, called @new. Collectors read *.prom. The first name is the
 * same each time, so that one at most is left behind if dbslower is killed; with the others, a user
 * who can create files in the directory cannot block it. Return its descriptor or -errno.
 */
static int create_beside(int dir, const char *name, char new[NAME_MAX + 1])
{
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, fd, err = -EEXIST;

	if ((size_t)snprintf(new, NAME_MAX + 1, ".%s.new", name) > NAME_MAX)
		return -ENAMETOOLONG;
	unlinkat(dir, new, 0);
	for (int i = 0; i < 8 && err == -EEXIST; i++) {
		uint64_t random = clock_ns(CLOCK_MONOTONIC);

		fd = openat(dir, new, flags, 0644);
		if (fd >= 0)
			return fd;
		err = -errno;
		/* Early at boot it has none, and then the clock serves. */
		getrandom(&random, sizeof(random), GRND_NONBLOCK);
		if ((size_t)snprintf(new, NAME_MAX + 1, ".%s.%016llx", name,
				     (unsigned long long)random) > NAME_MAX)
			return -ENAMETOOLONG;
	}
	return err;
}

/* To rename a file to /dev/null would remove the device. */
int openmetrics_check(int dir, const char *path)
{
	struct stat st;

	return !fstatat(dir, name_of(path), &st, AT_SYMLINK_NOFOLLOW) && !S_ISREG(st.st_mode) ?
	       -EINVAL : 0;
}

int openmetrics_replace(int dir, const char *path, struct output *out,
			const struct metrics *metrics, const struct metrics_tool *tool)
{
	int err = openmetrics_check(dir, path), fd;
	const char *name = name_of(path);
	char new[NAME_MAX + 1];

	if (err)
		return err;
	fd = create_beside(dir, name, new);
	if (fd < 0)
		return fd;
	output_init(out, fd);
	openmetrics_put(out, metrics, tool);
	err = output_flush(out);
	if (close(fd) && !err)
		err = -errno;
	if (!err && renameat(dir, new, dir, name))
		err = -errno;
	if (err)
		unlinkat(dir, new, 0);
	return err;
}
