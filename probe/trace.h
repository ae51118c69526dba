/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * probe/: tracing of any probe of any program, for the command trace and the self-test: requests,
 * the search for sites, hits, counts.
 * It knows no databases, and prints nothing.
 */

/*
 * Tracing of arbitrary probes: attaches the uprobes that probe requests match in any files, and
 * delivers the hits or their counts.
 */
#ifndef PROBE_TRACE_H
#define PROBE_TRACE_H

#include <sys/types.h>

#include "bpf/event.h"
#include "host/file.h"
#include "probe/hit_count.h"
#include "probe/request.h"
#include "loader/sandbox.h"
#include "loader/feature.h"
#include "loader/owners.h"

#define PROBE_STACK	(HIT_STACK_FRAMES + 1)

struct probe_hit_text {
	const char *bytes;		/* foreign; no NUL */
	size_t len;
	bool known;			/* false: unreadable, or at address 0 */
	bool cut;			/* the text is longer */
};

/* A hit of a probe. Everything is valid during the callback only. */
struct probe_hit {
	const struct traced_probe *probe;
	uint32_t pid, tid;
	uint64_t time_ns, wall_ns;	/* CLOCK_MONOTONIC, CLOCK_REALTIME */
	const char *comm;		/* foreign bytes */
	uint64_t values[REQUEST_FIELDS];
	uint32_t unknown;		/* bit n: value n, or the address of that text */
	struct probe_hit_text texts[REQUEST_FIELDS];	/* of REQUEST_TEXT and REQUEST_COMM */
	uint64_t latency_ns;		/* 0: not measured */
	const uint64_t *stack;		/* addresses, the innermost first */
	unsigned int nstack;		/* at most PROBE_STACK */
};

struct probe_trace_config {
	const uint32_t *pids;		/* of the processes to trace; none: all */
	size_t npids;
	enum probe_request_mode mode;
	uint32_t text_bytes;		/* bytes of a text to capture at most */
	unsigned int texts;		/* maximum number of texts in a hit */
	bool latency;			/* requests have a ->latency .. */
	bool pair;			/* .. LATENCY_START and LATENCY_END */
	bool stacks;			/* capture user stacks */
	bool go_returns;		/* trace returns in Go programs, at their risk */
	uint32_t denied;		/* features not to be used, see feature_deny() */
	bool (*is_program)(const char *name);	/* for process_read() */

	void *arg;			/* of these functions: */
	void (*hit)(void *arg, const struct probe_hit *hit);
	/* See runtime_config. */
	bool (*stopped)(void *arg);
	void (*error)(void *arg, const struct error *error);
	/* Called for a probe that matches a pattern but cannot be traced, with the cause. */
	void (*skipped)(void *arg, const struct error *error);
};

struct probe_trace;

/*
 * Prepare tracing. Return 0 with *@out, which the caller closes by probe_trace_close(); or -errno
 * and the cause in @error.
 */
int probe_trace_open(struct probe_trace **out, const struct probe_trace_config *config,
		     struct error *error);

/*
 * Add the probes that @request, with index @number, matches in @file, which the caller still
 * closes. Return the number of probes, or -errno and the cause in @error. Return -ENOEXEC with
 * @error unchanged if it is not an ELF file.
 */
int probe_trace_add(struct probe_trace *trace, const struct probe_request *request,
		    uint32_t number, const struct file *file, struct error *error);

/*
 * Report by config->error the processes that execute a copy of a file's code, where no probe is
 * hit. Return 0; or -ENOTSUP with the cause in @error if that is so at all sites of config->pids.
 */
int probe_trace_check(struct probe_trace *trace, struct error *error);

/* Attach all probes that were added. Return 0, or -errno and the cause in @error. */
int probe_trace_attach(struct probe_trace *trace, struct error *error);

/* Return the privileges that are needed once all probes are attached, for sandbox_enter(). */
unsigned int probe_trace_needs(const struct probe_trace *trace);

/* The number of probes, sites and files, and the attach method. */
struct probe_trace_extent {
	uint32_t probes, sites, files;
	const char *method;		/* "uprobe_multi"; static */
};

void probe_trace_extent(const struct probe_trace *trace, struct probe_trace_extent *extent);

/* Return the results of the feature probes. Borrowed. */
const struct features *probe_trace_features(const struct probe_trace *trace);

/* Pass each waiting record to config->hit. Return the fill level of the buffer in percent. */
int probe_trace_drain(struct probe_trace *trace);

/*
 * Request a wake-up at the next record. Return the descriptor that becomes readable with it, or
 * -EAGAIN if there are records.
 */
int probe_trace_sleep(struct probe_trace *trace);

/*
 * Store the counts since the last call in *@counts, sorted by probe, values and slot without
 * duplicates; the caller frees them. Return their number or -ENOMEM.
 */
ssize_t probe_trace_counts(struct probe_trace *trace, struct probe_trace_count **counts);

/* Set the values of @hit, which borrows from @count, to those of the hits that were counted. */
void probe_trace_count_values(const struct probe_trace_count *count, struct probe_hit *hit);

/* Return whether two traced probes have the same name and are both entries or both returns. */
bool probe_trace_same(const struct traced_probe *a, const struct traced_probe *b);

/* Numbers of hits, and of hits that were dropped. */
struct probe_trace_summary {
	uint64_t probes, ring_full, table_full;
	uint64_t undecided;		/* the filter has an argument that could not be read */
	struct owners_report users;	/* losses by the user of the traced process */
};

void probe_trace_summary(const struct probe_trace *trace, struct probe_trace_summary *summary);

/* Detach the probes. Records that are already in the buffer can still be drained. */
void probe_trace_detach(struct probe_trace *trace);

/* Detach and free everything. @trace may be NULL. */
void probe_trace_close(struct probe_trace *trace);

#endif
