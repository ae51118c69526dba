/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The linker of BPF programs. The programs in the embedded object refer to undefined symbols;
 * object_link() copies a program and resolves them for one probe site:
 *
 *	R_BPF_64_32, a call	to an undefined symbol: the code that the caller supplies for it is
 *				appended as a subprogram, or replaces the call if it is a single
 *				instruction. To a defined symbol: its function is appended.
 *	R_BPF_64_64, an address	of an undefined symbol: a number, or the descriptor of a map.
 *
 * A hit therefore reads an argument without any look-up, and neither attach cookies nor BTF are
 * required. Constants are known then, so what they exclude is removed (loader/fold.h).
 *
 * Source of the relocations: Documentation/bpf/llvm_reloc.rst of the kernel.
 */
#ifndef LOADER_LINKER_H
#define LOADER_LINKER_H

#include <linux/bpf.h>

#include "usdt/elf_symbol.h"

#define OBJECT_INSNS_MAX	8192	/* instructions of one program when it is linked */

/* An open BPF object. */
struct object {
	struct elf elf;
	struct elf_symbol_iter symbols;	/* at the first one */
	/*
	 * Set by the caller: programs read user memory by probe_read and probe_read_str, as before
	 * 5.5 (6ae08ae3dea2).
	 */
	bool old_reads;
};

enum object_kind {
	OBJECT_NUMBER,		/* a constant */
	OBJECT_MAP,
	OBJECT_CODE,		/* a function */
};

/* The value of an undefined symbol. Everything is borrowed. */
struct object_value {
	const char *name;
	enum object_kind kind;
	uint64_t number;
	int map;				/* descriptor */
	const struct bpf_insn *insns;	/* of a function; the last one is exit */
	uint32_t count;			/* instructions */
};

/*
 * Open the BPF object in the @size bytes at @data, which must outlive @object. Return 0 or
 * -ENOEXEC.
 */
int object_open(struct object *object, const void *data, size_t size);

/*
 * Link program @name to @insns, room for OBJECT_INSNS_MAX. Return the number of instructions; or
 * -ENOENT: a symbol has no value in @values, or there is no such program; -ENOEXEC: the object is
 * malformed; -ENOSPC: the program is too long; -ENOMEM. On failure *@culprit is the name of the
 * symbol, or @name.
 */
int object_link(const struct object *object, const char *name, const struct object_value *values,
		size_t nvalues, struct bpf_insn *insns, const char **culprit);

/*
 * Return whether program @name refers to the undefined symbol @symbol. @insns, room for
 * OBJECT_INSNS_MAX, is scratch space.
 */
bool object_refers(const struct object *object, const char *name, const char *symbol,
		   struct bpf_insn *insns);

/*
 * Iterate over the undefined symbols that are maps or constants, not arguments. *@at is the
 * iterator, 0 at first. Return the next name, or NULL at the end.
 */
const char *object_undefined(const struct object *object, uint64_t *at);

#endif
