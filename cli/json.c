/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/json.h"

#include <string.h>

#include "cli/escape.h"
#include "cli/breakdown.h"
#include "usdt/spec.h"

#define NS_PER_S 1000000000ull
#define S_PER_DAY 86400

/* Writes the last @width digits of @value. */
static char *put_digits(char *p, unsigned int value, int width)
{
	for (int i = width; i--; value /= 10)
		p[i] = '0' + value % 10;
	return p + width;
}

/*
 * Years are counted from March, so that the leap day is the last of its year,
 * and in eras of 400 years, which all have the same number of days.
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

void json_time(struct output *out, uint64_t wall_ns)
{
	uint64_t seconds = wall_ns / NS_PER_S;
	unsigned int of_day = seconds % S_PER_DAY;
	char buf[32], *p = put_date(buf, seconds / S_PER_DAY);

	*p++ = 'T';
	p = put_digits(p, of_day / 3600, 2);
	*p++ = ':';
	p = put_digits(p, of_day / 60 % 60, 2);
	*p++ = ':';
	p = put_digits(p, of_day % 60, 2);
	*p++ = '.';
	p = put_digits(p, wall_ns % NS_PER_S, 9);
	*p++ = 'Z';
	output_bytes(out, buf, p - buf);
}

void json_string(struct output *out, const char *key, const char *value)
{
	if (!value)
		return;
	output_string(out, key);
	escape_json(out, value, strlen(value), false);
	output_char(out, '"');
}

void json_number(struct output *out, const char *key, uint64_t value)
{
	output_string(out, key);
	output_u64(out, value);
}

static void json_base64(struct output *out, const char *text, size_t len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = (const uint8_t *)text;

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

static void json_query(struct output *out, const struct statement *st)
{
	bool valid = true;

	if (st->text) {
		output_string(out, ",\"query\":\"");
		valid = escape_json(out, st->text, st->text_len, st->truncated);
		output_char(out, '"');
	}
	if (st->has_query_bytes)
		json_number(out, ",\"query_bytes\":", st->query_bytes);
	else if (st->text && !st->truncated)
		json_number(out, ",\"query_bytes\":",
			    st->original_len ? st->original_len : st->text_len);
	if (st->text)
		output_string(out, st->truncated ? ",\"truncated\":true" : ",\"truncated\":false");
	if (!valid) {
		output_string(out, ",\"query_base64\":\"");
		json_base64(out, st->text, st->text_len);
		output_char(out, '"');
	}
}

void json_statement(struct output *out, const struct statement *st)
{
	output_string(out, st->running ? "{\"type\":\"running\",\"time\":\"" :
					 "{\"type\":\"statement\",\"time\":\"");
	json_time(out, st->wall_ns);
	output_char(out, '"');
	json_string(out, ",\"engine\":\"", st->engine);
	json_number(out, ",\"pid\":", st->pid);
	json_number(out, ",\"tid\":", st->tid);
	output_string(out, ",\"duration_ms\":");
	output_fixed(out, st->duration_ns, 6);
	json_string(out, ",\"user\":\"", st->user);
	json_string(out, ",\"database\":\"", st->database);
	json_string(out, ",\"client\":\"", st->client);
	json_string(out, ",\"container\":\"", st->container);
	if (st->connection_id)
		json_number(out, ",\"connection_id\":", st->connection_id);
	if (st->has_rows)
		json_number(out, ",\"rows\":", st->rows);
	if (st->has_status)
		output_string(out, st->failed ? ",\"status\":\"error\"" : ",\"status\":\"ok\"");
	if (st->error_code)
		json_number(out, ",\"errno\":", st->error_code);
	if (st->why)
		breakdown_json(out, st->why);
	json_query(out, st);
	output_string(out, "}\n");
}

void json_summary(struct output *out, const struct summary *sum)
{
	json_number(out, "{\"type\":\"summary\",\"statements\":", sum->statements);
	json_number(out, ",\"printed\":", sum->printed);
	json_number(out, ",\"lost\":{\"ring_full\":", sum->ring_full);
	json_number(out, ",\"table_full\":", sum->table_full);
	json_number(out, ",\"who_unknown\":", sum->who_unknown);
	json_number(out, ",\"start_without_end\":", sum->start_without_end);
	json_number(out, ",\"end_without_start\":", sum->end_without_start);
	json_number(out, ",\"text_unreadable\":", sum->text_unreadable);
	json_number(out, ",\"text_truncated\":", sum->text_truncated);
	output_string(out, "}}\n");
}

/* An argument's size and type, and where it is or why it cannot be had. */
static void json_argument(struct output *out, uint16_t machine, const struct spec *spec)
{
	const char *type = spec->is_float ? "float" : spec->is_signed ? "signed" : "unsigned";
	char text[512], *place;

	output_char(out, '{');
	if (spec->size) {
		json_number(out, "\"size\":", spec->size);
		json_string(out, ",\"type\":\"", type);
		output_char(out, ',');
	}
	if (spec->kind == SPEC_UNAVAILABLE) {
		json_string(out, "\"unavailable\":\"", spec_reason(spec->reason));
	} else {
		spec_format(machine, spec, text, sizeof(text));
		place = strstr(text, " @ ");
		json_string(out, "\"place\":\"", place ? place + 3 : text);
	}
	output_char(out, '}');
}

static void json_site(struct output *out, const struct elf *elf, const struct usdt_site *site)
{
	struct spec specs[SPEC_ARGS_MAX];
	size_t n = spec_parse_all(elf->machine, elf->is64, site->args, specs, SPEC_ARGS_MAX);

	json_number(out, "{\"address\":", site->vaddr);
	json_number(out, ",\"offset\":", site->offset);
	if (site->semaphore_vaddr)
		json_number(out, ",\"semaphore\":", site->semaphore_vaddr);
	if (site->semaphore_offset)
		json_number(out, ",\"semaphore_offset\":", site->semaphore_offset);
	json_string(out, ",\"spec\":\"", site->args);
	output_string(out, ",\"args\":[");
	for (size_t i = 0; i < n && i < SPEC_ARGS_MAX; i++) {
		output_string(out, i ? "," : "");
		json_argument(out, elf->machine, &specs[i]);
	}
	output_string(out, "]}");
}

void json_probe(struct output *out, const char *path, const struct elf *elf,
		const struct probe_site *sites, size_t count)
{
	json_string(out, "{\"type\":\"probe\",\"provider\":\"", sites[0].site.provider);
	json_string(out, ",\"name\":\"", sites[0].site.name);
	json_string(out, ",\"path\":\"", path);
	json_number(out, ",\"semaphore\":", sites[0].site.semaphore_vaddr);
	output_string(out, ",\"sites\":[");
	for (size_t i = 0; i < count; i++) {
		output_string(out, i ? "," : "");
		json_site(out, elf, &sites[i].site);
	}
	output_string(out, "]}\n");
}
