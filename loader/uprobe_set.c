// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/uprobe_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/arch.h"
#include "host/privileges.h"
#include "loader/join.h"

/* The most that Linux 5.3 accepts. Before 6.4, what is beyond that is lost. */
#define LOG_SIZE	((1 << 24) - 1)
#define LOG_KEPT	4096

/* State of attaching a set: its sites in the order of their groups, one array a property. */
struct attachment {
	const struct uprobe_set *set;
	const struct uprobe_file *file;
	const struct uprobe_method *method;
	struct uprobe_links *links;
	struct error *error;
	bool on_return;			/* the current pass: sites at returns, or the others */
	unsigned long *offsets, *semaphores;
	uint64_t *groups;		/* of each site: index in ->order */
	uint64_t *cookies;		/* of each site: part of the joined program */
	const struct uprobe_group **order;
	uint32_t nsites, ngroups;
};

/* Return the index of the group with these instructions, which is added if new; or -ENOMEM. */
static int uprobe_group(struct uprobe_set *set, const char *program, const struct bpf_insn *insns,
			uint32_t count)
{
	size_t bytes = count * sizeof(*insns);
	struct uprobe_group *groups, *group;

	for (uint32_t i = 0; i < set->ngroups; i++)
		if (set->groups[i].count == count && !memcmp(set->groups[i].insns, insns, bytes))
			return (int)i;
	groups = realloc(set->groups, (set->ngroups + 1) * sizeof(*groups));
	if (!groups)
		return -ENOMEM;
	set->groups = groups;
	group = &groups[set->ngroups];
	*group = (struct uprobe_group){ .program = program, .count = count,
					.insns = malloc(bytes) };
	if (!group->insns)
		return -ENOMEM;
	memcpy(group->insns, insns, bytes);
	return (int)set->ngroups++;
}

int uprobe_set_add(struct uprobe_set *set, const char *program, const struct bpf_insn *insns,
		   uint32_t count, const struct uprobe_site *site)
{
	struct uprobe_site *sites = realloc(set->sites, (set->nsites + 1) * sizeof(*sites));
	int group;

	if (!sites)
		return -ENOMEM;
	set->sites = sites;
	group = uprobe_group(set, program, insns, count);
	if (group < 0)
		return group;
	sites[set->nsites] = *site;
	sites[set->nsites++].group = (uint32_t)group;
	return 0;
}

void uprobe_set_cut(struct uprobe_set *set, uint32_t ngroups, uint32_t nsites)
{
	while (set->ngroups > ngroups)
		free(set->groups[--set->ngroups].insns);
	set->nsites = nsites;
}

void uprobe_set_free(struct uprobe_set *set)
{
	uprobe_set_cut(set, 0, 0);
	free(set->groups);
	free(set->sites);
	*set = (struct uprobe_set){ 0 };
}

int uprobe_set_offsets(const struct uprobe_set *set, uint64_t **offsets, size_t *count)
{
	*count = 0;
	*offsets = calloc(set->nsites + 1, sizeof(**offsets));
	if (!*offsets)
		return -ENOMEM;
	for (uint32_t i = 0; i < set->nsites; i++)
		(*offsets)[(*count)++] = set->sites[i].offset;
	return 0;
}

bool uprobe_set_drop_semaphores(struct uprobe_set *set)
{
	bool any = false;

	for (uint32_t i = 0; i < set->nsites; i++) {
		any |= set->sites[i].semaphore != 0;
		set->sites[i].semaphore = 0;
	}
	return any;
}

/* Return whether @insn calls a helper that the JITs of some architectures implement. */
static bool calls_jit_helper(const struct bpf_insn *insn)
{
	return insn->code == (BPF_JMP | BPF_CALL) && !insn->src_reg &&
	       (insn->imm == BPF_FUNC_get_current_task ||
		insn->imm == BPF_FUNC_get_current_task_btf ||
		insn->imm == BPF_FUNC_get_smp_processor_id);
}

/*
 * Return whether @def must not be loaded. From Linux 6.10 on, the verifier leaves such calls to
 * bpf_jit_inlines_helper_call() of other architectures as they are, also for the interpreter, which
 * then jumps to a wrong address. Later kernels refuse the program.
 */
static bool requires_jit(const struct prog_def *def)
{
	uint32_t n = 0;

	while (n < def->count && !calls_jit_helper(&def->insns[n]))
		n++;
	return HOST_JIT_HELPERS && n < def->count && privileges_jit_disabled();
}

/* Keep the last lines of @log, which say why, of up to hundreds of thousands. */
static void log_cut(char *log)
{
	size_t size = strlen(log);
	const char *line = size > LOG_KEPT ? strchr(log + size - LOG_KEPT, '\n') : NULL;

	if (line)
		memmove(log, line + 1, strlen(line));
}

int uprobe_set_load(const struct prog_def *def, struct error *error)
{
	int prog;

	if (requires_jit(def))
		return error_set(error, ERROR_NO_JIT, -EOPNOTSUPP, def->name, NULL);
	prog = sys_prog_load(def, NULL, 0);
	if (prog >= 0)
		return prog;
	error_set(error, ERROR_PROGRAM, prog, def->name, NULL);
	/* The program is not the cause, and the verifier has no log. */
	if (prog == -EMFILE || prog == -ENFILE || prog == -ENOMEM)
		return prog;
	/* Load again with the verifier's log, which slows loading down. */
	error->log = malloc(LOG_SIZE);
	if (error->log) {
		sys_prog_load(def, error->log, LOG_SIZE);
		log_cut(error->log);
	}
	return prog;
}

/* Load a program and attach it to the sites [@first, @end). Return 0, or -errno in ->error. */
static int attachment_attach(struct attachment *attachment, const char *name,
			     const struct bpf_insn *insns, uint32_t count,
			     uint32_t first, uint32_t end)
{
	const struct uprobe_method *method = attachment->method;
	struct uprobe_links *links = attachment->links;
	struct uprobe_sites sites = { .offsets = attachment->offsets + first,
				      .ref_ctr_offsets = attachment->semaphores + first,
				      .cookies = attachment->cookies + first, .count = end - first,
				      .on_return = attachment->on_return };
	const struct prog_def def = { .name = name, .type = BPF_PROG_TYPE_KPROBE,
				      .attach_type = attach_type(method->attacher->method),
				      .insns = insns, .count = count };
	int prog, n;

	prog = uprobe_set_load(&def, attachment->error);
	if (prog < 0)
		return prog;
	n = attacher_attach(method->attacher, prog, attachment->file->fd, &sites,
			    links->links + links->count);
	if (method->run_time)
		run_time_add(method->run_time, prog);
	else
		close(prog);
	if (n < 0)
		return error_set(attachment->error, ERROR_ATTACH, n, attachment->file->path, name);
	links->count += (uint32_t)n;
	return 0;
}

/* Attach @joined, whose parts are the groups [@first, @end), to the sites of these groups. */
static int attachment_attach_joined(struct attachment *attachment, const struct bpf_insn *joined,
				    uint32_t count, uint32_t first, uint32_t end)
{
	uint32_t from = 0, to;

	while (from < attachment->nsites && attachment->groups[from] < first)
		from++;
	for (to = from; to < attachment->nsites && attachment->groups[to] < end; to++)
		attachment->cookies[to] = attachment->groups[to] - first;
	return attachment_attach(attachment, attachment->file->name, joined, count, from, to);
}

/* Return the number of groups from @first on that may be joined. */
static uint32_t attachment_together(const struct attachment *attachment, uint32_t first)
{
	const struct uprobe_group *apart = attachment->set->groups + attachment->set->apart;
	uint32_t end = first + 1;

	while (end < attachment->ngroups &&
	       (attachment->order[first] >= apart || attachment->order[end] < apart))
		end++;
	return end - first;
}

/*
 * Attach joined programs, of as many groups each as fit. Return 0, -ENOSPC if a single group does
 * not fit, or another -errno.
 */
static int attachment_joined(struct attachment *attachment)
{
	struct join_part *parts = calloc(attachment->ngroups, sizeof(*parts));
	struct bpf_insn *joined = malloc(JOIN_INSNS_MAX * sizeof(*joined));
	int n = -ENOMEM;

	if (!parts || !joined) {
		error_set(attachment->error, ERROR_MEMORY, n, NULL, NULL);
		goto cleanup;
	}
	for (uint32_t i = 0; i < attachment->ngroups; i++)
		parts[i] = (struct join_part){ attachment->order[i]->insns,
						 attachment->order[i]->count };
	n = 0;
	for (uint32_t first = 0, fit; n >= 0 && first < attachment->ngroups; first += fit) {
		fit = join_fit(parts + first, attachment_together(attachment, first),
			       JOIN_INSNS_MAX);
		n = fit ? join_programs(parts + first, fit, joined, JOIN_INSNS_MAX) : -ENOSPC;
		if (n >= 0)
			n = attachment_attach_joined(attachment, joined, (uint32_t)n, first,
						     first + fit);
	}
cleanup:
	free(joined);
	free(parts);
	return n;
}

/* Attach one program a group. Return 0 or -errno. */
static int attachment_separate(struct attachment *attachment)
{
	uint32_t first = 0, end;
	int err = 0;

	for (; !err && first < attachment->nsites; first = end) {
		const struct uprobe_group *group = attachment->order[attachment->groups[first]];

		for (end = first; end < attachment->nsites; end++)
			if (attachment->groups[end] != attachment->groups[first])
				break;
		err = attachment_attach(attachment, group->program, group->insns, group->count,
					first, end);
	}
	return err;
}

/* Collect the sites of the current pass in the order of their groups. */
static void attachment_sites(struct attachment *attachment)
{
	const struct uprobe_set *set = attachment->set;
	uint32_t n = 0;

	attachment->ngroups = 0;
	for (uint32_t group = 0; group < set->ngroups; group++) {
		uint32_t before = n;

		for (uint32_t i = 0; i < set->nsites; i++) {
			const struct uprobe_site *site = &set->sites[i];

			if (site->group != group || site->on_return != attachment->on_return)
				continue;
			attachment->offsets[n] = (unsigned long)site->offset;
			attachment->semaphores[n] = (unsigned long)site->semaphore;
			attachment->groups[n++] = attachment->ngroups;
		}
		if (n > before)
			attachment->order[attachment->ngroups++] = &set->groups[group];
	}
	attachment->nsites = n;
}

/* Attach to the sites at returns of functions, or to the others. Return 0 or -errno. */
static int attachment_pass(struct attachment *attachment, bool on_return)
{
	struct uprobe_links *links = attachment->links;
	uint32_t before = links->count;
	int err;

	attachment->on_return = on_return;
	attachment_sites(attachment);
	if (!attachment->nsites)
		return 0;
	err = attachment->method->attacher->method == ATTACH_MULTI ?
		attachment_joined(attachment) : -ENOSPC;
	if (err == -ENOSPC && attachment->error->kind == ERROR_NONE) {
		attacher_detach(links->attacher, links->links + before, links->count - before);
		links->count = before;
		err = attachment_separate(attachment);
	}
	return err;
}

int uprobe_set_attach(const struct uprobe_set *set, const struct uprobe_file *file,
		      const struct uprobe_method *method, struct uprobe_links *links,
		      struct error *error)
{
	struct attachment attachment = { .set = set, .file = file, .method = method,
					 .links = links, .error = error };
	/* Five arrays; there are at most as many groups as sites. */
	uint64_t *room = calloc(set->nsites, 5 * sizeof(*room));
	int err = -ENOMEM;

	links->count = 0;
	links->attacher = method->attacher;
	links->links = calloc(set->nsites, sizeof(*links->links));
	if (!links->links || !room) {
		error_set(error, ERROR_MEMORY, err, NULL, NULL);
		goto cleanup;
	}
	attachment.offsets = (unsigned long *)room;
	attachment.semaphores = (unsigned long *)(room + set->nsites);
	attachment.groups = room + 2 * set->nsites;
	attachment.cookies = room + 3 * set->nsites;
	attachment.order = (const struct uprobe_group **)(room + 4 * set->nsites);
	err = attachment_pass(&attachment, false);
	if (!err)
		err = attachment_pass(&attachment, true);
cleanup:
	free(room);
	if (err)
		uprobe_set_detach(links);
	return err;
}

void uprobe_set_move(struct uprobe_links *to, struct uprobe_links *from)
{
	size_t count = to->count + from->count;
	struct attacher_link *links = from->count ? realloc(to->links, count * sizeof(*links)) :
						    NULL;

	if (links) {
		memcpy(links + to->count, from->links, from->count * sizeof(*links));
		*to = (struct uprobe_links){ links, (uint32_t)count, from->attacher };
		from->count = 0;
	}
	uprobe_set_detach(from);
}

void uprobe_set_detach(struct uprobe_links *links)
{
	attacher_detach(links->attacher, links->links, links->count);
	free(links->links);
	*links = (struct uprobe_links){ 0 };
}
