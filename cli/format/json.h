/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Primitives of JSON output, one object a line. A @key is everything up to the value: the comma,
 * the name and, for a string, its first quote.
 */
#ifndef CLI_FORMAT_JSON_H
#define CLI_FORMAT_JSON_H

#include "cli/output.h"
#include "db/event.h"

/* Append an object with the members of @server, or of several, that are known. */
void json_server(struct output *out, const struct server *server);

/*
 * Append @key, which has the type of the record, the time as by json_time() and, unless it is NULL,
 * the server.
 */
void json_head(struct output *out, const char *key, uint64_t wall_ns,
	       const struct server *server);

/*
 * Append the record that begins the output of @command: the time @wall_ns, the host, which is this
 * one if @host is NULL, and the version of the schema.
 */
void json_start(struct output *out, uint64_t wall_ns, const char *host, const char *command);

#define JSON_TIME	31	/* bytes of a time with its NUL */

/* Write a time since 1970 as json_time() to @buf. */
void json_time_text(char buf[JSON_TIME], uint64_t wall_ns);

/* Append a time since 1970 in RFC 3339, UTC: 2024-02-29T23:59:59.123456789Z, without quotes. */
void json_time(struct output *out, uint64_t wall_ns);

/* Append @key and the string @value, of foreign bytes; nothing if @value is NULL. */
void json_string(struct output *out, const char *key, const char *value);

/* The same, and nothing if @value is "", which is unknown. */
void json_known(struct output *out, const char *key, const char *value);

/* Append what is known of the session @who, without its process and thread. */
void json_who(struct output *out, const struct who *who);

/* Append @key and @value. */
void json_number(struct output *out, const char *key, uint64_t value);

/* Append @key and @ns in ms. */
void json_ms(struct output *out, const char *key, uint64_t ns);

/* Append @len bytes of @data in base64 (RFC 4648), without quotes. */
void json_base64(struct output *out, const void *data, size_t len);

#endif
