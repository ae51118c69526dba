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

/* By name, address and order. */
static int by_name(const void *pa, const void *pb)
{
	const struct probe_site *a = pa, *b = pb;
	int diff = compare_names(a, b);

	if (!diff && a->site.vaddr != b->site.vaddr)
		return a->site.vaddr < b->site.vaddr ? -1 : 1;
	return diff ? diff : a->order < b->order ? -1 : 1;
}

static int by_first(const void *pa, const void *pb)
{
	const struct probe_site *a = pa, *b = pb;

	if (a->first != b->first)
		return a->first < b->first ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

/* Set ->first in @sites, by name, and drop all but the first at an address. Return what is left. */
static size_t probe_merge(struct probe_site *sites, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0, end; i < n; i = end) {
		uint32_t first = sites[i].order;
		size_t begin = kept;

		for (end = i; end < n && !compare_names(&sites[i], &sites[end]); end++)
			first = sites[end].order < first ? sites[end].order : first;
		for (size_t at = i; at < end; at++)
			if (kept == begin || sites[kept - 1].site.vaddr != sites[at].site.vaddr)
				sites[kept++] = sites[at];
		for (size_t at = begin; at < kept; at++)
			sites[at].first = first;
	}
	return kept;
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
	list->count = probe_merge(list->sites, list->count);
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
