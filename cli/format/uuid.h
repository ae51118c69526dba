/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* UUIDs that are derived from names: version 5 of RFC 9562. */
#ifndef CLI_FORMAT_UUID_H
#define CLI_FORMAT_UUID_H

#include <stddef.h>
#include <stdint.h>

#define UUID_BYTES	16
#define UUID_TEXT	37	/* with the NUL */

/* Write the UUID of the @len bytes at @name in the namespace @space. */
void uuid_of_name(const uint8_t space[UUID_BYTES], const void *name, size_t len,
		  char text[UUID_TEXT]);

#endif
