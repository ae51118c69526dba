// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/session/breakdown.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "db/engine.h"
#include "host/arch.h"
#include "loader/sys.h"

#ifndef SYS_renameat	/* riscv64, which has its name for recordings of others */
#define SYS_renameat	38
#endif

/*
 * The parts that waiting in system calls counts for; in others it counts for BREAKDOWN_OTHER. On a
 * file, the first ones may count for another part, see wait_file_part(); where that is unknown,
 * the thread's state distinguishes storage.
 */
static const struct {
	uint16_t number;
	uint16_t part;
} call_table[] = {
#define CALL(name, part)	{ SYS_ ## name, BREAKDOWN_ ## part }
#define READ(name, part)	{ SYS_ ## name, BREAKDOWN_ ## part | BREAKDOWN_ON_FILE }
#define WRITE(name, part)	\
	{ SYS_ ## name, BREAKDOWN_ ## part | BREAKDOWN_ON_FILE | BREAKDOWN_WRITES }
#define POLL(name, of)		\
	{ SYS_ ## name, BREAKDOWN_NETWORK | BREAKDOWN_ON_ ## of }
	READ(read, NETWORK), READ(readv, NETWORK),
	WRITE(write, NETWORK), WRITE(writev, NETWORK),
	WRITE(pwrite64, DISK), WRITE(pwritev, DISK), WRITE(pwritev2, DISK),
	CALL(pread64, DISK), CALL(preadv, DISK), CALL(preadv2, DISK), CALL(io_uring_enter, DISK),
	CALL(io_getevents, DISK), CALL(io_submit, DISK), CALL(openat, DISK),
	CALL(truncate, DISK), CALL(ftruncate, DISK), CALL(fallocate, DISK),
	CALL(unlinkat, DISK), CALL(mkdirat, DISK), CALL(renameat, DISK), CALL(renameat2, DISK),
	CALL(fadvise64, DISK), CALL(copy_file_range, DISK),
	/* A network or FUSE file system is asked by these, too. */
	CALL(close, DISK), CALL(lseek, DISK), CALL(getdents64, DISK), CALL(statx, DISK),
	CALL(fstat, DISK), CALL(newfstatat, DISK), CALL(faccessat, DISK), CALL(faccessat2, DISK),
	CALL(readlinkat, DISK), CALL(linkat, DISK), CALL(symlinkat, DISK),
	CALL(fsync, FSYNC), CALL(fdatasync, FSYNC), CALL(sync_file_range, FSYNC),
	CALL(msync, FSYNC), CALL(syncfs, FSYNC), CALL(sync, FSYNC),
	CALL(futex, FUTEX), CALL(semtimedop, FUTEX), CALL(semop, FUTEX),
	CALL(recvfrom, NETWORK), CALL(sendto, NETWORK), CALL(recvmsg, NETWORK),
	CALL(sendmsg, NETWORK), CALL(connect, NETWORK), CALL(accept4, NETWORK),
	POLL(ppoll, POLL), POLL(epoll_pwait, EPOLL), CALL(sendfile, NETWORK),
	CALL(nanosleep, SLEEP), CALL(clock_nanosleep, SLEEP), CALL(pselect6, SLEEP),
#if HOST_OLD_SYSCALLS
	CALL(select, SLEEP),
	POLL(poll, POLL), POLL(epoll_wait, EPOLL),
	CALL(open, DISK), CALL(unlink, DISK), CALL(rmdir, DISK), CALL(mkdir, DISK),
	CALL(rename, DISK), CALL(stat, DISK), CALL(lstat, DISK), CALL(access, DISK),
	CALL(readlink, DISK), CALL(link, DISK), CALL(symlink, DISK), CALL(getdents, DISK),
#endif
#undef POLL
#undef WRITE
#undef READ
#undef CALL
};

uint32_t breakdown_call_value(uint32_t call)
{
	for (size_t i = 0; i < sizeof(call_table) / sizeof(call_table[0]); i++)
		if (call_table[i].number == call)
			return call_table[i].part;
	return BREAKDOWN_OTHER;
}

void breakdown_calls(int map)
{
	for (uint32_t call = 0; call < BREAKDOWN_CALLS; call++) {
		uint32_t part = breakdown_call_value(call);

		sys_map_update(map, &call, &part);
	}
}

/* Names in place of a system call's. */
static const struct {
	uint32_t call;
	const char *name;
} pseudo_table[] = {
	{ BREAKDOWN_NO_CALL, "page_fault" }, { BREAKDOWN_OTHERS, "others" },
	{ BREAKDOWN_STOP, "stopped" },
#if !HOST_OLD_SYSCALLS
	/* Of x86-64, in recordings: */
	{ SYSCALL_MAX, "select" }, { SYSCALL_MAX + 1, "poll" }, { SYSCALL_MAX + 2, "epoll_wait" },
	{ SYSCALL_MAX + 3, "open" }, { SYSCALL_MAX + 4, "unlink" }, { SYSCALL_MAX + 5, "rmdir" },
	{ SYSCALL_MAX + 6, "mkdir" }, { SYSCALL_MAX + 7, "rename" },
#endif
};

void breakdown_call_name(uint32_t call, char name[SYSCALL_NAME])
{
	if (syscall_name(call, name))
		return;
	snprintf(name, SYSCALL_NAME, "syscall_%u", call);
	for (size_t i = 0; i < sizeof(pseudo_table) / sizeof(pseudo_table[0]); i++)
		if (pseudo_table[i].call == call)
			snprintf(name, SYSCALL_NAME, "%s", pseudo_table[i].name);
}

/* Parse the name of a call without a name. Return its number, or BREAKDOWN_OTHERS. */
static uint32_t call_unnamed(const char *name)
{
	static const char prefix[] = "syscall_";
	uint32_t number = 0;

	if (strncmp(name, prefix, sizeof(prefix) - 1))
		return BREAKDOWN_OTHERS;
	for (name += sizeof(prefix) - 1; *name >= '0' && *name <= '9' && number < 100000; name++)
		number = number * 10 + (uint32_t)(*name - '0');
	return *name ? BREAKDOWN_OTHERS : number;
}

uint32_t breakdown_call_number(const char *name)
{
	uint32_t number;

	for (size_t i = 0; i < sizeof(pseudo_table) / sizeof(pseudo_table[0]); i++)
		if (!strcmp(pseudo_table[i].name, name))
			return pseudo_table[i].call;
	return syscall_number(name, &number) ? number : call_unnamed(name);
}

const char *breakdown_part_name(enum breakdown_part part)
{
	static const char *const names[BREAKDOWN_PARTS] = {
#define NAME(part, name, help)	name,
		BREAKDOWN_TABLE(NAME)
#undef NAME
	};

	return names[part];
}

const char *breakdown_phase_name(enum phase phase)
{
	static const char *const names[PHASES] = {
		[PHASE_PARSE] = "parse", [PHASE_REWRITE] = "rewrite", [PHASE_PLAN] = "plan",
		[PHASE_EXECUTE] = "execute",
	};

	return names[phase];
}

int breakdown_by_name(const char *name, enum breakdown_part *part, uint32_t *call)
{
	*part = BREAKDOWN_PARTS;
	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		if (!strcmp(name, breakdown_part_name((enum breakdown_part)i)))
			*part = (enum breakdown_part)i;
	if (!syscall_number(name, call))
		*call = strcmp(name, "page_fault") ? BREAKDOWN_NONE : BREAKDOWN_NO_CALL;
	return *part == BREAKDOWN_PARTS && *call == BREAKDOWN_NONE ? -ENOENT : 0;
}

const char *breakdown_use_name(enum use use)
{
	static const char *const names[USES] = {
		[USE_READ_BYTES] = "read_bytes", [USE_WRITE_BYTES] = "write_bytes",
		[USE_READ_CALLS] = "read_calls", [USE_WRITE_CALLS] = "write_calls",
		[USE_MINOR_FAULTS] = "minor_faults", [USE_MAJOR_FAULTS] = "major_faults",
		[USE_PEAK_GROWTH] = "peak_growth_bytes",
		[USE_SENT] = "sent_bytes", [USE_RECEIVED] = "received_bytes",
		[USE_SHARED_HIT] = "shared_blks_hit",
		[USE_SHARED_READ] = "shared_blks_read",
		[USE_SHARED_DIRTIED] = "shared_blks_dirtied",
		[USE_SHARED_WRITTEN] = "shared_blks_written",
		[USE_LOCAL_HIT] = "local_blks_hit",
		[USE_LOCAL_READ] = "local_blks_read",
		[USE_LOCAL_DIRTIED] = "local_blks_dirtied",
		[USE_LOCAL_WRITTEN] = "local_blks_written",
		[USE_TEMP_READ] = "temp_blks_read",
		[USE_TEMP_WRITTEN] = "temp_blks_written",
		[USE_WAL_RECORDS] = "wal_records", [USE_WAL_FPI] = "wal_fpi",
		[USE_WAL_BYTES] = "wal_bytes",
		[USE_SORTS] = "sorts", [USE_SORTS_EXTERNAL] = "sorts_external",
		[USE_SORT_BYTES] = "sort_bytes", [USE_SORT_BLOCKS] = "sort_blocks",
	};

	return names[use];
}

void breakdown_use_add(__u64 *sum, __u64 value, enum use use)
{
	if (use != USE_PEAK_GROWTH && use != USE_SORT_BYTES)
		*sum += value;
	else if (value > *sum)
		*sum = value;
}

/* Complete ->use and ->used of a record, from a server that has @has. */
static void record_complete(struct event_breakdown *record, uint32_t has)
{
	__u64 *use = &record->use[USE_SORTS], *growth = &record->use[USE_PEAK_GROWTH];

	/* Pages to bytes. Negative if a library was mapped below an earlier peak. */
	*growth = (int64_t)*growth > 0 ? *growth * (uint64_t)getauxval(AT_PAGESZ) : 0;
	if (has & TARGET_HAS_SORTS)
		record->used |= 1u << USE_SORTS;
	/* A sort without an end was aborted by an error, or goes on in the next statement. */
	if (has & TARGET_HAS_SORT_SPACE && record->sorted >= *use)
		record->used |= ((1u << (USES - USE_SORTS_EXTERNAL)) - 1) << USE_SORTS_EXTERNAL;
	if (record->workers.count)
		for (int i = 0; i < USE_SORTINGS; i++)
			breakdown_use_add(use + i, record->workers.use[i],
					  (enum use)(USE_SORTS + i));
}

void breakdown_put(struct breakdown_pending *pending, const struct event_breakdown *event,
		   uint32_t has)
{
	struct event_breakdown *row;

	if (!pending->rows)
		return;
	row = &pending->rows[pending->next++ % BREAKDOWN_PENDING];
	*row = *event;
	if (row->used)
		record_complete(row, has);
}

/* Subtract @over ns from the listed waits of @part, and those that may be of it. */
static void record_trim_waits(struct event_breakdown *record, uint64_t over, uint32_t part)
{
	int kept = 0;

	for (int i = 0; i < BREAKDOWN_WAITS; i++) {
		struct breakdown_wait wait = record->waits[i];
		uint64_t less = over < wait.ns ? over : wait.ns;

		if (wait.part == part || wait.call == BREAKDOWN_OTHERS) {
			wait.ns -= less;
			over -= less;
		}
		if (wait.ns)
			record->waits[kept++] = wait;
	}
	for (; kept < BREAKDOWN_WAITS; kept++)
		record->waits[kept] = (struct breakdown_wait){ .sleeps = 0 };
}

/* Subtract up to @over ns from @part and its waits. Return the number subtracted. */
static uint64_t record_trim(struct event_breakdown *record, enum breakdown_part part, uint64_t over)
{
	over = over < record->ns[part] ? over : record->ns[part];
	record->ns[part] -= over;
	if (part >= BREAKDOWN_FIRST_WAIT)
		record_trim_waits(record, over, part);
	return over;
}

/*
 * Make the parts add up to @duration_ns. They cover more if the statement ended with an earlier
 * message: the time since, mostly spent waiting for the next message, is not part of it.
 */
static void record_fit(struct event_breakdown *record, uint64_t duration_ns)
{
	uint64_t sum = 0;

	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		sum += record->ns[i];
	if (sum > duration_ns)
		sum -= record_trim(record, BREAKDOWN_NETWORK, sum - duration_ns);
	for (int i = 0; sum > duration_ns && i < BREAKDOWN_PARTS; i++)
		sum -= record_trim(record, (enum breakdown_part)i, sum - duration_ns);
	if (sum < duration_ns)
		record->ns[BREAKDOWN_OTHER] += duration_ns - sum;
}

/* Compare two waits: the longer one is first, and elements without any are last. */
static int wait_compare(const void *a, const void *b)
{
	const struct breakdown_wait *left = a, *right = b;

	return left->ns < right->ns ? 1 : left->ns > right->ns ? -1 : 0;
}

const struct event_breakdown *breakdown_take(struct breakdown_pending *pending, uint32_t tid,
					     uint64_t start_ns, uint64_t duration_ns)
{
	/* The newest first: it nearly always is the one. */
	for (uint32_t i = 0; pending->rows && i < BREAKDOWN_PENDING; i++) {
		struct event_breakdown *row =
			&pending->rows[(pending->next - 1 - i) % BREAKDOWN_PENDING];

		if (row->tid != tid || row->start_ns != start_ns)
			continue;
		record_fit(row, duration_ns);
		qsort(row->waits, BREAKDOWN_WAITS, sizeof(*row->waits), wait_compare);
		return row;
	}
	return NULL;
}

static struct breakdown_open *open_find(struct breakdown_waits *waits, uint32_t pid,
					uint64_t start_ns)
{
	for (uint32_t i = 0; i < waits->nrows; i++)
		if (waits->rows[i].start_ns == start_ns && waits->rows[i].pid == pid)
			return &waits->rows[i];
	return NULL;
}

/* Make @row unused. */
static void open_free(struct breakdown_waits *waits, struct breakdown_open *row)
{
	waits->room -= row->room;
	free(row->ns);
	*row = (struct breakdown_open){ .start_ns = 0 };
}

static void open_free_taken(struct breakdown_waits *waits)
{
	if (waits->taken)
		open_free(waits, waits->taken);
	waits->taken = NULL;
}

/*
 * Return an unused row. If there is none, or @owner has its share, the least recently used one, or
 * that of @owner, becomes unused, and its waits are lost.
 */
static struct breakdown_open *open_claim(struct breakdown_waits *waits, uint16_t owner)
{
	struct breakdown_open *unused = NULL, *oldest = NULL, *own = NULL;
	uint32_t count = 0;

	for (struct breakdown_open *row = waits->rows; row < waits->rows + waits->nrows; row++) {
		if (!row->start_ns) {
			unused = row;
			continue;
		}
		oldest = !oldest || row->used < oldest->used ? row : oldest;
		if (row->owner != owner)
			continue;
		own = !own || row->used < own->used ? row : own;
		count++;
	}
	if (count >= OWNER_SHARE(BREAKDOWN_OPEN))
		oldest = own;
	else if (unused || waits->nrows < BREAKDOWN_OPEN)
		return unused ? unused : &waits->rows[waits->nrows++];
	owners_lost(waits->owners, oldest->owner, LOST_TABLE_FULL, oldest->count);
	open_free(waits, oldest);
	return oldest;
}

/* Make room for more waits in @row. Return false if there is none, or not for its owner. */
static bool open_grow(struct breakdown_waits *waits, struct breakdown_open *row)
{
	uint32_t more = row->room ? row->room : 16, left = OWNER_SHARE(BREAKDOWN_ROOM);
	uint64_t *ns;

	for (uint32_t i = 0; i < waits->nrows; i++)
		left -= waits->rows[i].owner == row->owner ? waits->rows[i].room : 0;
	if (left > BREAKDOWN_ROOM - waits->room)
		left = BREAKDOWN_ROOM - waits->room;
	if (more > left)
		more = left;
	ns = more ? realloc(row->ns, (row->room + more) * sizeof(*ns)) : NULL;
	if (!ns)
		return false;
	row->ns = ns;
	row->room += more;
	waits->room += more;
	return true;
}

void breakdown_wait_put(struct breakdown_waits *waits, const struct event_wait *event)
{
	struct breakdown_open *row;

	if (!waits->rows || !event->start_ns)
		return;
	open_free_taken(waits);
	row = open_find(waits, event->pid, event->start_ns);
	if (!row) {
		row = open_claim(waits, event->head.owner);
		row->start_ns = event->start_ns;
		row->pid = event->pid;
		row->owner = event->head.owner;
	}
	row->used = ++waits->puts;
	if (row->count == row->room && !open_grow(waits, row))
		owners_lost(waits->owners, row->owner, LOST_TABLE_FULL, 1);
	else
		row->ns[row->count++] = event->ns;
}

const uint64_t *breakdown_wait_take(struct breakdown_waits *waits, uint32_t pid, uint64_t start_ns,
				    size_t *count)
{
	struct breakdown_open *row = start_ns ? open_find(waits, pid, start_ns) : NULL;

	open_free_taken(waits);
	*count = row ? row->count : 0;
	if (row)
		row->start_ns = 0;
	waits->taken = row;
	return row ? row->ns : NULL;
}

void breakdown_waits_free(struct breakdown_waits *waits)
{
	for (uint32_t i = 0; i < waits->nrows; i++)
		free(waits->rows[i].ns);
	free(waits->rows);
	*waits = (struct breakdown_waits){ .rows = NULL };
}
