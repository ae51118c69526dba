// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/session/tracepoints.h"

#include "bpf/event.h"

static const struct tracepoint {
	const char *program, *name;
	bool breakdown, use;		/* attach only if these are requested */
	bool records;			/* attach only if tracefs has the format of sched_switch */
	bool optional;			/* failure to attach is not an error */
} tracepoint_table[] = {
	{ "thread_exit", "sched_process_exit", false, false, false, false },
	{ "thread_exec", "sched_process_exec", false, false, false, false },
	{ "thread_signal", "signal_deliver", false, false, false, false },
	{ "process_exec", "sched_process_exec", false, false, false, false },
	{ "task_switch", "sched_switch", true, false, false, false },
	{ "task_wakeup", "sched_wakeup", true, false, false, false },
	{ "task_waking", "sched_waking", true, false, false, false },
	/* Require CONFIG_FTRACE_SYSCALLS; without it system calls are unknown. */
	{ "call_exit", "sys_exit", true, false, true, true },
	{ "call_enter", "sys_enter", true, false, true, true },
	/* Since Linux 6.3 (6e6eda44b939); before, the bytes sent and received are unknown. */
	{ "task_sent", "sock_send_length", true, true, false, true },
	{ "task_received", "sock_recv_length", true, true, false, true },
};

_Static_assert(sizeof(tracepoint_table) / sizeof(tracepoint_table[0]) == TRACEPOINTS,
	       "every tracepoint has an index");

void tracepoints_constants(struct runtime *rt)
{
	runtime_constant(rt, "constant_want_bytes", 0);
	runtime_constant(rt, "constant_call_none", 0);
}

int tracepoints_attach(struct runtime *rt, const int events[TRACEPOINTS], bool why, bool use,
		       struct error *error)
{
	bool attached[TRACEPOINTS] = { false };
	int err;

	for (size_t i = 0; i < TRACEPOINTS; i++) {
		const struct tracepoint *row = &tracepoint_table[i];

		if ((row->breakdown && !why) || (row->use && !use) ||
		    (row->records && !events[TRACEPOINT_SWITCH]))
			continue;
		err = runtime_tracepoint(rt, &(struct runtime_tracepoint){
			.program = row->program, .name = row->name, .event = events[i],
			.pauses = row->breakdown,
		}, error);
		if (err && !row->optional)
			return err;
		error_clear(error);
		attached[i] = !err;
	}
	runtime_constant(rt, "constant_want_bytes",
			 attached[TRACEPOINT_SENT] && attached[TRACEPOINT_RECEIVED]);
	runtime_constant(rt, "constant_call_none",
			 attached[TRACEPOINT_CALL] ? BREAKDOWN_NO_CALL : BREAKDOWN_OTHERS);
	return 0;
}
