// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/holder.h"

#include <stdlib.h>

void lock_known_clear(struct lock_known *known)
{
	free(known->self.text);
	for (unsigned int i = 0; i < known->nholders; i++)
		free(known->holders[i].text);
	known->self.text = NULL;
	known->nholders = 0;
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
