// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/doctor/host.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/format/json.h"
#include "cli/memory.h"
#include "host/limits.h"
#include "host/privileges.h"
#include "loader/feature.h"
#include "loader/hazard.h"
#include "loader/sandbox.h"
#include "loader/sys.h"

#define MEMLOCK_NEEDED	(64u << 20)	/* bytes, before Linux 5.11 */
#define NOFILE_NEEDED	64u		/* for a few servers */
#define NOFILE_PROBES	16u		/* for the probes of features and the search for servers */

#define SYSCTL_JIT	"net.core.bpf_jit_enable"
#define SYSCTL_PTRACE	"kernel.yama.ptrace_scope"
#define PTRACE_NEVER	3

struct doctor_host {
	struct doctor *doctor;
	struct privileges host;
	struct features features;
	int refused;		/* 0, or the -errno of bpf(2) for this process */
	const char *unknown;	/* why feature probes prove nothing; or NULL */
};

/* The consequences of having a feature, or not. */
static const struct {
	const char *yes, *no, *remedy;
} feature_words[FEATURES_ADDED] = {
	[FEATURE_RINGBUF] = {
		"one buffer for the events of all CPUs",
		"one buffer per CPU, and texts up to 64744 bytes",
		"requires Linux 5.8" },
	[FEATURE_UPROBE_PMU] = {
		"a probe can be attached without uprobe_multi",
		"without uprobe_multi, probes cannot be attached",
		"requires CONFIG_UPROBE_EVENTS, and /sys mounted: mount -t sysfs sysfs /sys" },
	[FEATURE_UPROBE_MULTI] = {
		"all probes of a server are attached at once",
		"probes are attached one by one: startup and exit take longer",
		"requires Linux 6.6" },
	[FEATURE_TRACING_ALLOC] = {
		"up to 32768 concurrent sessions, in memory allocated on demand",
		"memory is reserved at startup, for at most 4096 concurrent sessions",
		"requires Linux 6.1" },
	[FEATURE_READ_USER] = {
		"user memory is read by probe_read_user",
		"user memory is read by probe_read", "requires Linux 5.5" },
	[FEATURE_NS_PID] = {
		"PID namespaces of servers are distinguished",
		"-p also matches equal PIDs of other PID namespaces; dbslower does not work inside "
		"a PID namespace",
		"requires Linux 5.7" },
	[FEATURE_LOOPS] = {
		"the verifier is recent enough to load programs safely",
		"no program is loaded: the verifier may crash the kernel",
		"requires Linux 5.3 or RHEL 8.3" },
	[FEATURE_REF_CTR] = {
		"the kernel resets them when dbslower exits, even if it is killed",
		"servers are traced by their functions; trace refuses probes with a semaphore",
		"requires Linux 4.20, and /sys mounted: mount -t sysfs sysfs /sys" },
	[FEATURE_TYPES] = {
		"--why and --use read the kernel's structures",
		"--why uses tracefs events, and --use lacks the kernel's counters",
		"requires CONFIG_DEBUG_INFO_BTF and Linux 5.4" },
	[FEATURE_TASK_REGS] = {
		"--why reads the system call of a waiting thread from its registers",
		"--why reads the system call of a waiting thread from its stack, or from events",
		"requires Linux 5.15" },
};

static const char filter_remedy[] =
	"in a container, allow it (docker run --security-opt seccomp=unconfined), or run dbslower "
	"on the host";

static void host_features_json(struct doctor_host *h)
{
	struct output *out = &h->doctor->out;

	output_string(out, ",\"features\":[");
	for (int i = 0; i < FEATURES_ADDED; i++) {
		bool has = feature_has(&h->features, (enum feature)i);

		json_string(out, i ? ",{\"name\":\"" : "{\"name\":\"", feature_name(i));
		json_string(out, ",\"since\":\"", feature_since(i));
		output_string(out, has ? ",\"has\":true}" :
			      h->unknown ? "}" : ",\"has\":false}");
	}
	output_char(out, ']');
}

static void host_features_all(struct doctor_host *h)
{
	struct doctor *doctor = h->doctor;

	for (int i = 0; i < FEATURES_ADDED; i++) {
		bool has = feature_has(&h->features, (enum feature)i);

		if (!has && h->unknown)
			doctor_report(doctor, DOCTOR_NOTE, feature_name(i), NULL,
				      "unknown: %s (%s)", h->unknown, feature_since(i));
		else
			doctor_report(doctor, has ? DOCTOR_OK : DOCTOR_NOTE, feature_name(i),
				      has ? NULL : feature_words[i].remedy, "%s (%s): %s",
				      has ? "yes" : "no", feature_since(i),
				      has ? feature_words[i].yes : feature_words[i].no);
	}
}

/* Report all features in one line. */
static void host_features_line(struct doctor_host *h)
{
	char missing[512] = "";
	unsigned int count = 0;
	int at = 0;

	for (int i = 0; i < FEATURES_ADDED; i++) {
		if (feature_has(&h->features, (enum feature)i))
			count++;
		else
			at += snprintf(missing + at, sizeof(missing) - (size_t)at, "%s%s",
				       at ? ", " : "; missing: ", feature_name(i));
	}
	if (h->unknown && *missing)
		doctor_report(h->doctor, DOCTOR_NOTE, "features", NULL, "unknown: %s", h->unknown);
	else
		doctor_report(h->doctor, *missing ? DOCTOR_NOTE : DOCTOR_OK, "features", *missing ?
			      "dbslower doctor -v prints the consequences and the remedies" : NULL,
			      "%u of %u%s", count, FEATURES_ADDED, missing);
}

/* Report what probes do to traced programs on this kernel, which is tried in a child process. */
static void host_hazards(struct doctor_host *h)
{
	static const struct {
		enum feature feature;
		const char *subject, *yes, *no, *remedy;
	} rows[] = {
		{ FEATURE_SAFE_NOPS, "probes on 5-byte nops", "harmless",
		  "the kernel may replace the nop by a call, which may overwrite data of the "
		  "program and crash processes that it forks: these probes are not used",
		  "requires Linux before 6.18, or 7.2" },
		{ FEATURE_SAFE_RETURNS, "probes on returns", "harmless",
		  "a seccomp filter may kill the program: returns of files that such a process "
		  "maps are not traced", "requires Linux before 6.11, or 6.14" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int safe = hazard_safe(&h->features, rows[i].feature);
		const char *unknown = safe < 0 && !h->unknown ? strerror(-safe) : h->unknown;
		bool harms = !safe && !unknown;

		doctor_report(h->doctor, harms ? DOCTOR_NOTE : DOCTOR_DETAIL, rows[i].subject,
			      harms ? rows[i].remedy : NULL, "%s%s",
			      safe > 0 ? rows[i].yes : unknown ? "unknown: " : rows[i].no,
			      safe > 0 || !unknown ? "" : unknown);
	}
}

/* Report that the uprobe PMU is the attach method, but perf_event_open(2) fails with @err. */
static void host_perf_refused(struct doctor_host *h, int err)
{
	const struct privileges *host = &h->host;
	const char *remedy = "allow it in the security module (SELinux, AppArmor): see ausearch -m "
			     "avc, or dmesg";

	if (err == -EACCES && !privileges_may(host, CAP_SYS_ADMIN))
		remedy = "without uprobe_multi (Linux 6.6) this requires CAP_SYS_ADMIN: run "
			 "dbslower as root";
	else if (host->seccomp)
		remedy = filter_remedy;
	else if (err == -ENOSYS)
		remedy = "use a kernel with CONFIG_PERF_EVENTS";
	doctor_report(h->doctor, DOCTOR_OBSTACLE, "attach method", remedy,
		      "perf uprobe; perf_event_open(2) is refused: %s", err == -ENOSYS ?
		      "no such system call" : strerror(-err));
}

static void host_method(struct doctor_host *h)
{
	struct doctor *doctor = h->doctor;
	int err = 0;

	doctor->method = h->unknown ? ATTACH_NONE : attach_choose(&h->features);
	if (doctor->options.json && !h->unknown)
		json_string(&doctor->out, ",\"way\":\"", attach_method_name(doctor->method));
	if (doctor->method == ATTACH_PERF)
		err = feature_perf_allowed(&h->features);
	if (err)
		host_perf_refused(h, err);
	else if (doctor->method != ATTACH_NONE)
		doctor_report(doctor, DOCTOR_OK, "attach method", NULL, "%s",
			      attach_method_name(doctor->method));
	else if (!h->unknown)
		doctor_report(doctor, DOCTOR_OBSTACLE, "attach method",
			      "requires CONFIG_UPROBE_EVENTS, and /sys mounted: mount -t sysfs "
			      "sysfs /sys", "this kernel does not support uprobes");
}

static void host_lockdown(struct doctor_host *h)
{
	struct doctor *doctor = h->doctor;
	const struct privileges *host = &h->host;
	bool refused = h->refused || !feature_has(&h->features, FEATURE_READ_USER);

	if (privileges_locked_down(host))
		doctor_report(doctor, refused ? DOCTOR_OBSTACLE : DOCTOR_NOTE, "lockdown",
			      refused ? "boot with lockdown=integrity or none" : NULL,
			      refused ? "confidentiality, which may forbid tracing even for root" :
					"confidentiality: forbids tracefs and the helpers before "
					"Linux 5.5, but not tracing");
	else if (*host->lockdown)
		doctor_report(doctor, DOCTOR_DETAIL, "lockdown", NULL, "%s", host->lockdown);
	else
		doctor_report(doctor, h->refused ? DOCTOR_NOTE : DOCTOR_DETAIL, "lockdown",
			      h->refused && host->lockdown_error == -ENOENT ?
			      "mount -t securityfs securityfs /sys/kernel/security" : NULL,
			      "unknown (/sys/kernel/security/lockdown: %s)%s",
			      strerror(-host->lockdown_error),
			      h->refused ? "" : "; programs can be loaded");
}

static void host_denied(struct doctor_host *h)
{
	struct doctor *doctor = h->doctor;
	const struct privileges *host = &h->host;
	char missing[64];

	if (privileges_missing(host, missing, sizeof(missing)))
		doctor_report(doctor, DOCTOR_OBSTACLE, "rights", !host->uid ?
			      "root lacks them, as in a container: add them (docker run "
			      "--cap-add=BPF --cap-add=PERFMON), or run dbslower on the host" :
			      "run dbslower as root, or grant these capabilities: setcap "
			      "cap_bpf,cap_perfmon,cap_sys_ptrace=ep dbslower",
			      "uid %u; missing: %s", (unsigned int)host->uid, missing);
	else if (!host->initial_user_ns)
		doctor_report(doctor, DOCTOR_OBSTACLE, "rights", "run dbslower on the host",
			      "uid %u in a user namespace, whose capabilities do not permit bpf(2)",
			      (unsigned int)host->uid);
	else if (host->seccomp)
		doctor_report(doctor, DOCTOR_OBSTACLE, "rights", filter_remedy,
			      "the capabilities are present; a seccomp filter forbids bpf(2)");
	else
		doctor_report(doctor, DOCTOR_OBSTACLE, "rights",
			      "allow dbslower to use bpf(2) and perf_event_open(2); see ausearch "
			      "-m avc, or dmesg",
			      "the capabilities are present; a security module (SELinux, AppArmor) "
			      "may forbid bpf(2)");
}

/* Report why bpf(2) is refused. */
static void host_refused(struct doctor_host *h)
{
	if (h->refused == -ENOSYS && h->host.seccomp)
		doctor_report(h->doctor, DOCTOR_OBSTACLE, "rights", filter_remedy,
			      "no bpf(2), which a seccomp filter may hide");
	else if (h->refused == -ENOSYS)
		doctor_report(h->doctor, DOCTOR_OBSTACLE, "rights",
			      "use a kernel with CONFIG_BPF_SYSCALL",
			      "this kernel has no bpf(2)");
	else if (h->refused == -ENOMEM)
		doctor_report(h->doctor, DOCTOR_OBSTACLE, "rights",
			      "raise the memory limit of the control group (memory.max)",
			      "no memory for an empty BPF program");
	else if (h->refused == -EMFILE)
		doctor_report(h->doctor, DOCTOR_NOTE, "rights", NULL,
			      "unknown: too few file descriptors");
	else if (h->refused != -EPERM && h->refused != -EACCES)
		doctor_report(h->doctor, DOCTOR_OBSTACLE, "rights",
			      "report this with the output of uname -a",
			      "the kernel refuses an empty BPF program: %s",
			      strerror(-h->refused));
	else
		host_denied(h);
}

/* Report that the capability @name, "CAP_X", is missing, which is also in @setcap: @consequence. */
static void host_lacks(struct doctor_host *h, enum doctor_state state, const char *name,
		       const char *setcap, const char *consequence)
{
	bool other = state == DOCTOR_OBSTACLE;
	char remedy[256];

	if (!h->host.uid)
		snprintf(remedy, sizeof(remedy), "root lacks it, as in a container: add it (docker "
			 "run --cap-add=%s), or run dbslower on the host%s", name + strlen("CAP_"),
			 other ? "; without it, a server's binary can be traced by -x" : "");
	else
		snprintf(remedy, sizeof(remedy), "%ssetcap cap_bpf,cap_perfmon,cap_sys_ptrace%s=ep "
			 "dbslower%s", other ? "run dbslower as root, or: " : "", setcap,
			 other ? "; without it, a server's binary can be traced by -x" : "");
	doctor_report(h->doctor, state, name, remedy, "missing: %s", consequence);
}

static void host_capabilities(struct doctor_host *h)
{
	const struct privileges *host = &h->host;
	bool traces = privileges_may(host, CAP_SYS_PTRACE);

	h->doctor->restricted = !traces || !host->initial_user_ns;
	if (!traces)
		host_lacks(h, DOCTOR_OBSTACLE, "CAP_SYS_PTRACE", "",
			   "servers of other users are not found");
	else if (!host->initial_user_ns)
		doctor_report(h->doctor, DOCTOR_NOTE, "CAP_SYS_PTRACE", "run dbslower on the host",
			      "held in a user namespace: servers outside it are not found");
	if (!privileges_may(host, CAP_SYS_ADMIN) && !privileges_may(host, CAP_CHECKPOINT_RESTORE))
		host_lacks(h, DOCTOR_NOTE, "CAP_CHECKPOINT_RESTORE", ",cap_checkpoint_restore",
			   "a server that was started through the dynamic loader is not found "
			   "after its file was deleted");
	if (!privileges_may(host, CAP_DAC_OVERRIDE) && !privileges_may(host, CAP_DAC_READ_SEARCH))
		host_lacks(h, DOCTOR_NOTE, "CAP_DAC_READ_SEARCH", ",cap_dac_read_search",
			   "a server whose file only the owner may read is not traced");
}

/* Return whether @value is at least @needed; if it is not, report it with the @words behind it. */
static bool host_enough(struct doctor_host *h, const char *subject, uint64_t value,
			unsigned int needed, const char *remedy, const char *words)
{
	if (value < needed)
		doctor_report(h->doctor, DOCTOR_OBSTACLE, subject, remedy,
			      "%llu %s; at least %u are required", (unsigned long long)value,
			      words, needed);
	return value >= needed;
}

/* Return whether the memory that is left suffices for all; report for what it does not. */
static bool host_memory(struct doctor_host *h)
{
	uint64_t left = h->host.memory_left >> 20;
	const char *before = "";
	char few[256] = "";
	size_t len = 0;

	for (int i = 0; i < MEMORY_USES; i++) {
		const struct memory_need *need = &memory_needs[i];

		if (left >= need->mib || len >= sizeof(few))
			continue;
		len += (size_t)snprintf(few + len, sizeof(few) - len, "%s%s (%u)", before,
					need->words, need->mib);
		before = "; ";
	}
	if (len)
		doctor_report(h->doctor, left < memory_needs[0].mib ? DOCTOR_OBSTACLE : DOCTOR_NOTE,
			      "memory limit",
			      "raise memory.max of the control group (docker run --memory)",
			      "%llu MiB are left to this control group, too few to load the "
			      "programs of %s", (unsigned long long)left, few);
	return !len;
}

/* Report limits that are too small. Those that can be raised have been. */
static void host_limits(struct doctor_host *h)
{
	const struct privileges *host = &h->host;
	bool locks = privileges_before(host, 5, 11);
	bool enough = host_enough(h, "RLIMIT_MEMLOCK", host->memlock, locks ? MEMLOCK_NEEDED : 0,
				  "ulimit -l unlimited, or grant CAP_SYS_RESOURCE",
				  "bytes, too small for the BPF maps before Linux 5.11");

	enough &= host_enough(h, "RLIMIT_NOFILE", host->nofile, NOFILE_NEEDED,
			      "ulimit -n 1024, as root",
			      "file descriptors, too few for the BPF maps and probes");
	enough &= host_memory(h);
	if (enough)
		doctor_report(h->doctor, DOCTOR_OK, "limits", NULL,
			      "the file descriptors and the memory suffice");
}

static void host_rights(struct doctor_host *h)
{
	struct doctor *doctor = h->doctor;
	const struct privileges *host = &h->host;

	if (h->refused && h->refused != -EOPNOTSUPP)
		host_refused(h);
	else
		doctor_report(doctor, DOCTOR_OK, "rights", NULL, "uid %u may load programs%s",
			      (unsigned int)host->uid,
			      host->seccomp ? "; the seccomp filter permits it" : "");
	host_capabilities(h);
	host_limits(h);
}

static void host_sandbox(struct doctor_host *h)
{
	int err = sandbox_filters();

	if (!h->doctor->options.json)
		doctor_report(h->doctor, err ? DOCTOR_NOTE : DOCTOR_OK, "sandbox", NULL, err ?
			      "while tracing: fewer capabilities, but no seccomp filter (%s)" :
			      "while tracing: fewer capabilities, and a seccomp filter%.0s",
			      strerror(-err));
}

/* Return the value of sysctl @name, or @unknown if it cannot be read. */
static long host_sysctl(const struct privileges *host, const char *name, long unknown)
{
	for (int i = 0; i < PRIVILEGES_SYSCTLS; i++)
		if (!strcmp(host->sysctls[i].name, name) && !host->sysctls[i].error)
			return host->sysctls[i].value;
	return unknown;
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
	doctor_report(doctor, DOCTOR_DETAIL, "sysctls", NULL, "%s", at ? text : "none is readable");
	if (!host_sysctl(host, SYSCTL_JIT, 1))
		doctor_report(doctor, DOCTOR_NOTE, SYSCTL_JIT, "sysctl " SYSCTL_JIT "=1",
			      "BPF programs are interpreted, which multiplies the cost of a probe");
	if (host_sysctl(host, SYSCTL_PTRACE, 0) == PTRACE_NEVER)
		doctor_report(doctor, DOCTOR_NOTE, SYSCTL_PTRACE,
			      "reboot to lower it",
			      "the memory of processes is unreadable: versions of MySQL and "
			      "MariaDB are unknown");
}

static void host_proc(struct doctor_host *h)
{
	struct doctor *doctor = h->doctor;
	const struct privileges *host = &h->host;
	bool hides = privileges_hides(host);

	if (!host->proc.mounted)
		doctor->blind = "/proc is not mounted";
	if (!host->proc.mounted)
		doctor_report(doctor, DOCTOR_OBSTACLE, "/proc", "mount -t proc proc /proc",
			      "not mounted: servers cannot be found");
	else if (hides && !privileges_may(host, CAP_SYS_PTRACE))
		doctor_report(doctor, DOCTOR_OBSTACLE, "/proc",
			      "run dbslower as root, or: mount -o remount,hidepid=0 /proc",
			      "mounted with hidepid=%s: servers of other users are invisible",
			      host->proc.hidepid);
	else
		doctor_report(doctor, DOCTOR_DETAIL, "/proc", NULL, hides ?
			      "mounted with hidepid=%s, which does not apply to this process" :
			      "mounted%.0s", host->proc.hidepid);
}

static void host_mounts(struct doctor_host *h)
{
	struct doctor *doctor = h->doctor;
	const struct privileges *host = &h->host;

	host_proc(h);
	if (!host->sys.mounted)
		doctor_report(doctor, DOCTOR_NOTE, "/sys", "mount -t sysfs sysfs /sys",
			      "not mounted: the uprobe PMU cannot be found");
	else
		doctor_report(doctor, DOCTOR_DETAIL, "/sys", NULL, "mounted");
	if (host->pid_ns_error)
		doctor_report(doctor, DOCTOR_NOTE, "PID namespace", NULL, "unknown: %s",
			      strerror(-host->pid_ns_error));
	else if (!host->initial_pid_ns)
		doctor_report(doctor, DOCTOR_NOTE, "PID namespace",
			      "to trace all servers, run dbslower on the host, or in a container "
			      "with the host's PIDs (docker run --pid=host)",
			      "/proc is that of a container: servers outside it are invisible");
	else
		doctor_report(doctor, DOCTOR_DETAIL, "PID namespace", NULL, "the initial one");
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
	if (!host->user_ns_error)
		json_string(out, ",\"user_namespace\":\"", host->initial_user_ns ? "initial" :
			    "other");
	if (host->memlock != UINT64_MAX)
		json_number(out, ",\"memlock_bytes\":", host->memlock);
	if (host->nofile != UINT64_MAX)
		json_number(out, ",\"nofile\":", host->nofile);
	if (host->memory != UINT64_MAX)
		json_number(out, ",\"memory_limit_bytes\":", host->memory);
	if (host->memory_left != UINT64_MAX)
		json_number(out, ",\"memory_left_bytes\":", host->memory_left);
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
		doctor_report(doctor, DOCTOR_OBSTACLE, "host", NULL, "out of memory");
		return;
	}
	h->doctor = doctor;
	limits_raise();
	privileges_read(&h->host);
	h->refused = feature_allowed(&h->features);
	if (h->host.nofile < NOFILE_PROBES)
		h->unknown = doctor->blind = "too few file descriptors";
	else if (h->refused)
		h->unknown = h->refused == -EOPNOTSUPP ? "programs are not loaded" :
							 "bpf(2) is refused";
	doctor_heading(doctor, "Host");
	if (doctor->options.json)
		host_json(&doctor->out, &h->host);
	if (h->refused == -EOPNOTSUPP)
		doctor_report(doctor, DOCTOR_OBSTACLE, "kernel",
			      "boot a later one; ps, list, replay and report work on this one",
			      "the kernel's verifier lacks bounded loops (Linux 5.3; RHEL 8.3 has "
			      "them); this is %s on %s", h->host.release, h->host.machine);
	else
		doctor_report(doctor, DOCTOR_OK, "kernel", NULL, "Linux %s on %s",
			      h->host.release, h->host.machine);
	if (doctor->options.json)
		host_features_json(h);
	if (doctor->options.json || doctor->options.verbose)
		host_features_all(h);
	else
		host_features_line(h);
	host_method(h);
	host_hazards(h);
	host_lockdown(h);
	host_rights(h);
	host_sandbox(h);
	host_sysctls(h);
	host_mounts(h);
	free(h);
}
