/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Code generation for argument specs: a BPF function "uint64_t arg(void *ctx)"
 * that returns the argument, sign- or zero-extended to 64 bits, or 0 if memory
 * cannot be read. @ctx is the kernel's struct pt_regs (struct user_pt_regs on
 * aarch64) of the target's architecture. With ->unread it is "uint64_t arg(void
 * *ctx, uint64_t *unread)", which then also sets these bits of *unread.
 *
 * Source of the format: linux/bpf.h and the kernel's
 * Documentation/bpf/standardization/instruction-set.rst.
 */
#ifndef USDT_EMIT_H
#define USDT_EMIT_H

#include <linux/bpf.h>

#include "usdt/spec.h"

/* Instructions of the longest function that spec_emit() generates. */
#define EMIT_INSNS_MAX	64

struct emit_target {
	uint16_t machine;		/* ELF e_machine; arch_of() must have ->can_emit */
	uint64_t site_vaddr;		/* the link-time address of the site, for symbols */
	/* The helper that reads user memory: BPF_FUNC_probe_read_user, _probe_read before 5.5 */
	int32_t read_helper;
	/* Look up a symbol. Return 0 and its link-time address, or -ENOENT. NULL: no symbols. */
	int (*symbol)(void *arg, const char *name, size_t len, uint64_t *vaddr);
	void *symbol_arg;
	int32_t unread;			/* bits, positive; 0: a failure is not reported */
};

/*
 * Generate the function for @spec, exit included, to @insns, room for @max.
 * Return the number of instructions; -ENOSPC if there are more than @max; or
 * -ENOTSUP with the cause in *@reason if the argument is unavailable. A 64-bit
 * register or a 32-bit constant takes one instruction and the exit, so that a
 * linker may substitute it for the call.
 */
int spec_emit(const struct spec *spec, const struct emit_target *target, struct bpf_insn *insns,
	      size_t max, enum spec_reason *reason);

/* Return whether the function for @spec reads memory, so that it may fail. */
bool spec_reads(const struct spec *spec);

#endif
