// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/attach.h"

#include <errno.h>
#include <unistd.h>

enum attach_method attach_choose(struct features *features)
{
	if (feature_has(features, FEATURE_UPROBE_MULTI))
		return ATTACH_MULTI;
	if (feature_has(features, FEATURE_UPROBE_PMU))
		return ATTACH_PERF;
	return ATTACH_NONE;
}

const char *attach_method_name(enum attach_method method)
{
	static const char *const names[] = {
		[ATTACH_MULTI] = "uprobe_multi",
		[ATTACH_PERF] = "perf uprobe",
		[ATTACH_NONE] = "none",
	};

	return names[method];
}

enum bpf_attach_type attach_type(enum attach_method method)
{
	return method == ATTACH_MULTI ? SYS_ATTACH_UPROBE_MULTI : (enum bpf_attach_type)0;
}

int attach_uprobes(struct features *features, enum attach_method method, int prog,
		   const struct uprobe_sites *sites, int *fds)
{
	uint32_t n;
	int err;

	if (method == ATTACH_MULTI) {
		fds[0] = sys_uprobe_multi(prog, sites);
		return fds[0] < 0 ? fds[0] : 1;
	}
	if (method == ATTACH_NONE)
		return -EOPNOTSUPP;
	for (n = 0; n < sites->count; n++) {
		fds[n] = sys_uprobe_perf(prog, features->uprobe_pmu, sites, n);
		if (fds[n] < 0) {
			err = fds[n];
			while (n)
				close(fds[--n]);
			return err;
		}
	}
	return (int)n;
}
