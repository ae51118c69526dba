// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/debug_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cursor.h"
#include "host/elf_map.h"
#include "host/open.h"
#include "host/process.h"

#define BUILD_ID_MIN	8		/* bytes */
#define BUILD_ID_MAX	64
#define DEBUG_ROOT	"/usr/lib/debug"

struct build_id {
	const unsigned char *bytes;	/* borrowed from the file */
	size_t len;			/* 0: none */
};

static struct build_id build_id(const struct elf *elf)
{
	struct elf_section section;
	struct cursor c;
	uint64_t name, len, type;
	const unsigned char *data;
	size_t size;

	if (elf_section_find(elf, ".note.gnu.build-id", &section))
		return (struct build_id){ .len = 0 };
	data = elf_section_data(elf, &section, &size);
	c = cursor_over(data, size, elf->big_endian);
	name = cursor_uint(&c, 4);
	len = cursor_uint(&c, 4);
	type = cursor_uint(&c, 4);
	if (c.bad || type != NT_GNU_BUILD_ID || name != 4 || len < BUILD_ID_MIN ||
	    len > BUILD_ID_MAX || size - 12 < 4 || size - 16 < len || memcmp(data + 12, "GNU", 4))
		return (struct build_id){ .len = 0 };
	return (struct build_id){ .bytes = data + 16, .len = len };
}

/* Return the file name in .gnu_debuglink, borrowed, or NULL if there is none. */
static const char *debug_link(const struct elf *elf)
{
	struct elf_section section;
	const unsigned char *data;
	size_t size;

	if (elf_section_find(elf, ".gnu_debuglink", &section))
		return NULL;
	data = elf_section_data(elf, &section, &size);
	if (!size || !memchr(data, 0, size) || !*data || memchr(data, '/', strlen((char *)data)))
		return NULL;
	return (const char *)data;
}

/* Parameters of a search. */
struct debug_search {
	struct build_id id;
	uid_t owner;			/* of the program */
	int root;			/* directory that the paths are below */
};

/* Return whether the file open as @fd is the debug file, and no other user controls it. */
static bool debug_accepts(const struct debug_search *search, int fd)
{
	struct elf_map map;
	struct build_id id;
	struct stat st;
	bool same;

	if (fstat(fd, &st) || (st.st_uid && st.st_uid != search->owner) || st.st_mode & 022 ||
	    elf_map_open(&map, fd, NULL))
		return false;
	id = build_id(&map.elf);
	same = id.len == search->id.len && !memcmp(id.bytes, search->id.bytes, id.len);
	elf_map_close(&map);
	return same;
}

/* Open the file at @format below ->root if it is the debug file. Return a descriptor or -ENOENT. */
__attribute__((format(printf, 2, 3)))
static int debug_try(const struct debug_search *search, const char *format, ...)
{
	char path[PATH_MAX];
	va_list args;
	int len, fd;

	va_start(args, format);
	len = vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	if (len >= (int)sizeof(path))
		return -ENOENT;
	fd = open_beneath(search->root, path + 1, true);
	if (fd >= 0 && debug_accepts(search, fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return -ENOENT;
}

/* Try all paths below ->root. Return a descriptor or -ENOENT. */
static int debug_find(const struct debug_search *search, const char *path, const char *link)
{
	int len = (int)(strrchr(path, '/') - path), at = 0, fd;
	char digits[2 * BUILD_ID_MAX + 1];

	for (size_t i = 0; i < search->id.len; i++)
		at += snprintf(digits + at, sizeof(digits) - (size_t)at, "%02x",
			       search->id.bytes[i]);
	fd = debug_try(search, DEBUG_ROOT "/.build-id/%.2s/%s.debug", digits, digits + 2);
	if (fd >= 0 || !link)
		return fd;
	fd = debug_try(search, "%.*s/%s", len, path, link);
	if (fd < 0)
		fd = debug_try(search, "%.*s/.debug/%s", len, path, link);
	return fd < 0 ? debug_try(search, DEBUG_ROOT "%.*s/%s", len, path, link) : fd;
}

int debug_file_open(const struct file *file, const struct elf *elf)
{
	struct debug_search search = { .id = build_id(elf) };
	const char *link = debug_link(elf);
	char root[PROCESS_PATH], path[PATH_MAX], fd_path[32];
	struct stat st;
	ssize_t n;
	int fd = -ENOENT;

	if (!search.id.len || fstat(file->fd, &st))
		return -ENOENT;
	search.owner = st.st_uid;
	/* The path without symbolic links; of a file of another mount namespace, that there. */
	snprintf(fd_path, sizeof(fd_path), "/proc/self/fd/%d", file->fd);
	n = readlink(fd_path, path, sizeof(path) - 1);
	if (n <= 0 || *path != '/')
		return -ENOENT;
	path[n] = '\0';
	snprintf(root, sizeof(root), "/proc/%u/root", file->pid);
	for (int own = !file->pid; fd < 0 && own < 2; own++) {
		search.root = open(own ? "/" : root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (search.root < 0)
			continue;
		fd = debug_find(&search, path, link);
		close(search.root);
	}
	return fd;
}
