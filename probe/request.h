/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probe requests: the probes to match, USDT or functions, and the arguments to capture; and the
 * uprobes that a request requires in a file.
 */
#ifndef PROBE_REQUEST_H
#define PROBE_REQUEST_H

#include "loader/runtime.h"
#include "usdt/elf.h"
#include "usdt/emit.h"
#include "usdt/expression.h"

#define REQUEST_FIELDS	12	/* at most PROBE_HIT_VALUES if they are counted */
#define REQUEST_REGISTERS	6	/* arguments of a function that are read from registers */
#define REQUEST_SITES_MAX	2048	/* of a file; 5 ms each to load .. */
#define REQUEST_SITES_PERF	512	/* .. and 60 ms more without uprobe_multi */

/* Values that the program of a site is linked with: what the loader has, and those of the site. */
#define REQUEST_NUMBERS	13
#define REQUEST_VALUES	(RUNTIME_VALUES + REQUEST_NUMBERS + EXPRESSION_VARIABLES + 3 + \
			 REQUEST_FIELDS)

enum probe_request_kind {
	REQUEST_ANY,		/* USDT probes of that name; functions if there are none */
	REQUEST_USDT,
	REQUEST_FUNCTION,
	REQUEST_RETURN,		/* returns of a function */
};

/* The latencies that are measured. */
enum probe_request_latency {
	LATENCY_NONE,
	LATENCY_CALL,		/* of the calls of functions, REQUEST_RETURN */
	LATENCY_START,		/* from hits of this request .. */
	LATENCY_END,		/* .. to those of another one */
};

/* A request. Everything is borrowed. */
struct probe_request {
	enum probe_request_kind kind;
	enum probe_request_latency latency;
	const char *provider, *name;	/* names or globs; provider NULL: any */
	const struct expression *filter;	/* NULL: every hit */
	const struct expression *fields[REQUEST_FIELDS];
	unsigned int nfields;
	uint32_t texts;			/* bit n: field n is the address of a text */
	uint32_t lengths;		/* bit n: field n - 1, an int, limits text n */
	bool all;			/* no fields: capture all arguments .. */
	unsigned int registers;		/* .. of a function, the first so many */
};

enum probe_request_type {
	REQUEST_UNKNOWN,		/* cannot be read at this site */
	REQUEST_NUMBER,
	REQUEST_REGISTER,		/* 64 bits of unknown type */
	REQUEST_FLOAT,
	REQUEST_TEXT,
	REQUEST_COMM,			/* this value and the next one are the bytes of a text */
};

struct probe_request_field {
	enum probe_request_type type;
	unsigned int size;		/* bytes */
	unsigned int is_signed;		/* 0 or 1; of this width, so that there is no padding */
};

/* A probe whose sites have fields of the same types. Records have its index, the probe ID. */
struct traced_probe {
	uint32_t request;		/* number of its request */
	char *path, *provider, *name;	/* owned; provider NULL: a function */
	bool several;			/* one of the same name is in another file */
	bool on_return;
	unsigned int nfields;
	uint32_t texts, lengths;
	struct probe_request_field fields[REQUEST_FIELDS];
};

/* Traced probes by ID. All zero is an empty table; probe_table_free() frees it. */
struct probe_table {
	struct traced_probe *probes;
	uint32_t count;
};

enum probe_request_mode {
	REQUEST_SEND,			/* send each hit */
	REQUEST_COUNT,			/* count hits, by their fields */
	REQUEST_HISTOGRAM,		/* .. and by the power of two of the first one */
	REQUEST_LATENCIES,		/* count hits by the power of two of the latency in us */
};

/* Parameters of searching a file. Everything is borrowed. */
struct probe_request_config {
	const struct runtime *runtime;
	struct features *features;	/* to ask for hazards, see loader/hazard.h */
	const char *path;		/* of the file, for errors */
	int fd;				/* of the file */
	const struct elf *debug;	/* its debug file, which has its symbols; or NULL */
	enum probe_request_mode mode;
	uint32_t text_size;		/* bytes for a text in a record, a multiple of 8 */
	bool stacks;			/* send user stacks */
	bool go_returns;		/* also trace returns in Go programs */
	struct probe_table *table;	/* new probes are added to it */
	/* Called for a probe that matches a pattern but cannot be traced, with the cause. */
	void (*skipped)(void *arg, const struct error *error);
	void *arg;
};

/* Free the entries and reset the table to empty. */
void probe_table_free(struct probe_table *table);

/*
 * Return the size in bytes of a record with @nfields fields, a text of @text_size bytes for each
 * bit in @texts and, with @stack, a struct event_stack.
 */
uint32_t probe_request_record_size(unsigned int nfields, uint32_t texts, uint32_t text_size,
				   bool stack);

/* A place for a breakpoint. Everything is borrowed. */
struct request_site {
	const char *provider, *name;	/* provider NULL: a function */
	const char *args;		/* specs of a USDT site */
	uint64_t vaddr;
	struct uprobe_site uprobe;
};

/* State of searching one file for the probes of one request. Pointers are borrowed. */
struct request_ctx {
	const struct probe_request *request;
	uint32_t number;
	const struct elf *elf;
	const char *path;
	const struct probe_request_config *config;
	struct uprobe_set *set;
	struct error *error;
	const char *program;
	bool on_return;
	bool label;			/* a symbol without a type has the request's name */
	unsigned int skipped;
	/* Of the current site: */
	struct spec specs[EXPRESSION_PID];	/* by variable */
	unsigned int nargs;
	struct expression_site variables;
	struct traced_probe probe;
	struct object_value values[REQUEST_VALUES];
	size_t nvalues;
	struct bpf_insn args[EXPRESSION_PID][EMIT_INSNS_MAX];
	struct bpf_insn frame[EMIT_INSNS_MAX], caller[EMIT_INSNS_MAX];
	struct bpf_insn filter[EXPRESSION_INSNS_MAX];
	struct bpf_insn fields[REQUEST_FIELDS][EXPRESSION_INSNS_MAX];
	struct bpf_insn linked[OBJECT_INSNS_MAX];
};

/* Store in the error that @site cannot be traced because @what ("arg1", may be "") has @why. */
int request_refuse(struct request_ctx *ctx, const struct request_site *site, const char *what,
		   const char *why);

/* Store in the error that there are more than @max of @what, "probe sites". Return -E2BIG. */
int request_too_many(struct request_ctx *ctx, const char *what, unsigned int max);

/*
 * Add @site with its program to the set, of a call both ends. Return 0, or -errno and the cause in
 * ctx->error.
 */
int request_add_site(struct request_ctx *ctx, const struct request_site *site);

#endif
