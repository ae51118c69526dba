/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "usdt/disasm.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct out {
	char *buf;
	size_t size;
};

static const struct {
	uint16_t id;
	char name[26];
} helpers[] = {
	{ BPF_FUNC_map_lookup_elem, "map_lookup_elem" },
	{ BPF_FUNC_map_update_elem, "map_update_elem" },
	{ BPF_FUNC_map_delete_elem, "map_delete_elem" },
	{ BPF_FUNC_probe_read, "probe_read" },
	{ BPF_FUNC_ktime_get_ns, "ktime_get_ns" },
	{ BPF_FUNC_trace_printk, "trace_printk" },
	{ BPF_FUNC_get_smp_processor_id, "get_smp_processor_id" },
	{ BPF_FUNC_tail_call, "tail_call" },
	{ BPF_FUNC_get_current_pid_tgid, "get_current_pid_tgid" },
	{ BPF_FUNC_get_current_uid_gid, "get_current_uid_gid" },
	{ BPF_FUNC_get_current_comm, "get_current_comm" },
	{ BPF_FUNC_perf_event_output, "perf_event_output" },
	{ BPF_FUNC_get_stackid, "get_stackid" },
	{ BPF_FUNC_get_current_task, "get_current_task" },
	{ BPF_FUNC_probe_read_str, "probe_read_str" },
	{ BPF_FUNC_get_current_cgroup_id, "get_current_cgroup_id" },
	{ BPF_FUNC_get_stack, "get_stack" },
	{ BPF_FUNC_probe_read_user, "probe_read_user" },
	{ BPF_FUNC_probe_read_kernel, "probe_read_kernel" },
	{ BPF_FUNC_probe_read_user_str, "probe_read_user_str" },
	{ BPF_FUNC_probe_read_kernel_str, "probe_read_kernel_str" },
	{ BPF_FUNC_get_ns_current_pid_tgid, "get_ns_current_pid_tgid" },
	{ BPF_FUNC_ktime_get_boot_ns, "ktime_get_boot_ns" },
	{ BPF_FUNC_ringbuf_output, "ringbuf_output" },
	{ BPF_FUNC_ringbuf_reserve, "ringbuf_reserve" },
	{ BPF_FUNC_ringbuf_submit, "ringbuf_submit" },
	{ BPF_FUNC_ringbuf_discard, "ringbuf_discard" },
	{ BPF_FUNC_ringbuf_query, "ringbuf_query" },
	{ BPF_FUNC_copy_from_user, "copy_from_user" },
	{ BPF_FUNC_get_attach_cookie, "get_attach_cookie" },
};

/* Operators by the upper four bits of the code; "": none, or not a binary one. */
static const char alu_signs[16][5] = {
	"+=", "-=", "*=", "/=", "|=", "&=", "<<=", ">>=", "", "%=", "^=", "=", "s>>=", "", "", "",
};

static const char jump_signs[16][4] = {
	"", "==", ">", ">=", "&", "!=", "s>", "s>=", "", "", "<", "<=", "s<", "s<=", "", "",
};

static const char widths[4][4] = { "u32", "u16", "u8", "u64" };

static const char *width_of(const struct bpf_insn *insn)
{
	return widths[BPF_SIZE(insn->code) >> 3];
}

static void print_unknown(const struct out *out, const struct bpf_insn *insn)
{
	snprintf(out->buf, out->size, "(%02x) ??? dst %d src %d off %d imm 0x%x", insn->code,
		 insn->dst_reg, insn->src_reg, insn->off, (unsigned int)insn->imm);
}

/* Negation and byte swap. Return false if @insn is neither. */
static bool print_unary(const struct out *out, const struct bpf_insn *insn)
{
	char r = BPF_CLASS(insn->code) == BPF_ALU ? 'w' : 'r';
	int dst = insn->dst_reg;

	switch (BPF_OP(insn->code)) {
	case BPF_NEG:
		snprintf(out->buf, out->size, "%c%d = -%c%d", r, dst, r, dst);
		return true;
	case BPF_END:
		if (r == 'r' || (insn->imm != 16 && insn->imm != 32 && insn->imm != 64))
			return false;
		snprintf(out->buf, out->size, "r%d = %s%d r%d", dst,
			 BPF_SRC(insn->code) == BPF_TO_BE ? "be" : "le", insn->imm, dst);
		return true;
	}
	return false;
}

static bool print_alu(const struct out *out, const struct bpf_insn *insn)
{
	const char *sign = alu_signs[BPF_OP(insn->code) >> 4];
	char r = BPF_CLASS(insn->code) == BPF_ALU ? 'w' : 'r';

	if (!*sign)
		return print_unary(out, insn);
	if (insn->off)
		return false;	/* signed division and sign-extending moves (cpu v4) */
	if (BPF_SRC(insn->code) == BPF_X)
		snprintf(out->buf, out->size, "%c%d %s %c%d", r, insn->dst_reg, sign, r,
			 insn->src_reg);
	else
		snprintf(out->buf, out->size, "%c%d %s %d", r, insn->dst_reg, sign, insn->imm);
	return true;
}

static const char *helper_name(int32_t id)
{
	for (size_t i = 0; i < sizeof(helpers) / sizeof(*helpers); i++)
		if (helpers[i].id == id)
			return helpers[i].name;
	return "helper";
}

static bool print_call(const struct out *out, const struct bpf_insn *insn)
{
	switch (insn->src_reg) {
	case 0:
		snprintf(out->buf, out->size, "call %s#%d", helper_name(insn->imm), insn->imm);
		return true;
	case BPF_PSEUDO_CALL:
		snprintf(out->buf, out->size, "call pc%+d", insn->imm);
		return true;
	case BPF_PSEUDO_KFUNC_CALL:
		snprintf(out->buf, out->size, "call kernel-function#%d", insn->imm);
		return true;
	}
	return false;
}

/* Unconditional jumps, calls and exit. */
static bool print_plain_jump(const struct out *out, const struct bpf_insn *insn)
{
	switch (insn->code) {
	case BPF_JMP | BPF_JA:
		snprintf(out->buf, out->size, "goto pc%+d", insn->off);
		return true;
	case BPF_JMP | BPF_CALL:
		return print_call(out, insn);
	case BPF_JMP | BPF_EXIT:
		snprintf(out->buf, out->size, "exit");
		return true;
	}
	return false;
}

static bool print_jump(const struct out *out, const struct bpf_insn *insn)
{
	const char *sign = jump_signs[BPF_OP(insn->code) >> 4];
	char r = BPF_CLASS(insn->code) == BPF_JMP32 ? 'w' : 'r';

	if (!*sign)
		return print_plain_jump(out, insn);
	if (BPF_SRC(insn->code) == BPF_X)
		snprintf(out->buf, out->size, "if %c%d %s %c%d goto pc%+d", r, insn->dst_reg,
			 sign, r, insn->src_reg, insn->off);
	else
		snprintf(out->buf, out->size, "if %c%d %s 0x%x goto pc%+d", r, insn->dst_reg,
			 sign, (unsigned int)insn->imm, insn->off);
	return true;
}

/* Atomic operations that return the old value. */
static bool print_fetch(const struct out *out, const struct bpf_insn *insn)
{
	bool wide = BPF_SIZE(insn->code) == BPF_DW;
	const char *bits = wide ? "64" : "";
	char r = wide ? 'r' : 'w';
	const char *name;

	switch (insn->imm) {
	case BPF_CMPXCHG:
		snprintf(out->buf, out->size, "%c0 = atomic%s_cmpxchg((%s *)(r%d %+d), %c0, %c%d)",
			 r, bits, width_of(insn), insn->dst_reg, insn->off, r, r, insn->src_reg);
		return true;
	case BPF_XCHG:
		name = "xchg";
		break;
	case BPF_ADD | BPF_FETCH:
		name = "fetch_add";
		break;
	case BPF_OR | BPF_FETCH:
		name = "fetch_or";
		break;
	case BPF_AND | BPF_FETCH:
		name = "fetch_and";
		break;
	case BPF_XOR | BPF_FETCH:
		name = "fetch_xor";
		break;
	default:
		return false;
	}
	snprintf(out->buf, out->size, "%c%d = atomic%s_%s((%s *)(r%d %+d), %c%d)", r, insn->src_reg,
		 bits, name, width_of(insn), insn->dst_reg, insn->off, r, insn->src_reg);
	return true;
}

static bool print_atomic(const struct out *out, const struct bpf_insn *insn)
{
	bool wide = BPF_SIZE(insn->code) == BPF_DW;

	if (!wide && BPF_SIZE(insn->code) != BPF_W)
		return false;
	switch (insn->imm) {
	case BPF_ADD:
	case BPF_OR:
	case BPF_AND:
	case BPF_XOR:
		snprintf(out->buf, out->size, "lock *(%s *)(r%d %+d) %s %c%d", width_of(insn),
			 insn->dst_reg, insn->off, alu_signs[insn->imm >> 4], wide ? 'r' : 'w',
			 insn->src_reg);
		return true;
	}
	return print_fetch(out, insn);
}

static bool print_store(const struct out *out, const struct bpf_insn *insn)
{
	const char *width = width_of(insn);

	if (BPF_CLASS(insn->code) == BPF_STX && BPF_MODE(insn->code) == BPF_ATOMIC)
		return print_atomic(out, insn);
	if (BPF_MODE(insn->code) != BPF_MEM)
		return false;
	if (BPF_CLASS(insn->code) == BPF_STX)
		snprintf(out->buf, out->size, "*(%s *)(r%d %+d) = r%d", width, insn->dst_reg,
			 insn->off, insn->src_reg);
	else
		snprintf(out->buf, out->size, "*(%s *)(r%d %+d) = %d", width, insn->dst_reg,
			 insn->off, insn->imm);
	return true;
}

static bool print_load(const struct out *out, const struct bpf_insn *insn)
{
	if (BPF_MODE(insn->code) != BPF_MEM)
		return false;
	snprintf(out->buf, out->size, "r%d = *(%s *)(r%d %+d)", insn->dst_reg, width_of(insn),
		 insn->src_reg, insn->off);
	return true;
}

/* Packet loads inherited from classic BPF. */
static bool print_packet(const struct out *out, const struct bpf_insn *insn)
{
	switch (BPF_MODE(insn->code)) {
	case BPF_ABS:
		snprintf(out->buf, out->size, "r0 = *(%s *)skb[%d]", width_of(insn), insn->imm);
		return true;
	case BPF_IND:
		snprintf(out->buf, out->size, "r0 = *(%s *)skb[r%d %+d]", width_of(insn),
			 insn->src_reg, insn->imm);
		return true;
	}
	return false;
}

/* A 64-bit immediate: a number, or a reference that the kernel resolves on load. */
static bool print_wide(const struct out *out, const struct bpf_insn *insn,
		       const struct bpf_insn *next)
{
	unsigned long long value = (unsigned int)insn->imm | (uint64_t)(uint32_t)next->imm << 32;
	int dst = insn->dst_reg;

	switch (insn->src_reg) {
	case 0:
		snprintf(out->buf, out->size, "r%d = 0x%llx", dst, value);
		return true;
	case BPF_PSEUDO_MAP_FD:
	case BPF_PSEUDO_MAP_IDX:
		snprintf(out->buf, out->size, "r%d = map[%s:%d]", dst,
			 insn->src_reg == BPF_PSEUDO_MAP_FD ? "fd" : "idx", insn->imm);
		return true;
	case BPF_PSEUDO_MAP_VALUE:
	case BPF_PSEUDO_MAP_IDX_VALUE:
		snprintf(out->buf, out->size, "r%d = map[%s:%d][0]+%u", dst,
			 insn->src_reg == BPF_PSEUDO_MAP_VALUE ? "fd" : "idx", insn->imm,
			 (unsigned int)next->imm);
		return true;
	case BPF_PSEUDO_BTF_ID:
		snprintf(out->buf, out->size, "r%d = btf[%d]", dst, insn->imm);
		return true;
	case BPF_PSEUDO_FUNC:
		snprintf(out->buf, out->size, "r%d = func[pc%+d]", dst, insn->imm);
		return true;
	}
	return false;
}

static bool print_one(const struct out *out, const struct bpf_insn *insn)
{
	switch (BPF_CLASS(insn->code)) {
	case BPF_LD:
		return print_packet(out, insn);
	case BPF_LDX:
		return print_load(out, insn);
	case BPF_ST:
	case BPF_STX:
		return print_store(out, insn);
	case BPF_ALU:
	case BPF_ALU64:
		return print_alu(out, insn);
	default:
		return print_jump(out, insn);
	}
}

int disasm_insn(const struct bpf_insn *insn, const struct bpf_insn *next, char *buf, size_t size)
{
	struct out out = { buf, size };
	bool wide = insn->code == (BPF_LD | BPF_IMM | BPF_DW) && next && !next->code;

	if (!(wide ? print_wide(&out, insn, next) : print_one(&out, insn)))
		print_unknown(&out, insn);
	return wide ? 2 : 1;
}
