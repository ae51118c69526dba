// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/summary.h"

#include <stddef.h>
#include <string.h>

#include "cli/json.h"
#include "db/target.h"

/* The names of losses in JSON. */
static const char *const summary_names[COUNTERS] = {
	[LOST_RING_FULL] = "ring_full", [LOST_TABLE_FULL] = "table_full",
	[LOST_START_WITHOUT_END] = "start_without_end",
	[LOST_END_WITHOUT_START] = "end_without_start", [LOST_WHO] = "who_unknown",
	[LOST_UNDECIDED] = "undecided",
};

static void summary_loss(struct output *out, const char *key, uint64_t count, bool first)
{
	output_printf(out, "%s\"%s\":%llu", first ? "" : ",", key, (unsigned long long)count);
}

/* Append the losses of each user as the member @key or, if @of is not NULL, of each server. */
static void summary_rows(struct output *out, const char *key, const struct owners_report *report,
			 const struct summary *of)
{
	for (size_t i = 0; i < report->n; i++) {
		const struct owner_losses *row = &report->row[i];
		const struct target *target = of ?
			target_by_id(of->targets, of->ntargets, row->target_id) : NULL;

		output_string(out, i ? ",{" : key);
		if (target) {
			output_string(out, "\"server\":");
			json_server(out, &(struct json_server){
				.engine = describe_engine(target->engine, target->version),
				.version = target->version, .path = target->path,
			});
			output_char(out, ',');
		}
		json_number(out, "\"uid\":", row->uid);
		if (row->several)
			output_string(out, ",\"several\":true");
		for (int j = 0; j < COUNTERS; j++)
			if (summary_names[j] && row->lost[j])
				summary_loss(out, summary_names[j], row->lost[j], false);
		output_char(out, '}');
	}
	if (report->n)
		output_char(out, ']');
}

/* The members of "lost", in order. */
static const struct {
	const char *key;
	size_t offset;
	unsigned int group;		/* 0: always */
} summary_losses[] = {
	{ "ring_full", offsetof(struct summary, ring_full), 0 },
	{ "table_full", offsetof(struct summary, table_full), 0 },
	{ "who_unknown", offsetof(struct summary, who_unknown), SUMMARY_SESSIONS },
	{ "start_without_end", offsetof(struct summary, start_without_end), SUMMARY_SESSIONS },
	{ "end_without_start", offsetof(struct summary, end_without_start), SUMMARY_SESSIONS },
	{ "text_unreadable", offsetof(struct summary, text_unreadable), SUMMARY_TEXTS },
	{ "text_truncated", offsetof(struct summary, text_truncated), SUMMARY_TEXTS },
	{ "value_unreadable", offsetof(struct summary, value_unreadable), SUMMARY_VALUES },
	{ "undecided", offsetof(struct summary, undecided), SUMMARY_VALUES },
	{ "text_dropped", offsetof(struct summary, text_dropped), SUMMARY_LIMIT },
	{ "why_dropped", offsetof(struct summary, why_dropped), SUMMARY_LIMIT },
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
			summary_loss(out, key, count, !i);
	output_char(out, '}');
	if (groups & SUMMARY_SESSIONS)
		json_number(out, ",\"boundary\":", summary->boundary);
	if (groups & SUMMARY_LIMIT)
		json_ms(out, ",\"untraced_ms\":", summary->untraced_ns);
	summary_rows(out, ",\"lost_by_user\":[{", &summary->users, NULL);
	summary_rows(out, ",\"lost_by_server\":[{", &summary->servers, summary);
	output_string(out, "}\n");
}
