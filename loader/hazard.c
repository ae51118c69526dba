// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/hazard.h"

#include <elf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/arch.h"
#include "host/clock.h"
#include "loader/attach.h"
#include "loader/sys.h"
#include "usdt/site.h"

#define AGAIN_NS	1000000000u	/* after a failure: a file has thousands of sites */

#if HOST_UPROBE_CALLS

/* Headers may be older than the kernel. */
#ifndef __NR_uretprobe
#define __NR_uretprobe	335
#endif
#ifndef __NR_uprobe
#define __NR_uprobe	336
#endif

#define ROUNDS		16	/* executions of a site; the kernel replaces it at the first one */

/* The exit status of a child. */
enum { UNHARMED, HARMED, UNKNOWN };

/*
 * hazard_nop() stores @value below the stack pointer, executes a 5-byte nop and returns what has
 * changed there: 0 is nothing. hazard_return() does nothing. In assembly, because a compiler may
 * have variables of its own below the stack pointer. The nop must not cross a page.
 */
#define CODE							\
	".pushsection .text.hazard, \"ax\", @progbits\n"	\
	".balign 64\n"						\
	".type hazard_nop, @function\n"				\
	"hazard_nop:\n"						\
	"	mov %rdi, -8(%rsp)\n"					\
	"	mov %rdi, -16(%rsp)\n"				\
	"	mov %rdi, -24(%rsp)\n"				\
	"	mov %rdi, -32(%rsp)\n"				\
	".globl hazard_nop_site\n"				\
	".hidden hazard_nop_site\n"				\
	"hazard_nop_site:\n"					\
	"	.byte 0x0f, 0x1f, 0x44, 0, 0\n"			\
	"	mov -8(%rsp), %rax\n"					\
	"	xor %rdi, %rax\n"					\
	"	mov -16(%rsp), %rdx\n"				\
	"	xor %rdi, %rdx\n"					\
	"	or %rdx, %rax\n"					\
	"	mov -24(%rsp), %rdx\n"				\
	"	xor %rdi, %rdx\n"					\
	"	or %rdx, %rax\n"					\
	"	mov -32(%rsp), %rdx\n"				\
	"	xor %rdi, %rdx\n"					\
	"	or %rdx, %rax\n"					\
	"	ret\n"						\
	".size hazard_nop, . - hazard_nop\n"			\
	".globl hazard_nop\n"					\
	".hidden hazard_nop\n"					\
	".type hazard_return, @function\n"			\
	".globl hazard_return\n"				\
	".hidden hazard_return\n"				\
	"hazard_return:\n"					\
	"	nop\n"						\
	"	ret\n"						\
	".size hazard_return, . - hazard_return\n"		\
	".popsection\n"

__asm__(CODE);

extern const char hazard_nop_site[];
unsigned long hazard_nop(unsigned long value);
void hazard_return(void);

/* Return the offset in this program's file of the code at @address, or -1. */
static unsigned long hazard_offset(uintptr_t address)
{
	const Elf64_Phdr *headers = (const Elf64_Phdr *)getauxval(AT_PHDR);
	unsigned long n = headers ? getauxval(AT_PHNUM) : 0;
	uintptr_t base = 0;

	for (unsigned long i = 0; i < n; i++)
		if (headers[i].p_type == PT_PHDR)
			base = (uintptr_t)headers - headers[i].p_vaddr;
	for (unsigned long i = 0; i < n; i++)
		if (headers[i].p_type == PT_LOAD &&
		    address - base - headers[i].p_vaddr < headers[i].p_filesz)
			return address - base - headers[i].p_vaddr + headers[i].p_offset;
	return (unsigned long)-1;
}

/*
 * Attach a program that does nothing to the code at @address of this program's file. Return the
 * link or -errno. This process attaches itself, not its child, see loader/attacher.h: what a
 * SIGKILL might leave behind would be in processes of this program, which do not execute the code.
 */
static int hazard_attach(struct features *features, uintptr_t address, bool on_return)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	const unsigned long offset = hazard_offset(address), none = 0;
	const uint64_t cookie = 0;
	const struct uprobe_sites sites = {
		.path = "/proc/self/exe", .offsets = &offset, .ref_ctr_offsets = &none,
		.cookies = &cookie, .count = 1, .on_return = on_return,
	};
	enum attach_method method = attach_choose(features);
	int link = -1, err = feature_allowed(features), prog;

	if (err)
		return err;
	prog = sys_prog_load(&(struct prog_def){
		.name = "hazard", .type = BPF_PROG_TYPE_KPROBE, .attach_type = attach_type(method),
		.insns = insns, .count = sizeof(insns) / sizeof(insns[0]),
	}, NULL, 0);
	if (prog < 0)
		return prog;
	err = attach_uprobes(features, method, prog, &sites, &link);
	close(prog);
	return err < 0 ? err : link;
}

/* End a child that was harmed, without the kernel's message and core dump for a fatal signal. */
static void child_fault(int number)
{
	(void)number;
	_exit(HARMED);
}

static void child_signals(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGSYS };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		signal(faults[i], child_fault);
		sigaddset(&set, faults[i]);
	}
	/* All others stay blocked as in the parent. A blocked fault would kill. */
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/*
 * Have a child call @body, which returns an exit status. Return that, or -errno if there is no
 * child. It sends no SIGCHLD at its end: a parent that ignores that has no status to wait for. It
 * has copies of this process's descriptors for as long as it runs, some microseconds.
 */
static int child_run(int (*body)(void))
{
	pid_t child = (pid_t)syscall(SYS_clone, 0, NULL, NULL, NULL, NULL), ended;
	int status = 0;

	if (child < 0)
		return -errno;
	if (!child) {
		child_signals();
		/* Not exit_group(2), which the strict mode of seccomp forbids. */
		syscall(SYS_exit, body());
	}
	do
		ended = waitpid(child, &status, __WALL);
	while (ended < 0 && errno == EINTR);
	if (ended < 0)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : HARMED;
}

/* Return whether @status of a child says that it was unharmed, or -errno if it does not say. */
static int child_unharmed(int status)
{
	return status == UNKNOWN ? -EAGAIN : status < 0 ? status : status == UNHARMED;
}

static int nops_execute(void)
{
	unsigned long changed = 0;

	for (unsigned long i = 1; i <= ROUNDS; i++)
		changed |= hazard_nop(i * 0x0101010101010101);
	return changed ? HARMED : UNHARMED;
}

/* Execute the nop, and again in a process that is forked after that. */
static int nops_body(void)
{
	int status = nops_execute();

	if (status == UNHARMED)
		status = child_run(nops_execute);
	return status < 0 ? UNKNOWN : status;
}

/* Return whether a filter restricts this process: system calls that are unknown may kill it. */
static bool hazard_filtered(void)
{
	return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) != 0;
}

void hazard_exclude(struct features *features)
{
	features->no_uprobe_call = !hazard_filtered() && syscall(__NR_uprobe) < 0 &&
				   errno == ENOSYS;
}

static int hazard_try_nops(struct features *features)
{
	int link, safe;

	if (!features->no_uprobe_call)
		hazard_exclude(features);
	if (features->no_uprobe_call)
		return true;
	link = hazard_attach(features, (uintptr_t)hazard_nop_site, false);
	if (link < 0)
		return link;
	safe = child_unharmed(child_run(nops_body));
	close(link);
	return safe;
}

/* The kernel lacks uretprobe(2), which outside of its code raises SIGILL. */
static int returns_lack_call(void)
{
	return syscall(__NR_uretprobe) < 0 && errno == ENOSYS ? UNHARMED : HARMED;
}

/* Return from the function under a filter that permits all but uretprobe(2). */
static int returns_under_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_uretprobe, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return UNKNOWN;
	hazard_return();
	return UNHARMED;
}

/*
 * Return from the function in strict mode, which permits read, write, exit and sigreturn. A process
 * that has a filter cannot enter it; then what the filter showed decides, as one change of the
 * kernel passes the call through both.
 */
static int returns_in_strict_mode(void)
{
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) && errno != EINVAL)
		return UNKNOWN;
	hazard_return();
	return UNHARMED;
}

static int hazard_try_returns(struct features *features)
{
	int link, safe;

	if (!hazard_filtered() && child_run(returns_lack_call) == UNHARMED)
		return true;
	link = hazard_attach(features, (uintptr_t)hazard_return, true);
	if (link < 0)
		return link;
	/* The second one is killed, which the kernel logs, so not where the first one answers. */
	safe = child_unharmed(child_run(returns_under_filter));
	if (safe > 0)
		safe = child_unharmed(child_run(returns_in_strict_mode));
	close(link);
	return safe;
}

#else	/* The kernel only uses breakpoints there. */

void hazard_exclude(struct features *features)
{
	features->no_uprobe_call = true;
}

static int hazard_try_nops(struct features *features)
{
	(void)features;
	return true;
}

static int hazard_try_returns(struct features *features)
{
	(void)features;
	return true;
}

#endif

int hazard_safe(struct features *features, enum feature feature)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	int safe;

	if (features->row[feature].probed)
		return features->row[feature].has;
	if (now_ns < features->again_ns)
		return features->unknown;
	safe = feature == FEATURE_SAFE_NOPS ? hazard_try_nops(features) :
					      hazard_try_returns(features);
	features->row[feature].has = safe > 0;
	features->row[feature].probed = safe >= 0;
	if (safe < 0) {
		features->unknown = safe;
		features->again_ns = now_ns + AGAIN_NS;
	}
	return safe;
}

const char *hazard_refusal(struct features *features, const struct elf *elf, uint64_t offset)
{
	int safe;

	if (!features)
		return NULL;
	if (site_is_refused(elf, offset))
		return "the kernel cannot probe the instruction at its site";
	if (!site_is_call_nop(elf, offset))
		return NULL;
	safe = hazard_safe(features, FEATURE_SAFE_NOPS);
	if (safe < 0)
		return "the effect of a probe on its 5-byte nop cannot be found out";
	return safe ? NULL : "on this kernel a probe on its 5-byte nop may overwrite data and "
			     "crash forked processes";
}

bool hazard_forbids_returns(struct features *features, int fd, struct filtered *found)
{
	*found = (struct filtered){ .count = 0 };
	if (features && hazard_safe(features, FEATURE_SAFE_RETURNS) <= 0)
		filtered_find(fd, found);
	return found->count > 0;
}
