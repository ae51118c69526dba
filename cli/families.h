/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The fingerprints of statements, made once for texts that are alike. */
#ifndef CLI_FAMILIES_H
#define CLI_FAMILIES_H

#include "db/count/top.h"
#include "db/event.h"
#include "sql/fingerprint.h"

#define FAMILIES	64	/* a power of two */

struct family {
	uint64_t alike;			/* see struct statement; 0: unused */
	enum fingerprint_dialect dialect;
	uint64_t hash;
	char fingerprint[TOP_TEXT];
};

/* All zero at first. */
struct families {
	struct family last[FAMILIES];	/* by ->alike */
	struct family alone;		/* the current text if it is like no other one */
};

/* Return the fingerprint of @statement, valid until the next call. */
const struct family *families_find(struct families *families, const struct statement *statement);

#endif
