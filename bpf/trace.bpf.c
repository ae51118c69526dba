// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any probe of any file: a hit is sent or counted, with the fields requested. The filter and the
 * fields are functions that the loader emits from the user's expressions.
 */
#include "bpf/latency.h"
#include "bpf/wanted.h"

#define UNREAD		15	/* EXPRESSION_UNREAD of usdt/expression.h */
#define VARIABLES	(UNREAD + 1)

#undef ARGUMENT
/* A failure to read memory sets bits of @unread. */
#define ARGUMENT(name)	extern __u64 arg_##name(void *ctx, __u64 *unread)

ARGUMENT(1);
ARGUMENT(2);
ARGUMENT(3);
ARGUMENT(4);
ARGUMENT(5);
ARGUMENT(6);
ARGUMENT(7);
ARGUMENT(8);
ARGUMENT(9);
ARGUMENT(10);
ARGUMENT(11);
ARGUMENT(12);
ARGUMENT(retval);
ARGUMENT(caller);	/* at the start of a function: the return address; else 0 */

/*
 * Functions of the variables, which set a bit of v[UNREAD] if the value is unknown. trace_filter:
 * not 0: the hit is wanted.
 */
extern __u64 trace_filter(__u64 *variables);
extern __u64 trace_field_0(__u64 *variables);
extern __u64 trace_field_1(__u64 *variables);
extern __u64 trace_field_2(__u64 *variables);
extern __u64 trace_field_3(__u64 *variables);
extern __u64 trace_field_4(__u64 *variables);
extern __u64 trace_field_5(__u64 *variables);
extern __u64 trace_field_6(__u64 *variables);
extern __u64 trace_field_7(__u64 *variables);
extern __u64 trace_field_8(__u64 *variables);
extern __u64 trace_field_9(__u64 *variables);
extern __u64 trace_field_10(__u64 *variables);
extern __u64 trace_field_11(__u64 *variables);

CONSTANT(probe_id);
CONSTANT(fields);	/* number of fields */
CONSTANT(texts);	/* bit n: field n is the address of a string */
CONSTANT(text_size);	/* room for a string, a multiple of 8 */
CONSTANT(record_size);
CONSTANT(histogram);	/* count by powers of two, HISTOGRAM_… */
CONSTANT(latency);	/* the hit ends a latency */
CONSTANT(stack);	/* send the user stack */
CONSTANT(is_signed);	/* the first field is signed */

MAP(probe_hits);	/* hash: struct probe_hit_key → u64 */
MAP(record);		/* per-CPU array of one: with perf_buffers, room for a record */

/* Read the arguments. Return the process and thread as the tool sees them; 0: not wanted. */
INLINE __u64 hit_wanted(void *ctx, __u64 *v)
{
	__u64 id = id_seen(bpf_get_current_pid_tgid());
	__u32 pid = id >> 32;

	if (!id || !pid_wanted(pid))
		return 0;
	v[UNREAD] = 0;
	v[0] = arg_1(ctx, &v[UNREAD]);
	v[1] = arg_2(ctx, &v[UNREAD]);
	v[2] = arg_3(ctx, &v[UNREAD]);
	v[3] = arg_4(ctx, &v[UNREAD]);
	v[4] = arg_5(ctx, &v[UNREAD]);
	v[5] = arg_6(ctx, &v[UNREAD]);
	v[6] = arg_7(ctx, &v[UNREAD]);
	v[7] = arg_8(ctx, &v[UNREAD]);
	v[8] = arg_9(ctx, &v[UNREAD]);
	v[9] = arg_10(ctx, &v[UNREAD]);
	v[10] = arg_11(ctx, &v[UNREAD]);
	v[11] = arg_12(ctx, &v[UNREAD]);
	v[12] = arg_retval(ctx, &v[UNREAD]);
	v[13] = pid;
	v[14] = (__u32)id;
	if (!trace_filter(v)) {
		if (v[UNREAD] & HIT_FILTER_UNKNOWN)
			lost(LOST_UNDECIDED);
		return 0;
	}
	return id;
}

/* Append field @n, and its string at @at. The verifier sees constants only. */
#define FIELD(n)                                                                            \
	if (VALUE(fields) > (n)) {                                                          \
		value = trace_field_##n(v);                                                 \
		event->values[n] = value;                                                   \
		if (VALUE(texts) >> (n) & 1) {                                              \
			*(__s64 *)at = bpf_probe_read_user_str(at + 8, VALUE(text_size),    \
							       (const void *)value);        \
			at += 8 + VALUE(text_size);                                         \
		}                                                                           \
	}

/* Return memory for a record that begins with @head, or NULL. */
INLINE struct event_probe_hit *record_begin(struct event_head head)
{
	struct event_probe_hit *event;
	__u32 zero = 0;

	if (!VALUE(perf_buffers))
		return output_reserve(head, VALUE(record_size));
	event = bpf_map_lookup_elem(record, &zero);
	if (event)
		event->head = head;
	return event;
}

/*
 * Send the record of thread @id. Kernels without a ring buffer run this with preemption disabled.
 * If the fallback is forced on a newer one, another thread may have used the element meanwhile.
 */
INLINE void record_end(void *ctx, struct event_probe_hit *event, __u64 id)
{
	if (!VALUE(perf_buffers))
		bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	else if (READ_ONCE(event->tid) != (__u32)id ||
		 bpf_perf_event_output(ctx, ring, BPF_F_CURRENT_CPU, event, VALUE(record_size)))
		lost(LOST_RING_FULL);
	wake(ctx);
}

PROGRAM(hit_start)
{
	__u64 v[VARIABLES];

	if (hit_wanted(ctx, v))
		latency_begin(ctx);
	else
		latency_skip(ctx);
	return 0;
}

/* Forget the start of thread @tid, of two probes: another thread may get its ID. */
INLINE void start_forget(__u32 tid)
{
	struct latency_key key = { .tid = tid };

	latency_take(&key);
}

/* Raw tracepoint sched_process_exit */
PROGRAM(start_exit)
{
	start_forget((__u32)bpf_get_current_pid_tgid());
	return 0;
}

/* Raw tracepoint sched_process_exec(task, former TID): see thread_exec. */
PROGRAM(start_exec)
{
	start_forget((__u32)bpf_get_current_pid_tgid());
	start_forget((__u32)((const __u64 *)ctx)[1]);
	return 0;
}

PROGRAM(hit_send)
{
	__u64 latency = VALUE(latency) ? latency_end(ctx) : 0, v[VARIABLES], id, value;
	struct event_probe_hit *event;
	struct event_stack *stack;
	struct event_head head;
	char *at;

	if (VALUE(latency) && !latency)
		return 0;
	id = hit_wanted(ctx, v);
	if (!id)
		return 0;
	count(COUNT_STATEMENTS);
	head = event_head(EVENT_HIT);
	event = record_begin(head);
	if (!event) {
		lost_of(head.owner, LOST_RING_FULL);
		return 0;
	}
	event->probe_id = VALUE(probe_id);
	event->pid = id >> 32;
	event->tid = id;
	event->time_ns = bpf_ktime_get_ns();
	event->latency_ns = latency;
	bpf_get_current_comm(event->comm, sizeof(event->comm));
	at = (char *)event + sizeof(*event) + VALUE(fields) * 8;
	FIELD(0);
	FIELD(1);
	FIELD(2);
	FIELD(3);
	FIELD(4);
	FIELD(5);
	FIELD(6);
	FIELD(7);
	FIELD(8);
	FIELD(9);
	FIELD(10);
	FIELD(11);
	event->unknown = v[UNREAD];
	stack = (struct event_stack *)at;
	if (VALUE(stack)) {
		stack->caller = arg_caller(ctx, &v[UNREAD]);
		stack->bytes = bpf_get_stack(ctx, stack->addresses, sizeof(stack->addresses),
					     BPF_F_USER_STACK);
	}
	record_end(ctx, event, id);
	return 0;
}

PROGRAM(hit_count)
{
	__u64 latency = VALUE(latency) ? latency_end(ctx) : 0, v[VARIABLES], one = 1, *n;
	struct probe_hit_key key = { .probe_id = VALUE(probe_id) };
	__u32 owner;

	if ((VALUE(latency) && !latency) || !hit_wanted(ctx, v))
		return 0;
	count(COUNT_STATEMENTS);
	if (VALUE(histogram) == HISTOGRAM_LATENCY)
		key.value = latency / 1000;
	else if (VALUE(fields))
		key.value = trace_field_0(v);
	if (v[UNREAD] & HIT_FIELD_UNKNOWN(0)) {
		key.slot = HIT_UNKNOWN;
	} else if (VALUE(texts)) {
		key.value = !key.value ? HIT_NULL :
			    bpf_probe_read_user_str(key.text, sizeof(key.text),
						    (const void *)key.value) < 0 ?
			    HIT_UNREADABLE : 0;
	} else if (VALUE(histogram)) {
		key.slot = VALUE(is_signed) && (__s64)key.value < 0 ? HIT_NEGATIVE :
								      record_log2(key.value);
		key.value = 0;
	}
	owner = owner_current();
	n = bpf_map_lookup_elem(probe_hits, &key);
	if (!n && owner_may_add_group(owner) &&
	    !bpf_map_update_elem(probe_hits, &key, &one, BPF_NOEXIST)) {
		owner_entries(owner, OWNER_GROUPS, 1);
		return 0;
	}
	/* Another CPU added the key, or the table is full. */
	if (!n)
		n = bpf_map_lookup_elem(probe_hits, &key);
	if (n)
		__sync_fetch_and_add(n, 1);
	else
		lost_of(owner, LOST_TABLE_FULL);
	return 0;
}

char dual_license[] __attribute__((section("license"), used)) = "Dual BSD/GPL";
