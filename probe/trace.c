// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "probe/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/embed.h"
#include "host/elf_map.h"
#include "host/clock.h"
#include "host/limits.h"
#include "host/pid_namespace.h"
#include "host/process.h"
#include "loader/stream.h"

#define RING_MIN	(2u << 20)	/* bytes */
#define RING_RECORDS	32		/* of the longest there is room for at least so many */
#define PIDS_MAX	256
#define COUNTS_MAX	65536

enum map { MAP_COUNTERS, MAP_RING, MAP_CONTROL, MAP_PIDS, MAP_HITS, MAPS };

#define NUMBERS		5

struct probe_trace_file {
	int fd;
	struct process_file id;
	char path[256];
	struct uprobe_set set;
	struct uprobe_links links;
};

struct probe_trace {
	struct probe_trace_config config;
	struct features features;
	struct object object;
	enum attach_method method;
	int maps[MAPS];
	struct object_value values[MAPS + NUMBERS];
	uint32_t text_size, record_max, ring_bytes;
	struct stream stream;
	struct probe_table table;
	struct probe_trace_file *files;
	size_t nfiles;
	int64_t ahead_ns;		/* see clock_ahead() */
	uint64_t wall_offset_ns;	/* CLOCK_REALTIME - the kernel's clock at this drain */
};

/* Powers of two of pages. Where hits are only counted nothing is sent. */
static uint32_t probe_trace_ring_bytes(const struct probe_trace *h)
{
	uint64_t want = (uint64_t)RING_RECORDS * h->record_max;
	uint32_t bytes = RING_MIN;

	if (h->config.mode != REQUEST_SEND)
		return (uint32_t)sysconf(_SC_PAGESIZE);
	while (bytes < want && bytes < 1u << 31)
		bytes *= 2;
	return bytes;
}

static int probe_trace_maps(struct probe_trace *h, struct error *error)
{
	bool alloc = feature_has(&h->features, FEATURE_TRACING_ALLOC);
	const struct map_def defs[MAPS] = {
		[MAP_COUNTERS] = { "counters", BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, COUNTERS, 0 },
		[MAP_RING] = { "ring", BPF_MAP_TYPE_RINGBUF, 0, 0, h->ring_bytes, 0 },
		[MAP_CONTROL] = { "control", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct control), 1,
				  BPF_F_MMAPABLE },
		[MAP_PIDS] = { "pids", BPF_MAP_TYPE_HASH, 4, 1, PIDS_MAX, 0 },
		[MAP_HITS] = { "probe_hits", BPF_MAP_TYPE_HASH, sizeof(struct probe_hit_key), 8,
			       h->config.mode == REQUEST_SEND ? 1 : COUNTS_MAX,
			       alloc ? BPF_F_NO_PREALLOC : 0 },
	};
	const char yes = 1;
	int err;

	for (int i = 0; i < MAPS; i++) {
		h->maps[i] = sys_map_create(&defs[i]);
		if (h->maps[i] < 0)
			return error_set(error, ERROR_MAP, h->maps[i], defs[i].name, NULL);
		h->values[i] = (struct object_value){ .name = defs[i].name, .kind = OBJECT_MAP,
						      .map = h->maps[i] };
	}
	for (size_t i = 0; i < h->config.npids; i++) {
		err = sys_map_update(h->maps[MAP_PIDS], &h->config.pids[i], &yes);
		if (err)
			return error_set(error, ERROR_MAP, err, "pids", NULL);
	}
	return 0;
}

static void probe_trace_numbers(struct probe_trace *h)
{
	uint64_t dev, ino;

	pid_namespace_own(&dev, &ino);
	h->values[MAPS] = (struct object_value){ .name = "constant_pid_ns_dev", .number = dev };
	h->values[MAPS + 1] = (struct object_value){ .name = "constant_pid_ns_ino", .number = ino };
	h->values[MAPS + 2] = (struct object_value){ .name = "constant_filter_pids",
						     .number = h->config.npids > 0 };
	/* Only the ring buffer will do. */
	h->values[MAPS + 3] = (struct object_value){ .name = "constant_perf_buffers" };
	h->values[MAPS + 4] = (struct object_value){ .name = "wakers", .kind = OBJECT_MAP,
						     .map = h->maps[MAP_RING] };
}

static int probe_trace_prepare(struct probe_trace *h, struct error *error)
{
	int err = object_open(&h->object, bpf_trace, (size_t)(bpf_trace_end - bpf_trace));

	if (err)
		return error_set(error, ERROR_LINK, err, "the embedded object", NULL);
	feature_deny(&h->features, h->config.denied);
	limits_raise();
	/* Asked while there are descriptors for it. */
	h->method = attach_choose(&h->features);
	err = probe_trace_maps(h, error);
	if (err)
		return err;
	probe_trace_numbers(h);
	err = ringbuf_open(&h->stream.ring, h->maps[MAP_RING], h->ring_bytes, h->maps[MAP_CONTROL],
			  h->record_max);
	if (err)
		return error_set(error, ERROR_STREAM, err, NULL, NULL);
	if (h->method == ATTACH_NONE)
		return error_set_no_uprobes(error, h->features.tracefs_error);
	return 0;
}

int probe_trace_open(struct probe_trace **probes, const struct probe_trace_config *config,
		     struct error *error)
{
	struct probe_trace *h = calloc(1, sizeof(*h));
	int err;

	*probes = NULL;
	if (!h)
		return error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	h->config = *config;
	h->ahead_ns = clock_ahead();
	for (int i = 0; i < MAPS; i++)
		h->maps[i] = -1;
	/* A NUL, and a byte to see that there is more. */
	h->text_size = (config->text_bytes + 2 + 7) & ~7u;
	h->record_max = probe_request_record_size(REQUEST_FIELDS, (1u << config->texts) - 1,
						  h->text_size);
	h->ring_bytes = probe_trace_ring_bytes(h);
	err = probe_trace_prepare(h, error);
	if (err)
		probe_trace_close(h);
	else
		*probes = h;
	return err;
}

/* The entry of the file open as @fd, a new one where there is none; NULL and why in @fault. */
static struct probe_trace_file *probe_trace_file(struct probe_trace *h, int fd, const char *path,
						 struct error *error)
{
	struct process_file id = { 0 };
	struct probe_trace_file *files;

	process_file_read(fd, &id);
	for (size_t i = 0; i < h->nfiles; i++)
		if (process_file_same(&h->files[i].id, &id))
			return &h->files[i];
	files = realloc(h->files, (h->nfiles + 1) * sizeof(*files));
	if (!files) {
		error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
		return NULL;
	}
	h->files = files;
	files += h->nfiles;
	*files = (struct probe_trace_file){ .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0), .id = id };
	if (files->fd < 0) {
		error_set(error, ERROR_FILE, -errno, path, NULL);
		return NULL;
	}
	memcpy(files->path, path, strnlen(path, sizeof(files->path) - 1));
	h->nfiles++;
	return files;
}

int probe_trace_add(struct probe_trace *h, const struct probe_request *request, uint32_t number,
		    int fd, const char *path,
		    struct error *error)
{
	const struct probe_request_common common = {
		.object = &h->object, .values = h->values, .nvalues = MAPS + NUMBERS,
		.mode = h->config.mode, .text_size = h->text_size, .table = &h->table,
		.skipped = h->config.skipped, .arg = h->config.arg,
	};
	struct probe_trace_file *file;
	struct elf_map binary;
	int found = elf_map_open(&binary, fd);

	if (found == -ENOEXEC)
		return found;
	if (found)
		return error_set(error, ERROR_FILE, found, path, NULL);
	file = probe_trace_file(h, fd, path, error);
	found = file ? probe_request_file(request, number, &binary.elf, path, &common, &file->set,
					  error) :
		       error->code;
	elf_map_close(&binary);
	return found;
}

int probe_trace_attach(struct probe_trace *h, struct error *error)
{
	int err = 0;

	for (size_t i = 0; !err && i < h->nfiles; i++) {
		struct probe_trace_file *file = &h->files[i];
		const struct uprobe_file place = {
			.name = "trace", .fd = file->fd, .path = file->path,
			.features = &h->features, .method = h->method, .program = h->config.program,
			.program_arg = h->config.arg,
		};

		if (file->set.nsites)
			err = uprobe_set_attach(&file->set, &place, &file->links, error);
	}
	return err;
}

void probe_trace_sandbox(const struct probe_trace *h, struct sandbox *sandbox)
{
	sandbox_enter(h->method == ATTACH_TRACEFS ? SANDBOX_WRITE : 0, sandbox);
}

bool probe_trace_same(const struct traced_probe *a, const struct traced_probe *b)
{
	return a->on_return == b->on_return && !a->provider == !b->provider &&
	       !strcmp(a->name, b->name) && (!a->provider || !strcmp(a->provider, b->provider));
}

void probe_trace_extent(const struct probe_trace *h, struct probe_trace_extent *extent)
{
	*extent = (struct probe_trace_extent){ .method = attach_method_name(h->method) };
	for (size_t i = 0; i < h->nfiles; i++) {
		uint32_t sites = h->files[i].set.nsites;

		extent->sites += sites;
		extent->files += sites > 0;
	}
	for (uint32_t i = 0, other; i < h->table.count; i++) {
		for (other = 0; other < i; other++)
			if (probe_trace_same(&h->table.probes[i], &h->table.probes[other]))
				break;
		extent->probes += other == i;
	}
}

const struct features *probe_trace_features(const struct probe_trace *h)
{
	return &h->features;
}

/* One record. Its sizes and numbers are checked: it comes from the kernel, but by way of memory. */
static int probe_trace_record(void *arg, const void *data, size_t size)
{
	struct probe_trace *h = arg;
	const struct event_probe_hit *event = data;
	const struct traced_probe *probe;
	struct probe_hit hit = { .values = { 0 } };
	const char *at;
	char comm[sizeof(event->comm) + 1] = "";

	if (size < sizeof(*event) || event->type != EVENT_HIT ||
	    event->probe_id >= h->table.count)
		return 0;
	probe = &h->table.probes[event->probe_id];
	if (size < probe_request_record_size(probe->nfields, probe->texts, h->text_size))
		return 0;
	memcpy(comm, event->comm, sizeof(event->comm));
	hit.probe = probe;
	hit.pid = event->pid;
	hit.tid = event->tid;
	hit.time_ns = event->time_ns + (uint64_t)h->ahead_ns;
	hit.wall_ns = event->time_ns + h->wall_offset_ns;
	hit.comm = comm;
	for (unsigned int i = 0; i < probe->nfields; i++)
		hit.values[i] = event->values[i];
	at = (const char *)(event->values + probe->nfields);
	for (unsigned int i = 0; i < probe->nfields; i++) {
		struct probe_hit_text *text = &hit.texts[i];
		int64_t n;

		if (!(probe->texts >> i & 1))
			continue;
		memcpy(&n, at, sizeof(n));
		text->known = n > 0 && (uint64_t)n <= h->text_size;
		text->bytes = at + 8;
		text->len = text->known ? (size_t)n - 1 : 0;
		text->cut = text->len > h->config.text_bytes;
		if (text->cut)
			text->len = h->config.text_bytes;
		at += 8 + h->text_size;
	}
	h->config.hit(h->config.arg, &hit);
	return 0;
}

int probe_trace_drain(struct probe_trace *h)
{
	int64_t bytes;

	h->wall_offset_ns = clock_ns(CLOCK_REALTIME) - clock_kernel_ns(h->ahead_ns);
	bytes = stream_drain(&h->stream, probe_trace_record, h);
	return (int)((bytes * 100 + h->ring_bytes - 1) / h->ring_bytes);
}

int probe_trace_sleep(struct probe_trace *h)
{
	return stream_sleep(&h->stream);
}

/* -1, 0 or 1; provider and name, then the way. */
static int probe_compare(const struct traced_probe *a, const struct traced_probe *b)
{
	int order = strcmp(a->provider ? a->provider : "", b->provider ? b->provider : "");

	order = order ? order : strcmp(a->name, b->name);
	return order ? order : (int)a->on_return - (int)b->on_return;
}

static int count_compare(const void *pa, const void *pb)
{
	const struct probe_trace_count *a = pa, *b = pb;
	int order = probe_compare(a->probe, b->probe);

	if (!order && a->slot != b->slot)
		return a->slot < b->slot ? -1 : 1;
	if (!order && a->value != b->value)
		return a->value < b->value ? -1 : 1;
	return order ? order : strcmp(a->text, b->text);
}

ssize_t probe_trace_counts(const struct probe_trace *h, struct probe_trace_count **counts)
{
	struct probe_hit_key keys[2];
	size_t n = 0, kept = 0;

	*counts = calloc(COUNTS_MAX, sizeof(**counts));
	if (!*counts)
		return -ENOMEM;
	/* Nothing is ever deleted from it, so the order of keys holds. */
	while (n < COUNTS_MAX && !sys_map_next(h->maps[MAP_HITS], n ? &keys[0] : NULL, &keys[1])) {
		struct probe_trace_count *count = &(*counts)[n];

		keys[0] = keys[1];
		if (keys[1].probe_id >= h->table.count ||
		    sys_map_lookup(h->maps[MAP_HITS], &keys[1], &count->count))
			break;
		count->probe = &h->table.probes[keys[1].probe_id];
		count->slot = keys[1].slot;
		count->value = keys[1].value;
		memcpy(count->text, keys[1].text, PROBE_HIT_TEXT - 1);
		n++;
	}
	qsort(*counts, n, sizeof(**counts), count_compare);
	for (size_t i = 0; i < n; i++) {
		struct probe_trace_count *count = &(*counts)[i];

		if (kept && !count_compare(&(*counts)[kept - 1], count))
			(*counts)[kept - 1].count += count->count;
		else
			(*counts)[kept++] = *count;
	}
	return (ssize_t)kept;
}

static uint64_t probe_trace_counter(const struct probe_trace *h, uint32_t which)
{
	return sys_map_sum(h->maps[MAP_COUNTERS], which);
}

void probe_trace_summary(const struct probe_trace *h, struct probe_trace_summary *summary)
{
	*summary = (struct probe_trace_summary){
		.probes = probe_trace_counter(h, COUNT_STATEMENTS),
		.ring_full = probe_trace_counter(h, LOST_RING_FULL),
		.table_full = probe_trace_counter(h, LOST_TABLE_FULL),
	};
}

void probe_trace_detach(struct probe_trace *h)
{
	for (size_t i = 0; i < h->nfiles; i++) {
		uprobe_set_detach(&h->files[i].links);
	}
}

void probe_trace_close(struct probe_trace *h)
{
	if (!h)
		return;
	probe_trace_detach(h);
	stream_close(&h->stream);
	for (int i = 0; i < MAPS; i++)
		if (h->maps[i] >= 0)
			close(h->maps[i]);
	for (size_t i = 0; i < h->nfiles; i++) {
		uprobe_set_free(&h->files[i].set);
		close(h->files[i].fd);
	}
	free(h->files);
	probe_table_free(&h->table);
	free(h);
}
