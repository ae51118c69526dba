// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recognise.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "usdt/elf.h"

#define FILES_MAX	4096	/* then the oldest are looked into again */

/* The engine that the ELF file in @data has a sign of. */
static const char *recognise_data(const void *data, size_t size)
{
	struct elf_symbol symbol;
	struct elf elf;

	if (elf_open(&elf, data, size))
		return NULL;
	for (size_t i = 0; engine_table[i]; i++)
		for (const char *const *sign = engine_table[i]->signs; *sign; sign++)
			if (!elf_symbol_find_dynamic(&elf, *sign, &symbol))
				return engine_table[i]->name;
	return NULL;
}

static const char *recognise_content(const struct process *process)
{
	const char *engine = NULL;
	int fd = process_open(process);
	struct stat st;
	void *data;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size) {
		data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
		if (data != MAP_FAILED) {
			engine = recognise_data(data, (size_t)st.st_size);
			munmap(data, (size_t)st.st_size);
		}
	}
	close(fd);
	return engine;
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
