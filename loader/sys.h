/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Thin wrappers around bpf(2) and perf_event_open(2). Unless stated otherwise they return -errno
 * or a descriptor, which is close-on-exec and which the caller closes.
 */
#ifndef LOADER_SYS_H
#define LOADER_SYS_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* BPF_TRACE_UPROBE_MULTI; the headers at build time may be older than the kernel. */
#define SYS_ATTACH_UPROBE_MULTI	((enum bpf_attach_type)48)

/* The definition of a map. */
struct map_def {
	const char *name;		/* the symbol in the programs */
	enum bpf_map_type type;
	uint32_t key_size, value_size;	/* bytes */
	uint32_t max_entries;		/* ring: bytes, a power of two of pages */
	uint32_t flags;			/* BPF_F_… */
};

/* Read the rest of @fd. Return it NUL-terminated, the caller frees it; or NULL. */
char *sys_read_text(int fd);

/* Create a map. */
int sys_map_create(const struct map_def *def);

/* Map operations; return 0 or -errno. sys_map_next() with @key NULL returns the first key. */
int sys_map_lookup(int map, const void *key, void *value);
int sys_map_update(int map, const void *key, const void *value);
int sys_map_add(int map, const void *key, const void *value);	/* -EEXIST: the key exists */
int sys_map_delete(int map, const void *key);
int sys_map_next(int map, const void *key, void *next);

#define SYS_CPUS_MAX	8192	/* the kernel's largest NR_CPUS */

/* Return the sum over all CPUs of u64 number @index of a per-CPU array; 0 if it cannot be read. */
uint64_t sys_map_sum(int map, uint32_t index);

/* The definition of a program. Everything is borrowed. */
struct prog_def {
	const char *name;		/* at most 15 bytes of it reach the kernel */
	enum bpf_prog_type type;
	enum bpf_attach_type attach_type;	/* 0: none */
	const struct bpf_insn *insns;
	uint32_t count;			/* instructions */
};

/*
 * Load a program. If the kernel rejects it and @log is not NULL, store the verifier's log there,
 * cut to @log_size bytes with the NUL.
 */
int sys_prog_load(const struct prog_def *def, char *log, uint32_t log_size);

/* Attach to raw tracepoint @name. Return the link. */
int sys_raw_tracepoint(int prog, const char *name);

/* The sites to attach a program to, as arrays. Everything is borrowed. */
struct uprobe_sites {
	const char *path;		/* of the file; may be a /proc/self/fd/N */
	const unsigned long *offsets;	/* in the file */
	const unsigned long *ref_ctr_offsets;	/* of the semaphores, 0: none */
	const uint64_t *cookies;	/* bpf_get_attach_cookie() at each; uprobe_multi only */
	uint32_t count;
	bool on_return;			/* at returns of the functions at ->offsets */
};

/* Attach @prog to every site for all processes. Return one uprobe_multi link. */
int sys_uprobe_multi(int prog, const struct uprobe_sites *sites);

/*
 * Attach @prog to site @index by the uprobe PMU of number @pmu. Return a perf event. Source of the
 * format, which sysfs describes: bit 0 of config is "retprobe" (33ea4b24277b, Linux 4.17), its
 * upper half the offset of the semaphore (a6ca88b241d5, Linux 4.20).
 */
int sys_uprobe_perf(int prog, int pmu, const struct uprobe_sites *sites, uint32_t index);

/* Attach @prog to the tracefs event of number @id. Return a perf event. */
int sys_event(int prog, int id);

/*
 * Open a perf event for the output of bpf_perf_event_output() on CPU @cpu: samples with their time
 * (CLOCK_MONOTONIC) and the data. Wake the reader when @watermark bytes wait; 0: at each record.
 * Return -EINVAL if there cannot be such a CPU, -ENODEV if it is offline.
 */
int sys_perf_output(int cpu, uint32_t watermark);

/* Redirect the output of @event to the buffer of @to, of the same CPU. Return 0 or -errno. */
int sys_perf_redirect(int event, int to);

#endif
