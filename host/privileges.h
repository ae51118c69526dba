/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The privileges of this process and the settings of the host that limit them, read from proc(5)
 * and securityfs; without a /proc, those of the process from system calls. Nothing is changed.
 */
#ifndef HOST_PRIVILEGES_H
#define HOST_PRIVILEGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PRIVILEGES_SYSCTLS	4

struct privileges_sysctl {
	const char *name;	/* "kernel.perf_event_paranoid" */
	int error;		/* negative errno if it cannot be read, else 0 */
	long value;
};

/* A mount that is required. */
struct privileges_mount {
	bool mounted;		/* a file system of the right type is mounted */
	/* /proc: "" or "0" shows all processes; "1", "invisible", …: proc(5). Untrusted bytes. */
	char hidepid[16];
};

struct privileges {
	char release[65], machine[65];	/* of the kernel; uname(2) */
	unsigned int major, minor;	/* of the release; 0.0 if it has another form */
	char lockdown[24];		/* "none", "integrity", "confidentiality"; "" on error */
	int lockdown_error;		/* negative errno if it cannot be read, else 0 */
	uid_t uid;			/* effective user ID */
	uint64_t capabilities;		/* effective capabilities, a bit each */
	unsigned int seccomp;		/* 0: disabled, 1: strict, 2: filter */
	bool no_new_privs;
	bool sandbox;			/* this program has dropped capabilities */
	int user_ns_error;		/* negative errno if the namespace is unknown, else 0 */
	bool initial_user_ns;		/* or unknown; else bpf(2) ignores the capabilities */
	struct privileges_sysctl sysctls[PRIVILEGES_SYSCTLS];
	uint64_t memlock;		/* RLIMIT_MEMLOCK, in bytes; UINT64_MAX: unlimited */
	uint64_t nofile;		/* RLIMIT_NOFILE; UINT64_MAX: unlimited */
	uint64_t memory, memory_left;	/* see limits_memory() */
	struct privileges_mount proc, sys;
	bool initial_pid_ns;
	int pid_ns_error;		/* negative errno if the PID namespace is unknown, else 0 */
};

/* A capability that tracing may require. */
struct privileges_capability {
	unsigned int bit;	/* CAP_* of linux/capability.h */
	const char *name;	/* "CAP_BPF" */
};

#define PRIVILEGES_CAPABILITIES	9
extern const struct privileges_capability privileges_capabilities[PRIVILEGES_CAPABILITIES];

/* Read all privileges. Members that cannot be read stay 0 or "", or have the values named above. */
void privileges_read(struct privileges *priv);

/* Return whether BPF programs are interpreted, as net.core.bpf_jit_enable is 0. Reads that file. */
bool privileges_jit_disabled(void);

/* Return whether capability @bit is effective. */
bool privileges_may(const struct privileges *priv, unsigned int bit);

/*
 * Return whether the kernel's release is older than @major.@minor. For diagnostics only: it is not
 * evidence for or against a feature.
 */
bool privileges_before(const struct privileges *priv, unsigned int major, unsigned int minor);

/* Return whether /proc hides other users' processes from processes without CAP_SYS_PTRACE. */
bool privileges_hides(const struct privileges *priv);

/*
 * Return whether lockdown denies reading kernel memory: the helpers before Linux 5.5, and tracefs.
 */
bool privileges_locked_down(const struct privileges *priv);

/*
 * Store the names of the missing capabilities in the @size bytes of @text: "CAP_BPF, CAP_PERFMON".
 * Required are these two, before Linux 5.8 CAP_SYS_ADMIN, which is also sufficient since. Return
 * whether any is missing.
 */
bool privileges_missing(const struct privileges *priv, char *text, size_t size);

/*
 * Store the value of option @name ("hidepid") of the last mount at @point in the @size bytes of
 * @value, "" without one. @text is the @len bytes of a /proc/PID/mountinfo.
 */
void privileges_mount_option(const char *text, size_t len, const char *point, const char *name,
			     char *value, size_t size);

#endif
