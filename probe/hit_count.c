// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "probe/hit_count.h"

#include <string.h>

/* Order probes by provider, name, file, and entry before return. Return as strcmp(). */
static int probe_compare(const struct traced_probe *a, const struct traced_probe *b)
{
	int order = strcmp(a->provider ? a->provider : "", b->provider ? b->provider : "");

	order = order ? order : strcmp(a->name, b->name);
	order = order ? order : strcmp(a->path, b->path);
	return order ? order : (int)a->on_return - (int)b->on_return;
}

int hit_count_order(const struct probe_trace_count *a, const struct probe_trace_count *b)
{
	int order = probe_compare(a->probe, b->probe);

	for (unsigned int i = 0; !order && i < PROBE_HIT_VALUES; i++)
		if (a->key.values[i] != b->key.values[i])
			order = a->key.values[i] < b->key.values[i] ? -1 : 1;
	order = order ? order : memcmp(a->key.texts, b->key.texts, sizeof(a->key.texts));
	/* That of a histogram's value is in the slot. */
	return order ? order : (a->key.unknown & ~1) - (b->key.unknown & ~1);
}

int hit_count_compare(const void *pa, const void *pb)
{
	const struct probe_trace_count *a = pa, *b = pb;
	int order = hit_count_order(a, b);

	order = order ? order : (int)a->key.slot - (int)b->key.slot;
	return order ? order : (int)a->key.unknown - (int)b->key.unknown;
}
