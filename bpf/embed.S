/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The compiled BPF programs, a section each: the linker drops those that no code refers to. */
#define OBJECT(name, file)			\
	.section .rodata.##name, "a";		\
	.balign 8;				\
	.globl name, name##_end;		\
name:						\
	.incbin file;				\
name##_end:

	OBJECT(bpf_statement, "bpf/statement.bpf.o")
	OBJECT(bpf_trace, "bpf/trace.bpf.o")
	OBJECT(bpf_locks, "bpf/locks.bpf.o")

	.section .note.GNU-stack, "", %progbits
