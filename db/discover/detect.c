// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/discover/detect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/engines.h"
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

/* Store the engine in *@engine, or NULL. Return 0, or -EINTR if @pause ended it. */
static int detect_open(int fd, const struct elf_pause *pause, const struct engine **engine)
{
	struct elf_map binary;
	int err;

	*engine = NULL;
	if (elf_map_open(&binary, fd, pause))
		return 0;
	*engine = detect_elf(&binary.elf);
	err = elf_map_limit(&binary);
	elf_map_close(&binary);
	if (err)
		*engine = NULL;
	return err == -EINTR ? err : 0;
}

/*
 * Store the engine of the process's program in *@engine. Return whether that is the file in
 * @process, by exec another one may have taken its place, and was read.
 */
static bool detect_content(const struct process *process, const struct elf_pause *pause,
			   const struct engine **engine)
{
	int fd = process_open(process);
	struct process_file file;
	bool done;

	if (fd < 0)
		return false;
	done = !process_file_read(fd, &file) && process_file_unchanged(&file, &process->file) &&
	       !detect_open(fd, pause, engine);
	close(fd);
	return done;
}

const struct engine *detect_file(const char *path, int fd)
{
	const char *slash = strrchr(path, '/');
	const struct engine *engine = engines_by_file(slash ? slash + 1 : path);

	if (!engine)
		detect_open(fd, NULL, &engine);
	return engine;
}

static void detect_remember(struct detect *detect, const struct process_file *file,
			    const struct engine *engine, bool rejected)
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
	detect->files[detect->nfiles++] = (struct detect_file){ *file, engine, rejected };
}

/*
 * Return the result for the file: that it is not of @engine or, if that is NULL, what its content
 * says; NULL if there is none.
 */
static struct detect_file *detect_known(const struct detect *detect,
					const struct process_file *file,
					const struct engine *engine)
{
	for (size_t i = 0; i < detect->nfiles; i++) {
		struct detect_file *known = &detect->files[i];

		if (process_file_unchanged(&known->file, file) &&
		    (engine ? known->rejected && known->engine == engine : !known->rejected))
			return known;
	}
	return NULL;
}

const struct engine *detect_name(const struct process *process)
{
	char name[256];

	process_name(process, name, sizeof(name));
	return engines_by_file(name);
}

const struct engine *detect_process(struct detect *detect, const struct process *process)
{
	const struct engine *engine = detect_name(process);
	const struct detect_file *known = detect_known(detect, &process->file, engine);

	if (known)
		return known->rejected ? NULL : known->engine;
	if (engine)
		return fuse_may_serve(process) ? NULL : engine;
	/* Not remembered: the same file may be visible by another mount. */
	if (fuse_may_serve(process))
		return NULL;
	if (!detect_content(process, detect->pause, &engine))
		return NULL;
	detect_remember(detect, &process->file, engine, false);
	return engine;
}

void detect_reject(struct detect *detect, const struct process *process)
{
	const struct engine *engine = detect_name(process);
	struct detect_file *known = detect_known(detect, &process->file, engine);

	if (known)
		known->engine = engine;
	else
		detect_remember(detect, &process->file, engine, engine != NULL);
}

bool detect_is_rejected(const struct detect *detect, const struct process *process)
{
	const struct detect_file *known = detect_known(detect, &process->file,
						       detect_name(process));

	return known && (known->rejected || !known->engine);
}

/* Return whether a file is called as the library that is a server. */
static bool is_embedded(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; engine_table[i]; i++)
		for (const char *const *one = engine_table[i]->embedded; one && *one; one++)
			if (!strncmp(name, *one, strlen(*one)))
				return true;
	return false;
}

static int embedded_map(void *arg, const struct process_map *map)
{
	bool *embedded = arg;

	*embedded |= is_embedded(map->path);
	return 0;
}

bool detect_is_embedded(const char *path, int fd)
{
	struct elf_map binary;
	bool embedded;

	if (is_embedded(path))
		return true;
	if (fd < 0 || elf_map_open(&binary, fd, NULL))
		return false;
	embedded = elf_needs(&binary.elf, is_embedded);
	elf_map_close(&binary);
	return embedded;
}

int detect_refuse(const struct process *process, int fd, const char *path, int err,
		  struct error *error)
{
	bool embedded = detect_is_embedded(path, fd);
	char text[32] = "";

	if (process) {
		snprintf(text, sizeof(text), "process %u", process->pid);
		process_maps(process->pid, embedded_map, &embedded);
	}
	return error_set(error, embedded ? ERROR_EMBEDDED : ERROR_NOT_SERVER, err, path, text);
}

void detect_clear(struct detect *detect)
{
	free(detect->files);
	detect->files = NULL;
	detect->nfiles = 0;
}
