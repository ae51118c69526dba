// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/recording/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/locks/info.h"
#include "db/recording/layout.h"
#include "loader/owners.h"

#define COMMIT_NS	1000000000u	/* how long an event waits in memory, at most */
#define SEGMENTS_MIN	4		/* with fewer, nobody has segments of its own */
#define SLACK		4096		/* bytes for the end of a block that is to fill a segment */
#define STATUS		1024		/* bytes of the head and a status, at most */

/* Return the bytes of an event with texts of at most @text_bytes: a wait has those of holders. */
static uint64_t event_max(uint32_t text_bytes)
{
	uint64_t held = text_bytes < RECORDING_HELD_MAX ? text_bytes : RECORDING_HELD_MAX;
	uint64_t wait = (1 + LOCK_HOLDERS_KEPT) * held;

	return SLACK + (wait > text_bytes ? wait : text_bytes);
}

void writer_open(struct writer *w, uint64_t id, uint64_t memory, uint32_t text_bytes)
{
	char layout[LAYOUT_TEXT];

	w->block = (struct recording_block){ .version = RECORDING_VERSION, .id = id };
	w->fd = -1;
	w->memory = memory;
	w->block_max = WRITER_BLOCK + SLACK + event_max(text_bytes);
	crc32c_init(&w->crc);
	for (int i = 0; i < WRITER_USERS; i++)
		w->users[i].last = &w->users[i].first;
	encode_open(&w->users[0].encode);
	w->block.layout = crc32c_of(&w->crc, layout, layout_write(layout));
	encode_option(&w->users[0].encode, LAYOUT_OPTION, layout);
}

/* Write all @len bytes to the file, from its offset on. Return 0 or -errno. */
static int writer_bytes(struct writer *w, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = write(w->fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		data += n;
		len -= (size_t)n;
		w->at += (uint64_t)n;
	}
	return 0;
}

/* Move to @offset of the file. Return 0 or -errno. */
static int writer_seek(struct writer *w, uint64_t offset)
{
	/* The sandbox permits this one, but not pwrite(2). */
	if (w->at != offset && lseek(w->fd, (off_t)offset, SEEK_SET) < 0)
		return -errno;
	w->at = offset;
	return 0;
}

static uint64_t segment_offset(const struct writer *w, const struct writer_segment *segment)
{
	return w->begin + (uint64_t)(segment - w->segments) * w->segment_bytes;
}

/* Overwrite what follows the blocks of @segment: older ones. Return 0 or -errno. */
static int writer_clear(struct writer *w, struct writer_segment *segment)
{
	uint8_t zeros[4096] = { 0 };
	uint64_t left = segment->end - segment->used;
	int err = left ? writer_seek(w, segment_offset(w, segment) + segment->used) : 0;

	for (; !err && left; left -= left < sizeof(zeros) ? left : sizeof(zeros))
		err = writer_bytes(w, zeros, left < sizeof(zeros) ? left : sizeof(zeros));
	segment->end = segment->used;
	return err;
}

/* Count that the events of @part, of @user, are lost to newer ones. */
static void writer_displace(struct writer_user *user, const struct writer_part *part)
{
	user->told.statements += part->statements;
	user->told.waits += part->waits;
	if (part->end_ns > user->told.last_ns)
		user->told.last_ns = part->end_ns;
}

/* Return the oldest segment of @of, NULL: of all, but @without. */
static struct writer_segment *writer_oldest(struct writer *w, const struct writer_user *of,
					    const struct writer_segment *without)
{
	struct writer_segment *oldest = NULL;

	for (uint64_t i = 0; i < w->nsegments; i++) {
		struct writer_segment *one = &w->segments[i];

		if ((of && one->user != of) || one == without)
			continue;
		if (!oldest || one->sequence < oldest->sequence)
			oldest = one;
	}
	return oldest;
}

/* Return whether who has most has its share of the file; a segment of its own counts as full. */
static bool writer_sated(const struct writer *w)
{
	uint64_t bytes = w->segment_bytes;

	for (uint64_t i = 0; w->heavy && i < w->nsegments; i++)
		bytes += w->segments[i].user == w->heavy ? w->segment_bytes :
			 w->segments[i].part[w->heavy - w->users].bytes;
	return w->heavy && bytes > OWNER_SHARE(w->nsegments * w->segment_bytes);
}

/*
 * Begin a segment at ->current[@own], with block @sequence: an unused one, as that has no sequence,
 * else the oldest one, of the heaviest user if that has its share. Return 0 or -errno.
 */
static int writer_take(struct writer *w, bool own, uint64_t sequence)
{
	struct writer_segment *other = w->current[!own], *next = writer_oldest(w, NULL, other);
	struct writer_segment *heavys = writer_sated(w) ? writer_oldest(w, w->heavy, other) : NULL;
	int err = w->current[own] ? writer_clear(w, w->current[own]) : 0;

	if (next->sequence && heavys)
		next = heavys;
	for (int i = 0; i < WRITER_USERS; i++) {
		writer_displace(&w->users[i], &next->part[i]);
		w->users[i].bytes -= next->part[i].bytes;
	}
	/* What it had stays until it is overwritten. */
	*next = (struct writer_segment){
		.user = own ? w->heavy : NULL, .sequence = sequence, .end = next->end,
	};
	w->current[own] = next;
	return err;
}

/* Return whether blocks of @user are in segments of its own: those of who has most are. */
static bool writer_own(struct writer *w, const struct writer_user *user)
{
	if (w->nsegments < SEGMENTS_MIN)
		return false;
	/* Not of two that have as much in turn. */
	if (!w->heavy || user->bytes > w->heavy->bytes / 4 * 5) {
		w->heavy = user;
		w->current[true] = NULL;
	}
	return user == w->heavy;
}

/* Make room for a block of @len bytes of @user, the number of which is @sequence. */
static int writer_room(struct writer *w, const struct writer_user *user, uint64_t len,
		       uint64_t sequence)
{
	bool own = writer_own(w, user);
	const struct writer_segment *segment = w->current[own];

	if (len > w->segment_bytes || (segment && len <= w->segment_bytes - segment->used))
		return 0;
	return writer_take(w, own, sequence);
}

/*
 * Write a complete block of @user with the events of @part. In a ring, it replaces the oldest ones:
 * what remains of the last of these is no block for a reader, as its head is gone.
 */
static int writer_block(struct writer *w, struct writer_user *user, const struct writer_part *part,
			uint64_t sequence, const uint8_t *data, size_t len)
{
	struct writer_segment *segment;
	struct writer_part *sum;
	int err = writer_room(w, user, len, sequence);

	if (len > w->segment_bytes) {
		w->dropped++;
		writer_displace(user, part);
		return 0;
	}
	segment = w->current[user == w->heavy];
	if (!err)
		err = writer_seek(w, segment_offset(w, segment) + segment->used);
	if (!err)
		err = writer_bytes(w, data, len);
	if (err)
		return err;
	segment->used += len;
	segment->end = segment->used > segment->end ? segment->used : segment->end;
	sum = &segment->part[user - w->users];
	sum->bytes += len;
	sum->statements += part->statements;
	sum->waits += part->waits;
	sum->end_ns = part->end_ns > sum->end_ns ? part->end_ns : sum->end_ns;
	user->bytes += len;
	w->written += len;
	return 0;
}

/* Write RECORDING_START, and divide what remains of the file. Return 0 or -errno. */
static int writer_start(struct writer *w, const uint8_t *data, size_t len)
{
	uint64_t room = w->limit > len ? w->limit - len : 0, n = room / w->block_max;
	int err = writer_bytes(w, data, len);

	n = n > WRITER_SEGMENTS ? WRITER_SEGMENTS : n < SEGMENTS_MIN ? 1 : n;
	w->nsegments = w->limit ? n : 1;
	w->segment_bytes = w->limit ? room / n : UINT64_MAX;
	w->begin = w->at;
	w->written = len;
	return err;
}

/* Remove the oldest block of @user in memory, and return it. */
static struct writer_kept *writer_remove(struct writer *w, struct writer_user *user)
{
	struct writer_kept *first = user->first;

	user->first = first->next;
	if (!first->next)
		user->last = &user->first;
	user->kept -= first->part.bytes;
	w->kept -= first->part.bytes;
	return first;
}

/* Return the user who has the oldest block in memory, or NULL. */
static struct writer_user *writer_eldest(struct writer *w)
{
	struct writer_user *eldest = NULL;

	for (int i = 0; i < WRITER_USERS; i++) {
		struct writer_user *one = &w->users[i];

		if (one->first &&
		    (!eldest || one->first->sequence < eldest->first->sequence))
			eldest = one;
	}
	return eldest;
}

/* Return the user who has more than its share of the memory, or would with @room more. */
static struct writer_user *writer_greedy(struct writer *w, const struct writer_user *user,
					 uint64_t room)
{
	for (int i = 0; i < WRITER_USERS; i++) {
		struct writer_user *one = &w->users[i];

		if (one->first &&
		    one->kept + (one == user ? room : 0) > OWNER_SHARE(w->memory))
			return one;
	}
	return NULL;
}

/* Drop blocks in memory until @room bytes are free for @user. */
static void writer_forget(struct writer *w, const struct writer_user *user, uint64_t room)
{
	while (w->kept && w->kept + room > w->memory) {
		struct writer_user *greedy = writer_greedy(w, user, room);
		struct writer_user *from = greedy ? greedy : writer_eldest(w);
		struct writer_kept *first = writer_remove(w, from);

		writer_displace(from, &first->part);
		w->statements -= first->part.statements;
		w->waits -= first->part.waits;
		free(first);
	}
}

/* Keep a block in memory. */
static void writer_keep(struct writer *w, struct writer_user *user, enum recording_kind kind,
			const struct writer_part *part, const uint8_t *data, size_t len)
{
	size_t room = sizeof(struct writer_kept) + len;
	struct writer_kept *kept = NULL;

	/* One block is not to displace what others have within their shares. */
	if (room <= OWNER_SHARE(w->memory)) {
		if (kind != RECORDING_START)
			writer_forget(w, user, room);
		kept = malloc(room);
	}
	if (!kept) {
		w->dropped++;
		writer_displace(user, part);
		return;
	}
	*kept = (struct writer_kept){ .part = *part, .sequence = user->sequence, .len = len };
	kept->part.bytes = room;
	memcpy(kept->data, data, len);
	if (kind == RECORDING_START) {
		w->start = kept;
		return;
	}
	*user->last = kept;
	user->last = &kept->next;
	user->kept += room;
	w->kept += room;
	w->statements += part->statements;
	w->waits += part->waits;
}

/* Write a block to the file. Return 0 or -errno. */
static int writer_put(struct writer *w, struct writer_user *user, enum recording_kind kind,
		      const struct writer_part *part, const uint8_t *data, size_t len)
{
	int err = kind == RECORDING_START ? writer_start(w, data, len) :
					    writer_block(w, user, part, user->sequence, data, len);

	if (err)
		return err;
	w->statements += part->statements;
	w->waits += part->waits;
	return 0;
}

/* Give the current block of @user the next number, unless it has one. */
static void writer_begin(struct writer *w, struct writer_user *user)
{
	if (!user->begun)
		user->sequence = w->sequence++;
	user->begun = true;
}

struct writer_user *writer_user(struct writer *w, uint32_t uid)
{
	struct writer_user *user = w->users;
	const struct writer_user *others = &w->users[WRITER_USERS - 1];

	/* Where there is room for all, one dictionary for all is the shortest. */
	while ((w->limit || w->memory) && user < others && user->told.known &&
	       user->told.uid != uid)
		user++;
	if (!user->told.known && user != w->users)
		encode_open(&user->encode);
	user->told.known = true;
	user->told.uid = uid;
	writer_begin(w, user);
	return user;
}

bool writer_full(const struct writer *w, const struct writer_user *user)
{
	const struct writer_segment *segment = w->current[user == w->heavy];
	uint64_t left = segment && w->fd >= 0 ? w->segment_bytes - segment->used : 0;
	size_t len = user->encode.events.len;

	return len >= WRITER_BLOCK || (left >= 2 * SLACK && len >= left - SLACK);
}

struct writer_user *writer_due(struct writer *w, uint64_t now_ns)
{
	for (int i = 0; i < WRITER_USERS; i++) {
		struct writer_user *user = &w->users[i];

		if (!user->encode.events.len)
			continue;
		if (!user->opened_ns)
			user->opened_ns = now_ns;
		if (writer_full(w, user) || now_ns == UINT64_MAX ||
		    now_ns - user->opened_ns >= COMMIT_NS)
			return user;
	}
	return NULL;
}

bool writer_pending(const struct writer *w)
{
	size_t len = 0;

	for (int i = 0; i < WRITER_USERS; i++)
		len |= w->users[i].encode.events.len;
	return len;
}

size_t writer_displaced(const struct writer *w, struct recorded_user *users)
{
	size_t n = 0, most = w->limit || w->memory ? WRITER_USERS : 0;

	for (; n < most && w->users[n].told.known; n++) {
		users[n] = w->users[n].told;
		users[n].known = n < WRITER_USERS - 1;
	}
	return n;
}

int writer_reserve(struct writer *w, struct writer_user *user)
{
	uint64_t len = user->encode.events.len + STATUS;

	writer_begin(w, user);
	if (w->fd >= 0)
		return writer_room(w, user, len, user->sequence);
	writer_forget(w, user, sizeof(struct writer_kept) + len);
	return 0;
}

int writer_commit(struct writer *w, struct writer_user *user, enum recording_kind kind)
{
	struct encoder *events = &user->encode.events;
	struct recording_block block = w->block;
	const struct writer_part part = {
		.end_ns = user->encode.end_ns,
		.statements = user->encode.statements, .waits = user->encode.waits,
	};
	uint8_t head[RECORDING_HEAD];
	size_t len = events->len;
	int err = 0;

	/* The events before the one that did not fit are sound. */
	w->dropped += events->failed;
	events->failed = false;
	writer_begin(w, user);
	block.kind = kind;
	block.sequence = user->sequence;
	block.begin_ns = user->encode.begin_ns;
	block.end_ns = user->encode.end_ns;
	block.statements = (uint32_t)user->encode.statements;
	block.length = (uint32_t)len;
	block.crc = crc32c_of(&w->crc, events->data, len);
	block_write(&w->crc, &block, head);
	/* One write(2) of both: the room for the head is made behind the events. */
	encode_bytes(events, head, sizeof(head));
	if (events->failed) {
		w->dropped++;
	} else {
		memmove(events->data + sizeof(head), events->data, len);
		memcpy(events->data, head, sizeof(head));
		if (w->memory && (w->fd < 0 || kind == RECORDING_START))
			writer_keep(w, user, kind, &part, events->data, events->len);
		if (w->fd >= 0)
			err = writer_put(w, user, kind, &part, events->data, events->len);
	}
	user->opened_ns = 0;
	user->begun = false;
	encode_reset(&user->encode);
	return err;
}

int writer_file(struct writer *w, int fd, uint64_t limit)
{
	struct writer_user *eldest;
	struct writer_kept *first;
	int err = 0;

	w->fd = fd;
	w->limit = limit;
	w->begin = w->at = w->written = 0;
	memset(w->segments, 0, sizeof(w->segments));
	w->current[0] = w->current[1] = NULL;
	w->heavy = NULL;
	for (int i = 0; i < WRITER_USERS; i++)
		w->users[i].bytes = 0;
	if (w->start)
		err = writer_start(w, w->start->data, w->start->len);
	while ((eldest = writer_eldest(w))) {
		first = writer_remove(w, eldest);
		if (!err)
			err = writer_block(w, eldest, &first->part, first->sequence, first->data,
					   first->len);
		free(first);
	}
	return err;
}

void writer_no_file(struct writer *w)
{
	w->fd = -1;
	w->statements = w->waits = w->dropped = 0;
	/* The next file says what is lost since this one. */
	for (int i = 0; i < WRITER_USERS; i++) {
		struct recorded_user *told = &w->users[i].told;

		told->statements = told->waits = told->last_ns = 0;
	}
}

void writer_close(struct writer *w)
{
	struct writer_user *eldest;

	while ((eldest = writer_eldest(w)))
		free(writer_remove(w, eldest));
	free(w->start);
	for (int i = 0; i < WRITER_USERS; i++)
		if (!i || w->users[i].told.known)
			encode_close(&w->users[i].encode);
}
