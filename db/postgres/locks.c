// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/locks.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/engine.h"
#include "db/engines.h"
#include "host/elf_map.h"
#include "host/clock.h"
#include "host/process_memory.h"

#define EPOCH_2000_NS	946684800000000000u	/* what PostgreSQL's timestamps count from */
#define PROC_BYTES	640			/* of a PGPROC, which has more, that are looked through */
#define CHAIN_MAX	512			/* of one lock's holders and waiters */
#define SIBLINGS_MAX	64			/* processes that are looked for, for one wait */
#define DATA_MAX	(16u << 20)		/* bytes of variables that are looked through */

/*
 * Source of what is alike in all releases from 10 to 19: storage/lock.h. Each is checked before it
 * is believed.
 */
#define LOCALLOCK_LOCK	24		/* LOCALLOCK.lock, behind tag, mode and hash */
#define LOCK_HOLDERS	24		/* LOCK.procLocks: pointers to the last and the first */
#define LOCK_WAITERS	40		/* LOCK.waitProcs, as above */
#define LOCK_BYTES	56
#define HOLDER_PROC	8		/* PROCLOCK.tag.myProc */
#define HOLDER_LEADER	16		/* PROCLOCK.groupLeader */
#define HOLDER_MASK	24		/* PROCLOCK.holdMask */
#define HOLDER_LINK	32		/* PROCLOCK.lockLink */
#define HOLDER_BYTES	32
#define WAIT_HOLDER_MAX	24		/* PGPROC.waitProcLock, behind waitLock: 8, from 19 on 24 */
#define WAIT_MODE	8		/* PGPROC.waitLockMode, behind waitProcLock */
#define WAIT_START	16		/* PGPROC.waitStart, from 14 on */

/* PgBackendStatus, pgstat.h and backend_status.h. */
#define ENTRY_PID	4
#define ENTRY_XACT	24
#define ENTRY_STATE_AT	40
#define ENTRY_BYTES	256

static const unsigned int entry_texts[] = { 248, 232 };	/* from 12 on, and before */

static uint32_t load32(const char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t load64(const char *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t find_symbol(const struct elf *elf, const char *name)
{
	struct elf_symbol symbol;

	return elf_symbol_find(elf, name, &symbol) ? 0 : symbol.value;
}

/* Where the names of tranches are: see lwlock.c of 10, 13 and 17. Before 13 only some are. */
static void find_tranches(const struct elf *elf, struct postgres_locks *places)
{
	static const char texts[][2][16] = {
		{ "\0OidGen", "\0XidGen" }, { "\0XactBuffer", "\0CommitTsBuffer" },
	};
	struct elf_symbol names;
	struct elf_section section;
	const unsigned char *data = NULL, *at;
	bool first = !elf_symbol_find(elf, "IndividualLWLockNames", &names);
	size_t size = 0;

	places->text = 2;
	if (first || !elf_symbol_find(elf, "MainLWLockNames", &names)) {
		places->individual = names.value;
		places->text = places->nindividual = (unsigned int)(names.size / 8);
	}
	if (!elf_section_find(elf, ".rodata", &section))
		data = elf_section_data(elf, &section, &size);
	for (int i = 0; i < 2; i++) {
		at = data ? memmem(data, size, texts[first][i], strlen(texts[first][i] + 1) + 2) :
			    NULL;
		places->texts[i] = at ? section.addr + (uint64_t)(at - data) + 1 : 0;
	}
}

void postgres_locks_find(const struct elf *elf, struct postgres_locks *places)
{
	struct elf_symbol kinds;
	struct elf_loads loads;

	*places = (struct postgres_locks){
		.proc = find_symbol(elf, "MyProc"), .entry = find_symbol(elf, "MyBEEntry"),
		.query = find_symbol(elf, "debug_query_string"),
		.client = find_symbol(elf, "MyProcPort"), .wait_at = -1, .holder_at = -1,
	};
	places->lowest = elf_map_lowest_vaddr(elf);
	elf_loads(elf, &loads);
	/* What is written when the program is loaded lies in the first of these. */
	for (uint32_t i = loads.count; i--;) {
		if (!(loads.segment[i].flags & PF_W))
			continue;
		places->data = loads.segment[i].vaddr;
		places->data_bytes = loads.segment[i].filesz;
	}
	if (places->data_bytes > DATA_MAX)
		places->data_bytes = DATA_MAX;
	find_tranches(elf, places);
	if (elf_symbol_find(elf, "LockTagTypeNames", &kinds))
		return;
	places->kinds = kinds.value;
	places->nkinds = (unsigned int)(kinds.size / 8);
	if (places->nkinds > PGLOCKS_KINDS)
		places->nkinds = PGLOCKS_KINDS;
}

/* A backend whose memory is open. */
struct look {
	struct postgres_locks *places;
	struct process process;
	struct process_memory memory;
	uint64_t proc;			/* the address of its PGPROC */
	char bytes[PROC_BYTES];		/* … and what is there */
	uint64_t lock, holder;		/* the addresses of LOCK and its PROCLOCK */
	uint64_t leader;		/* of its parallel workers */
	size_t size;			/* of a text */
	unsigned int *siblings;		/* that may still be looked for: each can take a while */
};

static bool look_bytes(const struct look *look, uint64_t address, void *buf, size_t size)
{
	return address && process_memory_read(&look->memory, address, buf, size) == (ssize_t)size;
}

static uint64_t look_pointer(const struct look *look, uint64_t variable)
{
	uint64_t value = 0;

	if (!variable || process_memory_variable(&look->memory, variable, &value, sizeof(value)))
		return 0;
	return value;
}

/* 0 or -errno; process_memory_close() ends it. */
static int look_open(struct look *look, struct postgres_locks *places, uint32_t pid, size_t size)
{
	int err = process_read(pid, engine_is_executable, &look->process);

	look->places = places;
	look->size = size;
	if (!err)
		err = process_memory_open_program(&look->process, places->lowest, &look->memory);
	if (err)
		return err;
	look->proc = look_pointer(look, places->proc);
	return 0;
}

/* At most look->size bytes of the text at @address. */
static void look_text(const struct look *look, uint64_t address, struct lock_backend *party)
{
	char *text = malloc(look->size);
	ssize_t n = text && address ? process_memory_read(&look->memory, address, text,
							  look->size) :
				      -ENOENT;

	if (n <= 0 || !*text) {
		free(text);
		return;
	}
	party->text = text;
	lock_backend_text(party, strnlen(text, (size_t)n));
	party->cut = party->len == (size_t)n;
}

/* What the entry of pg_stat_activity has: an idle backend's last statement, and since when it is idle. */
static void look_entry(const struct look *look, struct lock_backend *party)
{
	char entry[ENTRY_BYTES];
	uint64_t now = clock_ns(CLOCK_REALTIME), since;

	if (!look_bytes(look, look_pointer(look, look->places->entry), entry, sizeof(entry)) ||
	    load32(entry + ENTRY_PID) != look->process.ns_pid)
		return;
	since = EPOCH_2000_NS + load64(entry + ENTRY_STATE_AT) * 1000;
	if (!party->running && load64(entry + ENTRY_XACT)) {
		party->idle = true;
		party->idle_ns = since < now ? now - since : 0;
	}
	for (size_t i = 0; !party->text && i < sizeof(entry_texts) / sizeof(*entry_texts); i++) {
		const char *at = entry + entry_texts[i];
		uint32_t state = load32(at - 16);

		if (state && state < 9 && load64(at - 8) > state)
			look_text(look, load64(at), party);
	}
}

/* What the process does, or did last. */
static void look_party(const struct look *look, struct lock_backend *party)
{
	uint64_t query = look_pointer(look, look->places->query);
	char title[512];
	ssize_t n;

	party->known = look->places->query;
	/* What serves no client never runs one's statement, but it does not wait for one either. */
	party->running = query || !look_pointer(look, look->places->client);
	if (query)
		look_text(look, query, party);
	look_entry(look, party);
	n = party->running || party->idle ? 0 : process_title(look->process.pid, title,
							       sizeof(title) - 1);
	if (n <= 0)
		return;
	title[n] = '\0';
	party->idle = strstr(title, " idle in transaction");
}

/* Which of the modes 1 to 8 conflict with each, as bits; storage/lmgr/lock.c. */
static uint32_t lock_conflicts(uint32_t mode)
{
	static const uint16_t conflicts[] = {
		0, 1 << 8, 3 << 7, 15 << 5, 31 << 4, 3 << 3 | 7 << 6, 63 << 3, 127 << 2, 255 << 1,
	};

	return mode < sizeof(conflicts) / sizeof(*conflicts) ? conflicts[mode] : 0;
}

/* Whether the lock at look->lock has the tag that @event tells. Its bytes to @lock. */
static bool look_lock(const struct look *look, const struct event_lock *event,
		      char lock[LOCK_BYTES])
{
	return look_bytes(look, look->lock, lock, LOCK_BYTES) &&
	       load32(lock) == event->field[0] && load32(lock + 4) == event->field[1] &&
	       load32(lock + 8) == event->field[2] &&
	       (load32(lock + 12) & 0xffff) == event->field[3] &&
	       (uint8_t)lock[14] == event->kind;
}

/* Whether the PGPROC has a lock at @i and at @holder its PROCLOCK, which points back to both. */
static bool look_waits_at(struct look *look, size_t i, size_t holder)
{
	uint64_t back[3], lock = load64(look->bytes + i);

	if (!lock || lock & 7 ||
	    !look_bytes(look, load64(look->bytes + holder), back, sizeof(back)) ||
	    back[0] != lock || back[1] != look->proc)
		return false;
	look->lock = lock;
	look->leader = back[2];
	look->places->wait_at = (int64_t)i;
	look->places->holder_at = (int64_t)holder;
	return true;
}

/* Finds in the PGPROC what it waits for. */
static bool look_waits(struct look *look)
{
	for (size_t i = 0; i + WAIT_HOLDER_MAX + WAIT_START + 8 <= PROC_BYTES; i += 8)
		for (size_t holder = 8; holder <= WAIT_HOLDER_MAX; holder += 8)
			if (look_waits_at(look, i, i + holder))
				return true;
	return false;
}

/* What the wait of a process is that no probe has seen the beginning of. */
static int look_joined(const struct look *look, struct lock_info *wait)
{
	const char *at = look->bytes + look->places->holder_at;
	uint64_t now = clock_ns(CLOCK_REALTIME), begun;
	char lock[LOCK_BYTES];

	if (!look_bytes(look, look->lock, lock, sizeof(lock)))
		return -ENOENT;
	wait->event.field[0] = load32(lock);
	wait->event.field[1] = load32(lock + 4);
	wait->event.field[2] = load32(lock + 8);
	wait->event.field[3] = load32(lock + 12) & 0xffff;
	wait->event.kind = (uint8_t)lock[14];
	wait->event.mode = load32(at + WAIT_MODE);
	if (!wait->event.mode || wait->event.mode > 8 || wait->event.kind >= PGLOCKS_KINDS)
		return -ENOENT;
	/* Where older releases have something else, that is no time of these days. */
	begun = load64(at + WAIT_START);
	begun = begun < UINT64_MAX / 2000 ? EPOCH_2000_NS + begun * 1000 : 0;
	if (begun > EPOCH_2000_NS && begun <= now && now - begun < 30 * 86400000000000ull)
		wait->begun_ns = begun;
	return 0;
}

struct sibling {
	const struct process *process;
	uint32_t ns_pid, pid;
};

static int sibling_each(void *arg, const struct process *process)
{
	struct sibling *sibling = arg;

	if (process->ns_pid != sibling->ns_pid || process->ppid != sibling->process->ppid ||
	    !process_file_same(&process->file, &sibling->process->file))
		return 0;
	sibling->pid = process->pid;
	return 1;
}

/* The process of the same server that has PID @ns_pid to the server; 0: there is none. */
static uint32_t look_sibling(const struct look *look, uint32_t ns_pid)
{
	struct sibling sibling = { .process = &look->process, .ns_pid = ns_pid };
	struct process process;

	if (!*look->siblings)
		return 0;
	--*look->siblings;
	if (!process_read(ns_pid, engine_is_executable, &process) && sibling_each(&sibling, &process))
		return sibling.pid;
	if (look->process.pid != look->process.ns_pid)
		process_each(engine_is_executable, sibling_each, &sibling);
	return sibling.pid;
}

/*
 * The PID of the PGPROC at @address: what stands where our own PGPROC has our own PID. -ENOENT: it
 * is not known.
 */
static int look_pid(const struct look *look, uint64_t address, uint32_t *pid)
{
	char bytes[PROC_BYTES];
	bool none = false;

	if (!look_bytes(look, address, bytes, sizeof(bytes)))
		return -ENOENT;
	for (size_t i = 0; i + 4 <= PROC_BYTES; i += 4) {
		uint32_t there = load32(bytes + i);

		if (load32(look->bytes + i) != look->process.ns_pid)
			continue;
		none |= !there;
		*pid = there ? look_sibling(look, there) : 0;
		if (*pid)
			return 0;
	}
	*pid = 0;
	return none ? 0 : -ENOENT;
}

/* Keeps the backend with the PGPROC at @address, once. 0 or -ENOENT. */
static int look_keep(const struct look *look, uint64_t address, bool queued,
		     struct lock_info *wait)
{
	struct lock_backend party = { .queued = queued };
	struct look other;
	int err;

	/* Those that are only counted are not looked for. */
	if (wait->nholders == LOCK_HOLDERS_KEPT) {
		wait->more++;
		return 0;
	}
	err = look_pid(look, address, &party.pid);
	if (err)
		return err;
	for (unsigned int i = 0; i < wait->nholders; i++)
		if (wait->holders[i].pid == party.pid)
			return 0;
	if (party.pid && !look_open(&other, look->places, party.pid, look->size)) {
		look_party(&other, &party);
		process_memory_close(&other.memory);
	}
	lock_info_add(wait, &party);
	return 0;
}

/* Those that hold the lock in a mode that conflicts. */
static int look_holders(const struct look *look, const char lock[LOCK_BYTES],
			struct lock_info *wait)
{
	uint64_t head = look->lock + LOCK_HOLDERS, link = load64(lock + LOCK_HOLDERS + 8);
	uint32_t conflicts = lock_conflicts(wait->event.mode);
	int err = 0;

	for (int i = 0; !err && link != head; i++) {
		char holder[HOLDER_BYTES];
		uint64_t next[2];

		if (i == CHAIN_MAX ||
		    !look_bytes(look, link - HOLDER_LINK, holder, sizeof(holder)) ||
		    !look_bytes(look, link, next, sizeof(next)) || load64(holder) != look->lock)
			return -ENOENT;
		if (load32(holder + HOLDER_MASK) & conflicts &&
		    load64(holder + HOLDER_PROC) != look->proc &&
		    load64(holder + HOLDER_LEADER) != look->leader)
			err = look_keep(look, load64(holder + HOLDER_PROC), false, wait);
		link = next[1];
	}
	return err;
}

/* Learns from our own place in the queue where a PGPROC has its link, if we are there yet. */
static void look_link(const struct look *look, const char lock[LOCK_BYTES])
{
	uint64_t head = look->lock + LOCK_WAITERS, link = load64(lock + LOCK_WAITERS + 8), next[2];
	int64_t last = look->places->holder_at;

	for (int i = 0; i < CHAIN_MAX && link != head; i++) {
		/* Of all releases it is the first member, or between the two that were found. */
		if (last >= 0 && link - look->proc < (uint64_t)last)
			look->places->link_at = link - look->proc;
		if (!look_bytes(look, link, next, sizeof(next)))
			return;
		link = next[1];
	}
}

/* Those ahead of us that wait for a mode that conflicts. */
static int look_queue(const struct look *look, const char lock[LOCK_BYTES],
		      struct lock_info *wait)
{
	uint64_t head = look->lock + LOCK_WAITERS, link = load64(lock + LOCK_WAITERS + 8);
	uint32_t conflicts = lock_conflicts(wait->event.mode);
	const struct postgres_locks *places = look->places;
	int err = places->wait_at < 0 ? -ENOENT : 0;

	for (int i = 0; !err && link != head && link != look->proc + places->link_at; i++) {
		/* Its first member up to 18: what the PGPROC waits for tells whether it is. */
		uint64_t proc = link - places->link_at, next[2], waited;
		uint32_t mode;

		if (i == CHAIN_MAX || !look_bytes(look, link, next, sizeof(next)) ||
		    !look_bytes(look, proc + (uint64_t)places->wait_at, &waited, sizeof(waited)) ||
		    !look_bytes(look, proc + (uint64_t)places->holder_at + WAIT_MODE, &mode,
				sizeof(mode)) || waited != look->lock)
			return -ENOENT;
		if (mode < 32 && conflicts >> mode & 1)
			err = look_keep(look, proc, true, wait);
		link = next[1];
	}
	return err;
}

/*
 * Relation.rd_rel, ->rd_att and ->rd_id follow each other, and from 12 on a pg_class row, that
 * rd_rel points to, begins with the same number, and then the name.
 */
static void look_relation(const struct look *look, uint64_t relation, struct lock_info *wait)
{
	char bytes[192], row[4 + LOCK_RELATION - 1];

	if (!look_bytes(look, relation, bytes, sizeof(bytes)))
		return;
	for (size_t i = 0; i + 20 <= sizeof(bytes); i += 8) {
		uint32_t id = load32(bytes + i + 16);

		if (!id || load64(bytes + i) < 4096 ||
		    !look_bytes(look, load64(bytes + i), row, sizeof(row)) || load32(row) != id ||
		    !memchr(row + 4, '\0', sizeof(row) - 4) || !row[4])
			continue;
		wait->relation = id;
		snprintf(wait->name, sizeof(wait->name), "%s", row + 4);
		return;
	}
}

/* The lock, by way of the waiter's own LOCALLOCK or of its PGPROC. */
static int look_find(struct look *look, struct lock_info *wait)
{
	const struct event_lock *event = &wait->event;
	char local[LOCALLOCK_LOCK + 16];
	uint64_t holder[3];

	if (!look->proc || !look_bytes(look, look->proc, look->bytes, PROC_BYTES))
		return -ENOENT;
	if (look_waits(look) || !event->address)
		return look->lock ? look_joined(look, wait) : -ENOENT;
	if (!look_bytes(look, event->address, local, sizeof(local)) ||
	    !look_bytes(look, load64(local + LOCALLOCK_LOCK + 8), holder, sizeof(holder)) ||
	    holder[0] != load64(local + LOCALLOCK_LOCK) || holder[1] != look->proc)
		return -ENOENT;
	look->lock = holder[0];
	look->leader = holder[2];
	return 0;
}

int postgres_locks_read(struct postgres_locks *places, uint32_t pid,
			const struct event_lock *event, size_t size,
			struct lock_info *wait)
{
	unsigned int siblings = SIBLINGS_MAX;
	struct look look = { .siblings = &siblings };
	char lock[LOCK_BYTES];
	int err;

	*wait = (struct lock_info){ .event = *event };
	wait->self.pid = pid;
	err = look_open(&look, places, pid, size);
	if (err)
		return err;
	err = look_find(&look, wait);
	if (!err || event->address)
		look_party(&look, &wait->self);
	if (!err && !look_lock(&look, event->address ? event : &wait->event, lock))
		err = -ESTALE;
	if (!err)
		err = look_holders(&look, lock, wait);
	if (!err)
		look_link(&look, lock);
	if (!err && !wait->nholders)
		err = look_queue(&look, lock, wait);
	look_relation(&look, event->relation, wait);
	if (event->address)
		wait->event = *event;
	process_memory_close(&look.memory);
	return err;
}

/* From 13 on: an array of the program with two names that are known. 0: it was not found. */
static uint64_t look_array(const struct look *look)
{
	const struct postgres_locks *places = look->places;
	uint64_t data = places->data + look->memory.slide, found = 0;
	uint64_t texts[2] = { places->texts[0] + look->memory.slide,
			      places->texts[1] + look->memory.slide };
	char *bytes = places->texts[0] ? malloc(places->data_bytes) : NULL, *at = NULL;

	if (bytes && look_bytes(look, data, bytes, places->data_bytes))
		at = memmem(bytes, places->data_bytes, texts, sizeof(texts));
	if (at)
		found = data + (uint64_t)(at - bytes) - places->text * 8;
	free(bytes);
	return found;
}

/* The short text at @address, "" where there is none. */
static void look_name(const struct look *look, uint64_t address, char *name, size_t size)
{
	if (!look_bytes(look, address, name, size) || !memchr(name, '\0', size))
		*name = '\0';
}

static void look_tranches(const struct look *look, unsigned int n)
{
	struct postgres_locks *places = look->places;
	uint64_t pointers[PGLOCKS_TRANCHES] = { 0 };

	look_bytes(look, look_array(look), pointers, n * 8);
	if (places->nindividual < n)
		look_bytes(look, places->individual + look->memory.slide, pointers,
			   places->nindividual * 8);
	for (unsigned int i = 0; i < n; i++)
		look_name(look, pointers[i], places->tranche[i], PGLOCKS_TRANCHE);
}

void postgres_locks_names(struct postgres_locks *places, uint32_t pid, const char *version)
{
	/* LWTRANCHE_FIRST_USER_DEFINED from 10 on. */
	static const uint8_t counts[] = { 66, 72, 73, 73, 72, 75, 77, 92, 95, PGLOCKS_TRANCHES };
	unsigned long release = strtoul(version, NULL, 10) - 10;
	struct look look;

	if (look_open(&look, places, pid, 0))
		return;
	for (unsigned int i = 0; i < places->nkinds; i++)
		look_name(&look, look_pointer(&look, places->kinds + i * 8), places->kind[i],
			  sizeof(places->kind[i]));
	if (release < sizeof(counts))
		look_tranches(&look, counts[release]);
	process_memory_close(&look.memory);
}
