// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/mangled.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Return the end of the name of @len bytes at @part, as @at has it: "3THD"; NULL: another one. */
static const char *source_name(const char *at, const char *part, size_t len)
{
	char number[24];
	int digits = snprintf(number, sizeof(number), "%zu", len);

	if (!len || strncmp(at, number, (size_t)digits) || strncmp(at + digits, part, len))
		return NULL;
	return at + digits + len;
}

bool mangled_is(const char *symbol, const char *name)
{
	bool nested = strstr(name, "::");
	const char *at = symbol + 2, *colons;

	if (strncmp(symbol, "_Z", 2) || strchr(symbol, '.'))
		return false;
	if (nested) {
		if (*at++ != 'N')
			return false;
		/* Qualifiers of a member function: volatile, const, & and &&. */
		at += strspn(at, "VKRO");
	}
	for (; (colons = strstr(name, "::")); name = colons + 2) {
		at = source_name(at, name, (size_t)(colons - name));
		if (!at)
			return false;
	}
	at = source_name(at, name, strlen(name));
	return at && (nested ? *at == 'E' || *at == 'I' : *at);
}

const char *mangled_name(const char *symbol, size_t *len)
{
	char *name;

	if (!strncmp(symbol, "_Z", 2) && symbol[2] >= '1' && symbol[2] <= '9') {
		*len = strtoul(symbol + 2, &name, 10);
		if (*len <= strlen(name))
			return name;
	}
	*len = strlen(symbol);
	return symbol;
}
