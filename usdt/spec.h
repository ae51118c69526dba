/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Argument specs: the location of a probe's argument when the site is hit.
 *
 * Source of the grammar: SystemTap's sys/sdt.h (SIZE@OPERAND, separated by
 * blanks), with operands in the syntax of each architecture's assembler.
 * Engine descriptors use an additional grammar that is the same for every
 * architecture:
 *
 *	8@%arg0			the first argument of a function (to %arg5)
 *	4@%ret			the return value of a function
 *	8@16(%arg1)		memory 16 bytes behind the second argument
 *	8@8(0x68(%arg0))	pointers are followed inside out
 *	8@MyProcPort(%ip)	a variable of the traced file
 *	8@&MyProcPort(%ip)	the address of that variable
 *
 * All functions are pure. A spec borrows the text that it was parsed from.
 * Machines are ELF e_machine values (EM_X86_64, …).
 */
#ifndef USDT_SPEC_H
#define USDT_SPEC_H

#include "usdt/spec_types.h"

/*
 * Parse the specs in @args (a note's string; NULL: none) for ELF machine
 * @machine and ELF class (@is64, which determines the size of a pointer), the
 * first @max to @specs. Return the number of arguments in @args, which may be
 * larger than @max. Never fails: an argument that cannot be parsed becomes
 * SPEC_UNAVAILABLE with its reason. Takes time linear in the length of @args.
 */
size_t spec_parse_all(uint16_t machine, bool is64, const char *args, struct spec *specs,
		      size_t max);

/* Parse one spec, the @len bytes at @text. Return its reason: SPEC_OK if it can be used. */
enum spec_reason spec_parse(uint16_t machine, bool is64, const char *text, size_t len,
			    struct spec *spec);

/* Return @reason as a noun phrase, "a register that the kernel does not save". Static. */
const char *spec_reason(enum spec_reason reason);

/*
 * Format @spec as bcc's tplist does: "8 unsigned bytes @ ax",
 * "4 signed   bytes @ *(bp - 136)", "… @ *(ax + 0 + cx * 8)", "… @ *(&sym + n)".
 * An unavailable argument is its operand as written, or "?" if that is invalid,
 * with the reason in brackets. Write at most @size bytes, the NUL included, to
 * @buf. Return the length as snprintf() does.
 */
int spec_format(uint16_t machine, const struct spec *spec, char *buf, size_t size);

#endif
