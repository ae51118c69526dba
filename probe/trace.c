// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "probe/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "bpf/embed.h"
#include "host/clock.h"
#include "host/debug_file.h"
#include "host/elf_map.h"
#include "host/limits.h"
#include "host/pid_namespace.h"
#include "host/process.h"
#include "loader/runtime.h"
#include "probe/copied.h"
#include "probe/search.h"
#include "probe/wanted.h"
#include "usdt/elf_stack.h"
#include "usdt/elf_symbol.h"

#define RING_MIN	(2u << 20)	/* bytes */
#define COUNTS_MAX	65536
#define STARTS_MAX	65536
#define PERCPU_MAX	32768u		/* of a per-CPU element in bytes: PCPU_MIN_UNIT_SIZE */

struct probe_trace_file {
	int fd;
	struct process_file id;
	char path[256];
	bool throws;			/* which was reported */
	struct uprobe_set set;
	struct uprobe_links links;
};

struct probe_trace {
	struct probe_trace_config config;
	struct runtime rt;
	int counts;			/* map "probe_hits", borrowed from ->rt */
	uint32_t text_size;		/* bytes for a text in a record, a multiple of 8 */
	struct probe_table table;
	struct probe_trace_file *files;
	size_t nfiles;
	struct probe_trace_count *before;	/* at the last probe_trace_counts(), owned */
	size_t nbefore;
	uint64_t stack[PROBE_STACK];	/* of the current record */
};

static int probe_trace_maps(struct probe_trace *trace, uint32_t record_max, struct error *error)
{
	bool counting = trace->config.mode != REQUEST_SEND;
	uint32_t texts = trace->config.texts;
	const struct map_def maps[] = {
		{ "pids", BPF_MAP_TYPE_HASH, 4, 1, WANTED_PIDS, 0 },
		{ "probe_hits", BPF_MAP_TYPE_HASH, PROBE_HIT_KEY_SIZE(counting ? texts : 0), 8,
		  counting ? COUNTS_MAX : 1, RUNTIME_ALLOC },
		{ "starts", BPF_MAP_TYPE_HASH, sizeof(struct latency_key),
		  sizeof(struct latency_start), trace->config.latency ? STARTS_MAX : 1,
		  RUNTIME_ALLOC },
		{ "record", BPF_MAP_TYPE_PERCPU_ARRAY, 4,
		  trace->rt.perf_buffers ? record_max : 8, 1,
		  0 },
	};
	int err = runtime_maps(&trace->rt, maps, sizeof(maps) / sizeof(maps[0]), error);

	if (err)
		return err;
	trace->counts = runtime_map(&trace->rt, "probe_hits");
	return wanted_select(&trace->rt, trace->config.pids, trace->config.npids, error);
}

/* Choose the bytes for a text: one more for the NUL, and one to detect a longer text. */
static void probe_trace_text_size(struct probe_trace *trace)
{
	uint32_t limit = trace->rt.record_limit < PERCPU_MAX ? trace->rt.record_limit : PERCPU_MAX;
	uint32_t fixed, most;

	fixed = probe_request_record_size(REQUEST_FIELDS, 0, 0, trace->config.stacks);
	trace->text_size = (trace->config.text_bytes + 2 + 7) & ~7u;
	if (!trace->rt.perf_buffers || !trace->config.texts)
		return;
	/* A record is composed in an element of a per-CPU map. */
	most = ((limit - fixed) / trace->config.texts - 8) & ~7u;
	if (trace->text_size <= most)
		return;
	trace->text_size = most;
	trace->config.text_bytes = most - 2;
}

static int probe_trace_prepare(struct probe_trace *trace, struct error *error)
{
	const struct probe_trace_config *c = &trace->config;
	const struct runtime_config config = {
		.objects = { { bpf_trace, bpf_trace_end } },
		.denied = c->denied, .is_program = c->is_program,
		.arg = c->arg, .stopped = c->stopped, .error = c->error,
	};
	uint32_t record_max, ring_min = RING_MIN;
	int err = runtime_open(&trace->rt, &config, error);

	if (err)
		return err;
	probe_trace_text_size(trace);
	record_max = probe_request_record_size(REQUEST_FIELDS, (1u << c->texts) - 1,
					       trace->text_size, c->stacks);
	err = probe_trace_maps(trace, record_max, error);
	if (err)
		return err;
	runtime_constant(&trace->rt, "constant_group_share", OWNER_SHARE(COUNTS_MAX));
	runtime_constant(&trace->rt, "constant_thread_share", OWNER_SHARE(STARTS_MAX));
	/* If hits are only counted, no record is sent. */
	if (c->mode != REQUEST_SEND) {
		ring_min = (uint32_t)getauxval(AT_PAGESZ);
		record_max = sizeof(struct event_probe_hit);
	}
	err = runtime_stream(&trace->rt, ring_min, record_max, error);
	if (!err)
		err = runtime_ready(&trace->rt, error);
	return err ? err : runtime_listen(&trace->rt, error);
}

int probe_trace_open(struct probe_trace **out, const struct probe_trace_config *config,
		     struct error *error)
{
	struct probe_trace *trace = calloc(1, sizeof(*trace));
	int err;

	*out = NULL;
	if (!trace)
		return error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
	trace->config = *config;
	err = probe_trace_prepare(trace, error);
	if (err)
		probe_trace_close(trace);
	else
		*out = trace;
	return err;
}

/* Return the entry of the file open as @fd, added if new; or NULL and the cause in @error. */
static struct probe_trace_file *probe_trace_file(struct probe_trace *trace, int fd,
						 const char *path, struct error *error)
{
	struct process_file id = { 0 };
	struct probe_trace_file *files;

	process_file_read(fd, &id);
	for (size_t i = 0; i < trace->nfiles; i++)
		if (process_file_same(&trace->files[i].id, &id))
			return &trace->files[i];
	files = realloc(trace->files, (trace->nfiles + 1) * sizeof(*files));
	if (!files) {
		error_set(error, ERROR_MEMORY, -ENOMEM, NULL, NULL);
		return NULL;
	}
	trace->files = files;
	files += trace->nfiles;
	*files = (struct probe_trace_file){ .fd = fcntl(fd, F_DUPFD_CLOEXEC, 0), .id = id };
	if (files->fd < 0) {
		error_set(error, ERROR_FILE, -errno, path, NULL);
		return NULL;
	}
	memcpy(files->path, path, strnlen(path, sizeof(files->path) - 1));
	trace->nfiles++;
	return files;
}

/* Report once that an exception would end @file, whose returns are traced, if it throws any. */
static void probe_trace_throws(struct probe_trace *trace, struct probe_trace_file *file,
			       const struct elf *elf)
{
	struct error note = { .kind = ERROR_NONE };

	if (file->throws || !elf_throws(elf))
		return;
	file->throws = true;
	error_set(&note, ERROR_THROWS, 0, file->path, NULL);
	trace->config.error(trace->config.arg, &note);
}

/*
 * Search @binary, the contents of @file, and if its symbols were removed, its debug file. Return as
 * probe_trace_add().
 */
static int probe_trace_search(struct probe_trace *trace, const struct probe_request *request,
			      uint32_t number, const struct file *file, struct elf_map *binary,
			      struct error *error)
{
	struct probe_request_config config = {
		.runtime = &trace->rt, .features = &trace->rt.features,
		.path = file->path, .fd = file->fd,
		.mode = trace->config.mode, .text_size = trace->text_size, .table = &trace->table,
		.stacks = trace->config.stacks, .go_returns = trace->config.go_returns,
		.skipped = trace->config.skipped, .arg = trace->config.arg,
	};
	struct probe_trace_file *traced = probe_trace_file(trace, file->fd, file->path, error);
	struct elf_symbol_iter symbols;
	struct elf_map debug;
	int found, limit, fd;

	if (!traced)
		return error->code;
	fd = elf_symbols(&binary->elf, SHT_SYMTAB, &symbols) ?
		debug_file_open(file, &binary->elf) : -ENOENT;
	if (fd >= 0 && !elf_map_open(&debug, fd, NULL))
		config.debug = &debug.elf;
	found = probe_search(request, number, &binary->elf, &config, &traced->set, error);
	if (found > 0 && request->kind == REQUEST_RETURN)
		probe_trace_throws(trace, traced, &binary->elf);
	limit = elf_map_limit(binary);
	if (config.debug) {
		limit = limit ? limit : elf_map_limit(&debug);
		elf_map_close(&debug);
	}
	if (fd >= 0)
		close(fd);
	if (!limit)
		return found;
	error_clear(error);
	return error_set(error, ERROR_TOO_LARGE, limit, file->path, NULL);
}

int probe_trace_add(struct probe_trace *trace, const struct probe_request *request, uint32_t number,
		    const struct file *file, struct error *error)
{
	struct elf_map binary;
	int found = elf_map_open(&binary, file->fd, NULL);

	if (found == -ENOEXEC)
		return found;
	if (found)
		return error_set(error, ERROR_FILE, found, file->path, NULL);
	found = probe_trace_search(trace, request, number, file, &binary, error);
	elf_map_close(&binary);
	return found;
}

int probe_trace_check(struct probe_trace *trace, struct error *error)
{
	const struct probe_trace_config *c = &trace->config;
	struct copied copied = { .pids = c->pids, .npids = c->npids, .is_program = c->is_program };
	struct error found = { .kind = ERROR_NONE };

	for (size_t i = 0; i < trace->nfiles; i++) {
		const struct probe_trace_file *file = &trace->files[i];

		/* The last one is reported below, or returned. */
		if (!file->set.nsites ||
		    !copied_find(&copied, &file->id, file->path, &file->set, &found))
			continue;
		if (error->kind != ERROR_NONE)
			c->error(c->arg, error);
		*error = found;
	}
	if (error->kind == ERROR_NONE || (c->npids && !copied.hits))
		return error->code;
	c->error(c->arg, error);
	error_clear(error);
	return 0;
}

/*
 * Attach the probes of @file. If the kernel cannot increment a semaphore in one process, it refuses
 * the probes of all: attach without semaphores, and report that.
 */
static int probe_trace_attach_file(struct probe_trace *trace, struct probe_trace_file *file,
				   struct error *error)
{
	const struct uprobe_file uprobe_file = { .name = "trace", .fd = file->fd,
						 .path = file->path };
	struct error spoiled = { .kind = ERROR_NONE };
	int err = runtime_attach(&trace->rt, &file->set, &uprobe_file, &file->links, error);

	if (err != -EINVAL || error->kind != ERROR_ATTACH ||
	    !uprobe_set_drop_semaphores(&file->set))
		return err;
	error_clear(error);
	err = runtime_attach(&trace->rt, &file->set, &uprobe_file, &file->links, error);
	error_set(&spoiled, ERROR_SEMAPHORES, 0, file->path, NULL);
	if (!err)
		trace->config.error(trace->config.arg, &spoiled);
	return err;
}

/* Have starts of threads that end forgotten, before there are any. */
static int probe_trace_forget(struct probe_trace *trace, struct error *error)
{
	static const struct runtime_tracepoint tracepoints[] = {
		{ .program = "start_exit", .name = "sched_process_exit" },
		{ .program = "start_exec", .name = "sched_process_exec" },
	};
	int err = 0;

	for (size_t i = 0; !err && trace->config.pair && i < 2; i++)
		err = runtime_tracepoint(&trace->rt, &tracepoints[i], error);
	return err;
}

int probe_trace_attach(struct probe_trace *trace, struct error *error)
{
	int err = probe_trace_forget(trace, error);

	for (size_t i = 0; !err && i < trace->nfiles && !runtime_stopped(&trace->rt); i++) {
		struct probe_trace_file *file = &trace->files[i];

		if (!file->set.nsites)
			continue;
		err = probe_trace_attach_file(trace, file, error);
	}
	return err;
}

unsigned int probe_trace_needs(const struct probe_trace *trace)
{
	/* To read the maps and files of processes. */
	return runtime_needs(&trace->rt, trace->config.stacks ? SANDBOX_READ : 0);
}

bool probe_trace_same(const struct traced_probe *a, const struct traced_probe *b)
{
	return a->on_return == b->on_return && !a->provider == !b->provider &&
	       !strcmp(a->name, b->name) && (!a->provider || !strcmp(a->provider, b->provider));
}

void probe_trace_extent(const struct probe_trace *trace, struct probe_trace_extent *extent)
{
	*extent = (struct probe_trace_extent){ .method = attach_method_name(trace->rt.method) };
	for (size_t i = 0; i < trace->nfiles; i++) {
		uint32_t sites = trace->files[i].set.nsites;

		extent->sites += sites;
		extent->files += sites > 0;
	}
	for (uint32_t i = 0, other; i < trace->table.count; i++) {
		for (other = 0; other < i; other++)
			if (probe_trace_same(&trace->table.probes[i], &trace->table.probes[other]))
				break;
		extent->probes += other == i;
	}
}

const struct features *probe_trace_features(const struct probe_trace *trace)
{
	return &trace->rt.features;
}

/*
 * Copy @stack to @to. Frame pointers omit the caller at the start of a function, except where the
 * kernel has read it, too (cfa7f3d2c526, 6.12). Return the number of addresses.
 */
static unsigned int probe_trace_stack(const struct event_stack *stack, uint64_t to[PROBE_STACK])
{
	int64_t bytes = stack->bytes;
	size_t left = bytes > 0 && (size_t)bytes <= sizeof(stack->addresses) ? (size_t)bytes / 8 :
									       0;
	unsigned int n = 0;

	for (size_t i = 0; i < left; i++) {
		to[n++] = stack->addresses[i];
		if (!i && stack->caller && (left == 1 || stack->addresses[1] != stack->caller))
			to[n++] = stack->caller;
	}
	return n;
}

/* Set the texts of @hit that consist of its values, and move what is unknown to the texts. */
static void probe_hit_complete(struct probe_hit *hit)
{
	const struct traced_probe *probe = hit->probe;

	for (unsigned int i = 0; i < probe->nfields; i++) {
		struct probe_hit_text *text = &hit->texts[i];
		bool limited = i && probe->lengths >> i & 1;

		if (limited && hit->unknown >> (i - 1) & 1) {
			hit->unknown ^= 1u << (i - 1);
			hit->unknown |= 1u << i;
		}
		if (probe->fields[i].type == REQUEST_COMM && i + 1 < probe->nfields) {
			text->known = true;
			text->bytes = (const char *)(hit->values + i);
			text->len = strnlen(text->bytes, EXPRESSION_COMM_SIZE);
			if (limited && text->len > (uint32_t)hit->values[i - 1])
				text->len = (uint32_t)hit->values[i - 1];
		}
		text->known &= !(hit->unknown >> i & 1);
	}
}

/* Validate a record, which comes through shared memory, and pass it to config.hit. Return 0. */
static int probe_trace_record(void *arg, const void *data, size_t size)
{
	struct probe_trace *trace = arg;
	const struct event_probe_hit *event = data;
	const struct traced_probe *probe;
	struct probe_hit hit = { .values = { 0 } };
	const char *at;
	char comm[sizeof(event->comm) + 1] = "";

	if (size < sizeof(*event) || event->head.type != EVENT_HIT ||
	    event->probe_id >= trace->table.count)
		return 0;
	probe = &trace->table.probes[event->probe_id];
	if (size < probe_request_record_size(probe->nfields, probe->texts, trace->text_size,
					     trace->config.stacks))
		return 0;
	memcpy(comm, event->comm, sizeof(event->comm));
	hit.probe = probe;
	hit.pid = event->pid;
	hit.tid = event->tid;
	hit.time_ns = runtime_here_ns(&trace->rt, event->time_ns);
	hit.wall_ns = runtime_wall_ns(&trace->rt, event->time_ns);
	hit.comm = comm;
	hit.latency_ns = event->latency_ns;
	for (unsigned int i = 0; i < probe->nfields; i++) {
		hit.values[i] = event->values[i];
		hit.unknown |= (uint32_t)!!(event->unknown & HIT_FIELD_UNKNOWN(i)) << i;
	}
	at = (const char *)(event->values + probe->nfields);
	for (unsigned int i = 0; i < probe->nfields; i++) {
		struct probe_hit_text *text = &hit.texts[i];
		int64_t n;

		if (!(probe->texts >> i & 1))
			continue;
		memcpy(&n, at, sizeof(n));
		text->known = n > 0 && (uint64_t)n <= trace->text_size;
		text->bytes = at + 8;
		text->len = text->known ? (size_t)n - 1 : 0;
		text->cut = text->len > trace->config.text_bytes;
		if (text->cut)
			text->len = trace->config.text_bytes;
		at += 8 + trace->text_size;
	}
	if (trace->config.stacks) {
		hit.nstack = probe_trace_stack((const struct event_stack *)at, trace->stack);
		hit.stack = trace->stack;
	}
	probe_hit_complete(&hit);
	trace->config.hit(trace->config.arg, &hit);
	return 0;
}

int probe_trace_drain(struct probe_trace *trace)
{
	return runtime_drain(&trace->rt, probe_trace_record, trace);
}

int probe_trace_sleep(struct probe_trace *trace)
{
	return runtime_sleep(&trace->rt);
}

void probe_trace_count_values(const struct probe_trace_count *count, struct probe_hit *hit)
{
	const struct probe_hit_key *key = &count->key;
	const struct traced_probe *probe = count->probe;
	unsigned int texts = 0;

	*hit = (struct probe_hit){ .probe = probe, .unknown = key->unknown };
	for (unsigned int i = 0; i < probe->nfields && i < PROBE_HIT_VALUES; i++) {
		struct probe_hit_text *text = &hit->texts[i];

		hit->values[i] = key->values[i];
		if (!(probe->texts >> i & 1) || texts == PROBE_HIT_TEXTS)
			continue;
		hit->values[i] = key->values[i] != HIT_NULL;
		text->known = !key->values[i];
		text->bytes = key->texts[texts++];
		text->len = strnlen(text->bytes, PROBE_HIT_TEXT);
	}
	probe_hit_complete(hit);
}

/* Read all counts to @counts, room for COUNTS_MAX, in any order. Return their number. */
static size_t counts_read(const struct probe_trace *trace, struct probe_trace_count *counts)
{
	struct probe_hit_key keys[2] = { 0 };
	size_t n = 0;

	/* No key is ever deleted, so their order does not change. */
	while (n < COUNTS_MAX && !sys_map_next(trace->counts, n ? &keys[0] : NULL, &keys[1])) {
		struct probe_trace_count *count = &counts[n];

		keys[0] = keys[1];
		if (keys[1].probe_id >= trace->table.count ||
		    sys_map_lookup(trace->counts, &keys[1], &count->count))
			break;
		count->probe = &trace->table.probes[keys[1].probe_id];
		count->key = keys[1];
		n++;
	}
	return n;
}

/* Sort @counts and merge those of probes that differ only in their ID. Return how many are left. */
static size_t counts_merge(struct probe_trace_count *counts, size_t n)
{
	size_t kept = 0;

	qsort(counts, n, sizeof(*counts), hit_count_compare);
	for (size_t i = 0; i < n; i++) {
		if (kept && !hit_count_compare(&counts[kept - 1], &counts[i]))
			counts[kept - 1].count += counts[i].count;
		else
			counts[kept++] = counts[i];
	}
	return kept;
}

/* Subtract the counts in ->before, and keep those that are not 0. Return how many these are. */
static size_t counts_since(const struct probe_trace *trace, struct probe_trace_count *counts,
			   size_t n)
{
	size_t kept = 0, old = 0;

	for (size_t i = 0; i < n; i++) {
		struct probe_trace_count count = counts[i];

		/* None is ever removed, so each of ->before is in @counts. */
		if (old < trace->nbefore && !hit_count_compare(&count, &trace->before[old]))
			count.count -= trace->before[old++].count;
		if (count.count)
			counts[kept++] = count;
	}
	return kept;
}

ssize_t probe_trace_counts(struct probe_trace *trace, struct probe_trace_count **counts)
{
	struct probe_trace_count *all;
	size_t n, left;

	*counts = calloc(COUNTS_MAX, sizeof(**counts));
	if (!*counts)
		return -ENOMEM;
	n = counts_merge(*counts, counts_read(trace, *counts));
	all = malloc((n + 1) * sizeof(*all));
	if (!all) {
		free(*counts);
		return -ENOMEM;
	}
	memcpy(all, *counts, n * sizeof(*all));
	left = counts_since(trace, *counts, n);
	free(trace->before);
	trace->before = all;
	trace->nbefore = n;
	return (ssize_t)left;
}

void probe_trace_summary(const struct probe_trace *trace, struct probe_trace_summary *summary)
{
	*summary = (struct probe_trace_summary){
		.probes = runtime_counter(&trace->rt, COUNT_STATEMENTS),
		.ring_full = runtime_counter(&trace->rt, LOST_RING_FULL),
		.table_full = runtime_counter(&trace->rt, LOST_TABLE_FULL),
		.undecided = runtime_counter(&trace->rt, LOST_UNDECIDED),
	};
	owners_report(trace->rt.owners, &summary->users);
}

void probe_trace_detach(struct probe_trace *trace)
{
	struct uprobe_links links = { 0 };

	for (size_t i = 0; i < trace->nfiles; i++)
		uprobe_set_move(&links, &trace->files[i].links);
	uprobe_set_detach(&links);
	runtime_detach(&trace->rt);
}

void probe_trace_close(struct probe_trace *trace)
{
	if (!trace)
		return;
	probe_trace_detach(trace);
	for (size_t i = 0; i < trace->nfiles; i++) {
		uprobe_set_free(&trace->files[i].set);
		close(trace->files[i].fd);
	}
	free(trace->files);
	probe_table_free(&trace->table);
	free(trace->before);
	runtime_close(&trace->rt);
	free(trace);
}
