// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "probe/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/event.h"
#include "host/arch.h"
#include "host/elf_map.h"

/* The type of a value in a register is unknown: treat it as a signed long. */
#define FUNCTION_SIGNED_MASK	UINT32_MAX

static const char *const arg_names[EXPRESSION_PID] = {
	"arg_1", "arg_2", "arg_3", "arg_4", "arg_5", "arg_6", "arg_7", "arg_8", "arg_9", "arg_10",
	"arg_11", "arg_12", "arg_retval",
};

static const char *const field_names[REQUEST_FIELDS] = {
	"trace_field_0", "trace_field_1", "trace_field_2", "trace_field_3", "trace_field_4",
	"trace_field_5", "trace_field_6", "trace_field_7", "trace_field_8", "trace_field_9",
	"trace_field_10", "trace_field_11",
};

static void probe_free(struct traced_probe *probe)
{
	free(probe->path);
	free(probe->provider);
	free(probe->name);
}

void probe_table_free(struct probe_table *table)
{
	for (uint32_t i = 0; i < table->count; i++)
		probe_free(&table->probes[i]);
	free(table->probes);
	*table = (struct probe_table){ 0 };
}

uint32_t probe_request_record_size(unsigned int nfields, uint32_t texts, uint32_t text_size,
				   bool stack)
{
	uint32_t size = (uint32_t)sizeof(struct event_probe_hit) + nfields * 8 +
			(stack ? (uint32_t)sizeof(struct event_stack) : 0);

	for (; texts; texts &= texts - 1)
		size += 8 + text_size;
	return size;
}

static const char only_shown[] = "a floating-point number can only be shown";

int request_refuse(struct request_ctx *ctx, const struct request_site *site,
			  const char *what, const char *why)
{
	char subject[256], detail[128];

	snprintf(subject, sizeof(subject), "%s%s%s", site->provider ? site->provider : "",
		 site->provider ? ":" : "", site->name);
	snprintf(detail, sizeof(detail), "%s%s%s", what, *what ? ": " : "", why);
	return error_set(ctx->error, ERROR_PROBE, -EINVAL, subject, detail);
}

/* As request_refuse() because of @variable. */
static int request_refuse_variable(struct request_ctx *ctx, const struct request_site *site,
				   unsigned int variable, const char *why)
{
	char what[16];

	snprintf(what, sizeof(what), variable == EXPRESSION_RETVAL ? "retval" : "arg%u",
		 variable + 1);
	return request_refuse(ctx, site, what, why);
}

/* Set the specs of a function's entry or return, by the calling convention. */
static void request_function_specs(struct request_ctx *ctx)
{
	static const char args[] = "8@%arg0 8@%arg1 8@%arg2 8@%arg3 8@%arg4 8@%arg5";
	static const char ret[] = "8@%ret";
	const struct elf *elf = ctx->elf;

	ctx->nargs = ctx->on_return || !elf->is64 ? 0 : REQUEST_REGISTERS;
	spec_parse_all(elf->machine, elf->is64, args, ctx->specs, ctx->nargs);
	spec_parse(elf->machine, elf->is64, ret, strlen(ret), &ctx->specs[EXPRESSION_RETVAL]);
	ctx->variables.signed_mask = FUNCTION_SIGNED_MASK;
}

/* Set the specs of the current site's variables. */
static void request_specs(struct request_ctx *ctx, const struct request_site *site)
{
	size_t n;

	ctx->variables = (struct expression_site){ 0 };
	if (!site->provider) {
		request_function_specs(ctx);
		return;
	}
	n = spec_parse_all(ctx->elf->machine, ctx->elf->is64, site->args, ctx->specs,
			   SPEC_ARGS_MAX);
	ctx->nargs = n < SPEC_ARGS_MAX ? (unsigned int)n : SPEC_ARGS_MAX;
	for (unsigned int i = 0; i < ctx->nargs; i++) {
		const struct spec *spec = &ctx->specs[i];

		ctx->variables.signed_mask |= (uint32_t)(spec->is_signed && !spec->is_float) << i;
		ctx->variables.fails_mask |= (uint32_t)spec_reads(spec) << i;
	}
}

/* Return the reason why @site has no such variable, or NULL if it has. @why is a buffer for it. */
static const char *variable_missing(const struct request_ctx *ctx, const struct request_site *site,
				    unsigned int variable, char why[64])
{
	if (variable == EXPRESSION_RETVAL)
		return ctx->on_return ? NULL : "it is known when a function returns";
	if (ctx->on_return)
		return "arguments are gone when a function returns";
	if (variable < ctx->nargs)
		return NULL;
	if (!site->provider)
		return "only the first 6 arguments of a function are known, in 64-bit programs";
	snprintf(why, 64, "it has %u argument%s", ctx->nargs, ctx->nargs == 1 ? "" : "s");
	return why;
}

static void request_set_code(struct request_ctx *ctx, const char *name,
			     const struct bpf_insn *insns, uint32_t count)
{
	ctx->values[ctx->nvalues++] = (struct object_value){ .name = name, .kind = OBJECT_CODE,
							     .insns = insns, .count = count };
}

static void request_set_number(struct request_ctx *ctx, const char *name, uint64_t number)
{
	ctx->values[ctx->nvalues++] = (struct object_value){ .name = name, .number = number };
}

static const struct bpf_insn constant_0[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K },
					      { .code = BPF_JMP | BPF_EXIT } };
static const struct bpf_insn constant_1[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 1 },
					      { .code = BPF_JMP | BPF_EXIT } };

/* As elf_map_symbol(); @arg is the struct request_ctx. */
static int request_symbol(void *arg, const char *name, size_t len, uint64_t *vaddr)
{
	const struct request_ctx *ctx = arg;
	int err = elf_map_symbol((void *)ctx->elf, name, len, vaddr);

	return err && ctx->config->debug ?
	       elf_map_symbol((void *)ctx->config->debug, name, len, vaddr) : err;
}

/*
 * Emit the function that reads @variable if its bit in @uses is set, and one that returns 0
 * otherwise. Return 0, or -EINVAL if the variable cannot be read.
 */
static int request_variable(struct request_ctx *ctx, const struct request_site *site,
			    unsigned int variable, uint32_t uses)
{
	struct emit_target target = {
		.machine = ctx->elf->machine, .site_vaddr = site->vaddr,
		.read_helper = BPF_FUNC_probe_read_user,
		.symbol = request_symbol, .symbol_arg = ctx,
		.unread = 1 << variable,
	};
	struct spec *spec = &ctx->specs[variable];
	enum spec_reason reason;
	char room[64];
	const char *why;
	int n;

	request_set_code(ctx, arg_names[variable], constant_0, 2);
	if (!(uses >> variable & 1))
		return 0;
	why = variable_missing(ctx, site, variable, room);
	if (!why) {
		n = spec_emit(spec, &target, ctx->args[variable], EMIT_INSNS_MAX, &reason);
		if (n >= 0) {
			ctx->nvalues--;
			request_set_code(ctx, arg_names[variable], ctx->args[variable],
					 (uint32_t)n);
			return 0;
		}
		why = spec_reason(reason);
		spec->kind = SPEC_UNAVAILABLE;
	}
	return ctx->request->all ? 0 : request_refuse_variable(ctx, site, variable, why);
}

/* Return the type with which the value of @e is printed; @text: it is the address of a text. */
static struct probe_request_field request_field_type(const struct request_ctx *ctx,
						     const struct request_site *site,
						     const struct expression *e, bool text)
{
	struct probe_request_field field = { REQUEST_NUMBER, 8,
					     expression_is_signed(e, &ctx->variables) };
	int variable = expression_plain(e);

	if (text) {
		field.type = REQUEST_TEXT;
	} else if (variable == EXPRESSION_COMM) {
		field.type = REQUEST_COMM;
	} else if (variable >= EXPRESSION_PID) {
		field.size = 4;
		field.is_signed = false;
	} else if (variable >= 0 && ctx->specs[variable].kind == SPEC_UNAVAILABLE) {
		field.type = REQUEST_UNKNOWN;
	} else if (variable >= 0 && !site->provider) {
		field.type = REQUEST_REGISTER;
	} else if (variable >= 0) {
		field.size = ctx->specs[variable].size;
		field.type = ctx->specs[variable].is_float ? REQUEST_FLOAT : REQUEST_NUMBER;
	}
	return field;
}

static int request_field(struct request_ctx *ctx, const struct request_site *site, unsigned int i,
			 const struct expression *e)
{
	bool text = ctx->probe.texts >> i & 1, length = ctx->probe.lengths >> i >> 1 & 1;
	bool computed = expression_plain(e) < 0 || length ||
			(!i && ctx->config->mode == REQUEST_HISTOGRAM);
	int n = expression_emit(e, &ctx->variables, HIT_FIELD_UNKNOWN(i), ctx->fields[i],
				EXPRESSION_INSNS_MAX);

	for (unsigned int arg = 0; computed && arg < ctx->nargs; arg++)
		if (e->uses >> arg & 1 && ctx->specs[arg].is_float)
			return request_refuse(ctx, site, "", only_shown);
	if (n < 0)
		return request_refuse(ctx, site, "", "a value is too long");
	request_set_code(ctx, field_names[i], ctx->fields[i], (uint32_t)n);
	ctx->probe.fields[i] = request_field_type(ctx, site, e, text);
	return 0;
}

/* Return whether the current site is the start of a latency. */
static bool request_is_start(const struct request_ctx *ctx)
{
	return ctx->request->latency == LATENCY_START ||
	       (ctx->request->latency == LATENCY_CALL && !ctx->on_return);
}

/* Return the filter of the current site: of a call, at its return if it uses the return value. */
static const struct expression *request_site_filter(const struct request_ctx *ctx)
{
	const struct expression *filter = ctx->request->filter;

	if (!filter || ctx->request->latency != LATENCY_CALL)
		return filter;
	return ctx->on_return == (filter->uses >> EXPRESSION_RETVAL & 1) ? filter : NULL;
}

/* Return the number of fields of a request that names none. */
static unsigned int request_count_all(const struct request_ctx *ctx,
				      const struct request_site *site)
{
	if (ctx->config->mode != REQUEST_SEND)
		return 0;
	if (site->provider)
		return ctx->nargs;
	return ctx->on_return ? 1 : ctx->request->registers;
}

/* Return the variables that the request reads at a site: bit n for variable n. */
static uint32_t request_uses(const struct request_ctx *ctx)
{
	const struct probe_request *request = ctx->request;
	const struct expression *filter = request_site_filter(ctx);
	uint32_t uses = filter ? filter->uses : 0;

	if (request_is_start(ctx))
		return uses;
	for (unsigned int i = 0; i < request->nfields; i++)
		uses |= request->fields[i]->uses;
	if (request->all && ctx->on_return)
		uses |= 1u << EXPRESSION_RETVAL;
	else if (request->all)
		uses |= (1u << ctx->probe.nfields) - 1;
	return uses;
}

/*
 * Emit the filter. Its variables are required even if the request prints all arguments, where an
 * unreadable one is otherwise accepted. Return 0 or -EINVAL.
 */
static int request_filter(struct request_ctx *ctx, const struct request_site *site)
{
	const struct expression *filter = request_site_filter(ctx);
	const char *why;
	char room[64];
	int n;

	if (!filter) {
		request_set_code(ctx, "trace_filter", constant_1, 2);
		return 0;
	}
	for (unsigned int i = 0; i < EXPRESSION_PID; i++) {
		if (!(filter->uses >> i & 1))
			continue;
		why = variable_missing(ctx, site, i, room);
		if (!why && ctx->specs[i].kind == SPEC_UNAVAILABLE)
			why = spec_reason(ctx->specs[i].reason);
		if (!why && ctx->specs[i].is_float)
			why = only_shown;
		if (why)
			return request_refuse_variable(ctx, site, i, why);
	}
	n = expression_emit(filter, &ctx->variables, HIT_FILTER_UNKNOWN, ctx->filter,
			    EXPRESSION_INSNS_MAX);
	if (n < 0)
		return request_refuse(ctx, site, "", "the filter is too long");
	request_set_code(ctx, "trace_filter", ctx->filter, (uint32_t)n);
	return 0;
}

static int request_fields(struct request_ctx *ctx, const struct request_site *site)
{
	const struct probe_request *request = ctx->request;
	struct expression plain;
	int err = 0;

	for (unsigned int i = 0; !err && i < REQUEST_FIELDS; i++) {
		if (i >= ctx->probe.nfields) {
			request_set_code(ctx, field_names[i], constant_0, 2);
			continue;
		}
		if (request->all)
			expression_set_plain(&plain, ctx->on_return ? EXPRESSION_RETVAL :
					     (enum expression_variable)(EXPRESSION_ARG1 + i));
		err = request_field(ctx, site, i, request->all ? &plain : request->fields[i]);
	}
	return err;
}

/* Return the ID of the traced probe that equals ctx->probe, which is added if new; or -ENOMEM. */
static int request_probe_id(struct request_ctx *ctx, const struct request_site *site)
{
	struct probe_table *all = ctx->config->table;
	struct traced_probe *s = &ctx->probe, *more;

	s->several = false;
	for (uint32_t i = all->count; i--;) {
		struct traced_probe *old = &all->probes[i];

		if (strcmp(old->name, site->name) || !old->provider != !site->provider ||
		    (site->provider && strcmp(old->provider, site->provider)))
			continue;
		if (strcmp(old->path, ctx->config->path))
			old->several = s->several = true;
		else if (old->request == s->request && old->on_return == s->on_return &&
			 old->nfields == s->nfields && old->texts == s->texts &&
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
	more->path = strdup(ctx->config->path);
	if (!more->name || !more->path || (site->provider && !more->provider)) {
		probe_free(more);
		return -ENOMEM;
	}
	return (int)all->count++;
}

/* Set argument @name to the spec @text, with its code in @insns; to 0 unless @wanted. */
static void request_set_spec(struct request_ctx *ctx, const char *name, const char *text,
			     struct bpf_insn insns[EMIT_INSNS_MAX], bool wanted)
{
	/* The registers are those of the kernel, also of a 32-bit program. */
	struct emit_target target = { .machine = HOST_ELF_MACHINE,
				      .read_helper = BPF_FUNC_probe_read_user };
	enum spec_reason reason;
	struct spec spec;
	int n = 0;

	if (wanted && !spec_parse(HOST_ELF_MACHINE, true, text, strlen(text), &spec))
		n = spec_emit(&spec, &target, insns, EMIT_INSNS_MAX, &reason);
	request_set_code(ctx, name, n > 0 ? insns : constant_0, n > 0 ? (uint32_t)n : 2);
}

/* Set the values that find the start of a latency; @id: the probe that ends it. */
static void request_latency(struct request_ctx *ctx, int id)
{
	bool call = ctx->request->latency == LATENCY_CALL;

	request_set_spec(ctx, "arg_frame", "8@" HOST_STACK_REGISTER, ctx->frame, call);
	request_set_number(ctx, "constant_latency_pair", call ? (uint64_t)id : 0);
	request_set_number(ctx, "constant_frame_bytes",
			   !call || !ctx->on_return ? 0 :
			   ctx->elf->is64 ? HOST_RETURN_BYTES : HOST_RETURN_BYTES / 2);
	request_set_number(ctx, "constant_latency",
			   ctx->request->latency != LATENCY_NONE && !request_is_start(ctx));
}

/* Set the constants of @site and link its program. Return its number of instructions or -errno. */
static int request_link(struct request_ctx *ctx, const struct request_site *site, int id)
{
	const struct probe_request_config *config = ctx->config;
	const struct traced_probe *s = &ctx->probe;
	const char *culprit;
	int n;

	request_latency(ctx, id);

	request_set_number(ctx, "constant_probe_id", (uint64_t)id);
	request_set_number(ctx, "constant_fields", s->nfields);
	request_set_number(ctx, "constant_texts", s->texts);
	request_set_number(ctx, "constant_lengths", s->lengths & s->texts);
	request_set_number(ctx, "constant_text_size", config->text_size);
	request_set_number(ctx, "constant_record_size",
			   probe_request_record_size(s->nfields, s->texts, config->text_size,
						     config->stacks));
	request_set_number(ctx, "constant_histogram",
			   config->mode == REQUEST_HISTOGRAM ? HISTOGRAM_FIELD :
			   config->mode == REQUEST_LATENCIES ? HISTOGRAM_LATENCY : 0);
	request_set_number(ctx, "constant_stack", config->stacks);
	request_set_spec(ctx, "arg_caller", "8@" HOST_RETURN_ADDRESS, ctx->caller,
			 config->stacks && !site->provider && !ctx->on_return && ctx->elf->is64);
	request_set_number(ctx, "constant_is_signed", s->nfields && s->fields[0].is_signed);
	n = object_link(&config->runtime->objects[0], ctx->program, ctx->values, ctx->nvalues,
			ctx->linked, &culprit);
	if (n == -ENOSPC)
		return request_refuse(ctx, site, "", "the filter and the values are too long");
	return n < 0 ? error_link(ctx->error, n, culprit, ctx->program) : n;
}

/* Return the number of sites of a file that can be attached within seconds. */
static unsigned int request_sites_max(const struct request_ctx *ctx)
{
	return ctx->config->runtime->method == ATTACH_MULTI ? REQUEST_SITES_MAX :
								      REQUEST_SITES_PERF;
}

int request_too_many(struct request_ctx *ctx, const char *what, unsigned int max)
{
	char detail[sizeof(ctx->error->detail)];

	snprintf(detail, sizeof(detail), "maximum %u in a file, %s", max, ctx->path);
	return error_set(ctx->error, ERROR_TOO_MANY, -E2BIG, what, detail);
}

/* Describe the probe of the current site. */
static void request_describe(struct request_ctx *ctx, const struct request_site *site)
{
	const struct probe_request *request = ctx->request;

	memset(ctx->specs, 0, sizeof(ctx->specs));
	request_specs(ctx, site);
	memset(&ctx->probe, 0, sizeof(ctx->probe));
	ctx->probe.request = ctx->number;
	ctx->probe.on_return = ctx->on_return;
	ctx->program = request_is_start(ctx) ? "hit_start" :
		       ctx->config->mode == REQUEST_SEND ? "hit_send" : "hit_count";
	if (request_is_start(ctx))
		return;
	ctx->probe.nfields = request->all ? request_count_all(ctx, site) : request->nfields;
	ctx->probe.texts = request->texts;
	ctx->probe.lengths = request->lengths;
}

/*
 * Add @site with its program to the set, as a start for the latencies of probe @id, or if that is
 * negative for a probe of its own. Return the ID of the probe, or -errno and the cause in
 * ctx->error.
 */
static int request_add_one(struct request_ctx *ctx, const struct request_site *site, int id)
{
	const struct probe_request_config *config = ctx->config;
	struct uprobe_site uprobe = site->uprobe;
	uint32_t uses;
	int err = 0, n;

	if (ctx->set->nsites == request_sites_max(ctx))
		return request_too_many(ctx, "probe sites", request_sites_max(ctx));
	request_describe(ctx, site);
	ctx->nvalues = config->runtime->nvalues;
	memcpy(ctx->values, config->runtime->values, ctx->nvalues * sizeof(*ctx->values));
	uses = request_uses(ctx);
	for (unsigned int i = 0; !err && i < EXPRESSION_PID; i++)
		err = request_variable(ctx, site, i, uses);
	if (!err)
		err = request_filter(ctx, site);
	if (!err)
		err = request_fields(ctx, site);
	if (err)
		return err;
	uprobe.on_return = ctx->on_return;
	id = id < 0 ? request_probe_id(ctx, site) : id;
	n = id < 0 ? id : request_link(ctx, site, id);
	if (n >= 0)
		n = uprobe_set_add(ctx->set, ctx->program, ctx->linked, (uint32_t)n, &uprobe);
	if (n == -ENOMEM)
		return error_set(ctx->error, ERROR_MEMORY, n, NULL, NULL);
	return n < 0 ? n : id;
}

int request_add_site(struct request_ctx *ctx, const struct request_site *site)
{
	int id = request_add_one(ctx, site, -1);

	if (id >= 0 && ctx->request->latency == LATENCY_CALL) {
		ctx->on_return = false;
		id = request_add_one(ctx, site, id);
		ctx->on_return = true;
	}
	return id < 0 ? id : 0;
}
