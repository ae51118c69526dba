// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/postgres/locks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/postgres/entry.h"
#include "host/clock.h"
#include "host/elf_map.h"
#include "host/process.h"
#include "host/process_memory.h"

#define EPOCH_2000_NS	946684800000000000u	/* epoch of PostgreSQL's timestamps */
#define PROC_BYTES	640			/* of a PGPROC that are searched */
#define CHAIN_MAX	512			/* holders and waiters of one lock */
#define SIBLINGS_MAX	64			/* processes to search for, for one wait */

/*
 * Offsets that are the same in all releases from 10 to 19; storage/lock.h and proc.h. Each is
 * verified before it is used.
 */
#define LOCALLOCK_LOCK	24		/* LOCALLOCK.lock */
#define LOCK_HOLDERS	24		/* LOCK.procLocks: pointers to the last and the first */
#define LOCK_WAITERS	40		/* LOCK.waitProcs, as above */
#define LOCK_BYTES	56
#define HOLDER_PROC	8		/* PROCLOCK.tag.myProc */
#define HOLDER_LEADER	16		/* PROCLOCK.groupLeader */
#define HOLDER_MASK	24		/* PROCLOCK.holdMask */
#define HOLDER_LINK	32		/* PROCLOCK.lockLink */
#define HOLDER_BYTES	32
#define WAIT_HOLDER_MAX	24		/* PGPROC.waitProcLock, after waitLock: 8, since 19: 24 */
#define WAIT_MODE	8		/* PGPROC.waitLockMode, after waitProcLock */
#define WAIT_START	16		/* PGPROC.waitStart, since 14 */

#define ENTRY_TRIES	3	/* an entry of pg_stat_activity can change while it is read */
#define SEARCHES_MAX	64	/* for what points to it; a session that ends has none */

void postgres_locks_find(const struct elf *elf, struct postgres_locks *places)
{
	*places = (struct postgres_locks){
		.proc = elf_symbol_value(elf, "MyProc"),
		.entry = elf_symbol_value(elf, "MyBEEntry"),
		.entry_size = elf_symbol_value(elf, "pgstat_track_activity_query_size"),
		.query = elf_symbol_value(elf, "debug_query_string"),
		.wait_at = -1, .holder_at = -1,
		/* 12 has struct members for GSSAPI encryption, and the function. */
		.entry_text = elf_symbol_value(elf, "table_open") ? ENTRY_TEXT_12 : ENTRY_TEXT_10,
		.has_starting = elf_symbol_value(elf, "pgaio_init_backend"),
	};
	places->lowest = elf_map_lowest_vaddr(elf);
	postgres_kinds_find(elf, &places->serves);
}

void postgres_entry_search(struct postgres_locks *places, const struct process_memory *memory,
			   uint32_t pid)
{
	if (places->entry || places->searches == SEARCHES_MAX)
		return;
	places->searches++;
	places->entry = postgres_entry_find(&places->variables, memory, pid, places->entry_text);
}

bool postgres_entry_known(const struct postgres_locks *places)
{
	return places->entry || places->searches < SEARCHES_MAX;
}

/* A backend whose memory is read. */
struct reader {
	struct postgres_locks *places;
	struct process process;
	struct process_memory memory;
	uint64_t proc;			/* address of its PGPROC, … */
	char bytes[PROC_BYTES];		/* … and the contents */
	uint64_t lock, holder;		/* addresses of the awaited LOCK and its PROCLOCK */
	uint64_t leader;		/* PGPROC of the leader of parallel workers */
	size_t size;			/* of a text */
	unsigned int *siblings;		/* searches left: each can take a while */
};

static bool reader_bytes(const struct reader *r, uint64_t address, void *buf, size_t size)
{
	return address && process_memory_read(&r->memory, address, buf, size) == (ssize_t)size;
}

static uint64_t reader_pointer(const struct reader *r, uint64_t variable)
{
	return postgres_pointer(&r->memory, variable);
}

/* Open the memory of process @pid. Return 0 or -errno. process_memory_close(&r->memory) ends it. */
static int reader_open(struct reader *r, struct postgres_locks *places, uint32_t pid, size_t size)
{
	int err = process_read(pid, places->is_program, &r->process);

	r->places = places;
	r->size = size;
	if (!err)
		err = process_memory_open_program(&r->process, places->lowest, &r->memory);
	if (err)
		return err;
	r->proc = reader_pointer(r, places->proc);
	return 0;
}

/* Read at most r->size bytes of the text at @address. */
static void reader_text(const struct reader *r, uint64_t address, struct lock_backend *backend)
{
	char *text = malloc(r->size);
	ssize_t n = text && address ? process_memory_read(&r->memory, address, text,
							  r->size) :
				      -ENOENT;

	if (n <= 0 || !*text) {
		free(text);
		return;
	}
	backend->text = text;
	lock_backend_text(backend, strnlen(text, (size_t)n));
	backend->cut = backend->len == (size_t)n;
}

/*
 * Read the last statement and the idle time of an idle backend from its pg_stat_activity entry. A
 * backend between two messages of a statement, Bind and Execute, has it nowhere else.
 */
static void reader_entry(const struct reader *r, struct lock_backend *backend)
{
	size_t text = r->places->entry_text;
	uint64_t now = clock_ns(CLOCK_REALTIME), since;
	enum postgres_state state;
	char entry[ENTRY_LEAST];

	if (!reader_bytes(r, reader_pointer(r, r->places->entry), entry, sizeof(entry)) ||
	    load32(entry + ENTRY_PID) != r->process.ns_pid)
		return;
	state = postgres_entry_state(load32(entry + ENTRY_STATE(text)), r->places->has_starting);
	backend->running |= state == POSTGRES_RUNNING || state == POSTGRES_FASTPATH;
	since = EPOCH_2000_NS + load64(entry + ENTRY_STATE_AT) * 1000;
	if (!backend->running && load64(entry + ENTRY_XACT)) {
		backend->idle = true;
		backend->idle_ns = since < now ? now - since : 0;
	}
	if (backend->text || state == POSTGRES_UNDEFINED)
		return;
	reader_text(r, load64(entry + text), backend);
	backend->cut |= postgres_entry_cuts(&r->memory, r->places->entry_size, backend->len);
}

/* Return the changes of the backend's entry so far; its first member is odd while it changes. */
static uint32_t reader_changes(const struct reader *r)
{
	uint32_t changes;

	return reader_bytes(r, reader_pointer(r, r->places->entry), &changes, sizeof(changes)) ?
	       changes : 0;
}

/* Read the statement that the process runs, or ran last, from several places. */
static void reader_places(const struct reader *r, struct lock_backend *backend)
{
	uint64_t query = reader_pointer(r, r->places->query);
	char title[512];
	ssize_t n;

	backend->valid = backend->idle_valid = r->places->query;
	/* A background process runs no client's statement, but it is not idle either. */
	backend->running = query || !reader_pointer(r, r->places->serves.client);
	if (query)
		reader_text(r, query, backend);
	reader_entry(r, backend);
	n = backend->running || backend->idle ? 0 : process_title(r->process.pid, title,
							       sizeof(title) - 1);
	if (n <= 0)
		return;
	title[n] = '\0';
	backend->idle = strstr(title, " idle in transaction");
}

/* The same as of one point in time: the next statement can begin while they are read. */
static void reader_backend(const struct reader *r, struct lock_backend *backend)
{
	const struct lock_backend before = *backend;
	uint32_t changes;

	for (int i = 0; i < ENTRY_TRIES; i++) {
		free(backend->text);
		*backend = before;
		changes = reader_changes(r);
		reader_places(r, backend);
		if (!(changes & 1) && reader_changes(r) == changes)
			return;
	}
	backend->idle = backend->idle_valid = false;
}

/* Return the modes that conflict with @mode, as bits 1 to 8; storage/lmgr/lock.c. */
static uint32_t lock_conflicts(uint32_t mode)
{
	static const uint16_t conflicts[] = {
		0, 1 << 8, 3 << 7, 15 << 5, 31 << 4, 3 << 3 | 7 << 6, 63 << 3, 127 << 2, 255 << 1,
	};

	return mode < sizeof(conflicts) / sizeof(*conflicts) ? conflicts[mode] : 0;
}

/* Read the LOCK at r->lock. Return whether its tag is that of @event. */
static bool reader_lock(const struct reader *r, const struct event_lock *event,
			char lock[LOCK_BYTES])
{
	return reader_bytes(r, r->lock, lock, LOCK_BYTES) &&
	       load32(lock) == event->field[0] && load32(lock + 4) == event->field[1] &&
	       load32(lock + 8) == event->field[2] &&
	       (load32(lock + 12) & 0xffff) == event->field[3] &&
	       (uint8_t)lock[14] == event->kind;
}

/*
 * Return whether the PGPROC has waitLock at offset @i and waitProcLock at @holder: that points back
 * to the lock and to the PGPROC. Then keep both offsets.
 */
static bool reader_waits_at(struct reader *r, size_t i, size_t holder)
{
	uint64_t back[3], lock = load64(r->bytes + i);

	if (!lock || lock & 7 ||
	    !reader_bytes(r, load64(r->bytes + holder), back, sizeof(back)) ||
	    back[0] != lock || back[1] != r->proc)
		return false;
	r->lock = lock;
	r->leader = back[2];
	r->places->wait_at = (int64_t)i;
	r->places->holder_at = (int64_t)holder;
	return true;
}

/* Find the lock that the PGPROC waits for. Return whether it waits. */
static bool reader_waits(struct reader *r)
{
	for (size_t i = 0; i + WAIT_HOLDER_MAX + WAIT_START + 8 <= PROC_BYTES; i += 8)
		for (size_t holder = 8; holder <= WAIT_HOLDER_MAX; holder += 8)
			if (reader_waits_at(r, i, i + holder))
				return true;
	return false;
}

/* Fill in the event of a wait that began before probes were attached. Return 0 or -ENOENT. */
static int reader_joined(const struct reader *r, struct lock_info *info)
{
	const char *at = r->bytes + r->places->holder_at;
	uint64_t now = clock_ns(CLOCK_REALTIME), begun;
	char lock[LOCK_BYTES];

	if (!reader_bytes(r, r->lock, lock, sizeof(lock)))
		return -ENOENT;
	info->event.field[0] = load32(lock);
	info->event.field[1] = load32(lock + 4);
	info->event.field[2] = load32(lock + 8);
	info->event.field[3] = load32(lock + 12) & 0xffff;
	info->event.kind = (uint8_t)lock[14];
	info->event.mode = load32(at + WAIT_MODE);
	if (!info->event.mode || info->event.mode > 8 || info->event.kind >= POSTGRES_LOCK_KINDS)
		return -ENOENT;
	/* Before 14, other data is at this offset, which is not a recent time. */
	begun = load64(at + WAIT_START);
	begun = begun < UINT64_MAX / 2000 ? EPOCH_2000_NS + begun * 1000 : 0;
	if (begun > EPOCH_2000_NS && begun <= now && now - begun < 30 * 86400000000000ull)
		info->begun_ns = begun;
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

/* Return the PID of the same server's process that is @ns_pid in its PID namespace, or 0. */
static uint32_t reader_sibling(const struct reader *r, uint32_t ns_pid)
{
	struct sibling sibling = { .process = &r->process, .ns_pid = ns_pid };
	struct process process;

	if (!*r->siblings)
		return 0;
	--*r->siblings;
	if (!process_read(ns_pid, r->places->is_program, &process) &&
	    sibling_each(&sibling, &process))
		return sibling.pid;
	if (r->process.pid != r->process.ns_pid)
		process_each(r->places->is_program, sibling_each, &sibling);
	return sibling.pid;
}

/*
 * Find the PID of the PGPROC at @address: it is at the offset at which the PGPROC of @r has the PID
 * of @r. *@pid is 0 for a prepared transaction. Return 0, or -ENOENT if it is unknown.
 */
static int reader_pid(const struct reader *r, uint64_t address, uint32_t *pid)
{
	char bytes[PROC_BYTES];
	bool none = false;

	if (!reader_bytes(r, address, bytes, sizeof(bytes)))
		return -ENOENT;
	for (size_t i = 0; i + 4 <= PROC_BYTES; i += 4) {
		uint32_t there = load32(bytes + i);

		if (load32(r->bytes + i) != r->process.ns_pid)
			continue;
		none |= !there;
		*pid = there ? reader_sibling(r, there) : 0;
		if (*pid)
			return 0;
	}
	*pid = 0;
	return none ? 0 : -ENOENT;
}

/*
 * Add the backend of the PGPROC at @address to the holders, or to those ahead in the queue, once.
 * Return 0 or -ENOENT.
 */
static int reader_keep(const struct reader *r, uint64_t address, bool queued,
		       struct lock_info *info)
{
	struct lock_backend backend = { .queued = queued };
	struct reader other;
	int err;

	/* Do not search for processes that are only counted. */
	if (info->nholders == LOCK_HOLDERS_KEPT) {
		info->more++;
		return 0;
	}
	err = reader_pid(r, address, &backend.pid);
	if (err)
		return err;
	for (unsigned int i = 0; i < info->nholders; i++)
		if (info->holders[i].pid == backend.pid)
			return 0;
	if (backend.pid && !reader_open(&other, r->places, backend.pid, r->size)) {
		reader_backend(&other, &backend);
		postgres_kind_read(&r->places->serves, &other.memory, backend.pid, backend.kind);
		process_memory_close(&other.memory);
	}
	lock_info_add(info, &backend);
	return 0;
}

/*
 * Return 0 if the @size bytes at @address, at most HOLDER_BYTES, are those in @before, or -EAGAIN:
 * what a backend did since is not what it was waited for.
 */
static int reader_same(const struct reader *r, uint64_t address, const void *before, size_t size)
{
	char now[HOLDER_BYTES];

	return reader_bytes(r, address, now, size) && !memcmp(now, before, size) ? 0 : -EAGAIN;
}

/*
 * Add the backends that hold the lock in a conflicting mode. Return 0, or -ENOENT if the backend
 * does not wait any more: others may have got the lock since.
 */
static int reader_holders(const struct reader *r, const char lock[LOCK_BYTES],
			  struct lock_info *info)
{
	uint64_t head = r->lock + LOCK_HOLDERS, link = load64(lock + LOCK_HOLDERS + 8);
	uint32_t conflicts = lock_conflicts(info->event.mode), mask;
	bool waits = false;
	int err = 0;

	for (int i = 0; !err && link != head; i++) {
		char holder[HOLDER_BYTES];
		uint64_t next[2];

		if (i == CHAIN_MAX ||
		    !reader_bytes(r, link - HOLDER_LINK, holder, sizeof(holder)) ||
		    !reader_bytes(r, link, next, sizeof(next)) || load64(holder) != r->lock)
			return -ENOENT;
		mask = load32(holder + HOLDER_MASK);
		if (load64(holder + HOLDER_PROC) == r->proc) {
			waits = !(mask >> (info->event.mode & 31) & 1);
		} else if (mask & conflicts && load64(holder + HOLDER_LEADER) != r->leader) {
			err = reader_keep(r, load64(holder + HOLDER_PROC), false, info);
			err = err ? err :
			      reader_same(r, link - HOLDER_LINK, holder, sizeof(holder));
		}
		link = next[1];
	}
	if (err || waits)
		return err;
	lock_info_drop(info);
	return -ENOENT;
}

/* Learn the offset of the queue's links in a PGPROC, if the backend is in the queue already. */
static void reader_link(const struct reader *r, const char lock[LOCK_BYTES])
{
	uint64_t head = r->lock + LOCK_WAITERS, link = load64(lock + LOCK_WAITERS + 8), next[2];
	int64_t last = r->places->holder_at;

	for (int i = 0; i < CHAIN_MAX && link != head; i++) {
		/* The links are the first member, or between waitLock and waitProcLock. */
		if (last >= 0 && link - r->proc < (uint64_t)last)
			r->places->link_at = link - r->proc;
		if (!reader_bytes(r, link, next, sizeof(next)))
			return;
		link = next[1];
	}
}

/* Add the backends ahead in the queue that wait for a conflicting mode. */
static int reader_queue(const struct reader *r, const char lock[LOCK_BYTES],
			struct lock_info *info)
{
	uint64_t head = r->lock + LOCK_WAITERS, link = load64(lock + LOCK_WAITERS + 8);
	uint32_t conflicts = lock_conflicts(info->event.mode);
	const struct postgres_locks *places = r->places;
	int err = places->wait_at < 0 ? -ENOENT : 0;

	for (int i = 0; !err && link != head && link != r->proc + places->link_at; i++) {
		/* The lock that the PGPROC waits for shows whether the offset is right. */
		uint64_t proc = link - places->link_at, next[2], waited;
		uint32_t mode;

		if (i == CHAIN_MAX || !reader_bytes(r, link, next, sizeof(next)) ||
		    !reader_bytes(r, proc + (uint64_t)places->wait_at, &waited, sizeof(waited)) ||
		    !reader_bytes(r, proc + (uint64_t)places->holder_at + WAIT_MODE, &mode,
				  sizeof(mode)) || waited != r->lock)
			return -ENOENT;
		if (mode < 32 && conflicts >> mode & 1) {
			err = reader_keep(r, proc, true, info);
			err = err ? err : reader_same(r, proc + (uint64_t)places->wait_at, &waited,
						      sizeof(waited));
		}
		link = next[1];
	}
	if (err || link != head)
		return err;
	/* Not in the queue yet, or any more: then those in it are behind. */
	lock_info_drop(info);
	return -ENOENT;
}

/*
 * Read the name of the struct RelationData at @relation (utils/rel.h). Its members rd_rel, rd_att
 * and rd_id are adjacent, and since 12 the pg_class row that rd_rel points to begins with the
 * same OID as rd_id, followed by the name.
 */
static void reader_relation(const struct reader *r, uint64_t relation, struct lock_info *info)
{
	char bytes[192], row[4 + LOCK_RELATION - 1];
	const __u32 *tag = info->event.field;

	if (!reader_bytes(r, relation, bytes, sizeof(bytes)))
		return;
	for (size_t i = 0; i + 20 <= sizeof(bytes); i += 8) {
		uint32_t id = load32(bytes + i + 16);

		if (!id || load64(bytes + i) < 4096 ||
		    !reader_bytes(r, load64(bytes + i), row, sizeof(row)) || load32(row) != id ||
		    !memchr(row + 4, '\0', sizeof(row) - 4) || !row[4])
			continue;
		/* Of another row that the thread has wanted. */
		if (tag[1] && (tag[1] != id || info->event.kind >= POSTGRES_LOCK_KINDS ||
			       strcmp(r->places->kind[info->event.kind], "tuple")))
			return;
		info->relation = id;
		snprintf(info->name, sizeof(info->name), "%s", row + 4);
		return;
	}
}

/* Find the awaited lock: from the PGPROC, or from the LOCALLOCK in the event. */
static int reader_find(struct reader *r, struct lock_info *info)
{
	const struct event_lock *event = &info->event;
	char local[LOCALLOCK_LOCK + 16];
	uint64_t holder[3];

	if (!r->proc || !reader_bytes(r, r->proc, r->bytes, PROC_BYTES))
		return -ENOENT;
	if (reader_waits(r) || !event->address)
		return r->lock ? reader_joined(r, info) : -ENOENT;
	if (!reader_bytes(r, event->address, local, sizeof(local)) ||
	    !reader_bytes(r, load64(local + LOCALLOCK_LOCK + 8), holder, sizeof(holder)) ||
	    holder[0] != load64(local + LOCALLOCK_LOCK) || holder[1] != r->proc)
		return -ENOENT;
	r->lock = holder[0];
	r->leader = holder[2];
	return 0;
}

int postgres_locks_read(struct postgres_locks *places, uint32_t pid,
			const struct event_lock *event, size_t size,
			struct lock_info *info)
{
	unsigned int siblings = SIBLINGS_MAX;
	struct reader r = { .siblings = &siblings };
	char lock[LOCK_BYTES];
	int err;

	*info = (struct lock_info){ .event = *event };
	info->self.pid = pid;
	err = reader_open(&r, places, pid, size);
	if (err)
		return err;
	err = reader_find(&r, info);
	if (!err || event->address)
		reader_backend(&r, &info->self);
	postgres_kind_read(&places->serves, &r.memory, pid, info->self.kind);
	if (!err && !reader_lock(&r, event->address ? event : &info->event, lock))
		err = -ESTALE;
	if (!err)
		err = reader_holders(&r, lock, info);
	if (!err)
		reader_link(&r, lock);
	if (!err && !info->nholders)
		err = reader_queue(&r, lock, info);
	if (err == -EAGAIN)
		lock_info_drop(info);
	info->known = !err;
	info->lock = r.lock;
	reader_relation(&r, event->relation, info);
	if (event->address)
		info->event = *event;
	process_memory_close(&r.memory);
	return err;
}
