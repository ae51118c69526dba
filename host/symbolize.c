// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/symbolize.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/debug_file.h"
#include "host/elf_map.h"
#include "host/fuse.h"
#include "host/open.h"

#define FILES_MAX	64
#define SYMBOLS_MAX	(4u << 20)	/* of all files, 24 bytes each */
#define FREE_NS		1000000000u	/* time that may always be spent */
#define TIME_PART	4		/* and this part of the time */

struct symbol {
	uint64_t vaddr, size;
	const char *name;		/* in the mapping; its owner may overwrite the NUL */
};

/* A file; it has no symbols if it cannot be read. Its inode is not reused while it is mapped. */
struct symbol_file {
	dev_t dev;			/* as in /proc/PID/maps */
	ino_t ino;
	char *path;
	struct elf_loads loads;
	struct elf_map map;		/* of the file or its debug file, with the names */
	bool mapped;
	struct symbol *symbols;		/* sorted by address */
	size_t count;
};

struct symbolizer {
	struct symbol_file *files[FILES_MAX];
	size_t nfiles, nsymbols;
	uint64_t start_ns, spent_ns;
	/* Of the current call: */
	uint32_t pid;
	const uint64_t *addresses;
	unsigned int n;
	struct symbol_frame *frames;
	uint64_t began_ns;
};

struct symbolizer *symbolizer_new(void)
{
	struct symbolizer *s = calloc(1, sizeof(*s));

	if (s)
		s->start_ns = clock_ns(CLOCK_MONOTONIC);
	return s;
}

static bool symbolizer_has_time(const struct symbolizer *s)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	return s->spent_ns + (now - s->began_ns) <= FREE_NS + (now - s->start_ns) / TIME_PART;
}

/* By address; of several names the one that does not begin with an underscore first. */
static int symbol_compare(const void *pa, const void *pb)
{
	const struct symbol *a = pa, *b = pb;

	return a->vaddr != b->vaddr ? (a->vaddr < b->vaddr ? -1 : 1) :
				      (*a->name == '_') - (*b->name == '_');
}

/* Read the functions in table @type of file->map. Return false if there is no such table. */
static bool symbols_read(struct symbol_file *file, uint32_t type)
{
	struct elf_symbol_iter iter;
	struct elf_symbol symbol;

	if (elf_symbols(&file->map.elf, type, &iter))
		return false;
	file->symbols = malloc((size_t)iter.count * sizeof(*file->symbols) + 1);
	while (file->symbols && elf_symbol_next(&iter, &symbol))
		if ((symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC) && symbol.shndx &&
		    *symbol.name)
			file->symbols[file->count++] = (struct symbol){
				symbol.value, symbol.size, symbol.name };
	if (file->symbols)
		qsort(file->symbols, file->count, sizeof(*file->symbols), symbol_compare);
	return true;
}

/*
 * Read the symbols of the file that is open as @fd: its own, those of its debug file, exported. The
 * process's own file systems are not searched for a debug file: they may not answer.
 */
static void symbols_load(struct symbol_file *file, int fd)
{
	const struct file opened = { .fd = fd, .path = file->path };
	int debug;

	if (elf_map_open(&file->map, fd, NULL))
		return;
	file->mapped = true;
	elf_loads(&file->map.elf, &file->loads);
	if (symbols_read(file, SHT_SYMTAB))
		return;
	debug = debug_file_open(&opened, &file->map.elf);
	if (debug >= 0) {
		elf_map_close(&file->map);
		file->mapped = !elf_map_open(&file->map, debug, NULL);
		close(debug);
		if (file->mapped)
			symbols_read(file, SHT_SYMTAB);
	} else {
		symbols_read(file, SHT_DYNSYM);
	}
}

/* Return the file of @map, loaded if it is new, or NULL. */
static struct symbol_file *symbol_file(struct symbolizer *s, const struct process_map *map)
{
	struct symbol_file *file;
	int fd;

	for (size_t i = 0; i < s->nfiles; i++) {
		file = s->files[i];
		if (file->dev == map->dev && file->ino == map->ino &&
		    !strcmp(file->path, map->path))
			return file;
	}
	if (s->nfiles == FILES_MAX || !symbolizer_has_time(s))
		return NULL;
	file = calloc(1, sizeof(*file));
	if (file)
		file->path = strdup(map->path);
	if (!file || !file->path) {
		free(file);
		return NULL;
	}
	file->dev = map->dev;
	file->ino = map->ino;
	fd = fuse_map_open(s->pid, map);
	if (fd >= 0) {
		symbols_load(file, fd);
		close(fd);
	}
	s->nsymbols += file->count;
	s->files[s->nfiles++] = file;
	return file;
}

/* Return the last symbol at or before @vaddr that contains it, or NULL. Size 0 is unknown. */
static const struct symbol *symbol_at(const struct symbol_file *file, uint64_t vaddr)
{
	size_t low = 0, high = file->count;
	const struct symbol *symbol;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (file->symbols[middle].vaddr <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	symbol = &file->symbols[low - 1];
	while (symbol > file->symbols && symbol[-1].vaddr == symbol->vaddr)
		symbol--;
	return !symbol->size || vaddr - symbol->vaddr < symbol->size ? symbol : NULL;
}

/* Describe the frame at @address, which is at @offset of @file. A caller is behind its call. */
static void symbol_frame(const struct symbol_file *file, uint64_t offset, bool caller,
			 struct symbol_frame *frame)
{
	const char *slash = strrchr(file->path, '/');
	const char *end = (const char *)file->map.data + file->map.size;
	const struct symbol *symbol;

	frame->file = slash ? slash + 1 : file->path;
	for (uint32_t i = 0; i < file->loads.count; i++) {
		const struct elf_segment *segment = &file->loads.segment[i];
		uint64_t vaddr = segment->vaddr + (offset - segment->offset);

		if (offset < segment->offset || offset - segment->offset >= segment->filesz)
			continue;
		symbol = symbol_at(file, vaddr - caller);
		if (!symbol)
			continue;
		frame->function = symbol->name;
		frame->len = strnlen(symbol->name, (size_t)(end - symbol->name));
		frame->offset = vaddr - symbol->vaddr;
		return;
	}
}

/* For process_maps(): describe the frames whose addresses are in @map. */
static int symbol_map(void *arg, const struct process_map *map)
{
	struct symbolizer *s = arg;
	const struct symbol_file *file = NULL;

	for (unsigned int i = 0; map->executable && i < s->n; i++) {
		if (s->addresses[i] < map->start || s->addresses[i] >= map->end)
			continue;
		file = file ? file : symbol_file(s, map);
		if (!file)
			return 0;
		symbol_frame(file, s->addresses[i] - map->start + map->offset, i > 0,
			     &s->frames[i]);
	}
	return !symbolizer_has_time(s);
}

/* Forget all files. */
static void symbolizer_clear(struct symbolizer *s)
{
	while (s->nfiles) {
		struct symbol_file *file = s->files[--s->nfiles];

		if (file->mapped)
			elf_map_close(&file->map);
		free(file->symbols);
		free(file->path);
		free(file);
	}
	s->nsymbols = 0;
}

void symbolize(struct symbolizer *s, uint32_t pid, const uint64_t *addresses, unsigned int n,
	       struct symbol_frame *frames)
{
	if (s->nfiles == FILES_MAX || s->nsymbols > SYMBOLS_MAX)
		symbolizer_clear(s);
	memset(frames, 0, n * sizeof(*frames));
	s->pid = pid;
	s->addresses = addresses;
	s->n = n;
	s->frames = frames;
	s->began_ns = clock_ns(CLOCK_MONOTONIC);
	if (symbolizer_has_time(s))
		process_maps(pid, symbol_map, s);
	s->spent_ns += clock_ns(CLOCK_MONOTONIC) - s->began_ns;
}

void symbolizer_free(struct symbolizer *s)
{
	if (s)
		symbolizer_clear(s);
	free(s);
}
