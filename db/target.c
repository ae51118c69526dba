// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/target.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/arch.h"
#include "db/engines.h"
#include "host/elf_map.h"
#include "host/process_memory.h"
#include "usdt/accessor.h"
#include "usdt/arch.h"
#include "usdt/emit.h"
#include "usdt/note.h"
#include "usdt/site.h"

#define SITES_MAX	128		/* of all probes of a file; one has up to 9 in real files */
#define CALLS_MAX	8		/* of one function by another; 2 is the most seen */
#define SPEC_TEXT	256
#define VALUES_MAX	128
#define ARGS_MAX	48		/* that one program is linked with */
#define NUMBERS		6		/* of a file and a probe, for programs */
#define RODATA_MAX	(64u << 20)	/* bytes that are looked through; PostgreSQL has two million */

/* A place for a breakpoint. */
struct site {
	uint64_t vaddr, offset, semaphore;	/* both last are file offsets; semaphore 0: none */
	uint64_t semaphore_vaddr;
	const char *args;			/* a USDT site's specs, else NULL */
	char owner[SITE_REG];			/* "", or whence engine_probe.member was loaded */
};

/* Per-file binding context. */
struct work {
	struct target *target;
	const struct engine_probe_set *probe_set;
	const struct target_common *common;
	struct error *error;
	struct elf elf;
	struct bpf_insn *linked;	/* OBJECT_INSNS_MAX of them */
	struct uprobe_set *set;
	/* What the plan's sites are for, by their numbers there. */
	struct planned {
		const struct engine_probe *probe;
		struct site site;
	} planned[SITES_MAX];
};

/* Whether the file has symbol @name; NULL is there always. */
static bool work_has(const struct work *work, const char *name)
{
	struct elf_symbol symbol;

	return !name || !elf_symbol_find(&work->elf, name, &symbol);
}

/* Cuts @suffix off the end of @name. */
static bool name_cut(char *name, const char *suffix)
{
	size_t len = strlen(name), cut = strlen(suffix);

	if (len <= cut || strcmp(name + len - cut, suffix))
		return false;
	name[len - cut] = '\0';
	return true;
}

/* The number that stands for what is between the braces, see engine.h. */
static int work_accessor(const struct work *work, const char *text, size_t len, int64_t *number)
{
	struct accessor accessor;
	char name[SPEC_TEXT], *pattern;
	bool inner, expected, next;
	int err;

	if (len >= sizeof(name))
		return -ENOENT;
	memcpy(name, text, len);
	name[len] = '\0';
	pattern = strchr(name, '~');
	if (pattern) {
		*pattern++ = '\0';
		return accessor_match(&work->elf, name, pattern, number);
	}
	inner = name_cut(name, ":inner");
	expected = name_cut(name, ":expected");
	next = name_cut(name, "+8");
	err = *name == '=' ? accessor_read_setter(&work->elf, name + 1, &accessor) :
	      *name == '?' ? accessor_read_compared(&work->elf, name + 1, &accessor) :
			     accessor_read(&work->elf, name, &accessor);
	if (err)
		return err;
	if ((inner && accessor.kind != ACCESSOR_POINTER && accessor.kind != ACCESSOR_EQUALS) ||
	    (expected && accessor.kind != ACCESSOR_EQUALS))
		return -EINVAL;
	*number = expected ? accessor.expected : inner ? accessor.inner : accessor.offset;
	*number += next ? 8 : 0;
	return 0;
}

/* Copies @spec to @text with its accessors replaced by their offsets. */
static int work_expand(const struct work *work, const struct site *site, const char *spec,
		       char *text, size_t size)
{
	size_t at = 0;

	while (*spec) {
		const char *end = *spec == '{' ? strchr(spec, '}') : NULL;
		int64_t number;
		int n;

		if (end && !strncmp(spec, "{owner}", 7)) {
			n = snprintf(text + at, size - at, "%s",
				     *site->owner ? site->owner : "arg0");
			spec = end + 1;
		} else if (end) {
			n = work_accessor(work, spec + 1, (size_t)(end - spec - 1), &number);
			if (n) {
				/* For whoever asks why: the function's name. */
				spec += 1 + (spec[1] == '=' || spec[1] == '?');
				snprintf(text, size, "%.*s", (int)strcspn(spec, ":~+}"), spec);
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

/* Where @arg is at @site. Where there is no symbol, @text is its name. */
static enum spec_reason work_spec(const struct work *work, const struct engine_arg *arg,
				  const struct site *site, char text[SPEC_TEXT], struct spec *spec)
{
	struct spec specs[SPEC_ARGS_MAX];
	size_t n;

	if (!arg->probe_arg && (!arg->spec || work_expand(work, site, arg->spec, text, SPEC_TEXT)))
		return SPEC_NO_SYMBOL;
	if (!arg->probe_arg && !strchr(text, '@')) {
		*spec = (struct spec){ .kind = SPEC_CONST, .size = 8, .is_signed = true,
				       .value = strtoll(text, NULL, 10) };
		return SPEC_OK;
	}
	if (!arg->probe_arg)
		return spec_parse(work->elf.machine, work->elf.is64, text, strlen(text), spec);
	n = site->args ? spec_parse_all(work->elf.machine, work->elf.is64, site->args, specs,
					SPEC_ARGS_MAX) : 0;
	if ((size_t)arg->probe_arg > n || n > SPEC_ARGS_MAX)
		return SPEC_BAD_OPERAND;
	*spec = specs[arg->probe_arg - 1];
	return spec->reason;
}

/* The function that reads @arg at @site as @spec says, to @insns: as spec_emit(). */
static int work_read(struct work *work, const struct engine_arg *arg, const struct site *site,
		     char text[SPEC_TEXT], struct spec *spec, struct bpf_insn *insns,
		     enum spec_reason *reason)
{
	struct emit_target target = {
		.machine = work->elf.machine,
		.site_vaddr = site->vaddr,
		.read_helper = BPF_FUNC_probe_read_user,
		.symbol = elf_map_symbol,
		.symbol_arg = &work->elf,
	};

	*reason = work_spec(work, arg, site, text, spec);
	return *reason == SPEC_OK ? spec_emit(spec, &target, insns, EMIT_INSNS_MAX, reason) :
				    -ENOTSUP;
}

/*
 * The function that reads @arg at @site, to @insns: the number of instructions; 0: it cannot be
 * read so, and there are @more ways; -ENOTSUP. *@known: it is no fallback.
 */
static int work_emit(struct work *work, const struct engine_arg *arg, bool more,
		     const struct site *site, struct bpf_insn *insns, bool *known)
{
	struct spec spec;
	char text[SPEC_TEXT];		/* what the spec's symbols borrow from */
	enum spec_reason reason;
	int n = work_read(work, arg, site, text, &spec, insns, &reason);

	*known = n >= 0;
	if (n >= 0)
		return n;
	if (more)
		return 0;
	if (arg->fallback < 0) {
		error_set(work->error, ERROR_NO_PROBES, n, work->target->path,
			  spec_reason(reason));
		return n;
	}
	insns[0] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = arg->fallback };
	insns[1] = (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT };
	return 2;
}

/* Argument row @i: the probe's own, then the engine's, then the defaults. NULL: that is all. */
static const struct engine_arg *work_arg(const struct work *work, const struct engine_probe *probe,
					 size_t i)
{
	const struct engine_arg *const lists[] = {
		probe->args, work->target->engine->common, engine_defaults,
	};

	for (size_t n = 0; n < sizeof(lists) / sizeof(lists[0]); n++)
		for (const struct engine_arg *arg = lists[n]; arg && arg->name; arg++)
			if (!i--)
				return arg;
	return NULL;
}

static bool values_have(const struct object_value *values, size_t nvalues, const char *name)
{
	for (size_t i = 0; i < nvalues; i++)
		if (!strcmp(values[i].name, name))
			return true;
	return false;
}

/* What a statement has once an argument can be read. */
static uint32_t arg_shows(const char *arg)
{
	static const struct {
		const char *arg;
		uint32_t has;
	} table[] = {
		{ "arg_rows", TARGET_HAS_ROWS }, { "arg_tag", TARGET_HAS_ROWS },
		{ "arg_affected", TARGET_HAS_CHANGES },
		{ "arg_resumed", TARGET_LEAVES_PREPARED },
		{ "arg_error", TARGET_HAS_STATUS }, { "arg_state", TARGET_HAS_STATUS },
		{ "arg_status", TARGET_HAS_STATUS }, { "arg_user", TARGET_HAS_USER },
		{ "arg_database", TARGET_HAS_DATABASE }, { "arg_host", TARGET_HAS_CLIENT },
		{ "arg_address", TARGET_HAS_CLIENT },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(table[i].arg, arg))
			return table[i].has;
	return 0;
}

/* What a program is linked with. */
struct linking {
	struct object_value values[VALUES_MAX];
	size_t nvalues, ncode;
	struct bpf_insn code[ARGS_MAX][EMIT_INSNS_MAX];
	uint32_t has;			/* TARGET_HAS_* that its arguments tell */
};

static void linking_number(struct linking *linking, const char *name, uint64_t number)
{
	linking->values[linking->nvalues++] = (struct object_value){ .name = name,
								     .number = number };
}

/* Adds every argument that there is a row for; the program need not ask for it. */
static int linking_args(struct linking *linking, struct work *work,
			const struct engine_probe *probe, const struct site *site)
{
	const struct engine_arg *arg, *next;

	for (size_t i = 0; (arg = work_arg(work, probe, i)); i++) {
		struct bpf_insn *code = linking->code[linking->ncode];
		bool known, more;
		int n;

		if (values_have(linking->values, linking->nvalues, arg->name) ||
		    !work_has(work, arg->only_with))
			continue;
		if (linking->ncode == ARGS_MAX)
			return error_set(work->error, ERROR_TOO_MANY, -E2BIG, "arguments", NULL);
		next = work_arg(work, probe, i + 1);
		more = next && !strcmp(arg->name, next->name);
		n = work_emit(work, arg, more, site, code, &known);
		if (n < 0)
			return n;
		if (!n)
			continue;
		linking->ncode++;
		linking->has |= known ? arg_shows(arg->name) : 0;
		linking->values[linking->nvalues++] = (struct object_value){
			.name = arg->name, .kind = OBJECT_CODE, .insns = code,
			.count = (uint32_t)n,
		};
	}
	return 0;
}

/* Links the program of @probe for @site into work->linked: the number of instructions. */
static int work_link(struct work *work, const struct engine_probe *probe, const struct site *site)
{
	const struct engine *engine = work->target->engine;
	const struct target_common *common = work->common;
	struct linking linking = { .nvalues = common->nvalues };
	const char *culprit;
	int n;

	if (common->nvalues + NUMBERS + ARGS_MAX > VALUES_MAX)
		return error_set(work->error, ERROR_TOO_MANY, -E2BIG, "values", NULL);
	memcpy(linking.values, common->values, common->nvalues * sizeof(*common->values));
	linking_number(&linking, "constant_target_id", work->target->id);
	linking_number(&linking, "constant_commands", engine->timed_commands);
	n = linking_args(&linking, work, probe, site);
	if (n)
		return n;
	linking_number(&linking, "constant_rows_known", !!(linking.has & TARGET_HAS_ROWS));
	linking_number(&linking, "constant_affected_known",
		       !!(linking.has & TARGET_HAS_CHANGES));
	linking_number(&linking, "constant_status_known",
		       !!(linking.has & TARGET_HAS_STATUS));
	linking_number(&linking, "constant_tells_sessions",
		       engine->identify || linking.has & TARGET_HAS_WHO);
	n = object_link(common->object, probe->program, linking.values, linking.nvalues,
			work->linked, &culprit);
	if (n < 0)
		error_set(work->error, ERROR_LINK, n, culprit, probe->program);
	work->target->has |= linking.has;
	return n;
}

static int work_site(struct work *work, const struct engine_probe *probe, const struct site *site)
{
	struct uprobe_site add = { .offset = site->offset, .semaphore = site->semaphore,
				   .semaphore_vaddr = site->semaphore_vaddr,
				   .on_return = probe->on_return };
	int count = work_link(work, probe, site), err;

	if (count < 0)
		return count;
	if (work->set->nsites == SITES_MAX)
		return error_set(work->error, ERROR_TOO_MANY, -E2BIG, "probe sites",
				 work->target->path);
	work->planned[work->set->nsites] = (struct planned){ probe, *site };
	err = uprobe_set_add(work->set, probe->program, work->linked, (uint32_t)count, &add);
	return err ? error_set(work->error, ERROR_MEMORY, err, NULL, NULL) : 0;
}

/* Says why probe @probe is not to be had. 0: it is. */
static int work_refusal(struct work *work, const struct engine_probe *probe, const char *why)
{
	char detail[sizeof(work->error->detail)];

	if (!why)
		return 0;
	snprintf(detail, sizeof(detail), "%s: %s", probe->probe, why);
	return error_set(work->error, ERROR_SITE, -ENOENT, work->target->path, detail);
}

/* Adds every site of a USDT probe. -ENOENT: there is none. */
static int work_usdt(struct work *work, const struct engine_probe *probe)
{
	struct usdt_note_iter iter;
	struct usdt_site note;
	int err = -ENOENT;

	if (usdt_notes(&work->elf, &iter))
		return -ENOENT;
	while (usdt_note_next(&iter, &note)) {
		struct site site = {
			.vaddr = note.vaddr, .offset = note.offset, .args = note.args,
			.semaphore = note.semaphore_offset, .semaphore_vaddr = note.semaphore_vaddr,
		};

		if (strcmp(note.provider, probe->provider) || strcmp(note.name, probe->probe))
			continue;
		err = work_refusal(work, probe, site_refusal(&work->elf, &note));
		if (!err)
			err = work_site(work, probe, &site);
		if (err)
			return err;
	}
	return err;
}

/* Adds one place of a function. */
static int work_address(struct work *work, const struct engine_probe *probe, uint64_t vaddr)
{
	struct site site = { .vaddr = vaddr };
	int64_t member;

	if (elf_vaddr_to_offset(&work->elf, vaddr, &site.offset))
		return -ENOENT;
	if (probe->member &&
	    (work_accessor(work, probe->member, strlen(probe->member), &member) ||
	     site_owner(&work->elf, vaddr, member, site.owner)))
		return -ENOENT;
	return work_site(work, probe, &site);
}

static int work_function(struct work *work, const struct engine_probe *probe)
{
	struct elf_symbol symbol;
	uint64_t vaddrs[CALLS_MAX];
	int err = -ENOENT;
	size_t n;

	if (elf_symbol_find(&work->elf, probe->function, &symbol) ||
	    symbol.type != STT_FUNC || !elf_vaddr_has_flags(&work->elf, symbol.value, PF_X))
		return -ENOENT;
	if (!probe->calls)
		return work_address(work, probe, site_function(&work->elf, symbol.value));
	n = site_calls(&work->elf, &symbol, probe->calls, vaddrs, CALLS_MAX);
	for (size_t i = 0; i < n; i++) {
		err = work_address(work, probe, vaddrs[i]);
		if (err)
			return err;
	}
	return err;
}

static int work_way(struct work *work, const struct engine_probe *probe)
{
	uint32_t ngroups = work->set->ngroups, nsites = work->set->nsites;
	int err;

	if (!work_has(work, probe->only_with) ||
	    (probe->asked && !(probe->asked & work->common->asked)))
		return -ENOENT;
	err = probe->function ? work_function(work, probe) : work_usdt(work, probe);
	if (err)
		uprobe_set_cut(work->set, ngroups, nsites);
	return err;
}

/* Plans the first way of a step that the file has. *@row moves to the next step. */
static int work_step(struct work *work, size_t *row)
{
	const struct engine_probe_set *set = work->probe_set;
	const struct engine_probe *probe = &set->probes[*row], *used = probe;
	bool optional = probe->optional;
	int err = -ENOENT;

	for (; *row < set->nprobes && !strcmp(set->probes[*row].step, probe->step); ++*row) {
		if (err != -ENOENT && err != -ENOTSUP)
			continue;
		used = &set->probes[*row];
		err = work_way(work, used);
	}
	if (!err || optional)
		error_clear(work->error);
	else if (work->error->kind == ERROR_NONE)
		error_set(work->error, ERROR_NO_PROBES, err, work->target->path,
			  used->function ? used->function : used->probe);
	work->target->usdt |= !err && !used->function;
	work->target->has |= err ? 0 : used->has;
	return optional ? 0 : err;
}

static int work_probe_set(struct work *work, const struct engine_probe_set *set)
{
	size_t row = 0;
	int err = 0;

	work->probe_set = set;
	work->target->usdt = false;
	work->target->has = work->target->engine->identify ? TARGET_HAS_WHO : 0;
	while (!err && row < set->nprobes)
		err = work_step(work, &row);
	return err;
}

/* Plan the first probe set of the engine that the file has. */
static int work_all(struct work *work)
{
	const struct engine *engine = work->target->engine;
	int err = -ENOENT;

	for (size_t i = 0; err && i < engine->nprobe_sets; i++) {
		/* A probe that was found and then refused is not replaced by another set's. */
		if (work->error->kind != ERROR_NONE && work->error->kind != ERROR_NO_PROBES)
			break;
		error_clear(work->error);
		uprobe_set_cut(work->set, 0, 0);
		err = work_probe_set(work, &engine->probe_sets[i]);
	}
	if (!err)
		backend_find(&work->elf, engine, work->probe_set, &work->target->places);
	return err;
}

/* Copy @spec, with the names of @machine's registers in place of %arg0 and so on. */
static void arg_place(uint16_t machine, char *to, size_t size, const char *spec, size_t len)
{
	char reg[ARCH_REG_NAME];
	size_t at = 0;

	for (size_t i = 0; i < len && at + 1 < size;) {
		unsigned int number = len - i > 4 ? (unsigned int)spec[i + 4] - '0' : 9;

		if (number < ARCH_ARGS_MAX && !memcmp(spec + i, "%arg", 4) &&
		    !arch_arg_name(machine, number, reg)) {
			at += (size_t)snprintf(to + at, size - at, "%%%s", reg);
			i += 5;
		} else {
			to[at++] = spec[i++];
		}
	}
	to[at < size ? at : size - 1] = '\0';
}

/* Why row @arg does not help: @text is what work_spec() left. */
static void arg_absent(const struct work *work, const struct engine_arg *arg, const char *text,
		       const struct spec *spec, enum spec_reason reason, struct target_arg *to)
{
	if (reason == SPEC_NO_SYMBOL && !arg->probe_arg && !strchr(text, '@')) {
		snprintf(to->absent, sizeof(to->absent), work_has(work, text) ?
			 "the code of %.180s is not understood" : "the file does not export %.180s",
			 text);
	} else if (reason == SPEC_NO_SYMBOL && spec->symbol) {
		snprintf(to->absent, sizeof(to->absent), "the file does not export %.*s",
			 (int)(spec->symbol_len < 128 ? spec->symbol_len : 128), spec->symbol);
	} else if (arg->probe_arg && spec->kind != SPEC_UNAVAILABLE) {
		snprintf(to->absent, sizeof(to->absent), "the probe has no argument %d",
			 arg->probe_arg);
	} else {
		snprintf(to->absent, sizeof(to->absent), "%s", spec_reason(reason));
	}
}

/* Tells by row @arg where it is, or why not. */
static void arg_describe(struct work *work, const struct engine_arg *arg, const struct site *site,
			 struct target_arg *to)
{
	struct bpf_insn insns[EMIT_INSNS_MAX];
	struct spec spec = { .kind = SPEC_CONST };
	uint16_t machine = work->elf.machine;
	char text[SPEC_TEXT] = "";
	enum spec_reason reason;
	int n = work_read(work, arg, site, text, &spec, insns, &reason);

	if (n < 0)
		arg_absent(work, arg, text, &spec, reason, to);
	else
		*to->absent = '\0';
	if (n >= 0 && arg->probe_arg)
		arg_place(machine, to->spec, sizeof(to->spec), spec.text, spec.text_len);
	else if (n >= 0)
		arg_place(machine, to->spec, sizeof(to->spec), text, strlen(text));
}

/* Tells of a planned site: of all that its program asks for and this engine knows. */
static void work_describe(struct work *work, const struct planned *planned)
{
	struct target_arg *args = calloc(TARGET_ARGS, sizeof(*args));
	const struct engine_arg *arg;
	size_t n = 0;

	for (size_t i = 0; args && (arg = work_arg(work, planned->probe, i)); i++) {
		size_t at = 0;

		if ((!arg->probe_arg && !arg->spec) || !work_has(work, arg->only_with) ||
		    !object_asks(work->common->object, planned->probe->program, arg->name,
				 work->linked))
			continue;
		while (at < n && strcmp(args[at].name, arg->name + 4))
			at++;
		if (at == TARGET_ARGS || *args[at].spec)
			continue;
		n += at == n;
		args[at].name = arg->name + 4;
		arg_describe(work, arg, &planned->site, &args[at]);
	}
	work->common->site(work->common->site_arg, &(struct target_site){
		.probe = planned->probe, .vaddr = planned->site.vaddr,
		.semaphore_vaddr = planned->site.semaphore_vaddr, .args = args, .nargs = n,
	});
	free(args);
}

/* The words behind the engine's own ones, as "15.14 (Debian 15.14-0+deb12u1)". */
static void work_version_words(struct work *work, const char *words)
{
	struct elf_section section;
	const unsigned char *data = NULL;
	const char *at;
	size_t size = 0, len = 0;

	if (!elf_section_find(&work->elf, ".rodata", &section))
		data = elf_section_data(&work->elf, &section, &size);
	size = size < RODATA_MAX ? size : RODATA_MAX;
	at = data ? memmem(data, size, words, strlen(words)) : NULL;
	if (!at)
		return;
	at += strlen(words);
	size -= (size_t)(at - (const char *)data);
	while (len < size && len < sizeof(work->target->version) - 1 && at[len] && at[len] != '\n')
		len++;
	memcpy(work->target->version, at, len);
}

static void work_version(struct work *work)
{
	const struct engine *engine = work->target->engine;
	struct target *target = work->target;
	struct elf_loads loads;
	struct elf_symbol symbol;

	if (engine->version_words)
		work_version_words(work, engine->version_words);
	elf_loads(&work->elf, &loads);
	/* Segments are in the order of their addresses. */
	if (loads.count)
		target->lowest_vaddr = loads.segment[0].vaddr & ~(uint64_t)0xfff;
	if (engine->version_symbol && !elf_symbol_find(&work->elf, engine->version_symbol, &symbol))
		target->version_vaddr = symbol.value;
}

static int work_file(struct work *work)
{
	const char *path = work->target->path;

	if (work->elf.machine != HOST_ELF_MACHINE)
		return error_set(work->error, ERROR_MACHINE, -ENOEXEC, path, NULL);
	work->linked = malloc(OBJECT_INSNS_MAX * sizeof(*work->linked));
	if (!work->linked)
		return error_set(work->error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	work_version(work);
	return work_all(work);
}

int target_plan(struct target *target, const struct engine *engine, int fd, const char *path,
		uint32_t id, const struct target_common *common, struct uprobe_set *set,
		struct error *error)
{
	struct work work = { .target = target, .common = common, .error = error, .set = set };
	struct elf_map binary;
	int err;

	*target = (struct target){ .engine = engine, .id = id };
	*set = (struct uprobe_set){ 0 };
	snprintf(target->path, sizeof(target->path), "%s", path);
	process_file_read(fd, &target->file);
	err = elf_map_open(&binary, fd);
	if (err)
		return error_set(error, err == -ENOEXEC ? ERROR_NOT_ELF : ERROR_FILE, err, path,
				 NULL);
	work.elf = binary.elf;
	err = work_file(&work);
	for (uint32_t i = 0; !err && common->site && i < set->nsites; i++)
		work_describe(&work, &work.planned[i]);
	elf_map_close(&binary);
	free(work.linked);
	if (err)
		uprobe_set_free(set);
	return err;
}

/* Keeps which semaphores the plan has, each once. 0 or -ENOMEM. */
static int target_keep(struct target *target, const struct uprobe_set *set)
{
	target->semaphores = calloc(set->nsites, sizeof(*target->semaphores));
	if (!target->semaphores)
		return -ENOMEM;
	for (uint32_t i = 0; i < set->nsites; i++) {
		uint64_t vaddr = set->sites[i].semaphore ? set->sites[i].semaphore_vaddr : 0;
		size_t n = 0;

		while (n < target->nsemaphores && target->semaphores[n] != vaddr)
			n++;
		if (vaddr && n == target->nsemaphores)
			target->semaphores[target->nsemaphores++] = vaddr;
	}
	return 0;
}

void target_semaphores(const struct target *target, struct semaphores *semaphores,
		       const struct process *process)
{
	if (semaphores && process_file_same(&process->file, &target->file))
		semaphores_write(semaphores, process, target->lowest_vaddr, target->semaphores,
				 target->nsemaphores);
}

struct running {
	const struct target *target;
	struct semaphores *semaphores;
};

static int running_each(void *arg, const struct process *process)
{
	const struct running *running = arg;

	target_semaphores(running->target, running->semaphores, process);
	return 0;
}

/* Until there is none left: one may be forked from a process that has not got it. */
static void target_semaphores_all(struct target *target, struct semaphores *semaphores)
{
	struct running running = { target, semaphores };
	size_t before;

	do {
		before = semaphores->nmarks;
		process_each(engine_is_executable, running_each, &running);
	} while (semaphores->nmarks > before);
}

int target_open(struct target *target, const struct engine *engine, int fd, const char *path,
		uint32_t id, const struct target_common *common, struct error *error)
{
	bool uncounted = common->semaphores && common->semaphores->on;
	struct uprobe_set set;
	int err = target_plan(target, engine, fd, path, id, common, &set, error);

	if (err)
		return err;
	err = uncounted ? target_keep(target, &set) : 0;
	if (err) {
		uprobe_set_free(&set);
		return error_set(error, ERROR_MEMORY, err, NULL, NULL);
	}
	err = uprobe_set_attach(&set, &(struct uprobe_file){
		.name = engine->name, .fd = fd, .path = target->path,
		.features = common->features, .method = common->method,
		.uncounted = uncounted,
		.program = common->program, .program_arg = common->program_arg,
	}, &target->links, error);
	uprobe_set_free(&set);
	if (err)
		target_close(target);
	else if (uncounted && target->nsemaphores)
		target_semaphores_all(target, common->semaphores);
	return err;
}

void target_read_version(struct target *target, const struct process *process)
{
	size_t size = sizeof(target->version) - 1;
	struct process_memory memory;

	if (!target->version_vaddr || !process->pid ||
	    process_memory_open_program(process, target->lowest_vaddr, &memory))
		return;
	if (process_memory_variable(&memory, target->version_vaddr, target->version, size))
		size = 0;
	target->version[size] = '\0';
	process_memory_close(&memory);
}

/* The brand that the version tells, or NULL. */
static const struct engine_brand *target_brand(const struct target *target)
{
	const struct engine_brand *brand = *target->version ? target->engine->brands : NULL;

	while (brand && !strstr(target->version, brand->version_word))
		brand++;
	return brand;
}

const char *target_title(const struct target *target)
{
	const struct engine_brand *brand = target_brand(target);

	return brand ? brand->title : target->engine->title;
}

const char *target_otel_system(const struct target *target)
{
	const struct engine_brand *brand = target_brand(target);

	return brand ? brand->otel_system : target->engine->otel_system;
}

void target_close(struct target *target)
{
	uprobe_set_detach(&target->links);
	free(target->semaphores);
	target->semaphores = NULL;
	target->nsemaphores = 0;
}
