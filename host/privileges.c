// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "host/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "host/pid_namespace.h"
#include "host/process.h"
#include "host/lockdown.h"

#define MOUNTS_MAX	(1u << 20)	/* a mountinfo beyond this is cut */

const struct privileges_capability privileges_capabilities[PRIVILEGES_CAPABILITIES] = {
	{ CAP_BPF, "CAP_BPF" },
	{ CAP_PERFMON, "CAP_PERFMON" },
	{ CAP_SYS_ADMIN, "CAP_SYS_ADMIN" },
	{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE" },
	{ CAP_SYS_RESOURCE, "CAP_SYS_RESOURCE" },
	{ CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE" },
	{ CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH" },
	{ CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE" },
};

/* The first @size - 1 bytes of a file, with a NUL. How many, or -errno and "". */
static ssize_t host_file(const char *path, char *buf, size_t size)
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

/* The number behind "\nCapEff:" and the like; 0 where there is none. */
static uint64_t status_field(const char *status, const char *field, int base)
{
	const char *at = strstr(status, field);

	return at ? strtoull(at + strlen(field), NULL, base) : 0;
}

static void host_rights(struct privileges *host)
{
	char status[8192], map[128];

	host->uid = geteuid();
	host_file("/proc/self/uid_map", map, sizeof(map));
	host->initial_user_ns = strstr(map, " 4294967295\n");
	host_file("/proc/self/status", status, sizeof(status));
	host->capabilities = status_field(status, "\nCapEff:", 16);
	host->seccomp = (unsigned int)status_field(status, "\nSeccomp:", 10);
	host->no_new_privs = status_field(status, "\nNoNewPrivs:", 10);
	/* Nobody else leaves a process capabilities that it cannot hand on. */
	host->sandbox = host->seccomp && host->capabilities &&
			 !(host->capabilities & status_field(status, "\nCapBnd:", 16));
}

static void host_sysctls(struct privileges *host)
{
	static const struct {
		const char *name, *path;
	} all[HOST_SYSCTLS] = {
		{ "kernel.unprivileged_bpf_disabled",
		  "/proc/sys/kernel/unprivileged_bpf_disabled" },
		{ "kernel.perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid" },
		{ "net.core.bpf_jit_enable", "/proc/sys/net/core/bpf_jit_enable" },
		{ "kernel.yama.ptrace_scope", "/proc/sys/kernel/yama/ptrace_scope" },
	};

	for (size_t i = 0; i < HOST_SYSCTLS; i++) {
		char text[32];
		ssize_t n = host_file(all[i].path, text, sizeof(text));

		host->sysctls[i] = (struct privileges_sysctl){ .name = all[i].name,
							       .error = n < 0 ? (int)n : 0,
							       .value = strtol(text, NULL, 10) };
	}
}

static bool mount_is(const char *path, long magic)
{
	struct statfs fs;

	return !statfs(path, &fs) && (long)fs.f_type == magic;
}

/* Field number @n, from 1, of a line that ends at @end; its length in *@len, 0: there is none. */
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

/* Looks for "NAME=value" in the options, with commas between, at the end of a line. */
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

static void host_mounts(struct privileges *host)
{
	char *text = malloc(MOUNTS_MAX);
	ssize_t n = text ? host_file("/proc/self/mountinfo", text, MOUNTS_MAX) : -ENOMEM;

	host->proc.there = mount_is("/proc", PROC_SUPER_MAGIC);
	host->sys.there = mount_is("/sys", SYSFS_MAGIC);
	if (n > 0)
		privileges_mount_option(text, (size_t)n, "/proc", "hidepid", host->proc.hidepid,
					sizeof(host->proc.hidepid));
	free(text);
}

static void host_kernel(struct privileges *host)
{
	struct utsname name;
	char *dot;

	if (uname(&name))
		return;
	snprintf(host->release, sizeof(host->release), "%s", name.release);
	snprintf(host->machine, sizeof(host->machine), "%s", name.machine);
	host->major = (unsigned int)strtoul(name.release, &dot, 10);
	host->minor = *dot == '.' ? (unsigned int)strtoul(dot + 1, NULL, 10) : 0;
}

void privileges_read(struct privileges *host)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	uint64_t dev, ino = 0;

	*host = (struct privileges){ .uid = 0 };
	host_kernel(host);
	host->lockdown_error = lockdown_read(host->lockdown, sizeof(host->lockdown));
	host_rights(host);
	host_sysctls(host);
	host_mounts(host);
	getrlimit(RLIMIT_MEMLOCK, &limit);
	host->memlock = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
	host->pid_ns_error = pid_namespace_own(&dev, &ino);
	host->initial_pid_ns = !host->pid_ns_error && !ino;
}

bool privileges_may(const struct privileges *host, unsigned int bit)
{
	return host->capabilities >> bit & 1;
}

bool privileges_hides(const struct privileges *host)
{
	const char *how = host->proc.hidepid;

	return *how && strcmp(how, "0") && strcmp(how, "off");
}

bool privileges_locked_down(const struct privileges *host)
{
	return !strcmp(host->lockdown, "confidentiality");
}

bool privileges_missing(const struct privileges *host, char *text, size_t size)
{
	bool before = privileges_before(host, 5, 8);
	int at = 0;

	*text = '\0';
	for (size_t i = 0; i < PRIVILEGES_CAPABILITIES; i++) {
		const struct privileges_capability *cap = &privileges_capabilities[i];
		bool wanted = before ? cap->bit == CAP_SYS_ADMIN :
				       cap->bit == CAP_BPF || cap->bit == CAP_PERFMON;

		if (wanted && !privileges_may(host, cap->bit) &&
		    !privileges_may(host, CAP_SYS_ADMIN))
			at += snprintf(text + at, size - (size_t)at, "%s%s", at ? ", " : "",
				       cap->name);
	}
	return at;
}

bool privileges_before(const struct privileges *host, unsigned int major, unsigned int minor)
{
	return host->major && (host->major < major ||
			       (host->major == major && host->minor < minor));
}
