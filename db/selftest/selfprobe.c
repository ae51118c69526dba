// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* USDT sites in inline assembly, with a note for each; usdt/note.h documents the format. */
#include "db/selftest/selfprobe.h"

#include "host/arch.h"

/* Incremented by the kernel at their offset in the file, so not in .bss. */
#define SEMAPHORE __attribute__((section(".probes"), used)) static volatile uint16_t

SEMAPHORE selfprobe_start_semaphore;
SEMAPHORE selfprobe_done_semaphore;

/* A site and its note. There is no .stapsdt.base: this file is not prelinked. */
#define PROBE(name, semaphore, args)                    \
	"990:	nop\n"                                  \
	"	.pushsection .note.stapsdt,\"\",\"note\"\n" \
	"	.balign 4\n"                            \
	"	.4byte 992f-991f, 994f-993f, 3\n"       \
	"991:	.asciz \"stapsdt\"\n"                   \
	"992:	.balign 4\n"                            \
	"993:	.8byte 990b\n"                          \
	"	.8byte 0\n"                             \
	"	.8byte " semaphore "\n"                 \
	"	.asciz \"dbslower\"\n"                  \
	"	.asciz \"" name "\"\n"                  \
	"	.asciz \"" args "\"\n"                  \
	"994:	.balign 4\n"                            \
	"	.popsection\n"

#define START_ARGS	"8@" HOST_OPERAND64("text") " -4@" HOST_OPERAND32("number") \
			" 8@" HOST_OPERAND_MEMORY("where")
#define DONE_ARGS	"-4@" HOST_OPERAND32("number")

__attribute__((noinline)) void selfprobe_start(const char *text, int32_t number)
{
	const char *volatile where = text;

	__asm__ volatile(PROBE("self__start", "selfprobe_start_semaphore", START_ARGS)
			 : : [text] "r"(text), [number] "r"(number), [where] "r"(&where)
			 : "memory");
}

__attribute__((noinline)) void selfprobe_done(int32_t number)
{
	__asm__ volatile(PROBE("self__done", "selfprobe_done_semaphore", DONE_ARGS)
			 : : [number] "r"(number) : "memory");
}

unsigned int selfprobe_start_traced(void)
{
	return selfprobe_start_semaphore;
}

unsigned int selfprobe_done_traced(void)
{
	return selfprobe_done_semaphore;
}
