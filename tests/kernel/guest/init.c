// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * init: the first process of a guest that contains only /dbslower and /victim, or PostgreSQL
 * instead of the latter. It mounts /proc and /sys, runs dbslower, prints TAP on the console and
 * powers off. tests/kernel/kernels.py creates the guest. GUEST=lockdown on the kernel's command
 * line means that the same command line locks the kernel down.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "host/arch.h"

#define TOOL		"/dbslower"
#define TOOL_OUT	"/tmp/tool.out"
#define TOOL_ERR	"/tmp/tool.err"
#define ARGS_MAX	64
#define LINE_MAX_BYTES	16384
#define EXPECT_MAX	64
#define BURST		2000	/* statements, whose texts have four times the size of the ring */
#define ATTACH_S	120
#define DETACH_S	20
#define SERVER_UID	70
#define NOBODY_UID	65534
#define DATA_PORT	"/dev/ttyS1"
#define JIT		"/proc/sys/net/core/bpf_jit_enable"
#define UNCOUNTED	"--force=semaphore"

struct process {
	pid_t pid;
	FILE *to, *from;
};

struct expected {
	char text[128];
	double least_ms;
};

/* Totals of the output of one run. */
struct output {
	unsigned long statements, printed, lost;
	bool summary, in_order;
};

static int tests;

static void tap(bool ok, const char *method, const char *format, ...)
{
	va_list args;

	printf("%sok %d - ", ok ? "" : "not ", ++tests);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf(" [%s]\n", method);
}

/* Print the file as TAP diagnostics. */
static void show(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		printf("# %s: %s%s", path, line, strchr(line, '\n') ? "" : "\n");
	if (f)
		fclose(f);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void pause_ms(unsigned int ms)
{
	usleep(ms * 1000);
}

static int redirect(const char *path, int fd)
{
	int opened = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);

	return opened < 0 || dup2(opened, fd) < 0 ? -1 : close(opened);
}

/* Run a program as @uid with its output in files. Return its PID. */
static pid_t spawn(const char *const args[], const char *out, const char *err, uid_t uid)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	redirect("/dev/null", 0);
	redirect(out, 1);
	redirect(err, 2);
	if (uid && (setgid(uid) || setuid(uid)))
		_exit(126);
	execv(args[0], (char *const *)args);
	_exit(127);
}

/* Wait for a process. Return its exit status, or the negative number of its signal. */
static int await(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static bool ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

static bool file_has(const char *path, const char *words)
{
	FILE *f = fopen(path, "r");
	char line[1024];
	bool has = false;

	while (f && !has && fgets(line, sizeof(line), f))
		has = strstr(line, words);
	if (f)
		fclose(f);
	return has;
}

/* Start the tool and wait until it traces. Return its PID, or 0 on failure. */
static pid_t tool_start(const char *const args[], const char *method)
{
	double start = now();
	pid_t pid;

	unlink(TOOL_ERR);
	pid = spawn(args, TOOL_OUT, TOOL_ERR, 0);
	while (!file_has(TOOL_ERR, "dbslower: tracing")) {
		if (ended(pid) || now() - start > ATTACH_S) {
			kill(pid, SIGKILL);
			tap(false, method, "attaches: exit status %d", await(pid));
			show(TOOL_ERR);
			return 0;
		}
		pause_ms(20);
	}
	printf("# attached after %.0f ms\n", (now() - start) * 1000);
	tap(true, method, "attaches");
	return pid;
}

#define VICTIM_ARGS \
	TOOL, "-x", "/victim", "--start", "memsqld:query__start", "--done", "memsqld:query__done", \
	"--text-arg", "2", "-m", "0", "--json"

/* Trace the victim, with @option if it begins with a hyphen. */
static pid_t victim_trace(const char *option, const char *method)
{
	const char *args[] = { VICTIM_ARGS, *option == '-' ? option : NULL, NULL };

	return tool_start(args, method);
}

/* End the tool by SIGINT, as a user does. */
static void tool_stop(pid_t pid, const char *method)
{
	double start = now();
	int status;

	kill(pid, SIGINT);
	status = await(pid);
	printf("# ended after %.0f ms\n", (now() - start) * 1000);
	tap(status == 0, method, "ends by SIGINT with status 0: %d", status);
	if (status)
		show(TOOL_ERR);
}

/*
 * Send @command to the victim, if not NULL, and read its answer up to "end". Call @line for the
 * lines that begin with @prefix. Return false if the victim has exited.
 */
static bool victim_ask(struct process *victim, const char *command, const char *prefix,
		       void (*line)(const char *line, void *arg), void *arg)
{
	char text[256];

	if (command) {
		fprintf(victim->to, "%s\n", command);
		fflush(victim->to);
	}
	while (fgets(text, sizeof(text), victim->from)) {
		text[strcspn(text, "\n")] = '\0';
		if (!strcmp(text, "end"))
			return true;
		if (line && !strncmp(text, prefix, strlen(prefix)))
			line(text + strlen(prefix), arg);
	}
	return false;
}

static bool victim_start(struct process *victim)
{
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		return false;
	victim->pid = fork();
	if (!victim->pid) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		for (int fd = 3; fd < 64; fd++)
			close(fd);
		execl("/victim", "/victim", NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	victim->to = fdopen(to[1], "w");
	victim->from = fdopen(from[0], "r");
	return victim->to && victim->from && victim_ask(victim, NULL, "", NULL, NULL);
}

static void keep_line(const char *line, void *arg)
{
	snprintf(arg, 64, "%s", line);
}

/*
 * Return whether the semaphores and the code are those of a victim that is traced, or not. Wait for
 * the latter at most DETACH_S.
 */
static bool victim_is(struct process *victim, bool traced, char state[64])
{
	double start = now();
	unsigned int begin, end;
	char code[16];

	for (;;) {
		if (!victim_ask(victim, "state", "state ", keep_line, state) ||
		    sscanf(state, "%u %u %15s", &begin, &end, code) != 3)
			return false;
		if (traced ? begin && end && !strcmp(code, "changed") :
			     !begin && !end && !strcmp(code, "same"))
			return true;
		if (traced || now() - start > DETACH_S)
			return false;
		pause_ms(50);
	}
}

static void check_detached(struct process *victim, const char *method, const char *after)
{
	double start = now();
	char state[64] = "";
	bool detached = victim_is(victim, false, state);

	printf("# detached after %.0f ms\n", (now() - start) * 1000);
	tap(detached, method, "%s, semaphores and code are as before: %s", after, state);
}

struct expectations {
	struct expected row[EXPECT_MAX];
	size_t count;
};

static void keep_expected(const char *line, void *arg)
{
	struct expectations *e = arg;
	char *rest;

	if (e->count == EXPECT_MAX)
		return;
	e->row[e->count].least_ms = strtod(line, &rest);
	snprintf(e->row[e->count++].text, sizeof(e->row[0].text), "%s", rest + 1);
}

/* Return the number after @key in a line of JSON, -1 without one. */
static double json_number(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	return at ? strtod(at + strlen(key), NULL) : -1;
}

/*
 * Return how many statements are lost by the summary. One whose text is lost is shown: the kernel
 * may move the page meanwhile, and then a program cannot read it.
 */
static unsigned long json_lost(const char *line)
{
	const char *p = strstr(line, "\"lost\":{");
	unsigned long sum = p ? 0 : 1;

	while (p && (p = strpbrk(p + 1, "\"}")) && *p == '"')
		if (isalpha((unsigned char)p[1]) && strncmp(p + 1, "text_", 5))
			sum += (unsigned long)json_number(p, "\":");
	return sum;
}

static bool fits(const char *line, const struct expected *expected)
{
	char query[160];

	snprintf(query, sizeof(query), "\"query\":\"%s\"", expected->text);
	return strstr(line, query) && json_number(line, "\"duration_ms\":") >= expected->least_ms;
}

static struct output output_read(const struct expectations *e)
{
	static char line[LINE_MAX_BYTES];
	FILE *f = fopen(TOOL_OUT, "r");
	struct output output = { .in_order = f };

	while (f && fgets(line, sizeof(line), f)) {
		if (strstr(line, "\"type\":\"summary\"")) {
			output.summary = true;
			output.printed = (unsigned long)json_number(line, "\"printed\":");
			output.lost = json_lost(line);
		} else if (strstr(line, "\"type\":\"statement\"")) {
			if (output.statements < e->count &&
			    !fits(line, &e->row[output.statements]))
				output.in_order = false;
			output.statements++;
		}
	}
	if (f)
		fclose(f);
	return output;
}

/*
 * Check that the tool reports exactly the victim's statements. Then stop the tool while the victim
 * runs more than the buffer can contain: each statement is either reported or counted as lost.
 */
static void check_trace(struct process *victim, const char *method)
{
	struct expectations expected = { .count = 0 };
	struct output output;
	char state[64] = "", command[32];
	pid_t tool = victim_trace(method, method);

	if (!tool)
		return;
	tap(victim_is(victim, true, state), method, "probes and semaphores are set: %s", state);
	victim_ask(victim, "run", "expect ", keep_expected, &expected);
	kill(tool, SIGSTOP);
	snprintf(command, sizeof(command), "burst %d", BURST);
	victim_ask(victim, command, "", NULL, NULL);
	kill(tool, SIGCONT);
	tool_stop(tool, method);
	output = output_read(&expected);
	tap(output.in_order && expected.count && output.statements >= expected.count, method,
	    "%zu statements, in order", expected.count);
	if (!output.in_order) {
		show(TOOL_ERR);
		show(TOOL_OUT);
	}
	tap(output.statements > expected.count && output.lost, method,
	    "a burst of %d is too large for the buffer", BURST);
	tap(output.summary && output.printed == output.statements &&
	    output.statements + output.lost == BURST + expected.count, method,
	    "%zu fired = %lu shown + %lu counted as lost", BURST + expected.count,
	    output.statements, output.lost);
	check_detached(victim, method, "after its end");
}

/* Trace the victim once. @state describes the guest. */
static void check_short(struct process *victim, const char *option, const char *state)
{
	struct expectations expected = { .count = 0 };
	struct output output;
	char method[64];
	pid_t tool;

	snprintf(method, sizeof(method), "%s%s%s", state, option ? " " : "", option ? option : "");
	tool = victim_trace(option ? option : method, method);
	if (!tool)
		return;
	victim_ask(victim, "run", "expect ", keep_expected, &expected);
	tool_stop(tool, method);
	output = output_read(&expected);
	tap(output.in_order && expected.count && output.statements == expected.count &&
	    output.summary && !output.lost, method, "%zu statements, in order, none lost",
	    expected.count);
	check_detached(victim, method, "after its end");
}

/*
 * Check that the breakdown reports the time that the victim sleeps: at least half of it in total,
 * since an emulator may stop just before a sleep.
 */
static void check_why(struct process *victim, const char *method)
{
	static char line[LINE_MAX_BYTES];
	struct expectations expected = { .count = 0 };
	double wanted = 0, asleep = 0, ms;
	size_t at = 0;
	pid_t tool = victim_trace("--why", method);
	FILE *f;

	if (!tool)
		return;
	victim_ask(victim, "run", "expect ", keep_expected, &expected);
	tool_stop(tool, method);
	f = fopen(TOOL_OUT, "r");
	while (f && at < expected.count && fgets(line, sizeof(line), f)) {
		ms = json_number(line, "\"sleep\":");
		if (ms < 0)	/* no statement: the first line */
			continue;
		wanted += expected.row[at++].least_ms;
		asleep += ms;
	}
	if (f)
		fclose(f);
	tap(at && at == expected.count && asleep >= wanted / 2, method,
	    "%zu statements, which slept %.0f of %.0f ms", at, asleep, wanted);
	if (at != expected.count)
		show(TOOL_OUT);
}

/* Check that the tool fails with @option, and that its message contains @words. */
static void check_refused(const char *option, const char *words, const char *method)
{
	const char *args[] = { VICTIM_ARGS, option, "-d", "0.1", NULL };
	int status = await(spawn(args, TOOL_OUT, TOOL_ERR, 0));
	bool named = file_has(TOOL_ERR, words);

	tap(status == 1 && named, method, "%s ends with status 1 and prints \"%s\": %d", option,
	    words, status);
	if (status != 1 || !named)
		show(TOOL_ERR);
}

/* Return the number of BPF programs or maps in the kernel. */
static int bpf_count(enum bpf_cmd next_id)
{
	union bpf_attr attr = { .start_id = 0 };
	int count = 0;

	while (!syscall(__NR_bpf, next_id, &attr, sizeof(attr))) {
		attr.start_id = attr.next_id;
		count++;
	}
	return count;
}

static int bpf_objects(void)
{
	return bpf_count(BPF_PROG_GET_NEXT_ID) + bpf_count(BPF_MAP_GET_NEXT_ID);
}

/*
 * Check that SIGKILL of the tool removes all its state. The guest has no other BPF objects; the
 * kernel frees those of the tool with a delay.
 */
static void check_kill(struct process *victim, const char *method)
{
	int during, after;
	double start;
	char state[64] = "";
	pid_t tool = victim_trace(method, method);

	if (!tool)
		return;
	during = bpf_objects();
	tap(victim_is(victim, true, state), method, "traced before kill -9: %s", state);
	kill(tool, SIGKILL);
	await(tool);
	check_detached(victim, method, "after kill -9");
	start = now();
	do {
		after = bpf_objects();
		pause_ms(20);
	} while (after && now() - start < DETACH_S);
	tap(during && !after, method, "BPF programs and maps: %d, then %d", during, after);
	tap(victim_ask(victim, "run", "", NULL, NULL), method, "the victim continues");
}

/* Check by the unit test that this kernel's verifier accepts the code emitted for arguments. */
static void check_verifier(void)
{
	static const char *const verify[] = { "/verify", "/data", NULL };
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	double start = now();
	int status;

	/* Before 5.11 programs are charged as locked memory; the tool itself raises the limit. */
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	setenv("UNIT_SHORT", "1", 1);
	status = await(spawn(verify, TOOL_OUT, TOOL_ERR, 0));
	printf("# verified in %.1f s\n", now() - start);
	tap(status == 0, "verifier", "emitted code loads: exit status %d", status);
	tap(!file_has(TOOL_OUT, "SKIP"), "verifier", "nothing was skipped");
	if (status)
		show(TOOL_OUT);
}

/* The verifier accepts the programs of trace, for arguments in registers and in memory. */
static void check_trace_command(void)
{
	static const char *const commands[][10] = {
		{ TOOL, "trace", "-d", "0.1", "/victim",
		  "query__start (arg1 != 0 && arg2 != \"x\" && comm != \"y\") "
		  "\"%d %.*s %d %.9s\", arg1, arg1, arg2, arg1 + 1, arg2" },
		{ TOOL, "trace", "-d", "0.1", "--count", "/victim",
		  "query__start arg1, arg2:.*s, arg1, arg2:.*s, comm" },
		{ TOOL, "trace", "-d", "0.1", "--hist", "-arg1 / uid % 9", "/victim",
		  "query__start (arg1 == 7 || arg2 == \"x\") "
		  "arg1, arg2:.*s, arg1, arg2:.*s, comm" },
		{ TOOL, "trace", "-d", "0.1", "--force=perfbuf", "/victim", "query__start" },
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		int status = await(spawn(commands[i], TOOL_OUT, TOOL_ERR, 0));

		tap(!status && file_has(TOOL_ERR, "nothing lost"), "trace", "%s: exit status %d",
		    commands[i][4], status);
		if (status)
			show(TOOL_ERR);
	}
}

static void check_doctor(void)
{
	static const char *const help[] = { TOOL, "doctor", "--help", NULL };
	static const char *const self_test[] = { TOOL, "doctor", "--self-test", NULL };
	int status;

	if (await(spawn(help, TOOL_OUT, TOOL_ERR, 0)))
		return;
	status = await(spawn(self_test, TOOL_OUT, TOOL_ERR, 0));
	tap(status == 0, "doctor", "the self-test: exit status %d", status);
	if (status) {
		show(TOOL_OUT);
		show(TOOL_ERR);
	}
}

/* Read the options that force one fallback each from the error message for an unknown name. */
static size_t force_options(char options[][32], size_t max)
{
	static const char *const unknown[] = { TOOL, "--force=?", NULL };
	char line[512] = "", *name;
	size_t count = 0;
	FILE *f;

	await(spawn(unknown, TOOL_OUT, TOOL_ERR, 0));
	f = fopen(TOOL_ERR, "r");
	if (!f || !fgets(line, sizeof(line), f))
		line[0] = '\0';
	if (f)
		fclose(f);
	name = strstr(line, "expected ");
	name = name ? strtok(name + strlen("expected "), ", \n") : NULL;
	/* Behind the release there are risks. */
	for (; name && count < max; name = strncmp(name, "linux-", 6) ? strtok(NULL, ", \n") : NULL)
		snprintf(options[count++], sizeof(options[0]), "--force=%.20s", name);
	return count;
}

/* Become user nobody with CAP_BPF and CAP_PERFMON only. */
static bool capabilities_drop(void)
{
	static const int held[] = { CAP_BPF, CAP_PERFMON };
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	bool ok;

	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++)
		data[held[i] / 32].permitted |= 1u << held[i] % 32;
	for (int i = 0; i < 2; i++)
		data[i].effective = data[i].inheritable = data[i].permitted;
	ok = !prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) && !setgid(NOBODY_UID) && !setuid(NOBODY_UID) &&
	     !syscall(SYS_capset, &head, data);
	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++)
		ok &= !prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, held[i], 0, 0);
	return ok;
}

/* Check that the tool works without root, or names the further capability that is required. */
static void check_capabilities(void)
{
	static const char *const args[] = { VICTIM_ARGS, "-d", "0.1", NULL };
	pid_t pid = fork();
	int status;
	bool named;

	if (!pid) {
		redirect("/dev/null", 0);
		redirect(TOOL_OUT, 1);
		redirect(TOOL_ERR, 2);
		if (capabilities_drop())
			execv(args[0], (char *const *)args);
		_exit(126);
	}
	status = await(pid);
	named = file_has(TOOL_ERR, "requires CAP_SYS_ADMIN");
	tap(status == 0 || (status == 1 && named), "rights",
	    "with CAP_BPF and CAP_PERFMON only: exit status %d%s", status,
	    named ? ", and CAP_SYS_ADMIN is named" : "");
	if (status)
		show(TOOL_ERR);
}

static bool file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	close(fd);
	return ok;
}

/*
 * Trace on a minimal system: a read-only root, neither /sys nor /proc/sys, a /proc with hidepid,
 * 64 KiB of locked memory, and the strictest sysctls. The guest has no /etc.
 */
static void check_bare(struct process *victim)
{
	struct rlimit little = { 65536, 65536 };
	const char *state = "bare";
	double start = now();

	file_write("/proc/sys/kernel/unprivileged_bpf_disabled", "1");
	tap(file_write("/proc/sys/kernel/perf_event_paranoid", "3"), state, "perf_event_paranoid");
	umount2("/sys", MNT_DETACH);
	tap(access("/sys/kernel", F_OK), state, "/sys is not mounted");
	mount("tmpfs", "/proc/sys", "tmpfs", 0, NULL);
	tap(access("/proc/sys/kernel", F_OK), state, "/proc/sys is not there");
	tap(!mount(NULL, "/proc", NULL, MS_REMOUNT, "hidepid=2"), state, "/proc hides");
	tap(!setrlimit(RLIMIT_MEMLOCK, &little), state, "RLIMIT_MEMLOCK is 64 kB");
	mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL);
	tap(open("/file", O_CREAT | O_WRONLY, 0600) < 0 && errno == EROFS, state,
	    "the root is read-only");
	check_short(victim, NULL, state);
	check_short(victim, "--force=perf", state);
	printf("# bare: %.1f s\n", now() - start);
}

/* Trace a locked-down kernel. securityfs is not mounted; the tool must detect the mode itself. */
static void check_lockdown(void)
{
	static const char *const doctor[] = { TOOL, "doctor", NULL };
	struct process victim;

	tap(victim_start(&victim), "lockdown", "starts");
	await(spawn(doctor, TOOL_OUT, TOOL_ERR, 0));
	tap(file_has(TOOL_OUT, "lockdown: confidentiality"), "lockdown",
	    "the kernel is locked down");
	check_short(&victim, NULL, "lockdown");
	check_short(&victim, "--force=perf", "lockdown");
	check_refused("--force=probe-read", "the kernel is locked down", "lockdown");
	check_doctor();
	kill(victim.pid, SIGKILL);
	await(victim.pid);
}

/* Return the "time" of a line of JSON in seconds since the epoch, 0 without one. */
static time_t json_time(const char *line)
{
	struct tm tm = { 0 };
	const char *at = strstr(line, "\"time\":\"");

	if (!at || sscanf(at + 8, "%d-%d-%dT%d:%d:%d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
			  &tm.tm_hour, &tm.tm_min, &tm.tm_sec) != 6)
		return 0;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	return timegm(&tm);
}

static time_t wall_step(time_t by)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += by;
	clock_settime(CLOCK_REALTIME, &ts);
	return ts.tv_sec;
}

static bool cpu_set_online(const char *value)
{
	FILE *f = fopen("/sys/devices/system/cpu/cpu1/online", "w");
	bool done = f && fputs(value, f) >= 0;

	return f && !fclose(f) && done;
}

/* Return the wall-clock time of statement @number in the output. */
static time_t output_time(size_t number)
{
	static char line[LINE_MAX_BYTES];
	FILE *f = fopen(TOOL_OUT, "r");
	time_t at = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "\"type\":\"statement\"") && !number--)
			at = json_time(line);
	if (f)
		fclose(f);
	return at;
}

/*
 * Take a CPU offline and online, and step the wall clock, while the tool traces. The content of the
 * perf buffer of the offline CPU may be lost, but is counted.
 */
static void check_changes(struct process *victim, const char *method)
{
	struct expectations expected = { .count = 0 };
	struct output output;
	pid_t tool = victim_trace(method, method);
	time_t ahead, shown;
	bool off, on;

	if (!tool)
		return;
	victim_ask(victim, "run", "expect ", keep_expected, &expected);
	off = cpu_set_online("0");
	victim_ask(victim, "run", "", NULL, NULL);
	pause_ms(100);
	ahead = wall_step(86400);
	victim_ask(victim, "run", "", NULL, NULL);
	on = cpu_set_online("1");
	/* What was not read before the clock is set back would have that time. */
	for (int i = 0; i < 100 && !output_time(2 * expected.count); i++)
		pause_ms(100);
	wall_step(-86400);
	victim_ask(victim, "run", "", NULL, NULL);
	tool_stop(tool, method);
	output = output_read(&expected);
	tap(off && on, method, "a CPU goes offline and online");
	tap(output.in_order && output.summary && output.printed == output.statements &&
	    output.statements + output.lost == 4 * expected.count &&
	    (!output.lost || *method == '-'), method, "4 * %zu = %lu shown + %lu counted as lost",
	    expected.count, output.statements, output.lost);
	shown = output_time(2 * expected.count);
	if (!output.lost)
		tap(shown >= ahead && shown < ahead + 3600, method,
		    "the time of day is %+.0f s off",
		    difftime(shown, ahead));
	check_detached(victim, method, "after its end");
}

/*
 * Run without the compiler of BPF programs; where it implements helpers, --use is refused. Else the
 * interpreter, if there is one, gives functions less stack.
 */
static void check_interpreted(struct process *victim)
{
	if (HOST_JIT_HELPERS) {
		check_refused("--use", "; sysctl net.core.bpf_jit_enable=1", "use without JIT");
	} else {
		check_why(victim, "why without JIT");
		check_short(victim, "--use", "use without JIT");
	}
	tap(file_write(JIT, "1"), "use without JIT", "the JIT is on again");
}

static void check_victim(void)
{
	char options[16][32];
	size_t count = force_options(options, 16);
	struct process victim;
	bool interpreted;

	tap(victim_start(&victim), "victim", "starts");
	if (!count)
		tap(false, "victim", "--force lists the fallbacks");
	check_trace(&victim, "default");
	check_kill(&victim, "default");
	for (size_t i = 0; i < count; i++) {
		if (!strcmp(options[i], UNCOUNTED))
			continue;
		check_trace(&victim, options[i]);
		check_kill(&victim, options[i]);
	}
	/* Nothing is written to the victim, which tests its semaphores first. */
	check_refused(UNCOUNTED, ": the kernel does not count its semaphore", UNCOUNTED);
	check_detached(&victim, UNCOUNTED, "after its refusal");
	check_changes(&victim, "default");
	check_changes(&victim, "--force=perfbuf");
	check_trace_command();
	check_doctor();
	check_verifier();
	check_capabilities();
	/* As Debian's kernels for riscv64 do by default. */
	interpreted = file_has(JIT, "0");
	if (interpreted)
		check_interpreted(&victim);
	check_why(&victim, "why");
	if (!interpreted && file_write(JIT, "0"))
		check_interpreted(&victim);
	tap(!mount("none", "/sys/kernel/btf", "tmpfs", 0, NULL), "why", "types are hidden");
	check_why(&victim, "why without types");
	if (interpreted)	/* in an emulator, compiling takes longer than it saves */
		file_write(JIT, "0");
	check_bare(&victim);
	kill(victim.pid, SIGKILL);
	await(victim.pid);
}

/* Read a NUL-terminated string of a file of steps. Return NULL at the end. */
static char *step_string(FILE *f)
{
	char *text = NULL;
	size_t size = 0;

	return getdelim(&text, &size, '\0', f) > 0 ? text : NULL;
}

/* Read a step: an application name, arguments, and an empty string. Return false at the end. */
static bool step_read(FILE *f, const char *args[ARGS_MAX])
{
	char *name = f ? step_string(f) : NULL;
	size_t n = 0;

	if (!name)
		return false;
	setenv("PGAPPNAME", name, 1);
	while (n < ARGS_MAX - 1 && (args[n] = step_string(f)) && *args[n])
		n++;
	args[n] = NULL;
	return true;
}

/* Run the commands of /programs, which load all their programs for the file of a server. */
static void check_programs(void)
{
	const char *args[ARGS_MAX] = { NULL };
	FILE *f = fopen("/programs", "r");

	while (step_read(f, args)) {
		bool ok = !await(spawn(args, TOOL_OUT, TOOL_ERR, 0)) &&
			  file_has(TOOL_ERR, "nothing lost");

		tap(ok, "programs", "%s", getenv("PGAPPNAME"));
		if (!ok)
			show(TOOL_ERR);
	}
	if (f)
		fclose(f);
}

/* Run the clients of the file @path one after the other, if it exists. Return their number. */
static int steps_run(const char *path)
{
	const char *args[ARGS_MAX] = { NULL };
	FILE *f = fopen(path, "r");
	int count = 0;

	while (step_read(f, args)) {
		double start = now();
		int status = await(spawn(args, "/client.out", "/client.err", SERVER_UID));

		printf("# %s: %.1f s, status %d\n", getenv("PGAPPNAME"), now() - start, status);
		count++;
	}
	if (f)
		fclose(f);
	return count;
}

/* Start the server that is the only step of /server, after those of /before. Return its process. */
static pid_t server_start(void)
{
	const char *args[ARGS_MAX] = { NULL };
	FILE *f = fopen("/server", "r");

	steps_run("/before");
	if (!step_read(f, args))
		return -1;
	fclose(f);
	return spawn(args, "/server.out", "/server.log", SERVER_UID);
}

/* Send a file to the host by the second serial port, after a line with its name and size. */
static void data_send(const char *path)
{
	struct termios raw;
	struct stat st;
	char buf[65536];
	ssize_t n;
	int from = open(path, O_RDONLY), to = open(DATA_PORT, O_WRONLY | O_NOCTTY);

	if (from < 0 || to < 0 || fstat(from, &st) || tcgetattr(to, &raw)) {
		tap(false, "postgres", "%s to %s: %s", path, DATA_PORT, strerror(errno));
		return;
	}
	cfmakeraw(&raw);
	tcsetattr(to, TCSANOW, &raw);
	dprintf(to, "%s %lld\n", path, (long long)st.st_size);
	while ((n = read(from, buf, sizeof(buf))) > 0)
		for (ssize_t done = 0, put; done < n &&
		     (put = write(to, buf + done, n - done)) > 0;)
			done += put;
	tcdrain(to);
	close(from);
	close(to);
}

static void check_postgres(void)
{
	static const char *const tool_args[] = { TOOL, "postgres", "-m", "0", "--json", "--why",
						 "--use", NULL };
	static const char *const transactions[] = { TOOL, "transactions", "postgres", NULL };
	pid_t postmaster, tool;
	double start;

	file_write(JIT, "1");
	setenv("PGHOST", "/tmp", 1);
	setenv("PGUSER", "postgres", 1);
	setenv("PGDATABASE", "postgres", 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	postmaster = server_start();
	start = now();
	while (!file_has("/server.log", "ready to accept connections") && !ended(postmaster) &&
	       now() - start < ATTACH_S)
		pause_ms(20);
	tap(!ended(postmaster), "postgres", "starts");
	if (ended(postmaster)) {
		printf("# exit status %d\n", await(postmaster));
		show("/client.err");
		show("/server.log");
		return;
	}
	steps_run("/prepare");
	tool = tool_start(transactions, "transactions");
	if (tool)
		tool_stop(tool, "transactions");
	tool = tool_start(tool_args, "postgres");
	if (tool) {
		printf("# %d clients ran\n", steps_run("/steps"));
		tool_stop(tool, "postgres");
	}
	kill(postmaster, SIGINT);
	tap(await(postmaster) == 0, "postgres", "ends");
	start = now();
	data_send("/server.log");
	data_send(TOOL_OUT);
	data_send(TOOL_ERR);
	printf("# sent in %.1f s\n", now() - start);
}

int main(void)
{
	const char *guest = getenv("GUEST");
	struct utsname uts;

	setvbuf(stdout, NULL, _IOLBF, 0);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	mount("tmp", "/tmp", "tmpfs", 0, NULL);
	uname(&uts);
	printf("\n# Linux %s, up after %.1f s\n", uts.release, now());
	signal(SIGPIPE, SIG_IGN);
	if (guest && !strcmp(guest, "lockdown"))
		check_lockdown();
	else if (!access("/programs", F_OK))
		check_programs();
	else if (access("/steps", F_OK))
		check_victim();
	else
		check_postgres();
	printf("# end after %.1f s\n1..%d\n", now(), tests);
	fflush(stdout);
	tcdrain(1);
	sync();
	reboot(RB_POWER_OFF);
	return 0;
}
