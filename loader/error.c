// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/error.h"

#include <stdlib.h>
#include <string.h>

static void error_copy(char *to, size_t size, const char *from)
{
	size_t len = from ? strnlen(from, size - 1) : 0;

	if (len)
		memcpy(to, from, len);
	to[len] = '\0';
}

int error_set(struct error *error, enum error_kind kind, int code, const char *subject,
	      const char *detail)
{
	error->kind = kind;
	error->code = code;
	error_copy(error->subject, sizeof(error->subject), subject);
	error_copy(error->detail, sizeof(error->detail), detail);
	return code;
}

void error_clear(struct error *error)
{
	free(error->log);
	*error = (struct error){ .kind = ERROR_NONE };
}
