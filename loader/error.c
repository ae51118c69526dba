// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ERROR_PIDS	8	/* that are named; their digits fit into ->detail */

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

int error_link(struct error *error, int err, const char *symbol, const char *program)
{
	return err == -ENOMEM ? error_set(error, ERROR_MEMORY, err, NULL, NULL) :
				error_set(error, ERROR_LINK, err, symbol, program);
}

int error_set_copied(struct error *error, const char *path, const uint32_t *pids, size_t npids)
{
	char detail[sizeof(error->detail)];
	size_t at = 0, i;

	for (i = 0; i < npids && i < ERROR_PIDS; i++)
		at += (size_t)snprintf(detail + at, sizeof(detail) - at, "%s%u",
				       i ? " " : "pid ", pids[i]);
	if (i < npids)
		snprintf(detail + at, sizeof(detail) - at, " and %zu more", npids - i);
	return error_set(error, ERROR_COPIED, -ENOTSUP, path, detail);
}

void error_clear(struct error *error)
{
	free(error->log);
	*error = (struct error){ .kind = ERROR_NONE };
}
