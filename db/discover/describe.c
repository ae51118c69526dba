// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "usdt/arch.h"

#define SYMBOL_SHOWN	80	/* bytes of a symbol; those of the tables are shorter */

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

/* Return whether @symbol, of @len bytes, is one of @names, which are "A or B or C". */
static bool names_have(const char *names, const char *symbol, size_t len)
{
	const char *end;

	for (;; names = end + strlen(" or ")) {
		end = strstr(names, " or ");
		if (len == (end ? (size_t)(end - names) : strlen(names)) &&
		    !memcmp(names, symbol, len))
			return true;
		if (!end)
			return false;
	}
}

/*
 * Add that the file lacks @symbol to the reason in @to. Rows for one argument are of several
 * products and releases: which of these the file is of, only a symbol that it has tells.
 */
static void arg_lacks(struct target_arg *to, const char *symbol, size_t len)
{
	static const char lacks[] = "the file does not export ";
	size_t at = strlen(to->absent), room = sizeof(to->absent) - at;

	len = len < SYMBOL_SHOWN ? len : SYMBOL_SHOWN;
	if (!at)
		snprintf(to->absent, room, "%s%.*s", lacks, (int)len, symbol);
	else if (!strncmp(to->absent, lacks, strlen(lacks)) && strlen(" or ") + len < room &&
		 !names_have(to->absent + strlen(lacks), symbol, len))
		snprintf(to->absent + at, room, " or %.*s", (int)len, symbol);
}

/* Write why @arg could not be resolved; before it, other rows may not have been, either. */
static void arg_absent(const struct bind *bind, const struct engine_arg *arg,
		       const struct bind_value *value, struct target_arg *to)
{
	const struct spec *spec = &value->spec;
	bool is_number = value->reason == SPEC_NO_SYMBOL && !arg->probe_arg &&
			 !strchr(value->text, '@');

	if (is_number && !bind_has_symbol(bind, value->text))
		arg_lacks(to, value->text, strlen(value->text));
	else if (is_number)
		snprintf(to->absent, sizeof(to->absent), "the code of %.180s is not understood",
			 value->text);
	else if (value->reason == SPEC_NO_SYMBOL && spec->symbol)
		arg_lacks(to, spec->symbol, spec->symbol_len);
	else if (arg->probe_arg && spec->kind != SPEC_UNAVAILABLE)
		snprintf(to->absent, sizeof(to->absent), "the probe has no argument %d",
			 arg->probe_arg);
	else
		snprintf(to->absent, sizeof(to->absent), "%s", spec_reason(value->reason));
}

/* Write where @arg is at @site, or why it is absent. */
static void arg_describe(const struct bind *bind, const struct engine_arg *arg,
			 const struct bind_site *site, struct target_arg *to)
{
	uint16_t machine = bind->config.elf.machine;
	uint32_t provides = bind_provides(arg->name);
	struct bind_value value;
	int n = bind_value(bind, arg, site, &value);

	to->replaced = provides && !(provides & ~bind->has);
	if (n < 0)
		arg_absent(bind, arg, &value, to);
	else
		*to->absent = '\0';
	if (n >= 0 && arg->probe_arg)
		arg_place(machine, to->spec, sizeof(to->spec), value.spec.text,
			  value.spec.text_len);
	else if (n >= 0)
		arg_place(machine, to->spec, sizeof(to->spec), value.text, strlen(value.text));
}

/* Describe the arguments that the program at @at uses and that have a spec. Return how many. */
static size_t site_args(const struct bind *bind, const struct bind_probe_site *at,
			struct target_arg args[TARGET_ARGS])
{
	const struct engine_arg *arg;
	size_t n = 0;

	for (size_t i = 0; (arg = bind_arg(bind, at->probe, i)); i++) {
		size_t place = 0;

		if ((!arg->probe_arg && !arg->spec) || !bind_has_symbol(bind, arg->only_with) ||
		    !object_refers(bind->config.object, at->probe->program, arg->name,
				   bind->linked))
			continue;
		while (place < n && strcmp(args[place].name, arg->name + 4))
			place++;
		/* A row after the one that could be resolved is not used. */
		if (place == TARGET_ARGS || *args[place].spec)
			continue;
		n += place == n;
		args[place].name = arg->name + 4;
		arg_describe(bind, arg, &at->site, &args[place]);
	}
	return n;
}

void describe_sites(const struct bind *bind,
		    void (*each)(void *arg, const struct target_site *site), void *arg)
{
	for (uint32_t i = 0; i < bind->set->nsites; i++) {
		const struct bind_probe_site *at = &bind->sites[i];
		struct target_arg *args = calloc(TARGET_ARGS, sizeof(*args));

		each(arg, &(struct target_site){
			.probe = at->probe, .vaddr = at->site.vaddr,
			.semaphore_vaddr = at->site.semaphore_vaddr, .args = args,
			.nargs = args ? site_args(bind, at, args) : 0,
		});
		free(args);
	}
}

void describe_version(const struct elf *elf, const struct engine *engine, char *version,
		      size_t size)
{
	const char *words = engine->version_words, *at;
	size_t left, len = 0;
	uint64_t vaddr;

	at = words ? elf_constant(elf, words, strlen(words), &left, &vaddr) : NULL;
	if (!at)
		return;
	at += strlen(words);
	left -= strlen(words);
	while (len < left && len < size - 1 && at[len] && at[len] != '\n')
		len++;
	memcpy(version, at, len);
}

uint64_t describe_version_vaddr(const struct elf *elf, const struct engine *engine)
{
	struct elf_symbol symbol;

	return engine->version_symbol && !elf_symbol_find(elf, engine->version_symbol, &symbol) ?
	       symbol.value : 0;
}

const struct engine_brand *describe_brand(const struct engine *engine, const char *version)
{
	const struct engine_brand *brand = *version ? engine->brands : NULL;

	while (brand && !strstr(version, brand->version_word))
		brand++;
	return brand;
}

const char *describe_title(const struct engine *engine, const char *version)
{
	const struct engine_brand *brand = describe_brand(engine, version);

	return brand ? brand->title : engine->title;
}

void describe_product(struct server *server)
{
	const struct engine_brand *brand = describe_brand(server->engine, server->version);

	server->product = brand ? brand->otel_system : server->engine->name;
	server->otel_system = brand ? brand->otel_system : server->engine->otel_system;
}

void describe_server(struct server *server, const struct engine *engine, const char *version,
		     const char *path)
{
	*server = (struct server){ .engine = engine };
	snprintf(server->version, sizeof(server->version), "%s", version);
	snprintf(server->path, sizeof(server->path), "%s", path);
	describe_product(server);
}
