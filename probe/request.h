/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a user wants to see of probes of any kind, and what must be put on a file for that. */
#ifndef PROBE_REQUEST_H
#define PROBE_REQUEST_H

#include "loader/runtime.h"
#include "usdt/elf.h"
#include "usdt/expression.h"

#define REQUEST_FIELDS	12
#define REQUEST_REGISTERS	6	/* arguments of a function that are read from registers */
#define REQUEST_SITES_MAX	512	/* of a file */

enum probe_request_kind {
	REQUEST_ANY,		/* USDT probes of that name, or else functions */
	REQUEST_USDT,
	REQUEST_FUNCTION,
	REQUEST_RETURN,		/* when a function returns */
};

/* What is wanted. All is borrowed. */
struct probe_request {
	enum probe_request_kind kind;
	const char *provider, *name;	/* names or globs; provider NULL: any */
	const struct expression *filter;	/* NULL: every hit */
	const struct expression *fields[REQUEST_FIELDS];
	unsigned int nfields;
	uint32_t texts;			/* bit n: field n is the address of a text */
	bool all;			/* no fields: show what arguments there are; */
	unsigned int registers;		/* of a function, so many of them */
};

enum probe_request_type {
	REQUEST_UNKNOWN,			/* it cannot be read at this site */
	REQUEST_NUMBER,
	REQUEST_REGISTER,			/* 64 bits of any kind */
	REQUEST_FLOAT,
	REQUEST_TEXT,
};

struct probe_request_field {
	enum probe_request_type type;
	unsigned int size;		/* bytes */
	unsigned int is_signed;		/* as wide as the others: no padding */
};

/* A probe whose sites have fields of the same types; its number is in the records. */
struct traced_probe {
	uint32_t request;			/* number of the wish that it comes from */
	char *provider, *name;		/* provider NULL: a function */
	bool on_return;
	unsigned int nfields;
	uint32_t texts;
	struct probe_request_field fields[REQUEST_FIELDS];
};

/* All zero is an empty one; probe_table_free() ends it. */
struct probe_table {
	struct traced_probe *probes;
	uint32_t count;
};

enum probe_request_mode {
	REQUEST_SEND,			/* each hit */
	REQUEST_COUNT,			/* count hits, by the first field if there is one */
	REQUEST_HISTOGRAM,			/* count hits by the first field's power of two */
};

/* What a file is searched with. All is borrowed. */
struct probe_request_common {
	const struct runtime *runtime;
	const char *path;		/* of the file, for messages */
	enum probe_request_mode mode;
	uint32_t text_size;		/* room for a text, a multiple of 8 */
	struct probe_table *table;	/* gets what is new */
	/* Hears of a probe of a pattern that is passed over, and why. */
	void (*skipped)(void *arg, const struct error *error);
	void *arg;
};

/*
 * Adds what @aim, wish number @number, means for file @elf to @plan. The number of probes that the
 * file has, or -errno and why in @fault.
 */
int probe_request_file(const struct probe_request *request, uint32_t number, const struct elf *elf,
		       const struct probe_request_common *common, struct uprobe_set *set,
		       struct error *error);

void probe_table_free(struct probe_table *table);

/* The size of a record with so many fields and texts. */
uint32_t probe_request_record_size(unsigned int nfields, uint32_t texts, uint32_t text_size);

#endif
