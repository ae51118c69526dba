// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/locks_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/format/escape.h"

static void add_node(struct locks_graph *graph, const struct lock_backend *backend)
{
	struct locks_node *node = graph->nodes;

	for (size_t i = 0; i < graph->nnodes && node->id != locks_backend_id(backend); i++)
		node++;
	if (!graph->nnodes || node == graph->nodes + graph->nnodes) {
		node = locks_rows_grow(graph->nodes, graph->nnodes, sizeof(*node));
		if (!node)
			return;
		graph->nodes = node;
		node += graph->nnodes++;
		*node = (struct locks_node){ .id = locks_backend_id(backend),
					     .connection = backend->connection };
	}
	node->idle = backend->idle;
	if (!backend->text)
		return;
	node->len = backend->len < sizeof(node->text) ? backend->len : sizeof(node->text);
	memcpy(node->text, backend->text, node->len);
}

static void add_edge(struct locks_graph *graph, const struct locks_edge *edge)
{
	struct locks_edge *to = graph->edges;

	for (size_t i = 0; i < graph->nedges; i++, to++)
		if (to->id == edge->id && to->holder == edge->holder &&
		    to->mode == edge->mode && to->queued == edge->queued &&
		    !strcmp(to->object, edge->object))
			break;
	if (!graph->nedges || to == graph->edges + graph->nedges) {
		to = locks_rows_grow(graph->edges, graph->nedges, sizeof(*to));
		if (!to)
			return;
		graph->edges = to;
		to[graph->nedges++] = *edge;
		return;
	}
	to->waits++;
	to->total_ns += edge->total_ns;
	to->deadlock |= edge->deadlock;
}

void locks_graph_add(struct locks_graph *graph, const struct lock_wait *wait)
{
	struct locks_edge edge = {
		.mode = locks_wait_mode(wait->server->engine, wait->event),
		.deadlock = wait->event->flags & LOCK_DEADLOCK, .waits = 1,
	};
	char object[LOCKS_OBJECT - 32];

	if (!wait->info)
		return;
	locks_wait_object(wait, true, object, sizeof(object));
	snprintf(edge.object, sizeof(edge.object), "%s %s", wait->kind, object);
	edge.id = locks_backend_id(&wait->info->self);
	add_node(graph, &wait->info->self);
	for (unsigned int i = 0; i < wait->info->nholders; i++) {
		edge.holder = locks_backend_id(&wait->info->holders[i]);
		edge.queued = wait->info->holders[i].queued;
		edge.total_ns = wait->info->holders[i].blocked_ns;
		add_node(graph, &wait->info->holders[i]);
		add_edge(graph, &edge);
	}
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
	output_printf(out, "\t\"%llu\" -> \"%llu\" [label=\"", (unsigned long long)edge->id,
		      (unsigned long long)edge->holder);
	escape_json(out, edge->object, strlen(edge->object), false);
	output_printf(out, "\\n%s%s", edge->mode, *edge->mode ? "\\n" : "");
	output_fixed(out, edge->total_ns / 1000, 3);
	output_string(out, " ms");
	if (edge->waits > 1)
		output_printf(out, " in %llu waits", (unsigned long long)edge->waits);
	output_string(out, edge->queued ? "\", style=dashed" : "\"");
	output_string(out, edge->deadlock ? ", color=red];\n" : "];\n");
}

void locks_graph_print(const struct locks_graph *graph, struct output *out)
{
	output_string(out, "digraph locks {\n\trankdir=LR;\n\tnode [shape=box];\n");
	for (size_t i = 0; i < graph->nnodes; i++)
		print_node(out, &graph->nodes[i]);
	for (size_t i = 0; i < graph->nedges; i++)
		print_edge(out, &graph->edges[i]);
	output_string(out, "}\n");
}

void locks_graph_free(struct locks_graph *graph)
{
	free(graph->edges);
	free(graph->nodes);
	*graph = (struct locks_graph){ .edges = NULL };
}
