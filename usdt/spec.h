/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Argument specs: where a probe's argument is when the site is hit.
 *
 * Source of the grammar: sys/sdt.h of SystemTap (SIZE@OPERAND, separated by
 * blanks) with the operands of each architecture's assembler. Engine tables
 * use a grammar of our own beside it, the same for every architecture:
 *
 *	8@%arg0			the first argument of a function (to %arg5)
 *	4@%ret			the value that a function returns
 *	8@16(%arg1)		what lies 16 bytes behind the second one
 *	8@8(0x68(%arg0))	pointers may be followed, inside out
 *	8@MyProcPort(%ip)	a variable of the traced file
 *	8@&MyProcPort(%ip)	where that variable is
 *
 * A spec borrows the text that it was parsed from (symbol names).
 */
#ifndef USDT_SPEC_H
#define USDT_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPEC_ARGS_MAX	12	/* sys/sdt.h has no more: STAP_PROBE12 */
#define SPEC_DEREF_MAX	4
#define SPEC_NO_REG	(-1)

enum spec_kind {
	SPEC_CONST,		/* value */
	SPEC_REG,		/* base */
	SPEC_MEM,		/* memory at base + index * scale + value, or symbol + value */
	SPEC_UNAVAILABLE,	/* reason tells */
};

/* Why an argument cannot be had. spec_reason() has the words. */
enum spec_reason {
	SPEC_OK,
	SPEC_BAD_SIZE,		/* SIZE@ is not 1, 2, 4 or 8. None at all means a pointer's size */
	SPEC_BAD_OPERAND,	/* not in the architecture's grammar */
	SPEC_BAD_REGISTER,	/* no such register */
	SPEC_NO_PT_REGS,	/* a register that the kernel does not keep for us (%xmm0) */
	SPEC_TLS,		/* thread-local: %fs:…@tpoff */
	SPEC_PARTIAL_SYMBOL,	/* only a part of an address: #:lo12:… */
	SPEC_NO_SYMBOL,		/* the file does not name that symbol (found when emitting) */
	SPEC_TOO_LONG,
	SPEC_NO_EMITTER,	/* architecture is parsed for listing only */
};

struct spec {
	enum spec_kind kind;
	enum spec_reason reason;
	uint8_t size;			/* bytes: 1, 2, 4, 8 */
	bool is_signed, is_float;
	uint8_t scale;			/* 1, 2, 4, 8 */
	int16_t base, index;		/* the architecture's register numbers or SPEC_NO_REG */
	bool address;			/* memory: not what is there, but where it is */
	bool pc_relative;		/* symbol(%rip), no ->base: relative to the loaded site */
	uint8_t reg_bits;		/* 8, 16, 32, 64: how much of ->base the operand names;
					   memory: 32 means that addresses wrap at 4 GB */
	uint8_t reg_shift;		/* 8 for %ah, %bh, %ch, %dh, else 0 */
	int64_t value;			/* constant or displacement */
	const char *symbol;		/* NULL: none */
	size_t symbol_len;
	uint8_t nderef;			/* then, from there: read a pointer, add deref[i], … */
	int64_t deref[SPEC_DEREF_MAX];
	const char *text;		/* the spec as written, SIZE@ included */
	size_t text_len;
};

/*
 * Parses the specs in @args (a note's string) for ELF machine @machine and
 * class (@is64, which tells the ABI's pointer size). Up to @max go to @specs.
 * The number of arguments that @args has, which may be larger than @max;
 * never an error: what cannot be parsed is SPEC_UNAVAILABLE, with its reason,
 * and the others stay. Always ends, and looks at each byte a bounded number
 * of times.
 */
size_t spec_parse_all(uint16_t machine, bool is64, const char *args, struct spec *specs,
		      size_t max);

/* One spec in the first @len bytes of @text. Its reason, SPEC_OK when it can be used. */
enum spec_reason spec_parse(uint16_t machine, bool is64, const char *text, size_t len,
			    struct spec *spec);

/* The reason in plain words, e.g. "a register that the kernel does not save". Static. */
const char *spec_reason(enum spec_reason reason);

/*
 * The spec in tplist's wording: "8 unsigned bytes @ ax", "4 signed   bytes @ *(bp - 136)",
 * "… @ *(&sym + n)". At most @size bytes with the NUL. The length as snprintf tells it.
 */
int spec_format(uint16_t machine, const struct spec *spec, char *buf, size_t size);

#endif
