// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/feature.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "host/mount.h"
#include "loader/sys.h"

#define MAP_TYPE_USER_RINGBUF		31

static bool probe_map(enum bpf_map_type type)
{
	struct map_def def = { .name = "probe", .type = type,
			       .max_entries = (uint32_t)getauxval(AT_PAGESZ) };
	int fd = sys_map_create(&def);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool probe_ringbuf(struct features *features)
{
	(void)features;
	return probe_map(BPF_MAP_TYPE_RINGBUF);
}

/*
 * Before 34dd3bad1a6f, loading a tracing program with a map that allocates makes the kernel print a
 * warning with a stack trace. The change itself cannot be probed, so probe for a map type of the
 * same release.
 */
static bool probe_tracing_alloc(struct features *features)
{
	(void)features;
	return probe_map((enum bpf_map_type)MAP_TYPE_USER_RINGBUF);
}

/* Load the program @insns and close it. Return 0 or the error of bpf(2). */
static int load_program(enum bpf_prog_type type, const struct bpf_insn *insns, uint32_t count)
{
	int prog = sys_prog_load(&(struct prog_def){
		.name = "probe", .type = type, .insns = insns, .count = count,
	}, NULL, 0);

	if (prog < 0)
		return prog;
	close(prog);
	return 0;
}

/* Return whether the kernel loads the program @insns. */
static bool probe_program(struct features *features, const struct bpf_insn *insns, uint32_t count)
{
	return !feature_allowed(features) && !load_program(BPF_PROG_TYPE_KPROBE, insns, count);
}

/* probe_read_user(r10 - 8, 8, 0) */
static bool probe_read_user(struct features *features)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1,
		  .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_1, .imm = -8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = 8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_probe_read_user },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return probe_program(features, insns, sizeof(insns) / sizeof(insns[0]));
}

/* task_pt_regs(get_current_task_btf()) */
static bool probe_task_regs(struct features *features)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_task_btf },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_1 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_task_pt_regs },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return probe_program(features, insns, sizeof(insns) / sizeof(insns[0]));
}

/* get_ns_current_pid_tgid(0, 0, r10 - 8, 8) */
static bool probe_ns_pid(struct features *features)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_3,
		  .src_reg = BPF_REG_10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_3, .imm = -8 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_4, .imm = 8 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_ns_current_pid_tgid },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return probe_program(features, insns, sizeof(insns) / sizeof(insns[0]));
}

static bool probe_uprobe_pmu(struct features *features)
{
	int fd = mount_open_file(MOUNT_SYSFS, "bus/event_source/devices/uprobe/type");
	char buf[16];
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	if (n <= 0)
		return false;
	buf[n] = '\0';
	features->uprobe_pmu = strtoull(buf, NULL, 10);
	return features->uprobe_pmu > 0;
}

static const struct bpf_insn probe_insns[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
	{ .code = BPF_JMP | BPF_EXIT },
};

/* r1 = 0; do r1++; while (r1 < 2) */
static const struct bpf_insn loop_insns[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1 },
	{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_1, .imm = 1 },
	{ .code = BPF_JMP | BPF_JLT | BPF_K, .dst_reg = BPF_REG_1, .off = -2, .imm = 2 },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
	{ .code = BPF_JMP | BPF_EXIT },
};

/*
 * Verifiers before bounded loops have defects by which loading a program crashes or hangs the
 * kernel (fixed by 0962590e5533, 7640ead93924 and 83d163124cf1). The fixes cannot be probed, but
 * all kernels with bounded loops have them. A kernel that loads the first program here refuses the
 * second one with EINVAL for its jump back only. Before 5.0 (6c4fc209fcf9) programs for kprobes
 * must state the kernel's version, those for tracepoints need not.
 */
static int ask_allowed(const struct features *features)
{
	int err;

	if (features->row[FEATURE_LOOPS].probed)
		return -EOPNOTSUPP;	/* by feature_deny() */
	err = load_program(BPF_PROG_TYPE_TRACEPOINT, probe_insns,
			   sizeof(probe_insns) / sizeof(probe_insns[0]));
	if (err)
		return err;
	err = load_program(BPF_PROG_TYPE_TRACEPOINT, loop_insns,
			   sizeof(loop_insns) / sizeof(loop_insns[0]));
	return err == -EINVAL ? -EOPNOTSUPP : err;
}

int feature_allowed(struct features *features)
{
	if (!features->asked)
		features->refused = ask_allowed(features);
	features->asked = true;
	return features->refused;
}

static bool probe_loops(struct features *features)
{
	return !feature_allowed(features);
}

/* Older kernels load the program, too, so create a link: to a directory it fails with EBADF. */
static bool probe_uprobe_multi(struct features *features)
{
	struct prog_def def = {
		.name = "probe", .type = BPF_PROG_TYPE_KPROBE,
		.attach_type = SYS_ATTACH_UPROBE_MULTI,
		.insns = probe_insns, .count = 2,
	};
	unsigned long offset = 0;
	struct uprobe_sites sites = { .path = "/", .offsets = &offset, .count = 1 };
	int link, prog = feature_allowed(features);

	if (!prog)
		prog = sys_prog_load(&def, NULL, 0);
	if (prog < 0)
		return false;
	link = sys_uprobe_multi(prog, &sites);
	if (link >= 0)
		close(link);
	close(prog);
	return link == -EBADF;
}

/* The permission is checked first; then the path of a directory is refused. */
int feature_perf_allowed(struct features *features)
{
	const unsigned long zero = 0;
	struct uprobe_sites sites = { .path = "/", .offsets = &zero, .ref_ctr_offsets = &zero,
				      .count = 1 };
	int event = sys_uprobe_perf(-1, features->uprobe_pmu, &sites, 0);

	if (event >= 0)
		close(event);
	return event == -EPERM || event == -EACCES || event == -ENOSYS ? event : 0;
}

static bool probe_file(const char *path)
{
	int fd = mount_open_file(MOUNT_SYSFS, path);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The PMU's format describes ref_ctr_offset; kernels with uprobe_multi have it, too. */
static bool probe_ref_ctr(struct features *features)
{
	return feature_has(features, FEATURE_UPROBE_MULTI) ||
	       probe_file("bus/event_source/devices/uprobe/format/ref_ctr_offset");
}

static bool probe_types(struct features *features)
{
	(void)features;
	return probe_file("kernel/btf/vmlinux");
}

#define SINCE(commit, major, minor)	\
	.since = commit ", Linux " #major "." #minor, .release = (major) << 8 | (minor)

/* The features, with the fallbacks that are used without them. */
static const struct {
	const char *name, *since;
	bool (*probe)(struct features *features);
	const char *fallback;		/* NULL: none */
	uint16_t release;		/* as in ->since: major << 8 | minor */
} feature_table[FEATURES] = {
	[FEATURE_RINGBUF] = { "BPF ring buffer", SINCE("457f44363a88", 5, 8),
			      .probe = probe_ringbuf, .fallback = "perfbuf" },
	[FEATURE_UPROBE_PMU] = { "uprobe PMU", SINCE("33ea4b24277b", 4, 17),
				 .probe = probe_uprobe_pmu },
	[FEATURE_UPROBE_MULTI] = { "uprobe_multi link", SINCE("89ae89f53d20", 6, 6),
				   .probe = probe_uprobe_multi, .fallback = "perf" },
	[FEATURE_TRACING_ALLOC] = { "allocation in tracing programs", SINCE("34dd3bad1a6f", 6, 1),
				    .probe = probe_tracing_alloc, .fallback = "prealloc" },
	[FEATURE_READ_USER] = { "probe_read_user", SINCE("6ae08ae3dea2", 5, 5),
				.probe = probe_read_user, .fallback = "probe-read" },
	[FEATURE_NS_PID] = { "get_ns_current_pid_tgid", SINCE("b4490c5c4e02", 5, 7),
			     .probe = probe_ns_pid, .fallback = "pids" },
	[FEATURE_LOOPS] = { "loops in programs", SINCE("2589726d12a1", 5, 3),
			    .probe = probe_loops },
	[FEATURE_REF_CTR] = { "semaphores counted by the kernel", SINCE("1cc33161a83d", 4, 20),
			      .probe = probe_ref_ctr, .fallback = "semaphore" },
	[FEATURE_TYPES] = { "types of the kernel (BTF)", SINCE("341dfcf8d78e", 5, 4),
			    .probe = probe_types },
	[FEATURE_TASK_REGS] = { "task_pt_regs", SINCE("dd6e10fbd9fb", 5, 15),
				.probe = probe_task_regs },
	[FEATURE_SAFE_NOPS] = { "safe probes on 5-byte nops", .fallback = "no-nop5" },
	[FEATURE_SAFE_RETURNS] = { "safe return probes under seccomp",
				   .fallback = "no-filtered-returns" },
};

bool feature_has(struct features *features, enum feature feature)
{
	if (!features->row[feature].probed) {
		features->row[feature].has = feature_table[feature].probe(features);
		features->row[feature].probed = true;
	}
	return features->row[feature].has;
}

void feature_deny(struct features *features, uint32_t denied)
{
	for (int i = 0; i < FEATURES; i++) {
		if (!(denied & FEATURE_BIT(i)))
			continue;
		features->row[i].probed = true;
		features->row[i].has = false;
	}
}

/* Return the release in "linux-5.4", @len bytes, as in feature_table; 0: it is none. */
static uint64_t release_parse(const char *name, size_t len)
{
	const char *head = FEATURE_RELEASE;
	uint64_t major, minor;
	char *end;

	if (len <= strlen(head) || memcmp(name, head, strlen(head)))
		return 0;
	major = strtoull(name + strlen(head), &end, 10);
	minor = *end == '.' ? strtoull(end + 1, &end, 10) : 0;
	return end == name + len && major < 256 && minor < 256 ? major << 8 | minor : 0;
}

int feature_force(const char *name, size_t len, uint32_t *denied)
{
	uint64_t release = release_parse(name, len);
	int err = release ? 0 : -ENOENT;

	for (int i = 0; i < FEATURES; i++) {
		const char *fallback = feature_table[i].fallback;

		if (release && feature_table[i].release > release)
			*denied |= FEATURE_BIT(i);
		if (!fallback || strlen(fallback) != len || memcmp(fallback, name, len))
			continue;
		*denied |= FEATURE_BIT(i);
		err = 0;
	}
	return err;
}

const char *feature_fallback(enum feature feature)
{
	return feature_table[feature].fallback;
}

const char *feature_name(enum feature feature)
{
	return feature_table[feature].name;
}

const char *feature_since(enum feature feature)
{
	return feature_table[feature].since;
}
