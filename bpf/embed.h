/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_EMBED_H
#define BPF_EMBED_H

/* The BPF object of NAME.bpf.c: the bytes [bpf_NAME, bpf_NAME_end). */
extern const unsigned char bpf_statement[], bpf_statement_end[];
extern const unsigned char bpf_trace[], bpf_trace_end[];
extern const unsigned char bpf_locks[], bpf_locks_end[];

#endif
