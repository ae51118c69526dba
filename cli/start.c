// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/start.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/message.h"
#include "cli/option/help.h"
#include "cli/version.h"

/*
 * Write the path of the executable file @name in the first directory of @path that has one: a list
 * separated by ':', as in PATH. Return false if none has, if @name contains a '/', or if the path
 * needs more than @size bytes. An empty or relative directory is skipped.
 */
static bool start_find(const char *path, const char *name, char *buf, size_t size)
{
	struct stat st;
	size_t len;

	for (; *name && !strchr(name, '/'); path += len + 1) {
		len = strcspn(path, ":");
		if (*path == '/' && len + 1 + strlen(name) < size) {
			memcpy(buf, path, len);
			snprintf(buf + len, size - len, "/%s", name);
			if (!access(buf, X_OK) && !stat(buf, &st) && S_ISREG(st.st_mode))
				return true;
		}
		if (!path[len])
			break;
	}
	return false;
}

/* Search PATH for the programs that -x names. Those not in it are files of this directory. */
static void start_search(struct options *options)
{
	const char *path = getenv("PATH");
	char found[PATH_MAX], *copy;

	for (unsigned int i = 0; path && i < options->path_count; i++) {
		copy = start_find(path, options->paths[i], found, sizeof(found)) ? strdup(found) :
										   NULL;
		if (copy)
			options->paths[i] = copy;
	}
}

int start_command(const struct command *command, int argc, char *argv[], struct options *options,
		  struct output *out, struct output *err)
{
	output_init(out, STDOUT_FILENO);
	output_init(err, STDERR_FILENO);
	/* write(2) fails instead, which is reported. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	if (option_parse(command, argc, argv, options, err)) {
		output_flush(err);
		return EXIT_USAGE;
	}
	if (!options->help && !options->version) {
		if (option_find(command, "path", strlen("path")))
			start_search(options);
		return START_GO;
	}
	if (options->help)
		help_print(command, out);
	else
		output_printf(out, "dbslower %s\n", version_text);
	return message_output(err, output_flush(out));
}
