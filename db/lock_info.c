// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/lock_info.h"

#include <stdlib.h>

void lock_backend_text(struct lock_backend *backend, size_t len)
{
	char *less = realloc(backend->text, len + !len);

	if (less)
		backend->text = less;
	backend->len = len;
}

void lock_info_clear(struct lock_info *info)
{
	free(info->self.text);
	for (unsigned int i = 0; i < info->nholders; i++)
		free(info->holders[i].text);
	info->self.text = NULL;
	info->nholders = 0;
}

static void backend_redact(struct lock_backend *backend, enum fingerprint_dialect dialect)
{
	if (backend->text)
		backend->len = fingerprint_redact(dialect, backend->text, backend->len,
						  backend->cut, backend->text);
}

void lock_info_redact(struct lock_info *info, enum fingerprint_dialect dialect)
{
	backend_redact(&info->self, dialect);
	for (unsigned int i = 0; i < info->nholders; i++)
		backend_redact(&info->holders[i], dialect);
}

void lock_info_add(struct lock_info *info, struct lock_backend *backend)
{
	if (info->nholders < LOCK_HOLDERS_KEPT) {
		info->holders[info->nholders++] = *backend;
		return;
	}
	free(backend->text);
	info->more++;
}
