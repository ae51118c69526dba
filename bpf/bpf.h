/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bpf/: the programs that run in the kernel (*.bpf.c), their state, and the records that they share
 * with user space (event.h). What is true of one engine only is in postgres*.h and mysql*.h.
 * It names no register and includes nothing of the other directories.
 */

/*
 * The kernel's helpers, and what the linker (loader/linker.h) resolves in a program.
 *
 * A program declares what is only known when it is loaded: ARGUMENT(text) is a function that the
 * linker emits from the probe site's argument spec, CONSTANT(threshold_ns) a 64-bit number,
 * MAP(sessions) a map. In the object all of them are undefined symbols.
 */
#ifndef BPF_BPF_H
#define BPF_BPF_H

#include <linux/bpf.h>

#define PROGRAM(name) \
	__attribute__((used)) int name(__attribute__((unused)) void *ctx)
#define ARGUMENT(name)	extern __u64 arg_##name(void *ctx)
#define MAP(name)	extern char name[]
/* Weak, or clang assumes that the address is not 0. */
#define CONSTANT(name)	extern const char constant_##name[] __attribute__((weak))
#define VALUE(name)	((__u64)constant_##name)

/*
 * Helpers, by their numbers in enum bpf_func_id, which are ABI. A commit and a release are given
 * where not every supported kernel has the helper; which one to call is decided at load time.
 */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) =
	(void *)BPF_FUNC_map_lookup_elem;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value,
					 __u64 flags) = (void *)BPF_FUNC_map_update_elem;
static long (*const bpf_map_delete_elem)(void *map, const void *key) =
	(void *)BPF_FUNC_map_delete_elem;
static __u64 (*const bpf_ktime_get_ns)(void) = (void *)BPF_FUNC_ktime_get_ns;
static __u64 (*const bpf_get_current_pid_tgid)(void) = (void *)BPF_FUNC_get_current_pid_tgid;
static __u64 (*const bpf_get_current_uid_gid)(void) = (void *)BPF_FUNC_get_current_uid_gid;
static long (*const bpf_get_current_comm)(void *buf, __u32 size) =
	(void *)BPF_FUNC_get_current_comm;
/* 6ae08ae3dea2 (5.5) */
static long (*const bpf_probe_read_user)(void *dst, __u32 size, const void *unsafe) =
	(void *)BPF_FUNC_probe_read_user;
static long (*const bpf_probe_read_user_str)(void *dst, __u32 size, const void *unsafe) =
	(void *)BPF_FUNC_probe_read_user_str;
static long (*const bpf_probe_read_kernel)(void *dst, __u32 size, const void *unsafe) =
	(void *)BPF_FUNC_probe_read_kernel;
static __u64 (*const bpf_get_current_task)(void) = (void *)BPF_FUNC_get_current_task;
/* 3ca1032ab7ab (5.11) */
static void *(*const bpf_get_current_task_btf)(void) = (void *)BPF_FUNC_get_current_task_btf;
/* c195651e565a (4.18) */
static long (*const bpf_get_stack)(void *ctx, void *buf, __u32 size, __u64 flags) =
	(void *)BPF_FUNC_get_stack;
/* dd6e10fbd9fb (5.15) */
static void *(*const bpf_task_pt_regs)(void *task) = (void *)BPF_FUNC_task_pt_regs;
/* @flags: BPF_F_CURRENT_CPU, or the number of a CPU */
static long (*const bpf_perf_event_output)(void *ctx, void *map, __u64 flags, void *data,
					   __u64 size) = (void *)BPF_FUNC_perf_event_output;
/* b4490c5c4e02 (5.7) */
static long (*const bpf_get_ns_current_pid_tgid)(__u64 dev, __u64 ino,
						 struct bpf_pidns_info *nsdata, __u32 size) =
	(void *)BPF_FUNC_get_ns_current_pid_tgid;
/* 457f44363a88 (5.8) */
static long (*const bpf_ringbuf_output)(void *ring, void *data, __u64 size, __u64 flags) =
	(void *)BPF_FUNC_ringbuf_output;
static void *(*const bpf_ringbuf_reserve)(void *ring, __u64 size, __u64 flags) =
	(void *)BPF_FUNC_ringbuf_reserve;
static void (*const bpf_ringbuf_submit)(void *data, __u64 flags) =
	(void *)BPF_FUNC_ringbuf_submit;
static void (*const bpf_ringbuf_discard)(void *data, __u64 flags) =
	(void *)BPF_FUNC_ringbuf_discard;

#define INLINE static inline __attribute__((always_inline))

/* Shared memory; tests/unit/slots.c replaces these. */
#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, value)	(*(volatile __typeof__(x) *)&(x) = (value))
#define ATOMIC_ADD(p, n)	((void)__sync_fetch_and_add(p, n))
#define CLEAR(p)		(*(p) = (__typeof__(*(p))){})

#define NO_UNROLL _Pragma("clang loop unroll(disable)")	/* before a loop: for the program's size */

#endif
