// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The kernel, what it can do and what we may do. */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/doctor.h"
#include "cli/json.h"
#include "host/limits.h"
#include "host/privileges.h"
#include "loader/feature.h"
#include "loader/sys.h"

#define MEMLOCK_NEEDED	(64u << 20)	/* bytes, before Linux 5.11 */

/* The host as it is looked at. */
struct doctor_host {
	struct doctor *doctor;
	struct privileges host;
	struct features features;
	int allowed;		/* 0, or the -errno that bpf(2) has for us */
};

/* What an answer means. */
static const struct {
	enum doctor_state without;
	const char *yes, *no, *remedy;
} feature_words[FEATURES] = {
	[FEATURE_RINGBUF] = {
		DOCTOR_NOTE, "statements come through one buffer",
		"statements come through a buffer for each CPU; trace cannot send hits",
		"It comes with Linux 5.8." },
	[FEATURE_UPROBE_PMU] = {
		DOCTOR_NOTE, "each probe can be attached by itself",
		"each probe is an event of tracefs",
		"It needs CONFIG_UPROBE_EVENTS, and comes with Linux 4.17." },
	[FEATURE_UPROBE_MULTI] = {
		DOCTOR_NOTE, "all probes of a server are attached at once",
		"each probe is attached by itself: with many, start and end take longer",
		"It comes with Linux 6.6." },
	[FEATURE_TRACING_ALLOC] = {
		DOCTOR_NOTE, "65536 sessions at a time",
		"memory is set aside at the start, for at most 4096 sessions at a time",
		"It comes with Linux 6.1." },
	[FEATURE_READ_USER] = {
		DOCTOR_NOTE, "memory of programs is read as such",
		"memory is read by probe_read, as before", "It comes with Linux 5.5." },
	[FEATURE_NS_PID] = {
		DOCTOR_NOTE, "the PID namespaces of servers are told apart",
		"-p takes servers of other PID namespaces with the same PID for one; inside of one, "
		"dbslower does not work",
		"It comes with Linux 5.7." },
	[FEATURE_TRACEFS] = {
		DOCTOR_NOTE, "probes could be attached by it, too",
		"without the uprobe PMU probes could not be attached",
		"It needs CONFIG_UPROBE_EVENTS and tracefs: mount -t tracefs tracefs "
		"/sys/kernel/tracing." },
	[FEATURE_REF_CTR] = {
		DOCTOR_NOTE, "they go with dbslower, even where it is killed",
		"they are written into the servers' memory, and taken back at the end",
		"It comes with Linux 4.20." },
	[FEATURE_TYPES] = {
		DOCTOR_NOTE, "--why and --use read the kernel's own structures",
		"--why is told by events of tracefs, and --use lacks what the kernel counts",
		"It needs CONFIG_DEBUG_INFO_BTF, and comes with Linux 5.4." },
	[FEATURE_TASK_REGS] = {
		DOCTOR_NOTE, "--why asks it for the system call that a thread waits in",
		"--why finds the system call that a thread waits in on its stack, or by events",
		"It comes with Linux 5.15." },
};

static void host_features(struct doctor_host *h)
{
	struct doctor *doctor = h->doctor;
	struct output *out = &doctor->out;

	if (doctor->options.json)
		output_string(out, ",\"features\":[");
	for (int i = 0; i < FEATURES; i++) {
		bool has = feature_has(&h->features, (enum feature)i);
		bool known = has || !h->allowed;

		if (doctor->options.json) {
			json_string(out, i ? ",{\"name\":\"" : "{\"name\":\"", feature_name(i));
			json_string(out, ",\"since\":\"", feature_since(i));
			output_string(out, !known ? "}" : has ? ",\"has\":true}" :
				      ",\"has\":false}");
		}
		if (!known)
			doctor_say(doctor, DOCTOR_NOTE, feature_name(i), NULL,
				   "not known, as bpf(2) is refused (%s)", feature_since(i));
		else if (has)
			doctor_say(doctor, DOCTOR_OK, feature_name(i), NULL, "yes (%s): %s",
				   feature_since(i), feature_words[i].yes);
		else
			doctor_say(doctor, feature_words[i].without, feature_name(i),
				   feature_words[i].remedy, "no (%s): %s", feature_since(i),
				   feature_words[i].no);
	}
	if (doctor->options.json)
		output_char(out, ']');
}

static void host_way(struct doctor_host *h)
{
	struct doctor *doctor = h->doctor;

	/* What may not be asked for is not known. */
	doctor->method = h->allowed ? ATTACH_NONE : attach_choose(&h->features);
	if (doctor->options.json && !h->allowed)
		json_string(&doctor->out, ",\"way\":\"", attach_method_name(doctor->method));
	if (doctor->method != ATTACH_NONE)
		doctor_say(doctor, DOCTOR_OK, "way to attach", NULL, "%s",
			   attach_method_name(doctor->method));
	else if (!h->allowed)
		doctor_say(doctor, DOCTOR_OBSTACLE, "way to attach",
			   "It needs CONFIG_UPROBE_EVENTS, and /sys mounted: mount -t sysfs sysfs "
			   "/sys.", "this kernel offers no uprobes");
}

static void host_lockdown(struct doctor_host *h)
{
	struct doctor *doctor = h->doctor;
	const struct privileges *host = &h->host;

	bool refused = h->allowed || !feature_has(&h->features, FEATURE_READ_USER);

	if (privileges_locked_down(host))
		doctor_say(doctor, refused ? DOCTOR_OBSTACLE : DOCTOR_NOTE, "lockdown",
			   refused ? "Boot with lockdown=integrity or none." : NULL,
			   refused ? "confidentiality, which may forbid tracing also to root" :
				     "confidentiality: it forbids tracefs and what was before Linux "
				     "5.5, but not tracing");
	else if (*host->lockdown)
		doctor_say(doctor, DOCTOR_OK, "lockdown", NULL, "%s", host->lockdown);
	else
		doctor_say(doctor, h->allowed ? DOCTOR_NOTE : DOCTOR_OK, "lockdown",
			   h->allowed ? "mount -t securityfs securityfs /sys/kernel/security" : NULL,
			   "not known (/sys/kernel/security/lockdown: %s)%s",
			   strerror(-host->lockdown_error),
			   h->allowed ? "" : "; it keeps no program from being loaded");
}

/* Why bpf(2) is refused. */
static void host_refused(struct doctor_host *h)
{
	struct doctor *doctor = h->doctor;
	const struct privileges *host = &h->host;
	char missing[64];

	if (h->allowed == -ENOSYS)
		doctor_say(doctor, DOCTOR_OBSTACLE, "rights",
			   "Use a kernel with CONFIG_BPF_SYSCALL, or a container that lets it pass.",
			   "this kernel has no bpf(2)");
	else if (h->allowed != -EPERM && h->allowed != -EACCES)
		doctor_say(doctor, DOCTOR_OBSTACLE, "rights",
			   "Please report this with the output of uname -a.",
			   "the kernel refuses a BPF program that does nothing: %s",
			   strerror(-h->allowed));
	else if (privileges_missing(host, missing, sizeof(missing)))
		doctor_say(doctor, DOCTOR_OBSTACLE, "rights", !host->uid ?
			   "They were taken from root, as containers do: give them back (docker run "
			   "--cap-add=BPF --cap-add=PERFMON), or run it on the host." :
			   "Run it as root, or give it these capabilities: setcap "
			   "cap_bpf,cap_perfmon,cap_sys_ptrace=ep dbslower.",
			   "uid %u; missing: %s", (unsigned int)host->uid, missing);
	else if (!host->initial_user_ns)
		doctor_say(doctor, DOCTOR_OBSTACLE, "rights", "Run it on the host.",
			   "uid %u in a user namespace, where capabilities do not count for bpf(2)",
			   (unsigned int)host->uid);
	else if (host->seccomp)
		doctor_say(doctor, DOCTOR_OBSTACLE, "rights",
			   "In a container, allow them (docker run --security-opt "
			   "seccomp=unconfined), or run it on the host.",
			   "the capabilities are there; a seccomp filter forbids bpf(2)");
	else
		doctor_say(doctor, DOCTOR_OBSTACLE, "rights",
			   "Ask it to let dbslower use bpf(2) and perf_event_open(2): ausearch -m "
			   "avc, or dmesg.",
			   "the capabilities are there; a security module (SELinux, AppArmor) may "
			   "forbid bpf(2)");
}

static void host_rights(struct doctor_host *h)
{
	struct doctor *doctor = h->doctor;
	const struct privileges *host = &h->host;
	bool admin = privileges_may(host, CAP_SYS_ADMIN);

	if (h->allowed)
		host_refused(h);
	else
		doctor_say(doctor, DOCTOR_OK, "rights", NULL, "uid %u may load programs%s",
			   (unsigned int)host->uid,
			   host->seccomp ? "; the seccomp filter lets them pass" : "");
	if (!privileges_may(host, CAP_SYS_PTRACE))
		doctor_say(doctor, DOCTOR_OBSTACLE, "CAP_SYS_PTRACE",
			   "Run it as root, or: setcap cap_bpf,cap_perfmon,cap_sys_ptrace=ep "
			   "dbslower. With -x a server's file is traced without it.",
			   "missing: servers of other users are not found");
	if (!admin && !privileges_may(host, CAP_CHECKPOINT_RESTORE))
		doctor_say(doctor, DOCTOR_NOTE, "CAP_CHECKPOINT_RESTORE", "setcap "
			   "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_checkpoint_restore=ep dbslower",
			   "missing: a server that was started through the dynamic loader is not "
			   "found once its file was deleted");
	if (!privileges_may(host, CAP_DAC_OVERRIDE) && !privileges_may(host, CAP_DAC_READ_SEARCH))
		doctor_say(doctor, DOCTOR_NOTE, "CAP_DAC_READ_SEARCH", "setcap "
			   "cap_bpf,cap_perfmon,cap_sys_ptrace,cap_dac_read_search=ep dbslower",
			   "missing: a server whose file only its owner may read is not traced");
	if (privileges_before(host, 5, 11) && !privileges_may(host, CAP_SYS_RESOURCE) &&
	    host->memlock < MEMLOCK_NEEDED)
		doctor_say(doctor, DOCTOR_OBSTACLE, "RLIMIT_MEMLOCK",
			   "ulimit -l unlimited, or CAP_SYS_RESOURCE.",
			   "%llu bytes, too little for the BPF maps before Linux 5.11",
			   (unsigned long long)host->memlock);
}

/* Sysctl @i, or @otherwise where it cannot be read. */
static long privileges_sysctl(const struct privileges *host, int i, long otherwise)
{
	return host->sysctls[i].error ? otherwise : host->sysctls[i].value;
}

static void host_sysctls(struct doctor_host *h)
{
	struct doctor *doctor = h->doctor;
	const struct privileges *host = &h->host;
	char text[256] = "";
	int at = 0;

	for (int i = 0; i < PRIVILEGES_SYSCTLS; i++)
		if (!host->sysctls[i].error)
			at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%s = %ld",
				       at ? ", " : "", host->sysctls[i].name,
				       host->sysctls[i].value);
	doctor_say(doctor, DOCTOR_OK, "sysctls", NULL, "%s", at ? text : "none can be read");
	if (!privileges_sysctl(host, 2, 1))
		doctor_say(doctor, DOCTOR_NOTE, "net.core.bpf_jit_enable",
			   "sysctl net.core.bpf_jit_enable=1",
			   "programs are interpreted: a probe costs several times as much");
	if (privileges_sysctl(host, 3, 0) == 3)
		doctor_say(doctor, DOCTOR_NOTE, "kernel.yama.ptrace_scope",
			   "It cannot be lowered before the next boot.",
			   "no process's memory may be read: the versions of MySQL and MariaDB are "
			   "not told");
}

static void host_mounts(struct doctor_host *h)
{
	struct doctor *doctor = h->doctor;
	const struct privileges *host = &h->host;
	bool hides = privileges_hides(host);

	if (!host->proc.mounted)
		doctor_say(doctor, DOCTOR_OBSTACLE, "/proc", "mount -t proc proc /proc",
			   "it is not mounted: no server is found");
	else if (hides && !privileges_may(host, CAP_SYS_PTRACE))
		doctor_say(doctor, DOCTOR_OBSTACLE, "/proc",
			   "Run it as root, or: mount -o remount,hidepid=0 /proc",
			   "mounted with hidepid=%s: other users' servers are not seen",
			   host->proc.hidepid);
	else
		doctor_say(doctor, DOCTOR_OK, "/proc", NULL, hides ?
			   "mounted with hidepid=%s, which hides nothing from us" : "mounted%.0s",
			   host->proc.hidepid);
	if (!host->sys.mounted)
		doctor_say(doctor, DOCTOR_NOTE, "/sys", "mount -t sysfs sysfs /sys",
			   "it is not mounted: the uprobe PMU is not found");
	else
		doctor_say(doctor, DOCTOR_OK, "/sys", NULL, "mounted");
	if (host->pid_ns_error)
		doctor_say(doctor, DOCTOR_NOTE, "PID namespace", NULL, "not known: %s",
			   strerror(-host->pid_ns_error));
	else if (!host->initial_pid_ns)
		doctor_say(doctor, DOCTOR_NOTE, "PID namespace",
			   "Run it on the host, or in a container with the host's PIDs (docker run "
			   "--pid=host), to see all.",
			   "/proc is that of a container: servers outside of it are not seen");
	else
		doctor_say(doctor, DOCTOR_OK, "PID namespace", NULL, "the initial one");
}

static void host_json_rights(struct output *out, const struct privileges *host)
{
	const char *before = "\"";

	json_number(out, ",\"uid\":", host->uid);
	output_string(out, ",\"capabilities\":[");
	for (size_t i = 0; i < PRIVILEGES_CAPABILITIES; i++) {
		if (!privileges_may(host, privileges_capabilities[i].bit))
			continue;
		json_string(out, before, privileges_capabilities[i].name);
		before = ",\"";
	}
	json_number(out, "],\"seccomp\":", host->seccomp);
	output_string(out, host->no_new_privs ? ",\"no_new_privs\":true" :
		      ",\"no_new_privs\":false");
	output_string(out, host->initial_user_ns ? ",\"user_namespace\":\"initial\"" :
						   ",\"user_namespace\":\"other\"");
	if (host->memlock != UINT64_MAX)
		json_number(out, ",\"memlock\":", host->memlock);
}

static void host_json(struct output *out, const struct privileges *host)
{
	const char *before = "\"";

	json_string(out, ",\"host\":{\"release\":\"", host->release);
	json_string(out, ",\"machine\":\"", host->machine);
	json_string(out, ",\"lockdown\":\"", *host->lockdown ? host->lockdown : NULL);
	host_json_rights(out, host);
	output_string(out, ",\"sysctls\":{");
	for (int i = 0; i < PRIVILEGES_SYSCTLS; i++) {
		if (host->sysctls[i].error)
			continue;
		output_string(out, before);
		output_printf(out, "%s\":%ld", host->sysctls[i].name, host->sysctls[i].value);
		before = ",\"";
	}
	output_string(out, host->proc.mounted ? "},\"proc\":true" : "},\"proc\":false");
	json_string(out, ",\"hidepid\":\"", *host->proc.hidepid ? host->proc.hidepid : NULL);
	output_string(out, host->sys.mounted ? ",\"sys\":true" : ",\"sys\":false");
	if (!host->pid_ns_error)
		json_string(out, ",\"pid_namespace\":\"", host->initial_pid_ns ? "initial" :
			    "other");
	output_char(out, '}');
}

void doctor_host(struct doctor *doctor)
{
	struct doctor_host *h = calloc(1, sizeof(*h));

	if (!h) {
		doctor_say(doctor, DOCTOR_OBSTACLE, "host", NULL, "out of memory");
		return;
	}
	h->doctor = doctor;
	privileges_read(&h->host);
	limits_raise();
	h->allowed = feature_allowed();
	doctor_heading(doctor, "Host");
	if (doctor->options.json)
		host_json(&doctor->out, &h->host);
	doctor_say(doctor, DOCTOR_OK, "kernel", NULL, "Linux %s on %s", h->host.release,
		   h->host.machine);
	host_features(h);
	host_way(h);
	host_lockdown(h);
	host_rights(h);
	host_sysctls(h);
	host_mounts(h);
	free(h);
}
