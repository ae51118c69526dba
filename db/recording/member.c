// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recording/member.h"

#include <string.h>

#define ROW(text, kind)	.name = text, .type = MEMBER_ ## kind
#define AT(of, member)	.at = offsetof(struct of, member), .size = sizeof(((struct of *)0)->member)

/* The flags of the first seven take one byte: these are the most frequent. */
#define S(member)	AT(recorded_statement, member)
#define KNOWN(member)	.known = offsetof(struct recorded_statement, member)

const struct member statement_members[] = {
	{ ROW("text", TEXT), S(s.text), KNOWN(s.text_len) },
	{ ROW("status", FLAG), S(s.has_status) },
	{ ROW("counted", FLAG), S(s.has_counts) },
	{ ROW("sent", NUMBER), S(s.sent) },
	{ ROW("whole", FLAG), S(whole) },
	{ ROW("alone", FLAG), S(s.alone) },
	{ ROW("breakdown", BREAKDOWN), S(s.why) },
	{ ROW("affected", NUMBER), S(s.affected), KNOWN(s.has_affected) },
	{ ROW("query_id", NUMBER), S(query) },
	{ ROW("failed", FLAG), S(s.failed) },
	{ ROW("unended", FLAG), S(s.unended) },
	{ ROW("truncated", FLAG), S(s.truncated) },
	{ ROW("query_bytes", NUMBER), S(s.query_bytes), KNOWN(has_bytes) },
	{ ROW("errno", NUMBER), S(s.error_code) },
	{ ROW("sqlstate", STRING), S(s.sqlstate) },
	{ ROW("rows_examined", NUMBER), S(s.examined), KNOWN(s.has_examined) },
	{ ROW("lock_ns", NUMBER), S(s.lock_ns), KNOWN(s.has_lock) },
	{ ROW("plan", NUMBER), S(plan), KNOWN(s.has_index) },
	{ ROW("planned", FLAG), S(s.has_plan) },
	{ ROW("fetches", NUMBER), S(s.fetches) },
	{ ROW("prepare", FLAG), S(s.prepare) },
	{ ROW("running", FLAG), S(s.running) },
	{ ROW("no_text", FLAG), S(s.no_text) },
	{ ROW("died", FLAG), S(s.died) },
	{ ROW("original_bytes", NUMBER), S(s.original_len) },
	{ ROW("traceparent", STRING), S(parent) },
	{ ROW("transaction", FLAG), S(is_transaction) },
	{ ROW("state", NUMBER), S(t.state) },
	{ ROW("dated", FLAG), S(t.dated) },
	{ ROW("statements", NUMBER), S(t.statements), KNOWN(t.counted) },
	{ ROW("idle_ns", NUMBER), S(t.idle_ns) },
	{ ROW("duration_error_ns", NUMBER), S(s.duration_error_ns) },
	{ ROW("query_of", TEXT), S(s.of), KNOWN(s.of_len) },
	{ ROW("query_of_cut", FLAG), S(s.of_cut) },
	{ ROW("level", NUMBER), S(s.level) },
	{ .name = NULL }
};

#undef S
#undef KNOWN
#define W(member)	AT(recorded_wait, member)
#define COUNT(member)	.known = offsetof(struct recorded_wait, member)

const struct member wait_members[] = {
	{ ROW("waiting", FLAG), W(w.running) },
	{ ROW("began_before", FLAG), W(lock.flags), .bit = LOCK_JOINED },
	{ ROW("failed", FLAG), W(lock.flags), .bit = LOCK_FAILED },
	{ ROW("deadlock", FLAG), W(lock.flags), .bit = LOCK_DEADLOCK },
	{ ROW("lwlock", FLAG), W(lock.flags), .bit = LOCK_LWLOCK },
	{ ROW("session", FLAG), W(lock.flags), .bit = LOCK_SESSION },
	{ ROW("lock", STRING), W(kind) },
	{ ROW("type", NUMBER), W(lock.kind) },
	{ ROW("mode", NUMBER), W(lock.mode) },
	{ ROW("tag", LIST), W(lock.field) },
	{ ROW("tranche", STRING), W(lock.name) },
	{ ROW("block", NUMBER), W(lock.block) },
	{ ROW("offset", NUMBER), W(lock.offset) },
	{ ROW("cycle", LIST), W(w.cycle), COUNT(w.ncycle) },
	{ ROW("relation_oid", NUMBER), W(info.relation) },
	{ ROW("relation", STRING), W(info.name) },
	{ ROW("object", STRING), W(info.object) },
	{ ROW("index", STRING), W(info.index) },
	{ ROW("waiter", BACKENDS), W(info.self), COUNT(has_info) },
	{ ROW("holders", BACKENDS), W(info.holders), COUNT(info.nholders) },
	{ ROW("more_holders", NUMBER), W(info.more) },
	{ ROW("all_holders", FLAG), W(info.known) },
	{ ROW("timeout", FLAG), W(lock.flags), .bit = LOCK_TIMEOUT },
	{ ROW("killed", FLAG), W(lock.flags), .bit = LOCK_KILLED },
	{ ROW("granted", FLAG), W(lock.flags), .bit = LOCK_GRANTED },
	{ .name = NULL }
};

#undef W
#undef COUNT
#define B(member)	AT(lock_backend, member)

const struct member backend_members[] = {
	{ ROW("pid", NUMBER), B(pid) },
	{ ROW("connection_id", NUMBER), B(connection) },
	{ ROW("blocked_ns", NUMBER), B(blocked_ns) },
	{ ROW("text", BYTES), B(text), .known = offsetof(struct lock_backend, len) },
	{ ROW("read", FLAG), B(valid) },
	{ ROW("running", FLAG), B(running) },
	{ ROW("idle_read", FLAG), B(idle_valid) },
	{ ROW("idle", FLAG), B(idle) },
	{ ROW("idle_ns", NUMBER), B(idle_ns) },
	{ ROW("queued", FLAG), B(queued) },
	{ ROW("cut", FLAG), B(cut) },
	{ ROW("backend", STRING), B(kind) },
	{ .name = NULL }
};

uint64_t member_value(const struct member *member, const void *of)
{
	const char *at = (const char *)of + member->at;
	uint64_t value = 0;
	uint32_t half;
	uint16_t quarter;

	if (member->size == sizeof(half)) {
		memcpy(&half, at, sizeof(half));
		value = half;
	} else if (member->size == sizeof(quarter)) {
		memcpy(&quarter, at, sizeof(quarter));
		value = quarter;
	} else if (member->size == sizeof(value)) {
		memcpy(&value, at, sizeof(value));
	} else {
		value = *(const uint8_t *)at;
	}
	return member->bit ? value & member->bit : value;
}

size_t member_count(const struct member *member, const void *of, size_t size)
{
	unsigned int count;

	if (!member->known)
		return member->size / size;
	memcpy(&count, (const char *)of + member->known, sizeof(count));
	return count;
}

/* Return whether a list has elements; without their number, whether one of them is not 0. */
static bool list_has(const struct member *member, const void *of)
{
	const char *at = (const char *)of + member->at;

	if (member->known)
		return member_count(member, of, 1);
	for (size_t i = 0; i < member->size; i++)
		if (at[i])
			return true;
	return false;
}

bool member_has(const struct member *member, const void *of)
{
	switch (member->type) {
	case MEMBER_NUMBER:
		if (member->known)
			return *((const bool *)of + member->known);
		return member_value(member, of);
	case MEMBER_STRING:
		return *((const char *)of + member->at);
	case MEMBER_LIST:
		return list_has(member, of);
	case MEMBER_BACKENDS:
		return member_count(member, of, 1);
	case MEMBER_FLAG:
	case MEMBER_BYTES:
	case MEMBER_TEXT:
	case MEMBER_BREAKDOWN:
		break;
	}
	return member_value(member, of);
}

void member_set(const struct member *member, void *of, uint64_t value)
{
	char *at = (char *)of + member->at;
	uint32_t half = (uint32_t)value;
	uint16_t quarter = (uint16_t)value;

	if (member->bit) {
		memcpy(&half, at, sizeof(half));
		half |= member->bit;
	}
	if (member->size == sizeof(half))
		memcpy(at, &half, sizeof(half));
	else if (member->size == sizeof(quarter))
		memcpy(at, &quarter, sizeof(quarter));
	else if (member->size == sizeof(value))
		memcpy(at, &value, sizeof(value));
	else
		*at = (char)value;
	if (member->type == MEMBER_NUMBER && member->known)
		*((bool *)of + member->known) = true;
}
