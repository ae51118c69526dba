/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The layout of a recording: the names of all members of its events and of the elements of its
 * lists, in the order of their bits. It is the value of an option of RECORDING_START, a line for
 * each list with its name and those in it: "losses ring_full table_full".
 */
#ifndef DB_RECORDING_LAYOUT_H
#define DB_RECORDING_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "db/recording/member.h"

#define LAYOUT_OPTION	"layout"
#define LIMIT_OPTION	"limit"	/* of bytes: newer blocks displace others */
#define LAYOUT_TEXT	4096		/* bytes of ours with the NUL, at most .. */
#define LAYOUT_MAX	16384		/* .. and of any */

enum layout_of {
	LAYOUT_STATEMENT, LAYOUT_WAIT, LAYOUT_BACKEND,	/* members */
	LAYOUT_PARTS, LAYOUT_PHASES, LAYOUT_RESOURCES,	/* of the time breakdown */
	LAYOUT_PLAN, LAYOUT_LOSSES,
	LAYOUT_LISTS
};

struct layout_list {
	unsigned int count;		/* of names, at most MEMBERS_MAX */
	uint64_t flags;			/* bits of the members that are flags */
	int8_t to[MEMBERS_MAX];		/* number of each name in our list; -1: unknown */
	const struct member *member[MEMBERS_MAX];	/* of members: the same; NULL: unknown */
	char type[MEMBERS_MAX];		/* of members: enum member_type, or a later one */
};

/* All zero: nothing is known by any name. */
struct layout {
	struct layout_list lists[LAYOUT_LISTS];
};

/* Write the NUL-terminated text of our layout. Return its length. */
size_t layout_write(char text[LAYOUT_TEXT]);

/*
 * Read the @len bytes of @text, foreign bytes. What is in no line is unknown, and so is a member
 * whose type is not ours.
 */
void layout_read(struct layout *layout, const char *text, size_t len);

#endif
