// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/field_json.h"

#include "cli/format/breakdown.h"
#include "cli/format/escape.h"
#include "cli/format/fields.h"
#include "cli/format/json.h"
#include "sql/tags.h"

static void put_tags(struct output *out, const struct tags *tags)
{
	const struct tag *tag = tags->tag;

	for (unsigned int i = 0; i < tags->count; i++, tag++) {
		output_string(out, i ? ",\"" : "{\"");
		escape_json(out, tag->key, tag->key_len, false);
		output_string(out, "\":\"");
		escape_json(out, tag->value, tag->len, false);
		output_char(out, '"');
	}
	output_char(out, '}');
}

/* Append the words of @text, which are separated by commas. */
static void put_list(struct output *out, const char *text, size_t len)
{
	output_string(out, len ? "[\"" : "[");
	for (size_t i = 0; i < len; i++)
		if (text[i] == ',')
			output_string(out, "\",\"");
		else
			output_char(out, text[i]);
	output_string(out, len ? "\"]" : "]");
}

/* Append the value of @field after its key. Return false if it is text that is not valid UTF-8. */
static bool put_value(struct output *out, const struct field *field,
		      const struct field_value *value, const struct statement *st)
{
	bool valid = true;

	switch ((enum field_type)field->type) {
	case FIELD_STRING:
		escape_json(out, value->text, value->len, false);
		output_char(out, '"');
		break;
	case FIELD_QUERY:
		valid = escape_json(out, value->text, value->len, st->truncated);
		output_char(out, '"');
		break;
	case FIELD_QUERY_OF:
		escape_json(out, value->text, value->len, st->of_cut);
		output_char(out, '"');
		break;
	case FIELD_QUERY_BYTES:
		json_base64(out, value->text, value->len);
		output_char(out, '"');
		break;
	case FIELD_NUMBER:
		output_u64(out, value->number);
		break;
	case FIELD_FLAG:
		output_string(out, value->number ? "true" : "false");
		break;
	case FIELD_MS:
		output_fixed(out, value->number, 6);
		break;
	case FIELD_PARTS:
		breakdown_parts_json(out, st->why->ns);
		break;
	case FIELD_WAITS:
		breakdown_waits_json(out, st);
		break;
	case FIELD_WORKERS:
		breakdown_workers_json(out, st->why);
		break;
	case FIELD_PHASES:
		breakdown_phases_json(out, st->why);
		break;
	case FIELD_USE:
		breakdown_use_json(out, st->why->used, st->why->use);
		break;
	case FIELD_LIST:
		put_list(out, value->text, value->len);
		break;
	case FIELD_TAGS:
		put_tags(out, st->tags);
		break;
	case FIELD_TIME:
		json_time(out, st->wall_ns + value->number);
		output_char(out, '"');
		break;
	}
	return valid;
}

void field_json(struct output *out, const struct statement *st)
{
	struct field_value value;
	bool valid = true;

	if (st->transaction)
		json_head(out, st->transaction->open ? "{\"type\":\"open\",\"time\":\"" :
			  "{\"type\":\"transaction\",\"time\":\"",
			  st->wall_ns + st->duration_ns, st->server);
	else
		json_head(out, st->running ? "{\"type\":\"running\",\"time\":\"" :
			  st->prepare ? "{\"type\":\"prepare\",\"time\":\"" :
					"{\"type\":\"statement\",\"time\":\"",
			  st->wall_ns, st->server);
	for (const struct field *const *next = field_members(); *next; next++) {
		const struct field *field = *next;

		if ((valid && field->type == FIELD_QUERY_BYTES) ||
		    !field->get(st, field->which, &value))
			continue;
		output_bytes(out, field->json, field->json_len);
		valid &= put_value(out, field, &value, st);
	}
	output_string(out, "}\n");
}
