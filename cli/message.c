// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/message.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/escape.h"

static void message_foreign(struct output *err, const char *text)
{
	escape_terminal(err, text, strlen(text), false);
}

/* The first bytes of a file of the kernel's, "" where there is none. */
static void message_read(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, size - 1);

	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
}

static unsigned long long message_capabilities(void)
{
	char status[4096];
	const char *line;

	message_read("/proc/self/status", status, sizeof(status));
	line = strstr(status, "CapEff:");
	return line ? strtoull(line + 7, NULL, 16) : 0;
}

/* What stands behind an EPERM; looked for only now. */
static void message_rights(struct output *err)
{
	static const struct {
		int bit;
		const char *name;
	} wanted[] = {
		{ CAP_BPF, "CAP_BPF" },
		{ CAP_PERFMON, "CAP_PERFMON" },
		{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE" },
	};
	unsigned long long caps = message_capabilities();
	char lockdown[128];
	int missing = 0;

	message_read("/sys/kernel/security/lockdown", lockdown, sizeof(lockdown));
	if (strstr(lockdown, "[confidentiality]")) {
		output_string(err, "  The kernel is locked down (confidentiality): BPF may not "
				   "read memory. Boot with lockdown=integrity or none.\n");
		return;
	}
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (caps >> wanted[i].bit & 1 || caps >> CAP_SYS_ADMIN & 1)
			continue;
		output_string(err, missing++ ? ", " : "  Missing: ");
		output_string(err, wanted[i].name);
	}
	if (missing)
		output_string(err, ". Run it as root, or give it these capabilities.\n");
	else
		output_string(err, "  The capabilities are there; a seccomp filter or a security "
				   "module (SELinux, AppArmor) may forbid bpf(2) or "
				   "perf_event_open(2): in a container, allow them or run it on "
				   "the host.\n");
}

void message_waiting(struct output *err)
{
	output_string(err, "dbslower: no database server runs here that is known; waiting for one "
			   "to start\n");
	if (!(message_capabilities() >> CAP_SYS_PTRACE & 1))
		output_string(err, "  It may not look at other users' processes: that takes "
				   "CAP_SYS_PTRACE, or root.\n");
}

static const struct {
	const char *before, *after;	/* the subject stands between them */
	const char *remedy;
} message_words[] = {
	[FAULT_NONE] = { "no fault", "", NULL },
	[FAULT_MEMORY] = { "out of memory", "", NULL },
	[FAULT_MAP] = { "the kernel refuses the BPF map ", "",
			"Before Linux 5.11 a small RLIMIT_MEMLOCK does that: ulimit -l "
			"unlimited." },
	[FAULT_PROGRAM] = { "the kernel refuses the BPF program ", "",
			    "Please report this with the kernel's version and the lines below." },
	[FAULT_LINK] = { "this binary is damaged: its BPF object lacks ", "", "Install it again." },
	[FAULT_TRACEPOINT] = { "cannot attach to the tracepoint ", "", NULL },
	[FAULT_ATTACH] = { "cannot attach probes to ", "", NULL },
	[FAULT_NO_UPROBES] = { "this kernel offers no uprobes", "",
			       "It needs CONFIG_UPROBE_EVENTS, and before Linux 6.6 CAP_SYS_ADMIN "
			       "where /sys is not mounted: mount -t sysfs sysfs /sys." },
	[FAULT_STREAM] = { "cannot map the buffer between the kernel and dbslower", "", NULL },
	[FAULT_PROC] = { "cannot read /proc", "", "Mount it, that of the PID namespace that dbslower runs in: mount -t "
				     "proc proc /proc." },
	[FAULT_PROCESS] = { "there is no process ", " that can be looked at",
			    "See which servers run: ps -C postgres -o pid,ppid,args." },
	[FAULT_NOT_SERVER] = { "", " is no database server that is known here",
			       "Give -p the PID of a PostgreSQL server or of one of its "
			       "backends." },
	[FAULT_FILE] = { "cannot open ", "", NULL },
	[FAULT_NOT_ELF] = { "", " is no ELF file", "Give -x the server's program itself, not a "
						   "script that starts it." },
	[FAULT_MACHINE] = { "", " is built for another architecture than this dbslower",
			    "Use the dbslower of that architecture." },
	[FAULT_NO_PROBES] = { "", " cannot be traced",
			      "PostgreSQL from 10 and MySQL and MariaDB from 5.5 have what is "
			      "needed, unless they were linked without their dynamic symbols." },
	[FAULT_NAMESPACE] = { "this kernel cannot tell the PIDs of a PID namespace", "",
			      "That takes Linux 5.7; run it on the host." },
	[FAULT_NOTE] = { "cannot note in /run/dbslower what it writes into servers", "",
			 "It works on; but if it is killed by SIGKILL, the servers' probes stay "
			 "switched on until they are restarted." },
	[FAULT_SEMAPHORE] = { "cannot switch the probes on in process ", "",
			      "Its statements are not seen. Before Linux 4.20 that takes "
			      "CAP_SYS_PTRACE." },
	[FAULT_TOO_MANY] = { "too many ", "", NULL },
	[FAULT_PROBE] = { "", " cannot be traced like this", NULL },
};

#define KERNEL_ENOTSUPP	524	/* of the kernel's own numbers */

/* Why, in the kernel's words; "" where the message says it already. */
static const char *message_reason(const struct fault *fault)
{
	if (fault->kind == FAULT_NOT_ELF || fault->kind == FAULT_MACHINE ||
	    fault->kind == FAULT_NOT_SERVER || fault->kind == FAULT_NO_PROBES ||
	    fault->kind == FAULT_NO_UPROBES || fault->kind == FAULT_TOO_MANY ||
	    fault->kind == FAULT_PROBE || fault->kind == FAULT_NAMESPACE)
		return "";
	if (fault->error == -ENOSYS)
		return "this kernel has no bpf(2): it needs CONFIG_BPF_SYSCALL";
	if (fault->error == -KERNEL_ENOTSUPP)
		return "the kernel cannot probe an instruction there";
	return fault->error ? strerror(-fault->error) : "";
}

void message_fault(struct output *err, const struct fault *fault)
{
	bool denied = (fault->error == -EPERM || fault->error == -EACCES) &&
		      fault->kind != FAULT_NOTE && fault->kind != FAULT_SEMAPHORE;
	bool foreign = fault->kind == FAULT_PROCESS || fault->kind == FAULT_FILE;
	const char *remedy = denied && foreign ?
		"Looking at another user's process takes CAP_SYS_PTRACE, which root has unless a "
		"container or a security module takes it away." :
		message_words[fault->kind].remedy;
	const char *reason = message_reason(fault);

	output_string(err, "dbslower: ");
	output_string(err, message_words[fault->kind].before);
	message_foreign(err, fault->subject);
	output_string(err, message_words[fault->kind].after);
	if (*fault->detail) {
		output_string(err, fault->kind == FAULT_NO_PROBES ? ": it lacks " : " (");
		message_foreign(err, fault->detail);
		output_string(err, fault->kind == FAULT_NO_PROBES ? "" : ")");
	}
	if (*reason) {
		output_string(err, ": ");
		output_string(err, reason);
	}
	output_string(err, "\n");
	if (denied && fault->kind == FAULT_ATTACH &&
	    !(message_capabilities() >> CAP_SYS_ADMIN & 1)) {
		output_string(err, "  Without uprobe_multi, which comes with Linux 6.6, that takes "
				   "CAP_SYS_ADMIN. Run it as root.\n");
	} else if (fault->error == -EMFILE) {
		output_string(err, "  It may have too few files open: ulimit -n 1024.\n");
	} else if (denied && !foreign && !(fault->log && *fault->log)) {
		message_rights(err);
	} else if (remedy) {
		output_string(err, "  ");
		output_string(err, remedy);
		output_string(err, "\n");
	}
	if (fault->log)
		output_string(err, fault->log);
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

void message_losses(struct output *err, const struct summary *summary)
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

void message_summary(struct output *err, const struct summary *summary)
{
	output_printf(err, "dbslower: %llu statements, %llu shown",
		      (unsigned long long)summary->statements,
		      (unsigned long long)summary->printed);
	message_losses(err, summary);
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
