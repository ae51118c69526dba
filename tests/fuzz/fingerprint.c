/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fingerprints, commands and redaction. Input: a byte of choices, then the statement. */
#include "sql/command.h"
#include "sql/fingerprint.h"
#include "tests/fuzz/fuzz.h"

/* Return the length of the fingerprint, and its hash in *@hash. */
static size_t normalize(enum fingerprint_dialect dialect, const char *text, size_t len, bool cut,
			char *out, size_t size, uint64_t *hash)
{
	struct fingerprint fingerprint = fingerprint_make(dialect, text, len, cut, out, size);

	*hash = fingerprint.hash;
	return fingerprint.len;
}

/* Return whether a backslash or backtick may be the second byte of a character. */
static bool has_characters(const char *text, size_t len)
{
	for (size_t i = 0; i + 1 < len; i++)
		if (text[i] & 0x80 && (text[i + 1] == '\\' || text[i + 1] == '`'))
			return true;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t choices = input_byte(&in);
	enum fingerprint_dialect dialect = choices % 3;
	bool cut = choices & 128;
	uint64_t hash, whole_hash, again_hash;
	size_t len = normalize(dialect, (const char *)in.at, in.left, cut, NULL, 0, &hash);
	size_t room = choices & 63, kept;
	char *whole, *part, *again;

	REQUIRE(command_named((const char *)in.at, in.left) <= in.left);
	command_runs((const char *)in.at, in.left);
	/* "values(?+)" is longer than the shortest list of values, but not by much. */
	REQUIRE(len <= 8 * in.left + 64, "%zu of %zu", len, in.left);
	whole = malloc(len + 1);
	REQUIRE(normalize(dialect, (const char *)in.at, in.left, cut, whole, len + 1,
			  &whole_hash) == len);
	REQUIRE(whole_hash == hash && whole[len] == '\0' && strlen(whole) <= len);

	/* A smaller buffer contains complete characters and "..."; the hash does not change. */
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

	/*
	 * The fingerprint of a fingerprint is the same, if no quote may be part of a character: in
	 * the statement it settles the character set, and may be gone.
	 */
	again = malloc(len + 64);
	if (!cut && dialect != FINGERPRINT_UNKNOWN && !memchr(whole, '\0', len) &&
	    !has_characters(whole, len) && !has_characters((const char *)in.at, in.left)) {
		size_t n = normalize(dialect, whole, len, false, again, len + 64,
				     &again_hash);

		REQUIRE(n == len && !memcmp(whole, again, len), "%.*s\n%.*s", (int)len, whole,
			(int)(n < len + 64 ? n : len + 63), again);
	}
	free(again);

	/* Redaction never lengthens the text, and the result is the same in place. */
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
