/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The USDT probes of a file: its sites, grouped by provider and name. */
#ifndef USDT_PROBE_H
#define USDT_PROBE_H

#include "usdt/note.h"

struct probe_site {
	struct usdt_site site;
	uint32_t order;		/* index of its note in the file */
	uint32_t first;		/* ->order of the first site of its probe */
};

/*
 * Probes are in the order of their first notes, the sites of each in the order of theirs. Of notes
 * of a probe with one address the first one counts: where a linker has merged copies of code, each
 * copy has left its note. The strings are borrowed from the file.
 */
struct probe_list {
	struct probe_site *sites;
	size_t count;
	uint32_t skipped;	/* as in struct usdt_note_iter */
};

/*
 * Read the notes of @elf, which must outlive @list. Return 0; -ENOENT if the
 * file has no .note.stapsdt; or -ENOMEM. On success the caller owns @list and
 * releases it with probe_list_free().
 */
int probe_list_read(const struct elf *elf, struct probe_list *list);

/* Release @list. It is empty afterwards. */
void probe_list_free(struct probe_list *list);

/* Return the index behind the last site of the probe whose first site has index @first. */
size_t probe_list_end(const struct probe_list *list, size_t first);

#endif
