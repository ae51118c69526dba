/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Argument specs found in distributions: lines "count<TAB>spec<TAB>where". */
#ifndef TESTS_UNIT_CORPUS_H
#define TESTS_UNIT_CORPUS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *corpus_dir;

/* Set the directory of the test data: argv[1], $TESTDATA, or relative to the repository's root. */
static inline void corpus_init(int argc, char **argv)
{
	const char *env = getenv("TESTDATA");

	corpus_dir = argc > 1 ? argv[1] : env && *env ? env : "tests/data";
}

/* Call @fn for each spec of specs/@name.txt. Return their number, or -1 without the file. */
static inline int corpus_each(const char *name, void (*fn)(const char *spec, void *arg), void *arg)
{
	char path[4096], line[1024];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/specs/%s.txt", corpus_dir, name);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		char *spec = strchr(line, '\t');

		if (*line == '#' || !spec)
			continue;
		spec[1 + strcspn(spec + 1, "\t\n")] = '\0';
		fn(spec + 1, arg);
		n++;
	}
	fclose(f);
	return n;
}

#endif
