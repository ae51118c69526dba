/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Errors: a kind and its subject. cli/message.c prints them with the cause and the remedy. */
#ifndef LOADER_ERROR_H
#define LOADER_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum error_kind {
	ERROR_NONE,
	ERROR_MEMORY,		/* allocation in this process failed */
	ERROR_MAP,		/* the kernel refused a BPF map, subject: its name */
	ERROR_PROGRAM,		/* the kernel refused a BPF program, subject: its name; log */
	ERROR_NO_LOOPS,		/* the kernel's verifier lacks bounded loops */
	ERROR_NO_JIT,		/* a BPF program requires the kernel's JIT, subject: its name */
	ERROR_LINK,		/* a symbol of our object is unresolved, subject: its name */
	ERROR_TRACEPOINT,	/* subject: its name */
	ERROR_ATTACH,		/* uprobes on the file, subject: its path */
	ERROR_NO_UPROBES,	/* the kernel has no method to attach uprobes */
	ERROR_TYPES,		/* neither BTF nor tracefs describes the kernel's types */
	ERROR_STREAM,		/* mapping the buffer of records */
	ERROR_READER,		/* the helper that reads other processes has ended */
	ERROR_WAIT,		/* waiting for signals and the time limit */
	ERROR_PROC,		/* reading /proc */
	ERROR_PROCESS,		/* no such process, subject: its PID */
	ERROR_CHILDREN,		/* its later children are not traced, subject: its PID */
	ERROR_NOT_SERVER,	/* a process or file of no known engine, subject: its path */
	ERROR_EMBEDDED,		/* the same, of a server that is a library */
	ERROR_OTHER_SERVER,	/* of another engine, subject: its path, detail: that engine */
	ERROR_NO_SAMPLES,	/* the sessions of a server cannot be sampled, subject: its path */
	ERROR_NO_SESSIONS,	/* the sessions of a server are unknown, subject: its path */
	ERROR_FILE,		/* opening or reading a file, subject: its path */
	ERROR_OUTPUT,		/* opening a file for output, subject: its path */
	ERROR_NOT_ELF,		/* subject: its path */
	ERROR_MACHINE,		/* a file for another architecture, subject: its path */
	ERROR_32_BIT,		/* a 32-bit program, subject: its path */
	ERROR_NO_PROBES,	/* a required probe is missing, subject: path, detail: its name */
	ERROR_NO_SYMBOLS,	/* those of all functions are, subject: path, detail: the engine */
	ERROR_VARIANT,		/* a function has another one, subject: path, detail: its name */
	ERROR_UNUSABLE,		/* a probe in this kernel, subject: path, detail: its name, why */
	ERROR_TOO_LARGE,	/* the tables of a file, subject: its path; -EINTR: stopped */
	ERROR_SITE,		/* a probe site is invalid, subject: the file's path, detail: why */
	ERROR_NOP,		/* a probe's nop must not be replaced, as above; loader/hazard.h */
	ERROR_RETURN,		/* probing returns may kill, subject: what, detail: which ones */
	ERROR_NAMESPACE,	/* the kernel cannot convert PIDs to those of our PID namespace */
	ERROR_SEMAPHORES,	/* the kernel cannot increment those of a file, subject: its path */
	ERROR_TOO_MANY,		/* subject: of what */
	ERROR_SHARE,		/* a user's files beyond his share, subject: path, detail: user */
	ERROR_YOUNG,		/* a process may copy its code yet, subject: path, detail: PID */
	ERROR_COPIED,		/* processes execute a copy of a file, subject: its path, detail */
	ERROR_GO_RETURN,	/* of a function of a Go program, subject: its path, detail: name */
	ERROR_THROWS,		/* an exception would end the traced program, subject: its path */
	ERROR_PROBE,		/* a probe lacks what was requested, subject: its name, detail */
};

struct error {
	enum error_kind kind;
	int code;		/* negative errno, or 0 */
	char subject[256];	/* foreign bytes: to be escaped */
	char detail[128];
	char *log;		/* the verifier's last lines, or NULL; error_clear() frees it */
};

/*
 * Set @error: a program could not be linked, as @symbol of it is not defined, or as there was no
 * memory, which @err says. Return @err.
 */
int error_link(struct error *error, int err, const char *symbol, const char *program);

/* Return whether @error leaves open that the file can be traced by other probes. */
static inline bool error_lacks_probes(const struct error *error)
{
	return error->kind == ERROR_NONE || error->kind == ERROR_NO_PROBES ||
	       error->kind == ERROR_NO_SYMBOLS || error->kind == ERROR_UNUSABLE;
}

/* Return whether @error says that the file is no server, or no build of one, that is supported. */
static inline bool error_is_of_build(const struct error *error)
{
	return error->kind == ERROR_NO_PROBES || error->kind == ERROR_NO_SYMBOLS;
}

/* Set all members of @error but the log. Longer strings are cut; NULL is "". Return @code. */
int error_set(struct error *error, enum error_kind kind, int code, const char *subject,
	      const char *detail);

/*
 * Report that the @npids processes in @pids, some of which are named, execute a copy of the code of
 * the file @path. Return -ENOTSUP.
 */
int error_set_copied(struct error *error, const char *path, const uint32_t *pids, size_t npids);

/* Free the log and reset to ERROR_NONE. */
void error_clear(struct error *error);

#endif
