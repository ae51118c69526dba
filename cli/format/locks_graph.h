/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The graph of lock waits: who waited for whom. */
#ifndef CLI_FORMAT_LOCKS_GRAPH_H
#define CLI_FORMAT_LOCKS_GRAPH_H

#include "cli/format/locks_wait.h"
#include "cli/output.h"

/* The waits of one backend for another, for one object in one mode. */
struct locks_edge {
	uint64_t id, holder;		/* holder 0: a prepared transaction */
	bool queued, deadlock;
	char object[LOCKS_OBJECT];	/* foreign bytes */
	const char *mode;
	uint64_t waits, total_ns;
};

/* A backend. */
struct locks_node {
	uint64_t id;
	bool connection;		/* ->id is that of a connection, not a PID */
	bool idle;			/* in a transaction, when last seen */
	char text[128];			/* its last statement, cut; foreign bytes, no NUL */
	size_t len;
};

/* All zero: empty. Owns the arrays. */
struct locks_graph {
	struct locks_edge *edges;
	struct locks_node *nodes;
	size_t nedges, nnodes;
};

/* Add a wait. Ignore it if its backends are unknown or if there is no room. */
void locks_graph_add(struct locks_graph *graph, const struct lock_wait *wait);

/* Append the graph in the DOT language of Graphviz. */
void locks_graph_print(const struct locks_graph *graph, struct output *out);

void locks_graph_free(struct locks_graph *graph);

#endif
