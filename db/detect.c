// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/detect.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/engines.h"
#include "host/elf_map.h"
#include "host/fuse.h"

#define FILES_MAX	4096	/* results; then all are dropped */

/* Return the engine of which @elf exports a signature symbol. */
static const struct engine *detect_elf(const struct elf *elf)
{
	struct elf_symbol found;

	for (size_t i = 0; engine_table[i]; i++) {
		const char *const *symbol = engine_table[i]->signature_symbols;

		for (; *symbol; symbol++)
			if (!elf_symbol_find_dynamic(elf, *symbol, &found))
				return engine_table[i];
	}
	return NULL;
}

static const struct engine *detect_open(int fd)
{
	const struct engine *engine = NULL;
	struct elf_map binary;

	if (!elf_map_open(&binary, fd)) {
		engine = detect_elf(&binary.elf);
		elf_map_close(&binary);
	}
	return engine;
}

static const struct engine *detect_content(const struct process *process)
{
	int fd = process_open(process);
	const struct engine *engine = fd < 0 ? NULL : detect_open(fd);

	if (fd >= 0)
		close(fd);
	return engine;
}

const struct engine *detect_file(const char *path, int fd)
{
	const char *slash = strrchr(path, '/');
	const struct engine *engine = engines_by_file(slash ? slash + 1 : path);

	return engine ? engine : detect_open(fd);
}

static void detect_remember(struct detect *detect, const struct process_file *file,
			    const struct engine *engine)
{
	struct detect_file *more;

	if (detect->nfiles == FILES_MAX)
		detect_clear(detect);
	/* The array doubles: it is full if the number of elements is a power of 2. */
	if (!(detect->nfiles & (detect->nfiles - 1))) {
		more = realloc(detect->files,
			       (detect->nfiles ? 2 * detect->nfiles : 1) * sizeof(*more));
		if (!more)
			return;
		detect->files = more;
	}
	detect->files[detect->nfiles++] = (struct detect_file){ *file, engine };
}

const struct engine *detect_process(struct detect *detect, const struct process *process)
{
	const struct engine *engine;
	char name[256];

	process_name(process, name, sizeof(name));
	engine = engines_by_file(name);
	if (engine)
		return fuse_may_serve(process) ? NULL : engine;
	for (size_t i = 0; i < detect->nfiles; i++)
		if (process_file_same(&detect->files[i].file, &process->file))
			return detect->files[i].engine;
	/* Not remembered: the same file may be visible by another mount. */
	if (fuse_may_serve(process))
		return NULL;
	engine = detect_content(process);
	detect_remember(detect, &process->file, engine);
	return engine;
}

void detect_clear(struct detect *detect)
{
	free(detect->files);
	*detect = (struct detect){ NULL, 0 };
}
