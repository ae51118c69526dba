// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/elf_stack.h"

#include <elf.h>
#include <string.h>

#include "base/cursor.h"
#include "usdt/elf_symbol.h"

#define NOTE_OWNER	"Go\0"		/* and the literal's NUL */
#define NOTE_TYPE	4		/* ELF_NOTE_GOBUILDID_TAG */
#define NOTE_BYTES	16		/* equivalent of the work that a note causes */

static bool go_section(const struct elf *elf)
{
	/* The last one in position-independent programs. */
	static const char *const names[] = {
		".go.buildinfo", ".note.go.buildid", ".gopclntab", ".data.rel.ro.gopclntab",
	};
	struct elf_section section;

	for (uint32_t i = 0; !elf_section(elf, i, &section); i++)
		for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
			if (!strcmp(section.name, names[n]))
				return true;
	return false;
}

/* Return whether Go's note is among those in the @size bytes at file offset @offset. */
static bool go_note(const struct elf *elf, uint64_t offset, uint64_t size)
{
	struct cursor c;
	uint64_t owner, desc, type;
	const unsigned char *name;

	if (offset > elf->size || size > elf->size - offset)
		return false;
	c = cursor_over(elf->data + offset, (size_t)size, elf->big_endian);
	while (cursor_left(&c) && elf_spend(elf, NOTE_BYTES)) {
		owner = cursor_uint(&c, 4);
		desc = cursor_uint(&c, 4);
		type = cursor_uint(&c, 4);
		name = cursor_bytes(&c, (size_t)((owner + 3) & ~(uint64_t)3));
		cursor_bytes(&c, (size_t)((desc + 3) & ~(uint64_t)3));
		if (name && type == NOTE_TYPE && owner == sizeof(NOTE_OWNER) &&
		    !memcmp(name, NOTE_OWNER, sizeof(NOTE_OWNER)))
			return true;
	}
	return false;
}

bool elf_moves_stacks(const struct elf *elf)
{
	struct elf_segment segment;

	if (go_section(elf))
		return true;
	for (uint32_t i = 0; !elf_segment(elf, i, &segment); i++)
		if (segment.type == PT_NOTE && go_note(elf, segment.offset, segment.filesz))
			return true;
	return false;
}

bool elf_throws(const struct elf *elf)
{
	static const char *const names[] = {
		"__cxa_throw", "__cxa_rethrow", "_Unwind_Resume", "_Unwind_RaiseException",
	};
	static const uint32_t tables[] = { SHT_DYNSYM, SHT_SYMTAB };
	struct elf_symbol_iter iter;
	struct elf_symbol symbol;

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		if (elf_symbols(elf, tables[i], &iter))
			continue;
		while (elf_symbol_next(&iter, &symbol))
			for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
				if (!strcmp(symbol.name, names[n]))
					return true;
	}
	return false;
}
