// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/insn_buf.h"

#include <errno.h>

size_t insn_put(struct insn_buf *buf, uint8_t code, uint8_t dst, uint8_t src, int16_t off,
		int32_t imm)
{
	if (buf->n < buf->max)
		buf->insns[buf->n] = (struct bpf_insn){
			.code = code, .dst_reg = dst, .src_reg = src, .off = off, .imm = imm,
		};
	return buf->n++;
}

void insn_put_wide(struct insn_buf *buf, uint8_t dst, uint64_t value)
{
	insn_put(buf, BPF_LD | BPF_IMM | BPF_DW, dst, 0, 0, (int32_t)value);
	insn_put(buf, 0, 0, 0, 0, (int32_t)(value >> 32));
}

int insn_finish(struct insn_buf *buf)
{
	insn_put(buf, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	return buf->n > buf->max ? -ENOSPC : (int)buf->n;
}

void insn_land(struct insn_buf *buf, size_t from)
{
	if (from < buf->max)
		buf->insns[from].off = (int16_t)(buf->n - from - 1);
}
