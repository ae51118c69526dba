/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loader/: bpf(2) and perf_event_open(2): linking and folding of programs, feature probes,
 * attaching, ring and perf buffers, and the sandbox. The runtime below owns what every tracer
 * needs.
 * It knows no databases, and reports an error as a code and a subject, not as a text.
 */

/*
 * The common part of all tracers: the BPF objects with their maps and constants by name, the stream
 * of records, the attach method, and the fallbacks for missing kernel features.
 *
 * Order of calls:
 *
 *	runtime_open(), runtime_maps(), runtime_constant(), runtime_stream(), runtime_ready();
 *	runtime_attach(), runtime_tracepoint(), runtime_listen();
 *	runtime_drain() and runtime_sleep();
 *	runtime_detach(), runtime_drain(), runtime_close().
 */
#ifndef LOADER_RUNTIME_H
#define LOADER_RUNTIME_H

#include "loader/attach.h"
#include "loader/error.h"
#include "loader/feature.h"
#include "loader/linker.h"
#include "loader/owners.h"
#include "loader/run_time.h"
#include "loader/sandbox.h"
#include "loader/stream.h"
#include "loader/sys.h"
#include "loader/uprobe_set.h"

#define RUNTIME_OBJECTS		2
#define RUNTIME_VALUES		160	/* limit of maps and constants */
#define RUNTIME_MAPS		48
#define RUNTIME_TRACEPOINTS	16

/*
 * In map_def.flags: allocate elements when they are added, if tracing programs may do so
 * (FEATURE_TRACING_ALLOC); else the kernel allocates all of them at once.
 */
#define RUNTIME_ALLOC		(1u << 31)

struct runtime_config {
	/* Objects of bpf/embed.h, searched for programs in this order; must outlive this. */
	struct runtime_object {
		const unsigned char *start, *end;
	} objects[RUNTIME_OBJECTS];
	uint32_t denied;		/* features not to be used, see feature_deny() */
	bool measure;			/* for runtime_run_ns() */
	bool (*is_program)(const char *name);	/* for process_read() */

	void *arg;			/* of these functions: */
	/* Return whether to attach to no further file; may be NULL. */
	bool (*stopped)(void *arg);
	/* Called for a failure that does not end tracing. */
	void (*error)(void *arg, const struct error *error);
};

/* All zero is not open. Everything is owned. */
struct runtime {
	struct runtime_config config;
	struct features features;
	enum attach_method method;
	struct attacher attacher;
	struct object objects[RUNTIME_OBJECTS];
	size_t nobjects;
	struct object_value values[RUNTIME_VALUES];
	size_t nvalues;
	const char *unknown;		/* a map or constant that no object has; or NULL */
	int maps[RUNTIME_MAPS];
	size_t nmaps;
	int counters;			/* map "counters", borrowed from ->maps */
	uint64_t pid_ns_dev, pid_ns_ino;	/* PID namespace of records; 0: initial */
	int64_t ahead_ns;		/* see clock_ahead() */
	uint64_t wall_offset_ns;	/* CLOCK_REALTIME - the programs' clock at the last drain */
	bool perf_buffers;		/* there is no ring buffer */
	uint32_t record_limit;		/* maximum bytes of a record in this stream */
	uint32_t ring_bytes;		/* size of the ring buffer, or of each perf buffer */
	size_t record_max;		/* bytes of the longest record */
	struct stream stream;
	struct owners *owners;
	uint64_t secret;		/* constant_secret */
	bool uncounted;			/* the kernel does not count semaphores */
	struct run_time run_time;
	struct runtime_attached {
		int link;		/* -1: paused */
		int prog;		/* of a tracepoint that pauses, owned; else -1 */
		const char *name;	/* as in struct runtime_tracepoint */
		int event;
	} tracepoints[RUNTIME_TRACEPOINTS];
	size_t ntracepoints;
};

/*
 * Open the objects, raise the limits of this process and choose between the kernel's features and
 * their fallbacks. Return 0, or -errno and the cause in @error. runtime_close() ends it in both
 * cases.
 */
int runtime_open(struct runtime *rt, const struct runtime_config *config, struct error *error);

/*
 * Open only the object in @start to @end, with a value for each map and constant, for linking
 * without the kernel. Return 0 or -errno. Nothing needs to be closed.
 */
int runtime_open_offline(struct runtime *rt, const unsigned char *start, const unsigned char *end);

/* Create @n maps. Return 0, or -errno and the cause in @error. */
int runtime_maps(struct runtime *rt, const struct map_def *maps, size_t n, struct error *error);

/* Return the descriptor of map @name, borrowed; -1 if it was not created. */
int runtime_map(const struct runtime *rt, const char *name);

/*
 * Set the constant @name ("constant_threshold_ns") of the programs that are linked from now on.
 * runtime_ready() fails if no object has a constant of that name.
 */
void runtime_constant(struct runtime *rt, const char *name, uint64_t value);

/*
 * Create the maps of the stream: a ring buffer of at least @ring_min bytes, a power of two of
 * pages, for records of up to @record_max bytes; or perf buffers. Return as runtime_maps().
 */
int runtime_stream(struct runtime *rt, uint32_t ring_min, size_t record_max, struct error *error);

/*
 * Prepare attaching: check the names of constants and maps, and that uprobes can be attached.
 * Return 0, or -errno and the cause in @error.
 */
int runtime_ready(struct runtime *rt, struct error *error);

/*
 * Attach @set to @file. Return 0, or -errno and the cause in @error with nothing attached.
 * uprobe_set_detach() ends it.
 */
int runtime_attach(struct runtime *rt, const struct uprobe_set *set, const struct uprobe_file *file,
		   struct uprobe_links *links, struct error *error);

/* A program and its tracepoint. Everything is borrowed. */
struct runtime_tracepoint {
	const char *program;		/* in the first object that has it */
	const char *name;		/* of the tracepoint, "sched_switch" */
	int event;			/* number of the tracefs event; 0: a raw tracepoint */
	bool pauses;			/* for runtime_pause() */
};

/* Return whether the owner has asked to attach to no further file. */
static inline bool runtime_stopped(const struct runtime *rt)
{
	return rt->config.stopped && rt->config.stopped(rt->config.arg);
}

/* Attach a program until runtime_detach(). Return 0, or -errno and the cause in @error. */
int runtime_tracepoint(struct runtime *rt, const struct runtime_tracepoint *tracepoint,
		       struct error *error);

/* Detach from the tracepoints that pause, unless that was done. */
void runtime_pause(struct runtime *rt);

/* Attach to them again. Return 0 or -errno: some are not attached. Requires SANDBOX_TRACEPOINTS. */
int runtime_resume(struct runtime *rt);

/* Map the ring buffer, if there is one. Return 0, or -errno and the cause in @error. */
int runtime_listen(struct runtime *rt, struct error *error);

/*
 * Pass the waiting records to @handler, which returns 0. Return the fill level of the buffer in
 * percent.
 */
int runtime_drain(struct runtime *rt, int (*handler)(void *arg, const void *data, size_t size),
		  void *arg);

/*
 * Request a wake-up at the next record. Return the descriptor that becomes readable with it, or
 * -EAGAIN if there are records.
 */
int runtime_sleep(struct runtime *rt);

/* Return the sum over all CPUs of @counter, an enum counter. */
uint64_t runtime_counter(const struct runtime *rt, uint32_t counter);

/*
 * Store the CPU time of all programs in *@ns, with config->measure. Return as run_time_read().
 */
int runtime_run_ns(const struct runtime *rt, uint64_t *ns);

/* Convert @kernel_ns of the programs' clock to this process's CLOCK_MONOTONIC. */
static inline uint64_t runtime_here_ns(const struct runtime *rt, uint64_t kernel_ns)
{
	return kernel_ns + (uint64_t)rt->ahead_ns;
}

/* Convert @kernel_ns of the programs' clock to CLOCK_REALTIME as of the last drain. */
static inline uint64_t runtime_wall_ns(const struct runtime *rt, uint64_t kernel_ns)
{
	return kernel_ns + rt->wall_offset_ns;
}

/* Return the programs' clock, in ns. */
uint64_t runtime_now(const struct runtime *rt);

/*
 * Confine the process that attaches, if there is one, to @needs. Return what this process requires
 * for @needs and for detaching, for sandbox_enter().
 */
unsigned int runtime_needs(const struct runtime *rt, unsigned int needs);

/* Let the programs know that detaching begins at @now_ns of their clock. The caller is awake. */
void runtime_detaching(struct runtime *rt, uint64_t now_ns);

/* Detach from the tracepoints. The tracer detaches its uprobes itself. */
void runtime_detach(struct runtime *rt);

/* Detach and free everything. */
void runtime_close(struct runtime *rt);

#endif
