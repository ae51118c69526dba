/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_EMBED_H
#define BPF_EMBED_H

/* The BPF object made from statement.bpf.c: the bytes from the first to before the second. */
extern const unsigned char bpf_statement[], bpf_statement_end[];

#endif
