/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A buffer of generated BPF instructions. Internal to usdt/emit.c and expression_emit.c. */
#ifndef USDT_INSN_BUF_H
#define USDT_INSN_BUF_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

struct insn_buf {
	struct bpf_insn *insns;		/* borrowed, room for ->max */
	size_t max, n;			/* ->n counts on beyond ->max */
};

/* Append an instruction. Return its index. */
size_t insn_put(struct insn_buf *buf, uint8_t code, uint8_t dst, uint8_t src, int16_t off,
		int32_t imm);

/* Append the two instructions of a 64-bit immediate to register @dst. */
void insn_put_wide(struct insn_buf *buf, uint8_t dst, uint64_t value);

/* Append the exit. Return the number of instructions, or -ENOSPC if there are more than ->max. */
int insn_finish(struct insn_buf *buf);

/* Make the next instruction the target of the jump at index @from. */
void insn_land(struct insn_buf *buf, size_t from);

#endif
