// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/summary.h"

#include "cli/json.h"

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
	output_string(out, "}}\n");
}
