/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef LOADER_ERROR_H
#define LOADER_ERROR_H

#include <stddef.h>
#include <stdint.h>

/* What went wrong, in terms that cli/ has words and a remedy for. */
enum error_kind {
	ERROR_NONE,
	ERROR_MEMORY,		/* no memory in this process */
	ERROR_MAP,		/* the kernel refused a BPF map, subject: its name */
	ERROR_PROGRAM,		/* the kernel refused a BPF program, subject: its name; log */
	ERROR_LINK,		/* our object has a hole that nothing fills, subject: the symbol */
	ERROR_TRACEPOINT,	/* subject: its name */
	ERROR_ATTACH,		/* uprobes on the file, subject: its path */
	ERROR_NO_UPROBES,	/* the kernel has no way to attach uprobes */
	ERROR_TRACEFS,		/* tracefs is the only way, and may not be used */
	ERROR_TYPES,		/* the kernel does not describe its types */
	ERROR_STREAM,		/* mapping the ring buffer */
	ERROR_WAIT,		/* what is to end us cannot be waited for */
	ERROR_PROC,		/* /proc cannot be read */
	ERROR_PROCESS,		/* no such process, subject: its PID */
	ERROR_NOT_SERVER,	/* a process or file of no known engine, subject: its path */
	ERROR_FILE,		/* opening or reading a file, subject: its path */
	ERROR_NOT_ELF,		/* subject: its path */
	ERROR_MACHINE,		/* a file for another architecture, subject: its path */
	ERROR_NO_PROBES,	/* the file lacks what is needed, subject: its path, detail: what */
	ERROR_SITE,		/* a probe's site is none, subject: the file's path, detail: why */
	ERROR_NAMESPACE,	/* PIDs of a PID namespace of our own cannot be told */
	ERROR_NOTE,		/* what is written into servers cannot be noted */
	ERROR_SEMAPHORE,	/* a process that cannot be written to, subject: its PID */
	ERROR_TOO_MANY,		/* subject: of what */
	ERROR_PROBE,		/* a probe cannot be traced as it was asked for, subject: its name, detail: why */
};

struct error {
	enum error_kind kind;
	int code;		/* negative errno, or 0 */
	char subject[256];	/* foreign bytes: to be escaped */
	char detail[128];
	char *log;		/* the verifier's, or NULL; error_clear() frees it */
};

/* Fills @fault, what is too long is cut; its log is kept. @error, for "return error_set(…)". */
int error_set(struct error *error, enum error_kind kind, int code, const char *subject,
	      const char *detail);

/* That there is no way to attach uprobes; @tracefs_error says what became of the last one. */
int error_set_no_uprobes(struct error *error, int tracefs_error);

/* Back to ERROR_NONE. */
void error_clear(struct error *error);

#endif
