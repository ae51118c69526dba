// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/plan/plan.h"

#include <string.h>

#define HEAD	4	/* bytes before a value: the key, a spare one, and the length */

static void put(struct plan_writer *writer, enum plan_key key, const void *value, size_t len)
{
	uint16_t len16 = (uint16_t)len;
	char *at = writer->bytes + writer->len;

	writer->full |= writer->len + HEAD + len > PLAN_BYTES;
	if (writer->full)
		return;
	at[0] = (char)key;
	at[1] = 0;
	memcpy(at + 2, &len16, sizeof(len16));
	memcpy(at + HEAD, value, len);
	writer->len += HEAD + len;
}

void plan_put(struct plan_writer *writer, enum plan_key key, uint64_t number)
{
	put(writer, key, &number, sizeof(number));
}

void plan_put_real(struct plan_writer *writer, enum plan_key key, double real)
{
	put(writer, key, &real, sizeof(real));
}

void plan_put_string(struct plan_writer *writer, enum plan_key key, const char *text, size_t len)
{
	size_t most = key == PLAN_TEXT ? PLAN_TEXT_BYTES : PLAN_STRING;

	put(writer, key, text, len < most ? len : most);
}

/* Read the item at @at to *@key and *@value. Return where the next one is, or 0: there is none. */
static size_t item_read(const struct plan_reader *reader, size_t at, unsigned int *key,
			struct plan_item *value)
{
	uint16_t len;

	if (reader->len - at < HEAD)
		return 0;
	*key = (unsigned char)reader->bytes[at];
	memcpy(&len, reader->bytes + at + 2, sizeof(len));
	at += HEAD;
	if (reader->len - at < len)
		return 0;
	*value = (struct plan_item){ reader->bytes + at, len };
	return at + len;
}

/* Return whether an element begins with this key. */
static bool key_begins(unsigned int key)
{
	return key == PLAN_STATEMENT || key == PLAN_NODE || key == PLAN_MISSED;
}

bool plan_next(struct plan_reader *reader, struct plan_element *element)
{
	struct plan_item value;
	unsigned int key;
	size_t next = item_read(reader, reader->at, &key, &value);

	*element = (struct plan_element){ .is_node = next && key == PLAN_NODE };
	if (!next || !key_begins(key))
		return false;
	do {
		if (key < PLAN_KEYS)
			element->value[key] = value;
		reader->at = next;
		next = item_read(reader, reader->at, &key, &value);
	} while (next && !key_begins(key));
	return true;
}

size_t plan_redact(char *plan, size_t len, enum fingerprint_dialect dialect)
{
	struct plan_reader reader = { .bytes = plan, .len = len };
	size_t to = 0, next;
	struct plan_item item;
	unsigned int key;

	while ((next = item_read(&reader, reader.at, &key, &item))) {
		uint16_t rest = (uint16_t)item.len;

		/* It moves to the left only. */
		memmove(plan + to, plan + reader.at, HEAD + item.len);
		if (key == PLAN_TEXT)
			rest = (uint16_t)fingerprint_redact(dialect, plan + to + HEAD, item.len,
							    item.len == PLAN_TEXT_BYTES,
							    plan + to + HEAD);
		memcpy(plan + to + 2, &rest, sizeof(rest));
		to += HEAD + rest;
		reader.at = next;
	}
	return to;
}

uint64_t plan_number(const struct plan_element *element, enum plan_key key)
{
	const struct plan_item *value = &element->value[key];
	uint64_t number = 0;

	if (value->len == sizeof(number))
		memcpy(&number, value->text, sizeof(number));
	return number;
}

double plan_real(const struct plan_element *element, enum plan_key key)
{
	uint64_t number = plan_number(element, key);
	double real;

	memcpy(&real, &number, sizeof(real));
	return real;
}
