// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any probe of any file: a hit is sent or counted, with the fields requested. The filter and the
 * fields are functions that the loader emits from the user's expressions.
 */
#include "bpf/latency.h"
#include "bpf/wanted.h"

/* As in usdt/expression.h. */
#define RETVAL		12
#define COMM		16
#define UNREAD		18
#define WORDS		19

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
CONSTANT(lengths);	/* bit n: the string of field n has at most as many bytes as field n - 1 */
CONSTANT(text_size);	/* room for a string, a multiple of 8 */
CONSTANT(record_size);
CONSTANT(histogram);	/* count by powers of two, HISTOGRAM_… */
CONSTANT(latency);	/* the hit ends a latency */
CONSTANT(stack);	/* send the user stack */
CONSTANT(is_signed);	/* the first field is signed */

MAP(probe_hits);	/* hash: struct probe_hit_key → u64 */
MAP(record);		/* per-CPU array of one: with perf_buffers, room for a record */

/*
 * Return @value, of which the verifier then knows nothing. Otherwise it follows each combination of
 * 12 reads that failed or not.
 */
INLINE __u64 forget(__u64 value, __u64 by)
{
	__asm__ volatile("%0 ^= %1\n\t%0 ^= %1" : "+r"(value) : "r"(by));
	return value;
}

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
	v[RETVAL] = arg_retval(ctx, &v[UNREAD]);
	v[UNREAD] = forget(v[UNREAD], id);
	v[RETVAL + 1] = pid;
	v[RETVAL + 2] = (__u32)id;
	v[RETVAL + 3] = (__u32)bpf_get_current_uid_gid();
	bpf_get_current_comm(&v[COMM], sizeof(((struct event_probe_hit *)0)->comm));
	if (!trace_filter(v)) {
		if (v[UNREAD] & HIT_FILTER_UNKNOWN)
			lost(LOST_UNDECIDED);
		return 0;
	}
	return id;
}

/*
 * Read the string at @from, of at most @most bytes, to @to, room for @size. Return the bytes read
 * and a NUL, or a negative errno. Without a NUL it may end where the memory does.
 */
INLINE __s64 text_read(char *to, __u64 size, __u64 from, __u64 most)
{
	__s64 n;

	most = (__u32)most;
	n = bpf_probe_read_user_str(to, at_most(most, size - 1) + 1, (const void *)from);
	if (n < 0 && !bpf_probe_read_user(to, at_most(most, size - 1), (const void *)from))
		n = at_most(most, size - 1) + 1;
	return n;
}

/* The maximum length of the string of field @n, if @before is the value before. */
#define MOST(n, before)	(VALUE(lengths) >> (n) & 1 ? (before) : ~0ULL)

/* Append field @n, and its string at @at. The verifier sees constants only. */
#define FIELD(n)                                                                            \
	if (VALUE(fields) > (n)) {                                                          \
		__u64 before = value;                                                       \
                                                                                            \
		value = trace_field_##n(v);                                                 \
		event->values[n] = value;                                                   \
		if (VALUE(texts) >> (n) & 1) {                                              \
			*(__s64 *)at = text_read(at + 8, VALUE(text_size), value,           \
						 MOST(n, before));                          \
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
	__u64 v[WORDS];

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
	__u64 latency = VALUE(latency) ? latency_end(ctx) : 0, v[WORDS], id, value = 0;
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
	__builtin_memcpy(event->comm, &v[COMM], sizeof(event->comm));
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

/* Set value @n of @key, and return the text behind it, if it is one. */
INLINE char *key_value(struct probe_hit_key *key, char *text, const __u64 *values, __u32 n)
{
	__u64 value = values[n];

	if (!n && VALUE(histogram)) {
		key->slot = key->unknown & 1 ? HIT_UNKNOWN :
			    VALUE(is_signed) && (__s64)value < 0 ? HIT_NEGATIVE :
								   record_log2(value);
	} else if (VALUE(texts) >> n & 1) {
		if (!value)
			key->values[n] = HIT_NULL;
		else if (text_read(text, PROBE_HIT_TEXT, value,
				   MOST(n, n ? values[n - 1] : 0)) < 0)
			key->values[n] = HIT_UNREADABLE;
		text += PROBE_HIT_TEXT;
	} else if (!(VALUE(lengths) >> (n + 1) & 1)) {
		key->values[n] = value;
	}
	return text;
}

/*
 * Count a hit of owner @owner. Return 0, or -1 if the table is full. A function of its own, as the
 * key and the variables do not fit into one stack frame beside that of an expression.
 */
static __attribute__((noinline)) int hit_add(const __u64 *values, __u64 unread, __u32 owner)
{
	struct probe_hit_key key = { .probe_id = VALUE(probe_id) };
	__u64 one = 1, *count;
	char *text = key.texts[0];

	key.unknown = unread / HIT_FIELD_UNKNOWN(0) & ((1 << PROBE_HIT_VALUES) - 1);
#pragma clang loop unroll(full)
	for (__u32 n = 0; n < PROBE_HIT_VALUES; n++)
		if (VALUE(fields) > n)
			text = key_value(&key, text, values, n);
	count = bpf_map_lookup_elem(probe_hits, &key);
	if (!count && owner_may_add_group(owner) &&
	    !bpf_map_update_elem(probe_hits, &key, &one, BPF_NOEXIST)) {
		owner_entries(owner, OWNER_GROUPS, 1);
		return 0;
	}
	/* Another CPU added the key, or the table is full. */
	if (!count)
		count = bpf_map_lookup_elem(probe_hits, &key);
	if (!count)
		return -1;
	__sync_fetch_and_add(count, 1);
	return 0;
}

/* Compute value @n. */
#define COUNTED(n)	(values[n] = VALUE(fields) > (n) ? trace_field_##n(v) : 0)

PROGRAM(hit_count)
{
	__u64 latency = VALUE(latency) ? latency_end(ctx) : 0;
	__u64 v[WORDS], values[PROBE_HIT_VALUES] = {};
	__u32 owner;

	if ((VALUE(latency) && !latency) || !hit_wanted(ctx, v))
		return 0;
	count(COUNT_STATEMENTS);
	if (VALUE(histogram) == HISTOGRAM_LATENCY)
		values[0] = latency / 1000;
	else
		COUNTED(0);
	COUNTED(1);
	COUNTED(2);
	COUNTED(3);
	COUNTED(4);
	COUNTED(5);
	COUNTED(6);
	owner = owner_current();
	if (hit_add(values, v[UNREAD], owner))
		lost_of(owner, LOST_TABLE_FULL);
	return 0;
}

char dual_license[] __attribute__((section("license"), used)) = "Dual BSD/GPL";
