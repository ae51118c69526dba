// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/share.h"

#include "db/unused.h"
#include "usdt/fmt.h"

void share_begin(struct share *share, uint64_t time_ns)
{
	share->time_ns = time_ns;
	share->nusers = 0;
}

static struct share_user *share_user(struct share *share, uint32_t uid)
{
	for (size_t i = 0; i < share->nusers; i++)
		if (share->users[i].uid == uid)
			return &share->users[i];
	if (share->nusers == SHARE_USERS)
		return &share->users[SHARE_USERS - 1];
	share->users[share->nusers] = (struct share_user){ .uid = uid };
	return &share->users[share->nusers++];
}

bool share_has_time(struct share *share, const struct process *process)
{
	return !process->uid || share_user(share, process->uid)->ns < share->time_ns;
}

void share_spend(struct share *share, const struct process *process, uint64_t ns)
{
	share_user(share, process->uid)->ns += ns;
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

	for (size_t i = 0; i < share->nrefused; i++)
		if (share->refused[i] == process->uid)
			return false;
	if (share->nrefused == SHARE_REFUSED)
		return false;
	share->refused[share->nrefused++] = process->uid;
	fmt_text(detail, sizeof(detail), "%u files of user %u are", (unsigned int)share->files,
		 process->uid);
	error_set(error, ERROR_SHARE, 0, process->exe, detail);
	return true;
}

void share_make_room(const struct share *share, struct target *targets, size_t ntargets,
		     const struct elf_pause *pause)
{
	if (share->nrefused)
		unused_detach(targets, ntargets, share->refused, share->nrefused, pause);
}
