// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/arch.h"

#define CAPS_MAX	64
#define USER_FIRST	0x80000000u
#define USER_MASK	0x3fffffffu	/* without (uid_t)-1 and -2, which have a meaning */
#define BIT(cap)	(1ULL << (cap))

/* Headers may be older than the kernel. */
#ifndef __NR_renameat	/* riscv64 */
#define __NR_renameat	__NR_renameat2
#endif
#ifndef __NR_close_range
#define __NR_close_range	436
#endif
#ifndef __NR_faccessat2
#define __NR_faccessat2	439
#endif

/* Flags for writing to a file that exists; O_TMPFILE requires one of them. */
#define WRITES		(O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)
/* Those of SANDBOX_REPLACE: no file that exists is opened. The C library adds O_LARGEFILE. */
#define CREATES		(O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_LARGEFILE)

/* A permitted system call: with any arguments, or depending on the low half of one. */
struct call {
	uint16_t number;
	uint16_t needs;			/* permitted for any of these; 0: always */
	enum { ANY, EQUAL, WITHOUT, NONE } test;
	uint8_t arg;			/* from 0 */
	uint32_t value;			/* EQUAL: this; WITHOUT: none of these bits; NONE: a NULL */
};

/*
 * The system calls of the event loop, with musl's variants, of malloc and of signal delivery; the
 * most frequent ones first. Not permitted are, among others: execve, fork, socket, ptrace, kill,
 * mount, process_vm_writev, setuid, chmod, init_module, io_uring, BPF_OBJ_PIN, TIOCSTI, and all x32
 * numbers; of clone, all flags but those of loader/attacher.c. With SANDBOX_HELPERS, what
 * host/child.h does is, without flags of clone, and kill of the processes of its own user.
 */
static const struct call calls[] = {
	{ __NR_bpf, 0, EQUAL, 0, BPF_MAP_LOOKUP_ELEM },
	{ __NR_bpf, 0, EQUAL, 0, BPF_MAP_GET_NEXT_KEY },
	{ __NR_bpf, 0, EQUAL, 0, BPF_MAP_UPDATE_ELEM },
	{ __NR_bpf, 0, EQUAL, 0, BPF_MAP_DELETE_ELEM },
	{ __NR_bpf, SANDBOX_ATTACH, EQUAL, 0, BPF_PROG_LOAD },
	{ __NR_bpf, SANDBOX_LINKS, EQUAL, 0, BPF_LINK_CREATE },
	{ __NR_bpf, SANDBOX_TRACEPOINTS, EQUAL, 0, BPF_RAW_TRACEPOINT_OPEN },
	{ .number = __NR_write }, { .number = __NR_writev }, { .number = __NR_read },
	{ .number = __NR_ppoll }, { .number = __NR_close }, { .number = __NR_clock_gettime },
	{ .number = __NR_membarrier }, { .number = __NR_munmap }, { .number = __NR_brk },
	{ .number = __NR_madvise }, { .number = __NR_mremap }, { .number = __NR_futex },
	{ __NR_mmap, 0, WITHOUT, 2, PROT_EXEC }, { __NR_mprotect, 0, WITHOUT, 2, PROT_EXEC },
	{ __NR_ioctl, 0, EQUAL, 1, TIOCGWINSZ },
	{ __NR_ioctl, SANDBOX_TERMINAL, EQUAL, 1, TCSETS },
	{ .number = __NR_fstat }, { .number = __NR_lseek }, { .number = __NR_nanosleep },
	{ .number = __NR_clock_nanosleep }, { .number = __NR_gettimeofday },
	{ .number = __NR_rt_sigreturn }, { .number = __NR_rt_sigaction },
	{ .number = __NR_rt_sigprocmask }, { .number = __NR_sigaltstack },
	{ .number = __NR_restart_syscall }, { .number = __NR_sched_yield },
	{ .number = __NR_getpid }, { .number = __NR_gettid }, { .number = __NR_geteuid },
	{ .number = __NR_uname }, { .number = __NR_getrandom },
	{ .number = __NR_exit }, { .number = __NR_exit_group },
	{ __NR_openat, SANDBOX_READ, WITHOUT, 2, WRITES },
	{ __NR_openat, SANDBOX_REPLACE, EQUAL, 2, CREATES },
	{ __NR_renameat, SANDBOX_REPLACE, ANY, 0, 0 },
	{ __NR_pread64, SANDBOX_READ, ANY, 0, 0 },
	{ __NR_newfstatat, SANDBOX_READ, ANY, 0, 0 },
	{ __NR_statx, SANDBOX_READ, ANY, 0, 0 },
	{ __NR_statfs, SANDBOX_READ, ANY, 0, 0 }, { __NR_fstatfs, SANDBOX_READ, ANY, 0, 0 },
	{ __NR_readlinkat, SANDBOX_READ, ANY, 0, 0 },
	{ __NR_faccessat, SANDBOX_READ, ANY, 0, 0 },
	{ __NR_faccessat2, SANDBOX_READ, ANY, 0, 0 },
	{ __NR_getdents64, SANDBOX_READ, ANY, 0, 0 },
	{ __NR_fcntl, SANDBOX_READ, EQUAL, 1, F_SETFD },
	/* A message reports a limit; setting one is not permitted. */
	{ __NR_prlimit64, SANDBOX_READ, NONE, 2, 0 },
	/* The socket to the other process is the only one. */
	{ __NR_sendmsg, SANDBOX_ATTACH | SANDBOX_LINKS | SANDBOX_EVENTS, ANY, 0, 0 },
	{ .number = __NR_recvmsg }, { .number = __NR_wait4 },
	{ __NR_clone, SANDBOX_CLOSERS, EQUAL, 0, CLONE_FILES | SIGCHLD },
	{ __NR_clone, SANDBOX_HELPERS, EQUAL, 0, SIGCHLD },
	{ __NR_socketpair, SANDBOX_HELPERS, ANY, 0, 0 },
	{ __NR_setsid, SANDBOX_HELPERS, ANY, 0, 0 },
	{ __NR_close_range, SANDBOX_HELPERS, ANY, 0, 0 }, { __NR_kill, SANDBOX_HELPERS, ANY, 0, 0 },
	{ __NR_setpriority, SANDBOX_HELPERS, ANY, 0, 0 },
	{ __NR_getpriority, SANDBOX_HELPERS, ANY, 0, 0 },
	{ __NR_sched_setattr, SANDBOX_HELPERS, ANY, 0, 0 },
	{ __NR_prctl, SANDBOX_HELPERS, EQUAL, 0, PR_SET_NAME },
	{ __NR_prctl, SANDBOX_HELPERS | SANDBOX_NO_BPF, EQUAL, 0, PR_SET_PDEATHSIG },
	{ __NR_perf_event_open, SANDBOX_EVENTS, ANY, 0, 0 },
	{ __NR_ioctl, SANDBOX_EVENTS, EQUAL, 1, PERF_EVENT_IOC_SET_BPF },
	{ __NR_ioctl, SANDBOX_EVENTS, EQUAL, 1, PERF_EVENT_IOC_ENABLE },
	{ __NR_unlinkat, SANDBOX_REPLACE, ANY, 0, 0 },
#if HOST_OLD_SYSCALLS	/* Older variants, which musl prefers there. */
	{ .number = __NR_poll }, { .number = __NR_time },
	{ __NR_open, SANDBOX_READ, WITHOUT, 1, WRITES },
	{ __NR_stat, SANDBOX_READ, ANY, 0, 0 },
	{ __NR_lstat, SANDBOX_READ, ANY, 0, 0 },
	{ __NR_access, SANDBOX_READ, ANY, 0, 0 },
	{ __NR_readlink, SANDBOX_READ, ANY, 0, 0 },
	{ __NR_getrlimit, SANDBOX_READ, ANY, 0, 0 },
#endif
};

#define CALLS		(sizeof(calls) / sizeof(calls[0]))
#define LOAD(field) \
	((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, \
				      offsetof(struct seccomp_data, field)))
#define JUMP(op, value, yes, no) \
	((struct sock_filter)BPF_JUMP(BPF_JMP | (op) | BPF_K, (value), (yes), (no)))
#define RETURN(value)	((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, (value)))

/* Add @call to the filter, whose accumulator has the number before and after it. */
static struct sock_filter *sandbox_call(struct sock_filter *at, const struct call *call)
{
	*at++ = JUMP(BPF_JEQ, call->number, 0,
		     call->test == ANY ? 1 : call->test == NONE ? 6 : 4);
	if (call->test == NONE) {
		*at = LOAD(args);
		at++->k += call->arg * (uint32_t)sizeof(uint64_t) + (uint32_t)sizeof(uint32_t);
		*at++ = JUMP(BPF_JEQ, 0, 0, 3);
	}
	if (call->test != ANY) {
		/* Both architectures are little-endian: the low half comes first. */
		*at = LOAD(args);
		at++->k += call->arg * (uint32_t)sizeof(uint64_t);
		*at++ = JUMP(call->test == WITHOUT ? BPF_JSET : BPF_JEQ, call->value,
			     call->test == WITHOUT, call->test != WITHOUT);
	}
	*at++ = RETURN(SECCOMP_RET_ALLOW);
	if (call->test != ANY)
		*at++ = LOAD(nr);
	return at;
}

/*
 * Install the filter. Calls that are not permitted fail with EPERM instead of killing the process:
 * an unforeseen call of the C library disables one function, not the tool, and an attacker gains
 * nothing. Return 0 or -errno.
 */
static int sandbox_filter(unsigned int needs)
{
	struct sock_filter code[5 * CALLS + 7], *at = code;
	struct sock_fprog program = { .filter = code };

	*at++ = LOAD(arch);
	*at++ = JUMP(BPF_JEQ, HOST_AUDIT_ARCH, 1, 0);
	*at++ = RETURN(SECCOMP_RET_ERRNO | EPERM);
	*at++ = LOAD(nr);
	for (size_t i = 0; i < CALLS; i++)
		if (!calls[i].needs || calls[i].needs & needs)
			at = sandbox_call(at, &calls[i]);
	*at++ = RETURN(SECCOMP_RET_ERRNO | EPERM);
	program.len = (unsigned short)(at - code);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? -errno : 0;
}

int sandbox_filters(void)
{
	if (!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) || errno == EFAULT)
		return 0;
	return -errno;
}

/*
 * Return the capabilities to keep, a subset of @permitted. CAP_SYS_ADMIN is kept only if a
 * capability that replaces a part of it is missing, or to open a perf event for a uprobe: kernels
 * with the fix for CVE-2025-38466 require it for that. CAP_DAC_OVERRIDE is kept only to replace
 * files, or if CAP_DAC_READ_SEARCH is missing, as in containers.
 */
static uint64_t sandbox_keep(unsigned int needs, uint64_t permitted)
{
	uint64_t keep = needs & SANDBOX_NO_BPF ? 0 : BIT(CAP_BPF), parts;

	if (needs & SANDBOX_READ)
		keep |= BIT(CAP_SYS_PTRACE) | BIT(CAP_DAC_READ_SEARCH) |
			BIT(CAP_CHECKPOINT_RESTORE);
	if (needs & (SANDBOX_ATTACH | SANDBOX_LINKS | SANDBOX_TRACEPOINTS))
		keep |= BIT(CAP_PERFMON);
	parts = keep & (BIT(CAP_BPF) | BIT(CAP_PERFMON) | BIT(CAP_CHECKPOINT_RESTORE));
	if (parts & ~permitted || needs & SANDBOX_EVENTS)
		keep |= BIT(CAP_SYS_ADMIN);
	if (needs & SANDBOX_REPLACE ||
	    keep & ~permitted & BIT(CAP_DAC_READ_SEARCH))
		keep |= BIT(CAP_DAC_OVERRIDE);
	return keep & permitted;
}

/* Return the permitted capabilities; the kernel splits the set into two words. */
static uint64_t caps_get(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	syscall(SYS_capget, &head, data);
	return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

static void caps_set(uint64_t caps)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ .effective = (uint32_t)caps, .permitted = (uint32_t)caps },
		{ .effective = (uint32_t)(caps >> 32), .permitted = (uint32_t)(caps >> 32) },
	};

	syscall(SYS_capset, &head, data);
}

/*
 * Change to a user that no other process has, and keep the capabilities; caps_set() makes them
 * effective again. Processes of the same user could end this one; of user 65534 there may be some,
 * since it is also the one of services without a user and of ids that a namespace does not map. Ids
 * from 2^31 on are assigned by no distribution, nor to user namespaces. Return the user; or 0 if it
 * is still root, whom no one else can be either, as in a namespace that does not map the id.
 */
static uid_t sandbox_user(void)
{
	uint32_t id;

	if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != sizeof(id))
		id = (uint32_t)getpid();
	id = USER_FIRST | (id & USER_MASK);
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0))
		return 0;
	syscall(SYS_setgroups, 0, NULL);
	syscall(SYS_setresgid, id, id, id);
	return syscall(SYS_setresuid, id, id, id) ? 0 : id;
}

void sandbox_enter(unsigned int needs, struct sandbox *sandbox)
{
	uint64_t keep = sandbox_keep(needs, caps_get());

	/* The bounding set; the first capability that does not exist ends it. */
	for (int cap = 0; cap < CAPS_MAX && !prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); cap++)
		;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	*sandbox = (struct sandbox){ .filter = false };
	/* Writing to root's files requires root. */
	if (!(needs & ~(unsigned int)(SANDBOX_READ | SANDBOX_CLOSERS | SANDBOX_TERMINAL |
				      SANDBOX_HELPERS | SANDBOX_NO_BPF)) &&
	    !geteuid())
		sandbox->user = sandbox_user();
	/* The change of the user has set it to fs.suid_dumpable. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	caps_set(keep);
	sandbox->capabilities = caps_get();
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	sandbox->filter_error = sandbox_filter(needs);
	sandbox->filter = !sandbox->filter_error;
}
