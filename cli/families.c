// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/families.h"

#include "db/engine.h"

const struct family *families_find(struct families *families, const struct statement *s)
{
	struct family *family = s->alike ? &families->last[s->alike % FAMILIES] :
					   &families->alone;

	if (s->alike && family->alike == s->alike && family->dialect == s->server->engine->dialect)
		return family;
	family->alike = s->alike;
	family->dialect = s->server->engine->dialect;
	family->hash = fingerprint_make(family->dialect, s->text ? s->text : "",
					s->text ? s->text_len : 0, s->truncated,
					family->fingerprint, sizeof(family->fingerprint)).hash;
	return family;
}
