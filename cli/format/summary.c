// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/summary.h"

#include <stddef.h>
#include <string.h>

#include "base/base.h"
#include "cli/format/escape.h"
#include "cli/format/json.h"
#include "db/discover/target.h"

/* The names of losses in JSON. */
static const char *const summary_names[COUNTERS] = {
	[LOST_RING_FULL] = "ring_full", [LOST_TABLE_FULL] = "table_full",
	[LOST_START_WITHOUT_END] = "start_without_end",
	[LOST_END_WITHOUT_START] = "end_without_start", [LOST_WHO] = "who_unknown",
	[LOST_UNDECIDED] = "undecided",
};

static void json_loss(struct output *out, const char *key, uint64_t count, bool first)
{
	output_printf(out, "%s\"%s\":%llu", first ? "" : ",", key, (unsigned long long)count);
}

/* Append the losses of each user as the member @key or, if @of is not NULL, of each server. */
static void json_rows(struct output *out, const char *key, const struct owners_report *report,
			 const struct summary *of)
{
	for (size_t i = 0; i < report->n; i++) {
		const struct owner_losses *row = &report->row[i];
		const struct target *target = of ?
			target_by_id(of->targets, of->ntargets, row->target_id) : NULL;
		struct server server;

		output_string(out, i ? ",{" : key);
		if (target) {
			describe_server(&server, target->engine, target->version, target->path);
			output_string(out, "\"server\":");
			json_server(out, &server);
			output_char(out, ',');
		}
		json_number(out, "\"uid\":", row->uid);
		if (row->several)
			output_string(out, ",\"several\":true");
		for (int j = 0; j < COUNTERS; j++)
			if (summary_names[j] && row->lost[j])
				json_loss(out, summary_names[j], row->lost[j], false);
		output_char(out, '}');
	}
	if (report->n)
		output_char(out, ']');
}

/* The members of "lost", in order, and their words in the message. */
static const struct {
	const char *key, *words;
	size_t offset;
	unsigned int group;		/* 0: always */
} summary_losses[] = {
	{ "ring_full", "events (buffer full)", offsetof(struct summary, ring_full), 0 },
	{ "table_full", "probe hits (table full)", offsetof(struct summary, table_full), 0 },
	{ "who_unknown", "session records",
	  offsetof(struct summary, who_unknown), SUMMARY_SESSIONS },
	{ "start_without_end", "starts without an end",
	  offsetof(struct summary, start_without_end), SUMMARY_SESSIONS },
	{ "end_without_start", "ends without a start",
	  offsetof(struct summary, end_without_start), SUMMARY_SESSIONS },
	{ "text_unreadable", "unreadable texts",
	  offsetof(struct summary, text_unreadable), SUMMARY_TEXTS },
	{ "text_truncated", "truncated texts",
	  offsetof(struct summary, text_truncated), SUMMARY_TEXTS },
	{ "value_unreadable", "unknown values",
	  offsetof(struct summary, value_unreadable), SUMMARY_VALUES },
	{ "undecided", "hits (unknown values in the filter)",
	  offsetof(struct summary, undecided), SUMMARY_VALUES },
	{ "text_dropped", "texts (overhead limit)",
	  offsetof(struct summary, text_dropped), SUMMARY_LIMIT },
	{ "why_dropped", "time breakdowns (overhead limit)",
	  offsetof(struct summary, why_dropped), SUMMARY_LIMIT },
};

const char *summary_loss_at(const struct summary *summary, size_t i, uint64_t *count,
			    unsigned int *group)
{
	if (i >= sizeof(summary_losses) / sizeof(summary_losses[0]))
		return NULL;
	memcpy(count, (const char *)summary + summary_losses[i].offset, sizeof(*count));
	*group = summary_losses[i].group;
	return summary_losses[i].key;
}

const char *summary_loss_words(size_t i)
{
	return summary_losses[i].words;
}

const char *summary_counter_name(size_t i)
{
	return summary_names[i];
}

bool summary_lost(const struct summary *summary)
{
	uint64_t sum = summary->untraced_ns / NS_PER_MS, count;
	unsigned int group;

	for (size_t i = 0; summary_loss_at(summary, i, &count, &group); i++)
		sum |= count;
	return sum;
}

uint64_t summary_events_lost(const struct summary *s)
{
	return s->ring_full + s->table_full + s->start_without_end + s->end_without_start +
	       s->who_unknown + s->undecided;
}

/* Append one of the losses, behind those that *@before separates. */
static void message_loss(struct output *err, const char **before, uint64_t count, const char *words)
{
	if (!count)
		return;
	output_printf(err, "%s%llu %s", *before, (unsigned long long)count, words);
	*before = ", ";
}

static void message_losses(struct output *err, const struct summary *summary)
{
	const char *before = "; lost: ";
	unsigned int group;
	uint64_t count;

	for (size_t i = 0; summary_loss_at(summary, i, &count, &group); i++)
		message_loss(err, &before, count, summary_losses[i].words);
	message_loss(err, &before, summary->untraced_ns / NS_PER_MS,
		     "ms without probes (overhead limit)");
	output_string(err, summary_lost(summary) ? "\n" : ", nothing lost\n");
}

static void message_users(struct output *err, const struct owners_report *users)
{
	for (size_t i = 0; i < users->n; i++)
		output_printf(err, "%s%u%s: %llu", i ? ", " : "dbslower: lost by user ID: ",
			      users->row[i].uid, users->row[i].several ? " and others" : "",
			      (unsigned long long)owner_losses_sum(&users->row[i]));
	if (users->n)
		output_char(err, '\n');
}

static void message_servers(struct output *err, const struct summary *summary)
{
	const struct owners_report *servers = &summary->servers;

	for (size_t i = 0; i < servers->n; i++) {
		const struct target *target = target_by_id(summary->targets, summary->ntargets,
							   servers->row[i].target_id);

		output_string(err, i ? ", " : "dbslower: lost by server: ");
		if (target)
			escape_terminal(err, target->path, strlen(target->path), false);
		else
			output_string(err, "a file that is no longer traced");
		output_printf(err, " of user ID %u: %llu", servers->row[i].uid,
			      (unsigned long long)owner_losses_sum(&servers->row[i]));
	}
	if (servers->n)
		output_char(err, '\n');
}

void summary_message(struct output *err, const char *noun, const struct summary *summary)
{
	const char *what = summary->printed_noun;

	output_printf(err, "dbslower: %llu %s, %llu %s%sshown",
		      (unsigned long long)summary->statements, noun,
		      (unsigned long long)summary->printed, what ? what : "", what ? " " : "");
	message_losses(err, summary);
	message_users(err, &summary->users);
	message_servers(err, summary);
}

void summary_json(struct output *out, uint64_t wall_ns, const char *noun, unsigned int groups,
		  const struct summary *summary)
{
	unsigned int group;
	const char *key;
	uint64_t count;

	json_head(out, "{\"type\":\"summary\",\"time\":\"", wall_ns, NULL);
	output_printf(out, ",\"%s\":%llu", noun, (unsigned long long)summary->statements);
	json_number(out, ",\"printed\":", summary->printed);
	output_string(out, ",\"lost\":{");
	for (size_t i = 0; (key = summary_loss_at(summary, i, &count, &group)); i++)
		if (!group || group & groups)
			json_loss(out, key, count, !i);
	output_char(out, '}');
	if (groups & SUMMARY_SESSIONS)
		json_number(out, ",\"boundary\":", summary->boundary);
	if (groups & SUMMARY_LIMIT)
		json_ms(out, ",\"untraced_ms\":", summary->untraced_ns);
	json_rows(out, ",\"lost_by_user\":[{", &summary->users, NULL);
	json_rows(out, ",\"lost_by_server\":[{", &summary->servers, summary);
	output_string(out, "}\n");
}
