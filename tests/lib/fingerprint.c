/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prints the fingerprints of statements, for tests/e2e/test_fingerprint.py to compare.
 *
 *	fingerprint mysql|postgresql [--cut]	reads statements, each terminated by a NUL
 *
 * and writes for each one its hash, a blank, its fingerprint, and a NUL.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql/fingerprint.h"

int main(int argc, char **argv)
{
	enum fingerprint_dialect dialect = argc > 1 && !strcmp(argv[1], "mysql") ?
					   FINGERPRINT_MYSQL : FINGERPRINT_POSTGRES;
	bool cut = argc == 3 && !strcmp(argv[2], "--cut");
	char *text = NULL, *out;
	size_t room = 0, size;
	uint64_t hash;
	ssize_t len;

	if (argc < 2 || argc > 3 || (argc == 3 && !cut)) {
		fprintf(stderr, "usage: fingerprint mysql|postgresql [--cut]\n");
		return 2;
	}
	while ((len = getdelim(&text, &room, 0, stdin)) > 0) {
		len -= !text[len - 1];
		/* A token at most doubles in length, and " ..." may follow. */
		size = 2 * (size_t)len + 16;
		out = malloc(size);
		if (!out)
			return 1;
		hash = fingerprint_make(dialect, text, (size_t)len, cut, out, size).hash;
		printf("%016" PRIx64 " %s%c", hash, out, 0);
		free(out);
	}
	free(text);
	return 0;
}
