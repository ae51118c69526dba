// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tests of loader/runtime: constants and maps by name, against the object of bpf/trace.bpf.c. */
#include "loader/runtime.h"

#include <errno.h>

#include "bpf/embed.h"
#include "bpf/event.h"
#include "tests/unit/check.h"
#include "tests/unit/load.h"

static const struct object_value *value_of(const struct runtime *rt, const char *name)
{
	for (size_t i = 0; i < rt->nvalues; i++)
		if (!strcmp(rt->values[i].name, name))
			return &rt->values[i];
	return NULL;
}

static bool no_program(const char *name)
{
	(void)name;
	return false;
}

static void fail_error(void *arg, const struct error *error)
{
	(void)arg;
	CHECK(false, "error %d", error->kind);
}

static int open_trace(struct runtime *rt, uint32_t denied, struct error *error)
{
	const struct runtime_config config = {
		.objects = { { bpf_trace, bpf_trace_end } }, .denied = denied,
		.is_program = no_program, .error = fail_error,
	};

	*error = (struct error){ .kind = ERROR_NONE };
	return runtime_open(rt, &config, error);
}

/* Without the kernel every symbol but the arguments has a value. */
static void offline_has_every_value(void)
{
	static struct runtime rt;
	const char *symbol;
	uint64_t at = 0;
	size_t n = 0;

	CHECK(!runtime_open_offline(&rt, bpf_trace, bpf_trace_end));
	while ((symbol = object_undefined(&rt.objects[0], &at))) {
		CHECK(value_of(&rt, symbol), "%s", symbol);
		n++;
	}
	CHECK(n == rt.nvalues && n > 8, "%zu, %zu", n, rt.nvalues);
	CHECK(!rt.unknown, "%s", rt.unknown);
	CHECK(runtime_open_offline(&rt, bpf_trace + 8, bpf_trace_end) == -ENOEXEC);
}

static void constants_are_replaced(void)
{
	static struct runtime rt;
	size_t before;

	runtime_open_offline(&rt, bpf_trace, bpf_trace_end);
	before = rt.nvalues;
	runtime_constant(&rt, "constant_probe_id", 7);
	runtime_constant(&rt, "constant_probe_id", 1ull << 40);
	CHECK(rt.nvalues == before, "%zu", rt.nvalues);
	CHECK(value_of(&rt, "constant_probe_id")->number == 1ull << 40);
}

/* The first unknown name is kept for runtime_ready(); known ones behind it still count. */
static void unknown_names_are_kept(void)
{
	static struct runtime rt;
	struct error error = { .kind = ERROR_NONE };

	runtime_open_offline(&rt, bpf_trace, bpf_trace_end);
	runtime_constant(&rt, "constant_nothing", 1);
	runtime_constant(&rt, "constant_none", 1);
	runtime_constant(&rt, "constant_probe_id", 3);
	CHECK(!value_of(&rt, "constant_nothing") && !value_of(&rt, "constant_none"));
	CHECK(value_of(&rt, "constant_probe_id")->number == 3);
	CHECK(runtime_ready(&rt, &error) == -ENOENT && error.kind == ERROR_LINK &&
	      !strcmp(error.subject, "constant_nothing"), "%d %s", error.kind, error.subject);
	/* An argument is a function that the loader emits, and no constant. */
	runtime_open_offline(&rt, bpf_trace, bpf_trace_end);
	runtime_constant(&rt, "arg_1", 3);
	CHECK(rt.unknown && !strcmp(rt.unknown, "arg_1"), "%s", rt.unknown);
}

static void maps_are_created_by_name(void)
{
	static const struct map_def maps[] = {
		{ "pids", BPF_MAP_TYPE_HASH, 4, 1, 8, 0 },
		{ "probe_hits", BPF_MAP_TYPE_HASH, sizeof(struct probe_hit_key), 8, 8,
		  RUNTIME_ALLOC },
	};
	static const struct map_def unknown = { "nothing", BPF_MAP_TYPE_HASH, 4, 1, 8, 0 };
	static const struct map_def invalid = { "pids", BPF_MAP_TYPE_HASH, 4, 1, 0, 0 };
	const char *why = load_forbidden();
	static struct runtime rt;
	struct error error;
	uint32_t key = 5;
	char value = 1;

	if (why) {
		SKIP(why);
		return;
	}
	CHECK(!open_trace(&rt, 0, &error), "%d", error.kind);
	CHECK(!runtime_maps(&rt, maps, 2, &error), "%s", error.subject);
	CHECK(runtime_map(&rt, "pids") >= 0 && runtime_map(&rt, "probe_hits") >= 0);
	CHECK(runtime_map(&rt, "pids") != runtime_map(&rt, "probe_hits"));
	CHECK(runtime_map(&rt, "ring") == -1 && runtime_map(&rt, "constant_perf_buffers") == -1);
	CHECK(!sys_map_update(runtime_map(&rt, "pids"), &key, &value));
	CHECK(!rt.unknown, "%s", rt.unknown);
	CHECK(!runtime_maps(&rt, &unknown, 1, &error));
	CHECK(rt.unknown && !strcmp(rt.unknown, "nothing"));
	CHECK(runtime_maps(&rt, &invalid, 1, &error) == -EINVAL && error.kind == ERROR_MAP &&
	      !strcmp(error.subject, "pids"), "%d %s", error.kind, error.subject);
	runtime_close(&rt);
}

static int any_record(void *arg, const void *data, size_t size)
{
	(void)arg;
	(void)data;
	(void)size;
	return 0;
}

/* Open the stream with or without a ring buffer; nothing is sent, so it may sleep. */
static void check_stream(uint32_t denied, uint32_t ring_bytes)
{
	static struct runtime rt;
	struct error error;
	int fd;

	CHECK(!open_trace(&rt, denied, &error), "%d", error.kind);
	CHECK(!runtime_stream(&rt, 1u << 20, 4096, &error), "%d %s", error.kind, error.subject);
	CHECK(rt.ring_bytes == ring_bytes, "%u", rt.ring_bytes);
	CHECK(!runtime_listen(&rt, &error), "%d", error.kind);
	CHECK(runtime_drain(&rt, any_record, NULL) == 0);
	fd = runtime_sleep(&rt);
	CHECK(fd >= 0, "%d", fd);
	CHECK(!runtime_counter(&rt, COUNT_STATEMENTS) && !runtime_counter(&rt, LOST_RING_FULL));
	runtime_close(&rt);
}

static void streams_open(void)
{
	const char *why = load_forbidden();
	struct features features = { .uprobe_pmu = 0 };

	if (why) {
		SKIP(why);
		return;
	}
	if (feature_has(&features, FEATURE_RINGBUF))
		check_stream(0, 1u << 20);
	check_stream(FEATURE_BIT(FEATURE_RINGBUF), 1u << 18);
}

/* Denied features are replaced by their fallbacks. */
static void fallbacks_are_chosen(void)
{
	const uint32_t reads = FEATURE_BIT(FEATURE_READ_USER);
	const uint32_t counted = FEATURE_BIT(FEATURE_REF_CTR);
	const char *why = load_forbidden();
	static struct runtime rt;
	struct error error;

	if (why) {
		SKIP(why);
		return;
	}
	CHECK(!open_trace(&rt, reads | counted | FEATURE_BIT(FEATURE_RINGBUF), &error));
	CHECK(rt.objects[0].old_reads && rt.perf_buffers && rt.uncounted);
	CHECK(rt.record_limit == PERFBUF_RECORD_MAX, "%u", rt.record_limit);
	runtime_close(&rt);
	CHECK(!open_trace(&rt, FEATURE_BIT(FEATURE_UPROBE_MULTI) | FEATURE_BIT(FEATURE_UPROBE_PMU),
			  &error));
	CHECK(rt.method == ATTACH_NONE, "%d", rt.method);
	CHECK(runtime_ready(&rt, &error) == -EOPNOTSUPP && error.kind == ERROR_NO_UPROBES);
	runtime_close(&rt);
	CHECK(open_trace(&rt, FEATURE_BIT(FEATURE_LOOPS), &error) == -EOPNOTSUPP);
	CHECK(error.kind == ERROR_NO_LOOPS && !rt.nmaps, "%d", error.kind);
	runtime_close(&rt);
}

int main(void)
{
	RUN(offline_has_every_value);
	RUN(constants_are_replaced);
	RUN(unknown_names_are_kept);
	RUN(maps_are_created_by_name);
	RUN(streams_open);
	RUN(fallbacks_are_chosen);
	return check_done();
}
