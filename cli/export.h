/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --openmetrics and --otlp-metrics of the commands that count statements. */
#ifndef CLI_EXPORT_H
#define CLI_EXPORT_H

#include "cli/format/openmetrics.h"
#include "cli/format/otlp.h"
#include "cli/option/option.h"
#include "cli/tracing.h"

/* Closed if all zero. */
struct export {
	struct loop *loop;	/* borrowed; NULL: nothing is exported */
	struct metrics metrics;
	struct metrics_tool tool;
	struct otlp otlp;
	bool standard;			/* nothing else is written to the standard output */
	bool once;			/* of OpenMetrics: one exposition is written to it .. */
	bool written;			/* .. and was */
	bool counting;			/* running statements are counted, for the metrics alone */
	bool succeeded;			/* a write did: a failed one is tried again */
	unsigned int warned;		/* of these METRICS_LIMIT_* */
	int dir;			/* of the file of --openmetrics, by O_PATH; owned */
	int error;			/* 0, or the first one of the last write, -errno .. */
	const char *failed;		/* .. to this file */
	uint64_t interval_ns, next_ns;	/* CLOCK_MONOTONIC */
	struct output scratch;
};

extern const struct option_row option_openmetrics, option_otlp_metrics;

/* Return whether one of them was given. */
bool export_is_wanted(void);

/* Return whether they and @others, a number, write to the standard output. */
bool export_conflicts(int others);

/* The rule that says so; @function is its ->broken. */
#define EXPORT_RULE(function) {							\
	function, "-",								\
	"can receive one of --openmetrics, --otlp-metrics, --json and --heatmap",	\
	"specify files for the others",						\
}

/*
 * Open what the options of @tracing name, before privileges are dropped. Do nothing without them.
 * Return EXIT_OK or EXIT_FAILED. export_close() ends it.
 */
int export_open(struct export *export, struct loop *loop);

/* Begin to count at the time, and for the host, of the recording: known only now. Live: nothing. */
void export_begin(struct export *export);

/* Request what is exported from the tracer. */
void export_config(const struct export *export, struct tracer_config *config);

/*
 * Count @statement; with @fingerprint by its @hash. Return whether it was passed for this alone. Do
 * nothing if nothing is exported.
 */
bool export_statement(struct export *export, const struct statement *statement, uint64_t hash,
		      const char *fingerprint);

/*
 * Write, if it is time. A failure of the first time ends the loop, export_finish() reports it. A
 * later one is reported here, unless the one before failed, too.
 */
void export_tick(struct export *export);

/* Write the last counts. Return EXIT_OK, or EXIT_FAILED after a message. */
int export_finish(struct export *export);

void export_close(struct export *export);

#endif
