// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/site_print.h"

#include <stdio.h>
#include <string.h>

#include "cli/format/escape.h"
#include "cli/format/json.h"

#define LINE_WIDTH	100

static void site_foreign(struct output *out, const char *text)
{
	escape_terminal(out, text, strlen(text), false);
}

/* Write the name of a site's probe to @name: PROVIDER:NAME or that of the function. */
static void site_name(const struct target_site *site, char *name, size_t size)
{
	const struct engine_probe *probe = site->probe;

	if (probe->calls)
		snprintf(name, size, "call of %s in %s", probe->calls, probe->function);
	else if (probe->function)
		snprintf(name, size, "%s%s", probe->on_return ? "return of " : "", probe->function);
	else
		snprintf(name, size, "%s:%s", probe->provider, probe->probe);
}

void site_absent(char *text, size_t size, const struct target_site *site)
{
	for (size_t i = 0; i < site->nargs; i++) {
		const struct target_arg *arg = &site->args[i];
		size_t at = strlen(text);
		char entry[sizeof(arg->absent) + 64];

		if (*arg->spec || arg->replaced)
			continue;
		snprintf(entry, sizeof(entry), "%s (%s)", arg->name, arg->absent);
		if (!strstr(text, entry))
			snprintf(text + at, size - at, "%s%s", at ? ", " : "", entry);
	}
}

/* Write "text 8@%rdi, user 8@776(8(%rdi))" to @text, cut to @size bytes. */
static void site_places(const struct target_site *site, char *text, size_t size)
{
	size_t at = 0;

	*text = '\0';
	for (size_t i = 0; i < site->nargs && at < size; i++)
		if (*site->args[i].spec)
			at += (size_t)snprintf(text + at, size - at, "%s%s %s", at ? ", " : "",
					       site->args[i].name, site->args[i].spec);
}

/* Append @text in lines of a limited width, broken after commas. */
static void site_wrap(struct output *out, const char *text)
{
	static const char indent[] = "              ";
	size_t width = 0;

	output_string(out, indent);
	while (*text) {
		const char *comma = strstr(text, ", ");
		size_t len = comma ? (size_t)(comma - text) + 1 : strlen(text);

		if (width && width + len > LINE_WIDTH - sizeof(indent)) {
			output_char(out, '\n');
			output_string(out, indent);
			width = 0;
		}
		output_string(out, width ? " " : "");
		escape_terminal(out, text, len, false);
		width += len + 1;
		text += comma ? len + 1 : len;
	}
	output_char(out, '\n');
}

void site_print(struct output *out, const struct target_site *site, char last[SITE_TEXT])
{
	char name[256], places[SITE_TEXT];

	site_name(site, name, sizeof(name));
	output_string(out, "            ");
	site_foreign(out, name);
	output_printf(out, " 0x%llx", (unsigned long long)site->vaddr);
	if (site->semaphore_vaddr)
		output_printf(out, ", semaphore 0x%llx", (unsigned long long)site->semaphore_vaddr);
	output_char(out, '\n');
	site_places(site, places, sizeof(places));
	if (*places && !strcmp(places, last))
		output_string(out, "              the same arguments\n");
	else if (*places)
		site_wrap(out, places);
	memcpy(last, places, sizeof(places));
	for (size_t i = 0; i < site->nargs; i++) {
		if (*site->args[i].spec)
			continue;
		output_printf(out, "              %s is absent: ", site->args[i].name);
		site_foreign(out, site->args[i].absent);
		output_char(out, '\n');
	}
}

void site_json(struct output *out, const struct target_site *site)
{
	char name[256];

	site_name(site, name, sizeof(name));
	json_string(out, "{\"probe\":\"", name);
	json_number(out, ",\"address\":", site->vaddr);
	if (site->semaphore_vaddr)
		json_number(out, ",\"semaphore\":", site->semaphore_vaddr);
	output_string(out, ",\"args\":[");
	for (size_t i = 0; i < site->nargs; i++) {
		const struct target_arg *arg = &site->args[i];

		json_string(out, i ? ",{\"name\":\"" : "{\"name\":\"", arg->name);
		if (*arg->spec)
			json_string(out, ",\"spec\":\"", arg->spec);
		else
			json_string(out, ",\"absent\":\"", arg->absent);
		output_char(out, '}');
	}
	output_string(out, "]}");
}

bool site_lacks(struct output *out, const struct server_info *server, const char *before)
{
	static const struct {
		uint32_t bits;
		const char *words;
	} all[] = {
		{ TARGET_HAS_STATUS | TARGET_HAS_ERRNO, "failures" },
		{ TARGET_HAS_ERRNO, "error numbers" },
		{ TARGET_HAS_ROWS | TARGET_HAS_CHANGES, "rows" },
		{ TARGET_HAS_ROWS, "sent rows" }, { TARGET_HAS_CHANGES, "changed rows" },
		{ TARGET_HAS_USER, "users" }, { TARGET_HAS_DATABASE, "databases" },
		{ TARGET_HAS_CLIENT, "clients" },
		{ TARGET_HAS_PREPARED, "prepared statements" },
		{ TARGET_HAS_EXAMINED, "examined rows" },
		{ TARGET_HAS_LOCKED | TARGET_HAS_LOCK_TIME, "lock times" },
		{ TARGET_HAS_EXECUTED | TARGET_HAS_FETCHED, "texts behind EXECUTE and FETCH" },
		{ TARGET_HAS_EXECUTED, "texts behind EXECUTE" },
		{ TARGET_HAS_FETCHED, "texts behind FETCH" },
		{ TARGET_HAS_NESTED, "statements in routines" },
		{ TARGET_HAS_EVENTS, "events" },
		{ TARGET_HAS_APPLIED, "statements that replicas apply" },
		{ TARGET_HAS_ROW_CHANGES, "changes of rows that replicas apply" },
		{ TARGET_HAS_INIT, "statements of init_file" },
	};
	uint32_t has = server->has | (TARGET_NOT_OF_ALL & ~server->wants);
	bool any = false;

	if (server->engine->one_row_count && has & TARGET_HAS_ROWS)
		has |= TARGET_HAS_CHANGES;
	if (!(has & TARGET_LEAVES_PREPARED))
		has |= TARGET_HAS_PREPARED;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (has & all[i].bits)
			continue;
		has |= all[i].bits;
		output_string(out, before);
		output_string(out, all[i].words);
		before = ", ";
		any = true;
	}
	return any;
}
