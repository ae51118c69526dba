/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Input: the name of a library, a newline, then the content of an ld.so.cache. */
#include <errno.h>
#include <limits.h>

#include "host/library.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	char *name = input_until(&in, '\n'), *path = malloc(PATH_MAX);
	/* A mapped file is aligned to a page, and malloc()'s memory sufficiently. */
	void *cache = input_copy(in.at, in.left);
	int err = library_find_cached(cache, in.left, name, path, PATH_MAX);

	REQUIRE(err == 0 || err == -ENOENT, "%d", err);
	if (!err)
		REQUIRE(*path == '/' && strlen(path) < PATH_MAX &&
			memmem(cache, in.left, path, strlen(path) + 1));
	if (!err && strlen(path)) {
		char *small = malloc(strlen(path));

		REQUIRE(library_find_cached(cache, in.left, name, small, strlen(path)) ==
			-ENAMETOOLONG);
		free(small);
	}
	free(cache);
	free(path);
	free(name);
	return 0;
}
