// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * db/mysql/metadata_lock.c with tickets that have remains of what was in their memory before, in a
 * server's memory that is that of this process: laid out as MariaDB 10.11 has it. A server leaves
 * the links to the lists of a context in a waiting ticket as malloc() gave them.
 */
#include <unistd.h>

#include "db/mysql/metadata_lock.h"
#include "db/session/object.h"
#include "tests/unit/check.h"

struct node {
	void *previous, *next;
};

struct ticket {
	void *class;
	struct node in_lock;
	void *next, *previous;		/* in the list of the context */
	void *psi;
	uint64_t type;
	void *context, *lock;
	uint64_t time;
};

struct thd {
	void *class;
	uint64_t number, others[30];
	struct {
		uint64_t wait[14];
		struct ticket *granted;
		uint64_t others[8];
		struct ticket *awaited;
		uint64_t rest[64];
	} context;
	uint64_t behind[1024];
};

static struct {
	struct {
		uint16_t sizes[4];
		char namespace, names[383];
	} key;
	struct node granted, waiting;
	uint64_t behind[128];
} lock;

static char class[16];
static struct thd sessions[3];
static struct ticket tickets[3], released;
static uint64_t three = 3;

static void node_append(struct node *list, struct ticket *ticket)
{
	struct node *last = list->previous;

	ticket->in_lock = (struct node){ last, list };
	last->next = &ticket->in_lock;
	list->previous = &ticket->in_lock;
}

/* The first session holds the lock, for which the two others wait. */
static void lay_out(void)
{
	lock.key.sizes[0] = 12;
	lock.key.sizes[1] = 4;
	memcpy(lock.key.names, "shop\0goods", 11);
	lock.granted = (struct node){ &lock.granted, &lock.granted };
	lock.waiting = (struct node){ &lock.waiting, &lock.waiting };
	for (size_t i = 0; i < 3; i++) {
		struct ticket *ticket = &tickets[i];

		sessions[i] = (struct thd){ .class = class, .number = 11 + i };
		*ticket = (struct ticket){ .class = class, .type = 3, .lock = &lock,
					   .context = &sessions[i].context };
		node_append(i ? &lock.waiting : &lock.granted, ticket);
		*(i ? &sessions[i].context.awaited : &sessions[i].context.granted) = ticket;
	}
	tickets[0].previous = &sessions[0].context.granted;
}

/* Read what session @i waits for; @learn: where contexts are is learned from it. */
static int wait_read(size_t i, struct lock_info *info)
{
	static struct backend_places backend;
	struct mysql_locks places = { .own_context = -1, .options = -1,
				      .sessions = (uint64_t)(uintptr_t)class };
	unsigned int reads = 10000;
	struct lock_reader r = { .places = &places, .backend = &backend, .reads = &reads,
				 .size = 16, .session_class = places.sessions };
	uint64_t session = (uint64_t)(uintptr_t)&sessions[i];
	int err = process_memory_open((uint32_t)getpid(), &r.memory);

	object_places_none(&backend.object);
	backend.object.connection = offsetof(struct thd, number);
	backend.object.connection_bytes = 8;
	*info = (struct lock_info){ .event.kind = LOCK_WAITS_METADATA };
	CHECK(!err, "%d", err);
	places.context_at = metadata_lock_learn(&r, session);
	CHECK(places.context_at == offsetof(struct thd, context), "%zu", places.context_at);
	err = metadata_lock_read(&r, session + places.context_at, session, info);
	process_memory_close(&r.memory);
	return err;
}

/* Each that waits has the first one as its only holder, and the other one before or behind it. */
static void check_waits(void)
{
	for (size_t i = 1; i < 3; i++) {
		struct lock_info info;
		int err = wait_read(i, &info);

		CHECK(!err && !strcmp(info.object, "shop.goods") && info.nholders == 2 &&
		      !info.more, "%d %s %u %u", err, info.object, info.nholders, info.more);
		for (unsigned int at = 0; at < info.nholders; at++)
			CHECK(info.holders[at].queued == (info.holders[at].connection != 11) &&
			      info.holders[at].connection != 11 + i,
			      "%d %llu", info.holders[at].queued,
			      (unsigned long long)info.holders[at].connection);
		lock_info_clear(&info);
	}
}

static void no_remains(void)
{
	lay_out();
	check_waits();
}

/* As those of a ticket of the same session have it; but before its MDL_context there. */
static void remains_point_into_the_session(void)
{
	lay_out();
	for (size_t i = 1; i < 3; i++)
		tickets[i].previous = &sessions[i].others[20];
	check_waits();
}

/* A key has two lengths first: 3, for its head alone, and 0. */
static void remains_look_like_a_key(void)
{
	lay_out();
	for (size_t i = 1; i < 3; i++)
		tickets[i].next = tickets[i].previous = &three;
	check_waits();
}

/* A ticket that was released has all that it had, but nothing points to it any more. */
static void remains_are_a_ticket_of_the_lock(void)
{
	lay_out();
	released = tickets[2];
	released.in_lock = lock.granted;
	released.previous = &sessions[2].context.granted;
	tickets[2].next = &released;
	check_waits();
}

int main(void)
{
	RUN(no_remains);
	RUN(remains_point_into_the_session);
	RUN(remains_look_like_a_key);
	RUN(remains_are_a_ticket_of_the_lock);
	return check_done();
}
