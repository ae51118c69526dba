/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The breakdown of one statement: the accounting of its thread from start to end, its phases, and
 * its parallel workers. Map "threads" holds the record that is sent just before the statement's.
 */
#ifndef BPF_BREAKDOWN_H
#define BPF_BREAKDOWN_H

#include "bpf/resource.h"
#include "bpf/wait.h"

ARGUMENT(wait_event);	/* address of the server's current wait event; 0: none */
ARGUMENT(stage);	/* .. instead, of the pointer to the name of its stage; 0: none .. */
ARGUMENT(stage_from);	/* .. and from where that is counted */
ARGUMENT(family);	/* address common to a server and its children; 0: no parallel workers */
ARGUMENT(commit);	/* addresses, see wait_is_commit(); 0: none */
ARGUMENT(group_commit);
ARGUMENT(commit_log);
ARGUMENT(self);		/* PID as the server sees itself */
ARGUMENT(buffers);	/* addresses of the server's counters, see enum use; 0: none */
ARGUMENT(wal);
ARGUMENT(io_method);	/* not 0: other threads, or the kernel, read for the server's */
ARGUMENT(phase);	/* enum phase */

CONSTANT(want_breakdown);
CONSTANT(replication);	/* event_breakdown.replication */
CONSTANT(call_none);	/* BREAKDOWN_NO_CALL, or BREAKDOWN_OTHERS if system calls are not traced */

MAP(no_thread);		/* array of one: a struct event_breakdown of zeros */
MAP(workers);		/* hash: event_breakdown.leader → struct breakdown_workers, ended ones */
MAP(parallel);		/* array: event_breakdown.leader % BREAKDOWN_LEADERS → u32: any ended */

INLINE __u32 *workers_any(__u64 leader)
{
	__u32 slot = leader >> 32 & (BREAKDOWN_LEADERS - 1);

	return bpf_map_lookup_elem(parallel, &slot);
}

/* Add the breakdown of a parallel worker that ends to the sum of its leader, which waits for it. */
static __attribute__((noinline)) void workers_add(struct event_breakdown *t)
{
	struct breakdown_workers none = {}, *workers_of;
	__u32 *any = workers_any(t->leader);

	bpf_map_update_elem(workers, &t->leader, &none, BPF_NOEXIST);
	workers_of = bpf_map_lookup_elem(workers, &t->leader);
	if (!workers_of || !any)
		return;
	NO_UNROLL
	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		__sync_fetch_and_add(&workers_of->ns[i], t->ns[i]);
	/* Not atomic: of two workers that end at once, one's largest sort may be missed. */
	use_largest(&workers_of->use[USE_SORT_BYTES - USE_SORTS], t->use[USE_SORT_BYTES]);
	NO_UNROLL
	for (int i = 0; i < USE_SORTINGS; i++)
		if (i != USE_SORT_BYTES - USE_SORTS)
			__sync_fetch_and_add(&workers_of->use[i], t->use[USE_SORTS + i]);
	__sync_fetch_and_add(&workers_of->count, 1);
	*any = 1;
}

/* Move the sum of the ended workers of thread @t, if there are any, to its breakdown. */
static __attribute__((noinline)) void workers_take(struct event_breakdown *t)
{
	__u32 *any = t->leader ? workers_any(t->leader) : 0;
	struct breakdown_workers *workers_of;

	if (!any || !*any)
		return;
	workers_of = bpf_map_lookup_elem(workers, &t->leader);
	if (!workers_of)
		return;
	t->workers = *workers_of;
	bpf_map_delete_elem(workers, &t->leader);
}

/*
 * Return the key of map "workers" for the process that its server knows as @pid; 0: none. Both
 * numbers are values of the traced process. The user ID is not, and the secret factors keep a
 * process from choosing numbers that yield the key of another user's process.
 */
INLINE __u64 workers_key(void *ctx, __u64 pid)
{
	__u64 family = arg_family(ctx);

	if (!family)
		return 0;
	return family * VALUE(secret) +
	       (pid << 32 | (__u32)bpf_get_current_uid_gid()) * VALUE(other_secret);
}

/* Of nested phases, such as those of a function's statements, the outermost counts. */
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

static __attribute__((noinline)) struct event_breakdown *breakdown_create(__u32 tid)
{
	__u32 zero = 0, number = owner_current();
	struct event_breakdown *zeros = bpf_map_lookup_elem(no_thread, &zero);

	if (!zeros || !owner_may_add_thread(number) ||
	    bpf_map_update_elem(threads, &tid, zeros, BPF_NOEXIST)) {
		lost_at(VALUE(target_id), number, LOST_TABLE_FULL);
		return 0;
	}
	owner_entries(number, OWNER_THREADS, 1);
	return bpf_map_lookup_elem(threads, &tid);
}

/* Start the accounting of the current thread at @now. Return its breakdown, or NULL. */
static __attribute__((noinline)) struct event_breakdown *breakdown_start(void *ctx, __u64 now)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct event_breakdown *t = bpf_map_lookup_elem(threads, &tid);
	__u32 *running = wait_active(tid);

	t = t ? t : breakdown_create(tid);
	if (!t || !running)
		return 0;
	if (!t->start_ns)
		__sync_fetch_and_add(running, 1);
	t->head = event_head(EVENT_BREAKDOWN);
	t->start_ns = t->since_ns = now;
	t->part = BREAKDOWN_CPU;
	t->call = (__u32)VALUE(call_none);
	t->announced = 0;
	t->argument = t->interrupted_ns = 0;
	t->used = t->sorted = 0;
	__builtin_memset(t->ns, 0, sizeof(t->ns) + sizeof(t->waits) + sizeof(t->phases));
	__builtin_memset(&t->use[USE_SORTS], 0, USE_SORTINGS * sizeof(__u64));
	t->workers.count = 0;
	t->wait_event = arg_wait_event(ctx);
	t->stage = arg_stage(ctx);
	t->stage_from = arg_stage_from(ctx);
	t->replication = (__u32)VALUE(replication);
	t->commit[0] = arg_commit(ctx);
	t->commit[1] = arg_group_commit(ctx);
	t->commit[2] = arg_commit_log(ctx);
	return t;
}

/* Start the breakdown of statement @s, which the current thread begins for session @key. */
static __attribute__((noinline)) void breakdown_begin(void *ctx, struct event_statement *s,
						      __u64 key)
{
	struct event_breakdown *t = breakdown_start(ctx, s->start_ns);

	if (!t)
		return;
	t->target_id = s->target_id;
	t->pid = s->pid;
	t->session = key;
	t->leader = workers_key(ctx, arg_self(ctx));
	/* Discard the workers of a statement whose start was missed. */
	workers_take(t);
	t->workers.count = 0;
	if (!VALUE(want_use))
		return;
	t->buffers = arg_buffers(ctx);
	t->wal = arg_wal(ctx);
	use_begin(t);
	if (arg_io_method(ctx))
		t->used &= ~(1u << USE_READ_BYTES);
}

/* End the breakdown of statement @s at @end_ns, and send it if it is @wanted. */
static __attribute__((noinline)) void breakdown_end(void *ctx, struct event_statement *s,
						    __u64 end_ns, int wanted)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct event_breakdown *t = breakdown_thread(tid);

	/* Its start was missed, or was in another thread. */
	if (!t || t->start_ns != s->start_ns)
		return;
	/* Asked once: the limit may change, and the flag must agree with what is sent. */
	if (wanted && !limit_permits_why(s->target_id, s->start_ns)) {
		s->flags |= STATEMENT_NO_WHY;
		wanted = 0;
	}
	if (wanted) {
		t->tid = s->tid;
		breakdown_runs(ctx, t, end_ns);
		/* An error leaves phases open. */
		NO_UNROLL
		for (int i = 0; i < PHASES; i++)
			if (t->phases[i].depth)
				phase_end(&t->phases[i], end_ns);
		if (VALUE(want_use))
			use_end(t);
	}
	workers_take(t);
	/* The statement, which follows, is a loss if it does not fit either; this is none then. */
	if (wanted && !VALUE(want_waits) && output(ctx, t, sizeof(*t)))
		s->flags |= STATEMENT_NO_WHY;
	breakdown_stop(t, tid);
}

/* Stop the accounting of statement @s at @now: its client pauses. */
INLINE void breakdown_pause(void *ctx, const struct event_statement *s, __u64 now)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct event_breakdown *t = breakdown_thread(tid);

	if (!t || t->start_ns != s->start_ns)
		return;
	breakdown_runs(ctx, t, now);
	/* Until it continues, this marks it as the breakdown of @s. */
	t->since_ns = t->start_ns;
	breakdown_stop(t, tid);
}

/* Continue the accounting of statement @s at @now. */
static __attribute__((noinline)) void breakdown_resume(const struct event_statement *s, __u64 now)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct event_breakdown *t = bpf_map_lookup_elem(threads, &tid);
	__u32 *running = wait_active(tid);

	if (!t || !running || t->start_ns || t->since_ns != s->start_ns)
		return;
	__sync_fetch_and_add(running, 1);
	t->start_ns = s->start_ns;
	t->since_ns = now;
	t->call = (__u32)VALUE(call_none);
}

/* Drop the breakdown of thread @tid, which exits or loses this ID. */
INLINE void breakdown_exit(void *ctx, __u32 tid)
{
	struct event_breakdown *t = bpf_map_lookup_elem(threads, &tid);
	__u32 number;

	if (!t)
		return;
	number = t->head.owner;
	if (t->start_ns && t->worker) {
		breakdown_runs(ctx, t, bpf_ktime_get_ns());
		workers_add(t);
	}
	if (t->start_ns)
		breakdown_stop(t, tid);
	if (!bpf_map_delete_elem(threads, &tid))
		owner_entries(number, OWNER_THREADS, -1);
}

#endif
