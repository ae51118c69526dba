// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/command.h"

#include <stddef.h>
#include <string.h>

const struct command *command_find(const char *name)
{
	for (size_t i = 0; command_table[i]; i++)
		if (!strcmp(command_table[i]->name, name))
			return command_table[i];
	return NULL;
}

bool command_is_other(const char *word)
{
	size_t len = strlen(word);
	const char *at = len ? strstr(command_others, word) : NULL;

	return at && !strchr(word, ' ') && at[-1] == ' ' && at[len] == ' ';
}

const struct command *command_of_program(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; command_table[i]; i++)
		if (command_table[i]->alias && !strcmp(command_table[i]->alias, name))
			return command_table[i];
	return NULL;
}

const struct command *command_choose(int argc, char *const argv[], int *taken)
{
	const struct command *command = argc > 0 ? command_of_program(argv[0]) : NULL;

	*taken = 0;
	if (command)
		return command;
	command = argc > 1 ? command_find(argv[1]) : NULL;
	*taken = command ? 1 : 0;
	return command ? command : command_table[0];
}
