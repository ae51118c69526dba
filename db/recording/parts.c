// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recording/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/engines.h"
#include "db/recording/shape.h"
#include "db/session/breakdown.h"

/* The lists of version 1, as the layout of a later one would name them. */
static const char layout_of_version1[] =
	"parts cpu runqueue disk fsync lock lwlock futex network pipe sleep ipc stopped other\n"
	"phases parse rewrite plan execute\n"
	"resources read_bytes write_bytes read_calls write_calls minor_faults major_faults "
	"peak_growth_bytes sent_bytes received_bytes shared_blks_hit shared_blks_read "
	"shared_blks_dirtied shared_blks_written local_blks_hit local_blks_read "
	"local_blks_dirtied local_blks_written temp_blks_read temp_blks_written wal_records "
	"wal_fpi wal_bytes sorts sorts_external sort_bytes sort_blocks\n"
	"plan no_good_index no_index filesort filesort_on_disk filesort_priority_queue full_join "
	"full_scan tmp_table tmp_table_on_disk\n"
	"losses ring_full table_full start_without_end end_without_start who_unknown "
	"text_unreadable text_truncated text_dropped why_dropped\n";

#define PHASES_OF_VERSION1	0xf	/* all are there */
#define TEXT_MAX	(1u << 20)	/* bytes of a statement's text */
#define SERVER_MAX	8192		/* bytes of a server, which are kept */

int decode_file_open(struct decode_file *file)
{
	char text[LAYOUT_TEXT];
	size_t len = layout_write(text);

	*file = (struct decode_file){ .servers = calloc(DECODE_SERVERS, sizeof(*file->servers)) };
	crc32c_init(&file->crc);
	layout_read(&file->ours, text, len);
	file->ours_crc = crc32c_of(&file->crc, text, len);
	layout_read(&file->first, layout_of_version1, strlen(layout_of_version1));
	return file->servers ? 0 : -ENOMEM;
}

void decode_file_close(struct decode_file *file)
{
	for (size_t i = 0; i < file->nservers; i++)
		free(file->bytes[i].data);
	free(file->servers);
	*file = (struct decode_file){ .servers = NULL };
}

static const struct layout *decode_layout(const struct decode_file *file,
					  const struct recording_block *block)
{
	if (block->version == 1)
		return &file->first;
	if (block->layout == file->ours_crc)
		return &file->ours;
	return file->has_file && block->layout == file->of_file_crc ? &file->of_file : NULL;
}

bool decode_knows(const struct decode_file *file, const struct recording_block *block)
{
	return decode_layout(file, block);
}

int decode_open(struct decode *d, struct decode_file *file)
{
	*d = (struct decode){
		.file = file, .sessions = calloc(RECORDING_SESSIONS, sizeof(*d->sessions)),
		.text = malloc(2 * TEXT_MAX),
	};
	return d->sessions && d->text ? 0 : -ENOMEM;
}

void decode_close(struct decode *d)
{
	for (size_t i = 0; i < RECORDING_TEXTS; i++)
		free(d->texts[i].text);
	free(d->sessions);
	free(d->text);
	*d = (struct decode){ .file = NULL };
}

void decode_block(struct decode *d, const struct recording_block *block, const uint8_t *events)
{
	d->block = (struct decoder){ .at = events, .end = events + block->length };
	d->version = block->version;
	d->kind = block->kind;
	d->layout = decode_layout(d->file, block);
	d->nserver = d->nsessions = d->ncalls = d->nqueries = d->ntexts = 0;
	d->start_ns = d->wall_offset_ns = 0;
}

uint32_t decode_index(struct decoder *body, uint64_t number, uint32_t count, uint32_t size)
{
	if (number >= count || count - number > size)
		body->failed = true;
	return (uint32_t)(number % size);
}

/* Read the properties of a server to @s. */
static void server_read(struct decoder *body, struct decode_server *s)
{
	struct server *server = &s->server;
	uint64_t dialect, uid;

	decode_name(body, s->name, sizeof(s->name));
	s->unknown = (struct engine){
		.name = s->name, .title = s->name, .otel_system = s->otel_system,
	};
	server->engine = engines_by_name(s->name);
	if (!server->engine)
		server->engine = &s->unknown;
	decode_name(body, s->product, sizeof(s->product));
	server->product = *s->product ? s->product : s->name;
	decode_name(body, s->otel_system, sizeof(s->otel_system));
	server->otel_system = s->otel_system;
	decode_copy(body, server->version, sizeof(server->version));
	decode_copy(body, server->path, sizeof(server->path));
	dialect = decode_number(body);
	s->unknown.dialect = dialect < FINGERPRINT_UNKNOWN ? (enum fingerprint_dialect)dialect :
							      FINGERPRINT_UNKNOWN;
	decode_copy(body, server->container, sizeof(server->container));
	uid = decode_number(body);
	server->has_uid = uid;
	server->uid = uid ? (uint32_t)(uid - 1) : 0;
	server->pid = (uint32_t)decode_number(body);
	decode_copy(body, server->directory, sizeof(server->directory));
	/* These are of a server that was found. */
	if (!server->pid || !uid) {
		server->pid = 0;
		*server->directory = '\0';
	}
}

/* Return whether server @i has these bytes, of this CRC32C. */
static bool server_is(struct decode_file *file, size_t i, const uint8_t *bytes, size_t len,
		      uint32_t crc)
{
	if (file->bytes[i].crc != crc || file->bytes[i].len != len)
		return false;
	file->work += len;
	return !memcmp(file->bytes[i].data, bytes, len);
}

int decode_add_server(struct decode *d, struct decoder *body)
{
	size_t len = (size_t)(body->end - body->at), i = 0;
	struct decode_file *file = d->file;
	uint32_t crc;

	if (len > SERVER_MAX)
		return -EBADMSG;
	/* Most that differ are of one length. */
	crc = crc32c_of(&file->crc, body->at, len);
	while (i < file->nservers && !server_is(file, i, body->at, len, crc))
		i++;
	if (i == file->nservers) {
		if (i == DECODE_SERVERS)
			return -EBADMSG;
		file->bytes[i].data = malloc(len + 1);
		if (!file->bytes[i].data)
			return -ENOMEM;
		memcpy(file->bytes[i].data, body->at, len);
		file->bytes[i].len = len;
		file->bytes[i].crc = crc;
		server_read(body, &file->servers[i]);
		if (body->failed) {
			free(file->bytes[i].data);
			file->bytes[i].data = NULL;
			return -EBADMSG;
		}
		file->nservers++;
	}
	d->server[d->nserver++ % RECORDING_SERVERS] = (uint32_t)i;
	return 0;
}

void decode_server_at(const struct decode *d, struct decoder *body, uint32_t *at)
{
	uint32_t entry = decode_index(body, decode_number(body), d->nserver,
					  RECORDING_SERVERS);

	*at = body->failed ? 0 : d->server[entry];
}

int decode_add_session(struct decode *d, struct decoder *body)
{
	struct decode_session *s = &d->sessions[d->nsessions++ % RECORDING_SESSIONS];
	struct who *who = &s->who;
	uint32_t server;
	uint64_t uid;

	decode_server_at(d, body, &server);
	if (body->failed)
		return -EBADMSG;
	s->server = &d->file->servers[server].server;
	who->pid = (uint32_t)decode_number(body);
	who->tid = (uint32_t)decode_number(body);
	uid = decode_number(body);
	/* Of a server that was not found, the user is that of each session. */
	if (uid && (!s->server->has_uid || s->server->uid != (uint32_t)(uid - 1))) {
		s->other = *s->server;
		s->other.has_uid = true;
		s->other.uid = (uint32_t)(uid - 1);
		s->server = &s->other;
	}
	who->connection = decode_number(body);
	decode_copy(body, who->user, sizeof(who->user));
	decode_copy(body, who->database, sizeof(who->database));
	decode_copy(body, who->client, sizeof(who->client));
	decode_copy(body, who->application, sizeof(who->application));
	*who->backend = '\0';
	if (body->at < body->end)
		decode_copy(body, who->backend, sizeof(who->backend));
	return body->failed ? -EBADMSG : 0;
}

int decode_add_call(struct decode *d, struct decoder *body)
{
	struct decode_call *call = &d->calls[d->ncalls++ % RECORDING_CALLS];
	char name[SYSCALL_NAME];

	decode_copy(body, name, sizeof(name));
	call->call = breakdown_call_number(name);
	*call->event = '\0';
	if (body->at < body->end)
		decode_name(body, call->event, sizeof(call->event));
	return body->failed ? -EBADMSG : 0;
}

int decode_add_query(struct decode *d, struct decoder *body)
{
	d->queries[d->nqueries++ % RECORDING_QUERIES] = decode_number(body);
	return body->failed ? -EBADMSG : 0;
}

/* Return the number of our list, or -1, of bit @bit of the file's list @of. */
static int decode_bit(const struct decode *d, enum layout_of of, unsigned int bit)
{
	const struct layout_list *list = &d->layout->lists[of];

	return bit < list->count ? list->to[bit] : -1;
}

/* Read a value for each bit of @present, by the names of the file's list @of; others stay. */
static void decode_values(const struct decode *d, struct decoder *body, enum layout_of of,
			  uint64_t present, __u64 *values)
{
	for (; present; present &= present - 1) {
		int at = decode_bit(d, of, (unsigned int)__builtin_ctzll(present));
		uint64_t value = decode_number(body);

		if (at >= 0)
			values[at] = value;
	}
}

uint64_t decode_bits(const struct decode *d, enum layout_of of, uint64_t bits)
{
	uint64_t ours = 0;

	for (; bits; bits &= bits - 1) {
		int at = decode_bit(d, of, (unsigned int)__builtin_ctzll(bits));

		ours |= at >= 0 ? 1ull << at : 0;
	}
	return ours;
}

void decode_sparse(const struct decode *d, struct decoder *body, enum layout_of of,
			  __u64 *values)
{
	decode_values(d, body, of, decode_number(body), values);
}

static void decode_calls(struct decode *d, struct decoder *body)
{
	uint64_t n = decode_number(body);

	for (uint64_t i = 0; i < n && !body->failed; i++) {
		const struct decode_call *call =
			&d->calls[decode_index(body, decode_number(body), d->ncalls,
					       RECORDING_CALLS)];
		struct breakdown_wait wait = { .call = call->call };

		wait.sleeps = (uint32_t)decode_number(body);
		wait.ns = decode_number(body);
		if (i >= BREAKDOWN_WAITS)
			continue;
		d->why.waits[i] = wait;
		memcpy(d->event[i], call->event, sizeof(call->event));
	}
}

void decode_why(struct decode *d, struct decoder *body)
{
	struct event_breakdown *why = &d->why;
	__u64 phases[PHASES] = { 0 };

	*why = (struct event_breakdown){ .tid = 0 };
	decode_sparse(d, body, LAYOUT_PARTS, why->ns);
	decode_calls(d, body);
	why->workers.count = decode_number(body);
	if (why->workers.count)
		decode_sparse(d, body, LAYOUT_PARTS, why->workers.ns);
	decode_values(d, body, LAYOUT_PHASES,
		      d->version == 1 ? PHASES_OF_VERSION1 : decode_number(body), phases);
	for (int i = 0; i < PHASES; i++) {
		why->phases[i].first_ns = phases[i];
		why->phases[i].ns = phases[i] ? phases[i] - 1 : 0;
	}
	why->used = (uint32_t)decode_number(body);
	if (why->used || d->version > 1)
		decode_sparse(d, body, LAYOUT_RESOURCES, why->use);
	why->used = (uint32_t)decode_bits(d, LAYOUT_RESOURCES, why->used);
}

void decode_sqlstate(struct statement *s)
{
	if (strspn(s->sqlstate, SQLSTATE_CHARACTERS) != SQLSTATE_LENGTH)
		*s->sqlstate = '\0';
}

void decode_text(struct decode *d, struct decoder *body, struct statement *s, bool behind)
{
	char *room = d->text + (behind ? TEXT_MAX : 0);
	uint64_t number = decode_number(body), len;
	enum shape_change change;
	char *kept;

	if (number) {
		if (number > RECORDING_TEXTS || number > d->ntexts)
			body->failed = true;
		if (body->failed)
			return;
		s->text = room;
		s->text_len = shape_apply(body, d->texts[number - 1].text,
					  d->texts[number - 1].len, room, TEXT_MAX, &change);
		d->file->work += s->text_len;
		if (!s->truncated && change != SHAPE_OTHER &&
		    (change == SHAPE_SAME || d->texts[number - 1].plain))
			s->alike = d->texts[number - 1].alike;
		return;
	}
	len = decode_number(body);
	s->text = (const char *)decode_bytes(body, len);
	if (!s->text || len > TEXT_MAX) {
		body->failed = true;
		return;
	}
	s->text_len = len;
	if (len > RECORDING_TEXT_MAX)
		return;
	kept = realloc(d->texts[d->ntexts % RECORDING_TEXTS].text, len + 1);
	if (!kept) {
		body->failed = true;
		return;
	}
	memcpy(kept, s->text, len);
	d->texts[d->ntexts % RECORDING_TEXTS].text = kept;
	s->alike = s->truncated ? 0 : ++d->file->alike;
	d->texts[d->ntexts % RECORDING_TEXTS].alike = s->alike;
	d->texts[d->ntexts % RECORDING_TEXTS].plain = shape_is_plain(kept, len);
	d->texts[d->ntexts++ % RECORDING_TEXTS].len = len;
}

const struct decode_session *decode_session_of(const struct decode *d, struct decoder *body)
{
	uint32_t at = decode_index(body, decode_number(body), d->nsessions,
				       RECORDING_SESSIONS);

	return body->failed ? NULL : &d->sessions[at];
}
