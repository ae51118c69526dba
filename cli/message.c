// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/message.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/format/escape.h"
#include "host/privileges.h"

#define DOCTOR	"dbslower doctor prints obstacles to tracing"

/* The wording of each kind of error. */
static const struct message_words message_rows[] = {
	[ERROR_NONE] = { "", "no error", NULL, false, false },
	[ERROR_MEMORY] = { "", "out of memory", NULL, false, false },
	[ERROR_MAP] = { "BPF map ", "refused by the kernel",
			"report this with the kernel version", true, false },
	[ERROR_PROGRAM] = { "BPF program ", "refused by the kernel",
			    "report this with the kernel version and the lines below",
			    true, false },
	[ERROR_NO_LOOPS] = { "BPF", "the kernel's verifier lacks bounded loops (Linux 5.3; RHEL "
			     "8.3 has them)", NULL, false, false },
	[ERROR_NO_JIT] = { "BPF program ", "requires the kernel's JIT compiler, which is disabled",
			   "sysctl net.core.bpf_jit_enable=1", false, false },
	[ERROR_LINK] = { "BPF symbol ", "not defined, this binary is damaged",
			 "reinstall dbslower", true, false },
	[ERROR_TRACEPOINT] = { "tracepoint ", "cannot attach", DOCTOR, true, false },
	[ERROR_ATTACH] = { "", "cannot attach probes", DOCTOR, true, false },
	[ERROR_NO_UPROBES] = { "uprobes", "not supported by this kernel",
			       "CONFIG_UPROBE_EVENTS is required, and before Linux 6.6 "
			       "CAP_SYS_ADMIN where /sys is not mounted: "
			       "mount -t sysfs sysfs /sys", false, false },
	[ERROR_TYPES] = { "--why, --use", "the kernel has neither type information in "
			  "/sys/kernel/btf/vmlinux nor events of its scheduler in tracefs",
			  "CONFIG_DEBUG_INFO_BTF (Linux 5.4) is required, or tracefs, whose files "
			  "belong to root: mount -t tracefs tracefs /sys/kernel/tracing",
			  true, true },
	[ERROR_STREAM] = { "event buffer", "cannot be mapped", DOCTOR, true, false },
	[ERROR_READER] = { "session-reader",
			   "the process that reads sessions cannot be started, or has ended",
			   "see ulimit -u, ulimit -n, and dmesg for the OOM killer", false, false },
	[ERROR_WAIT] = { "signals and timers", "cannot be waited for", DOCTOR, true, false },
	[ERROR_PROC] = { "/proc", "cannot be read",
			 "mount that of dbslower's PID namespace: mount -t proc proc /proc",
			 true, true },
	[ERROR_PROCESS] = { "process ", "cannot be read", "ps -e lists the processes", true,
			    false },
	[ERROR_CHILDREN] = { "process ", "processes that it forks from now on are not traced",
			     "the kernel's types (CONFIG_DEBUG_INFO_BTF, Linux 5.4) are required, "
			     "dbslower outside PID namespaces, and lockdown=integrity or none",
			     false, false },
	[ERROR_NOT_SERVER] = { "", "not a supported database server",
			       "-x requires the binary of a server, -p the PID of a server or "
			       "of a backend",
			       false, false },
	[ERROR_EMBEDDED] = { "", "the embedded server is not supported",
			     "trace prints calls of its library: dbslower trace -p PID FUNCTION",
			     false, false },
	[ERROR_OTHER_SERVER] = { "", "a server of another kind",
				 "specify that database, or none", false, false },
	[ERROR_NO_SAMPLES] = { "", "its sessions cannot be sampled",
			       "those of PostgreSQL from 10, MariaDB from 10.5 and MySQL 9 can",
			       false, false },
	[ERROR_NO_SESSIONS] = { "", "its sessions cannot be listed",
				"those of PostgreSQL from 10, MariaDB from 10.5 and MySQL 9 can",
				false, false },
	[ERROR_FILE] = { "", "cannot open", "specify a file that can be read", true, false },
	[ERROR_OUTPUT] = { "", "cannot open for writing",
			   "specify a file in an existing directory that can be written", true,
			   false },
	[ERROR_NOT_ELF] = { "", "not an ELF file",
			    "-x requires the binary of a server, not a script that starts it",
			    false, false },
	[ERROR_MACHINE] = { "", "built for another architecture",
			    "uprobes work in programs of the host's own architecture: trace it on "
			    "a host of that one", false, false },
	[ERROR_32_BIT] = { "", "a 32-bit program",
			   "only its USDT probes can be traced: by trace, or by --start and --done "
			   "without --why, --use and --wait; of servers, run the 64-bit build",
			   false, false },
	[ERROR_NO_PROBES] = { "", "cannot be traced",
			      "PostgreSQL from 10 and MySQL and MariaDB from 5.5 are supported",
			      false, false },
	[ERROR_NO_SYMBOLS] = { "", "cannot be traced, its functions have no symbols",
			       "run a build that exports them, as those of vendors and "
			       "distributions do: linked with -rdynamic, not statically",
			       false, false },
	[ERROR_VARIANT] = { "", "statements may be missing: the compiler made a variant of a "
			    "function, which is not traced",
			    "compare with the server's own log; -fno-ipa-cp, -fno-ipa-sra and "
			    "-fno-partial-inlining avoid variants", false, false },
	[ERROR_UNUSABLE] = { "", "cannot be traced",
			     "a kernel that counts semaphores (Linux 4.20) is required, and that "
			     "/sys is mounted", false, false },
	[ERROR_TOO_LARGE] = { "", "more than 512 MiB of symbols and probes would have to be read",
			      "servers have less than a fifth of that: compare the file with its "
			      "package, or remove its symbols with strip", false, false },
	[ERROR_SITE] = { "", "cannot be traced",
			 "the file was changed after it was linked, or is not a server: compare it "
			 "with its package", false, false },
	[ERROR_NOP] = { "", "a probe is not used",
			"its functions are traced instead, if it has suitable ones; Linux 7.2 "
			"does not replace 5-byte nops", false, false },
	[ERROR_RETURN] = { "return of ", "not traced: on this kernel that may kill processes "
			   "with a seccomp filter",
			   "trace calls instead, or run them without a filter (systemd: "
			   "SystemCallFilter=; docker run --security-opt seccomp=unconfined); "
			   "Linux 6.14 does not kill", false, false },
	[ERROR_NAMESPACE] = { "PID namespace", "PIDs cannot be translated by this kernel",
			      "Linux 5.7 is required; or run dbslower on the host", false, false },
	[ERROR_SEMAPHORES] = { "", "a process has made the semaphores of probes unusable",
			       "a probe that tests its semaphore first is not reported", false,
			       false },
	[ERROR_TOO_MANY] = { "too many ", NULL, "select one server, by -x PATH", false, false },
	[ERROR_SHARE] = { "", "not traced",
			  "further files of this user are not reported; -x and -p have no limit",
			  false, false },
	[ERROR_YOUNG] = { "", "it may copy its code in its first minute, and end at a copied "
			  "breakpoint", "waiting; it is traced after that", false, false },
	[ERROR_COPIED] = { "", "its code is not mapped from its file",
			   "probes are in the file's own pages: start it so that it does not copy "
			   "its code to huge pages", false, false },
	[ERROR_GO_RETURN] = { "", "a Go program moves its stacks, and ends if a return probe has "
			      "changed one",
			      "trace its entry, without r:, --ret and --latency, or accept that by "
			      "--force=go-returns", false, false },
	[ERROR_THROWS] = { "", "an exception that passes a function whose return is traced ends "
			   "the program",
			   "trace entries, unless nothing throws through these functions", false,
			   false },
	[ERROR_PROBE] = { "", "cannot be traced", NULL, false, false },
};

#define KERNEL_ENOTSUPP	524	/* internal to the kernel, but bpf(2) returns it */

static bool is_denied(const struct error *error)
{
	return error->code == -EPERM || error->code == -EACCES;
}

/* Return whether perf_event_open(2) failed: what is done first requires bpf(2). */
static bool is_perf(const struct error *error)
{
	return error->kind == ERROR_ATTACH || error->kind == ERROR_TRACEPOINT ||
	       error->kind == ERROR_STREAM;
}

/* Return the text for errno, or "". */
static const char *message_reason(const struct error *error)
{
	if (!message_rows[error->kind].reason)
		return "";
	if ((error->kind == ERROR_FILE || error->kind == ERROR_OUTPUT) && error->code == -EINVAL)
		return "not a regular file";
	if (error->kind == ERROR_PROCESS && error->code == -ENOENT)
		return strerror(ESRCH);
	if (error->kind == ERROR_OUTPUT && error->code == -ELOOP)
		return "symbolic link of another user";
	if (error->kind == ERROR_OUTPUT && error->code == -EEXIST)
		return "file of another user";
	if (error->kind == ERROR_OUTPUT && error->code == -ENXIO)
		return "FIFO without a reader, or socket";
	if (error->code == -ENOSYS)
		return is_perf(error) ? "no perf_event_open(2)" : "no bpf(2)";
	if (error->code == -KERNEL_ENOTSUPP)
		return "the kernel cannot probe this instruction";
	if (error->code == -ECHILD)
		return "the child process that attaches was killed; restart dbslower";
	return error->code ? strerror(-error->code) : "";
}

static bool few_files(const struct error *error, const struct privileges *host)
{
	(void)host;
	return error->code == -EMFILE;
}

static bool no_memory(const struct error *error, const struct privileges *host)
{
	(void)host;
	return error->code == -ENOMEM;
}

static bool call_hidden(const struct error *error, const struct privileges *host)
{
	return error->code == -ENOSYS && host->seccomp;
}

static bool no_perf(const struct error *error, const struct privileges *host)
{
	(void)host;
	return error->code == -ENOSYS && is_perf(error);
}

static bool no_bpf(const struct error *error, const struct privileges *host)
{
	(void)host;
	return error->code == -ENOSYS;
}

/* The buffers of perf events, and before Linux 5.11 BPF maps and programs, are charged. */
static bool memlock_small(const struct error *error, const struct privileges *host)
{
	bool bpf = error->kind == ERROR_MAP || error->kind == ERROR_PROGRAM;

	if (error->code != -EPERM || host->memlock == UINT64_MAX)
		return false;
	return error->kind == ERROR_STREAM ? !privileges_may(host, CAP_IPC_LOCK) :
	       bpf && privileges_before(host, 5, 11);
}

/* Before bpf(2) knew tracing programs (2541517c32be, Linux 4.1), loops cannot be asked for. */
static bool kernel_too_old(const struct error *error, const struct privileges *host)
{
	return error->kind == ERROR_NO_LOOPS ||
	       (error->kind == ERROR_PROGRAM && privileges_before(host, 4, 1));
}

static bool process_denied_to_root(const struct error *error, const struct privileges *host)
{
	return error->kind == ERROR_PROCESS && is_denied(error) &&
	       privileges_may(host, CAP_SYS_PTRACE);
}

static bool process_denied(const struct error *error, const struct privileges *host)
{
	return error->kind == ERROR_PROCESS && is_denied(error) &&
	       !privileges_may(host, CAP_SYS_PTRACE);
}

static bool process_hidden(const struct error *error, const struct privileges *host)
{
	return error->kind == ERROR_PROCESS && !privileges_may(host, CAP_SYS_PTRACE) &&
	       privileges_hides(host);
}

static bool link_of_other(const struct error *error, const struct privileges *host)
{
	(void)host;
	return error->kind == ERROR_OUTPUT && error->code == -ELOOP;
}

static bool output_of_other(const struct error *error, const struct privileges *host)
{
	(void)host;
	return error->kind == ERROR_OUTPUT && error->code == -EEXIST;
}

static bool any_process(const struct error *error, const struct privileges *host)
{
	(void)host;
	return error->kind == ERROR_PROCESS;
}

static bool file_denied(const struct error *error, const struct privileges *host)
{
	(void)host;
	return (error->kind == ERROR_FILE || error->kind == ERROR_OUTPUT) && is_denied(error);
}

static bool file_of_other(const struct error *error, const struct privileges *host)
{
	return file_denied(error, host) && !privileges_may(host, CAP_DAC_OVERRIDE) &&
	       !privileges_may(host, CAP_DAC_READ_SEARCH);
}

static bool path_wrong(const struct error *error, const struct privileges *host)
{
	(void)host;
	return error->kind == ERROR_FILE && (error->code == -ENOENT || error->code == -EISDIR ||
					     error->code == -ENOTDIR || error->code == -EINVAL);
}

static bool lacks_probe(const struct error *error, const struct privileges *host)
{
	(void)host;
	return error->kind == ERROR_NO_PROBES && strchr(error->detail, ':');
}

/* Lockdown also forbids helpers: the verifier's log then ends at the call of one. */
static bool locked_down(const struct error *error, const struct privileges *host)
{
	bool old_helper = error->log && (strstr(error->log, "func bpf_probe_read") ||
					 strstr(error->log, "helper bpf_probe_read"));

	return (error->kind == ERROR_NO_UPROBES || error->kind == ERROR_TYPES || old_helper) &&
	       privileges_locked_down(host);
}

static bool interpreted(const struct error *error, const struct privileges *host)
{
	(void)host;
	return error->log && strstr(error->log, "requires BPF JIT");
}

static bool attach_denied(const struct error *error, const struct privileges *host)
{
	return error->kind == ERROR_ATTACH && is_denied(error) &&
	       !privileges_may(host, CAP_SYS_ADMIN);
}

static bool own_remedy(const struct error *error, const struct privileges *host)
{
	(void)host;
	return !is_denied(error) || message_rows[error->kind].own_remedy ||
	       (error->log && *error->log);
}

static bool user_namespace(const struct error *error, const struct privileges *host)
{
	(void)error;
	return !host->initial_user_ns;
}

static bool lockdown(const struct error *error, const struct privileges *host)
{
	(void)error;
	return privileges_locked_down(host);
}

static bool sandboxed(const struct error *error, const struct privileges *host)
{
	(void)error;
	return host->sandbox;
}

static bool filtered(const struct error *error, const struct privileges *host)
{
	(void)error;
	return host->seccomp;
}

static bool lacks_privileges(const struct error *error, const struct privileges *host)
{
	char missing[64];

	(void)error;
	return privileges_missing(host, missing, sizeof(missing));
}

/*
 * Placeholders for the remedy of the error's kind, for the list of missing privileges, and for the
 * kernel's release.
 */
static const char kind_remedy[] = "kind", missing_remedy[] = "missing", newer_remedy[] = "new";

/* The remedies by the state of the host; the first one that applies is printed. */
static const struct {
	bool (*applies)(const struct error *error, const struct privileges *host);
	const char *remedy;
} message_remedies[] = {
	{ few_files, "the limit of open files is too low: ulimit -n 1024" },
	{ no_memory, "free memory, or raise its limit: ulimit -v, or that of the control group "
		     "(memory.max, docker run --memory)" },
	{ kernel_too_old, newer_remedy },
	{ call_hidden, "a seccomp filter may hide it: in a container, allow it (docker run "
		       "--security-opt seccomp=unconfined), or run dbslower on the host" },
	{ no_perf, "use a kernel with CONFIG_PERF_EVENTS" },
	{ no_bpf, "use a kernel with CONFIG_BPF_SYSCALL" },
	{ process_denied_to_root, "a container or a security module may forbid this even for "
				  "root" },
	{ process_denied, "reading another user's process requires CAP_SYS_PTRACE, which root has "
			  "unless a container drops it" },
	{ process_hidden, "processes of other users are hidden, because /proc is mounted with "
			  "hidepid; this requires CAP_SYS_PTRACE, or root" },
	{ any_process, kind_remedy },
	{ link_of_other, "in a directory that other users can change, only a link that belongs to "
			 "root or to the user of dbslower is followed: specify its target" },
	{ output_of_other, "in a directory that other users can change, a file must belong to root "
			   "or to the user of dbslower, and have one name: specify another path" },
	{ file_of_other, "users other than the owner require CAP_DAC_READ_SEARCH, or root" },
	{ file_denied, "a container or a security module may forbid this even for root" },
	{ path_wrong, "specify the path of an existing file" },
	{ lacks_probe, "dbslower list FILE prints the USDT probes of a file" },
	{ locked_down, "the kernel is locked down (confidentiality), which forbids tracefs and the "
		       "helpers before Linux 5.5: boot with lockdown=integrity or none" },
	{ interpreted, "the kernel interprets BPF programs: sysctl net.core.bpf_jit_enable=1" },
	{ attach_denied, "without uprobe_multi (Linux 6.6) this requires CAP_SYS_ADMIN: run "
			 "dbslower as root" },
	{ own_remedy, kind_remedy },
	{ lacks_privileges, missing_remedy },
	{ memlock_small, "RLIMIT_MEMLOCK is too small: ulimit -l unlimited, as root" },
	{ user_namespace, "capabilities in a user namespace do not permit bpf(2): run dbslower on "
			  "the host" },
	{ lockdown, "the kernel is locked down (confidentiality), which may forbid this even "
		    "for root: boot with lockdown=integrity or none" },
	{ sandboxed, "dbslower has dropped privileges; --keep-privileges keeps them" },
	{ filtered, "the capabilities are present, but a seccomp filter may forbid bpf(2) or "
		    "perf_event_open(2): in a container, allow them (docker run --security-opt "
		    "seccomp=unconfined), or run dbslower on the host" },
	{ NULL, "the capabilities are present, but a security module (SELinux, AppArmor) may "
		"forbid bpf(2) or perf_event_open(2): see ausearch -m avc, or dmesg" },
};

const struct message_words *message_at(size_t i)
{
	return i < sizeof(message_rows) / sizeof(message_rows[0]) ? &message_rows[i] : NULL;
}

const char *message_remedy_at(size_t i)
{
	return i < sizeof(message_remedies) / sizeof(message_remedies[0]) ?
	       message_remedies[i].remedy : NULL;
}

static void message_missing(struct output *out, const struct privileges *host)
{
	char missing[64];

	privileges_missing(host, missing, sizeof(missing));
	output_printf(out, "missing %s: run dbslower as root, or grant %s%s", missing,
		      strchr(missing, ',') ? "these capabilities" : "this capability",
		      privileges_may(host, CAP_SYS_PTRACE) ? "" :
		      "; servers of other users also require CAP_SYS_PTRACE");
}

void message_cause(struct output *out, const struct error *error)
{
	const char *subject = message_rows[error->kind].subject;
	const char *cause = message_rows[error->kind].cause;
	const char *reason = message_reason(error);
	bool lacks = error->kind == ERROR_NO_PROBES;

	output_string(out, subject);
	escape_terminal(out, error->subject, strlen(error->subject), false);
	if (cause && (*subject || *error->subject))
		output_string(out, ": ");
	output_string(out, cause ? cause : "");
	if (*error->detail) {
		output_string(out, lacks ? ", it lacks " : " (");
		escape_terminal(out, error->detail, strlen(error->detail), false);
		output_string(out, lacks ? "" : ")");
	}
	output_string(out, *reason ? ": " : "");
	output_string(out, reason);
}

void message_remedy(struct output *out, const char *before, const struct error *error)
{
	struct privileges host;
	const char *remedy;
	size_t i = 0;

	privileges_read(&host);
	while (message_remedies[i].applies && !message_remedies[i].applies(error, &host))
		i++;
	remedy = message_remedies[i].remedy;
	if (remedy == kind_remedy)
		remedy = message_rows[error->kind].remedy;
	if (!remedy)
		return;
	output_string(out, before);
	if (remedy == missing_remedy)
		message_missing(out, &host);
	else if (remedy == newer_remedy)
		output_printf(out, error->kind == ERROR_NO_LOOPS ? "this is %s" :
			      "Linux 5.3 or later is required; this is %s", host.release);
	else
		output_string(out, remedy);
}

void message_error_or(struct output *err, const struct error *error, const char *other)
{
	output_string(err, "dbslower: ");
	message_cause(err, error);
	message_remedy(err, "; ", error);
	output_string(err, other);
	output_char(err, '\n');
	if (error->log)
		output_string(err, error->log);
}

void message_error(struct output *err, const struct error *error)
{
	message_error_or(err, error, "");
}

void message_waiting(struct output *err)
{
	struct privileges host;

	privileges_read(&host);
	output_string(err, "dbslower: no supported database server found; waiting for one to "
			   "start\n");
	if (!privileges_may(&host, CAP_SYS_PTRACE))
		output_string(err, "dbslower: processes of other users: cannot be read; this "
				   "requires CAP_SYS_PTRACE, or root\n");
}

void message_interrupted(struct output *err)
{
	output_string(err, "dbslower: interrupted while attaching; the rest is not traced\n");
}

int message_no_memory(void)
{
	static const char text[] = "dbslower: out of memory; free memory, or raise its limit: "
				   "ulimit -v\n";

	ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)n;
	return EXIT_FAILED;
}

static const char *unwritten_remedy(int error)
{
	if (error == -EFBIG)
		return "raise the limit of file sizes: ulimit -f unlimited";
	if (error == -ENOSPC || error == -EDQUOT)
		return "free space there, or specify another file system";
	return "specify another file";
}

int message_unwritten(struct output *err, const char *name, int error)
{
	output_string(err, "dbslower: ");
	escape_terminal(err, name, strlen(name), false);
	output_printf(err, ": cannot write: %s; %s\n", strerror(-error), unwritten_remedy(error));
	output_flush(err);
	return EXIT_FAILED;
}

int message_unread(struct output *err, const char *name, int error)
{
	output_string(err, "dbslower: ");
	escape_terminal(err, name, strlen(name), false);
	output_printf(err, ": cannot read: %s; specify another file\n", strerror(-error));
	output_flush(err);
	return EXIT_FAILED;
}

int message_output(struct output *err, int error)
{
	if (!error || error == -EPIPE)
		return EXIT_OK;
	if (error != -EINTR)
		return message_unwritten(err, "output", error);
	output_string(err, "dbslower: output: reader stalled; unread output was discarded\n");
	output_flush(err);
	return EXIT_FAILED;
}
