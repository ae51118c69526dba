// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/locks_graph.h"

#include <stdio.h>
#include <string.h>

#include "cli/format/escape.h"

void locks_graph_init(struct locks_graph *graph)
{
	*graph = (struct locks_graph){
		.edges.size = sizeof(struct locks_edge),
		.edges.key_size = sizeof(struct locks_edge_key),
		.nodes.size = sizeof(struct locks_node), .nodes.key_size = sizeof(uint64_t),
	};
}

static bool add_node(struct locks_graph *graph, const struct lock_backend *backend, uint32_t owner)
{
	uint64_t id = locks_backend_id(backend);
	struct locks_node *node = locks_rows_get(&graph->nodes, &id, owner);

	if (!node)
		return false;
	node->connection = backend->connection;
	node->idle = backend->idle;
	if (!backend->text)
		return true;
	node->len = backend->len < sizeof(node->text) ? backend->len : sizeof(node->text);
	memcpy(node->text, backend->text, node->len);
	return true;
}

static bool add_edge(struct locks_graph *graph, const struct locks_edge_key *of,
		     const struct lock_wait *wait, uint64_t ns)
{
	struct locks_edge *edge = locks_rows_get(&graph->edges, of, wait->event->head.owner);

	if (!edge)
		return false;
	edge->waits++;
	edge->total_ns += ns;
	edge->deadlock |= !!(wait->event->flags & LOCK_DEADLOCK);
	return true;
}

bool locks_graph_add(struct locks_graph *graph, const struct lock_wait *wait)
{
	uint32_t owner = wait->event->head.owner;
	char object[LOCKS_OBJECT - 32];
	struct locks_edge_key of;
	bool room;

	if (!wait->info)
		return true;
	memset(&of, 0, sizeof(of));
	of.mode = locks_wait_mode(wait->server->engine, wait->event);
	locks_wait_object(wait, true, object, sizeof(object));
	snprintf(of.object, sizeof(of.object), "%s %s", wait->kind, object);
	of.id = locks_backend_id(&wait->info->self);
	room = add_node(graph, &wait->info->self, owner);
	for (unsigned int i = 0; room && i < wait->info->nholders; i++) {
		const struct lock_backend *holder = &wait->info->holders[i];

		of.holder = locks_backend_id(holder);
		of.queued = holder->queued;
		room = add_node(graph, holder, owner) &&
		       add_edge(graph, &of, wait, holder->blocked_ns);
	}
	return room;
}

static void print_node(struct output *out, const struct locks_node *node)
{
	output_printf(out, "\t\"%llu\" [label=\"%s", (unsigned long long)node->id,
		      node->connection ? "connection " : "");
	if (node->id)
		output_u64(out, node->id);
	else
		output_string(out, "prepared transaction");
	output_string(out, node->idle ? ", idle in transaction\\n" : "\\n");
	/* JSON's escapes are valid in a string of Graphviz, too. */
	escape_json(out, node->text, node->len, true);
	output_string(out, "\"];\n");
}

static void print_edge(struct output *out, const struct locks_edge *edge)
{
	output_printf(out, "\t\"%llu\" -> \"%llu\" [label=\"", (unsigned long long)edge->of.id,
		      (unsigned long long)edge->of.holder);
	escape_json(out, edge->of.object, strlen(edge->of.object), false);
	output_printf(out, "\\n%s%s", edge->of.mode, *edge->of.mode ? "\\n" : "");
	output_fixed(out, edge->total_ns / 1000, 3);
	output_string(out, " ms");
	if (edge->waits > 1)
		output_printf(out, " in %llu waits", (unsigned long long)edge->waits);
	output_string(out, edge->of.queued ? "\", style=dashed" : "\"");
	output_string(out, edge->deadlock ? ", color=red];\n" : "];\n");
}

void locks_graph_print(const struct locks_graph *graph, struct output *out)
{
	const struct locks_node *nodes = graph->nodes.row;
	const struct locks_edge *edges = graph->edges.row;

	output_string(out, "digraph locks {\n\trankdir=LR;\n\tnode [shape=box];\n");
	for (size_t i = 0; i < graph->nodes.n; i++)
		print_node(out, &nodes[i]);
	for (size_t i = 0; i < graph->edges.n; i++)
		print_edge(out, &edges[i]);
	output_string(out, "}\n");
}

void locks_graph_free(struct locks_graph *graph)
{
	locks_rows_free(&graph->edges);
	locks_rows_free(&graph->nodes);
}
