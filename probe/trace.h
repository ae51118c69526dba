/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hits of any probes of any files: puts programs on them, and hands on what these send or count. */
#ifndef PROBE_TRACE_H
#define PROBE_TRACE_H

#include <sys/types.h>

#include "bpf/event.h"
#include "probe/request.h"
#include "loader/sandbox.h"
#include "loader/feature.h"

struct hit_text {
	const char *bytes;		/* foreign; no NUL */
	size_t len;
	bool known;			/* false: it could not be read */
	bool cut;			/* there is more of it */
};

/* Borrowed for the call. */
struct hit {
	const struct aim_source *source;
	uint32_t pid, tid;
	uint64_t time_ns, wall_ns;	/* CLOCK_MONOTONIC, CLOCK_REALTIME */
	const char *comm;		/* foreign bytes */
	uint64_t values[AIM_FIELDS];
	struct hit_text texts[AIM_FIELDS];	/* of fields that are texts */
};

struct hits_config {
	const uint32_t *pids;		/* only these processes; none: all */
	size_t npids;
	enum aim_mode mode;
	uint32_t text_bytes;		/* so much of a text is read */
	unsigned int texts;		/* how many texts a hit has at most */
	bool force_perf;		/* take an older kernel's way */
	void *arg;			/* of what is called: */
	void (*hit)(void *arg, const struct hit *hit);
	/* A probe of a pattern cannot be traced as it was asked for, and is passed over. */
	void (*skipped)(void *arg, const struct fault *fault);
	/* Each program as it is loaded; may be NULL. */
	void (*program)(void *arg, const char *name, const struct bpf_insn *insns, size_t count);
};

struct hits;

/* Makes ready; *@hits is the caller's to close. 0, or -errno and why in @fault. */
int hits_open(struct hits **hits, const struct hits_config *config, struct fault *fault);

/*
 * Plans @aim, wish number @number, for the file open as @fd, which stays the caller's. The number
 * of probes that it has, or -errno and why in @fault. -ENOEXEC without a fault: it is no ELF
 * file.
 */
int hits_add(struct hits *hits, const struct aim *aim, uint32_t number, int fd, const char *path,
	     struct fault *fault);

/* Puts all that was planned on the files. 0, or -errno and why in @fault. */
int hits_attach(struct hits *hits, struct fault *fault);

/* Gives up what is not needed any more, now that all is attached; see confine(). */
void hits_confine(const struct hits *hits, struct confined *confined);

/* What was planned and how it is attached. */
struct hits_extent {
	uint32_t probes, sites, files;
	const char *way;		/* "uprobe_multi" */
};

void hits_extent(const struct hits *hits, struct hits_extent *extent);

/* What the kernel was found to have. Borrowed. */
const struct features *hits_features(const struct hits *hits);

/* Handles the records that are there: calls config->hit. How full the buffer was, in percent. */
int hits_drain(struct hits *hits);

/* Nothing to do: the descriptor that becomes readable with the next record, or -EAGAIN. */
int hits_sleep(struct hits *hits);

/* So many hits of a probe had that value. */
struct hits_count {
	const struct aim_source *source;
	uint32_t slot;			/* of a histogram, see struct hit_key */
	uint64_t value, count;
	char text[HIT_TEXT];		/* foreign bytes */
};

/*
 * What was counted, sorted by probe and value, of which each stands once. The number of elements in
 * *@counts, which is the caller's to free; or -ENOMEM.
 */
ssize_t hits_counts(const struct hits *hits, struct hits_count **counts);

/* Whether two sources are one probe to a user. */
bool hits_same_probe(const struct aim_source *a, const struct aim_source *b);

/* What was seen and lost. */
struct hits_summary {
	uint64_t hits, ring_full, table_full;
};

void hits_summary(const struct hits *hits, struct hits_summary *summary);

/* Takes the probes away, so that only what is in the buffer is still to come. */
void hits_detach(struct hits *hits);

/* Detaches, and frees. NULL is fine. */
void hits_close(struct hits *hits);

#endif
