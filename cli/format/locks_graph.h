/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The graph of lock waits: who waited for whom. */
#ifndef CLI_FORMAT_LOCKS_GRAPH_H
#define CLI_FORMAT_LOCKS_GRAPH_H

#include "cli/format/locks_rows.h"
#include "cli/format/locks_wait.h"
#include "cli/output.h"

/* The waits of one backend for another, for one object in one mode. */
struct locks_edge {
	struct locks_edge_key {
		uint64_t id, holder;	/* holder 0: a prepared transaction */
		uint64_t queued;
		const char *mode;
		char object[LOCKS_OBJECT];	/* foreign bytes, and zeros */
	} of;
	bool deadlock;
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

struct locks_graph {
	struct locks_rows edges, nodes;
};

/* Start an empty graph. */
void locks_graph_init(struct locks_graph *graph);

/* Add a wait, unless its backends are unknown. Return false if there is no room for it. */
bool locks_graph_add(struct locks_graph *graph, const struct lock_wait *wait);

/* Append the graph in the DOT language of Graphviz. */
void locks_graph_print(const struct locks_graph *graph, struct output *out);

void locks_graph_free(struct locks_graph *graph);

#endif
