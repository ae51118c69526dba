// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/share.h"

#include <stdio.h>

#include "db/discover/unused.h"

void share_begin(struct share *share, uint64_t time_ns)
{
	share->time_ns = time_ns;
	share->nusers = 0;
}

/* Return the place of user @uid, or the one that the user would get. */
static size_t share_place(const struct share *share, uint32_t uid)
{
	size_t least = 0;

	for (size_t i = 0; i < share->nusers; i++) {
		if (share->users[i].uid == uid)
			return i;
		least = share->users[i].ns < share->users[least].ns ? i : least;
	}
	return share->nusers < SHARE_USERS ? share->nusers : least;
}

bool share_has_time(const struct share *share, const struct process *process)
{
	size_t place = share_place(share, process->uid);

	return !process->uid || place == share->nusers || share->users[place].ns < share->time_ns;
}

void share_spend(struct share *share, const struct process *process, uint64_t ns)
{
	size_t place = share_place(share, process->uid);

	if (!process->uid)
		return;
	if (place == share->nusers)
		share->users[share->nusers++].ns = 0;
	share->users[place].uid = process->uid;
	share->users[place].ns += ns;
}

bool share_allows(const struct share *share, const struct target *targets, size_t ntargets,
		  const struct process *process)
{
	return !share->files || !process->uid ||
	       unused_attached(targets, ntargets, &process->uid) < share->files;
}

bool share_refuse(struct share *share, const struct process *process, struct error *error)
{
	char detail[64];

	for (size_t i = 0; i < share->nrefused && i < SHARE_REFUSED; i++)
		if (share->refused[i] == process->uid)
			return false;
	share->refused[share->nrefused++ % SHARE_REFUSED] = process->uid;
	snprintf(detail, sizeof(detail), "%u files of user %u are", (unsigned int)share->files,
		 process->uid);
	error_set(error, ERROR_SHARE, 0, process->exe, detail);
	return true;
}

void share_make_room(const struct share *share, struct target *targets, size_t ntargets,
		     const struct elf_pause *pause)
{
	if (share->nrefused)
		unused_detach(targets, ntargets, share->files, pause);
}
