/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is said of the places where probes go. */
#ifndef CLI_SITE_PRINT_H
#define CLI_SITE_PRINT_H

#include "cli/output.h"
#include "db/target.h"

/*
 * Writes the name of a site's probe, PROVIDER:NAME or the function's, up to @size bytes with the
 * NUL.
 */
void site_name(const struct target_site *site, char *name, size_t size);

/* Adds a line for each argument of @site that cannot be read, with the reason. */
void site_absent(struct output *out, const struct target_site *site);

/*
 * Adds the lines of a site: probe, address, semaphore, where each argument is, and why one is
 * absent. Where they are is not said where it is what *@last has, which is replaced; start it
 * with "".
 */
#define SITE_TEXT	4096

void site_print(struct output *out, const struct target_site *site, char last[SITE_TEXT]);

/* Adds a site as a JSON object. */
void site_json(struct output *out, const struct target_site *site);

/*
 * Adds @before and the words for what @shows (TARGET_SHOWS_…) does not have of @engine's
 * statements; nothing where it has all. Whether it did.
 */
bool site_lacks(struct output *out, const struct engine *engine, uint32_t has,
		const char *before);

#endif
