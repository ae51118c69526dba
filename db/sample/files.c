// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/sample/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "db/discover/describe.h"
#include "db/engines.h"
#include "host/elf_map.h"

#define FILES_OF_USER	64	/* of servers of one user, except root */
#define FILES_MAX	4096
#define FIND_WORK	(64u << 20)	/* bytes of a file that are read */

void files_report(const struct files *files, enum error_kind kind, int code, const char *subject)
{
	struct error error = { .kind = ERROR_NONE };

	error_set(&error, kind, code, subject, NULL);
	files->error(files->arg, &error);
	error_clear(&error);
}

static void file_find(struct served_file *file, const struct elf *elf,
		      const struct process *process)
{
	const struct engine *engine = file->target.engine;
	const struct state_ops *ops = &file->ops->state;
	struct target *target = &file->target;

	target->lowest_vaddr = elf_map_lowest_vaddr(elf);
	target->version_vaddr = describe_version_vaddr(elf, engine);
	describe_version(elf, engine, target->version, sizeof(target->version));
	target_read_version(target, process, target->version);
	backend_find(elf, engine, &target->places);
	file->state = calloc(1, ops->bytes);
	if (file->state && ops->find(file->state, elf, engine_is_executable)) {
		free(file->state);
		file->state = NULL;
	}
}

/* Read the file that @process runs. */
static void file_open(const struct files *files, struct served_file *file,
		      const struct process *process)
{
	struct process_file found;
	struct elf_map map;
	int fd = process_open(process), err = fd;

	if (fd >= 0)
		err = process_file_read(fd, &found);
	if (!err && !process_file_same(&found, &process->file))
		err = -ESTALE;
	if (!err)
		err = elf_map_open(&map, fd, NULL);
	if (!err) {
		map.work.left = FIND_WORK;
		file_find(file, &map.elf, process);
		elf_map_close(&map);
	}
	if (fd >= 0)
		close(fd);
	if (err)
		files_report(files, ERROR_FILE, err, process->exe);
	else if (!file->state)
		files_report(files, ERROR_NO_SESSIONS, -ENOENT, process->exe);
}

/* Report once that a user runs too many files. */
static void files_refuse(struct files *files, uint32_t uid)
{
	struct error error = { .kind = ERROR_NONE };
	char user[32];

	if (files->refused)
		return;
	files->refused = true;
	snprintf(user, sizeof(user), "user ID %u", uid);
	error_set(&error, ERROR_TOO_MANY, -E2BIG, "files of servers of one user", user);
	files->error(files->arg, &error);
	error_clear(&error);
}

const struct served_file *files_of(struct files *files, const struct engine *engine,
				   const struct process *process)
{
	struct served_file **more, *file;
	size_t same = 0;

	for (size_t i = 0; i < files->n; i++) {
		if (files->file[i]->uid != process->uid)
			continue;
		if (process_file_unchanged(&files->file[i]->target.file, &process->file))
			return files->file[i];
		same++;
	}
	if ((process->uid && same >= FILES_OF_USER) || files->n == FILES_MAX) {
		files_refuse(files, process->uid);
		return NULL;
	}
	more = realloc(files->file, (files->n + 1) * sizeof(*more));
	if (!more)
		return NULL;
	files->file = more;
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	files->file[files->n++] = file;
	file->uid = process->uid;
	file->target.engine = engine;
	file->target.file = process->file;
	snprintf(file->target.path, sizeof(file->target.path), "%s", process->exe);
	file->ops = engine->ps_ops;
	if (file->ops)
		file_open(files, file, process);
	return file;
}

void files_clear(struct files *files)
{
	for (size_t i = 0; i < files->n; i++) {
		free(files->file[i]->state);
		free(files->file[i]);
	}
	free(files->file);
	files->file = NULL;
	files->n = 0;
}
