// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/uprobe_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/linker.h"

#define LOG_SIZE	(1 << 20)

/* What is at hand while a plan is carried out: its sites by group, as the kernel wants them. */
struct carry {
	const struct plan *plan;
	const struct plan_place *place;
	struct plan_links *links;
	struct fault *fault;
	bool on_return;			/* which of the plan's sites these are */
	unsigned long *offsets, *semaphores;
	uint64_t *groups;	/* of each site */
	uint64_t *cookies;	/* the part of its program that it leads to */
	const struct plan_group **order;	/* what those numbers stand for */
	uint32_t nsites, ngroups;
};

/* The number of the group with these instructions, a new one where there is none; or -ENOMEM. */
static int plan_group(struct plan *plan, const char *program, const struct bpf_insn *insns,
		      uint32_t count)
{
	size_t bytes = count * sizeof(*insns);
	struct plan_group *groups, *group;

	for (uint32_t i = 0; i < plan->ngroups; i++)
		if (plan->groups[i].count == count && !memcmp(plan->groups[i].insns, insns, bytes))
			return (int)i;
	groups = realloc(plan->groups, (plan->ngroups + 1) * sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	plan->groups = groups;
	group = &groups[plan->ngroups];
	*group = (struct plan_group){ .program = program, .count = count, .insns = malloc(bytes) };
	if (!group->insns)
		return -ENOMEM;
	memcpy(group->insns, insns, bytes);
	return (int)plan->ngroups++;
}

int plan_add(struct plan *plan, const char *program, const struct bpf_insn *insns, uint32_t count,
	     const struct plan_site *site)
{
	struct plan_site *sites = realloc(plan->sites, (plan->nsites + 1) * sizeof(*sites));
	int group;

	if (!sites)
		return -ENOMEM;
	plan->sites = sites;
	group = plan_group(plan, program, insns, count);
	if (group < 0)
		return group;
	sites[plan->nsites] = *site;
	sites[plan->nsites++].group = (uint32_t)group;
	return 0;
}

void plan_cut(struct plan *plan, uint32_t ngroups, uint32_t nsites)
{
	while (plan->ngroups > ngroups)
		free(plan->groups[--plan->ngroups].insns);
	plan->nsites = nsites;
}

void plan_free(struct plan *plan)
{
	plan_cut(plan, 0, 0);
	free(plan->groups);
	free(plan->sites);
	*plan = (struct plan){ 0 };
}

int plan_load(const struct prog_def *def, struct fault *fault)
{
	int prog = sys_prog_load(def, NULL, 0);

	if (prog >= 0)
		return prog;
	fault_set(fault, FAULT_PROGRAM, prog, def->name, NULL);
	/* It is not the program that is at fault, and the verifier has nothing to say. */
	if (prog == -EMFILE || prog == -ENFILE || prog == -ENOMEM)
		return prog;
	/* Once more for the verifier's words, which cost time where all is well. */
	fault->log = malloc(LOG_SIZE);
	if (fault->log)
		sys_prog_load(def, fault->log, LOG_SIZE);
	return prog;
}

/* Loads the program and puts it on the sites @first to before @end. */
static int carry_part(struct carry *carry, const char *name, const struct bpf_insn *insns,
		      uint32_t count, uint32_t first, uint32_t end)
{
	const struct plan_place *place = carry->place;
	struct plan_links *links = carry->links;
	char path[32];
	struct uprobe_sites sites = { .path = path, .offsets = carry->offsets + first,
				      .ref_ctr_offsets = carry->semaphores + first,
				      .cookies = carry->cookies + first, .count = end - first,
				      .on_return = carry->on_return };
	int prog, n;

	if (place->program)
		place->program(place->program_arg, name, insns, count);
	prog = plan_load(&(struct prog_def){ .name = name, .type = BPF_PROG_TYPE_KPROBE,
					     .attach_type = attach_type(place->way),
					     .insns = insns, .count = count }, carry->fault);
	if (prog < 0)
		return prog;
	/* The name of an open file: right in any mount namespace, and when it was deleted. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", place->fd);
	n = attach_uprobes(place->features, place->way, prog, &sites, links->fds + links->count);
	close(prog);
	if (n < 0)
		return fault_set(carry->fault, FAULT_ATTACH, n, place->path, name);
	links->count += (uint32_t)n;
	return 0;
}

/* The sites of groups @first to before @end, whose program is @joined: its parts count from 0. */
static int carry_run(struct carry *carry, const struct bpf_insn *joined, uint32_t count,
		     uint32_t first, uint32_t end)
{
	uint32_t from = 0, to;

	while (from < carry->nsites && carry->groups[from] < first)
		from++;
	for (to = from; to < carry->nsites && carry->groups[to] < end; to++)
		carry->cookies[to] = carry->groups[to] - first;
	return carry_part(carry, carry->place->name, joined, count, from, to);
}

/*
 * As many groups in one program as it has room for, which the attach cookie leads to their parts.
 * -ENOSPC: not even the first one fits.
 */
static int carry_joined(struct carry *carry)
{
	struct object_part *parts = calloc(carry->ngroups, sizeof(*parts));
	struct bpf_insn *joined = malloc(OBJECT_JOINED_MAX * sizeof(*joined));
	int n = -ENOMEM;

	if (!parts || !joined) {
		fault_set(carry->fault, FAULT_MEMORY, n, NULL, NULL);
		goto cleanup;
	}
	for (uint32_t i = 0; i < carry->ngroups; i++)
		parts[i] = (struct object_part){ carry->order[i]->insns, carry->order[i]->count };
	n = 0;
	for (uint32_t first = 0, fit; n >= 0 && first < carry->ngroups; first += fit) {
		fit = object_fit(parts + first, carry->ngroups - first, OBJECT_JOINED_MAX);
		n = fit ? object_join(parts + first, fit, joined, OBJECT_JOINED_MAX) : -ENOSPC;
		if (n >= 0)
			n = carry_run(carry, joined, (uint32_t)n, first, first + fit);
	}
cleanup:
	free(joined);
	free(parts);
	return n;
}

/* A program for each group. */
static int carry_groups(struct carry *carry)
{
	uint32_t first = 0, end;
	int err = 0;

	for (; !err && first < carry->nsites; first = end) {
		const struct plan_group *group = carry->order[carry->groups[first]];

		for (end = first; end < carry->nsites; end++)
			if (carry->groups[end] != carry->groups[first])
				break;
		err = carry_part(carry, group->program, group->insns, group->count, first, end);
	}
	return err;
}

/* The sites in the order of their groups, which are numbered as they came. */
static void carry_sites(struct carry *carry)
{
	const struct plan *plan = carry->plan;
	uint32_t n = 0;

	carry->ngroups = 0;
	for (uint32_t group = 0; group < plan->ngroups; group++) {
		uint32_t before = n;

		for (uint32_t i = 0; i < plan->nsites; i++) {
			const struct plan_site *site = &plan->sites[i];

			if (site->group != group || site->on_return != carry->on_return)
				continue;
			carry->offsets[n] = (unsigned long)site->offset;
			carry->semaphores[n] = carry->place->uncounted ? 0 :
					       (unsigned long)site->semaphore;
			carry->groups[n++] = carry->ngroups;
		}
		if (n > before)
			carry->order[carry->ngroups++] = &plan->groups[group];
	}
	carry->nsites = n;
}

/* Those sites of the plan that are for entries, or for returns. */
static int carry_out(struct carry *carry, bool on_return)
{
	const struct plan_place *place = carry->place;
	struct plan_links *links = carry->links;
	uint32_t before = links->count;
	int err;

	carry->on_return = on_return;
	carry_sites(carry);
	if (!carry->nsites)
		return 0;
	err = place->way == ATTACH_MULTI ? carry_joined(carry) : -ENOSPC;
	if (err == -ENOSPC && carry->fault->kind == FAULT_NONE) {
		attach_close(links->features, links->fds + before, links->count - before);
		links->count = before;
		err = carry_groups(carry);
	}
	return err;
}

int plan_attach(const struct plan *plan, const struct plan_place *place, struct plan_links *links,
		struct fault *fault)
{
	struct carry carry = { .plan = plan, .place = place, .links = links, .fault = fault };
	/* Its five arrays; no group is without a site. */
	uint64_t *room = calloc(plan->nsites, 5 * sizeof(*room));
	int err = -ENOMEM;

	links->count = 0;
	links->features = place->features;
	links->fds = calloc(plan->nsites, sizeof(*links->fds));
	if (!links->fds || !room) {
		fault_set(fault, FAULT_MEMORY, err, NULL, NULL);
		goto cleanup;
	}
	carry.offsets = (unsigned long *)room;
	carry.semaphores = (unsigned long *)(room + plan->nsites);
	carry.groups = room + 2 * plan->nsites;
	carry.cookies = room + 3 * plan->nsites;
	carry.order = (const struct plan_group **)(room + 4 * plan->nsites);
	err = carry_out(&carry, false);
	if (!err)
		err = carry_out(&carry, true);
cleanup:
	free(room);
	if (err)
		plan_detach(links);
	return err;
}

void plan_detach(struct plan_links *links)
{
	attach_close(links->features, links->fds, links->count);
	free(links->fds);
	*links = (struct plan_links){ 0 };
}
