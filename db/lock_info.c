// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/lock_info.h"

#include <stdlib.h>

void lock_backend_text(struct lock_backend *party, size_t len)
{
	char *less = realloc(party->text, len + !len);

	if (less)
		party->text = less;
	party->len = len;
}

void lock_info_clear(struct lock_info *known)
{
	free(known->self.text);
	for (unsigned int i = 0; i < known->nholders; i++)
		free(known->holders[i].text);
	known->self.text = NULL;
	known->nholders = 0;
}

static void backend_redact(struct lock_backend *party, enum fingerprint_dialect dialect)
{
	if (party->text)
		party->len = fingerprint_redact(dialect, party->text, party->len, party->cut,
						party->text);
}

void lock_info_redact(struct lock_info *known, enum fingerprint_dialect dialect)
{
	backend_redact(&known->self, dialect);
	for (unsigned int i = 0; i < known->nholders; i++)
		backend_redact(&known->holders[i], dialect);
}

void lock_info_add(struct lock_info *known, struct lock_backend *party)
{
	if (known->nholders < LOCK_HOLDERS_KEPT) {
		known->holders[known->nholders++] = *party;
		return;
	}
	free(party->text);
	known->more++;
}
