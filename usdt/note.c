/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "usdt/note.h"

#include <errno.h>
#include <string.h>

#include "base/cursor.h"

#define NOTE_OWNER	"stapsdt"
#define NOTE_TYPE	3	/* NT_STAPSDT */
#define NOTE_BYTES	16	/* equivalent of the work that each note causes */
#define NOTES_MAX	(8u << 20)	/* bytes of the section; 531 notes take 60,000 */

/* An ELF note; the bytes are borrowed. */
struct note {
	uint32_t type;
	const unsigned char *owner, *desc;
	size_t owner_size, desc_size;
};

/* Go to the next section with notes. Return whether there is one. */
static bool notes_section(struct usdt_note_iter *iter)
{
	struct elf_section section;

	while (!elf_section(iter->elf, iter->section, &section)) {
		iter->section++;
		if (strcmp(section.name, ".note.stapsdt"))
			continue;
		iter->data = elf_section_data(iter->elf, &section, &iter->size);
		iter->pos = 0;
		if (iter->size > NOTES_MAX)
			iter->size = NOTES_MAX;
		if (iter->data)
			return true;
	}
	iter->size = iter->pos = 0;
	return false;
}

int usdt_notes(const struct elf *elf, struct usdt_note_iter *iter)
{
	struct elf_section section;

	*iter = (struct usdt_note_iter){ .elf = elf };
	if (!notes_section(iter))
		return -ENOENT;
	elf_loads(elf, &iter->loads);
	if (!elf_section_find(elf, ".stapsdt.base", &section))
		iter->base = section.addr;
	return 0;
}

/* Consume @size bytes and the padding behind them, which the last field may lack. */
static const unsigned char *read_padded(struct cursor *c, uint32_t size)
{
	const unsigned char *bytes = cursor_bytes(c, size);
	size_t padding = -size & 3;

	if (bytes)
		cursor_bytes(c, padding < cursor_left(c) ? padding : cursor_left(c));
	return bytes;
}

/* Read the next note of the section. Return false if it is truncated. */
static bool note_read(struct usdt_note_iter *iter, struct note *note)
{
	struct cursor c = cursor_over(iter->data, iter->size, iter->elf->big_endian);

	if (!elf_spend(iter->elf, NOTE_BYTES))
		return false;
	cursor_seek(&c, iter->pos);
	note->owner_size = (size_t)cursor_uint(&c, 4);
	note->desc_size = (size_t)cursor_uint(&c, 4);
	note->type = (uint32_t)cursor_uint(&c, 4);
	note->owner = read_padded(&c, (uint32_t)note->owner_size);
	note->desc = read_padded(&c, (uint32_t)note->desc_size);
	if (!c.bad)
		elf_spend(iter->elf, c.pos - iter->pos);
	iter->pos = c.bad ? iter->size : c.pos;
	return !c.bad;
}

static bool note_is_probe(const struct note *note)
{
	return note->type == NOTE_TYPE && note->owner_size == sizeof(NOTE_OWNER) &&
	       !memcmp(note->owner, NOTE_OWNER, sizeof(NOTE_OWNER));
}

/*
 * Relocate @addr: a prelinked file was moved after the notes were written, .stapsdt.base too. A
 * note whose copy of that section was discarded has base 0.
 */
static uint64_t relocate(const struct usdt_note_iter *iter, uint64_t addr, uint64_t note_base)
{
	if (iter->base && note_base)
		addr += iter->base - note_base;
	return iter->elf->is64 ? addr : (uint32_t)addr;
}

/* Parse @note. Return false if it is malformed or its site is not in the file. */
static bool site_read(struct usdt_note_iter *iter, const struct note *note,
		      struct usdt_site *site)
{
	struct cursor c = cursor_over(note->desc, note->desc_size, iter->elf->big_endian);
	unsigned int word = iter->elf->is64 ? 8 : 4;
	uint64_t vaddr = cursor_uint(&c, word);
	uint64_t base = cursor_uint(&c, word);
	uint64_t semaphore = cursor_uint(&c, word);
	size_t len;

	*site = (struct usdt_site){ .vaddr = relocate(iter, vaddr, base) };
	if (semaphore)
		site->semaphore_vaddr = relocate(iter, semaphore, base);
	site->provider = cursor_string(&c, &len);
	site->name = cursor_string(&c, &len);
	site->args = cursor_string(&c, &len);
	return !c.bad && !elf_loads_offset(iter->elf, &iter->loads, site->vaddr, &site->offset);
}

bool usdt_note_next(struct usdt_note_iter *iter, struct usdt_site *site)
{
	struct note note;

	while (iter->pos < iter->size || notes_section(iter)) {
		if (!note_read(iter, &note)) {
			iter->skipped++;
			iter->pos = iter->size;
			continue;
		}
		if (!note_is_probe(&note))
			continue;
		if (!site_read(iter, &note, site)) {
			iter->skipped++;
			continue;
		}
		if (site->semaphore_vaddr &&
		    elf_loads_offset(iter->elf, &iter->loads, site->semaphore_vaddr,
				     &site->semaphore_offset))
			iter->skipped++;
		return true;
	}
	return false;
}
