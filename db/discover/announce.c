// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/announce.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/discover/share.h"
#include "db/engines.h"
#include "host/clock.h"
#include "host/pid_namespace.h"
#include "host/process_code.h"

#define ANNOUNCE_PIDS	256		/* of one kind in a report */
#define CODE_NS		1000000000u	/* of reading the mappings of one user's processes */

struct pids {
	uint32_t pid[ANNOUNCE_PIDS];
	size_t count;
};

/* The main processes of each target: their parents run another file. */
struct mains {
	const struct announce *announce;
	struct share share;		/* of reading mappings, a process may have 65,530 */
	struct mains_target {
		struct pids traced, copied;
	} *of;
};

static bool mains_copied(struct mains *mains, const struct target *target,
			 const struct process *process)
{
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC);
	bool copied;

	if (!share_has_time(&mains->share, process))
		return false;
	copied = process_code_moved(process, target->sites, target->nsites) > 0;
	share_spend(&mains->share, process, clock_ns(CLOCK_MONOTONIC) - begin_ns);
	return copied;
}

static int mains_each(void *arg, const struct process *process)
{
	struct mains *mains = arg;
	const struct announce *a = mains->announce;
	bool wanted = a->wants(a->arg, process), is_main = a->wants_main(a->arg, process->pid);
	bool copied;
	struct pids *pids;
	size_t i = 0;

	if (a->pause.pause)
		a->pause.pause(a->pause.arg);
	while (i < a->count && !process_file_same(&a->targets[i].file, &process->file))
		i++;
	if (i == a->count || (!wanted && !is_main))
		return 0;
	copied = mains_copied(mains, &a->targets[i], process);
	if (wanted && !copied)
		a->process(a->process_arg, &a->targets[i], process);
	pids = copied ? &mains->of[i].copied : &mains->of[i].traced;
	if (pids->count < ANNOUNCE_PIDS && is_main &&
	    process_is_main(process, engine_is_executable))
		pids->pid[pids->count++] = process->pid;
	return 0;
}

/* A target that is being reported. */
struct announced {
	const struct announce *announce;
	struct target *target;
	const struct mains_target *of;
};

static void announce_each(void *arg, const char *version, const uint32_t *pids, size_t npids)
{
	struct announced *of = arg;
	const struct announce *a = of->announce;
	struct target *target = of->target;

	/* All of its servers have this version. */
	if (npids && npids == of->of->traced.count && version != target->version)
		snprintf(target->version, sizeof(target->version), "%s", version);
	a->server(a->listener, &(struct server_info){
		.engine = target->engine, .path = target->path, .usdt = target->usdt,
		.method = attach_method_name(a->runtime->method), .pids = pids, .npids = npids,
		.title = describe_title(target->engine, version), .version = version,
		.has = target->has, .wants = target->wants,
		.nested = npids && pid_namespace_is_nested(pids[0], a->runtime->pid_ns_ino),
		.copied = !npids && of->of->copied.count,
	});
}

/*
 * Report @target, or if none of the processes that were selected by PID has probes, detach from it.
 * Return whether others have. By discovery it stays attached in any case: a user who runs copies of
 * its code must not keep another user's server, which may start later, from being traced.
 */
static bool announce_target(const struct announce *a, struct target *target,
			    const struct mains_target *of)
{
	struct announced one = { a, target, of };
	bool use = of->traced.count || !of->copied.count || a->by_path;

	if (use || !a->by_pid)
		target_versions(target, of->traced.pid, of->traced.count, announce_each, &one);
	else
		target_close(target);
	return use;
}

int announce_targets(const struct announce *a, struct error *error)
{
	struct mains mains = { .announce = a, .of = calloc(a->count + 1, sizeof(*mains.of)) };
	struct error copied = { .kind = ERROR_NONE };
	bool use = !a->by_pid;

	share_begin(&mains.share, CODE_NS);
	if (mains.of && a->count)
		process_each(engine_is_executable, mains_each, &mains);
	for (size_t i = 0; mains.of && i < a->count; i++) {
		const struct mains_target *of = &mains.of[i];

		/* The last one is reported below, or returned. */
		if (copied.kind != ERROR_NONE && of->copied.count)
			a->error(a->listener, &copied);
		if (of->copied.count)
			error_set_copied(&copied, a->targets[i].path, of->copied.pid,
					 of->copied.count);
		use |= announce_target(a, &a->targets[i], of);
	}
	free(mains.of);
	if (copied.kind == ERROR_NONE)
		return 0;
	if (!use && error) {
		*error = copied;
		return copied.code;
	}
	a->error(a->listener, &copied);
	return 0;
}
