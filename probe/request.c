// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "probe/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/event.h"
#include "host/arch.h"
#include "host/elf_map.h"
#include "sql/glob.h"
#include "usdt/emit.h"
#include "usdt/probe.h"
#include "usdt/site.h"

#define NUMBERS		9
#define VALUES_MAX	(RUNTIME_VALUES + NUMBERS + EXPRESSION_VARIABLES + 1 + REQUEST_FIELDS)
#define SKIPPED_MAX	2048
#define FUNCTION_SIGNS	UINT32_MAX	/* a register may be anything: as C's long */

/* A place for a breakpoint. */
struct site {
	const char *provider, *name;	/* provider NULL: a function */
	const char *args;		/* specs of a USDT site */
	uint64_t vaddr;
	struct uprobe_site place;
};

/* What is at hand while a file is worked on. */
struct work {
	const struct probe_request *request;
	uint32_t number;
	const struct elf *elf;
	const char *path;
	const struct probe_request_common *common;
	struct uprobe_set *set;
	struct error *error;
	bool on_return;
	unsigned int skipped;
	/* of the site at hand: */
	struct spec specs[EXPRESSION_PID];	/* by variable */
	unsigned int nargs;
	uint32_t signature_symbols;
	struct traced_probe probe;
	struct object_value values[VALUES_MAX];
	size_t nvalues;
	struct bpf_insn args[EXPRESSION_PID][EMIT_INSNS_MAX];
	struct bpf_insn filter[EXPRESSION_INSNS_MAX];
	struct bpf_insn fields[REQUEST_FIELDS][EXPRESSION_INSNS_MAX];
	struct bpf_insn linked[OBJECT_INSNS_MAX];
};

static const char *const arg_names[EXPRESSION_PID] = {
	"arg_1", "arg_2", "arg_3", "arg_4", "arg_5", "arg_6", "arg_7", "arg_8", "arg_9", "arg_10",
	"arg_11", "arg_12", "arg_retval",
};

static const char *const field_names[REQUEST_FIELDS] = {
	"trace_field_0", "trace_field_1", "trace_field_2", "trace_field_3", "trace_field_4",
	"trace_field_5", "trace_field_6", "trace_field_7", "trace_field_8", "trace_field_9",
	"trace_field_10", "trace_field_11",
};

void probe_table_free(struct probe_table *table)
{
	for (uint32_t i = 0; i < table->count; i++) {
		free(table->probes[i].provider);
		free(table->probes[i].name);
	}
	free(table->probes);
	*table = (struct probe_table){ 0 };
}

uint32_t probe_request_record_size(unsigned int nfields, uint32_t texts, uint32_t text_size)
{
	uint32_t size = (uint32_t)sizeof(struct event_probe_hit) + nfields * 8;

	for (; texts; texts &= texts - 1)
		size += 8 + text_size;
	return size;
}

static const char only_shown[] = "a floating-point number can only be shown";

/* Why the site at hand cannot be traced as it was asked for. */
static int work_refuse(struct work *work, const struct site *site, const char *what,
		       const char *why)
{
	char subject[256], detail[128];

	snprintf(subject, sizeof(subject), "%s%s%s", site->provider ? site->provider : "",
		 site->provider ? ":" : "", site->name);
	snprintf(detail, sizeof(detail), "%s%s%s", what, *what ? ": " : "", why);
	return error_set(work->error, ERROR_PROBE, -EINVAL, subject, detail);
}

/* Set the specs of a function's entry or return, by the calling convention. */
static void work_registers(struct work *work)
{
	static const char *const texts[REQUEST_REGISTERS] = {
		"8@%arg0", "8@%arg1", "8@%arg2", "8@%arg3", "8@%arg4", "8@%arg5",
	};
	static const char ret[] = "8@%ret";
	const struct elf *elf = work->elf;

	work->nargs = work->on_return ? 0 : REQUEST_REGISTERS;
	for (unsigned int i = 0; i < work->nargs; i++)
		spec_parse(elf->machine, elf->is64, texts[i], strlen(texts[i]), &work->specs[i]);
	spec_parse(elf->machine, elf->is64, ret, strlen(ret), &work->specs[EXPRESSION_RETVAL]);
	work->signature_symbols = FUNCTION_SIGNS;
}

static void work_specs(struct work *work, const struct site *site)
{
	size_t n;

	if (!site->provider) {
		work_registers(work);
		return;
	}
	n = spec_parse_all(work->elf->machine, work->elf->is64, site->args, work->specs,
			   SPEC_ARGS_MAX);
	work->nargs = n < SPEC_ARGS_MAX ? (unsigned int)n : SPEC_ARGS_MAX;
	work->signature_symbols = 0;
	for (unsigned int i = 0; i < work->nargs; i++)
		if (work->specs[i].is_signed && !work->specs[i].is_float)
			work->signature_symbols |= 1u << i;
}

/* Why there is no such variable at the site; NULL: it is there. */
static const char *variable_lacks(const struct work *work, const struct site *site,
				  unsigned int place, char why[64])
{
	if (place == EXPRESSION_RETVAL)
		return work->on_return ? NULL : "it is known when a function returns";
	if (work->on_return)
		return "arguments are gone when a function returns";
	if (place < work->nargs)
		return NULL;
	if (!site->provider)
		return "only the first 6 arguments of a function are known";
	snprintf(why, 64, "it has %u argument%s", work->nargs, work->nargs == 1 ? "" : "s");
	return why;
}

static void work_value(struct work *work, const char *name, const struct bpf_insn *insns,
		       uint32_t count)
{
	work->values[work->nvalues++] = (struct object_value){
		.name = name, .kind = OBJECT_CODE, .insns = insns, .count = count,
	};
}

static void work_number(struct work *work, const char *name, uint64_t number)
{
	work->values[work->nvalues++] = (struct object_value){ .name = name, .number = number };
}

static const struct bpf_insn constant_0[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K }, { .code = BPF_JMP | BPF_EXIT },
};
static const struct bpf_insn constant_1[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 1 }, { .code = BPF_JMP | BPF_EXIT },
};

/* The function that reads variable @place, if @uses has it. */
static int work_variable(struct work *work, const struct site *site, unsigned int place,
			 uint32_t uses)
{
	struct emit_target target = {
		.machine = work->elf->machine, .site_vaddr = site->vaddr,
		.read_helper = BPF_FUNC_probe_read_user,
		.symbol = elf_map_symbol, .symbol_arg = (void *)work->elf,
	};
	struct spec *spec = &work->specs[place];
	enum spec_reason reason;
	char what[16], room[64];
	const char *why;
	int n;

	work_value(work, arg_names[place], constant_0, 2);
	if (!(uses >> place & 1))
		return 0;
	why = variable_lacks(work, site, place, room);
	if (!why) {
		n = spec_emit(spec, &target, work->args[place], EMIT_INSNS_MAX, &reason);
		if (n >= 0) {
			work->nvalues--;
			work_value(work, arg_names[place], work->args[place], (uint32_t)n);
			return 0;
		}
		why = spec_reason(reason);
		spec->kind = SPEC_UNAVAILABLE;
	}
	if (work->request->all)
		return 0;
	snprintf(what, sizeof(what), place == EXPRESSION_RETVAL ? "retval" : "arg%u", place + 1);
	return work_refuse(work, site, what, why);
}

/* How the value of @e is to be shown. */
static struct probe_request_field work_type(const struct work *work, const struct site *site,
					    const struct expression *e, bool text)
{
	struct probe_request_field field = { REQUEST_NUMBER, 8,
					     expression_is_signed(e, work->signature_symbols) };
	int place = expression_plain(e);

	if (text) {
		field.type = REQUEST_TEXT;
	} else if (place >= EXPRESSION_PID) {
		field.size = 4;
		field.is_signed = false;
	} else if (place >= 0 && work->specs[place].kind == SPEC_UNAVAILABLE) {
		field.type = REQUEST_UNKNOWN;
	} else if (place >= 0 && !site->provider) {
		field.type = REQUEST_REGISTER;
	} else if (place >= 0) {
		field.size = work->specs[place].size;
		field.type = work->specs[place].is_float ? REQUEST_FLOAT : REQUEST_NUMBER;
	}
	return field;
}

static int work_field(struct work *work, const struct site *site, unsigned int i,
		      const struct expression *e)
{
	bool text = work->probe.texts >> i & 1;
	bool computed = expression_plain(e) < 0 || work->common->mode == REQUEST_HISTOGRAM;
	int n = expression_emit(e, work->signature_symbols, work->fields[i], EXPRESSION_INSNS_MAX);

	for (unsigned int arg = 0; computed && arg < work->nargs; arg++)
		if (e->uses >> arg & 1 && work->specs[arg].is_float)
			return work_refuse(work, site, "", only_shown);
	if (n < 0)
		return work_refuse(work, site, "", "a value is too long");
	work_value(work, field_names[i], work->fields[i], (uint32_t)n);
	work->probe.fields[i] = work_type(work, site, e, text);
	return 0;
}

/* How many fields there are where none is named. */
static unsigned int work_all(const struct work *work, const struct site *site)
{
	if (work->common->mode != REQUEST_SEND)
		return 0;
	if (site->provider)
		return work->nargs;
	return work->on_return ? 1 : work->request->registers;
}

/* The variables that are read at a site. */
static uint32_t work_uses(const struct work *work)
{
	const struct probe_request *request = work->request;
	uint32_t uses = request->filter ? request->filter->uses : 0;

	for (unsigned int i = 0; i < request->nfields; i++)
		uses |= request->fields[i]->uses;
	if (request->all && work->on_return)
		uses |= 1u << EXPRESSION_RETVAL;
	else if (request->all)
		uses |= (1u << work->probe.nfields) - 1;
	return uses;
}

/* What a filter needs must be there, also where all arguments are shown. */
static int work_filter(struct work *work, const struct site *site)
{
	const struct expression *filter = work->request->filter;
	int n;

	if (!filter) {
		work_value(work, "trace_filter", constant_1, 2);
		return 0;
	}
	for (unsigned int i = 0; i < EXPRESSION_PID; i++) {
		char what[16], room[64];
		const char *why;

		if (!(filter->uses >> i & 1))
			continue;
		why = variable_lacks(work, site, i, room);
		if (!why && work->specs[i].kind == SPEC_UNAVAILABLE)
			why = spec_reason(work->specs[i].reason);
		if (!why && work->specs[i].is_float)
			why = only_shown;
		snprintf(what, sizeof(what), i == EXPRESSION_RETVAL ? "retval" : "arg%u", i + 1);
		if (why)
			return work_refuse(work, site, what, why);
	}
	n = expression_emit(filter, work->signature_symbols, work->filter, EXPRESSION_INSNS_MAX);
	if (n < 0)
		return work_refuse(work, site, "", "the filter is too long");
	work_value(work, "trace_filter", work->filter, (uint32_t)n);
	return 0;
}

static int work_fields(struct work *work, const struct site *site)
{
	const struct probe_request *request = work->request;
	struct expression plain;
	int err = 0;

	for (unsigned int i = 0; !err && i < REQUEST_FIELDS; i++) {
		if (i >= work->probe.nfields) {
			work_value(work, field_names[i], constant_0, 2);
			continue;
		}
		if (request->all)
			expression_set_plain(&plain, work->on_return ? EXPRESSION_RETVAL :
					     (enum expression_variable)(EXPRESSION_ARG1 + i));
		err = work_field(work, site, i, request->all ? &plain : request->fields[i]);
	}
	return err;
}

/*
 * The number of the traced probe that is as the one at hand, a new one where there is none; or
 * -ENOMEM.
 */
static int work_probe(struct work *work, const struct site *site)
{
	struct probe_table *all = work->common->table;
	struct traced_probe *s = &work->probe, *more;

	for (uint32_t i = all->count; i--;) {
		const struct traced_probe *old = &all->probes[i];

		if (old->request == s->request && old->on_return == s->on_return &&
		    old->nfields == s->nfields && old->texts == s->texts &&
		    !strcmp(old->name, site->name) && !old->provider == !site->provider &&
		    (!site->provider || !strcmp(old->provider, site->provider)) &&
		    !memcmp(old->fields, s->fields, sizeof(s->fields)))
			return (int)i;
	}
	more = realloc(all->probes, (all->count + 1) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	all->probes = more;
	more += all->count;
	*more = *s;
	more->provider = site->provider ? strdup(site->provider) : NULL;
	more->name = strdup(site->name);
	if (!more->name || (site->provider && !more->provider)) {
		free(more->provider);
		free(more->name);
		return -ENOMEM;
	}
	return (int)all->count++;
}

/* The numbers of the site at hand, and its program: the number of instructions. */
static int work_link(struct work *work, const struct site *site, int id)
{
	const struct probe_request_common *common = work->common;
	const struct traced_probe *s = &work->probe;
	const char *program = common->mode == REQUEST_SEND ? "hit_send" : "hit_count", *culprit;
	int n;

	work_number(work, "constant_probe_id", (uint64_t)id);
	work_number(work, "constant_fields", s->nfields);
	work_number(work, "constant_texts", s->texts);
	work_number(work, "constant_text_size", common->text_size);
	work_number(work, "constant_record_size",
		    probe_request_record_size(s->nfields, s->texts, common->text_size));
	work_number(work, "constant_histogram", common->mode == REQUEST_HISTOGRAM);
	work_number(work, "constant_is_signed", s->nfields && s->fields[0].is_signed);
	n = object_link(&common->runtime->objects[0], program, work->values, work->nvalues, work->linked,
			&culprit);
	if (n == -ENOSPC)
		return work_refuse(work, site, "", "the filter and the values are too long");
	return n < 0 ? error_set(work->error, ERROR_LINK, n, culprit, program) : n;
}

static int work_site(struct work *work, const struct site *site)
{
	const struct probe_request_common *common = work->common;
	struct uprobe_site place = site->place;
	uint32_t uses;
	int err = 0, id, n;

	if (work->set->nsites == REQUEST_SITES_MAX)
		return error_set(work->error, ERROR_TOO_MANY, -E2BIG, "probe sites", work->path);
	memset(work->specs, 0, sizeof(work->specs));
	work_specs(work, site);
	memset(&work->probe, 0, sizeof(work->probe));
	work->probe.request = work->number;
	work->probe.on_return = work->on_return;
	work->probe.nfields = work->request->all ? work_all(work, site) : work->request->nfields;
	work->probe.texts = work->request->texts;
	work->nvalues = common->runtime->nvalues;
	memcpy(work->values, common->runtime->values, work->nvalues * sizeof(*work->values));
	uses = work_uses(work);
	for (unsigned int i = 0; !err && i < EXPRESSION_PID; i++)
		err = work_variable(work, site, i, uses);
	if (!err)
		err = work_filter(work, site);
	if (!err)
		err = work_fields(work, site);
	if (err)
		return err;
	place.on_return = work->on_return;
	id = work_probe(work, site);
	n = id < 0 ? id : work_link(work, site, id);
	if (n >= 0)
		n = uprobe_set_add(work->set, common->mode == REQUEST_SEND ? "hit_send" :
				   "hit_count",
				   work->linked, (uint32_t)n, &place);
	if (n == -ENOMEM)
		return error_set(work->error, ERROR_MEMORY, n, NULL, NULL);
	return n < 0 ? n : 0;
}

/* All sites of USDT probe @sites. */
static int work_usdt(struct work *work, const struct probe_site *sites, size_t count)
{
	int err = 0;

	for (size_t i = 0; !err && i < count; i++) {
		const struct usdt_site *note = &sites[i].site;
		struct site site = { note->provider, note->name, note->args, note->vaddr,
				     { .offset = note->offset,
				       .semaphore = note->semaphore_offset,
				       .semaphore_vaddr = note->semaphore_vaddr } };

		const char *refusal = site_refusal(work->elf, note);

		err = refusal ? work_refuse(work, &site, "", refusal) : work_site(work, &site);
	}
	return err;
}

static bool probe_request_wants(const struct probe_request *request, const struct usdt_site *probe)
{
	return (!request->provider || glob_match(request->provider, probe->provider)) &&
	       glob_match(request->name, probe->name);
}

/* A pattern means the probes that can be traced as it was asked for; of the others it is told. */
static bool work_skips(struct work *work, uint32_t ngroups, uint32_t nsites)
{
	if (work->error->kind != ERROR_PROBE || !glob_is_pattern(work->request->name))
		return false;
	/* To look at a site takes a hostile file's milliseconds. */
	if (work->skipped++ == SKIPPED_MAX) {
		error_set(work->error, ERROR_TOO_MANY, -E2BIG, "probes that cannot be traced",
			  work->path);
		return false;
	}
	uprobe_set_cut(work->set, ngroups, nsites);
	work->common->skipped(work->common->arg, work->error);
	error_clear(work->error);
	return true;
}

/* The number of probes, or -errno. */
static int work_probes(struct work *work)
{
	struct probe_list list;
	uint32_t ngroups, nsites;
	int found = 0, err = probe_list_read(work->elf, &list);

	if (err == -ENOMEM)
		return error_set(work->error, ERROR_MEMORY, err, NULL, NULL);
	for (size_t i = 0, end; !err && i < list.count; i = end) {
		end = probe_list_end(&list, i);
		if (!probe_request_wants(work->request, &list.sites[i].site))
			continue;
		ngroups = work->set->ngroups;
		nsites = work->set->nsites;
		err = work_usdt(work, &list.sites[i], end - i);
		if (err && work_skips(work, ngroups, nsites))
			err = 0;
		else
			found++;
	}
	probe_list_free(&list);
	return err && err != -ENOENT ? err : found;
}

/* Return whether the function at @offset is in the set: it may have several names. */
static bool work_has_site(const struct work *work, uint32_t first, uint64_t offset)
{
	for (uint32_t i = first; i < work->set->nsites; i++)
		if (work->set->sites[i].offset == offset)
			return true;
	return false;
}

static int work_symbol(struct work *work, uint32_t first, const struct elf_symbol *symbol)
{
	struct site site = { .name = symbol->name };

	if (!symbol->shndx || !glob_match(work->request->name, symbol->name))
		return 0;
	/* Its address is that of the function that chooses one. */
	if (symbol->type == STT_GNU_IFUNC && !glob_is_pattern(work->request->name))
		return work_refuse(work, &site, "",
				   "it is chosen at run time from several (IFUNC)");
	if (symbol->type != STT_FUNC || !elf_vaddr_has_flags(work->elf, symbol->value, PF_X))
		return 0;
	site.vaddr = site_function(work->elf, symbol->value);
	if (elf_vaddr_to_offset(work->elf, site.vaddr, &site.place.offset) ||
	    work_has_site(work, first, site.place.offset))
		return 0;
	if (!work_site(work, &site))
		return 1;
	return work_skips(work, work->set->ngroups, work->set->nsites) ? 0 : -EINVAL;
}

/* The number of functions, or -errno. Names of one place are one. */
static int work_functions(struct work *work)
{
	static const uint32_t tables[] = { SHT_DYNSYM, SHT_SYMTAB };
	uint32_t first = work->set->nsites;
	struct elf_symbol_iter iter;
	struct elf_symbol symbol;
	int found = 0, n;

	for (size_t i = 0; i < 2; i++) {
		if (elf_symbols(work->elf, tables[i], &iter))
			continue;
		while (elf_symbol_next(&iter, &symbol)) {
			n = work_symbol(work, first, &symbol);
			if (n < 0)
				return work->error->code;
			found += n;
		}
	}
	return found;
}

int probe_request_file(const struct probe_request *request, uint32_t number, const struct elf *elf,
		       const struct probe_request_common *common, struct uprobe_set *set,
		       struct error *error)
{
	struct work *work;
	int found = 0;

	if (elf->machine != HOST_ELF_MACHINE || !elf->is64)
		return error_set(error, ERROR_MACHINE, -ENOEXEC, common->path, NULL);
	work = calloc(1, sizeof(*work));
	if (!work)
		return error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	work->request = request;
	work->number = number;
	work->elf = elf;
	work->path = common->path;
	work->common = common;
	work->error = error;
	work->on_return = request->kind == REQUEST_RETURN;
	work->set = set;
	if (request->kind == REQUEST_ANY || request->kind == REQUEST_USDT)
		found = work_probes(work);
	if (!found && request->kind != REQUEST_USDT && !request->provider)
		found = work_functions(work);
	free(work);
	return found;
}
