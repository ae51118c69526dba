// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void fault_copy(char *to, size_t size, const char *from)
{
	size_t len = from ? strnlen(from, size - 1) : 0;

	if (len)
		memcpy(to, from, len);
	to[len] = '\0';
}

int fault_set(struct fault *fault, enum fault_kind kind, int error, const char *subject,
	      const char *detail)
{
	fault->kind = kind;
	fault->error = error;
	fault_copy(fault->subject, sizeof(fault->subject), subject);
	fault_copy(fault->detail, sizeof(fault->detail), detail);
	return error;
}

int fault_set_no_way(struct fault *fault, int tracefs_error)
{
	if (tracefs_error == -EACCES || tracefs_error == -EPERM)
		return fault_set(fault, FAULT_TRACEFS, tracefs_error, NULL, NULL);
	return fault_set(fault, FAULT_NO_UPROBES, -EOPNOTSUPP, NULL, NULL);
}

void fault_clear(struct fault *fault)
{
	free(fault->log);
	*fault = (struct fault){ .kind = FAULT_NONE };
}
