/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The overhead limit: what the programs take from the processes of each server, and what they leave
 * out for it. A server is the processes of one user that run one file: what the processes of others
 * cause, who may execute or map the same file, is not charged to it.
 */
#ifndef BPF_LIMIT_H
#define BPF_LIMIT_H

#include "bpf/cost.h"
#include "bpf/record.h"

ARGUMENT(program);	/* run the program of the probe; see db/discover/bind.c */

CONSTANT(limited);	/* there is a limit */

MAP(costs);		/* per-CPU array: struct cost */

/* Return the cost of user @uid and file @target, or that of all without one: its ->key is 0. */
static __attribute__((noinline)) struct cost *cost_of(__u32 uid, __u32 target)
{
	__u64 key = COST_KEY(uid, target);
	__u32 slot = COST_SLOT(key, VALUE(secret)), number;
	struct cost *cost;

	NO_UNROLL
	for (int i = 0; i < COST_PROBES; i++) {
		number = (slot + i) & (COSTS - 1);
		cost = bpf_map_lookup_elem(costs, &number);
		if (cost && cost->key == key)
			return cost;
	}
	number = COSTS;
	return bpf_map_lookup_elem(costs, &number);
}

/* The same of the current process. */
INLINE struct cost *cost_current(__u32 target)
{
	return cost_of((__u32)bpf_get_current_uid_gid(), target);
}

/* Return whether the time of a statement of the current process since @ns is broken down. */
INLINE int limit_permits_why(__u32 target, __u64 ns)
{
	struct cost *cost = VALUE(limited) ? cost_current(target) : 0;

	return !cost || ns >= READ_ONCE(cost->why_ns);
}

/* Return whether texts of the current process are left out. */
INLINE int limit_drops_text(__u32 target)
{
	struct cost *cost = VALUE(limited) ? cost_current(target) : 0;

	return cost && READ_ONCE(cost->no_text);
}

/* Return whether the probes on file @target were removed for the limit. */
INLINE int limit_detached(__u32 target)
{
	const struct cost *cost = VALUE(limited) ? cost_of(COST_ATTACHED, target) : 0;

	return cost && !cost->key;
}

/* Charge @ns of tracepoints to the current process. */
INLINE void cost_spend(__u32 target, __u64 ns)
{
	struct cost *cost = ns ? cost_current(target) : 0;

	if (cost)
		cost->ns += ns;
}

#endif
