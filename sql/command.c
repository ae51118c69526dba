// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/command.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "sql/lexer.h"

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

static void skip_all_blanks(struct lexer *l)
{
	while (lexer_skip_blank(l))
		;
}

/* Return a lexer at the command of PostgreSQL's @text. */
static struct lexer command_find(const char *text, size_t len)
{
	struct lexer l = { .text = (const unsigned char *)text, .end = len, .settled = true };

	skip_all_blanks(&l);
	l.pos += command_skip(FINGERPRINT_POSTGRES, text + l.pos, len - l.pos);
	skip_all_blanks(&l);
	return l;
}

/* Return whether the unquoted word at @l, which stays there, is @word. */
static bool is_word(struct lexer l, const char *word)
{
	const char *at = (const char *)l.text + l.pos;
	size_t begin = l.pos, len;

	lexer_skip_word(&l);
	len = l.pos - begin;
	return len == strlen(word) && !strncasecmp(at, word, len);
}

/* Skip a name, a word, or what is neither. Return false at the end. */
static bool skip_item(struct lexer *l)
{
	size_t at = l->pos;

	if (lexer_peek(l, 0) == '"')
		lexer_skip_quoted(l, BACKSLASH_PLAIN);
	else
		lexer_skip_word(l);
	if (l->pos == at && at < l->end)
		l->pos++;
	skip_all_blanks(l);
	return l->pos > at;
}

enum command_runs command_runs(const char *text, size_t len)
{
	struct lexer l = command_find(text, len);

	return is_word(l, "execute") ? COMMAND_EXECUTE :
	       is_word(l, "fetch") || is_word(l, "move") ? COMMAND_FETCH : COMMAND_OWN;
}

size_t command_named(const char *text, size_t len)
{
	struct lexer l = command_find(text, len);
	bool prepare = is_word(l, "prepare");

	if (!prepare && !is_word(l, "declare"))
		return 0;
	/* The command, the name, and the types of parameters or the properties of the cursor. */
	skip_item(&l);
	if (!skip_item(&l))
		return 0;
	while (!is_word(l, prepare ? "as" : "for"))
		if (!skip_item(&l))
			return 0;
	skip_item(&l);
	return l.pos < len ? l.pos : 0;
}
