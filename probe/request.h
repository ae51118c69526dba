/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a user wants to see of probes of any kind, and what must be put on a file for that. */
#ifndef PROBE_REQUEST_H
#define PROBE_REQUEST_H

#include "loader/uprobe_set.h"
#include "loader/linker.h"
#include "usdt/elf.h"
#include "usdt/expression.h"

#define AIM_FIELDS	12
#define AIM_REGISTERS	6	/* arguments of a function that are looked for in registers */
#define AIM_SITES_MAX	512	/* of a file */

enum aim_kind {
	AIM_ANY,		/* USDT probes of that name, or else functions */
	AIM_USDT,
	AIM_FUNCTION,
	AIM_RETURN,		/* when a function returns */
};

/* What is wanted. All is borrowed. */
struct aim {
	enum aim_kind kind;
	const char *provider, *name;	/* names or globs; provider NULL: any */
	const struct expression *filter;	/* NULL: every hit */
	const struct expression *fields[AIM_FIELDS];
	unsigned int nfields;
	uint32_t texts;			/* bit n: field n is the address of a text */
	bool all;			/* no fields: show what arguments there are; */
	unsigned int registers;		/* of a function, so many of them */
};

enum aim_type {
	AIM_UNKNOWN,			/* it cannot be read at this site */
	AIM_NUMBER,
	AIM_REGISTER,			/* 64 bits of any kind */
	AIM_FLOAT,
	AIM_TEXT,
};

struct aim_field {
	enum aim_type type;
	unsigned int size;		/* bytes */
	unsigned int is_signed;		/* as wide as the others: no padding */
};

/* A probe whose sites have fields of the same types; its number is in the records. */
struct aim_source {
	uint32_t aim;			/* number of the wish that it comes from */
	char *provider, *name;		/* provider NULL: a function */
	bool on_return;
	unsigned int nfields;
	uint32_t texts;
	struct aim_field fields[AIM_FIELDS];
};

/* All zero is an empty one; aim_sources_free() ends it. */
struct aim_sources {
	struct aim_source *source;
	uint32_t count;
};

enum aim_mode {
	AIM_SEND,			/* each hit */
	AIM_COUNT,			/* count hits, by the first field if there is one */
	AIM_HISTOGRAM,			/* count hits by the first field's power of two */
};

/* What is the same for all files. */
struct aim_common {
	const struct object *object;
	const struct object_value *values;	/* maps and numbers */
	size_t nvalues;
	enum aim_mode mode;
	uint32_t text_size;		/* room for a text, a multiple of 8 */
	struct aim_sources *sources;	/* gets what is new */
	/* Hears of a probe of a pattern that is passed over, and why. */
	void (*skipped)(void *arg, const struct fault *fault);
	void *arg;
};

/*
 * Adds what @aim, wish number @number, means for file @elf to @plan. The number of probes that the
 * file has, or -errno and why in @fault.
 */
int aim_file(const struct aim *aim, uint32_t number, const struct elf *elf, const char *path,
	     const struct aim_common *common, struct plan *plan, struct fault *fault);

void aim_sources_free(struct aim_sources *sources);

/* The size of a record with so many fields and texts. */
uint32_t aim_record_size(unsigned int nfields, uint32_t texts, uint32_t text_size);

#endif
