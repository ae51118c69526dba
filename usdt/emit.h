/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Turns a spec into BPF instructions: the body of a function
 * "uint64_t arg(void *ctx)" that returns the argument, sign- or zero-extended
 * to 64 bits, or 0 where memory could not be read. @ctx is the kernel's
 * struct pt_regs of the target's architecture.
 */
#ifndef USDT_EMIT_H
#define USDT_EMIT_H

#include <linux/bpf.h>

#include "usdt/spec.h"

/* The longest function that spec_emit() makes. */
#define EMIT_INSNS_MAX	64

struct emit_target {
	uint16_t machine;		/* EM_X86_64 or EM_AARCH64 */
	uint64_t site_vaddr;		/* where the site is at link time, for symbols */
	/* The helper that reads user memory: BPF_FUNC_probe_read_user, or _probe_read before 5.5 */
	int32_t read_helper;
	/* Looks a symbol up: 0 and its link-time address, or -ENOENT. May be NULL. */
	int (*symbol)(void *arg, const char *name, size_t len, uint64_t *vaddr);
	void *symbol_arg;
};

/*
 * Emits the function for @spec to @insns (room for @max), the exit included.
 * The number of instructions, or -ENOSPC; -ENOTSUP, and why in *@reason,
 * where the argument is unavailable. A plain 64-bit register or a constant
 * of 32 bits takes one instruction and the exit, so a linker may put it in the
 * place of the call.
 */
int spec_emit(const struct spec *spec, const struct emit_target *target, struct bpf_insn *insns,
	      size_t max, enum spec_reason *reason);

#endif
