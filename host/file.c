// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/library.h"
#include "host/open.h"

/*
 * Add a file that process @pid maps, or this host's if it is 0; or close @fd if it is in the list
 * already or on failure. Return 0 or -errno.
 */
static int file_list_add(struct file_list *list, int fd, const char *path, uint32_t pid)
{
	struct file add = { .fd = fd, .pid = pid }, *files;
	int err = process_file_read(fd, &add.id);

	for (size_t i = 0; !err && i < list->count; i++) {
		if (process_file_same(&list->files[i].id, &add.id)) {
			close(fd);
			return 0;
		}
	}
	files = realloc(list->files, (list->count + 1) * sizeof(*files));
	if (files)
		list->files = files;
	add.path = strdup(path);
	if (err || !files || !add.path) {
		close(fd);
		free(add.path);
		return err ? err : -ENOMEM;
	}
	files[list->count++] = add;
	return 0;
}

struct search {
	struct file_list *list;
	const char *name;		/* a path or a library's short name; NULL: all files */
	uint32_t pid;			/* the process whose mappings are searched */
	bool found;
};

/* Return whether the mapped file is called ->name. */
static bool search_matches(const struct search *search, const struct process_map *map)
{
	const char *name = search->name, *slash = strrchr(map->path, '/');
	char path[PATH_MAX + 32];
	struct stat st;

	if (!name)
		return true;
	if (!strchr(name, '/'))
		return library_is(slash ? slash + 1 : map->path, name);
	if (!strcmp(name, map->path))
		return true;
	/* Accept another path of the same file: /lib may be a link to /usr/lib. */
	snprintf(path, sizeof(path), "/proc/%u/root%s", search->pid, name);
	return (*name == '/' && !stat(path, &st) && st.st_ino == map->ino) ||
	       (!stat(name, &st) && st.st_ino == map->ino);
}

/*
 * Add the mapped file if it matches. Without a name, skip files that cannot be opened, such as
 * named memory, unless descriptors are exhausted.
 */
static int search_map(void *arg, const struct process_map *map)
{
	struct search *search = arg;
	int fd, err;

	if (!map->executable || !search_matches(search, map))
		return 0;
	fd = process_map_open(search->pid, map);
	if (fd < 0)
		return search->name || fd == -EMFILE || fd == -ENFILE ? fd : 0;
	err = file_list_add(search->list, fd, map->path, search->pid);
	search->found |= !err;
	return err;
}

/*
 * Add the program that the process runs, if it matches, as search_map(): none of its mappings is
 * executable if it has copied its code.
 */
static int search_program(struct search *search)
{
	struct process process;
	struct process_map map = { .executable = true, .path = process.exe };
	size_t len;
	int fd, err;

	if (process_read(search->pid, NULL, &process))
		return 0;
	map.ino = process.file.ino;
	len = strlen(process.exe);
	if (len > strlen(PROCESS_DELETED) &&
	    !strcmp(process.exe + len - strlen(PROCESS_DELETED), PROCESS_DELETED))
		process.exe[len - strlen(PROCESS_DELETED)] = '\0';
	if (!search_matches(search, &map))
		return 0;
	fd = process_open(&process);
	if (fd < 0)
		return search->name ? fd : 0;
	err = file_list_add(search->list, fd, process.exe, search->pid);
	search->found |= !err;
	return err;
}

int file_list_process(struct file_list *list, uint32_t pid)
{
	struct search search = { .list = list, .pid = pid };
	int err = process_maps(pid, search_map, &search);

	return err ? err : search_program(&search);
}

int file_list_named(struct file_list *list, const char *name, const uint32_t *pids, size_t npids)
{
	struct search search = { .list = list, .name = name };
	char path[PATH_MAX];
	int err = 0, fd;

	for (size_t i = 0; !err && i < npids; i++) {
		search.pid = pids[i];
		err = process_maps(pids[i], search_map, &search);
		if (!err && !search.found)
			err = search_program(&search);
	}
	if (err || search.found)
		return err;
	/* No process maps it yet: it may be loaded later. */
	if (strchr(name, '/'))
		snprintf(path, sizeof(path), "%s", name);
	else if (library_find(name, path, sizeof(path)))
		return -ENOENT;
	fd = open_regular(path);
	return fd < 0 ? fd : file_list_add(list, fd, path, 0);
}

void file_list_free(struct file_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		close(list->files[i].fd);
		free(list->files[i].path);
	}
	free(list->files);
	*list = (struct file_list){ 0 };
}
