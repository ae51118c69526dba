// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "probe/search.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/arch.h"
#include "loader/hazard.h"
#include "sql/glob.h"
#include "usdt/elf_stack.h"
#include "usdt/elf_symbol.h"
#include "usdt/mangled.h"
#include "usdt/probe.h"
#include "usdt/site.h"

#define TABLES		3	/* of symbols, with that of the debug file */
#define SKIPPED_MAX	2048
#define REFUSED_MAX	64	/* sites of a probe of which others are traced */

/* Return why the probe site of @note cannot be traced, or NULL. */
static const char *request_refusal(const struct request_ctx *ctx, const struct usdt_site *note)
{
	const char *refusal = site_refusal(ctx->elf, note);

	if (refusal)
		return refusal;
	if (note->semaphore_offset && ctx->config->runtime->uncounted)
		return "the kernel does not count its semaphore, as Linux 4.20 does";
	return hazard_refusal(ctx->config->features, ctx->elf, note->offset);
}

/* Report ctx->error, because of which something is left out. Return 0, or -errno: too much is. */
static int request_leave_out(struct request_ctx *ctx)
{
	/* A site of a malicious file takes milliseconds. */
	if (ctx->skipped++ >= SKIPPED_MAX)
		return request_too_many(ctx, "probes that cannot be traced", SKIPPED_MAX);
	ctx->config->skipped(ctx->config->arg, ctx->error);
	error_clear(ctx->error);
	return 0;
}

/* Refuse the site of @note; name it if @others of its probe are traced. Return -EINVAL. */
static int request_refuse_note(struct request_ctx *ctx, const struct usdt_site *note,
			       const char *why, bool others)
{
	struct request_site site = { .provider = note->provider, .name = note->name };
	char what[32] = "";

	if (others)
		snprintf(what, sizeof(what), "site 0x%llx", (unsigned long long)note->vaddr);
	return request_refuse(ctx, &site, what, why);
}

/*
 * Add those of the @count sites of a USDT probe that can be traced, if any can: a linker that
 * discards a copy of code may keep its notes. Return as request_add_site().
 */
static int request_add_probe(struct request_ctx *ctx, const struct probe_site *sites, size_t count)
{
	struct {
		const struct usdt_site *note;
		const char *why;
	} refused[REFUSED_MAX];
	size_t nrefused = 0;
	int err = 0;

	for (size_t i = 0; !err && i < count; i++) {
		const struct usdt_site *note = &sites[i].site;
		struct request_site site = {
			note->provider, note->name, note->args, note->vaddr,
			{ .offset = note->offset, .semaphore = note->semaphore_offset },
		};
		const char *why = request_refusal(ctx, note);

		if (!why) {
			err = request_add_site(ctx, &site);
		} else if (nrefused == REFUSED_MAX) {
			ctx->skipped += REFUSED_MAX;
			err = request_refuse_note(ctx, note, why, false);
		} else {
			refused[nrefused].note = note;
			refused[nrefused++].why = why;
		}
	}
	if (!err && nrefused == count) {
		/* The probe counts as one that is left out. */
		ctx->skipped += (unsigned int)nrefused - 1;
		return request_refuse_note(ctx, refused[0].note, refused[0].why, false);
	}
	for (size_t i = 0; !err && i < nrefused; i++) {
		request_refuse_note(ctx, refused[i].note, refused[i].why, true);
		err = request_leave_out(ctx);
	}
	return err;
}

static bool request_matches(const struct probe_request *request, const struct usdt_site *probe)
{
	return (!request->provider || glob_match(request->provider, probe->provider)) &&
	       glob_match(request->name, probe->name);
}

/*
 * Return whether to skip a probe that failed: a pattern matches only the probes that can be traced
 * as requested. Report it and cut the set back to @ngroups and @nsites.
 */
static bool request_skip(struct request_ctx *ctx, uint32_t ngroups, uint32_t nsites)
{
	if (ctx->error->kind != ERROR_PROBE || !glob_is_pattern(ctx->request->name))
		return false;
	if (request_leave_out(ctx))
		return false;
	uprobe_set_cut(ctx->set, ngroups, nsites);
	return true;
}

/* Add the USDT probes that match. Return their number or -errno. */
static int request_add_probes(struct request_ctx *ctx)
{
	struct probe_list list;
	uint32_t ngroups, nsites;
	int found = 0, err = probe_list_read(ctx->elf, &list);

	if (err == -ENOMEM)
		return error_set(ctx->error, ERROR_MEMORY, err, NULL, NULL);
	for (size_t i = 0, end; !err && i < list.count; i = end) {
		end = probe_list_end(&list, i);
		if (!request_matches(ctx->request, &list.sites[i].site))
			continue;
		ngroups = ctx->set->ngroups;
		nsites = ctx->set->nsites;
		err = request_add_probe(ctx, &list.sites[i], end - i);
		if (err && request_skip(ctx, ngroups, nsites))
			err = 0;
		else
			found++;
	}
	probe_list_free(&list);
	return err && err != -ENOENT ? err : found;
}

/*
 * Refuse returns of functions of a Go program: see usdt/elf_stack.h. Return 0, or -ENOTSUP and the
 * cause in ctx->error.
 */
static int request_check_go(struct request_ctx *ctx)
{
	if (!ctx->on_return || ctx->config->go_returns || !elf_moves_stacks(ctx->elf))
		return 0;
	return error_set(ctx->error, ERROR_GO_RETURN, -ENOTSUP, ctx->path, ctx->request->name);
}

/* Return whether a site from @first on is at @offset: a function may have several names. */
static bool request_has_site(const struct request_ctx *ctx, uint32_t first, uint64_t offset)
{
	for (uint32_t i = first; i < ctx->set->nsites; i++)
		if (ctx->set->sites[i].offset == offset)
			return true;
	return false;
}

/* Add the function @symbol if it matches. Return 1 if it was added, 0, or -errno. */
static int request_add_symbol(struct request_ctx *ctx, uint32_t first,
			      const struct elf_symbol *symbol)
{
	struct request_site site = { .name = symbol->name };
	uint32_t ngroups = ctx->set->ngroups, nsites = ctx->set->nsites;
	const char *refusal;

	if (!symbol->shndx || !glob_match(ctx->request->name, symbol->name))
		return 0;
	/* An IFUNC symbol has the address of its resolver. */
	if (symbol->type == STT_GNU_IFUNC && !glob_is_pattern(ctx->request->name))
		return request_refuse(ctx, &site, "",
				      "it is chosen at run time from several (IFUNC)");
	if (!elf_vaddr_has_flags(ctx->elf, symbol->value, PF_X))
		return 0;
	if (symbol->type != STT_FUNC) {
		ctx->label |= symbol->type == STT_NOTYPE;
		return 0;
	}
	site.vaddr = site_function(ctx->elf, symbol->value);
	if (elf_vaddr_to_offset(ctx->elf, site.vaddr, &site.uprobe.offset) ||
	    request_has_site(ctx, first, site.uprobe.offset))
		return 0;
	refusal = hazard_refusal(ctx->config->features, ctx->elf, site.uprobe.offset);
	if (!(refusal ? request_refuse(ctx, &site, "", refusal) : request_check_go(ctx)) &&
	    !request_add_site(ctx, &site))
		return 1;
	return request_skip(ctx, ngroups, nsites) ? 0 : -EINVAL;
}

/* Start with symbol table @i of the file, in *@iter. Return false if it has none. */
static bool request_symbols(const struct request_ctx *ctx, size_t i, struct elf_symbol_iter *iter)
{
	static const uint32_t types[TABLES] = { SHT_DYNSYM, SHT_SYMTAB, SHT_SYMTAB };
	const struct elf *elf = i < 2 ? ctx->elf : ctx->config->debug;

	return elf && !elf_symbols(elf, types[i], iter);
}

/* Add the functions that match, those with several names once. Return their number or -errno. */
static int request_add_named(struct request_ctx *ctx)
{
	uint32_t first = ctx->set->nsites;
	struct elf_symbol_iter iter;
	struct elf_symbol symbol;
	int found = 0, n;

	for (size_t i = 0; i < TABLES; i++) {
		if (!request_symbols(ctx, i, &iter))
			continue;
		while (elf_symbol_next(&iter, &symbol)) {
			n = request_add_symbol(ctx, first, &symbol);
			if (n < 0)
				return ctx->error->code;
			found += n;
		}
	}
	return found;
}

/* Store in the error that no function has the request's name because of @why. Return -ENOENT. */
static int request_refuse_name(struct request_ctx *ctx, const char *why)
{
	request_refuse(ctx, &(struct request_site){ .name = ctx->request->name }, "", why);
	ctx->error->code = -ENOENT;
	return -ENOENT;
}

/*
 * Find the C++ function that the request's name is meant to be. Return 1 with its symbol's name in
 * *@name, borrowed; 0; or -ENOENT, and the name of one in ctx->error if there are several.
 */
static int request_find_mangled(struct request_ctx *ctx, const char **name)
{
	struct elf_symbol_iter iter;
	struct elf_symbol symbol;
	uint64_t address = 0;
	char why[256];

	*name = NULL;
	for (size_t i = 0; i < TABLES; i++) {
		if (!request_symbols(ctx, i, &iter))
			continue;
		while (elf_symbol_next(&iter, &symbol)) {
			if (symbol.type != STT_FUNC || !symbol.shndx ||
			    !mangled_is(symbol.name, ctx->request->name) ||
			    (*name && symbol.value == address))
				continue;
			if (*name) {
				snprintf(why, sizeof(why), "several functions of C++; specify one, "
					 "such as %s", *name);
				return request_refuse_name(ctx, why);
			}
			*name = symbol.name;
			address = symbol.value;
		}
	}
	return *name ? 1 : 0;
}

/* The same; without any, the function of C++ with the request's name, if that is one. */
static int request_add_functions(struct request_ctx *ctx)
{
	const struct probe_request *request = ctx->request;
	struct probe_request mangled = *request;
	int found = request_add_named(ctx);

	if (found || glob_is_pattern(mangled.name))
		return found;
	found = request_find_mangled(ctx, &mangled.name);
	/* A breakpoint in data would change what the program reads. */
	if (!found && ctx->label)
		return request_refuse_name(ctx, "a label without a type, as of assembler code: it "
					   "may be of data");
	if (found <= 0)
		return found;
	ctx->request = &mangled;
	found = request_add_named(ctx);
	ctx->request = request;
	return found;
}

/*
 * Return 0 if returns may be probed in the file, or -errno and the cause in ctx->error. Attached to
 * the inode, a probe concerns every process that maps the file, also with -p.
 */
static int request_check_returns(struct request_ctx *ctx)
{
	const struct probe_request_config *config = ctx->config;
	char subject[sizeof(ctx->error->subject)];
	struct filtered found;

	if (!hazard_forbids_returns(config->features, config->fd, &found))
		return 0;
	snprintf(subject, sizeof(subject), "%s in %s", ctx->request->name, config->path);
	return error_set(ctx->error, ERROR_RETURN, -EOPNOTSUPP, subject, found.names);
}

int probe_search(const struct probe_request *request, uint32_t number, const struct elf *elf,
		 const struct probe_request_config *config, struct uprobe_set *set,
		 struct error *error)
{
	struct request_ctx *ctx;
	int found = 0;

	if (elf->machine != (elf->is64 ? HOST_ELF_MACHINE : HOST_ELF_COMPAT))
		return error_set(error, ERROR_MACHINE, -ENOEXEC, config->path, NULL);
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	ctx->request = request;
	ctx->number = number;
	ctx->elf = elf;
	ctx->path = config->path;
	ctx->config = config;
	ctx->error = error;
	ctx->on_return = request->kind == REQUEST_RETURN;
	ctx->set = set;
	if (request->kind == REQUEST_ANY || request->kind == REQUEST_USDT)
		found = request_add_probes(ctx);
	if (!found && request->kind != REQUEST_USDT && !request->provider)
		found = request_add_functions(ctx);
	/* In 32-bit programs the kernel uses a breakpoint. */
	if (found > 0 && ctx->on_return && elf->is64 && request_check_returns(ctx))
		found = error->code;
	free(ctx);
	return found;
}
