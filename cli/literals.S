/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The literals as the first link has them, compressed; see literals.ld. */
	.section .literals_packed, "a"
	.globl literals_packed, literals_packed_end
literals_packed:
	.incbin "literals.lzma"
literals_packed_end:

	.section .note.GNU-stack, "", %progbits
