// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sql/fingerprint.h"

#include <string.h>

#include "sql/readings.h"

#define HASH_START	0xcbf29ce484222325u	/* offset basis of FNV-1a, 64 bits */

/*
 * End a truncated statement. A list or row that the cut interrupted becomes a complete one, so the
 * fingerprint does not depend on the position of the cut.
 */
static void finish_cut(struct printer *p)
{
	if (p->now.row == ROW_SKIP || p->now.row == ROW_COMMA)
		p->now = p->before_row;
	else if (p->now.list_depth)
		printer_list(p);
	printer_token(p, TOKEN_ELLIPSIS, "...", 3, false);
}

/* Return where the UTF-8 character that contains byte @at of @out begins; @at if it is invalid. */
static size_t character_start(const char *out, size_t at)
{
	for (size_t back = 0; back <= 3 && back <= at; back++)
		if (((unsigned char)out[at - back] & 0xc0) != 0x80)
			return at - back;
	return at;
}

/* Terminate ->out by a NUL, after "..." at the end of a complete character if it is too small. */
static void finish_out(const struct printer *p)
{
	size_t at;

	if (!p->size)
		return;
	if (p->now.len < p->size) {
		p->out[p->now.len] = 0;
		return;
	}
	at = character_start(p->out, p->size > 4 ? p->size - 4 : 0);
	for (int i = 0; i < 3 && at < p->size - 1; i++)
		p->out[at++] = '.';
	p->out[at] = 0;
}

/* Mix the bits: the high ones of FNV-1a depend little on a short text. MurmurHash3's fmix64. */
static uint64_t hash_finish(uint64_t hash)
{
	hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdu;
	hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53u;
	return hash ^ (hash >> 33);
}

struct fingerprint fingerprint_make(enum fingerprint_dialect dialect, const char *text, size_t len,
				    bool cut, char *out, size_t size)
{
	struct readings r;

	readings_open(&r, dialect == FINGERPRINT_MYSQL, dialect == FINGERPRINT_UNKNOWN, text, len,
		      cut);
	r.p.now.hash = HASH_START;
	r.p.out = out;
	r.p.size = size;
	while (r.p.in.pos < r.p.in.end)
		readings_next(&r);
	if (cut)
		finish_cut(&r.p);
	finish_out(&r.p);
	return (struct fingerprint){ .len = r.p.now.len, .hash = hash_finish(r.p.now.hash) };
}
