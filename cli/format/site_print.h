/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Descriptions of probe sites. */
#ifndef CLI_FORMAT_SITE_PRINT_H
#define CLI_FORMAT_SITE_PRINT_H

#include "cli/output.h"
#include "db/discover/announce.h"

#define SITE_TEXT	4096	/* bytes of the text of a site's arguments */

/*
 * Append the arguments of @site that are absent, unless others provide the same, with the reasons,
 * to the string @text of @size bytes, each once: "client (the file does not export MyProcPort)".
 */
void site_absent(char *text, size_t size, const struct target_site *site);

/*
 * Append the lines of a site: its probe, address, semaphore and arguments. @last has the arguments
 * of the previous site, "" at first, and is replaced: the same ones are not repeated.
 */
void site_print(struct output *out, const struct target_site *site, char last[SITE_TEXT]);

/* Append a site as a JSON object. */
void site_json(struct output *out, const struct target_site *site);

/*
 * Append @before and the properties of a statement that @server lacks. Return false, and append
 * nothing, if it has all.
 */
bool site_lacks(struct output *out, const struct server_info *server, const char *before);

#endif
