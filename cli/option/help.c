// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/option/help.h"

#include <string.h>

#include "cli/option/set.h"
#include "cli/option/table.h"
#include "db/engines.h"

#define HELP_COLUMN 28

static void help_row(struct output *out, const struct option_row *row)
{
	size_t width = 8 + strlen(row->name);

	output_string(out, row->letter ? "  -" : "    ");
	if (row->letter) {
		output_char(out, row->letter);
		output_string(out, ", --");
	} else {
		output_string(out, "  --");
	}
	output_string(out, row->name);
	if (row->arg) {
		output_char(out, ' ');
		output_string(out, row->arg);
		width += 1 + strlen(row->arg);
	}
	output_spaces(out, width < HELP_COLUMN ? HELP_COLUMN - width : 1);
	output_string(out, row->help);
	output_char(out, '\n');
}

/* List the commands, in the help of the default one. */
static void help_commands(struct output *out)
{
	output_string(out, "\nCommands (each has its own --help):\n");
	for (size_t i = 0; command_table[i]; i++)
		output_printf(out, "  %-12s  %s\n", command_table[i]->name,
			      command_table[i]->summary);
}

/* The usage line; for [ENGINE], the first word of each engine. */
static void help_usage(const struct command *command, struct output *out)
{
	static const char placeholder[] = "[ENGINE]";
	const char *usage = command->usage;

	output_printf(out, "usage: %s ", command->invocation);
	if (!strncmp(usage, placeholder, sizeof(placeholder) - 1)) {
		for (size_t i = 0; engine_table[i]; i++)
			output_printf(out, "%s%s", i ? "|" : "[", engine_table[i]->words[0]);
		usage += sizeof(placeholder) - 2;
	}
	output_printf(out, "%s\n\n", usage);
}

void help_print(const struct command *command, struct output *out)
{
	const struct option_row *columns = option_find(command, "columns", strlen("columns"));

	help_usage(command, out);
	output_string(out, command->about);
	output_char(out, '\n');
	for (size_t i = 0; command->options[i]; i++)
		if (command->options[i]->help)
			help_row(out, command->options[i]);
	if (columns && columns->set == option_set_columns)
		field_help(out, command->transactions);
	if (command == command_table[0])
		help_commands(out);
	output_string(out, "\nExamples:\n");
	output_string(out, command->examples);
}
