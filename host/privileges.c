// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "host/limits.h"
#include "host/lockdown.h"
#include "host/pid_namespace.h"

#define MOUNTS_MAX	(1u << 20)	/* bytes; a longer mountinfo is truncated */

const struct privileges_capability privileges_capabilities[PRIVILEGES_CAPABILITIES] = {
	{ CAP_BPF, "CAP_BPF" },
	{ CAP_PERFMON, "CAP_PERFMON" },
	{ CAP_SYS_ADMIN, "CAP_SYS_ADMIN" },
	{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE" },
	{ CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE" },
	{ CAP_IPC_LOCK, "CAP_IPC_LOCK" },
	{ CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE" },
	{ CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH" },
	{ CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE" },
};

/*
 * Read the first @size - 1 bytes of a file and append a NUL. Return the number of bytes, or -errno
 * with an empty @buf.
 */
static ssize_t read_text(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t at = 0;
	ssize_t n = fd < 0 ? -errno : 1;

	while (n > 0 && at < size - 1) {
		n = read(fd, buf + at, size - 1 - at);
		if (n < 0)
			n = -errno;
		else
			at += (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	buf[n < 0 ? 0 : at] = '\0';
	return n < 0 ? n : (ssize_t)at;
}

/* Return the number after @key, "\nCapEff:" and the like; 0 without one. */
static uint64_t status_number(const char *status, const char *key, int base)
{
	const char *at = strstr(status, key);

	return at ? strtoull(at + strlen(key), NULL, base) : 0;
}

/* The seccomp filter of the sandbox forbids these calls, but then /proc can be read. */
static void read_credentials_by_calls(struct privileges *priv)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	int seccomp = prctl(PR_GET_SECCOMP, 0, 0, 0, 0);

	syscall(SYS_capget, &header, data);
	priv->capabilities = data[0].effective | (uint64_t)data[1].effective << 32;
	priv->seccomp = seccomp > 0 ? (unsigned int)seccomp : 0;
	priv->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) > 0;
}

static void read_credentials(struct privileges *priv)
{
	char status[8192], map[128];
	ssize_t n = read_text("/proc/self/uid_map", map, sizeof(map));

	priv->uid = geteuid();
	priv->user_ns_error = n < 0 ? (int)n : 0;
	priv->initial_user_ns = n < 0 || strstr(map, " 4294967295\n");
	if (read_text("/proc/self/status", status, sizeof(status)) <= 0) {
		read_credentials_by_calls(priv);
		return;
	}
	priv->capabilities = status_number(status, "\nCapEff:", 16);
	priv->seccomp = (unsigned int)status_number(status, "\nSeccomp:", 10);
	priv->no_new_privs = status_number(status, "\nNoNewPrivs:", 10);
	/* Capabilities with an empty bounding set are left only by the sandbox of this program. */
	priv->sandbox = priv->seccomp && priv->capabilities &&
			!(priv->capabilities & status_number(status, "\nCapBnd:", 16));
}

#define SYSCTL_JIT	"/proc/sys/net/core/bpf_jit_enable"

bool privileges_jit_disabled(void)
{
	char text[8];

	return read_text(SYSCTL_JIT, text, sizeof(text)) > 0 && *text == '0';
}

static void read_sysctls(struct privileges *priv)
{
	static const struct {
		const char *name, *path;
	} all[PRIVILEGES_SYSCTLS] = {
		{ "kernel.unprivileged_bpf_disabled",
		  "/proc/sys/kernel/unprivileged_bpf_disabled" },
		{ "kernel.perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid" },
		{ "net.core.bpf_jit_enable", SYSCTL_JIT },
		{ "kernel.yama.ptrace_scope", "/proc/sys/kernel/yama/ptrace_scope" },
	};

	for (size_t i = 0; i < PRIVILEGES_SYSCTLS; i++) {
		char text[32];
		ssize_t n = read_text(all[i].path, text, sizeof(text));

		priv->sysctls[i] = (struct privileges_sysctl){
			.name = all[i].name, .error = n < 0 ? (int)n : 0,
			.value = strtoull(text, NULL, 10),
		};
	}
}

static bool mount_is(const char *path, long magic)
{
	struct statfs fs;

	return !statfs(path, &fs) && (long)fs.f_type == magic;
}

/*
 * Return field number @n, counted from 1, of the line from @line to @end, and its length in *@len,
 * which is 0 without one. Fields are separated by one blank; proc(5), mountinfo.
 */
static const char *line_field(const char *line, const char *end, int n, size_t *len)
{
	for (;;) {
		const char *blank = memchr(line, ' ', (size_t)(end - line));

		if (!blank)
			blank = end;
		*len = (size_t)(blank - line);
		if (!--n)
			return line;
		if (blank == end)
			break;
		line = blank + 1;
	}
	*len = 0;
	return end;
}

/*
 * Store the value of "NAME=VALUE" from the superblock options, the comma-separated last field of
 * the line from @line to @end. Leave @value as it is without one.
 */
static void line_option(const char *line, const char *end, const char *name, char *value,
			size_t size)
{
	size_t name_len = strlen(name), len;
	const char *at = end;

	while (at > line && at[-1] != ' ')
		at--;
	for (; at < end; at += len + 1) {
		const char *comma = memchr(at, ',', (size_t)(end - at));

		len = (size_t)((comma ? comma : end) - at);
		if (len <= name_len || memcmp(at, name, name_len) || at[name_len] != '=')
			continue;
		snprintf(value, size, "%.*s", (int)(len - name_len - 1), at + name_len + 1);
		return;
	}
}

void privileges_mount_option(const char *text, size_t len, const char *point, const char *name,
			     char *value, size_t size)
{
	const char *end = text + len;

	*value = '\0';
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text)), *field;
		size_t field_len;

		if (!newline)
			newline = end;
		field = line_field(text, newline, 5, &field_len);
		if (field_len == strlen(point) && !memcmp(field, point, field_len)) {
			*value = '\0';
			line_option(text, newline, name, value, size);
		}
		text = newline + 1;
	}
}

static void read_mounts(struct privileges *priv)
{
	char *text = malloc(MOUNTS_MAX);
	ssize_t n = text ? read_text("/proc/self/mountinfo", text, MOUNTS_MAX) : -ENOMEM;

	priv->proc.mounted = mount_is("/proc", PROC_SUPER_MAGIC);
	priv->sys.mounted = mount_is("/sys", SYSFS_MAGIC);
	if (n > 0)
		privileges_mount_option(text, (size_t)n, "/proc", "hidepid", priv->proc.hidepid,
					sizeof(priv->proc.hidepid));
	free(text);
}

static void read_release(struct privileges *priv)
{
	struct utsname name;
	char *dot;

	if (uname(&name))
		return;
	snprintf(priv->release, sizeof(priv->release), "%s", name.release);
	snprintf(priv->machine, sizeof(priv->machine), "%s", name.machine);
	priv->major = (unsigned int)strtoull(name.release, &dot, 10);
	priv->minor = *dot == '.' ? (unsigned int)strtoull(dot + 1, NULL, 10) : 0;
}

static uint64_t read_limit(int resource)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };

	getrlimit(resource, &limit);
	return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
}

void privileges_read(struct privileges *priv)
{
	uint64_t dev, ino = 0;

	*priv = (struct privileges){ .uid = 0 };
	read_release(priv);
	priv->lockdown_error = lockdown_read(priv->lockdown, sizeof(priv->lockdown));
	read_credentials(priv);
	read_sysctls(priv);
	read_mounts(priv);
	priv->memlock = read_limit(RLIMIT_MEMLOCK);
	priv->nofile = read_limit(RLIMIT_NOFILE);
	priv->memory = limits_memory(false);
	priv->memory_left = limits_memory(true);
	priv->pid_ns_error = pid_namespace_own(&dev, &ino);
	priv->initial_pid_ns = !priv->pid_ns_error && !ino;
}

bool privileges_may(const struct privileges *priv, unsigned int bit)
{
	return priv->capabilities >> bit & 1;
}

bool privileges_hides(const struct privileges *priv)
{
	const char *mode = priv->proc.hidepid;

	return *mode && strcmp(mode, "0") && strcmp(mode, "off");
}

bool privileges_locked_down(const struct privileges *priv)
{
	return !strcmp(priv->lockdown, "confidentiality");
}

bool privileges_missing(const struct privileges *priv, char *text, size_t size)
{
	bool old = privileges_before(priv, 5, 8);
	int at = 0;

	*text = '\0';
	for (size_t i = 0; i < PRIVILEGES_CAPABILITIES; i++) {
		const struct privileges_capability *cap = &privileges_capabilities[i];
		bool required = old ? cap->bit == CAP_SYS_ADMIN :
				      cap->bit == CAP_BPF || cap->bit == CAP_PERFMON;

		if (required && !privileges_may(priv, cap->bit) &&
		    !privileges_may(priv, CAP_SYS_ADMIN))
			at += snprintf(text + at, size - (size_t)at, "%s%s", at ? ", " : "",
				       cap->name);
	}
	return at;
}

bool privileges_before(const struct privileges *priv, unsigned int major, unsigned int minor)
{
	return priv->major && (priv->major < major ||
			       (priv->major == major && priv->minor < minor));
}
