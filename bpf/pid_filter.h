/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processes that -p selects: one process, or all those of a server. */
#ifndef BPF_PID_FILTER_H
#define BPF_PID_FILTER_H

#include "bpf/child.h"

ARGUMENT(server);	/* PID of the server's main process in its own PID namespace */

CONSTANT(filter_pids);
CONSTANT(ns_pids);	/* bpf_get_ns_current_pid_tgid() exists (b4490c5c4e02, 5.7) */

MAP(servers);		/* hash: u64 PID of a main process → struct wanted_server */

/*
 * Return whether the current process, @pid, or its server is one that -p selects. Not inline: the
 * stack of its caller is a part of the longest chain, which has 512 bytes.
 */
static __attribute__((noinline)) int pid_wanted(void *ctx, __u32 pid)
{
	struct wanted_server *server;
	struct bpf_pidns_info info;
	__u64 main_pid;

	if (!VALUE(filter_pids) || bpf_map_lookup_elem(pids, &pid))
		return 1;
	if (VALUE(child_parent) && child_wanted())
		return 1;
	main_pid = arg_server(ctx);
	server = bpf_map_lookup_elem(servers, &main_pid);
	for (int i = 0; server && i < WANTED_NAMESPACES; i++) {
		if (!server->ns[i].ino || server->ns[i].uid != (__u32)bpf_get_current_uid_gid())
			continue;
		/* Without the helper, a server of another namespace is selected, too. */
		if (!VALUE(ns_pids) ||
		    !bpf_get_ns_current_pid_tgid(server->ns[i].dev, server->ns[i].ino, &info,
						 sizeof(info)))
			return 1;
	}
	return 0;
}

#endif
