/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prints the fingerprints of statements, for tests/e2e/test_fingerprint.py to compare.
 *
 *	fingerprint mysql|postgresql|unknown [--redact] [--cut]
 *
 * reads statements, each terminated by a NUL, and writes for each one its hash, a blank, its
 * fingerprint, and a NUL; or the redacted statement and a NUL.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sql/fingerprint.h"

int main(int argc, char **argv)
{
	static const char *const dialects[] = { "postgresql", "mysql", "unknown" };
	bool cut = argc > 2 && !strcmp(argv[argc - 1], "--cut");
	bool redact = argc > 2 && !strcmp(argv[2], "--redact");
	unsigned int dialect = 0;
	char *text = NULL, *out;
	size_t room = 0, size;
	uint64_t hash;
	ssize_t len;

	while (argc > 1 && dialect < 3 && strcmp(argv[1], dialects[dialect]))
		dialect++;
	if (dialect == 3 || argc != 2 + cut + redact) {
		fprintf(stderr, "usage: fingerprint mysql|postgresql|unknown [--redact] [--cut]\n");
		return 2;
	}
	while ((len = getdelim(&text, &room, 0, stdin)) > 0) {
		len -= !text[len - 1];
		/* A token at most doubles in length, and " ..." may follow. */
		size = 2 * (size_t)len + 16;
		out = malloc(size);
		if (!out)
			return 1;
		if (redact) {
			size = fingerprint_redact(dialect, text, (size_t)len, cut, out);
			printf("%.*s%c", (int)size, out, 0);
		} else {
			hash = fingerprint_make(dialect, text, (size_t)len, cut, out, size).hash;
			printf("%016" PRIx64 " %s%c", hash, out, 0);
		}
		free(out);
	}
	free(text);
	return 0;
}
