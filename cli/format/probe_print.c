// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/probe_print.h"

#include <string.h>

#include "cli/format/escape.h"
#include "cli/format/json.h"
#include "host/clock.h"
#include "usdt/spec.h"

/* Append the lines of a site: its address and arguments, and with @spec these as recorded. */
static void print_site(struct output *out, const char *path, const struct elf *elf,
		       const struct usdt_site *site, size_t number, bool spec)
{
	struct spec specs[SPEC_ARGS_MAX];
	size_t n = spec_parse_all(elf->machine, elf->is64, site->args, specs, SPEC_ARGS_MAX);
	char text[512];

	output_printf(out, "  location #%zu ", number);
	escape_terminal(out, path, strlen(path), false);
	output_printf(out, " 0x%llx\n", (unsigned long long)site->vaddr);
	for (size_t i = 0; i < n && i < SPEC_ARGS_MAX; i++) {
		spec_format(elf->machine, &specs[i], text, sizeof(text));
		output_printf(out, "    argument #%zu ", i + 1);
		escape_terminal(out, text, strlen(text), false);
		output_char(out, '\n');
	}
	if (!n || !spec)
		return;
	output_string(out, "    spec ");
	escape_terminal(out, site->args, strlen(site->args), false);
	output_char(out, '\n');
}

/* Append " [sema 0x601036]": each semaphore of the first @count sites once, 0 for none. */
static void print_semaphores(struct output *out, const struct probe_site *sites, size_t count)
{
	uint64_t last = sites[0].site.semaphore_vaddr;

	output_printf(out, " [sema 0x%llx", (unsigned long long)last);
	for (size_t i = 1; i < count; i++) {
		if (sites[i].site.semaphore_vaddr == last)
			continue;
		last = sites[i].site.semaphore_vaddr;
		output_printf(out, ", 0x%llx", (unsigned long long)last);
	}
	output_char(out, ']');
}

void probe_print(struct output *out, const char *path, const struct elf *elf,
		 const struct probe_site *sites, size_t count, unsigned int verbose)
{
	const struct usdt_site *site = &sites[0].site;
	bool bcc = verbose & PROBE_PRINT_BCC;

	verbose &= ~PROBE_PRINT_BCC;
	if (!bcc || !verbose) {
		escape_terminal(out, path, strlen(path), false);
		output_char(out, ' ');
	}
	escape_terminal(out, site->provider, strlen(site->provider), false);
	output_char(out, ':');
	escape_terminal(out, site->name, strlen(site->name), false);
	if (verbose)
		print_semaphores(out, sites, bcc ? 1 : count);
	output_char(out, '\n');
	if (verbose == 1)
		output_printf(out, "  %zu location(s)\n  %zu argument(s)\n", count,
			      spec_parse_all(elf->machine, elf->is64, site->args, NULL, 0));
	for (size_t i = 0; verbose > 1 && i < count; i++)
		print_site(out, path, elf, &sites[i].site, i + 1, !bcc);
}

/* Append an argument: its size, its type, and its place or the reason why it is unavailable. */
static void json_argument(struct output *out, uint16_t machine, const struct spec *spec)
{
	const char *type = spec->is_float ? "float" : spec->is_signed ? "signed" : "unsigned";
	char text[512], *place;

	output_char(out, '{');
	if (spec->size) {
		json_number(out, "\"size_bytes\":", spec->size);
		json_string(out, ",\"type\":\"", type);
		output_char(out, ',');
	}
	if (spec->kind == SPEC_UNAVAILABLE) {
		json_string(out, "\"unavailable\":\"", spec_reason(spec->reason));
	} else {
		spec_format(machine, spec, text, sizeof(text));
		place = strstr(text, " @ ");
		json_string(out, "\"place\":\"", place ? place + 3 : text);
	}
	output_char(out, '}');
}

static void json_site(struct output *out, const struct elf *elf, const struct usdt_site *site)
{
	struct spec specs[SPEC_ARGS_MAX];
	size_t n = spec_parse_all(elf->machine, elf->is64, site->args, specs, SPEC_ARGS_MAX);

	json_number(out, "{\"address\":", site->vaddr);
	json_number(out, ",\"offset\":", site->offset);
	if (site->semaphore_vaddr)
		json_number(out, ",\"semaphore\":", site->semaphore_vaddr);
	if (site->semaphore_offset)
		json_number(out, ",\"semaphore_offset\":", site->semaphore_offset);
	json_string(out, ",\"spec\":\"", site->args);
	output_string(out, ",\"args\":[");
	for (size_t i = 0; i < n && i < SPEC_ARGS_MAX; i++) {
		output_string(out, i ? "," : "");
		json_argument(out, elf->machine, &specs[i]);
	}
	output_string(out, "]}");
}

void probe_json(struct output *out, const char *path, const struct elf *elf,
		const struct probe_site *sites, size_t count)
{
	json_head(out, "{\"type\":\"probe\",\"time\":\"", clock_ns(CLOCK_REALTIME), NULL);
	json_string(out, ",\"provider\":\"", sites[0].site.provider);
	json_string(out, ",\"name\":\"", sites[0].site.name);
	json_string(out, ",\"path\":\"", path);
	json_number(out, ",\"semaphore\":", sites[0].site.semaphore_vaddr);
	output_string(out, ",\"sites\":[");
	for (size_t i = 0; i < count; i++) {
		output_string(out, i ? "," : "");
		json_site(out, elf, &sites[i].site);
	}
	output_string(out, "]}\n");
}
