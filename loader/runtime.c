// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loader/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "bpf/event.h"
#include "host/clock.h"
#include "host/limits.h"
#include "host/pid_namespace.h"
#include "loader/hazard.h"

#define RING_RECORDS	32	/* capacity of the buffer in records of maximum size, at least */
#define RING_LAG	16	/* programs learn what was received after this part of the buffer */
#define PERF_SHARE	4	/* a perf buffer has this part of the ring buffer's size */

/* Return whether one of the objects refers to @name. */
static bool runtime_refers(const struct runtime *rt, const char *name)
{
	for (size_t i = 0; i < rt->nobjects; i++) {
		const char *symbol;
		uint64_t at = 0;

		while ((symbol = object_undefined(&rt->objects[i], &at)))
			if (!strcmp(symbol, name))
				return true;
	}
	return false;
}

/* Return the value of @name, which is added if it is new; NULL if it is unknown to the objects. */
static struct object_value *runtime_value(struct runtime *rt, const char *name)
{
	for (size_t i = 0; i < rt->nvalues; i++)
		if (!strcmp(rt->values[i].name, name))
			return &rt->values[i];
	if (rt->nvalues == RUNTIME_VALUES || !runtime_refers(rt, name)) {
		rt->unknown = rt->unknown ? rt->unknown : name;
		return NULL;
	}
	rt->values[rt->nvalues] = (struct object_value){ .name = name };
	return &rt->values[rt->nvalues++];
}

void runtime_constant(struct runtime *rt, const char *name, uint64_t value)
{
	struct object_value *constant = runtime_value(rt, name);

	if (constant)
		constant->number = value;
}

static void runtime_set_map(struct runtime *rt, const char *name, int map)
{
	struct object_value *value = runtime_value(rt, name);

	if (!value)
		return;
	value->kind = OBJECT_MAP;
	value->map = map;
}

int runtime_map(const struct runtime *rt, const char *name)
{
	for (size_t i = 0; i < rt->nvalues; i++)
		if (rt->values[i].kind == OBJECT_MAP && !strcmp(rt->values[i].name, name))
			return rt->values[i].map;
	return -1;
}

int runtime_maps(struct runtime *rt, const struct map_def *maps, size_t n, struct error *error)
{
	for (size_t i = 0; i < n; i++) {
		struct map_def def = maps[i];
		int map;

		if (def.flags & RUNTIME_ALLOC) {
			def.flags &= ~RUNTIME_ALLOC;
			if (feature_has(&rt->features, FEATURE_TRACING_ALLOC))
				def.flags |= BPF_F_NO_PREALLOC;
		}
		if (rt->nmaps == RUNTIME_MAPS)
			return error_set(error, ERROR_TOO_MANY, -E2BIG, "maps", def.name);
		map = sys_map_create(&def);
		if (map < 0)
			return error_set(error, ERROR_MAP, map, def.name, NULL);
		rt->maps[rt->nmaps++] = map;
		runtime_set_map(rt, def.name, map);
	}
	return 0;
}

/* Open the objects of the configuration. Return 0, or -errno and the cause in @error. */
static int runtime_objects(struct runtime *rt, struct error *error)
{
	for (size_t i = 0; i < RUNTIME_OBJECTS && rt->config.objects[i].start; i++) {
		const struct runtime_object *from = &rt->config.objects[i];
		int err = object_open(&rt->objects[i], from->start,
				      (size_t)(from->end - from->start));

		if (err)
			return error_link(error, err, "the embedded object", NULL);
		rt->nobjects++;
	}
	return 0;
}

int runtime_open_offline(struct runtime *rt, const unsigned char *start, const unsigned char *end)
{
	const char *symbol;
	uint64_t at = 0;
	int err;

	*rt = (struct runtime){ .nobjects = 1 };
	err = object_open(&rt->objects[0], start, (size_t)(end - start));
	while (!err && (symbol = object_undefined(&rt->objects[0], &at)))
		runtime_constant(rt, symbol, 0);
	return err ? err : rt->unknown ? -E2BIG : 0;
}

/*
 * Find the PID namespace of /proc, to which the PIDs in records are converted. A kernel without PID
 * namespaces has no such file. Return 0, or -errno and the cause in @error.
 */
static int runtime_namespace(struct runtime *rt, struct error *error)
{
	int err = pid_namespace_own(&rt->pid_ns_dev, &rt->pid_ns_ino);

	if (err == -ENOENT) {
		rt->pid_ns_dev = rt->pid_ns_ino = 0;
		return 0;
	}
	if (err)
		return error_set(error, ERROR_PROC, err, NULL, NULL);
	if (!rt->pid_ns_ino || feature_has(&rt->features, FEATURE_NS_PID))
		return 0;
	return error_set(error, ERROR_NAMESPACE, -EOPNOTSUPP, NULL, NULL);
}

/* Probe for features now: that opens descriptors, and the maps may exhaust their limit. */
static void runtime_choose(struct runtime *rt)
{
	bool old_reads = !feature_has(&rt->features, FEATURE_READ_USER);

	for (size_t i = 0; i < rt->nobjects; i++)
		rt->objects[i].old_reads = old_reads;
	rt->perf_buffers = !feature_has(&rt->features, FEATURE_RINGBUF);
	rt->record_limit = rt->perf_buffers ? PERFBUF_RECORD_MAX : UINT32_MAX;
	rt->method = attach_choose(&rt->features);
	rt->uncounted = !feature_has(&rt->features, FEATURE_REF_CTR);
	hazard_exclude(&rt->features);
}

/*
 * Set the factors that keep the keys of sessions and owners secret: the random bytes that the
 * kernel gives to each program. Unlike getrandom(2), they are there early in the boot, too.
 */
static void runtime_secrets(struct runtime *rt)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	uint64_t secrets[2] = { 0 };

	if (random)
		memcpy(secrets, random, sizeof(secrets));
	rt->secret = secrets[0] | 1;
	runtime_constant(rt, "constant_secret", rt->secret);
	if (runtime_refers(rt, "constant_other_secret"))
		runtime_constant(rt, "constant_other_secret", secrets[1] | 1);
}

/* Create the maps of owners. Return 0, or -errno and the cause in @error. */
static int runtime_owners(struct runtime *rt, struct error *error)
{
	static const struct map_def maps[] = {
		{ "owners", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct owner), OWNERS, 0 },
		{ "grants", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct grant), OWNERS, 0 },
		{ "losses", BPF_MAP_TYPE_HASH, sizeof(struct loss_key), sizeof(struct losses),
		  LOSSES_MAX, RUNTIME_ALLOC },
	};
	size_t n = sizeof(maps) / sizeof(maps[0]) - !runtime_refers(rt, "losses");
	int err;

	rt->owners = calloc(1, sizeof(*rt->owners));
	if (!rt->owners)
		return error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	err = runtime_maps(rt, maps, n, error);
	rt->owners->losses = runtime_map(rt, "losses");
	rt->owners->map = runtime_map(rt, "owners");
	rt->owners->grants = runtime_map(rt, "grants");
	return err;
}

int runtime_open(struct runtime *rt, const struct runtime_config *config, struct error *error)
{
	int err;

	*rt = (struct runtime){ .config = *config, .counters = -1, .ahead_ns = clock_ahead(0),
				.run_time.on = config->measure };
	if (access("/proc/self/fd", F_OK))
		return error_set(error, ERROR_PROC, -errno, NULL, NULL);
	err = runtime_objects(rt, error);
	if (err)
		return err;
	limits_raise();
	feature_deny(&rt->features, config->denied);
	err = feature_allowed(&rt->features);
	if (err == -EOPNOTSUPP)
		return error_set(error, ERROR_NO_LOOPS, err, NULL, NULL);
	if (err)
		return error_set(error, ERROR_PROGRAM, err, "probe", NULL);
	err = runtime_namespace(rt, error);
	if (err)
		return err;
	runtime_choose(rt);
	attacher_start(&rt->attacher, &rt->features, rt->method);
	runtime_constant(rt, "constant_pid_ns_dev", rt->pid_ns_dev);
	runtime_constant(rt, "constant_pid_ns_ino", rt->pid_ns_ino);
	runtime_constant(rt, "constant_perf_buffers", rt->perf_buffers);
	runtime_secrets(rt);
	return runtime_owners(rt, error);
}

/* Return the size of the ring buffer, or of one perf buffer, in bytes. */
static uint32_t runtime_ring_bytes(const struct runtime *rt, uint32_t ring_min, size_t record_max)
{
	uint32_t page = (uint32_t)getauxval(AT_PAGESZ), bytes = ring_min;

	if (rt->perf_buffers)
		bytes /= PERF_SHARE;
	if (bytes < page)
		bytes = page;
	while (bytes < RING_RECORDS * (uint64_t)record_max && bytes < 1u << 31)
		bytes *= 2;
	return bytes;
}

/* BPF_F_MMAPABLE is older (fc9702273e2e, Linux 5.5) than the ring buffer (Linux 5.8). */
int runtime_stream(struct runtime *rt, uint32_t ring_min, size_t record_max, struct error *error)
{
	bool perf = rt->perf_buffers;
	struct map_def maps[] = {
		{ "counters", BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, ALL_COUNTERS, 0 },
		{ "control", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct control), 1,
		  perf ? 0 : BPF_F_MMAPABLE },
		{ "ring", BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, SYS_CPUS_MAX, 0 },
		{ "wakers", BPF_MAP_TYPE_PERF_EVENT_ARRAY, 4, 4, SYS_CPUS_MAX, 0 },
	};
	size_t n = sizeof(maps) / sizeof(maps[0]);
	int err;

	rt->record_max = record_max;
	rt->ring_bytes = runtime_ring_bytes(rt, ring_min, record_max);
	if (!perf)
		maps[2] = (struct map_def){ "ring", BPF_MAP_TYPE_RINGBUF, 0, 0, rt->ring_bytes, 0 };
	err = runtime_maps(rt, maps, perf ? n : n - 1, error);
	if (err)
		return err;
	rt->counters = runtime_map(rt, "counters");
	rt->owners->lag_max = rt->ring_bytes / RING_LAG;
	/* A process would exceed a share of one CPU's perf buffer before it used all of them. */
	runtime_constant(rt, "constant_ring_share", perf ? 0 : OWNER_SHARE(rt->ring_bytes));
	/* Programs refer to it in a branch that is never taken; the verifier requires a map. */
	if (!perf) {
		runtime_set_map(rt, "wakers", runtime_map(rt, "ring"));
		return 0;
	}
	/* The buffers must exist before programs run. */
	err = perfbuf_open(&rt->stream.perf, &(struct perfbuf_config){
		.ring = runtime_map(rt, "ring"), .wakers = runtime_map(rt, "wakers"),
		.control = runtime_map(rt, "control"), .size = rt->ring_bytes,
		.record_max = record_max, .ahead_ns = rt->ahead_ns,
	});
	return err ? error_set(error, ERROR_STREAM, err, NULL, NULL) : 0;
}

int runtime_ready(struct runtime *rt, struct error *error)
{
	if (rt->unknown)
		return error_set(error, ERROR_LINK, -ENOENT, rt->unknown, NULL);
	if (rt->method == ATTACH_NONE)
		return error_set(error, ERROR_NO_UPROBES, -EOPNOTSUPP, NULL, NULL);
	return 0;
}

int runtime_attach(struct runtime *rt, const struct uprobe_set *set, const struct uprobe_file *file,
		   struct uprobe_links *links, struct error *error)
{
	const struct uprobe_method method = {
		.attacher = &rt->attacher, .run_time = &rt->run_time,
	};

	return uprobe_set_attach(set, file, &method, links, error);
}

/* Link @program to @insns. Return its length, or -errno and the cause in @error. */
static int runtime_link(const struct runtime *rt, const char *program, struct bpf_insn *insns,
			struct error *error)
{
	const char *culprit = program;
	int n = -ENOENT;

	for (size_t i = 0; n == -ENOENT && culprit == program && i < rt->nobjects; i++)
		n = object_link(&rt->objects[i], program, rt->values, rt->nvalues, insns, &culprit);
	return n < 0 ? error_link(error, n, culprit, program) : n;
}

/* Attach @prog to tracepoint @name, or to @event. Return the link or -errno. */
static int runtime_link_tracepoint(int prog, const char *name, int event)
{
	return event ? sys_event(prog, event) : sys_raw_tracepoint(prog, name);
}

/* Attach @prog, which remains the caller's, and keep the link. Return it or -errno. */
static int runtime_keep(struct runtime *rt, const struct runtime_tracepoint *tracepoint, int prog)
{
	int link = runtime_link_tracepoint(prog, tracepoint->name, tracepoint->event);

	if (link >= 0)
		rt->tracepoints[rt->ntracepoints++] = (struct runtime_attached){
			.link = link, .name = tracepoint->name, .event = tracepoint->event,
			.prog = tracepoint->pauses ? fcntl(prog, F_DUPFD_CLOEXEC, 0) : -1,
		};
	return link;
}

void runtime_pause(struct runtime *rt)
{
	for (size_t i = 0; i < rt->ntracepoints; i++) {
		struct runtime_attached *attached = &rt->tracepoints[i];

		if (attached->prog < 0 || attached->link < 0)
			continue;
		close(attached->link);
		attached->link = -1;
	}
}

int runtime_resume(struct runtime *rt)
{
	int err = 0;

	for (size_t i = 0; i < rt->ntracepoints; i++) {
		struct runtime_attached *attached = &rt->tracepoints[i];

		if (attached->link >= 0)
			continue;
		attached->link = runtime_link_tracepoint(attached->prog, attached->name,
							 attached->event);
		if (attached->link < 0)
			err = attached->link;
	}
	return err;
}

int runtime_tracepoint(struct runtime *rt, const struct runtime_tracepoint *tracepoint,
		       struct error *error)
{
	struct prog_def def = { .name = tracepoint->program,
				.type = tracepoint->event ? BPF_PROG_TYPE_TRACEPOINT :
							    BPF_PROG_TYPE_RAW_TRACEPOINT };
	struct bpf_insn *insns = malloc(OBJECT_INSNS_MAX * sizeof(*insns));
	int link = -E2BIG, prog, n;

	if (!insns)
		return error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	n = runtime_link(rt, tracepoint->program, insns, error);
	if (n < 0) {
		link = n;
		goto cleanup;
	}
	def.insns = insns;
	def.count = (uint32_t)n;
	prog = uprobe_set_load(&def, error);
	if (prog < 0) {
		link = prog;
		goto cleanup;
	}
	if (rt->ntracepoints < RUNTIME_TRACEPOINTS)
		link = runtime_keep(rt, tracepoint, prog);
	run_time_add(&rt->run_time, prog);
	if (link < 0)
		error_set(error, ERROR_TRACEPOINT, link, tracepoint->name, NULL);
cleanup:
	free(insns);
	return link < 0 ? link : 0;
}

int runtime_listen(struct runtime *rt, struct error *error)
{
	int err = 0;

	if (!rt->perf_buffers)
		err = ringbuf_open(&rt->stream.ring, runtime_map(rt, "ring"), rt->ring_bytes,
				   runtime_map(rt, "control"), rt->record_max);
	return err ? error_set(error, ERROR_STREAM, err, NULL, NULL) : 0;
}

uint64_t runtime_now(const struct runtime *rt)
{
	return clock_kernel_ns(rt->ahead_ns);
}

/* A handler of records and its argument. */
struct runtime_handler {
	struct runtime *rt;
	int (*handle)(void *arg, const void *data, size_t size);
	void *arg;
};

static int runtime_record(void *arg, const void *data, size_t size)
{
	const struct runtime_handler *handler = arg;
	const struct event_head *head = data;

	if (size >= sizeof(*head))
		owners_received(handler->rt->owners, head->owner, size);
	return handler->handle(handler->arg, data, size);
}

uint64_t runtime_counter(const struct runtime *rt, uint32_t counter)
{
	return sys_map_sum(rt->counters, counter);
}

int runtime_drain(struct runtime *rt, int (*handler)(void *arg, const void *data, size_t size),
		  void *arg)
{
	struct runtime_handler record = { rt, handler, arg };
	int64_t bytes;

	rt->wall_offset_ns = clock_wall_offset(rt->ahead_ns);
	bytes = stream_drain(&rt->stream, runtime_record, &record);
	owners_flush(rt->owners);
	return (int)((bytes * 100 + rt->ring_bytes - 1) / rt->ring_bytes);
}

int runtime_sleep(struct runtime *rt)
{
	return stream_sleep(&rt->stream);
}

unsigned int runtime_needs(const struct runtime *rt, unsigned int needs)
{
	unsigned int attach = 0;

	if (needs & SANDBOX_ATTACH)
		attach |= rt->method == ATTACH_MULTI ? SANDBOX_LINKS : SANDBOX_EVENTS;
	if (rt->attacher.child)
		attacher_confine(&rt->attacher, attach | SANDBOX_CLOSERS);
	else
		needs |= attach;
	return needs;
}

int runtime_run_ns(const struct runtime *rt, uint64_t *ns)
{
	return run_time_read(&rt->run_time, ns);
}

void runtime_detaching(struct runtime *rt, uint64_t now_ns)
{
	const struct control control = { .detach_ns = now_ns };
	int map = runtime_map(rt, "control");
	uint32_t zero = 0;

	if (map >= 0)
		sys_map_update(map, &zero, &control);
}

void runtime_detach(struct runtime *rt)
{
	while (rt->ntracepoints) {
		const struct runtime_attached *attached = &rt->tracepoints[--rt->ntracepoints];

		if (attached->link >= 0)
			close(attached->link);
		if (attached->prog >= 0)
			close(attached->prog);
	}
}

void runtime_close(struct runtime *rt)
{
	runtime_detach(rt);
	run_time_close(&rt->run_time);
	stream_close(&rt->stream);
	while (rt->nmaps)
		close(rt->maps[--rt->nmaps]);
	attacher_stop(&rt->attacher);
	free(rt->owners);
	rt->owners = NULL;
}
