/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bpf/session.h: what is counted of a statement whose start or end was missed, and the end of one
 * in a session that has become another process's. A hostile process causes that by closing a
 * session in one thread while another one uses it.
 */
#include <linux/bpf.h>
#include <string.h>

#include "tests/unit/check.h"

#pragma GCC diagnostic ignored "-Wunused-function"

/* Stand-ins for bpf/bpf.h. */
#define BPF_BPF_H
#define INLINE		static inline
#define ARGUMENT(name)	static __u64 arg_##name(void *ctx) { (void)ctx; return 0; } \
			struct argument_##name
#define CONSTANT(name)	static __u64 constant_##name __attribute__((unused))
#define VALUE(name)	constant_##name
#define MAP(name)	static char name[1] __attribute__((unused))
#define READ_ONCE(x)	(x)
#define WRITE_ONCE(x, value) ((x) = (value))
#define ATOMIC_ADD(p, n) ((void)(*(p) += (__typeof__(*(p)))(n)))
#define CLEAR(p)	memset(p, 0, sizeof(*(p)))
#define NO_UNROLL

static void *bpf_map_lookup_elem(void *map, const void *key);
static long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags);
static __u64 bpf_get_current_pid_tgid(void);

static long nothing(const void *first, ...)
{
	(void)first;
	return 0;
}

/* Volatile: the compiler is not to see that it reads nothing. */
static long (*volatile no_effect)(const void *first, ...) = nothing;
static long bpf_ringbuf_output(void *ring, void *data, __u64 size, __u64 flags);

#define bpf_map_delete_elem(...)               no_effect(NULL, __VA_ARGS__)
#define bpf_ktime_get_ns()			0
#define bpf_get_current_uid_gid()		1001
#define bpf_get_current_comm(...)              no_effect(NULL, __VA_ARGS__)
#define bpf_get_current_task()			0
#define bpf_get_current_task_btf()		NULL
#define bpf_task_pt_regs(...)                  (void *)no_effect(NULL, __VA_ARGS__)
#define bpf_probe_read_user(...)               no_effect(NULL, __VA_ARGS__)
#define bpf_probe_read_user_str(...)           no_effect(NULL, __VA_ARGS__)
#define bpf_probe_read_kernel(...)             no_effect(NULL, __VA_ARGS__)
#define bpf_perf_event_output(...)             no_effect(NULL, __VA_ARGS__)
#define bpf_get_ns_current_pid_tgid(...)       no_effect(NULL, __VA_ARGS__)
#define bpf_ringbuf_reserve(...)               (void *)no_effect(NULL, __VA_ARGS__)
#define bpf_ringbuf_submit(...)                no_effect(NULL, __VA_ARGS__)
#define bpf_ringbuf_discard(...)               no_effect(NULL, __VA_ARGS__)
#include "bpf/session.h"

static struct owner world_owner;
static struct grant world_grant;
static struct control world_control;
static __u64 world_counters[COUNTERS], current;
static unsigned int sent;
static struct stat_key keys[8];	/* of map "histogram" */
static __u64 counts[8], nkeys;

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	__u32 number;

	for (__u64 i = 0; map == histogram && i < nkeys; i++)
		if (!memcmp(&keys[i], key, sizeof(keys[i])))
			return &counts[i];
	memcpy(&number, key, sizeof(number));
	if (map == owners)
		return &world_owner;
	if (map == grants)
		return &world_grant;
	if (map == control)
		return &world_control;
	return map == counters && number < COUNTERS ? &world_counters[number] : NULL;
}

static long bpf_map_update_elem(void *map, const void *key, const void *value, __u64 flags)
{
	if (map != histogram)
		return 0;
	CHECK(flags == BPF_NOEXIST && nkeys < 8);
	memcpy(&keys[nkeys], key, sizeof(keys[0]));
	memcpy(&counts[nkeys++], value, sizeof(counts[0]));
	return 0;
}

static __u64 bpf_get_current_pid_tgid(void)
{
	return current << 32 | current;
}

static long bpf_ringbuf_output(void *map, void *data, __u64 size, __u64 flags)
{
	const struct event_statement *s = data;

	CHECK(map == ring && size == sizeof(*s) && flags == BPF_RB_NO_WAKEUP);
	CHECK(s->pid == current, "a record of process %u", s->pid);
	sent++;
	return 0;
}

/* End a statement of process 7 in a program that is run by process @pid. */
static void end_statement(__u32 pid)
{
	struct session session = { .tgid = 7 };

	session.s = (struct event_statement){ .pid = 7, .tid = 7, .flags = SESSION_OPEN,
					      .start_ns = 1000 };
	memset(&world_owner, 0, sizeof(world_owner));
	memset(world_counters, 0, sizeof(world_counters));
	sent = 0;
	current = pid;
	statement_end(NULL, &session, 5000);
}

static void own(void)
{
	end_statement(7);
	CHECK(sent == 1 && !world_counters[LOST_START_WITHOUT_END]);
}

static void of_another(void)
{
	end_statement(8);
	CHECK(!sent && world_counters[LOST_START_WITHOUT_END] == 1);
	CHECK(world_owner.uid == 1001 && world_owner.lost[LOST_START_WITHOUT_END] == 1);
}

/* Count the start of a session that was joined, of a user with @dropped steps. */
static void join(__u64 dropped)
{
	struct session session = { .s.flags = SESSION_JOINED };

	memset(&world_owner, 0, sizeof(world_owner));
	memset(world_counters, 0, sizeof(world_counters));
	world_owner.lost[LOST_TABLE_FULL] = dropped;
	session_joined(&session);
	session_joined(&session);
}

static void missed_start(void)
{
	join(0);
	CHECK(world_counters[COUNT_BOUNDARY] == 1 && !world_counters[LOST_END_WITHOUT_START]);
	CHECK(!world_owner.lost[LOST_END_WITHOUT_START]);
	join(1);
	CHECK(!world_counters[COUNT_BOUNDARY] && world_counters[LOST_END_WITHOUT_START] == 1);
	CHECK(world_owner.lost[LOST_END_WITHOUT_START] == 1);
}

/* Count the missed end of a statement that began at time 1000. */
static void miss(__u64 detach_ns)
{
	memset(&world_owner, 0, sizeof(world_owner));
	memset(world_counters, 0, sizeof(world_counters));
	world_control.detach_ns = detach_ns;
	statement_missed(&(struct event_statement){ .start_ns = 1000 });
}

static void missed_end(void)
{
	miss(0);
	CHECK(!world_counters[COUNT_BOUNDARY] && world_counters[LOST_START_WITHOUT_END] == 1);
	CHECK(world_owner.lost[LOST_START_WITHOUT_END] == 1);
	miss(1001);
	CHECK(world_counters[COUNT_BOUNDARY] == 1 && !world_counters[LOST_START_WITHOUT_END]);
	/* It began when detaching had begun: it is not counted, nor would it be if it had ended. */
	miss(1000);
	CHECK(!world_counters[COUNT_BOUNDARY] && !world_counters[LOST_START_WITHOUT_END]);
}

/* Durations are counted by engine: files come and go, and none has elements of its own. */
static void counted(void)
{
	struct session session = { .engine_number = 1 };

	constant_stat_unit_ns = 1000;
	constant_group_share = 8;
	for (__u32 file = 0; file < 100; file++) {
		session.s.target_id = file;
		stat_count(&session, 5000, 0);
	}
	session.engine_number = 2;
	stat_count(&session, 5000, 0);
	CHECK(nkeys == 2 && counts[0] == 100 && counts[1] == 1, "%u", (unsigned int)nkeys);
	CHECK(world_owner.entries[OWNER_GROUPS] == 2);
}

int main(void)
{
	RUN(own);
	RUN(of_another);
	RUN(missed_start);
	RUN(missed_end);
	RUN(counted);
	return check_done();
}
