// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/short.h"

#include <stddef.h>
#include <string.h>

#include "cli/output.h"

/* A unit; the last one of a list, with the smallest size, applies to all that is less. */
struct unit {
	uint64_t size;
	char name[4];
};

static const struct unit durations[] = {
	{ 3600000000000, "h" }, { 1000000000, "s" }, { 1000000, "ms" }, { 1000, "us" }, { 1, "ns" },
};

static const struct unit numbers[] = {
	{ 1000000000000, "G" }, { 1000000000, "M" }, { 1000000, "k" }, { 1000, "" },
};

static const char *short_text(char buf[SHORT_TEXT], uint64_t value, const struct unit *units,
			      size_t last)
{
	const struct unit *unit = units;
	unsigned int decimals;
	size_t len;

	while (unit < units + last && value < unit->size)
		unit++;
	decimals = unit->size == 1 || value / unit->size >= 100 ? 0 :
		   value / unit->size >= 10 ? 1 : 2;
	/* With decimals it is less than 100 units: this cannot overflow. */
	for (unsigned int i = 0; i < decimals; i++)
		value *= 10;
	len = output_format(buf, value / unit->size, decimals);
	strcpy(buf + len, unit->name);
	return buf;
}

const char *short_duration(char buf[SHORT_TEXT], uint64_t ns)
{
	return ns ? short_text(buf, ns, durations, 4) : strcpy(buf, "0");
}

const char *short_number(char buf[SHORT_TEXT], uint64_t thousandths)
{
	return thousandths ? short_text(buf, thousandths, numbers, 3) : strcpy(buf, "0");
}

const char *short_count(char buf[SHORT_TEXT], uint64_t count)
{
	if (count > UINT64_MAX / 1000)
		count = UINT64_MAX / 1000;
	if (count >= 1000000)
		return short_number(buf, count * 1000);
	buf[output_format(buf, count, 0)] = '\0';
	return buf;
}
