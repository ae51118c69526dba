/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this host lets us do, as the kernel's files have it. Nothing is changed. */
#ifndef HOST_PRIVILEGES_H
#define HOST_PRIVILEGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HOST_SYSCTLS	4

struct privileges_sysctl {
	const char *name;	/* "kernel.perf_event_paranoid" */
	int error;		/* negative errno where it cannot be read, else 0 */
	long value;
};

/* A mount that is needed. */
struct privileges_mount {
	bool there;		/* a file system of the right kind */
	char hidepid[16];	/* of /proc: "" or "0": all may be seen; "1", "invisible", … foreign bytes */
};

struct privileges {
	char release[65], machine[65];	/* of the kernel */
	unsigned int major, minor;	/* of the release; 0.0 where it has another form */
	char lockdown[24];		/* "none", "integrity", "confidentiality"; "" and why: */
	int lockdown_error;
	uid_t uid;			/* the effective one */
	uint64_t capabilities;		/* those in effect, a bit each */
	unsigned int seccomp;		/* 0: no filter, 1: strict, 2: a filter */
	bool no_new_privs;
	bool sandbox;			/* the filter is our own: what was not needed was given up */
	bool initial_user_ns;		/* else capabilities are of no use to bpf(2) */
	struct privileges_sysctl sysctls[HOST_SYSCTLS];
	uint64_t memlock;		/* RLIMIT_MEMLOCK in bytes; UINT64_MAX: no limit */
	struct privileges_mount proc, sys;
	bool initial_pid_ns;
	int pid_ns_error;		/* negative errno where that cannot be told */
};

/* A capability that tracing may need. */
struct privileges_capability {
	unsigned int bit;
	const char *name;	/* "CAP_BPF" */
};

#define PRIVILEGES_CAPABILITIES	8
extern const struct privileges_capability privileges_capabilities[PRIVILEGES_CAPABILITIES];

/* Reads all of it; what cannot be read is left 0, "" or as said above. */
void privileges_read(struct privileges *host);

/* Whether capability number @bit is in effect. */
bool privileges_may(const struct privileges *host, unsigned int bit);

/* Whether the kernel says that it is older than @major.@minor. */
bool privileges_before(const struct privileges *host, unsigned int major, unsigned int minor);

/* Whether /proc hides other users' processes from who lacks CAP_SYS_PTRACE. */
bool privileges_hides(const struct privileges *host);

/* Whether lockdown forbids what reads the kernel: the helpers before Linux 5.5, and tracefs. */
bool privileges_locked_down(const struct privileges *host);

/*
 * Names what is missing of CAP_BPF and CAP_PERFMON, or of CAP_SYS_ADMIN before there were those, to
 * @text of @size bytes: "CAP_BPF, CAP_PERFMON". Whether anything is.
 */
bool privileges_missing(const struct privileges *host, char *text, size_t size);

/*
 * The value of option @name ("hidepid") of the last mount at @point in @text, the content of a
 * /proc/PID/mountinfo of @len bytes, to @value of @size bytes; "" where it has none.
 */
void privileges_mount_option(const char *text, size_t len, const char *point, const char *name,
			     char *value, size_t size);

#endif
