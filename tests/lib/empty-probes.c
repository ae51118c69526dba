// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * empty-probes [perf] FILE:OFFSET:REFCTR...: attaches a program that only exits to these sites
 * (hexadecimal file offsets, REFCTR 0: none) and waits for SIGINT. Its overhead is the lower bound
 * for any tracer, with which the benchmark compares. With "perf" it uses the uprobe PMU, as is
 * required before Linux 6.6.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/attach.h"

static int site_attach(struct features *features, enum attach_method method, int prog, char *site)
{
	char *ref = strrchr(site, ':'), *offset;
	unsigned long offsets[1], refs[1];
	uint64_t cookies[1] = { 0 };
	struct uprobe_sites sites = { .path = site, .offsets = offsets, .ref_ctr_offsets = refs,
				      .cookies = cookies, .count = 1 };
	int fd;

	if (!ref)
		return -1;
	*ref = '\0';
	offset = strrchr(site, ':');
	if (!offset)
		return -1;
	*offset = '\0';
	offsets[0] = strtoul(offset + 1, NULL, 16);
	refs[0] = strtoul(ref + 1, NULL, 16);
	return attach_uprobes(features, method, prog, &sites, &fd);
}

int main(int argc, char *argv[])
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct features features = { .uprobe_pmu = 0 };
	struct prog_def def = { .name = "empty", .type = BPF_PROG_TYPE_KPROBE,
				.insns = insns, .count = 2 };
	int first = argc > 1 && !strcmp(argv[1], "perf") ? 2 : 1, prog;
	enum attach_method method;

	if (first == 2)
		feature_deny(&features, FEATURE_BIT(FEATURE_UPROBE_MULTI));
	method = attach_choose(&features);
	def.attach_type = attach_type(method);
	prog = sys_prog_load(&def, NULL, 0);
	for (int i = first; prog >= 0 && i < argc; i++) {
		int err = site_attach(&features, method, prog, argv[i]);

		if (err < 0) {
			fprintf(stderr, "empty-probes: %s: %s\n", argv[i], strerror(-err));
			return 1;
		}
	}
	if (prog < 0) {
		fprintf(stderr, "empty-probes: %s\n", strerror(-prog));
		return 1;
	}
	puts("attached");
	fflush(stdout);
	signal(SIGINT, _exit);
	pause();
	return 0;
}
