/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's doors: thin wrappers over bpf(2) and perf_event_open(2). Each
 * hands back what the kernel said, errors as -errno. Descriptors are
 * close-on-exec and belong to the caller.
 */
#ifndef LOADER_SYS_H
#define LOADER_SYS_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* BPF_TRACE_UPROBE_MULTI; the headers that this is built with may be older than the kernel. */
#define SYS_ATTACH_UPROBE_MULTI	((enum bpf_attach_type)48)

/* A map as programs see it. */
struct map_def {
	const char *name;		/* the symbol in the programs */
	enum bpf_map_type type;
	uint32_t key_size, value_size;	/* bytes */
	uint32_t max_entries;		/* ring: bytes, a power of two of pages */
	uint32_t flags;			/* BPF_F_… */
};

/* All the text that is left of @fd, with a NUL; the caller's to free. NULL: it cannot be read. */
char *sys_read_text(int fd);

/* A new map: its descriptor. */
int sys_map_create(const struct map_def *def);

/* Map operations; 0 or -errno. sys_map_next with @key NULL gives the first key. */
int sys_map_lookup(int map, const void *key, void *value);
int sys_map_update(int map, const void *key, const void *value);
int sys_map_add(int map, const void *key, const void *value);	/* -EEXIST: it is there */
int sys_map_delete(int map, const void *key);
int sys_map_next(int map, const void *key, void *next);

#define SYS_CPUS_MAX	8192	/* the kernel's largest NR_CPUS */

/* The sum over all CPUs of u64 number @index of a per-CPU array; 0 where it cannot be read. */
uint64_t sys_map_sum(int map, uint32_t index);

struct prog_def {
	const char *name;		/* at most 15 bytes of it reach the kernel */
	enum bpf_prog_type type;
	enum bpf_attach_type attach_type;	/* 0 where the type wants none */
	const struct bpf_insn *insns;
	uint32_t count;
};

/*
 * Loads a program: its descriptor. Where the kernel refuses it and @log is not NULL, the
 * verifier's words are left there, cut to @log_size bytes with the NUL.
 */
int sys_prog_load(const struct prog_def *def, char *log, uint32_t log_size);

/* Attaches to raw tracepoint @name: a link's descriptor. */
int sys_raw_tracepoint(int prog, const char *name);

struct uprobe_sites {
	const char *path;		/* of the file; a /proc/self/fd/N will do */
	const unsigned long *offsets;	/* in the file */
	const unsigned long *ref_ctr_offsets;	/* of the semaphores, 0: none */
	const uint64_t *cookies;	/* which site was hit, for the program; uprobe_multi only */
	uint32_t count;
	bool on_return;
};

/* Attaches @prog to every site by one uprobe_multi link, for all processes: its descriptor. */
int sys_uprobe_multi(int prog, const struct uprobe_sites *sites);

/*
 * Attaches @prog to site @index by the uprobe PMU of number @pmu: a perf event's descriptor. Its
 * formats are the kernel's documented defaults: bit 0 of config is "retprobe", the upper half
 * the semaphore's offset (a6ca88b241d5, 4.20).
 */
int sys_uprobe_perf(int prog, int pmu, const struct uprobe_sites *sites, uint32_t index);

/* Attaches @prog to the tracefs event of number @id: a perf event's descriptor. */
int sys_event(int prog, int id);

/*
 * A perf event for what programs send on CPU @cpu by bpf_perf_event_output(): samples with their
 * time (CLOCK_MONOTONIC) and the data. The reader is woken when @watermark bytes wait; 0: at each
 * record. -EINVAL: there cannot be such a CPU; -ENODEV: it is offline.
 */
int sys_perf_output(int cpu, uint32_t watermark);

/* From now on what is sent to @event goes into the buffer of @to, of the same CPU. 0 or -errno. */
int sys_perf_redirect(int event, int to);

#endif
