// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Tests of loader/uprobe_set and loader/join without the kernel: groups, cuts, semaphores, layout.
 */
#include "loader/uprobe_set.h"

#include <errno.h>

#include "loader/join.h"
#include "tests/unit/check.h"
#include "tests/unit/load.h"

static const struct bpf_insn one[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 1 }, { .code = BPF_JMP | BPF_EXIT },
};
static const struct bpf_insn two[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 2 }, { .code = BPF_JMP | BPF_EXIT },
};
/* A body that calls a function behind it. */
static const struct bpf_insn calling[] = {
	{ .code = BPF_JMP | BPF_CALL, .src_reg = BPF_PSEUDO_CALL, .imm = 1 },
	{ .code = BPF_JMP | BPF_EXIT },
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 3 },
	{ .code = BPF_JMP | BPF_EXIT },
};

static void add(struct uprobe_set *set, const struct bpf_insn *insns, uint64_t offset,
		uint64_t semaphore)
{
	const struct uprobe_site site = { .offset = offset, .semaphore = semaphore };

	CHECK(!uprobe_set_add(set, "program", insns, 2, &site));
}

static void equal_programs_share_a_group(void)
{
	struct uprobe_set set = { 0 };

	add(&set, one, 0x10, 0);
	add(&set, two, 0x20, 0);
	add(&set, one, 0x30, 0);
	CHECK(set.ngroups == 2 && set.nsites == 3, "%u, %u", set.ngroups, set.nsites);
	CHECK(set.sites[0].group == 0 && set.sites[1].group == 1 && set.sites[2].group == 0);
	CHECK(set.groups[1].count == 2 && set.groups[1].insns[0].imm == 2);
	uprobe_set_free(&set);
	CHECK(!set.ngroups && !set.nsites && !set.groups && !set.sites);
}

static void cuts_remove_the_last(void)
{
	struct uprobe_set set = { 0 };

	add(&set, one, 0x10, 0);
	add(&set, two, 0x20, 0);
	uprobe_set_cut(&set, 1, 1);
	CHECK(set.ngroups == 1 && set.nsites == 1 && set.sites[0].offset == 0x10);
	add(&set, two, 0x40, 0);
	CHECK(set.ngroups == 2 && set.sites[1].group == 1 && set.sites[1].offset == 0x40);
	uprobe_set_free(&set);
}

static void semaphores_are_dropped(void)
{
	struct uprobe_set set = { 0 };

	add(&set, one, 0x10, 0x100);
	add(&set, one, 0x20, 0);
	CHECK(uprobe_set_drop_semaphores(&set) && !set.sites[0].semaphore);
	CHECK(!uprobe_set_drop_semaphores(&set));
	uprobe_set_free(&set);
}

/* Every comparison leads to the body of its part, and each call to the function of its part. */
static void joined_parts_are_reached(void)
{
	const struct join_part parts[] = { { one, 2 }, { calling, 4 }, { two, 2 }, { calling, 4 } };
	static const int32_t first[] = { 1, 1, 2, 1 };
	struct bpf_insn joined[64];
	int n = join_programs(parts, 4, joined, 64);

	CHECK(n == 3 + 4 + 2 + 12, "%d", n);
	for (int i = 0; n > 0 && i < 4; i++) {
		const struct bpf_insn *jump = &joined[3 + i];
		const struct bpf_insn *body = jump + 1 + jump->off;
		int part = jump->imm;

		CHECK(part == 3 - i, "%d", part);
		if (!(part & 1))
			CHECK(body->imm == first[part], "part %d: %d", part, body->imm);
		else
			CHECK(body->src_reg == BPF_PSEUDO_CALL && body[1 + body->imm].imm == 3,
			      "part %d", part);
	}
	CHECK(join_fit(parts, 4, 64) == 4);
	CHECK(join_fit(parts, 4, (uint32_t)n - 1) == 3);
	CHECK(join_programs(parts, 4, joined, (uint32_t)n - 1) == -ENOSPC);
}

/* Of what the verifier says about a long program, the end is kept. */
static void refused_program_says_why(void)
{
	static const struct bpf_insn beyond[] = {
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .src_reg = BPF_REG_1, .off = 4096 }, EXIT,
	};
	struct bpf_insn insns[1002];
	const struct prog_def def = { .name = "refused", .type = BPF_PROG_TYPE_KPROBE,
				      .insns = insns, .count = 1002 };
	struct error error = { .kind = ERROR_NONE };
	const char *why = load_forbidden();

	if (why) {
		SKIP(why);
		return;
	}
	for (int i = 0; i < 1000; i++)
		insns[i] = (struct bpf_insn)ALU(BPF_MOV, 2, i);
	memcpy(&insns[1000], beyond, sizeof(beyond));
	CHECK(uprobe_set_load(&def, &error) < 0 && error.kind == ERROR_PROGRAM);
	CHECK(error.log && strstr(error.log, "invalid bpf_context access"), "%s", error.log);
	CHECK(error.log && strlen(error.log) < 8192 && !strstr(error.log, "\n100: "));
	error_clear(&error);
}

int main(void)
{
	RUN(equal_programs_share_a_group);
	RUN(cuts_remove_the_last);
	RUN(semaphores_are_dropped);
	RUN(joined_parts_are_reached);
	RUN(refused_program_says_why);
	return check_done();
}
