// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* loader/sandbox.c in a child process: calls that it denies, and calls that it permits. */
#include "loader/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/check.h"

#define NEEDS_ALL	(SANDBOX_READ | SANDBOX_ATTACH | SANDBOX_EVENTS | SANDBOX_LINKS | \
			 SANDBOX_CLOSERS | SANDBOX_TERMINAL | SANDBOX_REPLACE)
#define CREATES		(O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_LARGEFILE)
/* These do not require the user root. */
#define NEEDS_USER	(SANDBOX_READ | SANDBOX_CLOSERS | SANDBOX_TERMINAL)

static volatile sig_atomic_t caught;

static void catch(int sig)
{
	caught = sig;
}

/* Run @body in a sandboxed child, and fail with the string that it returns unless that is NULL. */
static void sandbox_run(unsigned int needs, const char *(*body)(unsigned int needs))
{
	int fds[2], status = 0;
	struct sandbox result;
	char what[256] = "";
	const char *wrong;
	ssize_t n;
	pid_t pid;

	if (pipe(fds))
		return;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		/* A signal arrives in the sandbox. */
		signal(SIGALRM, catch);
		setitimer(ITIMER_REAL, &(struct itimerval){ .it_value = { .tv_usec = 1000 } },
			  NULL);
		sandbox_enter(needs, &result);
		wrong = result.filter_error == -EINVAL || result.filter_error == -ENOSYS ? "skip" :
			!result.filter ? "no filter" : body(needs);
		if (wrong && write(fds[1], wrong, strlen(wrong)) < 0)
			_exit(1);
		_exit(0);
	}
	close(fds[1]);
	n = read(fds[0], what, sizeof(what) - 1);
	close(fds[0]);
	waitpid(pid, &status, 0);
	if (n > 0 && !strcmp(what, "skip")) {
		SKIP("no seccomp filters here");
		return;
	}
	CHECK(n == 0 && WIFEXITED(status) && !WEXITSTATUS(status), "needs %u: %s, status %x", needs,
	      what, (unsigned int)status);
}

/* Run @body for every set of needs. */
static void sandbox_run_all(const char *(*body)(unsigned int needs))
{
	for (unsigned int needs = 0; needs <= NEEDS_ALL; needs++)
		sandbox_run(needs, body);
}

static const char *wrong_call;

/* Return whether call @number fails with EPERM; without the filter it fails otherwise, or not. */
static bool refused(const char *name, long number, long a, long b, long c)
{
	wrong_call = name;
	errno = 0;
	return syscall(number, a, b, c, 0, 0, 0) == -1 && errno == EPERM;
}

#ifdef __NR_renameat
#define RENAME_REFUSED	REFUSED(renameat2, -1, 0, 0)
#else			/* riscv64 has no other */
#define RENAME_REFUSED	true
#define __NR_renameat	__NR_renameat2
#endif

#define REFUSED(name, a, b, c) refused(#name, __NR_##name, (long)(a), (long)(b), (long)(c))

/* Without the filter none of these fails with EPERM: they are invalid, or permitted for all. */
static const char *never(unsigned int needs)
{
	char *const argv[] = { "true", NULL };

	(void)needs;
	if (REFUSED(execve, "/bin/true", argv, NULL) &&
	    REFUSED(execveat, AT_FDCWD, "/bin/true", argv) &&
	    REFUSED(clone, SIGCHLD, 0, 0) && REFUSED(clone3, 0, 0, 0) &&
	    REFUSED(socket, AF_UNIX, SOCK_STREAM, 0) && REFUSED(socket, AF_INET, SOCK_STREAM, 0) &&
	    REFUSED(socketpair, AF_UNIX, SOCK_STREAM, 0) && REFUSED(connect, -1, 0, 0) &&
	    REFUSED(ptrace, PTRACE_TRACEME, 0, 0) &&
	    REFUSED(kill, getpid(), 0, 0) && REFUSED(tgkill, getpid(), getpid(), 0) &&
	    REFUSED(process_vm_readv, 0, 0, 0) && REFUSED(process_vm_writev, 0, 0, 0) &&
	    REFUSED(mount, 0, 0, 0) && REFUSED(fsopen, 0, 0, 0) && REFUSED(unshare, 0, 0, 0) &&
	    REFUSED(setns, -1, 0, 0) && REFUSED(chroot, 0, 0, 0) && REFUSED(init_module, 0, 0, 0) &&
	    REFUSED(finit_module, -1, 0, 0) && REFUSED(setuid, 0, 0, 0) &&
	    REFUSED(setresuid, -1, -1, -1) && REFUSED(capset, 0, 0, 0) &&
	    REFUSED(fchmod, -1, 0, 0) && REFUSED(fchown, -1, 0, 0) &&
	    RENAME_REFUSED && REFUSED(linkat, -1, 0, 0) &&
	    REFUSED(mkdirat, -1, 0, 0) && REFUSED(io_uring_setup, 0, 0, 0) &&
	    REFUSED(userfaultfd, -1, 0, 0) && REFUSED(keyctl, -1, 0, 0) &&
	    REFUSED(memfd_create, 0, 0, 0) && REFUSED(open_by_handle_at, -1, 0, 0) &&
	    REFUSED(pidfd_open, 0, 0, 0) && REFUSED(prctl, PR_GET_DUMPABLE, 0, 0) &&
	    REFUSED(bpf, BPF_OBJ_PIN, 0, 0) && REFUSED(bpf, BPF_MAP_CREATE, 0, 0) &&
	    REFUSED(bpf, BPF_PROG_ATTACH, 0, 0) && REFUSED(ioctl, -1, TIOCSTI, 0) &&
	    REFUSED(ioctl, -1, TIOCSCTTY, 0) && REFUSED(fcntl, -1, F_SETOWN, 0) &&
	    REFUSED(mmap, 0, 0, PROT_READ | PROT_EXEC) && REFUSED(mprotect, 0, 0, PROT_EXEC))
		return NULL;
	return wrong_call;
}

static void refuses_what_is_never_needed(void)
{
	sandbox_run_all(never);
}

#ifdef __x86_64__
static const char *x32(unsigned int needs)
{
	(void)needs;
	return refused("x32 getpid", 0x40000000 | __NR_getpid, 0, 0, 0) &&
	       refused("x32 write", 0x40000000 | __NR_write, -1, 0, 0) &&
	       refused("x32 execve", 0x40000000 | 520, 0, 0, 0) ? NULL : wrong_call;
}

static long call_i386(long number)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(number), "b"(-1), "c"(0), "d"(0)
			 : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

/* i386 calls: 3 is read(2), 11 execve(2), 20 getpid(2). */
static const char *i386(unsigned int needs)
{
	(void)needs;
	return call_i386(20) == -EPERM && call_i386(3) == -EPERM && call_i386(11) == -EPERM ? NULL :
	       "a call by int 0x80";
}
#endif

static void refuses_other_numbers(void)
{
#ifdef __x86_64__
	int status;
	pid_t pid;

	sandbox_run_all(x32);
	/* A kernel without CONFIG_IA32_EMULATION kills the process. */
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(call_i386(20) != getpid());
	waitpid(pid, &status, 0);
	if (!status)
		sandbox_run_all(i386);
#else
	SKIP("x86-64 has them");
#endif
}

/* Return whether the filter permits the call, which then fails by itself, as @expected. */
static bool passes(const char *name, bool expected, long number, long a, long b, long c)
{
	wrong_call = name;
	errno = 0;
	return (syscall(number, a, b, c, 0, 0, 0) != -1 || errno != EPERM) == expected;
}

#define PASSES(expected, name, a, b, c) \
	passes(#name, (expected), __NR_##name, (long)(a), (long)(b), (long)(c))

static const char *depends(unsigned int needs)
{
	bool look = needs & SANDBOX_READ;
	bool attach = needs & (SANDBOX_ATTACH | SANDBOX_LINKS | SANDBOX_EVENTS);
	bool replace = needs & SANDBOX_REPLACE;

	if (PASSES(look, openat, -1, "x", O_RDONLY | O_CLOEXEC) &&
	    REFUSED(openat, -1, "x", O_WRONLY) && REFUSED(openat, -1, "x", O_RDWR) &&
	    REFUSED(openat, -1, "x", O_CREAT) && REFUSED(openat, -1, "x", O_TRUNC) &&
	    REFUSED(openat, -1, "x", O_TMPFILE | O_RDWR) &&
	    PASSES(replace, openat, -1, "x", CREATES) &&
	    REFUSED(openat, -1, "x", CREATES & ~O_EXCL) &&
	    PASSES(replace, renameat, -1, "x", -1) &&
	    REFUSED(pwrite64, -1, 0, 0) && REFUSED(pwritev2, -1, 0, 0) &&
	    REFUSED(fcntl, -1, F_GETFL, 0) && REFUSED(flock, -1, 0, 0) &&
	    PASSES(replace, unlinkat, -1, "", 0) &&
	    PASSES(look, pread64, -1, 0, 0) &&
	    PASSES(look, getdents64, -1, 0, 0) &&
	    PASSES(look, newfstatat, -1, "", 0) &&
	    PASSES(attach, sendmsg, -1, 0, 0) &&
	    PASSES(needs & SANDBOX_LINKS, bpf, BPF_LINK_CREATE, 0, 0) &&
	    PASSES(needs & SANDBOX_TERMINAL, ioctl, -1, TCSETS, 0) &&
	    PASSES(needs & SANDBOX_EVENTS, perf_event_open, 0, 0, 0) &&
	    PASSES(needs & SANDBOX_EVENTS, ioctl, -1, PERF_EVENT_IOC_ENABLE, 0))
		return NULL;
	return wrong_call;
}

#ifdef __x86_64__
static const char *depends_old(unsigned int needs)
{
	if (PASSES(needs & SANDBOX_READ, open, "/nonexistent/x", O_RDONLY, 0) &&
	    REFUSED(open, "/nonexistent/x", O_WRONLY, 0) &&
	    REFUSED(open, "/nonexistent/x", O_CREAT, 0) &&
	    REFUSED(unlink, "/nonexistent/x", 0, 0))
		return NULL;
	return wrong_call;
}
#endif

static void allows_what_is_asked_for(void)
{
	sandbox_run_all(depends);
#ifdef __x86_64__
	sandbox_run_all(depends_old);
#endif
}

/* Calls that the C library and the kernel make implicitly. */
static const char *always(unsigned int needs)
{
	struct timespec now, moment = { 0, 1000 };
	struct pollfd none = { .fd = -1 };
	char *memory = malloc(1 << 20), *mapped;

	(void)needs;
	/* The signal handler returns by rt_sigreturn(2). */
	while (!caught)
		poll(&none, 1, 1);
	if (!memory)
		return "malloc";
	memset(memory, 1, 1 << 20);
	memory = realloc(memory, 64 << 20);
	if (!memory)
		return "realloc";
	free(memory);
	mapped = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mapped == MAP_FAILED || mprotect(mapped, 4096, PROT_READ) || munmap(mapped, 8192))
		return "mmap";
	if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) || nanosleep(&moment, NULL))
		return "clock";
	errno = 0;
	ioctl(-1, TIOCGWINSZ, 0);
	return errno == EBADF ? NULL : "TIOCGWINSZ";
}

static void allows_what_is_always_needed(void)
{
	sandbox_run_all(always);
}

/* The capabilities that remain are those documented in loader/sandbox.c. */
static void capabilities_are_documented_ones(void)
{
	struct sandbox result;
	int fds[2], status;
	uid_t last = 0;
	pid_t pid;

	if (geteuid()) {
		SKIP("root only");
		return;
	}
	if (pipe(fds))
		return;
	fflush(stdout);
	for (unsigned int needs = 0; needs <= NEEDS_ALL; needs++) {
		pid = fork();
		if (!pid) {
			sandbox_enter(needs, &result);
			_exit(write(fds[1], &result, sizeof(result)) != sizeof(result) ||
			      geteuid() != result.user);
		}
		waitpid(pid, &status, 0);
		CHECK(!status && read(fds[0], &result, sizeof(result)) == sizeof(result),
		      "needs %u", needs);
		CHECK(!result.user == !!(needs & ~(unsigned int)NEEDS_USER), "needs %u", needs);
		/* Neither an assigned id, nor -1 or -2; and not the one before. */
		CHECK(!result.user || (result.user >> 30 == 2 && result.user != last), "%u",
		      result.user);
		last = result.user;
		CHECK(!(needs & SANDBOX_READ) == !(result.capabilities >> 19 & 1),
		      "%u: CAP_SYS_PTRACE", needs);
		CHECK(!(needs & SANDBOX_REPLACE) == !(result.capabilities >> 1 & 1) ||
		      !(result.capabilities >> 2 & 1), "%u: CAP_DAC_OVERRIDE", needs);
		/* CAP_SYS_MODULE, CAP_NET_RAW, CAP_SETUID, CAP_SETPCAP, CAP_KILL, CAP_CHOWN */
		CHECK(!(result.capabilities & (1 << 16 | 1 << 13 | 1 << 7 | 1 << 8 | 1 << 5 | 1)),
		      "needs %u: %llx", needs, (unsigned long long)result.capabilities);
	}
	close(fds[0]);
	close(fds[1]);
}

int main(void)
{
	RUN(refuses_what_is_never_needed);
	RUN(refuses_other_numbers);
	RUN(allows_what_is_asked_for);
	RUN(allows_what_is_always_needed);
	RUN(capabilities_are_documented_ones);
	return check_done();
}
