// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/bind.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/locks/ops.h"
#include "host/elf_map.h"
#include "usdt/accessor.h"
#include "usdt/mangled.h"
#include "usdt/note.h"

#define CALLS_MAX	8	/* of one function by another; the most seen is 2 */
#define VALUES_MAX	256
#define ARGS_MAX	68	/* that a program is linked with */
#define ARGS_WORK	4	/* equivalent in bytes read of parsing a byte of the arguments */
#define FILE_NUMBERS	13	/* values that depend on the file or the probe, not arguments */

bool bind_has_symbol(const struct bind *bind, const char *name)
{
	struct elf_symbol symbol;

	return !name || !elf_symbol_find(&bind->config.elf, name, &symbol);
}

/* Cut @suffix off the end of @name. Return whether it was there. */
static bool name_cut(char *name, const char *suffix)
{
	size_t len = strlen(name), cut = strlen(suffix);

	if (len <= cut || strcmp(name + len - cut, suffix))
		return false;
	name[len - cut] = '\0';
	return true;
}

/* Cut "+N" or "-N" off the end of @name. Return it, or 0. */
static int64_t name_cut_number(char *name)
{
	char *sign = name + strcspn(name, "+-");
	int64_t number = strtoll(sign, NULL, 10);

	*sign = '\0';
	return number;
}

/* Resolve the name in @name, without that, to *@number. Return 0 or -errno. */
static int bind_accessor(const struct elf *elf, char *name, int64_t *number)
{
	bool inner = name_cut(name, ":inner"), expected = name_cut(name, ":expected");
	bool index = name_cut(name, ":index"), element = name_cut(name, ":element");
	struct accessor_element of;
	struct accessor accessor;
	int err;

	if (index || element) {
		err = accessor_read_element(elf, name, &of);
		if (!err)
			*number = index ? of.index : of.member;
		return err;
	}
	err = *name == '=' ? accessor_read_setter(elf, name + 1, &accessor) :
	      *name == '>' ? accessor_read_third(elf, name + 1, &accessor) :
	      *name == '<' ? accessor_read_given(elf, name + 1, &accessor) :
	      *name == '?' ? accessor_read_compared(elf, name + 1, &accessor) :
	      *name == '&' ? accessor_read_passed(elf, name + 1, &accessor) :
	      *name == '|' ? accessor_read_flag(elf, name + 1, &accessor) :
	      *name == '*' ? accessor_read_member(elf, name + 1, &accessor) :
			     accessor_read(elf, name, &accessor);
	if (err)
		return err;
	if ((inner && accessor.kind != ACCESSOR_POINTER && accessor.kind != ACCESSOR_EQUALS) ||
	    (expected && accessor.kind != ACCESSOR_EQUALS && accessor.kind != ACCESSOR_FLAG))
		return -EINVAL;
	*number = expected ? accessor.expected : inner ? accessor.inner : accessor.offset;
	return 0;
}

/* Resolve the expression @text, found in braces, to *@number. Return 0 or -errno. */
static int bind_number(const struct bind *bind, const char *text, size_t len, int64_t *number)
{
	const struct elf *elf = &bind->config.elf;
	char name[BIND_SPEC], *pattern, *to;
	struct accessor copied;
	int64_t more;
	int err;

	if (len >= sizeof(name))
		return -ENOENT;
	memcpy(name, text, len);
	name[len] = '\0';
	pattern = strchr(name, '~');
	if (pattern) {
		*pattern++ = '\0';
		return accessor_match(elf, name, pattern, number);
	}
	to = strchr(name, '>');
	if (to && to > name) {
		*to++ = '\0';
		err = accessor_read_copied(elf, name, strtoll(to, NULL, 10), &copied);
		*number = err ? 0 : copied.offset;
		return err;
	}
	more = name_cut_number(name);
	err = bind_accessor(elf, name, number);
	if (!err)
		*number += more;
	return err;
}

/* Write the operand at @site that holds the return address of @function, @len bytes long. */
static int bind_caller(const struct bind *bind, const struct bind_site *site, const char *function,
		       size_t len, char operand[SITE_OPERAND])
{
	struct elf_symbol symbol;
	char name[BIND_SPEC];

	snprintf(name, sizeof(name), "%.*s", (int)len, function);
	if (elf_symbol_find(&bind->config.elf, name, &symbol))
		return -ENOENT;
	return site_caller(&bind->config.elf, symbol.value, site->vaddr, operand);
}

/*
 * Copy @spec to @text with numbers and registers in place of the braces. Return 0 or -errno; then
 * @text is the name of the function that was not understood.
 */
static int bind_expand(const struct bind *bind, const struct bind_site *site, const char *spec,
		       char text[BIND_SPEC])
{
	size_t at = 0, size = BIND_SPEC;

	while (*spec) {
		const char *end = *spec == '{' ? strchr(spec, '}') : NULL;
		char operand[SITE_OPERAND];
		int64_t number;
		int n;

		if (end && spec[1] == '^') {
			n = bind_caller(bind, site, spec + 2, (size_t)(end - spec - 2), operand);
			if (n) {
				snprintf(text, size, "%.*s", (int)(end - spec - 2), spec + 2);
				return n;
			}
			n = snprintf(text + at, size - at, "%s", operand);
			spec = end + 1;
		} else if (end && !strncmp(spec, "{owner}", 7)) {
			n = snprintf(text + at, size - at, "%s",
				     *site->owner ? site->owner : "arg0");
			spec = end + 1;
		} else if (end) {
			n = bind_number(bind, spec + 1, (size_t)(end - spec - 1), &number);
			if (n) {
				spec += 1 + (strchr("=><?&*|", spec[1]) != NULL);
				snprintf(text, size, "%.*s", (int)strcspn(spec, ":~+-}"), spec);
				return n;
			}
			n = snprintf(text + at, size - at, "%lld", (long long)number);
			spec = end + 1;
		} else {
			n = snprintf(text + at, size - at, "%c", *spec++);
		}
		at += (size_t)n;
		if (at >= size)
			return -ENOSPC;
	}
	return 0;
}

/* Find the spec of @arg at @site. */
static enum spec_reason bind_spec(const struct bind *bind, const struct engine_arg *arg,
				  const struct bind_site *site, struct bind_value *value)
{
	const struct elf *elf = &bind->config.elf;
	struct spec specs[SPEC_ARGS_MAX];
	char *text = value->text;
	size_t n;

	if (!arg->probe_arg && (!arg->spec || bind_expand(bind, site, arg->spec, text)))
		return SPEC_NO_SYMBOL;
	if (!arg->probe_arg && !strchr(text, '@')) {
		value->spec = (struct spec){ .kind = SPEC_CONST, .size = 8, .is_signed = true,
					     .value = strtoull(text, NULL, 10) };
		return SPEC_OK;
	}
	if (!arg->probe_arg)
		return spec_parse(elf->machine, elf->is64, text, strlen(text), &value->spec);
	n = site->args && elf_spend(elf, ARGS_WORK * strlen(site->args)) ?
	    spec_parse_all(elf->machine, elf->is64, site->args, specs, SPEC_ARGS_MAX) : 0;
	if ((size_t)arg->probe_arg > n || n > SPEC_ARGS_MAX)
		return SPEC_BAD_OPERAND;
	value->spec = specs[arg->probe_arg - 1];
	return value->spec.reason;
}

int bind_value(const struct bind *bind, const struct engine_arg *arg, const struct bind_site *site,
	       struct bind_value *value)
{
	struct elf elf = bind->config.elf;
	struct emit_target target = {
		.machine = elf.machine,
		.site_vaddr = site->vaddr,
		.read_helper = BPF_FUNC_probe_read_user,
		.symbol = elf_map_symbol,
		.symbol_arg = &elf,
	};

	*value->text = '\0';
	value->spec = (struct spec){ .kind = SPEC_CONST };
	value->reason = bind_spec(bind, arg, site, value);
	if (value->reason != SPEC_OK)
		return -ENOTSUP;
	return spec_emit(&value->spec, &target, value->insns, EMIT_INSNS_MAX, &value->reason);
}

const struct engine_arg *bind_arg(const struct bind *bind, const struct engine_probe *probe,
				  size_t i)
{
	const struct engine_arg *const lists[] = {
		probe->args, bind->config.engine->common, engine_defaults,
	};

	for (size_t n = 0; n < sizeof(lists) / sizeof(lists[0]); n++)
		for (const struct engine_arg *arg = lists[n]; arg && arg->name; arg++)
			if (!i--)
				return arg;
	return NULL;
}

uint32_t bind_provides(const char *arg)
{
	static const struct {
		const char *arg;
		uint32_t has;
	} table[] = {
		{ "arg_rows", TARGET_HAS_ROWS }, { "arg_tag", TARGET_HAS_ROWS },
		{ "arg_affected", TARGET_HAS_CHANGES }, { "arg_examined", TARGET_HAS_EXAMINED },
		{ "arg_locked", TARGET_HAS_LOCKED }, { "arg_lock_time", TARGET_HAS_LOCK_TIME },
		{ "arg_resumed", TARGET_LEAVES_PREPARED },
		{ "arg_transaction", TARGET_HAS_TRANSACTIONS },
		{ "arg_error", TARGET_HAS_STATUS | TARGET_HAS_ERRNO },
		{ "arg_code", TARGET_HAS_STATUS | TARGET_HAS_ERRNO },
		{ "arg_state", TARGET_HAS_STATUS },
		{ "arg_status", TARGET_HAS_STATUS }, { "arg_user", TARGET_HAS_USER },
		{ "arg_database", TARGET_HAS_DATABASE }, { "arg_host", TARGET_HAS_CLIENT },
		{ "arg_address", TARGET_HAS_CLIENT }, { "arg_user_pair", TARGET_HAS_USER },
		{ "arg_host_pair", TARGET_HAS_CLIENT }, { "arg_address_pair", TARGET_HAS_CLIENT },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(table[i].arg, arg))
			return table[i].has;
	return 0;
}

/* The values that a program is linked with at one site. */
struct linkage {
	struct object_value values[VALUES_MAX];
	size_t nvalues;
	struct bind_value args[ARGS_MAX];
	size_t nargs;
	uint32_t has, wants;		/* TARGET_HAS_* that the arguments provide, or could */
};

static bool linkage_has(const struct linkage *linkage, const char *name)
{
	for (size_t i = 0; i < linkage->nvalues; i++)
		if (!strcmp(linkage->values[i].name, name))
			return true;
	return false;
}

static void linkage_number(struct linkage *linkage, const char *name, uint64_t number)
{
	linkage->values[linkage->nvalues++] = (struct object_value){ .name = name,
								     .number = number };
}

/*
 * Resolve @arg at @site to @value. Return the number of instructions; 0 if it cannot be resolved
 * and there are @more rows for it; or -errno with the cause in bind->error. Set
 * *@resolved unless the value is the fallback.
 */
static int bind_row(struct bind *bind, const struct engine_arg *arg, bool more,
		    const struct bind_site *site, struct bind_value *value, bool *resolved)
{
	int n = bind_value(bind, arg, site, value);
	char place[64];

	*resolved = n >= 0;
	if (n >= 0)
		return n;
	if (more)
		return 0;
	if (arg->fallback < 0) {
		/* Not by the symbol of the last row: the rows are of several products. */
		snprintf(place, sizeof(place), "a known place of the statement's %s",
			 arg->name + strlen("arg_"));
		error_set(bind->error, ERROR_NO_PROBES, n, bind->config.path,
			  arg->spec ? place : spec_reason(value->reason));
		return n;
	}
	value->insns[0] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K,
					     .imm = arg->fallback };
	value->insns[1] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	return 2;
}

/* Add all arguments that have a row; the program need not use them. */
static int linkage_args(struct linkage *linkage, struct bind *bind,
			const struct bind_probe_site *at)
{
	const struct engine_arg *arg, *next;

	for (size_t i = 0; (arg = bind_arg(bind, at->probe, i)); i++) {
		struct bind_value *value = &linkage->args[linkage->nargs];
		bool resolved, more;
		int n;

		if (linkage_has(linkage, arg->name) || !bind_has_symbol(bind, arg->only_with))
			continue;
		if (linkage->nargs == ARGS_MAX)
			return error_set(bind->error, ERROR_TOO_MANY, -E2BIG, "arguments", NULL);
		next = bind_arg(bind, at->probe, i + 1);
		more = next && !strcmp(arg->name, next->name);
		n = bind_row(bind, arg, more, &at->site, value, &resolved);
		if (n < 0)
			return n;
		if (!n)
			continue;
		linkage->nargs++;
		if (arg->spec || arg->probe_arg)
			linkage->wants |= bind_provides(arg->name);
		linkage->has |= resolved ? bind_provides(arg->name) : 0;
		linkage->values[linkage->nvalues++] = (struct object_value){
			.name = arg->name, .kind = OBJECT_CODE, .insns = value->insns,
			.count = (uint32_t)n,
		};
	}
	return 0;
}

/* Add the constants that depend on the file or on what the arguments provide. */
static void linkage_numbers(struct linkage *linkage, const struct bind *bind)
{
	const struct engine *engine = bind->config.engine;

	linkage_number(linkage, "constant_replication",
		       engine->replication ? engine->replication(bind->config.version) : 0);
	linkage_number(linkage, "constant_rows_known", !!(linkage->has & TARGET_HAS_ROWS));
	linkage_number(linkage, "constant_affected_known",
		       !!(linkage->has & TARGET_HAS_CHANGES));
	linkage_number(linkage, "constant_examined_known",
		       !!(linkage->has & TARGET_HAS_EXAMINED));
	linkage_number(linkage, "constant_lock_time_known",
		       !!(linkage->has & TARGET_HAS_LOCK_TIME));
	linkage_number(linkage, "constant_status_known", !!(linkage->has & TARGET_HAS_STATUS));
	linkage_number(linkage, "constant_transactions_known",
		       !!(linkage->has & TARGET_HAS_TRANSACTIONS));
	linkage_number(linkage, "constant_identity_known",
		       engine->identify || linkage->has & TARGET_HAS_WHO);
}

/*
 * Replace the program in bind->linked, of @count instructions, by the one that runs it and measures
 * the time. Return the number of instructions or -errno with *@culprit.
 */
static int linkage_limited(struct linkage *linkage, struct bind *bind, uint32_t count,
			   const char **culprit)
{
	struct bpf_insn *program = malloc(count * sizeof(*program));
	int n = -ENOMEM;

	*culprit = "limited";
	if (!program)
		return n;
	memcpy(program, bind->linked, count * sizeof(*program));
	linkage->values[linkage->nvalues++] = (struct object_value){
		.name = "arg_program", .kind = OBJECT_CODE, .insns = program, .count = count,
	};
	n = object_link(bind->config.object, *culprit, linkage->values, linkage->nvalues,
			bind->linked, culprit);
	free(program);
	return n;
}

/* Link the program for @at into bind->linked. Return the number of instructions or -errno. */
static int bind_link(struct bind *bind, const struct bind_probe_site *at)
{
	const struct bind_config *config = &bind->config;
	struct linkage *linkage = calloc(1, sizeof(*linkage));
	const char *culprit;
	int n;

	if (!linkage)
		return error_set(bind->error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	if (config->nvalues + FILE_NUMBERS + ARGS_MAX > VALUES_MAX) {
		n = error_set(bind->error, ERROR_TOO_MANY, -E2BIG, "values", NULL);
		goto cleanup;
	}
	memcpy(linkage->values, config->values, config->nvalues * sizeof(*config->values));
	linkage->nvalues = config->nvalues;
	linkage_number(linkage, "constant_target_id", config->target_id);
	linkage_number(linkage, "constant_engine_number", config->engine_number);
	linkage_number(linkage, "constant_backend", at->probe->backend);
	linkage_number(linkage, "constant_commands", config->engine->timed_commands);
	n = linkage_args(linkage, bind, at);
	if (n)
		goto cleanup;
	linkage_numbers(linkage, bind);
	n = object_link(bind->object, at->probe->program, linkage->values, linkage->nvalues,
			bind->linked, &culprit);
	if (n >= 0 && config->limited)
		n = linkage_limited(linkage, bind, (uint32_t)n, &culprit);
	if (n < 0)
		error_link(bind->error, n, culprit, at->probe->program);
	bind->has |= linkage->has;
	bind->wants |= linkage->wants;
cleanup:
	free(linkage);
	return n;
}

static int bind_site(struct bind *bind, const struct engine_probe *probe,
		     const struct bind_site *site)
{
	struct uprobe_site add = { .offset = site->offset, .semaphore = site->semaphore,
				   .on_return = probe->on_return };
	struct bind_probe_site at = { probe, *site };
	int count = bind_link(bind, &at), err;

	if (count < 0)
		return count;
	if (bind->set->nsites == BIND_SITES_MAX)
		return error_set(bind->error, ERROR_TOO_MANY, -E2BIG, "probe sites",
				 bind->config.path);
	bind->sites[bind->set->nsites] = at;
	err = uprobe_set_add(bind->set, probe->program, bind->linked, (uint32_t)count, &add);
	return err ? error_set(bind->error, ERROR_MEMORY, err, NULL, NULL) : 0;
}

/* Record that a site of @probe cannot be traced because of @cause. Return 0 if that is NULL. */
static int bind_refusal(struct bind *bind, enum error_kind kind, const struct engine_probe *probe,
			const char *cause)
{
	char detail[sizeof(bind->error->detail)];

	if (!cause)
		return 0;
	snprintf(detail, sizeof(detail), "%s: %s", probe->probe, cause);
	return error_set(bind->error, kind, -ENOENT, bind->config.path, detail);
}

/* Return whether a site of @probe is at @offset: merged copies of code have a note each. */
static bool bind_has(const struct bind *bind, const struct engine_probe *probe, uint64_t offset)
{
	for (uint32_t i = 0; i < bind->set->nsites; i++)
		if (bind->sites[i].probe == probe && bind->set->sites[i].offset == offset)
			return true;
	return false;
}

/* Add all sites of a USDT probe. Return 0; -ENOENT if there is none; or -errno. */
static int bind_usdt(struct bind *bind, const struct engine_probe *probe)
{
	struct usdt_note_iter iter;
	struct usdt_site note;
	int err = -ENOENT;

	if (usdt_notes(&bind->config.elf, &iter))
		return -ENOENT;
	while (usdt_note_next(&iter, &note)) {
		struct bind_site site = {
			.vaddr = note.vaddr, .offset = note.offset, .args = note.args,
			.semaphore = note.semaphore_offset, .semaphore_vaddr = note.semaphore_vaddr,
		};

		if (strcmp(note.provider, probe->provider) || strcmp(note.name, probe->probe) ||
		    bind_has(bind, probe, note.offset))
			continue;
		err = bind_refusal(bind, ERROR_SITE, probe, site_refusal(&bind->config.elf, &note));
		if (!err && bind->config.no_semaphores && note.semaphore_offset)
			err = bind_refusal(bind, ERROR_UNUSABLE, probe,
					   "the kernel does not count its semaphore");
		if (!err)
			err = harm_at(&bind->harm, &bind->config.elf, probe, note.offset);
		if (!err)
			err = bind_site(bind, probe, &site);
		if (err)
			return err;
	}
	return err;
}

/* Add the site at @vaddr of a function. */
static int bind_address(struct bind *bind, const struct engine_probe *probe, uint64_t vaddr)
{
	struct bind_site site = { .vaddr = vaddr };
	int64_t member;

	if (probe->owner)
		snprintf(site.owner, sizeof(site.owner), "%s", probe->owner);
	if (elf_vaddr_to_offset(&bind->config.elf, vaddr, &site.offset) ||
	    harm_at(&bind->harm, &bind->config.elf, probe, site.offset))
		return -ENOENT;
	if (probe->member &&
	    (bind_number(bind, probe->member, strlen(probe->member), &member) ||
	     site_owner(&bind->config.elf, vaddr, member, site.owner)))
		return -ENOENT;
	return bind_site(bind, probe, &site);
}

/* Add the entry of a function, or the calls in it. Return as bind_usdt(). */
static int bind_function(struct bind *bind, const struct engine_probe *probe)
{
	const struct elf *elf = &bind->config.elf;
	struct elf_symbol symbol;
	uint64_t vaddrs[CALLS_MAX];
	int err = -ENOENT;
	size_t n;

	if (elf_symbol_find(elf, probe->function, &symbol) ||
	    symbol.type != STT_FUNC || !elf_vaddr_has_flags(elf, symbol.value, PF_X))
		return -ENOENT;
	if (!probe->calls)
		return bind_address(bind, probe, site_function(elf, symbol.value));
	/* A walk over .dynsym, for nothing if there is no callee. */
	if (probe->locals && bind_has_symbol(bind, probe->calls))
		elf_symbol_extend(elf, &symbol);
	n = site_calls(elf, &symbol, probe->calls, vaddrs, CALLS_MAX);
	for (size_t i = 0; i < n; i++) {
		err = bind_address(bind, probe, vaddrs[i]);
		if (err)
			return err;
	}
	return err;
}

static int bind_probe(struct bind *bind, const struct engine_probe *probe)
{
	uint32_t ngroups = bind->set->ngroups, nsites = bind->set->nsites;
	int err;

	if (!bind_has_symbol(bind, probe->only_with) ||
	    (probe->asked && !(probe->asked & bind->config.asked)) ||
	    probe->needs & ~bind->has ||
	    harm_by_return(&bind->harm, &bind->config.elf, probe))
		return -ENOENT;
	err = probe->function ? bind_function(bind, probe) : bind_usdt(bind, probe);
	if (err)
		uprobe_set_cut(bind->set, ngroups, nsites);
	return err;
}

/* Return the first of @n alternatives of which the file has the function, else the last one. */
static const struct engine_probe *bind_closest(const struct bind *bind,
					       const struct engine_probe *probes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (probes[i].function && bind_has_symbol(bind, probes[i].function))
			return &probes[i];
	return &probes[n - 1];
}

/*
 * Write what the file lacks: @function of a known signature, or known @calls of it if that is not
 * NULL. Signatures are not named, they are of several products.
 */
static void bind_function_lacks(const struct bind *bind, const char *function, const char *calls,
				char *text, size_t size)
{
	char prefix[BIND_SPEC];
	const char *symbol = calls ? calls : function, *name;
	size_t len;

	name = mangled_name(symbol, &len);
	snprintf(prefix, sizeof(prefix), "%.*s", (int)(name + len - symbol), symbol);
	snprintf(text, size, "%s%.*s", !elf_symbol_has_prefix(&bind->config.elf, prefix) ? "" :
		 calls ? "a known call of " : "a known form of ", (int)len, name);
}

/*
 * Report that the file lacks the @n alternatives at @probes, with the provider if the user has
 * named them: that engine has no words.
 */
static void bind_lacks(struct bind *bind, const struct engine_probe *probes, size_t n, int err)
{
	const struct engine_probe *probe = bind_closest(bind, probes, n);
	const struct engine *engine = bind->config.engine;
	enum error_kind kind = ERROR_NO_PROBES;
	char lacks[160];

	if (!probe->function) {
		bool named = engine->words && !*engine->words;

		snprintf(lacks, sizeof(lacks), "%s%s%s", named ? probe->provider : "",
			 named ? ":" : "", probe->probe);
	} else if (!elf_symbol_has_functions(&bind->config.elf)) {
		kind = ERROR_NO_SYMBOLS;
		snprintf(lacks, sizeof(lacks), "%s", engine->title);
	} else {
		bind_function_lacks(bind, probe->function,
				    bind_has_symbol(bind, probe->function) ? probe->calls : NULL,
				    lacks, sizeof(lacks));
	}
	error_set(bind->error, kind, err, bind->config.path, lacks);
}

/* Bind the first row of a step that the file has. *@row advances to the next step. */
static int bind_step(struct bind *bind, size_t *row)
{
	const struct engine_probe_set *set = bind->probe_set;
	const struct engine_probe *probe = &set->probes[*row], *used = probe;
	bool optional = probe->optional;
	size_t first = *row;
	int err = -ENOENT;

	for (; *row < set->nprobes && !strcmp(set->probes[*row].step, probe->step); ++*row) {
		if (err != -ENOENT && err != -ENOTSUP)
			continue;
		used = &set->probes[*row];
		err = bind_probe(bind, used);
	}
	if (!err || optional)
		error_clear(bind->error);
	else if (bind->error->kind == ERROR_NONE)
		bind_lacks(bind, probe, *row - first, err);
	bind->usdt |= !err && !used->function;
	bind->has |= err ? 0 : used->has;
	if (!probe->asked || probe->asked & bind->config.asked)
		bind->wants |= probe->has;
	return optional ? 0 : err;
}

static int bind_probe_set(struct bind *bind, const struct engine_probe_set *set)
{
	size_t row = 0;
	int err = 0;

	bind->probe_set = set;
	bind->harm.unreturned = NULL;
	bind->usdt = false;
	bind->has = bind->config.engine->identify ? TARGET_HAS_WHO : 0;
	while (!err && row < set->nprobes)
		err = bind_step(bind, &row);
	return err;
}

/* Bind the first of the @n @sets whose required steps the file has, with programs of @object. */
static int bind_first(struct bind *bind, const struct engine_probe_set *sets, size_t n,
		      const struct object *object)
{
	int err = -ENOENT;

	bind->object = object;
	for (size_t i = 0; err && i < n; i++) {
		/* If the file has a probe but its site is unusable, no other set can do. */
		if (!error_lacks_probes(bind->error))
			break;
		error_clear(bind->error);
		uprobe_set_free(bind->set);
		err = bind_probe_set(bind, &sets[i]);
	}
	if (err && error_is_of_build(bind->error) && bind->harm.refused.kind != ERROR_NONE)
		*bind->error = bind->harm.refused;
	return err;
}

/* Add the probes of locks to those of statements, if the file has them. */
static void bind_locks(struct bind *bind)
{
	const struct bind_config *config = &bind->config;
	struct harm harm = bind->harm;
	uint32_t has = bind->has;
	bool usdt = bind->usdt;
	uint32_t ngroups = bind->set->ngroups, nsites = bind->set->nsites;

	bind->object = config->locks;
	bind->set->apart = ngroups;
	if (bind_probe_set(bind, config->engine->lock_ops->probes))
		uprobe_set_cut(bind->set, ngroups, nsites);
	error_clear(bind->error);
	bind->has |= has;
	bind->usdt = usdt;
	bind->harm = harm;
}

/* Return what follows @function in @name if that is a variant with other arguments; else NULL. */
static const char *variant_of(const char *name, const char *function)
{
	static const char *const kinds[] = { ".constprop.", ".isra.", ".part." };
	size_t len = strlen(function);

	if (strncmp(name, function, len))
		return NULL;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strncmp(name + len, kinds[i], strlen(kinds[i])))
			return name + len;
	return NULL;
}

/*
 * Record that callers of @function in its own file, or in all with -flto, may call variant @name
 * instead. Return whether that is one.
 */
static bool bind_variant(struct bind *bind, const char *name, const char *function)
{
	const char *suffix = function ? variant_of(name, function) : NULL, *plain;
	char detail[sizeof(bind->error->detail)];
	size_t len;

	if (!suffix)
		return false;
	plain = mangled_name(function, &len);
	snprintf(detail, sizeof(detail), "%.*s%s", (int)len, plain, suffix);
	error_set(&bind->harm.refused, ERROR_VARIANT, 0, bind->config.path, detail);
	return true;
}

/* Look in .symtab for a variant of a function that is indispensable and was found. */
static void bind_variants(struct bind *bind)
{
	struct elf_symbol_iter iter;
	struct elf_symbol symbol;
	bool found = bind->harm.refused.kind != ERROR_NONE;

	if (elf_symbols(&bind->config.elf, SHT_SYMTAB, &iter))
		return;
	while (!found && elf_symbol_next(&iter, &symbol)) {
		if (symbol.type != STT_FUNC || !strchr(symbol.name, '.'))
			continue;
		for (uint32_t i = 0; !found && i < bind->set->nsites; i++) {
			const struct engine_probe *probe = bind->sites[i].probe;

			found = !probe->optional &&
				(bind_variant(bind, symbol.name, probe->function) ||
				 bind_variant(bind, symbol.name, probe->calls));
		}
	}
}

int bind_open(struct bind *bind, const struct bind_config *config, struct uprobe_set *set,
	      struct error *error)
{
	const struct engine *engine = config->engine;
	int err;

	*bind = (struct bind){
		.config = *config, .set = set, .error = error,
		.harm = { .features = config->features, .path = config->path, .fd = config->fd },
	};
	bind->linked = malloc(OBJECT_INSNS_MAX * sizeof(*bind->linked));
	if (!bind->linked)
		return error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	err = config->no_statements ?
	      bind_first(bind, engine->lock_ops->probes, 1, config->locks) :
	      bind_first(bind, engine->probe_sets, engine->nprobe_sets, config->object);
	if (err)
		uprobe_set_free(set);
	else
		bind_variants(bind);
	if (!err && !config->no_statements && config->locks && engine->lock_ops)
		bind_locks(bind);
	return err;
}

void bind_close(struct bind *bind)
{
	free(bind->linked);
	bind->linked = NULL;
}
