/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/format/json.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/base.h"
#include "cli/format/escape.h"
#include "cli/version.h"

/* Incremented when a member is renamed, removed or changes its meaning. */
#define JSON_SCHEMA	1
#define S_PER_DAY 86400

/* Write the last @width digits of @value. Return the end. */
static char *put_digits(char *p, unsigned int value, int width)
{
	for (int i = width; i--; value /= 10)
		p[i] = '0' + value % 10;
	return p + width;
}

/*
 * Write "2024-02-29" and return its end. Years start in March, so that the leap day is the last
 * day of its year, and are counted in eras of 400 years, which all have the same number of days.
 */
static char *put_date(char *p, unsigned int days_since_1970)
{
	unsigned int days = days_since_1970 + 719468;	/* since 0000-03-01 */
	unsigned int era = days / 146097, day_of_era = days % 146097;
	unsigned int year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 -
				    day_of_era / 146096) / 365;
	unsigned int day = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
	unsigned int month = (5 * day + 2) / 153;	/* 0: March */

	day -= (153 * month + 2) / 5;
	p = put_digits(p, era * 400 + year_of_era + (month >= 10), 4);
	*p++ = '-';
	p = put_digits(p, month < 10 ? month + 3 : month - 9, 2);
	*p++ = '-';
	return put_digits(p, day + 1, 2);
}

void json_time_text(char buf[JSON_TIME], uint64_t wall_ns)
{
	uint64_t seconds = wall_ns / NS_PER_S;
	unsigned int of_day = seconds % S_PER_DAY;
	char *p = put_date(buf, seconds / S_PER_DAY);

	*p++ = 'T';
	p = put_digits(p, of_day / 3600, 2);
	*p++ = ':';
	p = put_digits(p, of_day / 60 % 60, 2);
	*p++ = ':';
	p = put_digits(p, of_day % 60, 2);
	*p++ = '.';
	p = put_digits(p, wall_ns % NS_PER_S, 9);
	*p++ = 'Z';
	*p = '\0';
}

void json_time(struct output *out, uint64_t wall_ns)
{
	char buf[JSON_TIME];

	json_time_text(buf, wall_ns);
	output_bytes(out, buf, JSON_TIME - 1);
}

void json_string(struct output *out, const char *key, const char *value)
{
	if (!value)
		return;
	output_string(out, key);
	escape_json(out, value, strlen(value), false);
	output_char(out, '"');
}

void json_known(struct output *out, const char *key, const char *value)
{
	json_string(out, key, value && *value ? value : NULL);
}

void json_server(struct output *out, const struct server *server)
{
	json_string(out, "{\"engine\":\"", server->product);
	json_known(out, ",\"version\":\"", server->version);
	if (server->pid)
		json_number(out, ",\"pid\":", server->pid);
	json_known(out, ",\"path\":\"", server->path);
	json_known(out, ",\"container\":\"", server->container);
	output_char(out, '}');
}

void json_head(struct output *out, const char *key, uint64_t wall_ns,
	       const struct server *server)
{
	output_string(out, key);
	json_time(out, wall_ns);
	output_string(out, server ? "\",\"server\":" : "\"");
	if (server)
		json_server(out, server);
}

void json_start(struct output *out, uint64_t wall_ns, const char *host, const char *command)
{
	struct utsname name;
	char version[32];

	snprintf(version, sizeof(version), "%.*s", (int)strcspn(version_text, " "), version_text);
	json_head(out, "{\"type\":\"start\",\"time\":\"", wall_ns, NULL);
	json_number(out, ",\"schema\":", JSON_SCHEMA);
	if (!host && !uname(&name))
		host = name.nodename;
	json_string(out, ",\"host\":\"", host);
	json_string(out, ",\"version\":\"", version);
	json_string(out, ",\"command\":\"", command);
	output_string(out, "}\n");
}

void json_number(struct output *out, const char *key, uint64_t value)
{
	output_string(out, key);
	output_u64(out, value);
}

void json_who(struct output *out, const struct who *who)
{
	if (who->connection)
		json_number(out, ",\"connection_id\":", who->connection);
	json_known(out, ",\"user\":\"", who->user);
	json_known(out, ",\"database\":\"", who->database);
	json_known(out, ",\"client\":\"", who->client);
	json_known(out, ",\"application\":\"", who->application);
	json_known(out, ",\"backend\":\"", who->backend);
}

void json_ms(struct output *out, const char *key, uint64_t ns)
{
	output_string(out, key);
	output_fixed(out, ns, 6);
}

void json_base64(struct output *out, const void *data, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = data;

	for (; len; p += 3) {
		size_t n = len < 3 ? len : 3;
		uint32_t bits = p[0] << 16 | (n > 1 ? p[1] << 8 : 0) | (n > 2 ? p[2] : 0);
		char group[4] = { digits[bits >> 18], digits[bits >> 12 & 63],
				  n > 1 ? digits[bits >> 6 & 63] : '=',
				  n > 2 ? digits[bits & 63] : '=' };

		output_bytes(out, group, sizeof(group));
		len -= n;
	}
}
