/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Load instructions into the kernel, to check that its verifier accepts them. */
#ifndef TESTS_UNIT_LOAD_H
#define TESTS_UNIT_LOAD_H

#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Instructions. */
#define ALU(op, dst, k) \
	{ .code = BPF_ALU64 | (op) | BPF_K, .dst_reg = (dst), .imm = (k) }
#define ALU_X(op, dst, src) \
	{ .code = BPF_ALU64 | (op) | BPF_X, .dst_reg = (dst), .src_reg = (src) }
#define JUMP(op, dst, k, to) \
	{ .code = BPF_JMP | (op) | BPF_K, .dst_reg = (dst), .imm = (k), .off = (to) }
#define CALL(helper)	{ .code = BPF_JMP | BPF_CALL, .imm = (helper) }
#define EXIT		{ .code = BPF_JMP | BPF_EXIT }

static char load_log[16384];

/* Load @insns as a program of @type. Return its descriptor or -errno; @log: fill load_log. */
static inline int load_program(enum bpf_prog_type type, const struct bpf_insn *insns, int n,
			       bool log)
{
	union bpf_attr attr;
	long fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = type;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = (uint32_t)n;
	attr.license = (uintptr_t)"GPL";
	*load_log = '\0';
	if (log) {
		attr.log_buf = (uintptr_t)load_log;
		attr.log_size = sizeof(load_log);
		attr.log_level = 1;
	}
	/* libFuzzer's alarm interrupts the verifier. */
	do
		fd = syscall(__NR_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	while (fd < 0 && errno == EAGAIN);
	return fd < 0 ? -errno : (int)fd;
}

/* Load @insns as a kprobe program. Return 0 or -errno; @log: fill load_log. */
static inline int load_once(const struct bpf_insn *insns, int n, bool log)
{
	int fd = load_program(BPF_PROG_TYPE_KPROBE, insns, n, log);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

/* Return 0, or -errno with the verifier's log in load_log. */
static inline int load_insns(const struct bpf_insn *insns, int n)
{
	return load_once(insns, n, false) ? load_once(insns, n, true) : 0;
}

/* Return why programs cannot be loaded on this host, or NULL. */
static inline const char *load_forbidden(void)
{
	static const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K }, { .code = BPF_JMP | BPF_EXIT },
	};

	switch (load_once(nothing, 2, false)) {
	case 0:
		return NULL;
	case -EPERM:
	case -EACCES:
		return "bpf() is not permitted (EPERM)";
	case -ENOSYS:
		return "no bpf() in this kernel (ENOSYS)";
	default:
		return "bpf() loads no kprobe program here";
	}
}

#endif
