/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The probes of a file: its sites, those of one name together. */
#ifndef USDT_PROBE_H
#define USDT_PROBE_H

#include "usdt/note.h"

struct probe_site {
	struct usdt_site site;
	uint32_t order;		/* of its note in the file */
	uint32_t first;		/* the ->order of its probe's first site */
};

/*
 * Probes come in the order of their first notes, the sites of each in the order of theirs. The
 * strings are the file's.
 */
struct probe_list {
	struct probe_site *sites;
	size_t count;
	uint32_t skipped;	/* notes that were malformed or pointed nowhere */
};

/* Reads the notes of @elf. 0, -ENOENT: there are none, or -ENOMEM. probe_list_free() ends it. */
int probe_list_read(const struct elf *elf, struct probe_list *list);

void probe_list_free(struct probe_list *list);

/* The site behind the last one of the probe that begins with site @first. */
size_t probe_list_end(const struct probe_list *list, size_t first);

#endif
