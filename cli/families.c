// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/families.h"

#include "db/engine.h"
#include "sql/command.h"

/* Write the fingerprint of @s to @family: of the statement that it executes or fetches from. */
static void family_fingerprint(struct family *family, const struct statement *s)
{
	size_t at = s->of ? command_named(s->of, s->of_len) : 0;
	const char *text = s->of ? s->of + at : s->text ? s->text : "";
	size_t len = s->of ? s->of_len - at : s->text ? s->text_len : 0;
	bool cut = s->of ? s->of_cut : s->truncated;

	family->hash = fingerprint_make(family->dialect, text, len, cut, family->fingerprint,
					sizeof(family->fingerprint)).hash;
}

const struct family *families_find(struct families *families, const struct statement *s)
{
	uint64_t alike = s->of ? 0 : s->alike;
	struct family *family = alike ? &families->last[alike % FAMILIES] : &families->alone;

	if (alike && family->alike == alike && family->dialect == s->server->engine->dialect)
		return family;
	family->alike = alike;
	family->dialect = s->server->engine->dialect;
	family_fingerprint(family, s);
	return family;
}
