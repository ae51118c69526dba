/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A parsed argument spec. Shared by usdt/spec.c and the architectures' operand parsers. */
#ifndef USDT_SPEC_TYPES_H
#define USDT_SPEC_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPEC_ARGS_MAX	12	/* of a probe: sys/sdt.h ends at STAP_PROBE12 */
#define SPEC_DEREF_MAX	4
#define SPEC_NO_REG	(-1)

enum spec_kind {
	SPEC_CONST,		/* value */
	SPEC_REG,		/* base */
	SPEC_MEM,		/* memory at base + index * scale + value, or symbol + value */
	SPEC_UNAVAILABLE,	/* see reason */
};

/* Why an argument is unavailable; spec_reason() returns the text. */
enum spec_reason {
	SPEC_OK,
	SPEC_BAD_SIZE,		/* SIZE@ is not 1, 2, 4 or 8. If absent, it is a pointer's size */
	SPEC_BAD_OPERAND,	/* not in the architecture's grammar */
	SPEC_BAD_REGISTER,	/* no such register */
	SPEC_AMBIGUOUS,		/* a register that is one of two: x31 */
	SPEC_NO_PT_REGS,	/* a register that is not in struct pt_regs (%xmm0) */
	SPEC_TLS,		/* thread-local: %fs:…@tpoff */
	SPEC_PARTIAL_SYMBOL,	/* only part of an address: #:lo12:… */
	SPEC_NO_SYMBOL,		/* not in the file's symbol tables (found by spec_emit()) */
	SPEC_TOO_LONG,		/* more than SPEC_DEREF_MAX pointers to follow */
	SPEC_NO_EMITTER,	/* the architecture is supported for listing only */
};

struct spec {
	enum spec_kind kind;
	enum spec_reason reason;
	uint8_t size;			/* bytes: 1, 2, 4, 8 */
	bool is_signed, is_float;
	uint8_t scale;			/* 1, 2, 4, 8 */
	int16_t base, index;		/* register slots, see arch.h, or SPEC_NO_REG */
	bool address;			/* SPEC_MEM: the address itself, not the memory there */
	bool pc_relative;		/* symbol(%rip), no ->base: relative to the loaded site */
	uint8_t reg_bits;		/* 8, 16, 32, 64: the part of ->base that the operand names;
					   SPEC_MEM: 32 means that addresses wrap at 4 GiB */
	uint8_t reg_shift;		/* 8 for %ah, %bh, %ch, %dh, else 0 */
	int64_t value;			/* constant or displacement in bytes */
	const char *symbol;		/* borrowed, not terminated; NULL: none */
	size_t symbol_len;
	uint8_t nderef;			/* then, from there: read a pointer, add deref[i], … */
	int64_t deref[SPEC_DEREF_MAX];
	const char *text;		/* the spec as written, SIZE@ included; borrowed */
	size_t text_len;
};

#endif
