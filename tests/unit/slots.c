/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The slot protocol of bpf/slot.h and db/session/sessions.c: every interleaving of up to three
 * actors.
 *
 * The functions are the real ones, compiled with hooks in place of their accesses to shared memory.
 * For each step an actor is run from its beginning: the accesses of earlier steps return what they
 * returned then, the next one is executed, and the one after it ends the run by longjmp(). The
 * state thus is plain memory, and no state is explored twice.
 *
 * With weak stores, a store of a program is delayed and takes effect at any later time, in any
 * order, but before an access to the same address, a hash operation or an atomic operation of
 * user space. This models aarch64, where BPF's XADD is relaxed.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bpf/event.h"
#include "host/process.h"
#include "loader/sys.h"
#include "tests/unit/check.h"

#define KEYS		4	/* all of them share a slot */
#define NOBODY		0
#define A		1
#define B		2
#define C		3
#define ACTORS		3
#define STEPS		48	/* of an actor, at most */
#define DELAYED		6	/* stores, at most */
#define SLOT		0	/* its number */

/* Element of map "sessions"; ->session.s.tid is the number of the key that uses it. */
struct element {
	bool present;
	struct session session;
};

static struct world {
	struct slot slots[2];
	struct session slot_sessions[2];
	struct element hash[KEYS];
	bool ignored[KEYS];
	bool gone[KEYS];
	uint8_t holder;			/* number of the key that uses the slot's session */
	const char *broken;
} world;

struct store {
	void *to;
	uint64_t value;
	uint32_t size;
};

struct actor {
	uint64_t results[STEPS];
	int steps;
	bool done;
	struct store delayed[DELAYED];
	int ndelayed;
};

static struct actor actors[ACTORS];
static struct actor *actor;		/* that runs */
static int actor_at;			/* accesses replayed or made in this run */
static bool actor_moved;		/* it has made its step */
static jmp_buf actor_suspend;
static bool weak;

static uint64_t key_of[KEYS];		/* the key of each number */

/* Return true and the *@result of an access of an earlier step, or false: execute it now. */
static bool replay(uint64_t *result)
{
	if (actor_at < actor->steps) {
		*result = actor->results[actor_at++];
		return true;
	}
	if (actor_moved)
		longjmp(actor_suspend, 1);
	actor_moved = true;
	return false;
}

static uint64_t record(uint64_t result)
{
	if (actor->steps == STEPS)
		abort();
	actor->results[actor->steps++] = result;
	actor_at++;
	return result;
}

static void broken(const char *why)
{
	if (!world.broken)
		world.broken = why;
}

static void drain_one(struct actor *of, int n)
{
	memcpy(of->delayed[n].to, &of->delayed[n].value, of->delayed[n].size);
	of->ndelayed--;
	memmove(of->delayed + n, of->delayed + n + 1,
		(size_t)(of->ndelayed - n) * sizeof(*of->delayed));
	memset(&of->delayed[of->ndelayed], 0, sizeof(*of->delayed));
}

static void drain(struct actor *of)
{
	while (of->ndelayed)
		drain_one(of, 0);
}

static void drain_address(struct actor *of, const void *address)
{
	for (int i = 0; i < of->ndelayed; i++)
		if (of->delayed[i].to == address)
			drain_one(of, i--);
}

static uint64_t hook_load(const void *from, uint32_t size)
{
	uint64_t value = 0;

	if (replay(&value))
		return value;
	memcpy(&value, from, size);
	for (int i = 0; i < actor->ndelayed; i++)
		if (actor->delayed[i].to == from)
			value = actor->delayed[i].value;
	return record(value);
}

static void hook_store(void *to, uint64_t value, uint32_t size)
{
	uint64_t result;

	if (replay(&result))
		return;
	drain_address(actor, to);
	if (actor->ndelayed == DELAYED)
		abort();
	actor->delayed[actor->ndelayed++] = (struct store){ to, value, size };
	if (!weak)
		drain(actor);
	record(0);
}

static void hook_add(uint32_t *to, int n)
{
	uint64_t result;

	if (replay(&result))
		return;
	drain_address(actor, to);
	*to += (uint32_t)n;
	record(0);
}

/* Of a session only ->pid and ->tid are modelled. */
static void hook_clear(struct session *session)
{
	hook_store(&session->s.pid, 0, 8);
}

/* Stand-ins for bpf/bpf.h. */
#define BPF_BPF_H
#define INLINE		static inline
#define CONSTANT(name)	enum { constant_##name = 63 }	/* slot_shift: two slots */
#define VALUE(name)	((uint64_t)constant_##name)
#define MAP(name)	static char name[1]
#define READ_ONCE(x)	((__typeof__(x))hook_load(&(x), sizeof(x)))
#define WRITE_ONCE(x, value) hook_store(&(x), value, sizeof(x))
#define ATOMIC_ADD(p, n) hook_add(p, n)
#define CLEAR(p)	hook_clear(p)

static void *bpf_map_lookup_elem(void *map, const void *key);
static long bpf_map_update_elem(void *map, const void *key, const void *value, uint64_t flags);
static long bpf_map_delete_elem(void *map, const void *key);

/* Stand-in for bpf/owner.h: no session is counted here. */
#define BPF_OWNER_H
static void owner_entries(uint32_t number, uint32_t table, int64_t n)
{
	(void)number;
	(void)table;
	(void)n;
	abort();
}

#include "bpf/slot.h"

static int key_number(const void *key)
{
	uint64_t value;

	memcpy(&value, key, sizeof(value));
	for (int i = 1; i < KEYS; i++)
		if (key_of[i] == value)
			return i;
	abort();
}

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	static struct session zeros;
	uint64_t found;
	uint32_t number;

	memcpy(&number, key, sizeof(number));
	if (map == slots)
		return &world.slots[number];
	if (map == slot_sessions)
		return &world.slot_sessions[number];
	if (map == blank)
		return &zeros;
	if (!replay(&found)) {
		bool *mark = &world.ignored[key_number(key)];
		struct element *element = &world.hash[key_number(key)];

		found = record(map == ignored ? *mark : element->present);
	}
	if (!found)
		return NULL;
	return map == ignored ? (void *)ignored : &world.hash[key_number(key)].session;
}

/* A hash operation of the kernel: under the lock of a bucket. */
static bool hash_operation(uint64_t *result)
{
	if (replay(result))
		return false;
	drain(actor);
	return true;
}

static int hash_add(int number, const struct session *session)
{
	struct element *element = &world.hash[number];

	if (element->present)
		return -EEXIST;
	element->present = true;
	memcpy(&element->session, session, sizeof(element->session));
	return 0;
}

static int hash_delete(int number)
{
	if (!world.hash[number].present)
		return -ENOENT;
	memset(&world.hash[number], 0, sizeof(world.hash[number]));
	return 0;
}

static int mark_delete(int number)
{
	if (!world.ignored[number])
		return -ENOENT;
	world.ignored[number] = false;
	return 0;
}

static long bpf_map_update_elem(void *map, const void *key, const void *value, uint64_t flags)
{
	uint64_t result;

	if (map != sessions || flags != 1 /* BPF_NOEXIST */)
		abort();
	if (hash_operation(&result))
		result = record((uint64_t)hash_add(key_number(key), value));
	return (long)result;
}

static long bpf_map_delete_elem(void *map, const void *key)
{
	uint64_t result;

	if (hash_operation(&result))
		result = record((uint64_t)(map == ignored ? mark_delete(key_number(key)) :
							    hash_delete(key_number(key))));
	return (long)result;
}

/* Stand-ins for loader/sys.h: the maps' descriptors. */
enum { FD_SESSIONS = 1, FD_SLOT_SESSIONS, FD_IGNORED };

static int hook_map_add(int fd, const void *key, const void *value)
{
	uint64_t result;

	(void)fd;
	if (hash_operation(&result))
		result = record((uint64_t)hash_add(key_number(key), value));
	return (int)result;
}

static int hook_map_update(int fd, const void *key, const void *value)
{
	uint64_t result;

	if (!hash_operation(&result))
		return 0;
	if (fd == FD_IGNORED)
		world.ignored[key_number(key)] = true;
	else
		memcpy(&world.slot_sessions[*(const uint32_t *)key], value, sizeof(struct session));
	record(0);
	return 0;
}

static int hook_map_delete(int fd, const void *key)
{
	uint64_t result;

	if (hash_operation(&result))
		result = record((uint64_t)(fd == FD_IGNORED ? mark_delete(key_number(key)) :
							      hash_delete(key_number(key))));
	return (int)result;
}

/* Copy the PID only: the result of a step is one number. */
static int hook_map_lookup(int fd, const void *key, void *value)
{
	struct session *to = value;
	uint64_t result;

	if (hash_operation(&result)) {
		const struct element *element;

		if (fd == FD_SLOT_SESSIONS) {
			result = world.slot_sessions[*(const uint32_t *)key].s.pid;
		} else {
			element = &world.hash[key_number(key)];
			result = element->present ? element->session.s.pid : UINT64_MAX;
		}
		record(result);
	}
	if (result == UINT64_MAX)
		return -ENOENT;
	memset(to, 0, sizeof(*to));
	to->s.pid = (uint32_t)result;
	return 0;
}

static int hook_map_next(int fd, const void *key, void *next)
{
	uint64_t result;
	int number = key ? key_number(key) + 1 : 1;

	(void)fd;
	if (hash_operation(&result)) {
		while (number < KEYS && !world.hash[number].present)
			number++;
		result = record((uint64_t)number);
	}
	if (result == KEYS)
		return -ENOENT;
	memcpy(next, &key_of[result], sizeof(key_of[result]));
	return 0;
}

static bool hook_process_exists(uint32_t pid)
{
	uint64_t result;

	if (!replay(&result))
		result = record(!world.gone[pid]);
	return result;
}

static void hook_store_now(void *to, uint64_t value, uint32_t size)
{
	uint64_t result;

	if (replay(&result))
		return;
	drain(actor);
	memcpy(to, &value, size);
	record(0);
}

static bool hook_exchange(__u64 *at, __u64 *expected, uint64_t value)
{
	uint64_t found;

	if (!replay(&found)) {
		drain(actor);
		found = record(*at);
		if (found == *expected)
			*at = value;
	}
	if (found == *expected)
		return true;
	*expected = found;
	return false;
}

/* Not from the heap: a run may end by longjmp(). */
static void *hook_malloc(size_t size)
{
	static struct session session;

	return size <= sizeof(session) ? &session : NULL;
}

/* The functions of user space, under other names: the library has them, too. */
#define sessions_slots		hooked_sessions_slots
#define sessions_share		hooked_sessions_share
#define sessions_add		hooked_sessions_add
#define sessions_ignore		hooked_sessions_ignore
#define sessions_prune		hooked_sessions_prune
#define sessions_forget		hooked_sessions_forget
#define sessions_places		hooked_sessions_places
#define sessions_who		hooked_sessions_who
#define sessions_transaction	hooked_sessions_transaction
#define sessions_running	hooked_sessions_running
#define sessions_keep		hooked_sessions_keep
#define sessions_settle		hooked_sessions_settle
#define sessions_number_kept	hooked_sessions_number_kept
#define sessions_close		hooked_sessions_close
#define sys_map_add		hook_map_add
#define sys_map_update		hook_map_update
#define sys_map_delete		hook_map_delete
#define sys_map_lookup		hook_map_lookup
#define sys_map_next		hook_map_next
#define process_exists		hook_process_exists
#define malloc			hook_malloc
#define free(p)			((void)(p))
#define __atomic_load_n(p, order) hook_load(p, sizeof(*(p)))
#define __atomic_store_n(p, value, order) hook_store_now(p, value, sizeof(*(p)))
#define __atomic_sub_fetch(p, n, order) hook_add(p, -(n))
#define __atomic_compare_exchange_n(p, expected, value, is_weak, success, failure) \
	hook_exchange(p, expected, value)

#include "db/session/sessions.c"

static struct sessions user = {
	.map = FD_SESSIONS, .slot_map = FD_SLOT_SESSIONS, .ignored_map = FD_IGNORED,
	.slots = world.slots, .slot_shift = 63, .bytes = sizeof(struct session),
};

/* A program of @number uses @session. */
static void session_use(int number, struct session *session)
{
	bool in_slot = session == &world.slot_sessions[SLOT];
	uint64_t result;

	if (replay(&result))
		return;
	drain_address(actor, &session->s.pid);
	if (session->s.tid && session->s.tid != (uint32_t)number)
		broken("two threads share a session");
	if (in_slot && world.holder && world.holder != number)
		broken("a slot has two owners");
	if (in_slot)
		world.holder = (uint8_t)number;
	session->s.tid = session->s.pid = (uint32_t)number;
	record(0);
}

static void session_unuse(int number)
{
	uint64_t result;

	if (replay(&result))
		return;
	if (world.holder == number)
		world.holder = NOBODY;
	record(0);
}

/* As session_overflow() in bpf/session.h. */
static struct session *session_outside(uint64_t key)
{
	struct session *session = bpf_map_lookup_elem(sessions, &key);

	if (session || bpf_map_lookup_elem(ignored, &key))
		return session;
	session = session_claim_slot(key);
	return session ? session : session_add_overflow(key);
}

static struct session *session_at_hand(int number)
{
	struct session *session = session_in_slot(key_of[number]);

	return session ? session : session_outside(key_of[number]);
}

static void program_hit(int number)
{
	struct session *session = session_at_hand(number);

	if (!session)
		return;
	/* Even if it is dismissed meanwhile. */
	session_use(number, session);
	session_use(number, session);
}

/* The session becomes idle, as session_idle() in bpf/session.h. */
static void program_idle(int number)
{
	struct session *session = session_at_hand(number);

	if (!session || !(READ_ONCE(session->s.flags) & SESSION_ADDED) ||
	    bpf_map_delete_elem(sessions, &key_of[number]))
		return;
	session = session_outside(key_of[number]);
	if (session)
		session_use(number, session);
}

static void process_ends(int number)
{
	uint64_t result;

	if (replay(&result))
		return;
	drain(actor);
	world.gone[number] = true;
	record(0);
}

static void program_exit(int number)
{
	session_unuse(number);
	session_drop(key_of[number]);
	process_ends(number);
}

static void user_add(int number)
{
	struct session session = { .s = { .pid = (uint32_t)number, .tid = (uint32_t)number } };

	sessions_add(&user, (uint32_t)key_of[number], &session);
}

static void user_ignore(int number)
{
	sessions_ignore(&user, (uint32_t)key_of[number]);
}

static void user_prune(int number)
{
	(void)number;
	sessions_prune(&user);
}

struct operation {
	void (*run)(int number);
	int number;
};

/* The operations of each actor, and the sessions that exist at the beginning. */
struct scenario {
	const char *name;
	struct operation operations[ACTORS][4];
	int slot_of, hash_of;		/* keys with a session in slot and overflow, or NOBODY */
	bool killed;			/* their processes are gone */
	int kept;			/* key that must have a session at the end, or NOBODY */
};

static const struct scenario *scenario;

static void actor_operations(const struct operation *operation)
{
	for (; operation->run; operation++)
		operation->run(operation->number);
	actor->done = true;
}

/* Run actor @number for a step. */
static void actor_run(int number)
{
	actor = &actors[number];
	actor_at = 0;
	actor_moved = false;
	if (!setjmp(actor_suspend))
		actor_operations(scenario->operations[number]);
}

static bool exited(int number)
{
	return world.gone[number];
}

/* Check the state after all actors. */
static void check_end(void)
{
	const struct slot *slot = &world.slots[SLOT];

	if (slot->claims != (slot->owner != 0))
		broken("a slot is leaked, or freed twice");
	if (slot->key && slot->key != slot->owner)
		broken("a slot has a session of another key");
	if (!slot->owner && world.slot_sessions[SLOT].s.pid)
		broken("a free slot's session is not zero");
	if (scenario->kept && slot->key != key_of[scenario->kept] &&
	    !world.hash[scenario->kept].present)
		broken("a session is lost");
	for (int i = 1; i < KEYS; i++) {
		if (slot->key == key_of[i] && world.hash[i].present)
			broken("a session is in a slot and in the overflow");
		if (world.ignored[i] && (slot->key == key_of[i] || world.hash[i].present))
			broken("an ignored session is there");
		if (!exited(i))
			continue;
		if (slot->key == key_of[i] || slot->owner == key_of[i] || world.hash[i].present)
			broken("a session outlives its thread");
		if (world.ignored[i])
			broken("a mark outlives its thread");
	}
}

/* Hashes of the states explored. */
#define SEEN	(1u << 22)
static uint64_t *seen;
static uint32_t nseen;

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const unsigned char *p = bytes;

	for (; size; p += 8, size -= size < 8 ? size : 8) {
		uint64_t word = 0;

		memcpy(&word, p, size < 8 ? size : 8);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
		hash ^= hash >> 29;
	}
	return hash;
}

static bool state_seen(void)
{
	uint64_t hash = hash_bytes(0xcbf29ce484222325ULL, &world, sizeof(world));
	uint32_t at;

	for (int i = 0; i < ACTORS; i++) {
		const struct actor *one = &actors[i];

		hash = hash_bytes(hash, one->results, (size_t)one->steps * sizeof(*one->results));
		hash = hash_bytes(hash, &one->steps, sizeof(one->steps));
		hash = hash_bytes(hash, one->delayed, sizeof(one->delayed));
	}
	hash |= !hash;
	for (at = (uint32_t)(hash >> 40) % SEEN; seen[at]; at = (at + 1) % SEEN)
		if (seen[at] == hash)
			return true;
	seen[at] = hash;
	if (++nseen > SEEN / 4 * 3)
		abort();
	return false;
}

static void explore(void)
{
	const struct world old_world = world;
	struct actor old_actor;
	bool end = true;

	if (world.broken || state_seen())
		return;
	for (int i = 0; i < ACTORS; i++) {
		old_actor = actors[i];
		if (!old_actor.done) {
			end = false;
			actor_run(i);
			explore();
		}
		for (int n = 0; n < old_actor.ndelayed && !world.broken; n++) {
			end = false;
			actors[i] = old_actor;
			world = old_world;
			drain_one(&actors[i], n);
			explore();
		}
		if (world.broken)
			return;
		actors[i] = old_actor;
		world = old_world;
	}
	if (end)
		check_end();
}

static void world_begin(void)
{
	memset(&world, 0, sizeof(world));
	memset(actors, 0, sizeof(actors));
	if (scenario->slot_of) {
		struct slot *slot = &world.slots[SLOT];

		slot->key = slot->owner = key_of[scenario->slot_of];
		slot->claims = 1;
		world.slot_sessions[SLOT].s.pid = (uint32_t)scenario->slot_of;
		world.slot_sessions[SLOT].s.tid = (uint32_t)scenario->slot_of;
		world.gone[scenario->slot_of] = scenario->killed;
	}
	if (scenario->hash_of) {
		struct element *element = &world.hash[scenario->hash_of];

		element->present = true;
		element->session.s.pid = element->session.s.tid = (uint32_t)scenario->hash_of;
		element->session.s.flags = SESSION_ADDED;
		world.gone[scenario->hash_of] = scenario->killed;
	}
}

/* Show the results of each actor's steps. */
static void show_broken(void)
{
	for (int i = 0; i < ACTORS; i++) {
		printf("# actor %d:", i);
		for (int n = 0; n < actors[i].steps; n++)
			printf(" %llx", (unsigned long long)actors[i].results[n]);
		printf("\n");
	}
}

static void explore_scenario(const struct scenario *one)
{
	scenario = one;
	memset(seen, 0, SEEN * sizeof(*seen));
	nseen = 0;
	world_begin();
	explore();
	CHECK(!world.broken, "%s%s: %s", one->name, weak ? ", weak stores" : "", world.broken);
	if (world.broken)
		show_broken();
	printf("# %s%s: %u states\n", one->name, weak ? ", weak stores" : "", nseen);
}

static const struct scenario scenarios[] = {
	{
		.name = "two threads come and go",
		.operations = {
			{ { program_hit, A }, { program_hit, A }, { program_exit, A } },
			{ { program_hit, B }, { program_hit, B }, { program_exit, B } },
		},
	},
	{
		.name = "three threads come and go",
		.operations = {
			{ { program_hit, A }, { program_exit, A } },
			{ { program_hit, B }, { program_exit, B } },
			{ { program_hit, C }, { program_exit, C } },
		},
	},
	{
		.name = "a session is added while its thread hits",
		.operations = {
			{ { program_hit, A }, { program_hit, A } },
			{ { program_hit, B }, { program_exit, B } },
			{ { user_add, A } },
		},
		.kept = A,
	},
	{
		.name = "an added session moves to a slot",
		.operations = {
			{ { program_hit, A }, { program_idle, A }, { program_hit, A } },
			{ { program_hit, B }, { program_exit, B } },
			{ { user_add, A } },
		},
		.kept = A,
	},
	{
		.name = "an added session moves to a slot and is dismissed",
		.operations = {
			{ { program_idle, A }, { program_hit, A }, { program_exit, A } },
			{ { program_hit, B }, { program_exit, B } },
			{ { user_ignore, A } },
		},
		.hash_of = A,
	},
	{
		.name = "a session in a slot is dismissed while its thread exits",
		.operations = {
			{ { program_hit, A }, { program_exit, A } },
			{ { program_hit, B }, { program_exit, B } },
			{ { user_ignore, A } },
		},
		.slot_of = A,
	},
	{
		.name = "a slot changes hands while a session is dismissed",
		.operations = {
			{ { program_hit, A }, { program_exit, A } },
			{ { program_hit, B } },
			{ { user_ignore, A } },
		},
		.slot_of = A, .kept = B,
	},
	{
		.name = "a session is dismissed and its thread goes on",
		.operations = {
			{ { program_hit, A }, { program_hit, A }, { program_hit, A } },
			{ { program_hit, B }, { program_hit, B } },
			{ { user_ignore, A } },
		},
		.slot_of = A,
	},
	{
		.name = "two sessions are dismissed",
		.operations = {
			{ { program_hit, A }, { program_exit, A } },
			{ { program_hit, B }, { program_exit, B } },
			{ { user_ignore, A }, { user_ignore, B } },
		},
		.slot_of = A, .hash_of = B,
	},
	{
		.name = "sessions of a killed server are pruned",
		.operations = {
			{ { program_hit, A }, { program_hit, A }, { program_exit, A } },
			{ { program_hit, B }, { program_exit, B } },
			{ { user_prune, NOBODY } },
		},
		.slot_of = C, .killed = true,
	},
	{
		.name = "threads exit while sessions are pruned",
		.operations = {
			{ { program_hit, A }, { program_exit, A } },
			{ { program_hit, B }, { program_hit, B } },
			{ { user_prune, NOBODY } },
		},
		.slot_of = A, .hash_of = C, .kept = B,
	},
};

static void explore_all(void)
{
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++)
		explore_scenario(&scenarios[i]);
}

static void slots_interleaved(void)
{
	weak = false;
	explore_all();
}

static void slots_interleaved_weak_stores(void)
{
	weak = true;
	explore_all();
}

int main(void)
{
	int n = 1;

	for (uint64_t tid = 1; n < KEYS; tid++)
		if (SLOT_PRODUCT(tid) >> 63 == SLOT)
			key_of[n++] = tid;
	seen = calloc(SEEN, sizeof(*seen));
	if (!seen)
		return 1;
	RUN(slots_interleaved);
	RUN(slots_interleaved_weak_stores);
	return check_done();
}
