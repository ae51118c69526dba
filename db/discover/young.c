// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/young.h"

#include "db/engines.h"
#include "host/clock.h"
#include "host/process_code.h"

struct youngest {
	const struct process_file *file;
	uint32_t uid;			/* of which processes are considered */
	uint32_t pid, owner;		/* the result */
	uint64_t left_ns;
};

static int youngest_each(void *arg, const struct process *process)
{
	struct youngest *youngest = arg;
	int64_t age_ns;

	/* Its children have the copy of a main process. */
	if ((youngest->uid != YOUNG_ANY_USER && youngest->uid != process->uid) ||
	    !process_file_same(&process->file, youngest->file) ||
	    !process_is_main(process, engine_is_executable))
		return 0;
	age_ns = process_age_ns(process->pid);
	if (age_ns < 0 || (uint64_t)age_ns >= YOUNG_NS ||
	    YOUNG_NS - (uint64_t)age_ns < youngest->left_ns)
		return 0;
	youngest->pid = process->pid;
	youngest->owner = process->uid;
	youngest->left_ns = YOUNG_NS - (uint64_t)age_ns;
	return 0;
}

uint32_t young_process(const struct process_file *file, uint32_t *uid, uint64_t *left_ns)
{
	struct youngest youngest = { .file = file, .uid = *uid };

	process_each(engine_is_executable, youngest_each, &youngest);
	*uid = youngest.owner;
	*left_ns = youngest.left_ns;
	return youngest.pid;
}

static bool young_matches(const struct young_file *one, const struct process_file *file,
			  uint32_t uid)
{
	return one->until_ns && one->uid == uid && process_file_same(&one->file, file);
}

/* Return how many files of @uid are remembered. */
static size_t young_count(const struct young *young, uint32_t uid)
{
	size_t n = 0;

	for (size_t i = 0; i < YOUNG_FILES; i++)
		n += young->files[i].until_ns && young->files[i].uid == uid;
	return n;
}

/*
 * Return the place for a file of @uid: one whose time has come, else the one that is next to come
 * of the user who would have most of them, rather @uid, so that nobody displaces those of others.
 */
static struct young_file *young_place(struct young *young, uint32_t uid)
{
	struct young_file *place = young->files;
	size_t most = 0;

	for (struct young_file *one = young->files; one < young->files + YOUNG_FILES; one++) {
		size_t n = 2 * young_count(young, one->uid) + 3 * (one->uid == uid);

		if (!one->until_ns || one->checked)
			return one;
		if (n < most || (n == most && one->until_ns >= place->until_ns))
			continue;
		most = n;
		place = one;
	}
	return place;
}

bool young_add(struct young *young, const struct process_file *file, uint32_t uid,
	       uint64_t left_ns)
{
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + left_ns;
	struct young_file *place;
	bool displaces;

	for (size_t i = 0; i < YOUNG_FILES; i++) {
		if (!young_matches(&young->files[i], file, uid))
			continue;
		young->files[i].until_ns = until_ns;
		young->files[i].checked = false;
		return false;
	}
	place = young_place(young, uid);
	displaces = place->until_ns && !place->checked && place->uid == uid;
	*place = (struct young_file){ *file, uid, until_ns, false };
	return !displaces;
}

bool young_is(const struct young *young, const struct process_file *file, uint32_t uid)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	for (size_t i = 0; i < YOUNG_FILES; i++)
		if (young_matches(&young->files[i], file, uid))
			return now < young->files[i].until_ns;
	return false;
}

bool young_due(struct young *young)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	bool due = false;

	for (struct young_file *one = young->files; one < young->files + YOUNG_FILES; one++) {
		if (!one->until_ns || one->checked || now < one->until_ns)
			continue;
		due = one->checked = true;
	}
	return due;
}

bool young_any(const struct young *young)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	/* All processes are checked every few seconds only. */
	for (size_t i = 0; i < YOUNG_FILES; i++)
		if (young->files[i].until_ns && now < young->files[i].until_ns + YOUNG_NS)
			return true;
	return false;
}
