/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How dbslower locks shows waits: one by one, summed up, and as a graph. */
#ifndef CLI_LOCKS_PRINT_H
#define CLI_LOCKS_PRINT_H

#include "cli/output.h"
#include "db/locks.h"

#define LOCKS_OBJECT	192

/* Waits for one object in one mode. */
struct locks_sum {
	const char *engine;
	char kind[24], object[LOCKS_OBJECT];	/* foreign bytes */
	const char *mode;
	uint64_t waits, failed, deadlocks, total_ns, max_ns;
};

/* Waits of one process, or connection, for another. */
struct locks_edge {
	uint64_t id, holder;		/* holder 0: a prepared transaction */
	bool queued, deadlock;
	char object[LOCKS_OBJECT];
	const char *mode;
	uint64_t waits, total_ns;
};

/* A process or connection of the graph. */
struct locks_node {
	uint64_t id;
	bool connection;
	bool idle;			/* when it was last looked at, in a transaction */
	char text[128];			/* its last statement, cut; no NUL */
	size_t len;
};

struct locks_view {
	struct output *out;
	bool json, wall;
	uint64_t start_ns;		/* what times count from, CLOCK_MONOTONIC */
	/* Owned. */
	struct locks_sum *sums;
	struct locks_edge *edges;
	struct locks_node *nodes;
	size_t nsums, nedges, nnodes;
	uint64_t unsummed;		/* waits that there was no room for */
};

void locks_view_free(struct locks_view *view);

/* Adds the line of headers. */
void locks_show_header(struct locks_view *view);

/* Adds a wait: a line, and one for each that held the lock. */
void locks_show_wait(struct locks_view *view, const struct lock_wait *wait);

/* Adds it to the table. */
void locks_sum_wait(struct locks_view *view, const struct lock_wait *wait);

/* Adds the table, with @counts, in which equal ones are added up. */
void locks_show_sums(struct locks_view *view, const struct lwlock_count *counts, size_t n);

/* Adds the line that ends JSON; ->statements are waits. */
void locks_show_summary(struct locks_view *view, const struct summary *summary);

/* Adds it to the graph. */
void locks_graph_wait(struct locks_view *view, const struct lock_wait *wait);

/* Adds the graph, in Graphviz' language, to @out. */
void locks_show_graph(const struct locks_view *view, struct output *out);

#endif
