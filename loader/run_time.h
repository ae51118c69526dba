/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The CPU time of BPF programs, which the kernel measures while kernel.bpf_stats_enabled is set. */
#ifndef LOADER_RUN_TIME_H
#define LOADER_RUN_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUN_TIME_PROGRAMS	128

/* All zero keeps no program. */
struct run_time {
	bool on;			/* keep programs; set by the owner */
	bool incomplete;		/* there were more */
	size_t count;
	int progs[RUN_TIME_PROGRAMS];	/* descriptors, owned */
};

/* Take over the descriptor @prog of an attached program: keep it, or close it. */
void run_time_add(struct run_time *run_time, int prog);

/*
 * Store the sum of the programs' run times in *@ns. Return 0; -ENODATA if the kernel does not
 * measure at present or not all programs are known; or -errno.
 */
int run_time_read(const struct run_time *run_time, uint64_t *ns);

/* Close the descriptors. */
void run_time_close(struct run_time *run_time);

#endif
