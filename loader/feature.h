/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Feature probes: each feature is detected by a test, not by the version of the kernel. */
#ifndef LOADER_FEATURE_H
#define LOADER_FEATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum feature {
	FEATURE_RINGBUF,
	FEATURE_UPROBE_PMU,
	FEATURE_UPROBE_MULTI,
	FEATURE_TRACING_ALLOC,
	FEATURE_READ_USER,
	FEATURE_NS_PID,
	FEATURE_LOOPS,
	FEATURE_REF_CTR,
	FEATURE_TASK_REGS,
	FEATURE_TYPES,
	FEATURES_ADDED,		/* the features above have a release that added them */
	/* Not added by a release, but broken by some: hazard_safe() answers, not feature_has(). */
	FEATURE_SAFE_NOPS = FEATURES_ADDED,
	FEATURE_SAFE_RETURNS,
	FEATURES,
};

#define FEATURE_BIT(feature)	(1u << (feature))

/* The results so far. All zero is none. */
struct features {
	struct {
		bool probed, has;
	} row[FEATURES];
	bool asked;		/* feature_allowed() was called, .. */
	int refused;		/* .. and returned this */
	int uprobe_pmu;		/* the PMU's type number, valid with FEATURE_UPROBE_PMU */
	bool no_uprobe_call;	/* see hazard_exclude() */
	int unknown;		/* error of hazard_safe(), which is asked again .. */
	uint64_t again_ns;	/* .. from then on, CLOCK_MONOTONIC */
};

/* Return whether the kernel has @feature. The first call probes for it. */
bool feature_has(struct features *features, enum feature feature);

/*
 * Return 0 if this process may load tracing programs; -EOPNOTSUPP if the kernel's verifier lacks
 * bounded loops, so that no other program may be loaded; or the error of bpf(2), such as -EPERM or
 * -ENOSYS. After any of these the feature probes prove nothing. The kernel is asked once.
 */
int feature_allowed(struct features *features);

/*
 * Return 0 if this process may attach by the uprobe PMU, which must exist, or the error of
 * perf_event_open(2): -EPERM, -EACCES or -ENOSYS. Nothing is attached.
 */
int feature_perf_allowed(struct features *features);

/*
 * Treat each feature in @denied, a set of FEATURE_BIT(), as missing, so that its fallback is used.
 */
void feature_deny(struct features *features, uint32_t denied);

/* The name of a release, before its number: "linux-5.4". */
#define FEATURE_RELEASE	"linux-"

/*
 * Add to *@denied the features that must be missing for the fallback @name, of @len bytes, to be
 * used. The name of a release is all that it lacks. Return 0, or -ENOENT if @name is neither. A
 * comma or a NUL follows @name.
 */
int feature_force(const char *name, size_t len, uint32_t *denied);

/* Return the name of the fallback for @feature, or NULL if there is none. Static. */
const char *feature_fallback(enum feature feature);

/* Return the name of @feature, "uprobe_multi link". Static. */
const char *feature_name(enum feature feature);

/*
 * Return the commit and release that added @feature, "89ae89f53d20, Linux 6.6", static; NULL if
 * none did.
 */
const char *feature_since(enum feature feature);

#endif
