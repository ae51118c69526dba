/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef LOADER_ERROR_H
#define LOADER_ERROR_H

#include <stddef.h>
#include <stdint.h>

/* What went wrong, in terms that cli/ has words and a remedy for. */
enum fault_kind {
	FAULT_NONE,
	FAULT_MEMORY,		/* no memory in this process */
	FAULT_MAP,		/* the kernel refused a BPF map, subject: its name */
	FAULT_PROGRAM,		/* the kernel refused a BPF program, subject: its name; log */
	FAULT_LINK,		/* our object has a hole that nothing fills, subject: the symbol */
	FAULT_TRACEPOINT,	/* subject: its name */
	FAULT_ATTACH,		/* uprobes on the file, subject: its path */
	FAULT_NO_UPROBES,	/* the kernel has no way to attach uprobes */
	FAULT_TRACEFS,		/* tracefs is the only way, and may not be used */
	FAULT_TYPES,		/* the kernel does not describe its types */
	FAULT_STREAM,		/* mapping the ring buffer */
	FAULT_WAIT,		/* what is to end us cannot be waited for */
	FAULT_PROC,		/* /proc cannot be read */
	FAULT_PROCESS,		/* no such process, subject: its PID */
	FAULT_NOT_SERVER,	/* a process or file of no known engine, subject: its path */
	FAULT_FILE,		/* opening or reading a file, subject: its path */
	FAULT_NOT_ELF,		/* subject: its path */
	FAULT_MACHINE,		/* a file for another architecture, subject: its path */
	FAULT_NO_PROBES,	/* the file lacks what is needed, subject: its path, detail: what */
	FAULT_SITE,		/* a probe's site is none, subject: the file's path, detail: why */
	FAULT_NAMESPACE,	/* PIDs of a PID namespace of our own cannot be told */
	FAULT_NOTE,		/* what is written into servers cannot be noted */
	FAULT_SEMAPHORE,	/* a process that cannot be written to, subject: its PID */
	FAULT_TOO_MANY,		/* subject: of what */
	FAULT_PROBE,		/* a probe cannot be traced as it was asked for, subject: its name, detail: why */
};

struct fault {
	enum fault_kind kind;
	int error;		/* negative errno, or 0 */
	char subject[256];	/* foreign bytes: to be escaped */
	char detail[128];
	char *log;		/* the verifier's, or NULL; fault_clear() frees it */
};

/* Fills @fault, what is too long is cut; its log is kept. @error, for "return fault_set(…)". */
int fault_set(struct fault *fault, enum fault_kind kind, int error, const char *subject,
	      const char *detail);

/* That there is no way to attach uprobes; @tracefs_error says what became of the last one. */
int fault_set_no_way(struct fault *fault, int tracefs_error);

/* Back to FAULT_NONE. */
void fault_clear(struct fault *fault);

#endif
