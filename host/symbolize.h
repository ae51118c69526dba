/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names for the addresses of a process's stack, from the symbols of the files that it maps.
 * Everything about the process is untrusted; it may have exited or executed another program.
 */
#ifndef HOST_SYMBOLIZE_H
#define HOST_SYMBOLIZE_H

#include <stddef.h>
#include <stdint.h>

struct symbolizer;

/* A frame. Strings are borrowed until the next call of symbolize(). */
struct symbol_frame {
	const char *file;		/* foreign name without its directory; NULL: unknown */
	const char *function;		/* foreign, no NUL; NULL: unknown */
	size_t len;			/* of ->function */
	uint64_t offset;		/* of the address in ->function, bytes */
};

/* Return a symbolizer, or NULL if memory is exhausted. symbolizer_free() ends it. */
struct symbolizer *symbolizer_new(void);

/*
 * Describe the @n @addresses of a stack in process @pid, the innermost first, in @frames. What is
 * not mapped now, is on a file system of a user's process, or would take more than a quarter of
 * the time since symbolizer_new(), remains unknown.
 */
void symbolize(struct symbolizer *s, uint32_t pid, const uint64_t *addresses, unsigned int n,
	       struct symbol_frame *frames);

/* Free everything. @s may be NULL. */
void symbolizer_free(struct symbolizer *s);

#endif
