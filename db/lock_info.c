// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/lock_info.h"

#include <stdlib.h>

void lock_party_text(struct lock_party *party, size_t len)
{
	char *less = realloc(party->text, len + !len);

	if (less)
		party->text = less;
	party->len = len;
}

void lock_known_clear(struct lock_known *known)
{
	free(known->self.text);
	for (unsigned int i = 0; i < known->nholders; i++)
		free(known->holders[i].text);
	known->self.text = NULL;
	known->nholders = 0;
}

static void party_redact(struct lock_party *party, enum fingerprint_dialect dialect)
{
	if (party->text)
		party->len = fingerprint_redact(dialect, party->text, party->len, party->cut,
						party->text);
}

void lock_known_redact(struct lock_known *known, enum fingerprint_dialect dialect)
{
	party_redact(&known->self, dialect);
	for (unsigned int i = 0; i < known->nholders; i++)
		party_redact(&known->holders[i], dialect);
}

void lock_known_add(struct lock_known *known, struct lock_party *party)
{
	if (known->nholders < LOCK_HOLDERS_KEPT) {
		known->holders[known->nholders++] = *party;
		return;
	}
	free(party->text);
	known->more++;
}
