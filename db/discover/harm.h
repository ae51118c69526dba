/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The probes of a server that are not used, because on this kernel they would harm processes. */
#ifndef DB_DISCOVER_HARM_H
#define DB_DISCOVER_HARM_H

#include "db/engine.h"
#include "loader/error.h"
#include "loader/feature.h"
#include "usdt/elf.h"

/* The file, and what was refused there. All is borrowed. */
struct harm {
	struct features *features;	/* to ask, see loader/hazard.h; NULL: there is no harm */
	const char *path;		/* for messages */
	int fd;
	struct error refused;		/* the probe that was refused last; ERROR_NONE: none */
	const char *unreturned;		/* function whose return is not probed; or NULL */
};

/*
 * Return 0, or -ENOENT with the cause in harm->refused if @probe at file offset @offset of @elf
 * would harm the processes that execute it: other rows and probe sets may do then.
 */
int harm_at(struct harm *harm, const struct elf *elf, const struct engine_probe *probe,
	    uint64_t offset);

/*
 * Return whether @probe cannot be used, with the cause in harm->refused, because the return of its
 * function, which @elf has, may not be probed. Its entry is not either then: nothing would end what
 * it begins. Rows of returns precede those of entries.
 */
bool harm_by_return(struct harm *harm, const struct elf *elf, const struct engine_probe *probe);

#endif
