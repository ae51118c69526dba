/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connection attributes, as a client of MySQL or MariaDB sends them and the Performance Schema
 * keeps them: names and values in turn, each behind its length. Read by the programs and by user
 * space. The list is foreign, and may have changed while it is read.
 */
#ifndef BPF_ATTRIBUTE_H
#define BPF_ATTRIBUTE_H

#include <linux/types.h>

#define ATTRIBUTES_MAX	16	/* that are looked at; most clients send 5 to 10 */
#define ATTRIBUTE_HEAD	16	/* bytes that are read of each string */

/* Of a list: what is left. Of a string: where it is, and its length. */
struct attribute {
	__u64 at, length;
};

/*
 * Take the next string off @list, and read its beginning with its length to @head. @read copies
 * ATTRIBUTE_HEAD bytes, of which some may be behind the list, and returns 0 if it could. Return not
 * 0 if there is none: the list has ended, or has been cut.
 */
static inline __attribute__((always_inline)) int
attribute_next(long (*read)(const void *arg, void *to, __u64 from), const void *arg,
	       struct attribute *list, __u64 *head, struct attribute *string)
{
	__u64 first, more, two;

	if (read(arg, head, list->at))
		return -1;
	/*
	 * From 251 on, a length is in more bytes: after 252 in two. After others it is of no name
	 * or program, and made longer than any list. Without branches: the verifier follows each.
	 */
	first = *head & 0xff;
	more = (first + 5) >> 8;
	two = ((first ^ 252) - 1) >> 63;
	__asm__("" : "+r"(more), "+r"(two));
	string->at = list->at + 1 + 2 * two;
	string->length = (first & (more - 1)) | (*head >> 8 & 0xffff & -two) | (more - two) << 32;
	list->at = string->at + string->length;
	first = 1 + 2 * two + string->length;
	if (first > list->length)
		return -1;
	list->length -= first;
	return 0;
}

/* Find the value of "program_name" in @list. Return 0, or not 0: there is none. */
static inline __attribute__((always_inline)) int
attribute_program(long (*read)(const void *arg, void *to, __u64 from), const void *arg,
		  struct attribute list, struct attribute *value)
{
	__u64 head[ATTRIBUTE_HEAD / 8], next[ATTRIBUTE_HEAD / 8];

	for (int i = 0; i < ATTRIBUTES_MAX; i++) {
		if (attribute_next(read, arg, &list, head, value) ||
		    attribute_next(read, arg, &list, next, value))
			return -1;
		/* Its length, and its characters. */
		if (!((head[0] ^ 0x6d6172676f72700c) |
		      ((head[1] ^ 0x656d616e5f) & 0xffffffffff)))
			return 0;
	}
	return -1;
}

#endif
