/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The linker. The embedded object has programs with holes; when the target is
 * known, object_link() copies one out and fills them:
 *
 *	R_BPF_64_32, a call	to an undefined symbol: to the instructions given under its name,
 *				appended to the program, or put in the call's place where they are
 *				one; to a defined one: that function is appended too (BPF-to-BPF)
 *	R_BPF_64_64, an address	of an undefined symbol: a number or a map's descriptor
 *
 * So an argument is read as cheaply as by hand-written code: there is no
 * look-up at a hit, and neither attach cookies nor BTF are needed.
 *
 * Source of the relocations: Documentation/bpf/llvm_reloc.rst of the kernel.
 */
#ifndef LOADER_LINKER_H
#define LOADER_LINKER_H

#include <linux/bpf.h>

#include "usdt/elf.h"

#define OBJECT_INSNS_MAX	4096	/* of one linked program */

struct object {
	struct elf elf;
	struct elf_symbol_iter symbols;	/* at the first one */
	/*
	 * Programs shall read user memory by probe_read and probe_read_str, as before 5.5
	 * (6ae08ae3dea2). The caller's to set.
	 */
	bool old_reads;
	void *inflated;			/* owned; NULL: the data were not compressed */
};

enum object_kind {
	OBJECT_NUMBER,
	OBJECT_MAP,
	OBJECT_CODE,
};

/* What an undefined symbol stands for. */
struct object_value {
	const char *name;
	enum object_kind kind;
	uint64_t number;
	int map;				/* descriptor */
	const struct bpf_insn *insns;	/* a function; ends in exit */
	uint32_t count;
};

/*
 * Open the BPF object @data, which must outlive it and may be compressed by gzip. Return 0,
 * -ENOEXEC, or -ENOMEM. The caller closes it.
 */
int object_open(struct object *object, const void *data, size_t size);

/* Free what object_open() allocated. */
void object_close(struct object *object);

/*
 * Links program @name to @insns, room for OBJECT_INSNS_MAX: the number of
 * instructions. -ENOENT: a symbol that is not among @values, or no such
 * program; -ENOEXEC: an object that contradicts itself; -ENOSPC: too long. *@culprit is
 * then the symbol's name.
 */
int object_link(const struct object *object, const char *name, const struct object_value *values,
		size_t nvalues, struct bpf_insn *insns, const char **culprit);

/*
 * Whether program @name calls or looks at the undefined symbol @symbol. @insns is room for
 * OBJECT_INSNS_MAX, of no meaning afterwards.
 */
bool object_asks(const struct object *object, const char *name, const char *symbol,
		 struct bpf_insn *insns);

/*
 * The next undefined symbol of the object's that is no argument, from *@at on, which begins at 0:
 * a map or a number. NULL at the end.
 */
const char *object_undefined(const struct object *object, uint64_t *at);

#endif
