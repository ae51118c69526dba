/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is found as JSON, one object a line. What is not known has no key. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include "cli/output.h"
#include "db/statement.h"
#include "usdt/probe.h"

/* Adds a time since 1970 in RFC 3339, UTC: 2024-02-29T23:59:59.123456789Z, without quotes. */
void json_time(struct output *out, uint64_t wall_ns);

/* Adds @key, which is all up to the value's first quote, and @value; nothing where that is NULL. */
void json_string(struct output *out, const char *key, const char *value);

/* Adds @key, which is all up to the value, and @value. */
void json_number(struct output *out, const char *key, uint64_t value);

/* Adds one line with everything known of @st. */
void json_statement(struct output *out, const struct statement *st);

/* Adds the line that ends the output. */
void json_summary(struct output *out, const struct summary *sum);

/* Adds one line with the USDT probe of file @elf, open by name @path, that has these sites. */
void json_probe(struct output *out, const char *path, const struct elf *elf,
		const struct probe_site *sites, size_t count);

#endif
