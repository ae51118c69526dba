// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "usdt/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int probe_add(struct probe_list *list, size_t *room, const struct usdt_site *site)
{
	struct probe_site *sites = list->sites;

	if (list->count == *room) {
		*room = *room ? *room * 2 : 64;
		sites = realloc(sites, *room * sizeof(*sites));
		if (!sites)
			return -ENOMEM;
		list->sites = sites;
	}
	sites[list->count] = (struct probe_site){ .site = *site, .order = (uint32_t)list->count };
	list->count++;
	return 0;
}

static int compare_names(const struct probe_site *a, const struct probe_site *b)
{
	int diff = strcmp(a->site.provider, b->site.provider);

	return diff ? diff : strcmp(a->site.name, b->site.name);
}

static int by_name(const void *pa, const void *pb)
{
	const struct probe_site *a = pa, *b = pb;
	int diff = compare_names(a, b);

	return diff ? diff : a->order < b->order ? -1 : 1;
}

static int by_first(const void *pa, const void *pb)
{
	const struct probe_site *a = pa, *b = pb;

	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

int probe_list_read(const struct elf *elf, struct probe_list *list)
{
	struct usdt_note_iter iter;
	struct usdt_site site;
	size_t room = 0;
	int err;

	*list = (struct probe_list){ .count = 0 };
	err = usdt_notes(elf, &iter);
	while (!err && usdt_note_next(&iter, &site))
		err = probe_add(list, &room, &site);
	if (err) {
		probe_list_free(list);
		return err;
	}
	list->skipped = iter.skipped;
	if (!list->count)
		return 0;
	/* Sort twice: searching each name in a list of those seen would be quadratic. */
	qsort(list->sites, list->count, sizeof(*list->sites), by_name);
	for (size_t i = 0; i < list->count; i++) {
		struct probe_site *at = &list->sites[i];

		at->first = i && !compare_names(at - 1, at) ? at[-1].first : at->order;
	}
	qsort(list->sites, list->count, sizeof(*list->sites), by_first);
	return 0;
}

void probe_list_free(struct probe_list *list)
{
	free(list->sites);
	*list = (struct probe_list){ .count = 0 };
}

size_t probe_list_end(const struct probe_list *list, size_t first)
{
	size_t end = first;

	while (end < list->count && list->sites[end].first == list->sites[first].first)
		end++;
	return end;
}
