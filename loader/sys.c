// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/sys.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>


/*
 * union bpf_attr.link_create with uprobe_multi (89ae89f53d20, Linux 6.6); the headers at build time
 * may be older than the kernel.
 */
#define UPROBE_MULTI_RETURN	1	/* BPF_F_UPROBE_MULTI_RETURN */

#define LOAD_TRIES		10

struct link_create_uprobe_multi {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t count, multi_flags, pid, reserved;
};

_Static_assert(sizeof(struct link_create_uprobe_multi) == 64, "the layout of union bpf_attr");

static int sys_bpf(enum bpf_cmd cmd, const void *attr, size_t size)
{
	long ret = syscall(__NR_bpf, cmd, attr, size);

	return ret < 0 ? -errno : (int)ret;
}

static uint64_t sys_pointer(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void sys_name(char *to, const char *from)
{
	size_t n = strnlen(from, BPF_OBJ_NAME_LEN - 1);

	memcpy(to, from, n);
}

char *sys_read_text(int fd)
{
	size_t len = 0, room = 0;
	char *text = NULL, *more;
	ssize_t n;

	do {
		if (room - len < 2) {
			room = room ? room * 2 : 4096;
			more = realloc(text, room);
			if (!more)
				break;
			text = more;
		}
		n = read(fd, text + len, room - len - 1);
		if (n < 0)
			break;
		len += (size_t)n;
		text[len] = '\0';
		if (!n)
			return text;
	} while (true);
	free(text);
	return NULL;
}

int sys_map_create(const struct map_def *def)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = def->type;
	attr.key_size = def->key_size;
	attr.value_size = def->value_size;
	attr.max_entries = def->max_entries;
	attr.map_flags = def->flags;
	sys_name(attr.map_name, def->name);
	return sys_bpf(BPF_MAP_CREATE, &attr, sizeof(attr));
}

static int sys_map_op(enum bpf_cmd cmd, int map, const void *key, const void *value,
		      uint64_t flags)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = map;
	attr.key = sys_pointer(key);
	attr.value = sys_pointer(value);
	attr.flags = flags;
	return sys_bpf(cmd, &attr, sizeof(attr));
}

int sys_map_lookup(int map, const void *key, void *value)
{
	return sys_map_op(BPF_MAP_LOOKUP_ELEM, map, key, value, 0);
}

int sys_map_update(int map, const void *key, const void *value)
{
	return sys_map_op(BPF_MAP_UPDATE_ELEM, map, key, value, 0);
}

int sys_map_add(int map, const void *key, const void *value)
{
	return sys_map_op(BPF_MAP_UPDATE_ELEM, map, key, value, BPF_NOEXIST);
}

int sys_map_delete(int map, const void *key)
{
	return sys_map_op(BPF_MAP_DELETE_ELEM, map, key, NULL, 0);
}

int sys_map_next(int map, const void *key, void *next)
{
	return sys_map_op(BPF_MAP_GET_NEXT_KEY, map, key, next, 0);
}

uint64_t sys_map_sum(int map, uint32_t index)
{
	/* The kernel writes a value for each possible CPU. */
	uint64_t *values = calloc(SYS_CPUS_MAX, sizeof(*values)), sum = 0;

	if (values && !sys_map_lookup(map, &index, values))
		for (size_t i = 0; i < SYS_CPUS_MAX; i++)
			sum += values[i];
	free(values);
	return sum;
}

int sys_prog_load(const struct prog_def *def, char *log, uint32_t log_size)
{
	union bpf_attr attr;
	int fd = -EAGAIN;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = def->type;
	attr.expected_attach_type = def->attach_type;
	attr.insns = sys_pointer(def->insns);
	attr.insn_cnt = def->count;
	attr.license = sys_pointer("Dual BSD/GPL");
	if (log) {
		log[0] = '\0';
		attr.log_buf = sys_pointer(log);
		attr.log_size = log_size;
		attr.log_level = 1;
	}
	sys_name(attr.prog_name, def->name);
	/* A pending signal, even SIGCONT, interrupts the verifier (c3494801cd17). */
	for (int i = 0; i < LOAD_TRIES && fd == -EAGAIN; i++)
		fd = sys_bpf(BPF_PROG_LOAD, &attr, sizeof(attr));
	return fd;
}

int sys_raw_tracepoint(int prog, const char *name)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.raw_tracepoint.name = sys_pointer(name);
	attr.raw_tracepoint.prog_fd = prog;
	return sys_bpf(BPF_RAW_TRACEPOINT_OPEN, &attr, sizeof(attr));
}

int sys_uprobe_multi(int prog, const struct uprobe_sites *sites)
{
	struct link_create_uprobe_multi attr = {
		.prog_fd = prog,
		.attach_type = SYS_ATTACH_UPROBE_MULTI,
		.path = sys_pointer(sites->path),
		.offsets = sys_pointer(sites->offsets),
		.ref_ctr_offsets = sys_pointer(sites->ref_ctr_offsets),
		.cookies = sys_pointer(sites->cookies),
		.count = sites->count,
		.multi_flags = sites->on_return ? UPROBE_MULTI_RETURN : 0,
	};

	return sys_bpf(BPF_LINK_CREATE, &attr, sizeof(attr));
}

/* Open the perf event and attach @prog, for all CPUs and processes. */
static int sys_perf_attach(struct perf_event_attr *attr, int prog)
{
	int fd = (int)syscall(__NR_perf_event_open, attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, prog) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int sys_uprobe_perf(int prog, int pmu, const struct uprobe_sites *sites, uint32_t index)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = pmu;
	attr.config = (sites->on_return ? 1 : 0) | (uint64_t)sites->ref_ctr_offsets[index] << 32;
	attr.config1 = sys_pointer(sites->path);
	attr.config2 = sites->offsets[index];
	return sys_perf_attach(&attr, prog);
}

int sys_event(int prog, int id)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.config = (uint64_t)id;
	return sys_perf_attach(&attr, prog);
}

int sys_perf_output(int cpu, uint32_t watermark)
{
	struct perf_event_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_BPF_OUTPUT;
	attr.sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_TIME;
	attr.sample_period = 1;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	attr.watermark = watermark > 0;
	if (watermark)
		attr.wakeup_watermark = watermark;
	else
		attr.wakeup_events = 1;
	fd = (int)syscall(__NR_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int sys_perf_redirect(int event, int to)
{
	return ioctl(event, PERF_EVENT_IOC_SET_OUTPUT, to) ? -errno : 0;
}
