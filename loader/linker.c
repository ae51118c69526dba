// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/linker.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cursor.h"
#include "loader/fold.h"

#ifndef EM_BPF
#define EM_BPF 247
#endif
#define RELOCATION_BYTES	16	/* of an Elf64_Rel */
#define R_BPF_64_64	1
#define R_BPF_64_32	10
#define SUBPROGS_MAX	96
#define SUBPROG_NONE	UINT32_MAX

/* A subprogram of the program that is being linked. */
struct subprog {
	const struct object_value *value;	/* code of the caller; NULL: of the object, at */
	uint32_t shndx;
	uint64_t offset;			/* bytes into its section */
	uint32_t start;				/* in the output, instructions */
};

/* State of linking one program. */
struct link_state {
	const struct object *object;
	const struct object_value *values;
	size_t nvalues;
	struct bpf_insn *insns;
	uint32_t count;
	struct subprog subprogs[SUBPROGS_MAX];
	uint32_t nsubprogs, copied;	/* all, and those that are in the output already */
	/* the index of the subprogram that each instruction calls, or SUBPROG_NONE */
	uint32_t calls[OBJECT_INSNS_MAX];
	const char *culprit;
	const char *sought;		/* of object_refers(): then every symbol has a value */
	bool found;
};

int object_open(struct object *object, const void *data, size_t size)
{
	if (elf_open(&object->elf, data, size) || object->elf.machine != EM_BPF ||
	    elf_symbols(&object->elf, SHT_SYMTAB, &object->symbols))
		return -ENOEXEC;
	return 0;
}

static int object_symbol(const struct object *object, uint64_t index, struct elf_symbol *symbol)
{
	struct elf_symbol_iter iter = object->symbols;

	iter.next = index;
	return elf_symbol_next(&iter, symbol) ? 0 : -ENOEXEC;
}

/* Find the function @name; if that is NULL, the one at @offset of section @shndx. */
static int object_function(const struct object *object, const char *name, uint32_t shndx,
			   uint64_t offset, struct elf_symbol *symbol)
{
	struct elf_symbol_iter iter = object->symbols;

	while (elf_symbol_next(&iter, symbol)) {
		if (symbol->type != STT_FUNC)
			continue;
		if (name ? !strcmp(symbol->name, name) :
			   symbol->shndx == shndx && symbol->value == offset)
			return 0;
	}
	return -ENOENT;
}

/* Return the value of symbol @name, or NULL; @code: it is called. */
static const struct object_value *link_value(struct link_state *l, const char *name, bool code)
{
	static const struct bpf_insn two[2];
	static const struct object_value any[] = {
		{ .kind = OBJECT_NUMBER }, { .kind = OBJECT_CODE, .insns = two, .count = 2 },
	};

	if (l->sought) {
		l->found |= !strcmp(l->sought, name);
		return &any[code];
	}
	for (size_t i = 0; i < l->nvalues; i++)
		if (!strcmp(l->values[i].name, name))
			return &l->values[i];
	return NULL;
}

/* Return the index of the subprogram @wanted, which is added if new; or -ENOSPC. */
static int link_subprog(struct link_state *l, const struct subprog *wanted)
{
	for (uint32_t i = 0; i < l->nsubprogs; i++) {
		const struct subprog *p = &l->subprogs[i];

		if (p->value == wanted->value && p->shndx == wanted->shndx &&
		    p->offset == wanted->offset)
			return (int)i;
	}
	if (l->nsubprogs == SUBPROGS_MAX)
		return -ENOSPC;
	l->subprogs[l->nsubprogs] = *wanted;
	return (int)l->nsubprogs++;
}

/* Resolve the call at index @at to @symbol. */
static int link_call(struct link_state *l, uint32_t at, const struct elf_symbol *symbol)
{
	struct bpf_insn *insn = &l->insns[at];
	struct subprog wanted = { 0 };
	int subprog;

	if (symbol->shndx == SHN_UNDEF) {
		wanted.value = link_value(l, symbol->name, true);
		if (!wanted.value || wanted.value->kind != OBJECT_CODE) {
			l->culprit = symbol->name;
			return -ENOENT;
		}
		/* One instruction and the exit: replace the call. */
		if (wanted.value->count == 2) {
			*insn = wanted.value->insns[0];
			return 0;
		}
	} else {
		wanted.shndx = symbol->shndx;
		wanted.offset = symbol->value;
		/* For a local function clang refers to the section; the call has the offset. */
		if (symbol->type == STT_SECTION)
			wanted.offset += ((int64_t)insn->imm + 1) * (int64_t)sizeof(*insn);
	}
	subprog = link_subprog(l, &wanted);
	if (subprog < 0)
		return subprog;
	insn->src_reg = BPF_PSEUDO_CALL;
	l->calls[at] = (uint32_t)subprog;
	return 0;
}

/* Resolve the address of @symbol, loaded by the two instructions at index @at. */
static int link_address(struct link_state *l, uint32_t at, const struct elf_symbol *symbol)
{
	const struct object_value *value = link_value(l, symbol->name, false);
	struct bpf_insn *insn = &l->insns[at];

	l->culprit = symbol->name;
	if (!value || value->kind == OBJECT_CODE)
		return -ENOENT;
	if (at + 1 >= l->count || insn->code != (BPF_LD | BPF_DW | BPF_IMM))
		return -ENOEXEC;
	if (value->kind == OBJECT_MAP) {
		insn[0].src_reg = BPF_PSEUDO_MAP_FD;
		insn[0].imm = value->map;
		insn[1].imm = 0;
	} else {
		insn[0].imm = (int32_t)(uint32_t)value->number;
		insn[1].imm = (int32_t)(uint32_t)(value->number >> 32);
	}
	return 0;
}

/* Return the number of relocations for what is before @offset: the assembler sorts them by that. */
static size_t relocations_before(struct cursor c, uint64_t offset)
{
	size_t first = 0, last = cursor_left(&c) / RELOCATION_BYTES;

	while (first < last) {
		size_t middle = first + (last - first) / 2;

		cursor_seek(&c, middle * RELOCATION_BYTES);
		if (cursor_uint(&c, 8) < offset)
			first = middle + 1;
		else
			last = middle;
	}
	return first;
}

/* Apply the relocations of section @shndx within the function just copied to @start. */
static int link_relocate(struct link_state *l, uint32_t shndx, const struct elf_symbol *function,
			 uint32_t start)
{
	const struct elf *elf = &l->object->elf;
	struct elf_section section;
	const unsigned char *data;
	size_t size;
	int err = 0;

	for (uint32_t i = 0; !err && i < elf->shnum; i++) {
		struct cursor c;

		if (elf_section(elf, i, &section) || section.type != SHT_REL ||
		    section.info != shndx)
			continue;
		data = elf_section_data(elf, &section, &size);
		if (!data)
			return -ENOEXEC;
		c = cursor_over(data, size, elf->big_endian);
		cursor_bytes(&c, RELOCATION_BYTES * relocations_before(c, function->value));
		while (!err && cursor_left(&c) >= RELOCATION_BYTES) {
			uint64_t offset = cursor_uint(&c, 8), info = cursor_uint(&c, 8);
			struct elf_symbol symbol;
			uint32_t at;

			if (offset - function->value >= function->size)
				break;
			if (object_symbol(l->object, info >> 32, &symbol))
				return -ENOEXEC;
			at = start + (uint32_t)((offset - function->value) / sizeof(*l->insns));
			if ((uint32_t)info == R_BPF_64_32)
				err = link_call(l, at, &symbol);
			else if ((uint32_t)info == R_BPF_64_64)
				err = link_address(l, at, &symbol);
			else
				err = -ENOEXEC;
		}
	}
	return err;
}

/* Append @count instructions to the output. Return 0 or -ENOSPC. */
static int link_append(struct link_state *l, const void *insns, uint32_t count)
{
	if (count > OBJECT_INSNS_MAX - l->count)
		return -ENOSPC;
	memcpy(l->insns + l->count, insns, count * sizeof(*l->insns));
	for (uint32_t i = l->count; i < l->count + count; i++)
		l->calls[i] = SUBPROG_NONE;
	l->count += count;
	return 0;
}

/* Resolve calls without a relocation: those to a function in the same section. */
static int link_local_calls(struct link_state *l, const struct subprog *subprog, uint32_t start)
{
	for (uint32_t i = start; i < l->count; i++) {
		struct bpf_insn *insn = &l->insns[i];
		struct subprog wanted = { .shndx = subprog->shndx };
		int callee;

		if (insn->code != (BPF_JMP | BPF_CALL) || insn->src_reg != BPF_PSEUDO_CALL ||
		    l->calls[i] != SUBPROG_NONE)
			continue;
		wanted.offset = subprog->offset +
				((int64_t)(i - start) + insn->imm + 1) * (int64_t)sizeof(*insn);
		callee = link_subprog(l, &wanted);
		if (callee < 0)
			return callee;
		l->calls[i] = (uint32_t)callee;
	}
	return 0;
}

/* Append the object's function @subprog and resolve its symbols. Return 0 or -errno. */
static int link_copy(struct link_state *l, const struct subprog *subprog)
{
	struct elf_section section;
	struct elf_symbol function;
	const unsigned char *data;
	uint32_t start = l->count;
	size_t size;
	int err;

	if (object_function(l->object, NULL, subprog->shndx, subprog->offset, &function) ||
	    elf_section(&l->object->elf, subprog->shndx, &section))
		return -ENOEXEC;
	data = elf_section_data(&l->object->elf, &section, &size);
	if (!data || function.value > size || function.size > size - function.value ||
	    function.size % sizeof(struct bpf_insn))
		return -ENOEXEC;
	err = link_append(l, data + function.value,
			  (uint32_t)(function.size / sizeof(struct bpf_insn)));
	if (!err)
		err = link_relocate(l, subprog->shndx, &function, start);
	if (!err)
		err = link_local_calls(l, subprog, start);
	return err;
}

/* Link program @name and the subprograms that it calls, directly or not. */
static int link_all(struct link_state *l, const char *name)
{
	struct elf_symbol entry;
	int err = object_function(l->object, name, 0, 0, &entry);

	if (!err)
		err = link_subprog(l, &(struct subprog){ .shndx = entry.shndx,
							 .offset = entry.value });
	for (; err >= 0 && l->copied < l->nsubprogs; l->copied++) {
		struct subprog *subprog = &l->subprogs[l->copied];

		subprog->start = l->count;
		err = subprog->value ?
			link_append(l, subprog->value->insns, subprog->value->count) :
			link_copy(l, subprog);
	}
	return err;
}

bool object_refers(const struct object *object, const char *name, const char *symbol,
		   struct bpf_insn *insns)
{
	struct link_state l = { .object = object, .insns = insns, .sought = symbol };

	link_all(&l, name);
	return l.found;
}

const char *object_undefined(const struct object *object, uint64_t *at)
{
	struct elf_symbol_iter iter = object->symbols;
	struct elf_symbol symbol;

	if (*at)
		iter.next = *at;
	while (elf_symbol_next(&iter, &symbol)) {
		*at = iter.next;
		if (symbol.shndx == SHN_UNDEF && *symbol.name && strncmp(symbol.name, "arg_", 4))
			return symbol.name;
	}
	return NULL;
}

/* Replace helpers by the older ones, which take the same arguments. */
static void link_old_reads(struct bpf_insn *insns, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (insns[i].code == (BPF_LD | BPF_DW | BPF_IMM)) {
			i++;
			continue;
		}
		if (insns[i].code != (BPF_JMP | BPF_CALL) || insns[i].src_reg)
			continue;
		if (insns[i].imm == BPF_FUNC_probe_read_user ||
		    insns[i].imm == BPF_FUNC_probe_read_kernel)
			insns[i].imm = BPF_FUNC_probe_read;
		else if (insns[i].imm == BPF_FUNC_probe_read_user_str)
			insns[i].imm = BPF_FUNC_probe_read_str;
	}
}

int object_link(const struct object *object, const char *name, const struct object_value *values,
		size_t nvalues, struct bpf_insn *insns, const char **culprit)
{
	struct link_state l = { .object = object, .values = values, .nvalues = nvalues,
				.insns = insns, .culprit = name };
	int err = link_all(&l, name);

	*culprit = l.culprit;
	if (err < 0)
		return err;
	for (uint32_t i = 0; i < l.count; i++)
		if (l.calls[i] != SUBPROG_NONE)
			insns[i].imm = (int32_t)(l.subprogs[l.calls[i]].start - (i + 1));
	if (object->old_reads)
		link_old_reads(insns, l.count);
	*culprit = name;
	return fold_program(insns, l.count, OBJECT_INSNS_MAX);
}
