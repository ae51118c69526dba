/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the time of statements goes, and what they use. The scheduler's tracepoints are looked at,
 * for threads that run a statement. What a thread waits for is told by the server, in a word that
 * it keeps in its memory or by a call around the wait, else by the system call that it sleeps in.
 */
#ifndef BPF_BREAKDOWN_H
#define BPF_BREAKDOWN_H

#include "bpf/stat.h"

#define ROLLED	_Pragma("clang loop unroll(disable)")
#define STATE_UNINTERRUPTIBLE	2	/* TASK_UNINTERRUPTIBLE, in all releases */
#define STATES			0xff	/* TASK_REPORT_MAX - 1; in a record, above is "preempted" */

ARGUMENT(wait_event);	/* address of what PostgreSQL says it waits for; 0: not known */
ARGUMENT(wait);		/* thd_wait_type of MySQL and MariaDB */
ARGUMENT(family);	/* an address that is the server's and its children's own; 0: no workers */
ARGUMENT(self);		/* its PID, as the server sees it */
ARGUMENT(worker);	/* the number of a parallel worker, from 0 */
ARGUMENT(leader);	/* and the PID of the one that it works for */
ARGUMENT(buffers);	/* address of PostgreSQL's pgBufferUsage and pgWalUsage; 0: not known */
ARGUMENT(wal);

ARGUMENT(phase);	/* enum phase */
ARGUMENT(sort);		/* SORT_BEGINS, or whether it went to disk, … */
ARGUMENT(space);	/* … where it took so many blocks; else so many KiB of memory */

CONSTANT(want_breakdown);
CONSTANT(want_use);
CONSTANT(want_waits);		/* each is counted, or sent if statements are */
CONSTANT(wait_part);		/* which of them: of stat --wait: enum breakdown_part … */
CONSTANT(wait_call);		/* … or a system call; BREAKDOWN_PARTS, BREAKDOWN_NONE: none */
CONSTANT(want_bytes);		/* the tracepoints of sockets are there (6.3) */
/* Offsets in the kernel's struct task_struct and pt_regs. */
CONSTANT(task_pid);
CONSTANT(task_state);
CONSTANT(task_iowait);		/* a byte, … */
CONSTANT(task_iowait_mask);	/* … and the bit in it */
CONSTANT(task_stack);
CONSTANT(task_helper);		/* there is bpf_task_pt_regs() */
CONSTANT(stack_regs);		/* where there is not: where they are on the stack */
CONSTANT(regs_call);
/*
 * Without the kernel's types, offsets in the tracepoints' records, which the programs are given then;
 * else 0. The system call is told by tracepoints, too.
 */
CONSTANT(record_state);		/* of sched_switch */
CONSTANT(record_next);
CONSTANT(record_pid);		/* of sched_wakeup */
CONSTANT(call_none);		/* BREAKDOWN_NO_CALL; or nothing tells: BREAKDOWN_OTHERS */
/* 0: there is none */
CONSTANT(task_read_bytes);
CONSTANT(task_write_bytes);
CONSTANT(task_syscr);
CONSTANT(task_syscw);
CONSTANT(task_min_flt);
CONSTANT(task_maj_flt);
CONSTANT(task_mm);
/* … and in struct mm_struct, which counts pages. */
CONSTANT(mm_hiwater);
CONSTANT(mm_total);
CONSTANT(mm_data);

MAP(threads);		/* hash: kernel's number of a thread → struct event_breakdown */
MAP(no_thread);		/* array of one: a struct event_breakdown that is all zero */
MAP(active);		/* array: number of a thread % BREAKDOWN_SLOTS → how many of them run a statement */
MAP(workers);		/* hash: event_breakdown.leader → struct breakdown_workers of those that have ended */
MAP(parallel);		/* array: event_breakdown.leader % BREAKDOWN_LEADERS → whether there are any */
MAP(calls);		/* array: number of a system call → enum breakdown_part, __u32 */

/* The classes of PostgreSQL's wait events, the same since 10. */
INLINE __u32 breakdown_postgres(__u32 event)
{
	switch (event >> 24) {
	case 0x00:		/* none */
	case 0x0a:		/* I/O, of what kind the system call says */
		return 0;
	case 0x01:
		return BREAKDOWN_LWLOCK;
	case 0x03:		/* heavyweight locks */
	case 0x04:		/* pins of buffers */
		return BREAKDOWN_LOCK;
	case 0x06:
		return BREAKDOWN_NETWORK;
	case 0x08:
		return BREAKDOWN_IPC;
	case 0x09:
		return BREAKDOWN_SLEEP;
	}
	return BREAKDOWN_OTHER;
}

/* enum thd_wait_type, part of the server's interface for plugins. */
INLINE __u32 breakdown_mysql(__u32 type)
{
	switch (type) {
	case 1:			/* THD_WAIT_SLEEP */
		return BREAKDOWN_SLEEP;
	case 2:			/* DISKIO */
		return BREAKDOWN_DISK;
	case 3: case 4: case 5: case 6: case 7:	/* of rows, global, of metadata, tables, users */
		return BREAKDOWN_LOCK;
	case 9: case 10:	/* GROUP_COMMIT, SYNC */
		return BREAKDOWN_FSYNC;
	case 11:		/* NET */
		return BREAKDOWN_NETWORK;
	}
	return 0;
}

/* The system call that the thread at hand is in; what @task is, is the caller's to know. */
INLINE __u32 breakdown_call(const char *task)
{
	const char *stack = 0, *regs;
	__u64 call = BREAKDOWN_NO_CALL;

	if (VALUE(task_helper)) {
		regs = (const char *)bpf_task_pt_regs(bpf_get_current_task_btf());
	} else {
		bpf_probe_read_kernel(&stack, sizeof(stack), task + VALUE(task_stack));
		regs = stack + VALUE(stack_regs);
	}
	bpf_probe_read_kernel(&call, sizeof(call), regs + VALUE(regs_call));
	return (__u32)call;
}

/* What the thread at hand, which leaves its CPU, sleeps as; 0: it could go on. */
INLINE __u32 breakdown_state(void *ctx)
{
	const __u64 *args = ctx;
	__u32 state = 0;

	if (VALUE(record_state)) {
		bpf_probe_read_kernel(&state, sizeof(state), ctx + VALUE(record_state));
		return state & STATES;
	}
	if (!(args[0] & 1))
		bpf_probe_read_kernel(&state, sizeof(state),
				      (const void *)(args[1] + VALUE(task_state)));
	return state;
}

/* The number of a thread: at @record of the record, or of the task that is argument @arg. */
INLINE __u32 breakdown_tid(void *ctx, __u64 record, int arg)
{
	const __u64 *args = ctx;
	__u32 tid = 0;

	bpf_probe_read_kernel(&tid, sizeof(tid), record ? ctx + record :
			      (const void *)(args[arg] + VALUE(task_pid)));
	return tid;
}

/* What the server says, else what the system call says. */
INLINE __u32 breakdown_waits(struct event_breakdown *t, const char *task, __u32 state)
{
	__u32 call = t->call, *known, part = t->said, event = 0;
	unsigned char iowait = 0;

	if (!part && t->word && !bpf_probe_read_user(&event, sizeof(event), (const void *)t->word))
		part = breakdown_postgres(event);
	if (part)
		return part;
	known = call < BREAKDOWN_CALLS ? bpf_map_lookup_elem(calls, &call) : 0;
	part = known ? *known : BREAKDOWN_OTHER;
	if (part == BREAKDOWN_FSYNC || part == BREAKDOWN_DISK)
		return part;
	if (VALUE(task_iowait_mask))
		bpf_probe_read_kernel(&iowait, sizeof(iowait), task + VALUE(task_iowait));
	if (iowait & VALUE(task_iowait_mask))
		return BREAKDOWN_DISK;
	/*
	 * read() and write() of a file; those of a socket can be interrupted. And page faults, of
	 * which a record does not say that they wait for it.
	 */
	if (state & STATE_UNINTERRUPTIBLE &&
	    (part == BREAKDOWN_NETWORK || (VALUE(record_state) && !known)))
		return BREAKDOWN_DISK;
	return part;
}

INLINE void breakdown_spend(struct event_breakdown *t, __u64 now)
{
	__u32 doing = t->doing;

	if (doing < BREAKDOWN_PARTS && now > t->since_ns)
		t->ns[doing] += now - t->since_ns;
	t->since_ns = now;
}

/* A wait is over: it is added to those in the same system call. */
INLINE void breakdown_waited(struct event_breakdown *t, __u64 now)
{
	__u32 call = t->call;
	int i;

	ROLLED
	for (i = 0; i < BREAKDOWN_WAITS - 1; i++)
		if (!t->waits[i].count || t->waits[i].call == call)
			break;
	/* For the verifier, which no longer knows. */
	i &= BREAKDOWN_WAITS - 1;
	t->waits[i].call = i == BREAKDOWN_WAITS - 1 ? BREAKDOWN_OTHERS : call;
	t->waits[i].count++;
	t->waits[i].ns += now - t->since_ns;
}

INLINE int breakdown_is_waiting(const struct event_breakdown *t)
{
	return t->doing != BREAKDOWN_CPU && t->doing != BREAKDOWN_RUNQUEUE;
}

/*
 * Whether what thread @t does is of its statement. Where the server tells of a statement as it
 * ends, the next one in the packet is taken to begin there: a thread may then wait for its client,
 * or in a pool for work.
 */
INLINE int breakdown_is_inside(const struct event_breakdown *t, const struct session *session)
{
	const struct event_statement *s = &session->s;
	__u32 between = SESSION_LATE | STATEMENT_COMPLETED;

	if (s->start_ns != t->start_ns || !(s->flags & SESSION_OPEN) ||
	    s->flags & SESSION_REPLICATION)
		return 0;
	/* A Sync is waited for. */
	if (s->completed_ns && s->completed_ns <= t->since_ns)
		return 0;
	return (s->flags & between) != between || t->doing == BREAKDOWN_DISK || t->doing == BREAKDOWN_FSYNC ||
	       t->doing == BREAKDOWN_LOCK || t->doing == BREAKDOWN_SLEEP;
}

/* Counts or sends what it did, if that is wanted. */
static __attribute__((noinline)) void breakdown_count(void *ctx, struct event_breakdown *t,
						      __u64 now)
{
	struct session *session;
	struct event_wait wait = { .type = EVENT_WAIT };

	if (now <= t->since_ns || now - t->since_ns < VALUE(threshold_ns) ||
	    (t->doing != VALUE(wait_part) &&
	     !(breakdown_is_waiting(t) && t->call == VALUE(wait_call))))
		return;
	session = session_find(t->session);
	if (!session || !breakdown_is_inside(t, session))
		return;
	if (VALUE(stat_unit_ns)) {
		stat_count(session, now - t->since_ns, session->s.flags & SESSION_LATE);
		return;
	}
	wait.target_id = t->target_id;
	wait.pid = t->pid;
	wait.start_ns = t->start_ns;
	wait.ns = now - t->since_ns;
	send(ctx, &wait, sizeof(wait));
}

/* It does something else from now on. */
static __attribute__((noinline)) void breakdown_turn(void *ctx, struct event_breakdown *t,
						     __u64 now,
						     __u32 doing)
{
	if (VALUE(want_waits))
		breakdown_count(ctx, t, now);
	else if (breakdown_is_waiting(t) && now > t->since_ns)
		breakdown_waited(t, now);
	breakdown_spend(t, now);
	t->doing = doing;
}

INLINE __u32 *breakdown_slot(__u32 tid)
{
	__u32 slot = tid & (BREAKDOWN_SLOTS - 1);

	return bpf_map_lookup_elem(active, &slot);
}

/* That of a thread which runs a statement. Most do not, which an array tells at a tenth of the cost. */
INLINE struct event_breakdown *breakdown_thread(__u32 tid)
{
	__u32 *running = breakdown_slot(tid);
	struct event_breakdown *t = running && *running ? bpf_map_lookup_elem(threads, &tid) : 0;

	return t && t->start_ns ? t : 0;
}

/* That of the thread at hand. */
static __attribute__((noinline)) struct event_breakdown *breakdown_current(void)
{
	return breakdown_thread((__u32)bpf_get_current_pid_tgid());
}

INLINE void breakdown_stop(struct event_breakdown *t, __u32 tid)
{
	__u32 *running = breakdown_slot(tid);

	t->start_ns = 0;
	if (running)
		__sync_fetch_and_add(running, -1);
}

/* A counter of the kernel's, @offset bytes from @task's beginning; 0: there is none. */
static __attribute__((noinline)) void use_count(struct event_breakdown *t, __u64 sign, __u64 task,
						__u64 offset, __u32 which)
{
	__u64 now;

	which &= 7;	/* for the verifier */
	if (!offset || bpf_probe_read_kernel(&now, sizeof(now), (const void *)(task + offset)))
		return;
	t->use[which] += sign * now;
	t->used |= 1u << which;
}

static __attribute__((noinline)) __u64 use_word(__u64 address)
{
	__u64 word = 0;

	bpf_probe_read_kernel(&word, sizeof(word), (const void *)address);
	return word;
}

/*
 * The most pages that the process's address space ever had, as VmPeak in /proc/PID/status, without
 * what is mapped now and not its own to write: the server's shared memory, libraries. Resident
 * memory would grow by each shared buffer that is touched.
 */
static __attribute__((noinline)) void use_peak(struct event_breakdown *t, __u64 sign, __u64 task)
{
	__u64 mm = use_word(task + VALUE(task_mm)), peak = use_word(mm + VALUE(mm_hiwater));
	__u64 total = use_word(mm + VALUE(mm_total));

	if (!mm)
		return;
	peak = (peak > total ? peak : total) - total + use_word(mm + VALUE(mm_data));
	t->use[USE_PEAK_GROWTH] += sign * peak;
	t->used |= 1u << USE_PEAK_GROWTH;
}

/* Adds what the kernel and the server have counted of the thread to ->use, or with -1 takes it away. */
static __attribute__((noinline)) void use_read(struct event_breakdown *t, __u64 sign)
{
	__u64 task = bpf_get_current_task(), now[USE_BUFFERS];

	use_count(t, sign, task, VALUE(task_read_bytes), USE_READ_BYTES);
	use_count(t, sign, task, VALUE(task_write_bytes), USE_WRITE_BYTES);
	use_count(t, sign, task, VALUE(task_syscr), USE_READ_CALLS);
	use_count(t, sign, task, VALUE(task_syscw), USE_WRITE_CALLS);
	use_count(t, sign, task, VALUE(task_min_flt), USE_MINOR_FAULTS);
	use_count(t, sign, task, VALUE(task_maj_flt), USE_MAJOR_FAULTS);
	/* Threads share their memory. */
	if (t->leader && VALUE(task_mm))
		use_peak(t, sign, task);
	if (t->buffers && !bpf_probe_read_user(now, sizeof(now), (const void *)t->buffers)) {
		ROLLED
		for (int i = 0; i < USE_BUFFERS; i++)
			t->use[USE_SHARED_HIT + i] += sign * now[i];
		t->used |= ((1u << USE_BUFFERS) - 1) << USE_SHARED_HIT;
	}
	if (t->wal && !bpf_probe_read_user(now, USE_WALS * sizeof(__u64), (const void *)t->wal)) {
		ROLLED
		for (int i = 0; i < USE_WALS; i++)
			t->use[USE_WAL_RECORDS + i] += sign * now[i];
		t->used |= ((1u << USE_WALS) - 1) << USE_WAL_RECORDS;
	}
}

INLINE void use_largest(__u64 *largest, __u64 value)
{
	if (value > *largest)
		*largest = value;
}

/* A sort is freed, by the statement that it is of, not by the one after it. */
INLINE void use_sorted(struct event_breakdown *t, int external, __u64 space)
{
	if (!t->use[USE_SORTS])
		return;
	t->sorted++;
	if (!external) {
		use_largest(&t->use[USE_SORT_BYTES], space * 1024);
		return;
	}
	t->use[USE_SORTS_EXTERNAL]++;
	t->use[USE_SORT_BLOCKS] += space;
}

INLINE __u32 *breakdown_parallel(__u64 leader)
{
	__u32 slot = (leader ^ leader >> SESSION_PID_SHIFT) & (BREAKDOWN_LEADERS - 1);

	return bpf_map_lookup_elem(parallel, &slot);
}

/* A worker has ended: its leader's statement, which waits for that, finds what it did. */
static __attribute__((noinline)) void breakdown_fold(struct event_breakdown *t)
{
	struct breakdown_workers none = {}, *workers_of;
	__u32 *any = breakdown_parallel(t->leader);

	bpf_map_update_elem(workers, &t->leader, &none, BPF_NOEXIST);
	workers_of = bpf_map_lookup_elem(workers, &t->leader);
	if (!workers_of || !any)
		return;
	ROLLED
	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		__sync_fetch_and_add(&workers_of->ns[i], t->ns[i]);
	/* Of two workers that end at once, one's largest sort may be passed over. */
	use_largest(&workers_of->use[USE_SORT_BYTES - USE_SORTS], t->use[USE_SORT_BYTES]);
	ROLLED
	for (int i = 0; i < USE_SORTINGS; i++)
		if (i != USE_SORT_BYTES - USE_SORTS)
			__sync_fetch_and_add(&workers_of->use[i], t->use[USE_SORTS + i]);
	__sync_fetch_and_add(&workers_of->count, 1);
	*any = 1;
}

/* What the workers of a statement did, of which there are to be none when it begins. */
static __attribute__((noinline)) void breakdown_gather(struct event_breakdown *t)
{
	__u32 *any = t->leader ? breakdown_parallel(t->leader) : 0;
	struct breakdown_workers *workers_of;

	if (!any || !*any)
		return;
	workers_of = bpf_map_lookup_elem(workers, &t->leader);
	if (!workers_of)
		return;
	t->workers = *workers_of;
	bpf_map_delete_elem(workers, &t->leader);
}

INLINE __u64 breakdown_leader(void *ctx, __u64 pid)
{
	__u64 family = arg_family(ctx);

	return family ? family ^ pid << SESSION_PID_SHIFT : 0;
}

static __attribute__((noinline)) struct event_breakdown *breakdown_create(__u32 tid)
{
	__u32 zero = 0;
	struct event_breakdown *zeros = bpf_map_lookup_elem(no_thread, &zero);

	if (!zeros || bpf_map_update_elem(threads, &tid, zeros, BPF_NOEXIST)) {
		count(LOST_TABLE_FULL);
		return 0;
	}
	return bpf_map_lookup_elem(threads, &tid);
}

/* The thread at hand begins with something that is looked at, at @now. */
static __attribute__((noinline)) struct event_breakdown *breakdown_start(void *ctx, __u64 now)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct event_breakdown *t = bpf_map_lookup_elem(threads, &tid);
	__u32 *running = breakdown_slot(tid);

	t = t ? t : breakdown_create(tid);
	if (!t || !running)
		return 0;
	if (!t->start_ns)
		__sync_fetch_and_add(running, 1);
	t->start_ns = t->since_ns = now;
	t->doing = BREAKDOWN_CPU;
	t->call = (__u32)VALUE(call_none);
	t->said = 0;
	t->used = t->sorted = 0;
	__builtin_memset(t->ns, 0, sizeof(t->ns) + sizeof(t->waits) + sizeof(t->phases));
	__builtin_memset(&t->use[USE_SORTS], 0, USE_SORTINGS * sizeof(__u64));
	t->workers.count = 0;
	t->word = arg_wait_event(ctx);
	return t;
}

/* The thread at hand begins statement @s. */
static __attribute__((noinline)) void breakdown_begin(void *ctx, struct event_statement *s,
						      __u64 session)
{
	struct event_breakdown *t = breakdown_start(ctx, s->start_ns);

	if (!t)
		return;
	t->type = EVENT_BREAKDOWN;
	t->target_id = s->target_id;
	t->pid = s->pid;
	t->session = session;
	t->leader = breakdown_leader(ctx, arg_self(ctx));
	/* Those of one that was not seen to begin. */
	breakdown_gather(t);
	t->workers.count = 0;
	if (!VALUE(want_use))
		return;
	__builtin_memset(t->use, 0, sizeof(t->use));
	t->buffers = arg_buffers(ctx);
	t->wal = arg_wal(ctx);
	if (VALUE(want_bytes))
		t->used = 1u << USE_SENT | 1u << USE_RECEIVED;
	use_read(t, -1ULL);
}

/* A process that serves no client begins with a statement's text: a parallel worker, maybe. */
static __attribute__((noinline)) void breakdown_work(void *ctx)
{
	struct event_breakdown *t;

	if ((int)arg_worker(ctx) < 0 || !arg_leader(ctx))
		return;
	t = breakdown_start(ctx, bpf_ktime_get_ns());
	if (!t)
		return;
	t->worker = 1;
	t->session = 0;
	t->leader = breakdown_leader(ctx, arg_leader(ctx));
}

/* Of those inside one another, as of a function's statements, the outermost counts. */
INLINE void phase_begin(struct event_breakdown *t, __u32 which)
{
	struct breakdown_phase *phase = &t->phases[which & (PHASES - 1)];

	if (phase->depth++)
		return;
	phase->since_ns = bpf_ktime_get_ns();
	if (!phase->first_ns)
		phase->first_ns = phase->since_ns;
}

INLINE void phase_end(struct breakdown_phase *phase, __u64 now)
{
	phase->depth = 0;
	if (now > phase->since_ns)
		phase->ns += now - phase->since_ns;
}

/*
 * What it used since use_read() began. A thread that ends has no memory any more where the kernel
 * tells of it late (before 6.16): what cannot be read then is not known.
 */
INLINE void use_end(struct event_breakdown *t)
{
	__u32 known = t->used;

	t->used &= 1u << USE_SENT | 1u << USE_RECEIVED;
	use_read(t, 1);
	t->used &= known;
}

/* It ended at @end_ns: what its time was is sent where it is @wanted. */
static __attribute__((noinline)) void breakdown_end(void *ctx, struct event_statement *s,
						    __u64 end_ns,
						    int wanted)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct event_breakdown *t = breakdown_thread(tid);

	/* Not seen to begin, or another thread began it. */
	if (!t || t->start_ns != s->start_ns)
		return;
	if (wanted) {
		t->tid = s->tid;
		/* It runs; but that it was woken, and ran, may have been missed. */
		breakdown_turn(ctx, t, end_ns, BREAKDOWN_CPU);
		/* An error has left them. */
		ROLLED
		for (int i = 0; i < PHASES; i++)
			if (t->phases[i].depth)
				phase_end(&t->phases[i], end_ns);
		if (VALUE(want_use))
			use_end(t);
	}
	breakdown_gather(t);
	if (wanted && !VALUE(want_waits))
		send(ctx, t, sizeof(*t));
	breakdown_stop(t, tid);
}

/* The thread at hand ends. */
INLINE void breakdown_exit(void *ctx, __u32 tid)
{
	struct event_breakdown *t = breakdown_thread(tid);

	if (t && t->worker) {
		breakdown_turn(ctx, t, bpf_ktime_get_ns(), BREAKDOWN_CPU);
		breakdown_fold(t);
	}
	if (t)
		breakdown_stop(t, tid);
	bpf_map_delete_elem(threads, &tid);
}

#endif
