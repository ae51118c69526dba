// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/report/sessions.h"

#include "cli/format/html.h"
#include "cli/report/chart.h"
#include "cli/report/svg.h"

#define LANES		16
#define LANE_HEIGHT	26
#define LANE_LEFT	170
#define NODES		32
#define EDGES		64
#define RANKS		6
#define NEGLIGIBLE	100		/* part of the longest time that is not drawn */
#define NODE_WIDTH	230
#define NODE_HEIGHT	40
#define NODE_X		330		/* distances */
#define NODE_Y		64
#define ARROW		7
#define BEND		40
#define TEXT_COLUMNS	28

void report_session(struct output *out, const struct report_session *session)
{
	if (session->connection)
		output_string(out, "connection ");
	else
		output_string(out, session->pid ? "pid " : "prepared transaction");
	if (report_session_known(session))
		output_u64(out, session->connection ? session->connection : session->pid);
}

/* All names of engines are of the report, so that equal ones are one. */
static bool same(const struct report_session *a, const char *engine,
		 const struct report_session *b, const char *other)
{
	return engine == other && report_session_same(a, b);
}

/* The timeline */

struct lane {
	const struct report_session *session;
	const char *engine;
	bool idle;			/* in a transaction, when it blocked another one */
	bool active;			/* .. but not for all of the time */
};

struct timeline {
	const struct report *report;
	struct output *out;
	uint64_t from, to;		/* CLOCK_REALTIME, ns */
	struct lane lanes[LANES];
	unsigned int count, room;
	bool full;			/* some had no room */
};

static int lane_find(const struct timeline *t, const struct report_session *session,
		     const char *engine)
{
	for (unsigned int i = 0; i < t->count; i++)
		if (same(t->lanes[i].session, t->lanes[i].engine, session, engine))
			return (int)i;
	return -1;
}

/* Return the lane of a session; NULL: no room. */
static struct lane *lane_add(struct timeline *t, const struct report_session *session,
			     const char *engine)
{
	int at = lane_find(t, session, engine);

	if (at < 0 && t->count == t->room) {
		t->full = true;
		return NULL;
	}
	if (at < 0) {
		at = (int)t->count++;
		t->lanes[at] = (struct lane){ .session = session, .engine = engine };
	}
	return &t->lanes[at];
}

static uint64_t end_of(const struct report_kept *kept)
{
	uint64_t end = kept->wall_ns + kept->duration_ns;

	return end < kept->wall_ns ? UINT64_MAX : end;
}

static bool is_inside(const struct timeline *t, const struct report_kept *kept)
{
	return kept->wall_ns && kept->wall_ns < t->to && end_of(kept) > t->from;
}

/* Add the session of @kept, which was active. */
static void lane_active(struct timeline *t, const struct report_kept *kept)
{
	struct lane *lane = lane_add(t, &kept->session, kept->engine);

	if (lane)
		lane->active |= kept->duration_ns >= (t->to - t->from) / NEGLIGIBLE;
}

/* Find the sessions, @around among them: those that others waited for come before these. */
static void lanes_find(struct timeline *t, const struct report_kept *around)
{
	const struct report *r = t->report;

	t->room = LANES - 1;
	for (unsigned int i = 0; i < r->longest.count; i++) {
		const struct report_lock_wait *wait = &r->waits[r->longest_order[i]];

		if (!is_inside(t, &wait->kept))
			continue;
		for (unsigned int j = 0; j < wait->nholders; j++) {
			struct lane *lane = lane_add(t, &wait->holders[j].session,
						     wait->kept.engine);

			if (lane)
				lane->idle |= wait->holders[j].idle;
		}
		lane_active(t, &wait->kept);
	}
	t->room = LANES;
	lane_active(t, around);
	for (unsigned int i = 0; i < r->slowest.count; i++) {
		const struct report_kept *kept = &r->statements[r->slowest_order[i]].kept;

		if (is_inside(t, kept) && report_session_known(&kept->session))
			lane_active(t, kept);
	}
}

static unsigned int time_x(const struct timeline *t, uint64_t ns)
{
	double share;

	if (ns <= t->from)
		return LANE_LEFT;
	share = (double)(ns - t->from) / (double)(t->to - t->from);
	return LANE_LEFT + (unsigned int)((share < 1 ? share : 1) * (SVG_FULL - LANE_LEFT - 16));
}

/* The strips of a lane, from its top. */
enum strip {
	STRIP_STATEMENT, STRIP_WAIT, STRIP_BLOCK,
};

/* Append the begin of a bar, up to its title, which lane_bar_end() ends. */
static void lane_bar(const struct timeline *t, const char *class, int lane, enum strip strip,
		     const uint64_t time[2])
{
	static const unsigned int top[] = { 4, 14, 19 }, height[] = { 10, 5, 4 };
	unsigned int x = time_x(t, time[0]), end = time_x(t, time[1]);

	output_printf(t->out, "<rect class=\"%s\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\">"
		      "<title>", class, x, (unsigned int)lane * LANE_HEIGHT + top[strip],
		      end > x ? end - x : 1, height[strip]);
}

static void lane_bar_end(const struct timeline *t, const struct report_text *text)
{
	output_string(t->out, ": ");
	if (text->bytes)
		html_short(t->out, text->bytes, text->len, 200);
	output_string(t->out, "</title></rect>");
}

/* Append the bar of a statement or a wait, with its text when it is pointed at. */
static void lane_kept(const struct timeline *t, const struct report_kept *kept, const char *class,
		      int lane, enum strip strip)
{
	lane_bar(t, class, lane, strip, (uint64_t[]){ kept->wall_ns, end_of(kept) });
	output_string(t->out, strip == STRIP_WAIT ? "waits for a lock, " : "");
	report_duration(t->out, kept->duration_ns);
	lane_bar_end(t, &kept->text);
}

/*
 * Append the time during which @holder blocked @wait, and an arrow to it from the waiter's lane.
 * Arrows of several lanes that begin together are beside each other.
 */
static void lane_block(const struct timeline *t, const struct report_lock_wait *wait, int from,
		       const struct report_holder *holder)
{
	int to = lane_find(t, &holder->session, wait->kept.engine);
	uint64_t begin = wait->kept.wall_ns;
	unsigned int x = time_x(t, begin), end = time_x(t, end_of(&wait->kept)), y;

	if (to < 0 || to == from || end < x + ARROW ||
	    holder->blocked_ns < wait->kept.duration_ns / NEGLIGIBLE)
		return;
	lane_bar(t, "ho", to, STRIP_BLOCK,
		 (uint64_t[]){ begin, begin + holder->blocked_ns });
	output_string(t->out, holder->queued ? "ahead in the queue of " : "blocks ");
	report_session(t->out, &wait->kept.session);
	output_string(t->out, ", ");
	report_duration(t->out, holder->blocked_ns);
	lane_bar_end(t, &holder->text);
	x += 4 + (unsigned int)from % 8 * 4;
	x = x < end ? x : end;
	y = (unsigned int)to * LANE_HEIGHT + (to > from ? 4 : 24);
	output_printf(t->out, "<path class=\"ar%s\" d=\"M%u %uV%u\"/><path class=\"ah\" d=\"M%u "
		      "%ul-4 %d h8z\"/>", holder->queued ? " q" : "", x,
		      (unsigned int)from * LANE_HEIGHT + 16, y, x, y, to > from ? -ARROW : ARROW);
}

static void lanes_waits(const struct timeline *t)
{
	const struct report *r = t->report;

	for (unsigned int i = 0; i < r->longest.count; i++) {
		const struct report_lock_wait *wait = &r->waits[r->longest_order[i]];
		int lane = lane_find(t, &wait->kept.session, wait->kept.engine);

		if (!is_inside(t, &wait->kept) || lane < 0)
			continue;
		lane_kept(t, &wait->kept, wait->deadlock ? "wt dl" : "wt", lane, STRIP_WAIT);
		for (unsigned int j = 0; j < wait->nholders; j++)
			lane_block(t, wait, lane, &wait->holders[j]);
	}
}

static void lanes_draw(const struct timeline *t, const struct report_kept *around)
{
	const struct report *r = t->report;

	svg_open(t->out, "lanes", SVG_FULL, t->count * LANE_HEIGHT + 24,
		 "Sessions: their statements, lock waits, and arrows to those that they wait for. "
		 "The tables of statements and lock waits have the same.");
	svg_time_axis(t->out, &(struct svg_time){
		.from = t->from / 1000000, .to = t->to / 1000000 + 1, .x = LANE_LEFT,
		.width = SVG_FULL - LANE_LEFT - 16, .top = 0, .bottom = t->count * LANE_HEIGHT,
	});
	for (unsigned int i = 0; i < t->count; i++) {
		output_printf(t->out, "<text class=\"yl\" x=\"%u\" y=\"%u\">", LANE_LEFT - 8,
			      i * LANE_HEIGHT + 17);
		report_session(t->out, t->lanes[i].session);
		output_string(t->out, t->lanes[i].idle && !t->lanes[i].active ?
			      ", idle</text>" : "</text>");
	}
	for (unsigned int i = 0; i < r->slowest.count; i++) {
		const struct report_statement *s = &r->statements[r->slowest_order[i]];
		int lane = lane_find(t, &s->kept.session, s->kept.engine);

		if (is_inside(t, &s->kept) && lane >= 0)
			lane_kept(t, &s->kept, &s->kept == around ? "st fo" : s->failed ? "st er" :
				  "st", lane, STRIP_STATEMENT);
	}
	lanes_waits(t);
	svg_close(t->out);
}

void report_timeline(const struct report *r, struct output *out, const struct report_kept *around)
{
	uint64_t margin = around->duration_ns / 8 + 1000000, end = end_of(around);
	struct timeline t = { .report = r, .out = out };

	t.from = around->wall_ns > margin ? around->wall_ns - margin : 0;
	t.to = end < UINT64_MAX - margin ? end + margin : UINT64_MAX;
	lanes_find(&t, around);
	lanes_draw(&t, around);
	if (t.full)
		output_printf(out, "<p class=\"note\">More sessions were active at that time; %u "
			      "are shown.</p>\n", LANES);
}

void report_timeline_legend(struct output *out)
{
	static const char *const names[][2] = {
		{ "st", "statement" }, { "st er", "failed statement" },
		{ "wt", "waits for a lock" }, { "ho", "blocks others" },
	};

	output_string(out, "<ul class=\"legend\">");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		output_printf(out, "<li><svg viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect "
			      "class=\"%s\" width=\"10\" height=\"10\"/></svg>%s</li>",
			      names[i][0], names[i][1]);
	output_string(out, "<li>&#8594; waits for; dashed: ahead in the queue</li></ul>\n");
}

/* The graph */

struct node {
	const struct report_session *session;
	const char *engine;
	const struct report_text *text;
	bool idle, used, labelled;	/* ->used: has an edge */
	unsigned int rank, row;		/* rank 0: waits for nobody */
};

struct edge {
	unsigned int from, to;		/* nodes */
	uint64_t ns, waits;
	bool queued, deadlock, back;	/* ->back: closes a cycle */
	const struct report_lock_wait *longest;
};

struct graph {
	struct node nodes[NODES];
	struct edge edges[EDGES];
	unsigned int nnodes, nedges, shorter;	/* ->shorter: edges that were left out */
	bool full;
};

/* Return the number of a session's node; NODES: no room. */
static unsigned int node_of(struct graph *g, const struct report_session *session,
			    const char *engine, const struct report_text *text)
{
	unsigned int i = 0;

	while (i < g->nnodes && !same(g->nodes[i].session, g->nodes[i].engine, session, engine))
		i++;
	if (i == NODES) {
		g->full = true;
		return i;
	}
	if (i == g->nnodes)
		g->nodes[g->nnodes++] = (struct node){ .session = session, .engine = engine,
						       .text = text };
	return i;
}

static void edge_add(struct graph *g, const struct edge *new)
{
	struct edge *edge = g->edges;

	while (edge < g->edges + g->nedges && !(edge->from == new->from && edge->to == new->to &&
						edge->queued == new->queued))
		edge++;
	if (edge < g->edges + g->nedges) {
		edge->ns += new->ns;
		edge->waits++;
		edge->deadlock |= new->deadlock;
	} else if (g->nedges < EDGES) {
		g->edges[g->nedges++] = *new;
	} else {
		g->full = true;
	}
}

static void graph_make(struct graph *g, const struct report *r)
{
	for (unsigned int i = 0; i < r->longest.count; i++) {
		const struct report_lock_wait *wait = &r->waits[r->longest_order[i]];
		struct edge edge = { .deadlock = wait->deadlock, .waits = 1, .longest = wait };

		for (unsigned int j = 0; j < wait->nholders; j++) {
			const struct report_holder *holder = &wait->holders[j];

			edge.from = node_of(g, &wait->kept.session, wait->kept.engine,
					    &wait->kept.text);
			edge.to = node_of(g, &holder->session, wait->kept.engine, &holder->text);
			if (edge.from == NODES || edge.to == NODES)
				continue;
			g->nodes[edge.to].idle |= holder->idle;
			edge.queued = holder->queued;
			edge.ns = holder->blocked_ns;
			edge_add(g, &edge);
		}
	}
}

/* Leave out the edges that are negligible beside the longest one. */
static void graph_shorten(struct graph *g)
{
	unsigned int count = 0;
	uint64_t most = 0;

	for (unsigned int i = 0; i < g->nedges; i++)
		most = g->edges[i].ns > most ? g->edges[i].ns : most;
	for (unsigned int i = 0; i < g->nedges; i++)
		if (g->edges[i].deadlock || g->edges[i].ns >= most / NEGLIGIBLE)
			g->edges[count++] = g->edges[i];
	g->shorter = g->nedges - count;
	g->nedges = count;
}

/*
 * Set the ranks: waiters are left of those that they wait for. Edges are in the order of their
 * longest waits, so that of a cycle, also one of waits at different times, the shortest leads back.
 */
static void graph_rank(struct graph *g)
{
	uint32_t reached[NODES] = { 0 };	/* the nodes that each waits for, of NODES bits */

	for (struct edge *e = g->edges; e < g->edges + g->nedges; e++) {
		uint32_t to = reached[e->to] | 1u << e->to;

		g->nodes[e->from].used = g->nodes[e->to].used = true;
		e->back = to >> e->from & 1;
		for (unsigned int i = 0; i < NODES && !e->back; i++)
			if (i == e->from || reached[i] >> e->from & 1)
				reached[i] |= to;
	}
	for (unsigned int i = 0; i < RANKS; i++)
		for (struct edge *e = g->edges; e < g->edges + g->nedges; e++)
			if (!e->back && g->nodes[e->from].rank <= g->nodes[e->to].rank &&
			    g->nodes[e->to].rank < RANKS - 1)
				g->nodes[e->from].rank = g->nodes[e->to].rank + 1;
}

static void node_draw(struct output *out, const struct node *node, unsigned int i, unsigned int x,
		      unsigned int y)
{
	output_printf(out, "<g data-i=\"%u\"><rect class=\"nd%s\" x=\"%u\" y=\"%u\" width=\"%u\" "
		      "height=\"%u\" rx=\"4\"/>"
		      "<text class=\"nt\" x=\"%u\" y=\"%u\">", i, node->idle ? " id" : "", x, y,
		      NODE_WIDTH, NODE_HEIGHT, x + 8, y + 16);
	report_session(out, node->session);
	output_string(out, node->idle ? ", idle in transaction" : "");
	output_printf(out, "</text><text class=\"nq\" x=\"%u\" y=\"%u\">", x + 8, y + 32);
	if (node->text->bytes)
		html_short(out, node->text->bytes, node->text->len, TEXT_COLUMNS);
	output_string(out, "</text></g>");
}

static void edge_title(struct output *out, const struct edge *edge)
{
	output_string(out, "<title>");
	html_string(out, edge->longest->kind);
	output_char(out, ' ');
	html_string(out, edge->longest->object);
	output_printf(out, "%s%s", *edge->longest->mode ? ", " : "", edge->longest->mode);
	if (edge->waits > 1)
		output_printf(out, ", %llu waits", (unsigned long long)edge->waits);
	output_string(out, edge->queued ? ", ahead in the "
		      "queue</title></path>" : "</title></path>");
}

/* Return whether an edge is between neighbours: else it runs between two rows of nodes. */
static bool is_direct(const unsigned int from[2], const unsigned int to[2])
{
	return from[0] + NODE_X == to[0];
}

/* Append the waits of an edge for the script: the row of each in the table, and its ns. */
static void edge_waits(const struct report *r, struct output *out, const struct graph *g,
		       const struct edge *edge)
{
	const struct node *from = &g->nodes[edge->from], *to = &g->nodes[edge->to];

	output_printf(out, " data-n=\"%u %u\" data-w=\"", edge->from, edge->to);
	for (unsigned int i = 0; i < r->longest.count; i++) {
		const struct report_lock_wait *wait = &r->waits[r->longest_order[i]];

		for (unsigned int j = 0; j < wait->nholders; j++) {
			const struct report_holder *holder = &wait->holders[j];

			if (holder->queued == edge->queued &&
			    same(from->session, from->engine, &wait->kept.session,
				 wait->kept.engine) &&
			    same(to->session, to->engine, &holder->session, wait->kept.engine))
				output_printf(out, "%u %llu,", i,
					      (unsigned long long)holder->blocked_ns);
		}
	}
	output_char(out, '"');
}

/* Append an arrow from the right of a node to the left of another. */
static void edge_draw(const struct report *r, struct output *out, const struct graph *g,
		      const struct edge *edge, const unsigned int from[2], const unsigned int to[2])
{
	unsigned int x = from[0] + NODE_WIDTH, y = from[1] + NODE_HEIGHT / 2;
	unsigned int end = to[0], at = to[1] + NODE_HEIGHT / 2, gap = y + NODE_Y / 2;
	unsigned int bend = from[0] < to[0] ? 2 * BEND : 0;

	output_printf(out, "<g><path class=\"ar%s%s\"", edge->queued ? " q" : "",
		      edge->deadlock ? " dl" : "");
	edge_waits(r, out, g, edge);
	output_printf(out, " d=\"M%u %uC%u %u ", x, y, x + BEND, y);
	if (!is_direct(from, to))
		output_printf(out, "%u %u %u %uH%uC%u %u ", x + BEND, gap, x + bend, gap,
			      end - bend, end - BEND, gap);
	output_printf(out, "%u %u %u %u\">", end - BEND, at, end, at);
	edge_title(out, edge);
	output_printf(out, "<path class=\"ah\" d=\"M%u %ul-%u -4v8z\"/></g>", end, at, ARROW);
}

/* Append the time of an edge, near the waiter; of edges that begin as one line, one is shown. */
static void edge_label(struct output *out, const struct edge *edge, const unsigned int from[2],
		       const unsigned int to[2], bool *labelled)
{
	unsigned int x = from[0] + (NODE_WIDTH + NODE_X) / 2;
	unsigned int y = (from[1] + to[1]) / 2 + NODE_HEIGHT / 2;
	bool hidden = false;

	if (!is_direct(from, to)) {
		hidden = *labelled;
		*labelled = true;
		x = from[0] + NODE_WIDTH + (from[0] < to[0] ? 3 * BEND : 0) - BEND / 2;
		y = from[1] + NODE_HEIGHT / 2 + NODE_Y / 2;
	}
	output_printf(out, "<text class=\"el%s\" x=\"%u\" y=\"%u\">", hidden ? " off" : "", x,
		      y - 3);
	report_duration(out, edge->ns);
	output_string(out, "</text>");
}

void report_graph(const struct report *r, struct output *out)
{
	unsigned int rows[RANKS] = { 0 }, ranks = 0, most = 0, place[NODES][2];
	struct graph g = { .nnodes = 0 };

	graph_make(&g, r);
	graph_shorten(&g);
	graph_rank(&g);
	if (!g.nedges) {
		output_string(out, "<p class=\"note\">No holder of an awaited lock is "
			      "known.</p>\n");
		return;
	}
	for (unsigned int i = 0; i < g.nnodes; i++) {
		struct node *node = &g.nodes[i];

		if (!node->used)
			continue;
		ranks = node->rank > ranks ? node->rank : ranks;
		node->row = rows[node->rank]++;
		most = rows[node->rank] > most ? rows[node->rank] : most;
	}
	for (unsigned int i = 0; i < g.nnodes; i++) {
		place[i][0] = (ranks - g.nodes[i].rank) * NODE_X + 40;
		place[i][1] = g.nodes[i].row * NODE_Y + 16;
	}
	output_string(out, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
		      "aria-label=\"Graph of lock waits\">");
	svg_open(out, "graph", ranks * NODE_X + NODE_WIDTH + 80, most * NODE_Y + 20,
		 "Graph of lock waits: an arrow from each waiter to each holder of the lock. The "
		 "table of lock waits has the same.");
	for (unsigned int i = 0; i < g.nedges; i++)
		edge_draw(r, out, &g, &g.edges[i], place[g.edges[i].from], place[g.edges[i].to]);
	for (unsigned int i = 0; i < g.nnodes; i++)
		if (g.nodes[i].used)
			node_draw(out, &g.nodes[i], i, place[i][0], place[i][1]);
	for (unsigned int i = 0; i < g.nedges; i++)
		edge_label(out, &g.edges[i], place[g.edges[i].from], place[g.edges[i].to],
			   &g.nodes[g.edges[i].from].labelled);
	svg_close(out);
	output_string(out, "</div>\n<p class=\"note\" id=\"none\" hidden>No arrow is of the "
		      "selected time.</p>\n");
	if (g.shorter)
		output_printf(out, "<p class=\"note\">%u arrows of less than 1%% of the longest "
			      "time are not drawn.</p>\n", g.shorter);
	if (g.full)
		output_printf(out, "<p class=\"note\">Only %u sessions and %u arrows are drawn, "
			      "those of "
			      "the longest waits.</p>\n", g.nnodes, g.nedges);
}
