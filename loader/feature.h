/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Feature probes: the kernel is asked for each feature, not for its version. */
#ifndef LOADER_FEATURE_H
#define LOADER_FEATURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loader/tracefs.h"

enum feature {
	FEATURE_RINGBUF,
	FEATURE_UPROBE_PMU,
	FEATURE_UPROBE_MULTI,
	FEATURE_TRACING_ALLOC,
	FEATURE_READ_USER,
	FEATURE_NS_PID,
	FEATURE_TRACEFS,
	FEATURE_REF_CTR,
	FEATURE_TASK_REGS,
	FEATURE_TYPES,
	FEATURES,
};

#define FEATURE_BIT(feature)	(1u << (feature))

/* The results so far; all zero at first. */
struct features {
	struct {
		bool asked, has;
	} row[FEATURES];
	int uprobe_pmu;		/* the PMU's number, valid with FEATURE_UPROBE_PMU */
	struct tracefs tracefs;	/* open with FEATURE_TRACEFS; owned */
	int tracefs_error;	/* else -errno */
};

/* Return whether the kernel has @feature. It is asked once. */
bool feature_has(struct features *features, enum feature feature);

/*
 * Return 0 if this process may load tracing programs, or the error of bpf(2), such as -EPERM or
 * -ENOSYS. After an error a missing feature is not known to be missing.
 */
int feature_allowed(void);

/* Answer no for each feature in @denied, a set of FEATURE_BIT(), so that its fallback is used. */
void feature_deny(struct features *features, uint32_t denied);

/*
 * Add to *@denied the features that the fallback @name, of @len bytes, does without. Return 0, or
 * -ENOENT if no fallback has this name.
 */
int feature_force(const char *name, size_t len, uint32_t *denied);

/* Return the name of the fallback that does without @feature, or NULL if there is none. Static. */
const char *feature_fallback(enum feature feature);

/* Close the descriptors that the answers hold. */
void features_close(struct features *features);

/* Return the name, "uprobe_multi link", and the commit and release that added it. Static. */
const char *feature_name(enum feature feature);
const char *feature_since(enum feature feature);

#endif
