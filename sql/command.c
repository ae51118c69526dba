// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/command.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* At most, as in bpf/: */
#define BLANKS	24		/* characters before a word */
#define SKIPPED	2		/* statements before the one that counts, and .. */
#define AHEAD	48		/* .. bytes of each */

static bool is_letter(char c)
{
	return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
}

static size_t skip_blanks(const char *text, size_t len, size_t at)
{
	size_t end = len - at < BLANKS ? len : at + BLANKS;

	while (at < end && text[at] && strchr(" \n\t\r(", text[at]))
		at++;
	return at;
}

static bool prepares(const char *text, size_t len, size_t at)
{
	static const char words[][9] = { "begin", "start", "savepoin", "set", "reset" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t n = strlen(words[i]);

		if (len - at > n && !strncasecmp(text + at, words[i], n) &&
		    (n == sizeof(*words) - 1 || !is_letter(text[at + n])))
			return true;
	}
	return false;
}

/* Return the offset of the word behind the statement at @at, or @at if none follows. */
static size_t skip_one(const char *text, size_t len, size_t at)
{
	size_t end = at, most = len - at < AHEAD ? len : at + AHEAD;

	while (end < most && text[end] && !strchr(";\"#$'-/`\\", text[end]))
		end++;
	if (end == most || text[end] != ';')
		return at;
	end = skip_blanks(text, len, end + 1);
	return end < len && is_letter(text[end]) ? end : at;
}

size_t command_skip(enum fingerprint_dialect dialect, const char *text, size_t len)
{
	size_t at = skip_blanks(text, len, 0);

	for (int i = 0; i < SKIPPED && dialect == FINGERPRINT_POSTGRES && prepares(text, len, at);
	     i++)
		at = skip_one(text, len, at);
	return at;
}
