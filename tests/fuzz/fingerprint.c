/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Statements: a byte of choices, then the text. */
#include "sql/fingerprint.h"
#include "tests/fuzz/fuzz.h"

/* The length and, through @hash, the hash of the fingerprint. */
static size_t normalize(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			char *out, size_t size, uint64_t *hash)
{
	struct fingerprint fingerprint = fingerprint_make(dialect, text, len, cut, out, size);

	*hash = fingerprint.hash;
	return fingerprint.len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t choices = input_byte(&in);
	enum fingerprint_dialect dialect = choices & 1 ? FINGERPRINT_MYSQL : FINGERPRINT_POSTGRES;
	bool cut = choices & 2;
	uint64_t hash, whole_hash, again_hash;
	size_t len = normalize(dialect, (const char *)in.at, in.left, cut, NULL, 0, &hash);
	size_t room = choices >> 2, kept;
	char *whole, *part, *again;

	/* "values(?+)" is longer than the shortest text of its, but not by much. */
	REQUIRE(len <= 8 * in.left + 64, "%zu of %zu", len, in.left);
	whole = malloc(len + 1);
	REQUIRE(normalize(dialect, (const char *)in.at, in.left, cut, whole, len + 1,
			  &whole_hash) == len);
	REQUIRE(whole_hash == hash && whole[len] == '\0' && strlen(whole) <= len);

	/* Cut to any size it is whole characters of it, and the hash is the whole's. */
	part = malloc(room + 1);
	REQUIRE(normalize(dialect, (const char *)in.at, in.left, cut, part, room + 1,
			  &whole_hash) == len);
	REQUIRE(whole_hash == hash && memchr(part, '\0', room + 1));
	kept = strlen(part);
	if (len <= room)
		REQUIRE(!memcmp(part, whole, len + 1));
	else if (room > 6)
		REQUIRE(kept + 3 >= room && !memcmp(part, whole, kept - 3) &&
			!memcmp(part + kept - 3, "...", 4), "%zu: %s", room, part);
	free(part);

	/* A fingerprint is its own. */
	again = malloc(len + 64);
	if (!cut && !memchr(whole, '\0', len)) {
		size_t n = normalize(dialect, whole, len, false, again, len + 64,
				     &again_hash);

		REQUIRE(n == len && !memcmp(whole, again, len), "%.*s\n%.*s", (int)len, whole,
			(int)(n < len + 64 ? n : len + 63), again);
	}
	free(again);

	/* Redacted it is never longer, also in its own place, and a second time nothing changes in length. */
	again = malloc(in.left + 1);
	kept = fingerprint_redact(dialect, (const char *)in.at, in.left, cut, again);
	REQUIRE(kept <= in.left, "%zu of %zu", kept, in.left);
	memcpy(whole = realloc(whole, in.left + 1), in.at, in.left);
	REQUIRE(fingerprint_redact(dialect, whole, in.left, cut, whole) == kept &&
		!memcmp(whole, again, kept));
	free(again);
	free(whole);
	return 0;
}
