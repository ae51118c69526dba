// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/harm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loader/hazard.h"
#include "usdt/elf_symbol.h"

int harm_at(struct harm *harm, const struct elf *elf, const struct engine_probe *probe,
	    uint64_t offset)
{
	const char *cause = hazard_refusal(harm->features, elf, offset);
	char detail[sizeof(harm->refused.detail)];

	if (!cause)
		return 0;
	snprintf(detail, sizeof(detail), "%s: %s",
		 probe->function ? probe->function : probe->probe, cause);
	return error_set(&harm->refused, ERROR_NOP, -ENOENT, harm->path, detail);
}

bool harm_by_return(struct harm *harm, const struct elf *elf, const struct engine_probe *probe)
{
	char subject[sizeof(harm->refused.subject)];
	struct elf_symbol symbol;
	struct filtered found;

	if (!probe->function)
		return false;
	if (harm->unreturned && !strcmp(harm->unreturned, probe->function))
		return true;
	if (!probe->on_return || elf_symbol_find(elf, probe->function, &symbol) ||
	    !hazard_forbids_returns(harm->features, harm->fd, &found))
		return false;
	harm->unreturned = probe->function;
	snprintf(subject, sizeof(subject), "%s in %s", probe->function, harm->path);
	error_set(&harm->refused, ERROR_RETURN, -ENOENT, subject, found.names);
	return true;
}
