// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/option/complete.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/option/option.h"

bool complete_is_asked(int argc, char *const argv[])
{
	return argc > 2 && !strcmp(argv[1], "--complete");
}

static void complete_options(const struct command *command, struct output *out)
{
	for (size_t i = 0; command->options[i]; i++) {
		const struct option_row *row = command->options[i];

		if (!row->help)
			continue;
		if (row->letter)
			output_printf(out, "-%c ", row->letter);
		output_printf(out, "--%s\t%s\n", row->name, row->help);
	}
}

/* Print candidates for a word other than an option. @first: include the commands. */
static void complete_word(const struct command *command, const char *word, bool first,
			  struct output *out)
{
	for (size_t i = 0; first && command_table[i]; i++)
		output_printf(out, "%s\t%s\n", command_table[i]->name, command_table[i]->summary);
	switch (command->words) {
	case WORDS_RECORDING:
		output_string(out, ":files\n");
		break;
	case WORDS_STATEMENTS:
	case WORDS_SESSION:
		option_engine_words(out);
		break;
	case WORDS_PROBES:
		output_string(out, strchr(word, '/') ? ":files\n" : ":probes\n");
		break;
	case WORDS_FREE:
		output_string(out, ":files\n");
		break;
	}
}

/* Return the option that @word, -x or --path, names, or NULL. */
static const struct option_row *complete_find(const struct command *command, const char *word)
{
	if (word[0] != '-' || !word[1])
		return NULL;
	if (word[1] == '-')
		return option_find(command, word + 2, strlen(word + 2));
	return word[2] ? NULL : option_find_letter(command, word[1]);
}

int complete_run(int argc, char *const argv[])
{
	static struct output out;
	char *const *words = argv + 2;
	int count = argc - 2, taken, err;
	const struct command *command = command_choose(count - 1, words, &taken);
	const char *word = words[count - 1], *before = count > 1 ? words[count - 2] : "";
	const struct option_row *row;

	/* bash splits --name=value into three words. */
	if (!strcmp(word, "="))
		word = "";
	else if (!strcmp(before, "=") && count > 2)
		before = words[count - 3];
	output_init(&out, STDOUT_FILENO);
	row = count > 1 + taken ? complete_find(command, before) : NULL;
	if (row && row->arg && row->complete)
		row->complete(&out);
	else if (!(row && row->arg) && *word == '-')
		complete_options(command, &out);
	else if (!(row && row->arg))
		complete_word(command, word, count == 2 && !command_of_program(words[0]), &out);
	err = output_flush(&out);
	return err && err != -EPIPE ? EXIT_FAILED : EXIT_OK;
}
