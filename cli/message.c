// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/message.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/escape.h"
#include "host/privileges.h"

static void message_foreign(struct output *err, const char *text)
{
	escape_terminal(err, text, strlen(text), false);
}

/* What stands behind an EPERM. */
static void message_rights(struct output *err, const struct privileges *host)
{
	char missing[64];

	if (privileges_missing(host, missing, sizeof(missing)))
		output_printf(err, "  Missing: %s. Run it as root, or give it %s%s\n", missing,
			      strchr(missing, ',') ? "these capabilities" : "this capability",
			      privileges_may(host, CAP_SYS_PTRACE) ? "." :
			      "; the servers of other users take CAP_SYS_PTRACE, too.");
	else if (!host->initial_user_ns)
		output_string(err, "  In a user namespace capabilities do not count for bpf(2): "
				   "run it on the host.\n");
	else if (privileges_locked_down(host))
		output_string(err,
			      "  The kernel is locked down (confidentiality), which may forbid "
				   "it also to root. Boot with lockdown=integrity or none.\n");
	else if (host->sandbox)
		output_string(err, "  dbslower has given up what it did not seem to need; "
				   "--keep-privileges keeps it.\n");
	else if (host->seccomp)
		output_string(err,
			      "  The capabilities are there; a seccomp filter may forbid bpf(2) "
				   "or perf_event_open(2): in a container, allow them (docker run "
				   "--security-opt seccomp=unconfined) or run it on the host.\n");
	else
		output_string(err, "  The capabilities are there; a security module (SELinux, "
				   "AppArmor) may forbid bpf(2) or perf_event_open(2): ausearch -m "
				   "avc, or dmesg.\n");
}

/* What stands behind a process that is not there, or not to be looked at. */
static const char *message_process(const struct privileges *host, bool denied)
{
	if (privileges_may(host, CAP_SYS_PTRACE))
		return denied ? "A container or a security module may forbid that also to root." :
				NULL;
	if (denied)
		return "Looking at another user's process takes CAP_SYS_PTRACE, which root has "
		       "unless a container takes it away.";
	return privileges_hides(host) ? "If it is another user's, it is hidden: /proc is mounted with "
				  "hidepid. Seeing it takes CAP_SYS_PTRACE, or root." : NULL;
}

/* A file that may not be read. */
static const char *message_file(const struct privileges *host)
{
	if (!privileges_may(host, CAP_DAC_OVERRIDE) && !privileges_may(host, CAP_DAC_READ_SEARCH))
		return "Its owner may read it; for others that takes CAP_DAC_READ_SEARCH, or root.";
	return "A container or a security module may forbid that also to root.";
}

/* Whether the verifier's log ends at one of the helpers that lockdown takes away. */
static bool message_old_helper(const char *log)
{
	return log && (strstr(log, "func bpf_probe_read") || strstr(log, "helper bpf_probe_read"));
}

void message_waiting(struct output *err)
{
	struct privileges host;

	privileges_read(&host);
	output_string(err, "dbslower: no database server runs here that is known; waiting for one "
			   "to start\n");
	if (!privileges_may(&host, CAP_SYS_PTRACE))
		output_string(err, "  It may not look at other users' processes: that takes "
				   "CAP_SYS_PTRACE, or root.\n");
}

static const struct {
	const char *before, *after;	/* the subject stands between them */
	const char *remedy;
} message_words[] = {
	[ERROR_NONE] = { "no fault", "", NULL },
	[ERROR_MEMORY] = { "out of memory", "", NULL },
	[ERROR_MAP] = { "the kernel refuses the BPF map ", "",
			"Before Linux 5.11 a small RLIMIT_MEMLOCK does that: ulimit -l "
			"unlimited." },
	[ERROR_PROGRAM] = { "the kernel refuses the BPF program ", "",
			    "Please report this with the kernel's version and the lines below." },
	[ERROR_LINK] = { "this binary is damaged: its BPF object lacks ", "", "Install it again." },
	[ERROR_TRACEPOINT] = { "cannot attach to the tracepoint ", "", NULL },
	[ERROR_ATTACH] = { "cannot attach probes to ", "", NULL },
	[ERROR_NO_UPROBES] = { "this kernel offers no uprobes", "",
			       "It needs CONFIG_UPROBE_EVENTS, and before Linux 6.6 CAP_SYS_ADMIN "
			       "where /sys is not mounted: mount -t sysfs sysfs /sys." },
	[ERROR_TRACEFS] = { "cannot use tracefs, the only way to attach probes here", "",
			    "Its files are root's: run it as root." },
	[ERROR_TYPES] = { "cannot tell where statements' time goes (--why, --use): the kernel "
			  "describes neither its types in /sys/kernel/btf/vmlinux nor its "
			  "scheduler's events in tracefs", "",
			  "It needs CONFIG_DEBUG_INFO_BTF (Linux 5.4), or tracefs, whose files are "
			  "root's: mount -t tracefs tracefs /sys/kernel/tracing." },
	[ERROR_STREAM] = { "cannot map the buffer between the kernel and dbslower", "", NULL },
	[ERROR_WAIT] = { "cannot wait for signals and for its time to end", "", NULL },
	[ERROR_PROC] = { "cannot read /proc", "",
			 "Mount it, that of the PID namespace that dbslower runs in: mount -t "
				     "proc proc /proc." },
	[ERROR_PROCESS] = { "there is no process ", " that can be looked at",
			    "See which servers run: ps -C postgres -o pid,ppid,args." },
	[ERROR_NOT_SERVER] = { "", " is no database server that is known here",
			       "Give -p the PID of a PostgreSQL server or of one of its "
			       "backends." },
	[ERROR_FILE] = { "cannot open ", "", NULL },
	[ERROR_NOT_ELF] = { "", " is no ELF file", "Give -x the server's program itself, not a "
						   "script that starts it." },
	[ERROR_MACHINE] = { "", " is built for another architecture than this dbslower",
			    "Use the dbslower of that architecture." },
	[ERROR_NO_PROBES] = { "", " cannot be traced",
			      "PostgreSQL from 10 and MySQL and MariaDB from 5.5 have what is "
			      "needed, unless they were linked without their dynamic symbols." },
	[ERROR_SITE] = { "", " cannot be traced",
			 "The file was changed after it was linked, or is no server: compare it with "
			 "its package's." },
	[ERROR_NAMESPACE] = { "this kernel cannot tell the PIDs of a PID namespace", "",
			      "That takes Linux 5.7; run it on the host." },
	[ERROR_NOTE] = { "cannot note in /run/dbslower what it writes into servers", "",
			 "It works on; but if it is killed by SIGKILL, the servers' probes stay "
			 "switched on until they are restarted." },
	[ERROR_SEMAPHORE] = { "cannot switch the probes on in process ", "",
			      "Its statements are not seen. Before Linux 4.20 that takes "
			      "CAP_SYS_PTRACE." },
	[ERROR_TOO_MANY] = { "too many ", "", NULL },
	[ERROR_PROBE] = { "", " cannot be traced like this", NULL },
};

#define KERNEL_ENOTSUPP	524	/* of the kernel's own numbers */

/* Why, in the kernel's words; "" where the message says it already. */
static const char *message_reason(const struct error *error)
{
	if (error->kind == ERROR_MEMORY || error->kind == ERROR_NOT_ELF ||
	    error->kind == ERROR_MACHINE || error->kind == ERROR_NOT_SERVER || error->kind == ERROR_NO_PROBES ||
	    error->kind == ERROR_NO_UPROBES || error->kind == ERROR_TOO_MANY ||
	    error->kind == ERROR_PROBE || error->kind == ERROR_SITE ||
	    error->kind == ERROR_NAMESPACE)
		return "";
	if (error->code == -ENOSYS)
		return "this kernel has no bpf(2): it needs CONFIG_BPF_SYSCALL";
	if (error->code == -KERNEL_ENOTSUPP)
		return "the kernel cannot probe an instruction there";
	return error->code ? strerror(-error->code) : "";
}

/* What to do about it. Looks at the host for the cause. */
static void message_remedy(struct output *err, const struct error *error)
{
	bool denied = error->code == -EPERM || error->code == -EACCES;
	const char *remedy = message_words[error->kind].remedy, *other = NULL;
	struct privileges host;

	privileges_read(&host);
	if (error->code == -EMFILE)
		remedy = "It may have too few files open: ulimit -n 1024.";
	else if (error->code == -ENOMEM && error->kind != ERROR_MAP)
		remedy = NULL;
	else if (error->kind == ERROR_PROCESS)
		other = message_process(&host, denied);
	else if (error->kind == ERROR_FILE && denied)
		remedy = message_file(&host);
	else if (privileges_locked_down(&host) && (error->kind == ERROR_NO_UPROBES ||
						   error->kind == ERROR_TYPES ||
						   message_old_helper(error->log)))
		remedy = "The kernel is locked down (confidentiality), which forbids tracefs and the "
			 "helpers before Linux 5.5. Boot with lockdown=integrity or none.";
	else if (error->kind == ERROR_TRACEFS && error->code == -EPERM)
		remedy = "It is not mounted, and a mount takes CAP_SYS_ADMIN, which root has. Before "
			 "Linux 6.6 this will do, too: mount -t sysfs sysfs /sys.";
	else if (denied && error->kind == ERROR_ATTACH && !privileges_may(&host, CAP_SYS_ADMIN))
		remedy = "Without uprobe_multi, which comes with Linux 6.6, that takes "
			 "CAP_SYS_ADMIN. Run it as root.";
	else if (denied && error->kind != ERROR_NOTE && error->kind != ERROR_SEMAPHORE &&
		 error->kind != ERROR_TRACEFS && error->kind != ERROR_TYPES &&
		 !(error->log && *error->log)) {
		message_rights(err, &host);
		return;
	}
	if (other)
		remedy = other;
	if (remedy)
		output_printf(err, "  %s\n", remedy);
}

void message_error(struct output *err, const struct error *error)
{
	const char *reason = message_reason(error);

	output_string(err, "dbslower: ");
	output_string(err, message_words[error->kind].before);
	message_foreign(err, error->subject);
	output_string(err, message_words[error->kind].after);
	if (*error->detail) {
		output_string(err, error->kind == ERROR_NO_PROBES ? ": it lacks " : " (");
		message_foreign(err, error->detail);
		output_string(err, error->kind == ERROR_NO_PROBES ? "" : ")");
	}
	if (*reason) {
		output_string(err, ": ");
		output_string(err, reason);
	}
	output_string(err, "\n");
	message_remedy(err, error);
	if (error->log)
		output_string(err, error->log);
}

/* The ways to lose something, in the order and with the names that JSON has. */
struct loss {
	uint64_t count;
	const char *words;
};

#define LOSSES	7

static void losses_of(const struct summary *s, struct loss loss[LOSSES])
{
	loss[0] = (struct loss){ s->ring_full, "events, the buffer was full" };
	loss[1] = (struct loss){ s->table_full, "probe hits, the table was full" };
	loss[2] = (struct loss){ s->start_without_end, "starts without an end" };
	loss[3] = (struct loss){ s->end_without_start, "ends without a start" };
	loss[4] = (struct loss){ s->text_unreadable, "texts unreadable" };
	loss[5] = (struct loss){ s->text_truncated, "texts cut" };
	loss[6] = (struct loss){ s->who_unknown, "records of who is connected" };
}

bool message_lost(const struct summary *summary)
{
	struct loss loss[LOSSES];
	uint64_t sum = 0;

	losses_of(summary, loss);
	for (int i = 0; i < LOSSES; i++)
		sum |= loss[i].count;
	return sum;
}

uint64_t message_events_lost(const struct summary *s)
{
	return s->ring_full + s->table_full + s->start_without_end + s->end_without_start +
	       s->who_unknown;
}

static void message_losses(struct output *err, const struct summary *summary)
{
	struct loss loss[LOSSES];
	const char *before = "; lost: ";

	losses_of(summary, loss);
	for (int i = 0; i < LOSSES; i++) {
		if (!loss[i].count)
			continue;
		output_printf(err, "%s%llu %s", before, (unsigned long long)loss[i].count,
			      loss[i].words);
		before = ", ";
	}
	output_string(err, message_lost(summary) ? "\n" : ", nothing lost\n");
}

void message_summary(struct output *err, const char *noun, const struct summary *summary)
{
	output_printf(err, "dbslower: %llu %s, %llu %sshown",
		      (unsigned long long)summary->statements, noun,
		      (unsigned long long)summary->printed, summary->waits ? "waits " : "");
	message_losses(err, summary);
}

int message_no_memory(void)
{
	static const char text[] = "dbslower: out of memory\n";

	ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)n;
	return EXIT_FAILED;
}

int message_output(struct output *err, int error)
{
	if (!error || error == -EPIPE)
		return EXIT_OK;
	if (error == -EINTR)
		output_string(err, "dbslower: the output's reader has stopped; what it did not "
				   "take is lost\n");
	else
		output_printf(err, "dbslower: cannot write the output: %s\n", strerror(-error));
	output_flush(err);
	return EXIT_FAILED;
}
