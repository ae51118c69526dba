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
#include "loader/runtime.h"

#define RING_MIN	(2u << 20)	/* bytes */
#define PIDS_MAX	256
#define COUNTS_MAX	65536
#define PERCPU_MAX	32768u		/* of a per-CPU element in bytes: PCPU_MIN_UNIT_SIZE */

struct probe_trace_file {
	int fd;
	struct process_file id;
	char path[256];
	uint64_t lowest_vaddr;		/* of its segments, as linked */
	struct uprobe_set set;
	struct uprobe_links links;
};

struct probe_trace {
	struct probe_trace_config config;
	struct runtime rt;
	int hits;			/* map "probe_hits", borrowed */
	uint32_t text_size;		/* room for a text in a record, a multiple of 8 */
	struct probe_table table;
	struct probe_trace_file *files;
	size_t nfiles;
};

static int probe_trace_maps(struct probe_trace *h, uint32_t record_max, struct error *error)
{
	const struct map_def maps[] = {
		{ "pids", BPF_MAP_TYPE_HASH, 4, 1, PIDS_MAX, 0 },
		{ "probe_hits", BPF_MAP_TYPE_HASH, sizeof(struct probe_hit_key), 8,
		  h->config.mode == REQUEST_SEND ? 1 : COUNTS_MAX, RUNTIME_ALLOC },
		{ "record", BPF_MAP_TYPE_PERCPU_ARRAY, 4, h->rt.perf_buffers ? record_max : 8, 1,
		  0 },
	};
	const char yes = 1;
	int err = runtime_maps(&h->rt, maps, sizeof(maps) / sizeof(maps[0]), error);

	if (err)
		return err;
	h->hits = runtime_map(&h->rt, "probe_hits");
	for (size_t i = 0; i < h->config.npids; i++) {
		err = sys_map_update(runtime_map(&h->rt, "pids"), &h->config.pids[i], &yes);
		if (err)
			return error_set(error, ERROR_MAP, err, "pids", NULL);
	}
	return 0;
}

/* Choose the room for a text: one NUL and one byte that tells a longer text from a whole one. */
static void probe_trace_text_size(struct probe_trace *h)
{
	uint32_t limit = h->rt.record_limit < PERCPU_MAX ? h->rt.record_limit : PERCPU_MAX;
	uint32_t fixed = probe_request_record_size(REQUEST_FIELDS, 0, 0), most;

	h->text_size = (h->config.text_bytes + 2 + 7) & ~7u;
	if (!h->rt.perf_buffers || !h->config.texts)
		return;
	/* A record is put together in an element of a per-CPU map. */
	most = ((limit - fixed) / h->config.texts - 8) & ~7u;
	if (h->text_size <= most)
		return;
	h->text_size = most;
	h->config.text_bytes = most - 2;
}

static int probe_trace_prepare(struct probe_trace *h, struct error *error)
{
	const struct probe_trace_config *c = &h->config;
	const struct runtime_config config = {
		.objects = { { bpf_trace, bpf_trace_end } },
		.denied = c->denied, .is_program = c->is_program,
		.arg = c->arg, .lasting = c->lasting, .error = c->error, .program = c->program,
	};
	uint32_t record_max, ring_min = RING_MIN;
	int err = runtime_open(&h->rt, &config, error);

	if (err)
		return err;
	probe_trace_text_size(h);
	record_max = probe_request_record_size(REQUEST_FIELDS, (1u << c->texts) - 1, h->text_size);
	err = probe_trace_maps(h, record_max, error);
	if (err)
		return err;
	runtime_constant(&h->rt, "constant_filter_pids", c->npids > 0);
	/* Nothing is sent where hits are only counted. */
	if (c->mode != REQUEST_SEND) {
		ring_min = (uint32_t)sysconf(_SC_PAGESIZE);
		record_max = sizeof(struct event_probe_hit);
	}
	err = runtime_stream(&h->rt, ring_min, record_max, error);
	if (!err)
		err = runtime_ready(&h->rt, error);
	return err ? err : runtime_listen(&h->rt, error);
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
		.runtime = &h->rt, .path = path,
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
	if (file)
		file->lowest_vaddr = elf_map_lowest_vaddr(&binary.elf);
	found = file ? probe_request_file(request, number, &binary.elf, &common, &file->set,
					  error) :
		       error->code;
	elf_map_close(&binary);
	return found;
}

/* Write the semaphores of a file into the processes that run it, if the kernel does not count them. */
static int probe_trace_semaphores(struct probe_trace *h, struct probe_trace_file *file,
				  struct error *error)
{
	uint64_t *vaddrs;
	size_t count;
	int err;

	if (!h->rt.semaphores.on)
		return 0;
	err = uprobe_set_semaphores(&file->set, &vaddrs, &count);
	if (err)
		return error_set(error, ERROR_MEMORY, err, NULL, NULL);
	semaphores_write_all(&h->rt.semaphores, &file->id, file->lowest_vaddr, vaddrs, count);
	free(vaddrs);
	return 0;
}

int probe_trace_attach(struct probe_trace *h, struct error *error)
{
	int err = 0;

	for (size_t i = 0; !err && i < h->nfiles; i++) {
		struct probe_trace_file *file = &h->files[i];

		if (!file->set.nsites)
			continue;
		err = runtime_attach(&h->rt, &file->set, &(struct uprobe_file){
			.name = "trace", .fd = file->fd, .path = file->path,
		}, &file->links, error);
		if (!err)
			err = probe_trace_semaphores(h, file, error);
	}
	return err;
}

void probe_trace_sandbox(const struct probe_trace *h, struct sandbox *sandbox)
{
	runtime_sandbox(&h->rt, 0, sandbox);
}

bool probe_trace_same(const struct traced_probe *a, const struct traced_probe *b)
{
	return a->on_return == b->on_return && !a->provider == !b->provider &&
	       !strcmp(a->name, b->name) && (!a->provider || !strcmp(a->provider, b->provider));
}

void probe_trace_extent(const struct probe_trace *h, struct probe_trace_extent *extent)
{
	*extent = (struct probe_trace_extent){ .method = attach_method_name(h->rt.method) };
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
	return &h->rt.features;
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
	hit.time_ns = runtime_here_ns(&h->rt, event->time_ns);
	hit.wall_ns = runtime_wall_ns(&h->rt, event->time_ns);
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
	return runtime_drain(&h->rt, probe_trace_record, h);
}

int probe_trace_sleep(struct probe_trace *h)
{
	return runtime_sleep(&h->rt);
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
	while (n < COUNTS_MAX && !sys_map_next(h->hits, n ? &keys[0] : NULL, &keys[1])) {
		struct probe_trace_count *count = &(*counts)[n];

		keys[0] = keys[1];
		if (keys[1].probe_id >= h->table.count ||
		    sys_map_lookup(h->hits, &keys[1], &count->count))
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

void probe_trace_summary(const struct probe_trace *h, struct probe_trace_summary *summary)
{
	*summary = (struct probe_trace_summary){
		.probes = runtime_counter(&h->rt, COUNT_STATEMENTS),
		.ring_full = runtime_dropped(&h->rt),
		.table_full = runtime_counter(&h->rt, LOST_TABLE_FULL),
	};
}

void probe_trace_detach(struct probe_trace *h)
{
	for (size_t i = 0; i < h->nfiles; i++)
		uprobe_set_detach(&h->files[i].links);
	runtime_detach(&h->rt);
}

void probe_trace_close(struct probe_trace *h)
{
	if (!h)
		return;
	probe_trace_detach(h);
	for (size_t i = 0; i < h->nfiles; i++) {
		uprobe_set_free(&h->files[i].set);
		close(h->files[i].fd);
	}
	free(h->files);
	probe_table_free(&h->table);
	runtime_close(&h->rt);
	free(h);
}
