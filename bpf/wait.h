/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Scheduler states: the activity, or the cause of the wait, of each thread that runs a statement.
 *
 * The scheduler's tracepoints report when a thread leaves its CPU, is woken and runs again. The
 * cause of a wait is the wait event that the server publishes, if there is one, and otherwise
 * the system call that the thread sleeps in.
 */
#ifndef BPF_WAIT_H
#define BPF_WAIT_H

#include "bpf/file.h"
#include "bpf/limit.h"
#include "bpf/stat.h"

#define TASK_UNINTERRUPTIBLE	2	/* the same in all releases */
#define TASK_STOPPED		4
#define TASK_TRACED		8
#define TASK_FROZEN		0x8000	/* f5d39b020809 (6.1); before, a flag: */
#define PF_FROZEN		0x10000
#define TASK_STATES		0xff	/* TASK_REPORT_MAX - 1; a record has more: preempted */

#define O_DSYNC		0010000
#define WAIT_IO		BREAKDOWN_PARTS	/* storage or a pipe: its system call decides */
#define COMMIT_BYTES	112	/* of a mysql_mutex_t and the mysql_cond_t after it */

CONSTANT(want_waits);		/* count or send each wait, see breakdown_count_wait() */
CONSTANT(wait_part);		/* stat --wait: the enum breakdown_part, or BREAKDOWN_PARTS */
CONSTANT(wait_call);		/* stat --wait: the system call, or BREAKDOWN_NONE */
/* Offsets in the kernel's struct task_struct, thread stack and struct pt_regs. */
CONSTANT(task_pid);
CONSTANT(task_state);
CONSTANT(task_iowait);		/* the byte that holds the bit .. */
CONSTANT(task_iowait_mask);	/* .. and the bit; 0: not known */
CONSTANT(task_frozen);		/* the same, of a bit: frozen by its cgroup (76f969e8948d, 5.2) */
CONSTANT(task_frozen_mask);
CONSTANT(task_flags);
CONSTANT(task_works);		/* 0: not known */
CONSTANT(task_throttled);	/* it is dequeued by the limit (6.18); 0: not known .. */
CONSTANT(task_queue);		/* .. then its group's queue on the CPU, and .. */
CONSTANT(queue_throttled);	/* .. the number of limits that stop that; 0: not known, either */
CONSTANT(task_stack);
CONSTANT(task_helper);		/* not 0: bpf_task_pt_regs() exists (dd6e10fbd9fb, 5.15) */
CONSTANT(stack_regs);		/* offset of the registers from the stack's base, without it */
CONSTANT(regs_call);
CONSTANT(regs_cause);		/* 0: outside of system calls, regs_call is -1 */
CONSTANT(regs_argument);	/* the first argument of a system call */
/*
 * Offsets in the tracepoints' records, on kernels without BTF (341dfcf8d78e, 5.4); 0 with BTF. The
 * programs are then attached to the tracepoints of system calls, too.
 */
CONSTANT(record_state);		/* sched_switch: prev_state */
CONSTANT(record_next);		/* sched_switch: next_pid */
CONSTANT(record_pid);		/* sched_wakeup: pid */

#define CAUSE_SYSTEM_CALL	8	/* RISC-V: environment call from user mode */

MAP(threads);		/* hash: u32 kernel thread ID → struct event_breakdown */
MAP(active);		/* array: thread ID % BREAKDOWN_SLOTS → u32, threads that run a statement */
MAP(calls);		/* array: system call number → u32, see BREAKDOWN_PART */

/* Set the system call that thread @t, the current one, is in; @task is its task_struct. */
INLINE void wait_system_call(struct event_breakdown *t, __u64 task)
{
	__u64 regs;
	__u64 call = BREAKDOWN_NO_CALL;

	if (VALUE(task_helper))
		regs = (__u64)bpf_task_pt_regs(bpf_get_current_task_btf());
	else
		regs = kernel_word(task + VALUE(task_stack)) + VALUE(stack_regs);
	if (!VALUE(regs_cause) || kernel_word(regs + VALUE(regs_cause)) == CAUSE_SYSTEM_CALL)
		bpf_probe_read_kernel(&call, sizeof(call), (const void *)(regs + VALUE(regs_call)));
	t->call = (__u32)call;
	t->argument = kernel_word(regs + VALUE(regs_argument));
}

/*
 * Return the state in which the current thread leaves its CPU, or 0 if it is still runnable.
 * @ctx: sched_switch(preempted, previous, next), or its record.
 */
INLINE __u32 wait_task_state(void *ctx)
{
	const __u64 *args = ctx;
	__u32 state = 0;

	if (VALUE(record_state)) {
		bpf_probe_read_kernel(&state, sizeof(state), ctx + VALUE(record_state));
		return state & TASK_STATES;
	}
	if (!(args[0] & 1))
		bpf_probe_read_kernel(&state, sizeof(state),
				      (const void *)(args[1] + VALUE(task_state)));
	return state;
}

/* Return a thread ID: from offset @record of the record, or from the task in argument @arg. */
INLINE __u32 wait_task_id(void *ctx, __u64 record, int arg)
{
	const __u64 *args = ctx;
	__u32 tid = 0;

	bpf_probe_read_kernel(&tid, sizeof(tid), record ? ctx + record :
			      (const void *)(args[arg] + VALUE(task_pid)));
	return tid;
}

/*
 * Return whether the current thread, @task, does not wait but is stopped by a signal, by its tracer
 * or by a freezer. A record has the last as an uninterruptible wait.
 */
INLINE int wait_is_stopped(__u64 task, __u32 state)
{
	unsigned char frozen = 0;

	if (state & (TASK_STOPPED | TASK_TRACED | TASK_FROZEN))
		return 1;
	if (VALUE(record_state))
		return 0;
	if (state & TASK_UNINTERRUPTIBLE)
		return !!(kernel_word(task + VALUE(task_flags)) & PF_FROZEN);
	if (VALUE(task_frozen_mask))
		bpf_probe_read_kernel(&frozen, sizeof(frozen),
				      (const void *)(task + VALUE(task_frozen)));
	return !!(frozen & VALUE(task_frozen_mask));
}

/*
 * Return whether thread @t, in a futex, waits for other threads to make its commit durable: in a
 * mutex or condition that is for nothing else.
 */
INLINE int wait_is_commit(const struct event_breakdown *t)
{
	for (int i = 0; i < BREAKDOWN_COMMITS; i++)
		if (t->commit[i] && t->argument - t->commit[i] < COMMIT_BYTES)
			return 1;
	return 0;
}

/*
 * Thread @t, with @task, is woken from a futex; @io: by a thread that has completed I/O. It is then
 * for I/O that @t waited. io_uring interrupts the wait when I/O that @t has submitted completes:
 * that counts as well, unless the wait goes on and is ended by something else.
 */
INLINE void wait_futex_ends(struct event_breakdown *t, __u64 task, int io)
{
	if (!io && !(VALUE(task_works) && kernel_word(task + VALUE(task_works)))) {
		t->ns[BREAKDOWN_DISK] -= t->interrupted_ns;
		t->ns[BREAKDOWN_FUTEX] += t->interrupted_ns;
		t->interrupted_ns = 0;
		return;
	}
	t->interrupted_ns = io ? 0 : t->interrupted_ns + bpf_ktime_get_ns() - t->since_ns;
	t->part = BREAKDOWN_DISK;
}

/* Return the part of the time in which @task could run, and does not. */
INLINE __u32 wait_queue_part(__u64 task)
{
	__u64 queue;
	int throttled = 0;

	if (VALUE(task_throttled)) {
		bpf_probe_read_kernel(&throttled, 1, (const void *)(task + VALUE(task_throttled)));
	} else if (VALUE(queue_throttled)) {
		queue = kernel_word(task + VALUE(task_queue));
		bpf_probe_read_kernel(&throttled, sizeof(throttled),
				      (const void *)(queue + VALUE(queue_throttled)));
	}
	return throttled ? BREAKDOWN_THROTTLED : BREAKDOWN_RUNQUEUE;
}

/* Return the part that waiting for file descriptor @fd of @task belongs to; @known: of its call. */
INLINE __u32 wait_file_part(__u64 task, __u32 fd, __u32 known)
{
	__u64 file = file_of(task, fd);
	__u32 type = file ? file_type(file) : 0;

	if (type == S_IFIFO)
		return BREAKDOWN_PIPE;
	if (type != S_IFREG && type != S_IFBLK)
		return known & BREAKDOWN_PART;
	if (known & BREAKDOWN_WRITES && kernel_word(file + VALUE(file_flags)) & O_DSYNC)
		return BREAKDOWN_FSYNC;
	return BREAKDOWN_DISK;
}

/* Return the value of the system call of thread @t, see BREAKDOWN_PART. */
INLINE __u32 wait_call_value(const struct event_breakdown *t)
{
	__u32 call = t->call;
	__u32 *known = call < BREAKDOWN_CALLS ? bpf_map_lookup_elem(calls, &call) : 0;

	return known ? *known : BREAKDOWN_OTHER;
}

/*
 * Return whether the current thread, @t, waits for a socket that is not its client's. Of several in
 * an array, the first decides.
 */
static __attribute__((noinline)) int wait_is_remote(const struct event_breakdown *t,
						    __u64 task)
{
	__u32 value = wait_call_value(t), fd = (__u32)t->argument;
	__u64 file;

	if (!VALUE(socket_sock) || (value & BREAKDOWN_PART) != BREAKDOWN_NETWORK ||
	    (value & BREAKDOWN_ON_POLL &&
	     bpf_probe_read_user(&fd, sizeof(fd), (const void *)t->argument)))
		return 0;
	file = file_of(task, fd);
	if (!file)
		return 0;
	return value & BREAKDOWN_ON_EPOLL ? file_polls_remote(file) : file_is_remote(file);
}

/*
 * Return the part that the wait of the current thread, @t, belongs to; @state: wait_task_state().
 * @io: the server reports I/O.
 */
INLINE __u32 wait_call_part(const struct event_breakdown *t, __u64 task, __u32 state, int io)
{
	__u32 value = wait_call_value(t), part = value & BREAKDOWN_PART;
	unsigned char iowait = 0;

	if (value & BREAKDOWN_ON_FILE)
		part = wait_file_part(task, (__u32)t->argument, value);
	if (part == BREAKDOWN_FSYNC || part == BREAKDOWN_DISK || part == BREAKDOWN_PIPE)
		return part;
	if (part == BREAKDOWN_FUTEX && wait_is_commit(t))
		return BREAKDOWN_FSYNC;
	if (VALUE(task_iowait_mask))
		bpf_probe_read_kernel(&iowait, sizeof(iowait),
				      (const void *)(task + VALUE(task_iowait)));
	if (iowait & VALUE(task_iowait_mask))
		return BREAKDOWN_DISK;
	/*
	 * A read or write of a file is uninterruptible, that of a socket is not. A record has no
	 * iowait bit: there, an uninterruptible wait in no known system call is a page fault.
	 */
	if (state & TASK_UNINTERRUPTIBLE &&
	    (part == BREAKDOWN_NETWORK || (VALUE(record_state) && t->call >= BREAKDOWN_CALLS)))
		return BREAKDOWN_DISK;
	/* A pipe, or an epoll that returns when another process has done the I/O. */
	if (io && part == BREAKDOWN_NETWORK)
		return value & BREAKDOWN_ON_FILE ? BREAKDOWN_PIPE : BREAKDOWN_DISK;
	return part;
}

INLINE __u32 *wait_active(__u32 tid)
{
	__u32 slot = tid & (BREAKDOWN_SLOTS - 1);

	return bpf_map_lookup_elem(active, &slot);
}

/*
 * Return the breakdown of thread @tid, or NULL unless it runs a statement. Most threads do not, and
 * the array shows that at a tenth of the cost of the hash.
 */
INLINE struct event_breakdown *breakdown_thread(__u32 tid)
{
	__u32 *running = wait_active(tid);
	struct event_breakdown *t = running && *running ? bpf_map_lookup_elem(threads, &tid) : 0;

	return t && t->start_ns ? t : 0;
}

/* Return the breakdown of the current thread, or NULL unless it runs a statement. */
static __attribute__((noinline)) struct event_breakdown *breakdown_current(void)
{
	return breakdown_thread((__u32)bpf_get_current_pid_tgid());
}

/* End the accounting of thread @tid. */
INLINE void breakdown_stop(struct event_breakdown *t, __u32 tid)
{
	__u32 *running = wait_active(tid);

	t->start_ns = 0;
	if (VALUE(limited)) {
		cost_spend(t->target_id, t->spent_ns);
		t->spent_ns = 0;
	}
	if (running)
		__sync_fetch_and_add(running, -1);
}

/* Return the time for breakdown_spend(). */
INLINE __u64 breakdown_begin_ns(void)
{
	return VALUE(limited) ? bpf_ktime_get_ns() : 0;
}

/* Charge the time since @begin_ns to thread @t, which may be another one than the current. */
INLINE void breakdown_spend(struct event_breakdown *t, __u64 begin_ns)
{
	if (VALUE(limited))
		t->spent_ns += bpf_ktime_get_ns() - begin_ns;
}

INLINE int breakdown_is_waiting(const struct event_breakdown *t)
{
	return t->part >= BREAKDOWN_FIRST_WAIT;
}

/* Return the system call that thread @t waits in. */
INLINE __u32 breakdown_call(const struct event_breakdown *t)
{
	return t->part == BREAKDOWN_STOPPED ? BREAKDOWN_STOP : t->call;
}

/*
 * Return whether the wait of thread @t belongs to its statement. In SESSION_BETWEEN the thread may
 * also wait for its client, or for work in a thread pool: only those waits count that occur in no
 * thread without a statement.
 */
INLINE int breakdown_is_inside(const struct event_breakdown *t, const struct session *session)
{
	const struct event_statement *s = &session->s;

	if (s->start_ns != t->start_ns)
		return 0;
	switch (session_phase(s)) {
	case SESSION_IDLE:
	case SESSION_SUSPENDED:
		return 0;
	case SESSION_RUNNING:
		return 1;
	case SESSION_SYNCING:
		return s->completed_ns > t->since_ns;
	case SESSION_BETWEEN:
		break;
	}
	return t->part == BREAKDOWN_DISK || t->part == BREAKDOWN_FSYNC ||
	       t->part == BREAKDOWN_LOCK || t->part == BREAKDOWN_SLEEP;
}

/* Count or send the wait of thread @t that ends at @now, if it is the kind wanted. */
static __attribute__((noinline)) void breakdown_count_wait(void *ctx, struct event_breakdown *t,
							   __u64 now)
{
	struct session *session;
	struct event_wait wait = { .head = { EVENT_WAIT, t->head.owner } };

	if (now <= t->since_ns || now - t->since_ns < VALUE(threshold_ns) ||
	    (t->part != VALUE(wait_part) &&
	     !(breakdown_is_waiting(t) && breakdown_call(t) == VALUE(wait_call))))
		return;
	session = session_find(t->session);
	if (!session || !breakdown_is_inside(t, session))
		return;
	if (VALUE(stat_unit_ns)) {
		stat_count(session, now - t->since_ns,
			   session->s.flags & SESSION_LATE ? STAT_NO_TEXT : 0);
		return;
	}
	wait.target_id = t->target_id;
	wait.pid = t->pid;
	wait.start_ns = t->start_ns;
	wait.ns = now - t->since_ns;
	send(ctx, &wait, sizeof(wait));
}

/* Add @sleeps that lasted @ns to those of other kinds. */
INLINE void breakdown_add_others(struct event_breakdown *t, __u32 sleeps, __u64 ns)
{
	struct breakdown_wait *others = &t->waits[BREAKDOWN_WAITS - 1];

	others->call = BREAKDOWN_OTHERS;
	others->sleeps += sleeps;
	others->ns += ns;
}

/*
 * Add the wait of thread @t that ends at @now to those of the same kind. If there are too many
 * kinds, that with the least time goes to the others. The place is kept in memory: the verifier
 * would follow each value of a register.
 */
INLINE void breakdown_add_wait(struct event_breakdown *t, __u64 now)
{
	__u32 call = breakdown_call(t), event = t->part == BREAKDOWN_STOPPED ? 0 : t->event;
	struct breakdown_wait *wait;
	__u64 least_ns = ~0ull;

	NO_UNROLL
	for (int i = 0; i < BREAKDOWN_WAITS - 1; i++) {
		wait = &t->waits[i];
		if (wait->sleeps && wait->call == call && wait->event == event) {
			t->place = i;
			break;
		}
		if (wait->ns < least_ns) {
			least_ns = wait->ns;
			t->place = i;
		}
	}
	wait = &t->waits[t->place & (BREAKDOWN_WAITS - 1)];
	if (wait->sleeps && (wait->call != call || wait->event != event)) {
		breakdown_add_others(t, wait->sleeps, wait->ns);
		wait->sleeps = 0;
		wait->ns = 0;
	}
	if (!wait->sleeps)
		wait->part = t->part;
	wait->call = call;
	wait->event = event;
	wait->sleeps++;
	wait->ns += now - t->since_ns;
}

/* Add the time since the last change to the current part. */
INLINE void breakdown_add_time(struct event_breakdown *t, __u64 now)
{
	__u64 part = t->part;

	/*
	 * Otherwise clang compares a copy, and the verifier does not know the bound of the original
	 * (before 75748837b7e5, 5.10).
	 */
	__asm__ volatile("" : "+r"(part));
	if (part < BREAKDOWN_PARTS && now > t->since_ns)
		t->ns[part] += now - t->since_ns;
	t->since_ns = now;
}

/*
 * Account for the time of thread @t until @now; from then on it is in @part. @kind: a wait that
 * ends is counted with those of its kind, else with the others.
 */
INLINE void breakdown_turn(void *ctx, struct event_breakdown *t, __u64 now, __u32 part, int kind)
{
	if (VALUE(want_waits))
		breakdown_count_wait(ctx, t, now);
	else if (breakdown_is_waiting(t) && now > t->since_ns && kind)
		breakdown_add_wait(t, now);
	else if (breakdown_is_waiting(t) && now > t->since_ns)
		breakdown_add_others(t, 1, now - t->since_ns);
	breakdown_add_time(t, now);
	t->part = part;
}

static __attribute__((noinline)) void breakdown_change(void *ctx, struct event_breakdown *t,
						       __u64 now, __u32 part)
{
	breakdown_turn(ctx, t, now, part, 1);
}

/*
 * Thread @t runs its program, even if its wake-up was missed. Of which kind such a wait was is not
 * worth what the verifier makes of the loop over the kinds in the program of each probe.
 */
static __attribute__((noinline)) void breakdown_runs(void *ctx, struct event_breakdown *t,
						     __u64 now)
{
	breakdown_turn(ctx, t, now, BREAKDOWN_CPU, 0);
}

#endif
