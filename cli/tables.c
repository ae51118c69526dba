// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/tables.h"

#include <unistd.h>

#include "cli/command.h"
#include "cli/format/fields.h"
#include "cli/format/json.h"
#include "db/loss.h"
#include "cli/message.h"
#include "cli/option/option.h"
#include "db/session/breakdown.h"
#include "host/privileges.h"
#include "loader/feature.h"

/* Begin element @i of an array, an object with the string @value at @key. */
static void tables_row(struct output *out, size_t i, const char *key, const char *value)
{
	output_string(out, i ? ",{\"" : "{\"");
	output_string(out, key);
	json_string(out, "\":\"", value ? value : "");
}

/* Append element @i of an array of strings; "" for NULL. */
static void tables_name(struct output *out, size_t i, const char *name)
{
	json_string(out, i ? ",\"" : "\"", name ? name : "");
}

static void tables_fields(struct output *out)
{
	output_string(out, "{\"fields\":[");
	for (const struct field *field = field_rows; field->get; field++) {
		tables_row(out, (size_t)(field - field_rows), "column", field->column);
		json_string(out, ",\"header\":\"", field->header);
		json_string(out, ",\"json\":\"", field->json);
		json_string(out, ",\"attribute\":\"", field->attribute);
		json_number(out, ",\"position\":", field->position);
		json_number(out, ",\"of\":", field->of);
		output_char(out, '}');
	}
}

static void tables_options(struct output *out, const struct command *command)
{
	for (size_t i = 0; command->options[i]; i++) {
		const struct option_row *row = command->options[i];

		tables_row(out, i, "name", row->name);
		json_string(out, ",\"arg\":\"", row->arg);
		json_string(out, ",\"help\":\"", row->help);
		output_string(out, row->live ? ",\"live\":true}" : "}");
	}
}

static void tables_commands(struct output *out)
{
	output_string(out, "],\"commands\":[");
	for (size_t i = 0; command_table[i]; i++) {
		tables_row(out, i, "name", command_table[i]->name);
		output_string(out, command_table[i]->replays ? ",\"replays\":true" : "");
		output_string(out, ",\"options\":[");
		tables_options(out, command_table[i]);
		output_string(out, "]}");
	}
}

static void tables_messages(struct output *out)
{
	const struct message_words *row;
	const char *remedy;

	output_string(out, "],\"messages\":[");
	for (size_t i = 0; (row = message_at(i)); i++) {
		tables_row(out, i, "subject", row->subject);
		json_string(out, ",\"cause\":\"", row->cause);
		json_string(out, ",\"remedy\":\"", row->remedy);
		json_number(out, ",\"kind\":", i);
		output_char(out, '}');
	}
	output_string(out, "],\"remedies\":[");
	for (size_t i = 0; (remedy = message_remedy_at(i)); i++)
		tables_name(out, i, remedy);
}

static void tables_losses(struct output *out)
{
	output_string(out, "],\"losses\":[");
	for (size_t i = 0; i < LOSSES; i++) {
		tables_row(out, i, "name", loss_rows[i].name);
		json_string(out, ",\"words\":\"", loss_rows[i].words);
		output_char(out, '}');
	}
}

static void tables_breakdown(struct output *out)
{
	char call[SYSCALL_NAME];

	output_string(out, "],\"parts\":[");
	for (unsigned int i = 0; i < BREAKDOWN_PARTS; i++)
		tables_name(out, i, breakdown_part_name((enum breakdown_part)i));
	output_string(out, "],\"phases\":[");
	for (unsigned int i = 0; i < PHASES; i++)
		tables_name(out, i, breakdown_phase_name((enum phase)i));
	output_string(out, "],\"use\":[");
	for (unsigned int i = 0; i < USES; i++)
		tables_name(out, i, breakdown_use_name((enum use)i));
	output_string(out, "],\"calls\":[");
	for (unsigned int i = 0; i < SYSCALL_MAX; i++)
		tables_name(out, i, syscall_name(i, call) ? call : NULL);
}

static void tables_host(struct output *out)
{
	struct privileges host;

	privileges_read(&host);
	output_string(out, "],\"sysctls\":[");
	for (size_t i = 0; i < PRIVILEGES_SYSCTLS; i++)
		tables_name(out, i, host.sysctls[i].name);
	output_string(out, "],\"features\":[");
	for (int i = 0; i < FEATURES_ADDED; i++) {
		tables_row(out, (size_t)i, "name", feature_name((enum feature)i));
		json_string(out, ",\"since\":\"", feature_since((enum feature)i));
		json_string(out, ",\"fallback\":\"", feature_fallback((enum feature)i));
		output_char(out, '}');
	}
	output_string(out, "]}\n");
}

int tables_print(void)
{
	static struct output out;

	output_init(&out, STDOUT_FILENO);
	tables_fields(&out);
	tables_commands(&out);
	tables_messages(&out);
	tables_losses(&out);
	tables_breakdown(&out);
	tables_host(&out);
	return output_flush(&out) ? EXIT_FAILED : EXIT_OK;
}
