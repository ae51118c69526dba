// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/summary.h"

#include <string.h>

#include "base/base.h"
#include "cli/format/escape.h"
#include "cli/format/json.h"

static void json_loss(struct output *out, const char *key, uint64_t count, bool first)
{
	output_printf(out, "%s\"%s\":%llu", first ? "" : ",", key, (unsigned long long)count);
}

/* Append the losses of each user as the member @key or, if @files is not NULL, of each server. */
static void json_rows(struct output *out, const char *key, const struct owners_report *report,
		      const struct server *files)
{
	for (size_t i = 0; i < report->n; i++) {
		const struct owner_losses *row = &report->row[i];

		output_string(out, i ? ",{" : key);
		if (files && files[i].engine) {
			output_string(out, "\"server\":");
			json_server(out, &files[i]);
			output_char(out, ',');
		}
		json_number(out, "\"uid\":", row->uid);
		if (row->several)
			output_string(out, ",\"several\":true");
		for (unsigned int j = 0; j < COUNTERS; j++) {
			const char *name = loss_of_counter(j);

			if (name && row->lost[j])
				json_loss(out, name, row->lost[j], false);
		}
		output_char(out, '}');
	}
	if (report->n)
		output_char(out, ']');
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

	for (size_t i = 0; i < LOSSES; i++)
		message_loss(err, &before, summary->lost[i], loss_rows[i].words);
	message_loss(err, &before, summary->untraced_ns / NS_PER_MS,
		     "ms without probes (overhead limit)");
	output_string(err, loss_any(summary) ? "\n" : ", nothing lost\n");
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
		const char *path = summary->files[i].path;

		output_string(err, i ? ", " : "dbslower: lost by server: ");
		if (*path)
			escape_terminal(err, path, strlen(path), false);
		else
			output_string(err, "an unknown file");
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
	if (summary->unseen_ns) {
		output_string(err, "dbslower: statements shorter than ");
		output_ms(err, summary->unseen_ns);
		output_string(err, " ms are not sampled\n");
	}
	message_users(err, &summary->users);
	message_servers(err, summary);
}

void summary_json(struct output *out, uint64_t wall_ns, const char *noun, unsigned int groups,
		  const struct summary *summary)
{
	bool first = true;

	json_head(out, "{\"type\":\"summary\",\"time\":\"", wall_ns, NULL);
	output_printf(out, ",\"%s\":%llu", noun, (unsigned long long)summary->statements);
	json_number(out, ",\"printed\":", summary->printed);
	output_string(out, ",\"lost\":{");
	for (size_t i = 0; i < LOSSES; i++) {
		if (!loss_is_of((enum loss)i, groups))
			continue;
		json_loss(out, loss_rows[i].name, summary->lost[i], first);
		first = false;
	}
	output_char(out, '}');
	if (groups & LOSSES_OF_SESSIONS)
		json_number(out, ",\"boundary\":", summary->boundary);
	if (groups & LOSSES_OF_SAMPLES)
		json_ms(out, ",\"unseen_below_ms\":", summary->unseen_ns);
	if (groups & LOSSES_OF_LIMIT)
		json_ms(out, ",\"untraced_ms\":", summary->untraced_ns);
	json_rows(out, ",\"lost_by_user\":[{", &summary->users, NULL);
	json_rows(out, ",\"lost_by_server\":[{", &summary->servers, summary->files);
	output_string(out, "}\n");
}
