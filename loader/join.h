/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Joining of linked programs into one, which selects the part to run by the attach cookie of the
 * site. All sites of a file can then share one link, and when it is closed, the kernel waits for
 * one grace period instead of one per program.
 */
#ifndef LOADER_JOIN_H
#define LOADER_JOIN_H

#include <linux/bpf.h>
#include <stdint.h>

/* The limit of one joined program: kernels with attach cookies accept 1,000,000 (c04c0d2b968a). */
#define JOIN_INSNS_MAX		8192
#define JOIN_FUNCTIONS_MAX	256	/* the kernel's BPF_MAX_SUBPROGS */

/* A linked program. Borrowed. */
struct join_part {
	const struct bpf_insn *insns;
	uint32_t count;
};

/* Return how many of @parts, the first ones, fit into one program of at most @max instructions. */
uint32_t join_fit(const struct join_part *parts, uint32_t nparts, uint32_t max);

/*
 * Write a program to @insns, room for @max, that runs the part whose number is the attach cookie of
 * the site. Return its number of instructions, or -ENOSPC.
 */
int join_programs(const struct join_part *parts, uint32_t nparts, struct bpf_insn *insns,
		  uint32_t max);

#endif
