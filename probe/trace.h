/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hits of any probes of any files: puts programs on them, and hands on what these send or count. */
#ifndef PROBE_TRACE_H
#define PROBE_TRACE_H

#include <sys/types.h>

#include "bpf/event.h"
#include "probe/request.h"
#include "loader/sandbox.h"
#include "loader/feature.h"

struct probe_hit_text {
	const char *bytes;		/* foreign; no NUL */
	size_t len;
	bool known;			/* false: it could not be read */
	bool cut;			/* there is more of it */
};

/* Borrowed for the call. */
struct probe_hit {
	const struct traced_probe *probe;
	uint32_t pid, tid;
	uint64_t time_ns, wall_ns;	/* CLOCK_MONOTONIC, CLOCK_REALTIME */
	const char *comm;		/* foreign bytes */
	uint64_t values[REQUEST_FIELDS];
	struct probe_hit_text texts[REQUEST_FIELDS];	/* of fields that are texts */
};

struct probe_trace_config {
	const uint32_t *pids;		/* only these processes; none: all */
	size_t npids;
	enum probe_request_mode mode;
	uint32_t text_bytes;		/* so much of a text is read */
	unsigned int texts;		/* how many texts a hit has at most */
	uint32_t denied;		/* features not to be used, see feature_deny() */
	bool (*is_program)(const char *name);	/* for process_read() */

	/* The callbacks. */
	void *arg;
	void (*hit)(void *arg, const struct probe_hit *hit);
	/* See runtime_config. */
	int (*lasting)(void *arg);
	void (*error)(void *arg, const struct error *error);
	/* A probe of a pattern cannot be traced as it was asked for, and is passed over. */
	void (*skipped)(void *arg, const struct error *error);
	/* Each program as it is loaded; may be NULL. */
	void (*program)(void *arg, const char *name, const struct bpf_insn *insns, size_t count);
};

struct probe_trace;

/* Makes ready; *@hits is the caller's to close. 0, or -errno and why in @fault. */
int probe_trace_open(struct probe_trace **probes, const struct probe_trace_config *config,
		     struct error *error);

/*
 * Plans @aim, wish number @number, for the file open as @fd, which stays the caller's. The number
 * of probes that it has, or -errno and why in @fault. -ENOEXEC without a fault: it is no ELF
 * file.
 */
int probe_trace_add(struct probe_trace *probes, const struct probe_request *request,
		    uint32_t number, int fd, const char *path,
		    struct error *error);

/* Puts all that was planned on the files. 0, or -errno and why in @fault. */
int probe_trace_attach(struct probe_trace *probes, struct error *error);

/* Gives up what is not needed any more, now that all is attached; see confine(). */
void probe_trace_sandbox(const struct probe_trace *probes, struct sandbox *sandbox);

/* What was planned and how it is attached. */
struct probe_trace_extent {
	uint32_t probes, sites, files;
	const char *method;		/* "uprobe_multi" */
};

void probe_trace_extent(const struct probe_trace *probes, struct probe_trace_extent *extent);

/* What the kernel was found to have. Borrowed. */
const struct features *probe_trace_features(const struct probe_trace *probes);

/* Handles the records that are there: calls config->hit. How full the buffer was, in percent. */
int probe_trace_drain(struct probe_trace *probes);

/* Nothing to do: the descriptor that becomes readable with the next record, or -EAGAIN. */
int probe_trace_sleep(struct probe_trace *probes);

/* So many hits of a probe had that value. */
struct probe_trace_count {
	const struct traced_probe *probe;
	uint32_t slot;			/* of a histogram, see struct probe_hit_key */
	uint64_t value, count;
	char text[PROBE_HIT_TEXT];		/* foreign bytes */
};

/*
 * What was counted, sorted by probe and value, of which each stands once. The number of elements in
 * *@counts, which is the caller's to free; or -ENOMEM.
 */
ssize_t probe_trace_counts(const struct probe_trace *probes, struct probe_trace_count **counts);

/* Whether two traced probes are one probe to a user. */
bool probe_trace_same(const struct traced_probe *a, const struct traced_probe *b);

/* What was seen and lost. */
struct probe_trace_summary {
	uint64_t probes, ring_full, table_full;
};

void probe_trace_summary(const struct probe_trace *probes, struct probe_trace_summary *summary);

/* Takes the probes away, so that only what is in the buffer is still to come. */
void probe_trace_detach(struct probe_trace *probes);

/* Detaches, and frees. NULL is fine. */
void probe_trace_close(struct probe_trace *probes);

#endif
