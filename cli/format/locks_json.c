// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/format/locks_json.h"

#include "cli/format/escape.h"
#include "cli/format/json.h"
#include "cli/format/locks_wait.h"
#include "db/locks/ops.h"

static void json_text(struct output *out, const struct lock_backend *backend)
{
	if (!backend->text)
		return;
	output_string(out, ",\"query\":\"");
	escape_json(out, backend->text, backend->len, backend->cut);
	output_string(out, backend->cut ? "\",\"truncated\":true" : "\",\"truncated\":false");
}

static void json_holder(struct output *out, const struct lock_backend *backend)
{
	if (backend->pid)
		json_number(out, "{\"pid\":", backend->pid);
	else
		output_string(out, "{\"prepared_transaction\":true");
	if (backend->connection)
		json_number(out, ",\"connection_id\":", backend->connection);
	json_known(out, ",\"backend\":\"", backend->kind);
	output_string(out, backend->queued ? ",\"queued\":true" : ",\"queued\":false");
	json_ms(out, ",\"blocked_ms\":", backend->blocked_ns);
	if (backend->valid)
		output_string(out, backend->running ? ",\"running\":true" : ",\"running\":false");
	if (backend->idle_valid)
		output_string(out, backend->idle ? ",\"idle_in_transaction\":true" :
						 ",\"idle_in_transaction\":false");
	if (backend->idle_ns)
		json_ms(out, ",\"idle_ms\":", backend->idle_ns);
	json_text(out, backend);
	output_char(out, '}');
}

static void json_holders(struct output *out, const struct lock_info *info)
{
	output_string(out, ",\"holders\":[");
	for (unsigned int i = 0; i < info->nholders; i++) {
		output_string(out, i ? "," : "");
		json_holder(out, &info->holders[i]);
	}
	output_char(out, ']');
}

/* Append the members of the lock: of a heavyweight lock also the fields of its tag. */
static void json_lock(struct output *out, const struct lock_wait *wait)
{
	const struct event_lock *event = wait->event;
	char object[LOCKS_OBJECT];
	const struct lock_ops *ops = wait->server->engine->lock_ops;
	uint32_t fields, relation;

	locks_wait_object(wait, true, object, sizeof(object));
	json_known(out, ",\"lock\":\"", wait->kind);
	json_known(out, ",\"object\":\"", object);
	if (wait->info)
		json_known(out, ",\"index\":\"", wait->info->index);
	json_known(out, ",\"mode\":\"", locks_wait_mode(wait->server->engine, event));
	if (!ops || !ops->fields || event->flags & LOCK_LWLOCK)
		return;
	fields = ops->fields(wait->kind);
	relation = ops->oid(wait->kind, event, wait->info);
	if (fields & LOCK_TAG_DATABASE)
		json_number(out, ",\"database_oid\":", event->field[0]);
	if (fields & LOCK_TAG_TRANSACTION)
		json_number(out, ",\"transaction\":", event->field[0]);
	if (relation)
		json_number(out, ",\"relation_oid\":", relation);
	if (wait->info)
		json_known(out, ",\"relation\":\"", wait->info->name);
	output_string(out, ",\"tag\":[");
	for (int i = 0; i < 4; i++)
		json_number(out, i ? "," : "", event->field[i]);
	json_number(out, "],\"tag_type\":", event->kind);
}

void locks_json_wait(struct output *out, const struct lock_wait *wait)
{
	const struct lock_info *info = wait->info;

	json_head(out, "{\"type\":\"lock_wait\",\"time\":\"", wait->wall_ns, wait->server);
	json_number(out, ",\"pid\":", wait->who->pid);
	json_number(out, ",\"tid\":", wait->who->tid);
	json_who(out, wait->who);
	json_ms(out, ",\"duration_ms\":", wait->duration_ns);
	output_string(out, wait->joined ? ",\"began_before\":true" : "");
	json_string(out, ",\"outcome\":\"", locks_wait_outcome(wait));
	json_lock(out, wait);
	if (info) {
		json_text(out, &info->self);
		if (info->known || info->nholders)
			json_holders(out, info);
		if (info->more)
			json_number(out, ",\"more_holders\":", info->more);
	}
	for (unsigned int i = 0; i < wait->ncycle; i++)
		json_number(out, i ? "," : ",\"cycle\":[", wait->cycle[i]);
	output_string(out, wait->ncycle ? "]}\n" : "}\n");
}

void locks_json_sum(struct output *out, const struct locks_sum *sum, uint64_t wall_ns,
		    const struct server *server)
{
	json_head(out, "{\"type\":\"lock_stat\",\"time\":\"", wall_ns, server);
	json_known(out, ",\"lock\":\"", sum->of.kind);
	json_known(out, ",\"object\":\"", sum->of.object);
	json_known(out, ",\"mode\":\"", sum->of.mode);
	json_number(out, ",\"waits\":", sum->waits);
	json_number(out, ",\"failed\":", sum->failed);
	json_number(out, ",\"deadlocks\":", sum->deadlocks);
	json_ms(out, ",\"total_ms\":", sum->total_ns);
	json_ms(out, ",\"max_ms\":", sum->max_ns);
	output_string(out, "}\n");
}
