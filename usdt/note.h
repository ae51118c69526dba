/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * usdt/: ELF files, USDT notes, argument specs, expressions, the instructions of each CPU
 * architecture, and the BPF instructions that read an argument. Pure functions of bytes.
 * It makes no system call, prints nothing and names no database.
 */

/*
 * USDT probe sites as recorded by SystemTap's sys/sdt.h: one NT_STAPSDT note per
 * site, in section .note.stapsdt.
 *
 * Source of the format: the SystemTap wiki, "UserSpaceProbeImplementation"; the
 * framing of notes: System V ABI (gABI), chapter 5. A note consists of three
 * addresses of the file's class (site, .stapsdt.base at link time or 0, semaphore
 * or 0), then provider, name and argument specs as strings. A file may have
 * several sections of that name, whose flags differ.
 */
#ifndef USDT_NOTE_H
#define USDT_NOTE_H

#include "usdt/elf.h"

struct usdt_site {
	const char *provider, *name;	/* borrowed from the file, NUL-terminated */
	const char *args;		/* argument specs, see spec.h; "": none */
	uint64_t vaddr;			/* of the nop, relocated by .stapsdt.base */
	uint64_t offset;		/* of the nop in the file */
	uint64_t semaphore_vaddr;	/* of the 16-bit counter, relocated; 0: none */
	uint64_t semaphore_offset;	/* in the file, for ref_ctr_offset; 0: none */
};

struct usdt_note_iter {
	const struct elf *elf;
	uint32_t section;		/* index of the next one */
	const unsigned char *data;	/* of the present one */
	size_t size, pos;
	struct elf_loads loads;
	uint64_t base;			/* address of .stapsdt.base; 0: none */
	uint32_t skipped;		/* malformed notes and addresses outside the file */
};

/*
 * Start with the notes of @elf, which must outlive @iter. Return 0, or -ENOENT
 * if the file has no .note.stapsdt.
 */
int usdt_notes(const struct elf *elf, struct usdt_note_iter *iter);

/*
 * Read the next site. Return false at the end. A malformed note is counted in
 * ->skipped and skipped; if its length is invalid, so is the rest of its section. If the
 * semaphore is not in a file-backed segment, its offset is 0 and it is counted
 * in ->skipped, but the site is returned.
 */
bool usdt_note_next(struct usdt_note_iter *iter, struct usdt_site *site);

#endif
