/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Metrics in the text format of Prometheus (0.0.4), which node_exporter and promtool read. In
 * OpenMetrics the metadata of a counter have a name without _total.
 */
#ifndef CLI_FORMAT_OPENMETRICS_H
#define CLI_FORMAT_OPENMETRICS_H

#include "cli/format/metrics.h"
#include "cli/output.h"
#include "db/loss.h"

/* Counts of the tracer itself since the start. */
struct metrics_tool {
	const char *path;		/* of the output: distinguishes several tracers of a host */
	bool by_fingerprint;		/* the series have fingerprints */
	bool why;			/* ->part_ns of the series is known */
	bool has_bpf;			/* ->bpf_ns is known */
	uint64_t cpu_ns, bpf_ns;	/* of this process, and of the BPF programs */
	uint64_t running;		/* statements now */
	uint64_t start_ns, now_ns;	/* CLOCK_REALTIME */
	unsigned int losses;		/* LOSSES_OF_* */
	struct summary summary;
};

/* Append one exposition. */
void openmetrics_put(struct output *out, const struct metrics *metrics,
		     const struct metrics_tool *tool);

/* Return 0 if @path in the directory open as @dir is a regular file or absent; else -EINVAL. */
int openmetrics_check(int dir, const char *path);

/*
 * Replace the regular file @path in the directory open as @dir by one exposition: it is written to
 * a new file beside it with mode 0644, which is renamed. @out is scratch. Return 0 or -errno, with
 * the old file unchanged; -EINVAL if it is not a regular file.
 */
int openmetrics_replace(int dir, const char *path, struct output *out,
			const struct metrics *metrics, const struct metrics_tool *tool);

#endif
