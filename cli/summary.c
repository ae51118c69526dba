// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/summary.h"

#include "cli/json.h"

/* The names of losses in JSON. */
static const char *const summary_names[COUNTERS] = {
	[LOST_RING_FULL] = "ring_full", [LOST_TABLE_FULL] = "table_full",
	[LOST_START_WITHOUT_END] = "start_without_end",
	[LOST_END_WITHOUT_START] = "end_without_start", [LOST_WHO] = "who_unknown",
	[LOST_UNDECIDED] = "undecided",
};

static void summary_user(struct output *out, const struct owner_losses *user)
{
	json_number(out, "{\"uid\":", user->uid);
	if (user->several)
		output_string(out, ",\"several\":true");
	for (int i = 0; i < COUNTERS; i++)
		if (summary_names[i] && user->lost[i])
			output_printf(out, ",\"%s\":%llu", summary_names[i],
				      (unsigned long long)user->lost[i]);
	output_char(out, '}');
}

void summary_json_end(struct output *out, const struct summary *summary)
{
	output_string(out, summary->users.n ? "},\"lost_by_user\":[" : "}");
	for (size_t i = 0; i < summary->users.n; i++) {
		output_string(out, i ? "," : "");
		summary_user(out, &summary->users.user[i]);
	}
	output_string(out, summary->users.n ? "]}\n" : "}\n");
}

void summary_json(struct output *out, const struct summary *summary)
{
	json_number(out, "{\"type\":\"summary\",\"statements\":", summary->statements);
	json_number(out, ",\"printed\":", summary->printed);
	json_number(out, ",\"lost\":{\"ring_full\":", summary->ring_full);
	json_number(out, ",\"table_full\":", summary->table_full);
	json_number(out, ",\"who_unknown\":", summary->who_unknown);
	json_number(out, ",\"start_without_end\":", summary->start_without_end);
	json_number(out, ",\"end_without_start\":", summary->end_without_start);
	json_number(out, ",\"text_unreadable\":", summary->text_unreadable);
	json_number(out, ",\"text_truncated\":", summary->text_truncated);
	summary_json_end(out, summary);
}
