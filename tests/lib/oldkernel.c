// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * oldkernel RELEASE LOG COMMAND...: run the command as if the kernel were of this release, 5.4 or
 * 5.8. bpf(2) and perf_event_open(2) fail as they did there, programs that its verifier refuses
 * are refused (tests/unit/verifier.h), and newer system calls do not exist. What is refused is
 * written to LOG, a line each.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/verifier.h"

#define ATTR_MAX	256
#define INSNS_MAX	16384
#define LINK_CREATE	16	/* bytes that BPF_LINK_CREATE knows, 5.7 to 5.12 */
#define PERF_ATTR_SIZE	112	/* PERF_ATTR_SIZE_VER5, 4.1 to 5.4 */

/* The extent of bpf(2) in a release: the largest number of each kind, bits, and sizes in bytes. */
static const struct old_kernel {
	uint32_t release, commands, map_types, prog_types, map_flags;
	uint32_t attr_size;		/* sizeof(union bpf_attr) */
	uint32_t map_create, prog_load;	/* of what these commands know of it */
	uint32_t syscall, missing;	/* the first unknown number, and one below it */
} old_kernels[] = {
	{ VERIFIER_RELEASE(5, 4), 23, BPF_MAP_TYPE_DEVMAP_HASH, BPF_PROG_TYPE_CGROUP_SOCKOPT, 0x3ff,
	  112, 60, 108, 436, 0 },
	{ VERIFIER_RELEASE(5, 8), 33, BPF_MAP_TYPE_RINGBUF, BPF_PROG_TYPE_LSM, 0x7ff,
	  120, 64, 116, 440, 436 },
};

static const struct old_kernel *old;
static FILE *log_file;

/* Log a refusal. Return @err. */
__attribute__((format(printf, 2, 3)))
static int refuse(int err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(log_file, format, args);
	va_end(args);
	fputc('\n', log_file);
	fflush(log_file);
	return err;
}

/* Read memory of process @pid. Return whether all of it was read. */
static bool memory_read(uint32_t pid, uint64_t address, void *to, size_t size)
{
	char path[32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : pread(fd, to, size, (off_t)address);
	close(fd);
	return n == (ssize_t)size;
}

/* Return whether there is a byte that is not 0 from @from to @to. */
static bool any_set(const unsigned char *attr, uint32_t from, uint32_t to)
{
	for (; from < to; from++)
		if (attr[from])
			return true;
	return false;
}

/* Return 0, or the error of an attribute of @size bytes of which the command knows @known. */
static int check_tail(const unsigned char *attr, uint32_t size, uint32_t known, const char *what)
{
	if (any_set(attr, old->attr_size, size))
		return refuse(-E2BIG, "%s: bytes after the attribute", what);
	if (any_set(attr, known, size < old->attr_size ? size : old->attr_size))
		return refuse(-EINVAL, "%s: unknown members", what);
	return 0;
}

static int check_map(const union bpf_attr *attr)
{
	if (attr->map_type > old->map_types)
		return refuse(-EINVAL, "map %s: type %u", attr->map_name, attr->map_type);
	if (attr->map_flags & ~old->map_flags)
		return refuse(-EINVAL, "map %s: flags %#x", attr->map_name, attr->map_flags);
	return 0;
}

static int check_program(uint32_t pid, const union bpf_attr *attr)
{
	static struct bpf_insn insns[INSNS_MAX];
	const char *why, *name = attr->prog_name;
	uint32_t at;

	if (attr->prog_type > old->prog_types)
		return refuse(-EINVAL, "program %s: type %u", name, attr->prog_type);
	if (attr->insn_cnt > INSNS_MAX ||
	    !memory_read(pid, attr->insns, insns, attr->insn_cnt * sizeof(*insns)))
		return refuse(-EFAULT, "program %s: %u instructions", name, attr->insn_cnt);
	why = verifier_refuses(insns, attr->insn_cnt, old->release, &at);
	return why ? refuse(-EINVAL, "program %s: %s at %u of %u", name, why, at,
			    attr->insn_cnt) : 0;
}

/* Return 0 or the error of bpf(@cmd, @address, @size). */
static int check_bpf(uint32_t pid, uint64_t cmd, uint64_t address, uint64_t size)
{
	union {
		union bpf_attr attr;
		unsigned char bytes[ATTR_MAX];
	} u;
	int err;

	memset(&u, 0, sizeof(u));
	if (size > ATTR_MAX || !memory_read(pid, address, &u, size))
		return refuse(-EFAULT, "command %llu: %llu bytes", (unsigned long long)cmd,
			      (unsigned long long)size);
	switch (cmd) {
	case BPF_MAP_CREATE:
		err = check_tail(u.bytes, (uint32_t)size, old->map_create, u.attr.map_name);
		return err ? err : check_map(&u.attr);
	case BPF_PROG_LOAD:
		err = check_tail(u.bytes, (uint32_t)size, old->prog_load, u.attr.prog_name);
		return err ? err : check_program(pid, &u.attr);
	default:
		return check_tail(u.bytes, (uint32_t)size, LINK_CREATE, "link");
	}
}

static int check_perf(uint32_t pid, uint64_t address)
{
	unsigned char attr[ATTR_MAX] = { 0 };
	uint32_t size;

	if (!memory_read(pid, address + offsetof(struct perf_event_attr, size), &size, 4) ||
	    size > ATTR_MAX || !memory_read(pid, address, attr, size))
		return refuse(-EFAULT, "perf_event_open: %u bytes", size);
	if (any_set(attr, PERF_ATTR_SIZE, size))
		return refuse(-E2BIG, "perf_event_open: bytes after the attribute");
	return 0;
}

/* Install the filter. Return the descriptor of the notifications. */
static int filter_install(void)
{
	const uint32_t nr = offsetof(struct seccomp_data, nr);
	const uint32_t first = offsetof(struct seccomp_data, args[0]);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, nr),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_perf_event_open, 8, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_bpf, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, old->syscall, 7, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, old->missing ? old->missing : UINT32_MAX, 6, 7),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, first),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, old->commands, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BPF_MAP_CREATE, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BPF_PROG_LOAD, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BPF_LINK_CREATE, 0, 2),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return (int)syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* Answer one notification. */
static void answer(int listener)
{
	struct seccomp_notif request;
	struct seccomp_notif_resp response = { 0 };
	const struct seccomp_data *call = &request.data;

	memset(&request, 0, sizeof(request));
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request))
		return;
	response.id = request.id;
	response.error = call->nr == __NR_bpf ?
		check_bpf(request.pid, call->args[0], call->args[1], call->args[2]) :
		check_perf(request.pid, call->args[0]);
	response.flags = response.error ? 0 : SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

static void child_run(int socket, char *argv[])
{
	int listener = filter_install();
	char go;

	if (listener < 0 || write(socket, &listener, sizeof(listener)) != sizeof(listener) ||
	    read(socket, &go, 1) != 1)
		_exit(126);
	close(socket);
	execv(argv[0], argv);
	_exit(127);
}

/* Return the descriptor @fd of process @pid. */
static int fd_of(pid_t pid, int fd)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0);
	int copy = (int)syscall(SYS_pidfd_getfd, process, fd, 0);

	close(process);
	return copy;
}

int main(int argc, char *argv[])
{
	unsigned int major = 0, minor = 0;
	struct pollfd ready = { .events = POLLIN };
	int ends[2], status, number;
	pid_t pid;

	if (argc > 3)
		sscanf(argv[1], "%u.%u", &major, &minor);
	for (size_t i = 0; i < sizeof(old_kernels) / sizeof(old_kernels[0]); i++)
		if (old_kernels[i].release == VERIFIER_RELEASE(major, minor))
			old = &old_kernels[i];
	log_file = old ? fopen(argv[2], "ae") : NULL;
	if (!log_file || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return 125;
	pid = fork();
	if (!pid)
		child_run(ends[1], argv + 3);
	close(ends[1]);
	if (pid < 0 || read(ends[0], &number, sizeof(number)) != sizeof(number))
		return 125;
	ready.fd = fd_of(pid, number);
	if (ready.fd < 0 || write(ends[0], "", 1) != 1)
		return 125;
	/* Until no process has the filter. */
	while (poll(&ready, 1, -1) > 0 && !(ready.revents & POLLHUP))
		answer(ready.fd);
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
