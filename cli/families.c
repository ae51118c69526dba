// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/families.h"

#include "db/engine.h"
#include "sql/command.h"

/* Write the fingerprint of @s to @family: of the statement that it executes or fetches from. */
static void family_fingerprint(struct family *family, const struct statement *s)
{
	const char *of = s->level ? NULL : s->of, *text = s->text ? s->text : "";
	size_t at = of ? command_named(of, s->of_len) : 0, len = s->text ? s->text_len : 0;
	bool cut = of ? s->of_cut : s->truncated;

	if (of) {
		text = of + at;
		len = s->of_len - at;
	}

	family->hash = fingerprint_make(family->dialect, text, len, cut, family->fingerprint,
					sizeof(family->fingerprint)).hash;
}

const struct family *families_find(struct families *families, const struct statement *s)
{
	uint64_t alike = s->of && !s->level ? 0 : s->alike;
	struct family *family = alike ? &families->last[alike % FAMILIES] : &families->alone;

	if (alike && family->alike == alike && family->dialect == s->server->engine->dialect)
		return family;
	family->alike = alike;
	family->dialect = s->server->engine->dialect;
	family_fingerprint(family, s);
	return family;
}
