/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The overhead limit: data shared by the programs of bpf/limit.h and db/overhead/limit.c. */
#ifndef BPF_COST_H
#define BPF_COST_H

#include <linux/types.h>

/*
 * Map "costs": what the programs have taken from the processes of a user that run a file, and what
 * they leave out for it. An array, as a hash costs more than a hit has: the element of a key is at
 * COST_SLOT() or one of the COST_PROBES - 1 after it. User space adds and removes them. That of
 * user COST_ATTACHED exists while the file has probes. The last element, COSTS, is of all processes
 * without one; its ->why_ns is that of the tracepoints, which may be detached.
 */
#define COST_BITS	9
#define COSTS		(1u << COST_BITS)
#define COST_PROBES	8
#define COST_ATTACHED	(~0u)
#define COST_SAMPLE	17	/* coprime with the hits of a statement: each of them is measured */
#define COST_MOST_NS	(1u << 20)	/* a hit that takes longer was preempted: not counted */
#define COST_KEY(uid, target_id)	(((__u64)(uid) << 32 | (target_id)) + 1)
#define COST_SLOT(key, secret)	((__u32)((key) * (secret) >> (64 - COST_BITS)))

struct cost {
	__u64 key;		/* COST_KEY(); 0: unused */
	__u64 hits, ns;
	__u64 skip;		/* hits until the next one that is measured .. */
	__u64 begin_ns;		/* .. and when that began; 0: the current one is not */
	__u64 why_ns;		/* CLOCK_MONOTONIC: breakdowns of statements from then on */
	__u64 no_text;		/* not 0: texts are left out */
};

#endif
