// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Registers: r6 is the array of variables, r0 the value last computed, r2 the
 * right operand. The left operand is spilled to a stack slot, chosen by its
 * depth, while the right one is computed.
 */
#include "usdt/expression.h"

#include <string.h>

#include "usdt/insn_buf.h"

#define TEXT_AT		(-72)		/* room for EXPRESSION_TEXT + 1 bytes, aligned */
#define SLOT(depth)	(TEXT_AT - 8 * ((depth) + 1))
#define JUMPS_MAX	(EXPRESSION_TEXT / 8 + 4)
#define UNREAD_AT	(EXPRESSION_UNREAD * 8)

struct emitter {
	const struct expression *e;
	const struct expression_site *site;
	struct insn_buf buf;
	size_t unknown[EXPRESSION_NODES];	/* jumps that are taken if the value is unknown */
	size_t nunknown;
};

static void put_move(struct emitter *m, uint8_t dst, uint8_t src)
{
	insn_put(&m->buf, BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}

static void put_constant(struct emitter *m, uint8_t dst, uint64_t value)
{
	if ((int64_t)value == (int32_t)value) {
		insn_put(&m->buf, BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, (int32_t)value);
		return;
	}
	insn_put_wide(&m->buf, dst, value);
}

/* r0 = r0 @jump operand (r2) ? 1 : 0 */
static void put_truth(struct emitter *m, uint8_t jump)
{
	insn_put(&m->buf, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, 1);
	insn_put(&m->buf, BPF_JMP | jump | BPF_X, BPF_REG_0, BPF_REG_2, 1, 0);
	insn_put(&m->buf, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, 0);
	put_move(m, BPF_REG_0, BPF_REG_3);
}

/* dst = sign < 0 ? -dst : dst */
static void put_negated_if(struct emitter *m, uint8_t dst, uint8_t sign)
{
	insn_put(&m->buf, BPF_JMP | BPF_JSGE | BPF_K, sign, 0, 1, 0);
	insn_put(&m->buf, BPF_ALU64 | BPF_NEG, dst, 0, 0, 0);
}

static bool node_signed(const struct emitter *m, uint8_t at)
{
	const struct expression_node *node = &m->e->nodes[at];

	switch (node->kind) {
	case EXPRESSION_NUMBER:
	case EXPRESSION_CAST:
		return node->is_signed;
	case EXPRESSION_VARIABLE:
		return m->site->signed_mask >> node->value & 1;
	case EXPRESSION_UNARY:
		return node->op == OP_NEGATE ||
		       (node->op == OP_INVERT && node_signed(m, node->left));
	case EXPRESSION_BINARY:
		if (node->op == OP_LEFT || node->op == OP_RIGHT)
			return node_signed(m, node->left);
		return (node->op >= OP_ADD || (node->op >= OP_BIT_OR && node->op <= OP_BIT_AND)) &&
		       (node_signed(m, node->left) || node_signed(m, node->right));
	}
	return false;
}

static void emit_node(struct emitter *m, uint8_t at, int depth);

/* Load @variable to register @dst, after a check that it was read. Clobber r1. */
static void emit_variable(struct emitter *m, uint8_t dst, unsigned int variable)
{
	if (m->site->fails_mask >> variable & 1) {
		insn_put(&m->buf, BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_6, UNREAD_AT, 0);
		m->unknown[m->nunknown++] = insn_put(&m->buf, BPF_JMP | BPF_JSET | BPF_K,
						     BPF_REG_1, 0, 0, 1 << variable);
	}
	insn_put(&m->buf, BPF_LDX | BPF_MEM | BPF_DW, dst, BPF_REG_6, (int16_t)(variable * 8), 0);
}

/* Load a number or a variable to register @dst. Return false if the node is neither. */
static bool emit_simple(struct emitter *m, uint8_t at, uint8_t dst)
{
	const struct expression_node *node = &m->e->nodes[at];

	if (node->kind == EXPRESSION_NUMBER)
		put_constant(m, dst, (uint64_t)node->value);
	else if (node->kind == EXPRESSION_VARIABLE)
		emit_variable(m, dst, (unsigned int)node->value);
	else
		return false;
	return true;
}

/* Compute the left operand in r0 and the right one in r2. */
static void emit_operands(struct emitter *m, const struct expression_node *node, int depth)
{
	emit_node(m, node->left, depth);
	if (emit_simple(m, node->right, BPF_REG_2))
		return;
	insn_put(&m->buf, BPF_STX | BPF_MEM | BPF_DW, BPF_REG_10, BPF_REG_0, (int16_t)SLOT(depth),
		 0);
	emit_node(m, node->right, depth + 1);
	put_move(m, BPF_REG_2, BPF_REG_0);
	insn_put(&m->buf, BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_0, BPF_REG_10, (int16_t)SLOT(depth),
		 0);
}

/* Jump unless the @size bytes at address @base + @offset are those of @text. */
static size_t emit_piece(struct emitter *m, uint8_t base, int offset, const char *text, size_t size)
{
	uint8_t width = size == 8 ? BPF_DW : size == 4 ? BPF_W : size == 2 ? BPF_H : BPF_B;
	uint64_t want = 0;

	for (size_t i = size; i--;)
		want = want << 8 | (unsigned char)text[i];
	insn_put(&m->buf, BPF_LDX | BPF_MEM | width, BPF_REG_1, base, (int16_t)offset, 0);
	put_constant(m, BPF_REG_2, want);
	return insn_put(&m->buf, BPF_JMP | BPF_JNE | BPF_X, BPF_REG_1, BPF_REG_2, 0, 0);
}

/*
 * Read the string at address r0 to the stack. Jump unless it has @len bytes: one
 * more is read, to detect that the traced string is longer.
 */
static size_t emit_read(struct emitter *m, uint32_t len)
{
	put_move(m, BPF_REG_3, BPF_REG_0);
	put_move(m, BPF_REG_1, BPF_REG_10);
	insn_put(&m->buf, BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_1, 0, 0, TEXT_AT);
	insn_put(&m->buf, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, (int32_t)len + 2);
	insn_put(&m->buf, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_probe_read_user_str);
	return insn_put(&m->buf, BPF_JMP | BPF_JNE | BPF_K, BPF_REG_0, 0, 0, (int32_t)len + 1);
}

/* Compare comm, or the string at the left operand's address, with the right operand. */
static void emit_text(struct emitter *m, const struct expression_node *node, int depth)
{
	const struct expression_node *left = &m->e->nodes[node->left];
	const struct expression_node *string = &m->e->nodes[node->right];
	bool comm = left->kind == EXPRESSION_VARIABLE && left->value == EXPRESSION_COMM;
	size_t jumps[JUMPS_MAX], n = 0, at = 0, end;
	size_t len = comm ? EXPRESSION_COMM_SIZE : string->len;
	int from = comm ? EXPRESSION_COMM * 8 : TEXT_AT;
	char text[EXPRESSION_TEXT] = "";

	memcpy(text, m->e->texts + string->value, string->len);
	if (!comm) {
		emit_node(m, node->left, depth);
		jumps[n++] = emit_read(m, string->len);
	}
	for (size_t size = 8; size; size /= 2)
		for (; len - at >= size; at += size)
			jumps[n++] = emit_piece(m, comm ? BPF_REG_6 : BPF_REG_10, from + (int)at,
						text + at, size);
	insn_put(&m->buf, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, node->op == OP_EQ);
	end = insn_put(&m->buf, BPF_JMP | BPF_JA, 0, 0, 0, 0);
	for (size_t i = 0; i < n; i++)
		insn_land(&m->buf, jumps[i]);
	insn_put(&m->buf, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, node->op != OP_EQ);
	insn_land(&m->buf, end);
}

/* && and ||: evaluate the right operand only if the left one does not decide. */
static void emit_logic(struct emitter *m, const struct expression_node *node, int depth)
{
	bool is_or = node->op == OP_OR;
	size_t decided, end;

	emit_node(m, node->left, depth);
	decided = insn_put(&m->buf, BPF_JMP | (is_or ? BPF_JNE : BPF_JEQ) | BPF_K, BPF_REG_0, 0,
			   0, 0);
	emit_node(m, node->right, depth);
	insn_put(&m->buf, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, 0);
	put_truth(m, BPF_JNE);
	end = insn_put(&m->buf, BPF_JMP | BPF_JA, 0, 0, 0, 0);
	insn_land(&m->buf, decided);
	insn_put(&m->buf, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, is_or);
	insn_land(&m->buf, end);
}

/*
 * Divide r0 by r2; if @is_signed, their absolute values, as signed division requires Linux 6.6. The
 * sign of a quotient is that of r0 ^ r2, of a remainder that of r0. By 0, the value is unknown.
 */
static void emit_division(struct emitter *m, uint8_t code, bool is_signed)
{
	insn_put(&m->buf, BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_6, UNREAD_AT, 0);
	m->unknown[m->nunknown++] = insn_put(&m->buf, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_2, 0, 0,
					     0);
	if (is_signed) {
		put_move(m, BPF_REG_3, BPF_REG_0);
		if (code == BPF_DIV)
			insn_put(&m->buf, BPF_ALU64 | BPF_XOR | BPF_X, BPF_REG_3, BPF_REG_2, 0, 0);
		put_negated_if(m, BPF_REG_0, BPF_REG_0);
		put_negated_if(m, BPF_REG_2, BPF_REG_2);
	}
	insn_put(&m->buf, BPF_ALU64 | code | BPF_X, BPF_REG_0, BPF_REG_2, 0, 0);
	if (is_signed)
		put_negated_if(m, BPF_REG_0, BPF_REG_3);
}

static void emit_binary(struct emitter *m, const struct expression_node *node, int depth)
{
	static const struct {
		uint8_t code, signed_code;	/* jumps; of the others, 64-bit operations */
	} codes[] = {
		[OP_BIT_OR] = { BPF_OR, BPF_OR }, [OP_BIT_XOR] = { BPF_XOR, BPF_XOR },
		[OP_BIT_AND] = { BPF_AND, BPF_AND }, [OP_EQ] = { BPF_JEQ, BPF_JEQ },
		[OP_NE] = { BPF_JNE, BPF_JNE }, [OP_LT] = { BPF_JLT, BPF_JSLT },
		[OP_LE] = { BPF_JLE, BPF_JSLE }, [OP_GT] = { BPF_JGT, BPF_JSGT },
		[OP_GE] = { BPF_JGE, BPF_JSGE }, [OP_LEFT] = { BPF_LSH, BPF_LSH },
		[OP_RIGHT] = { BPF_RSH, BPF_ARSH }, [OP_ADD] = { BPF_ADD, BPF_ADD },
		[OP_SUB] = { BPF_SUB, BPF_SUB }, [OP_MUL] = { BPF_MUL, BPF_MUL },
		[OP_DIV] = { BPF_DIV, BPF_DIV }, [OP_MOD] = { BPF_MOD, BPF_MOD },
	};
	bool is_signed = node_signed(m, node->left) ||
			 (node->op != OP_RIGHT && node_signed(m, node->right));
	uint8_t code;

	if (node->op <= OP_AND) {
		emit_logic(m, node, depth);
		return;
	}
	if (m->e->nodes[node->right].kind == EXPRESSION_STRING) {
		emit_text(m, node, depth);
		return;
	}
	emit_operands(m, node, depth);
	code = is_signed ? codes[node->op].signed_code : codes[node->op].code;
	if (node->op >= OP_EQ && node->op <= OP_GE) {
		put_truth(m, code);
		return;
	}
	if (node->op == OP_DIV || node->op == OP_MOD) {
		emit_division(m, code, is_signed);
		return;
	}
	/* The verifier rejects only constant shifts by 64 or more. */
	if (node->op == OP_LEFT || node->op == OP_RIGHT)
		insn_put(&m->buf, BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_2, 0, 0, 63);
	insn_put(&m->buf, BPF_ALU64 | code | BPF_X, BPF_REG_0, BPF_REG_2, 0, 0);
}

static void emit_unary(struct emitter *m, const struct expression_node *node)
{
	switch (node->op) {
	case OP_NOT:
		insn_put(&m->buf, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, 0);
		put_truth(m, BPF_JEQ);
		break;
	case OP_NEGATE:
		insn_put(&m->buf, BPF_ALU64 | BPF_NEG, BPF_REG_0, 0, 0, 0);
		break;
	default:
		insn_put(&m->buf, BPF_ALU64 | BPF_XOR | BPF_K, BPF_REG_0, 0, 0, -1);
	}
}

static void emit_cast(struct emitter *m, const struct expression_node *node)
{
	int32_t unused = 64 - node->bits;

	if (!unused)
		return;
	insn_put(&m->buf, BPF_ALU64 | BPF_LSH | BPF_K, BPF_REG_0, 0, 0, unused);
	insn_put(&m->buf, BPF_ALU64 | (node->is_signed ? BPF_ARSH : BPF_RSH) | BPF_K, BPF_REG_0,
		 0, 0, unused);
}

/* Compute node @at in r0. Stack slots from @depth on are free. */
static void emit_node(struct emitter *m, uint8_t at, int depth)
{
	const struct expression_node *node = &m->e->nodes[at];

	if (emit_simple(m, at, BPF_REG_0))
		return;
	if (node->kind == EXPRESSION_BINARY) {
		emit_binary(m, node, depth);
		return;
	}
	emit_node(m, node->left, depth);
	if (node->kind == EXPRESSION_CAST)
		emit_cast(m, node);
	else
		emit_unary(m, node);
}

/* Report that the value is unknown. */
static void emit_unknown(struct emitter *m, int32_t unknown)
{
	if (!m->nunknown)
		return;
	insn_put(&m->buf, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	for (size_t i = 0; i < m->nunknown; i++)
		insn_land(&m->buf, m->unknown[i]);
	insn_put(&m->buf, BPF_ALU64 | BPF_OR | BPF_K, BPF_REG_1, 0, 0, unknown);
	insn_put(&m->buf, BPF_STX | BPF_MEM | BPF_DW, BPF_REG_6, BPF_REG_1, UNREAD_AT, 0);
	put_constant(m, BPF_REG_0, 0);
}

int expression_emit(const struct expression *e, const struct expression_site *site,
		    int32_t unknown, struct bpf_insn *insns, size_t max)
{
	struct emitter m = { .e = e, .site = site, .buf = { insns, max, 0 } };
	int plain = expression_plain(e);

	if (plain >= 0 && !(site->fails_mask >> plain & 1)) {
		insn_put(&m.buf, BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_0, BPF_REG_1,
			 (int16_t)(plain * 8), 0);
	} else {
		put_move(&m, BPF_REG_6, BPF_REG_1);
		emit_node(&m, e->root, 0);
		emit_unknown(&m, unknown);
	}
	return insn_finish(&m.buf);
}

bool expression_is_signed(const struct expression *e, const struct expression_site *site)
{
	struct emitter m = { .e = e, .site = site };

	return node_signed(&m, e->root);
}
