// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/detect.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/elf_map.h"

#define FILES_MAX	4096	/* then the oldest are looked into again */

/* The engine that @elf has a sign of. */
static const char *recognise_elf(const struct elf *elf)
{
	struct elf_symbol symbol;

	for (size_t i = 0; engine_table[i]; i++)
		for (const char *const *sign = engine_table[i]->signs; *sign; sign++)
			if (!elf_symbol_find_dynamic(elf, *sign, &symbol))
				return engine_table[i]->name;
	return NULL;
}

static const char *recognise_open(int fd)
{
	const char *engine = NULL;
	struct binary binary;

	if (!binary_map(&binary, fd)) {
		engine = recognise_elf(&binary.elf);
		binary_unmap(&binary);
	}
	return engine;
}

static const char *recognise_content(const struct process *process)
{
	int fd = process_open(process);
	const char *engine = fd < 0 ? NULL : recognise_open(fd);

	if (fd >= 0)
		close(fd);
	return engine;
}

const char *recognise_file(const char *path, int fd)
{
	const char *slash = strrchr(path, '/');
	const char *engine = engine_of_file(slash ? slash + 1 : path);

	return engine ? engine : recognise_open(fd);
}

static void recognise_remember(struct recognise *recognise, const struct process_file *file,
			       const char *engine)
{
	struct recognise_file *more;

	if (recognise->nfiles == FILES_MAX)
		recognise_clear(recognise);
	/* Room grows by doubling: it is at its end where the number is a power of two. */
	if (!(recognise->nfiles & (recognise->nfiles - 1))) {
		more = realloc(recognise->files,
			       (recognise->nfiles ? 2 * recognise->nfiles : 1) * sizeof(*more));
		if (!more)
			return;
		recognise->files = more;
	}
	recognise->files[recognise->nfiles++] = (struct recognise_file){ *file, engine };
}

const char *recognise_process(struct recognise *recognise, const struct process *process)
{
	const char *engine;
	char name[256];

	process_name(process, name, sizeof(name));
	engine = engine_of_file(name);
	if (engine)
		return engine;
	for (size_t i = 0; i < recognise->nfiles; i++)
		if (process_file_same(&recognise->files[i].file, &process->file))
			return recognise->files[i].engine;
	engine = recognise_content(process);
	recognise_remember(recognise, &process->file, engine);
	return engine;
}

void recognise_clear(struct recognise *recognise)
{
	free(recognise->files);
	*recognise = (struct recognise){ NULL, 0 };
}
