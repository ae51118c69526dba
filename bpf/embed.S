/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The BPF objects, embedded in the binary. */
	.section .rodata.bpf, "a"
	.balign 8
	.globl bpf_statement, bpf_statement_end
bpf_statement:
	.incbin "bpf/statement.bpf.o"
bpf_statement_end:
	.balign 8
	.globl bpf_trace, bpf_trace_end
bpf_trace:
	.incbin "bpf/trace.bpf.o"
bpf_trace_end:
	.balign 8
	.globl bpf_locks, bpf_locks_end
bpf_locks:
	.incbin "bpf/locks.bpf.o"
bpf_locks_end:
	.section .note.GNU-stack, "", %progbits
