/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * USDT probes as SystemTap's sys/sdt.h records them: one NT_STAPSDT note a
 * site in section .note.stapsdt.
 *
 * Source of the format: the SystemTap wiki's "UserSpaceProbeImplementation".
 * A note is three addresses of the file's class (site, .stapsdt.base at link
 * time, semaphore or 0), then provider, name and argument specs as strings.
 */
#ifndef USDT_NOTE_H
#define USDT_NOTE_H

#include "usdt/elf.h"

struct usdt_site {
	const char *provider, *name;	/* in the file's bytes, NUL-terminated */
	const char *args;		/* the specs, see spec.h; "" for none */
	uint64_t vaddr;			/* of the nop, .stapsdt.base applied */
	uint64_t offset;		/* of the nop in the file */
	uint64_t semaphore_vaddr;	/* of the 16-bit counter, base applied; 0: none */
	uint64_t semaphore_offset;	/* in the file, what ref_ctr_offset wants; 0: none */
};

struct usdt_note_iter {
	const struct elf *elf;
	const unsigned char *data;
	size_t size, pos;
	struct elf_loads loads;
	uint64_t base;			/* address of .stapsdt.base; 0 where there is none */
	uint32_t skipped;		/* notes that were malformed or pointed nowhere */
};

/* Starts on the notes of @elf. 0, or -ENOENT: the file has no .note.stapsdt. */
int usdt_notes(const struct elf *elf, struct usdt_note_iter *iter);

/*
 * The next site; false at the end. A malformed note is counted in ->skipped
 * and passed over; where its length cannot be believed the rest is, too. A
 * semaphore that is in no file-backed segment leaves its offset 0 and counts
 * as skipped, its site is still handed out.
 */
bool usdt_note_next(struct usdt_note_iter *iter, struct usdt_site *site);

#endif
