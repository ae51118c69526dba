// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/breakdown.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "db/engine.h"
#include "host/arch.h"
#include "loader/btf.h"

#define STACK_BYTES	16384	/* of a thread in the kernel, or a page if that is larger */

#define REGS	"pt_regs"

static const struct {
	uint32_t number;
	enum breakdown_part part;
	const char *name;
} breakdown_calls[] = {
#define ROW(name, part)	{ SYS_ ## name, part, #name }
	ROW(pread64, BREAKDOWN_DISK), ROW(pwrite64, BREAKDOWN_DISK), ROW(preadv, BREAKDOWN_DISK),
	ROW(pwritev, BREAKDOWN_DISK), ROW(preadv2, BREAKDOWN_DISK), ROW(pwritev2, BREAKDOWN_DISK),
	ROW(io_uring_enter, BREAKDOWN_DISK), ROW(io_getevents, BREAKDOWN_DISK), ROW(io_submit, BREAKDOWN_DISK),
	ROW(openat, BREAKDOWN_DISK), ROW(truncate, BREAKDOWN_DISK), ROW(ftruncate, BREAKDOWN_DISK), ROW(fallocate, BREAKDOWN_DISK),
	ROW(unlinkat, BREAKDOWN_DISK), ROW(mkdirat, BREAKDOWN_DISK), ROW(renameat, BREAKDOWN_DISK), ROW(fadvise64, BREAKDOWN_DISK),
	ROW(fsync, BREAKDOWN_FSYNC), ROW(fdatasync, BREAKDOWN_FSYNC), ROW(sync_file_range, BREAKDOWN_FSYNC),
	ROW(msync, BREAKDOWN_FSYNC), ROW(syncfs, BREAKDOWN_FSYNC),
	ROW(futex, BREAKDOWN_FUTEX), ROW(semtimedop, BREAKDOWN_FUTEX), ROW(semop, BREAKDOWN_FUTEX),
	/* Of a file they are the disk's, which the thread's state tells. */
	ROW(read, BREAKDOWN_NETWORK), ROW(write, BREAKDOWN_NETWORK), ROW(readv, BREAKDOWN_NETWORK),
	ROW(writev, BREAKDOWN_NETWORK),
	ROW(recvfrom, BREAKDOWN_NETWORK), ROW(sendto, BREAKDOWN_NETWORK), ROW(recvmsg, BREAKDOWN_NETWORK),
	ROW(sendmsg, BREAKDOWN_NETWORK), ROW(connect, BREAKDOWN_NETWORK), ROW(accept4, BREAKDOWN_NETWORK),
	ROW(ppoll, BREAKDOWN_NETWORK), ROW(epoll_pwait, BREAKDOWN_NETWORK),
	ROW(sendfile, BREAKDOWN_NETWORK),
	ROW(nanosleep, BREAKDOWN_SLEEP), ROW(clock_nanosleep, BREAKDOWN_SLEEP), ROW(pselect6, BREAKDOWN_SLEEP),
	ROW(wait4, BREAKDOWN_OTHER), ROW(mmap, BREAKDOWN_OTHER), ROW(munmap, BREAKDOWN_OTHER),
	ROW(madvise, BREAKDOWN_OTHER), ROW(brk, BREAKDOWN_OTHER), ROW(clone, BREAKDOWN_OTHER),
#if HOST_OLD_SYSCALLS
	ROW(select, BREAKDOWN_SLEEP), ROW(poll, BREAKDOWN_NETWORK), ROW(epoll_wait, BREAKDOWN_NETWORK),
	ROW(open, BREAKDOWN_DISK), ROW(unlink, BREAKDOWN_DISK), ROW(rmdir, BREAKDOWN_DISK), ROW(mkdir, BREAKDOWN_DISK), ROW(rename, BREAKDOWN_DISK),
#endif
#undef ROW
};

#define CALLS	(sizeof(breakdown_calls) / sizeof(breakdown_calls[0]))

enum breakdown_part breakdown_call_part(uint32_t call)
{
	for (size_t i = 0; i < CALLS; i++)
		if (breakdown_calls[i].number == call)
			return breakdown_calls[i].part;
	return BREAKDOWN_OTHER;
}

const char *breakdown_call_name(uint32_t call)
{
	for (size_t i = 0; i < CALLS; i++)
		if (breakdown_calls[i].number == call)
			return breakdown_calls[i].name;
	return NULL;
}

const char *breakdown_part_name(enum breakdown_part part)
{
	static const char *const names[BREAKDOWN_PARTS] = {
		[BREAKDOWN_CPU] = "cpu", [BREAKDOWN_RUNQUEUE] = "runqueue", [BREAKDOWN_DISK] = "disk",
		[BREAKDOWN_FSYNC] = "fsync", [BREAKDOWN_LOCK] = "lock", [BREAKDOWN_LWLOCK] = "lwlock",
		[BREAKDOWN_FUTEX] = "futex", [BREAKDOWN_NETWORK] = "network", [BREAKDOWN_SLEEP] = "sleep",
		[BREAKDOWN_IPC] = "ipc", [BREAKDOWN_OTHER] = "other",
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
	*call = strcmp(name, "page_fault") ? BREAKDOWN_NONE : BREAKDOWN_NO_CALL;
	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		if (!strcmp(name, breakdown_part_name((enum breakdown_part)i)))
			*part = (enum breakdown_part)i;
	for (size_t i = 0; i < CALLS; i++)
		if (!strcmp(name, breakdown_calls[i].name))
			*call = breakdown_calls[i].number;
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
		[USE_SHARED_HIT] = "shared_hit", [USE_SHARED_READ] = "shared_read",
		[USE_SHARED_DIRTIED] = "shared_dirtied", [USE_SHARED_WRITTEN] = "shared_written",
		[USE_LOCAL_HIT] = "local_hit", [USE_LOCAL_READ] = "local_read",
		[USE_LOCAL_DIRTIED] = "local_dirtied", [USE_LOCAL_WRITTEN] = "local_written",
		[USE_TEMP_READ] = "temp_read", [USE_TEMP_WRITTEN] = "temp_written",
		[USE_WAL_RECORDS] = "wal_records", [USE_WAL_FPI] = "wal_fpi",
		[USE_WAL_BYTES] = "wal_bytes",
		[USE_SORTS] = "sorts", [USE_SORTS_EXTERNAL] = "sorts_external",
		[USE_SORT_BYTES] = "sort_bytes", [USE_SORT_BLOCKS] = "sort_blocks",
	};

	return names[use];
}

/* Behind the members. */
enum { ROW_HELPER = 16, ROW_STACK, ROW_STATE, ROW_NEXT, ROW_PID };

static const struct breakdown_number {
	const char *name;
	const char *structure, *member, *older;	/* NULL: none */
	bool needed, mask;			/* of a bit field, its bit */
} breakdown_table[BREAKDOWN_NUMBERS] = {
	{ "constant_task_pid", "task_struct", "pid", NULL, true, false },
	/* 2f064a59a11f (5.14) */
	{ "constant_task_state", "task_struct", "__state", "state", true, false },
	{ "constant_task_iowait", "task_struct", "in_iowait", NULL, true, false },
	{ "constant_task_iowait_mask", "task_struct", "in_iowait", NULL, true, true },
	{ "constant_task_stack", "task_struct", "stack", NULL, true, false },
	{ "constant_regs_call", REGS, HOST_SYSCALL_REGISTER, NULL, true, false },
	{ "constant_task_read_bytes", "task_struct", "ioac.read_bytes", NULL, false, false },
	{ "constant_task_write_bytes", "task_struct", "ioac.write_bytes", NULL, false, false },
	{ "constant_task_syscr", "task_struct", "ioac.syscr", NULL, false, false },
	{ "constant_task_syscw", "task_struct", "ioac.syscw", NULL, false, false },
	{ "constant_task_min_flt", "task_struct", "min_flt", NULL, true, false },
	{ "constant_task_maj_flt", "task_struct", "maj_flt", NULL, true, false },
	{ "constant_task_mm", "task_struct", "mm", NULL, true, false },
	{ "constant_mm_hiwater", "mm_struct", "hiwater_vm", NULL, true, false },
	{ "constant_mm_total", "mm_struct", "total_vm", NULL, true, false },
	{ "constant_mm_data", "mm_struct", "data_vm", NULL, true, false },
	/* What is no member: breakdown_types() fills them. */
	[ROW_HELPER] = { "constant_task_helper", NULL, NULL, NULL, false, false },
	[ROW_STACK] = { "constant_stack_regs", NULL, NULL, NULL, false, false },
	/* Of records of the scheduler's events. */
	[ROW_STATE] = { "constant_record_state", "sched_switch", "prev_state", NULL, true, false },
	[ROW_NEXT] = { "constant_record_next", "sched_switch", "next_pid", NULL, true, false },
	[ROW_PID] = { "constant_record_pid", "sched_wakeup", "pid", NULL, true, false },
};

void breakdown_no_numbers(struct object_value numbers[BREAKDOWN_NUMBERS])
{
	for (size_t i = 0; i < BREAKDOWN_NUMBERS; i++)
		numbers[i] = (struct object_value){ .name = breakdown_table[i].name };
}

static int breakdown_number(const struct btf *btf, const struct breakdown_number *row,
			    uint64_t *number)
{
	struct btf_place place;
	int err = btf_member(btf, row->structure, row->member, &place);

	if (err == -ENOENT && row->older)
		err = btf_member(btf, row->structure, row->older, &place);
	*number = err ? 0 : row->mask ? 1u << place.bit : place.offset;
	return row->needed ? err : 0;
}

static int breakdown_types(struct features *features, struct object_value *numbers)
{
	uint32_t regs_bytes, page = (uint32_t)sysconf(_SC_PAGESIZE);
	struct btf btf;
	int err = btf_load(&btf);

	for (size_t i = 0; !err && i < ROW_HELPER; i++)
		err = breakdown_number(&btf, &breakdown_table[i], &numbers[i].number);
	err = err ? err : btf_size(&btf, REGS, &regs_bytes);
	btf_close(&btf);
	if (err)
		return err;
	numbers[ROW_HELPER].number = feature_has(features, FEATURE_TASK_REGS);
	numbers[ROW_STACK].number = (page > STACK_BYTES ? page : STACK_BYTES) - regs_bytes;
	return 0;
}

int breakdown_numbers(struct features *features, struct object_value numbers[BREAKDOWN_NUMBERS],
		      int events[2])
{
	breakdown_no_numbers(numbers);
	events[0] = events[1] = 0;
	if (!breakdown_types(features, numbers))
		return 0;
	breakdown_no_numbers(numbers);
	for (size_t i = ROW_STATE; i < BREAKDOWN_NUMBERS; i++) {
		int id = tracefs_field(breakdown_table[i].structure, breakdown_table[i].member,
				       &numbers[i].number);

		if (id < 0)
			return id;
		events[i == ROW_PID] = id;
	}
	return 0;
}

void breakdown_use_add(__u64 *sum, __u64 value, enum use use)
{
	if (use != USE_PEAK_GROWTH && use != USE_SORT_BYTES)
		*sum += value;
	else if (value > *sum)
		*sum = value;
}

/* Adds what a record has in other places to ->use. */
static void breakdown_complete(struct event_breakdown *why, uint32_t has)
{
	__u64 *use = &why->use[USE_SORTS], *growth = &why->use[USE_PEAK_GROWTH];

	/* Less than none: a library was mapped, below an earlier peak. */
	*growth = (int64_t)*growth > 0 ? *growth * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
	if (has & TARGET_HAS_SORTS)
		why->used |= 1u << USE_SORTS;
	/* Else an error ended one, or the next statement will. */
	if (has & TARGET_HAS_SORT_SPACE && why->sorted >= *use)
		why->used |= ((1u << (USES - USE_SORTS_EXTERNAL)) - 1) << USE_SORTS_EXTERNAL;
	if (why->workers.count)
		for (int i = 0; i < USE_SORTINGS; i++)
			breakdown_use_add(use + i, why->workers.use[i], (enum use)(USE_SORTS + i));
}

void breakdown_put(struct breakdown_pending *pending, const struct event_breakdown *event,
		   uint32_t has)
{
	struct event_breakdown *row = pending->rows ? &pending->rows[pending->next++ % BREAKDOWN_PENDING] : NULL;

	if (!row)
		return;
	*row = *event;
	if (row->used)
		breakdown_complete(row, has);
}

/* Takes @over ns out of what was waited in: for the client, or whatever it was. */
static void breakdown_forget(struct event_breakdown *why, uint64_t over, bool client)
{
	int kept = 0;

	for (int i = 0; i < BREAKDOWN_WAITS && why->waits[i].count; i++) {
		struct breakdown_wait wait = why->waits[i];
		uint64_t less = over < wait.ns ? over : wait.ns;

		if (!client || breakdown_call_part(wait.call) == BREAKDOWN_NETWORK) {
			wait.ns -= less;
			over -= less;
		}
		if (wait.ns)
			why->waits[kept++] = wait;
	}
	for (; kept < BREAKDOWN_WAITS; kept++)
		why->waits[kept].count = 0;
}

/*
 * The parts end where the statement does, but for one whose end was a message before: what the
 * thread did since, wait for the next one above all, is not its own.
 */
static void breakdown_fit(struct event_breakdown *why, uint64_t duration_ns)
{
	static const uint8_t order[] = { BREAKDOWN_NETWORK, BREAKDOWN_CPU, BREAKDOWN_RUNQUEUE,
					 BREAKDOWN_DISK, BREAKDOWN_FSYNC,
					 BREAKDOWN_LOCK, BREAKDOWN_LWLOCK, BREAKDOWN_FUTEX, BREAKDOWN_SLEEP, BREAKDOWN_IPC,
					 BREAKDOWN_OTHER };
	uint64_t sum = 0;

	for (int i = 0; i < BREAKDOWN_PARTS; i++)
		sum += why->ns[i];
	for (size_t i = 0; sum > duration_ns && i < sizeof(order); i++) {
		__u64 *ns = &why->ns[order[i]];
		uint64_t over = sum - duration_ns;

		over = over < *ns ? over : *ns;
		*ns -= over;
		sum -= over;
		if (order[i] != BREAKDOWN_CPU && order[i] != BREAKDOWN_RUNQUEUE)
			breakdown_forget(why, over, order[i] == BREAKDOWN_NETWORK);
	}
	if (sum < duration_ns)
		why->ns[BREAKDOWN_OTHER] += duration_ns - sum;
}

const struct event_breakdown *breakdown_take(struct breakdown_pending *pending, uint32_t tid,
					     uint64_t start_ns,
					     uint64_t duration_ns)
{
	for (uint32_t i = 0; pending->rows && i < BREAKDOWN_PENDING; i++) {
		/* The newest first: nearly always it is that. */
		struct event_breakdown *why = &pending->rows[(pending->next - 1 - i) % BREAKDOWN_PENDING];

		if (why->tid != tid || why->start_ns != start_ns)
			continue;
		breakdown_fit(why, duration_ns);
		return why;
	}
	return NULL;
}

static struct breakdown_open *open_find(struct breakdown_waits *waits, uint32_t pid,
					uint64_t start_ns)
{
	for (struct breakdown_open *row = waits->rows; row < waits->rows + waits->nrows; row++)
		if (row->start_ns == start_ns && row->pid == pid)
			return row;
	return NULL;
}

/* A free row, or the one that was idle longest. */
static struct breakdown_open *open_place(struct breakdown_waits *waits)
{
	struct breakdown_open *oldest = waits->rows;

	for (struct breakdown_open *row = waits->rows; row < waits->rows + waits->nrows; row++) {
		if (!row->start_ns)
			return row;
		oldest = row->used < oldest->used ? row : oldest;
	}
	if (waits->nrows < BREAKDOWN_OPEN)
		return &waits->rows[waits->nrows++];
	waits->lost += oldest->count;
	return oldest;
}

static bool open_grow(struct breakdown_waits *waits, struct breakdown_open *row)
{
	uint32_t more = row->room ? row->room : 16;
	uint64_t *ns = waits->room + more > BREAKDOWN_ROOM ? NULL :
		       realloc(row->ns, (row->room + more) * sizeof(*ns));

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
	row = open_find(waits, event->pid, event->start_ns);
	if (!row) {
		row = open_place(waits);
		row->start_ns = event->start_ns;
		row->pid = event->pid;
		row->count = 0;
	}
	row->used = ++waits->puts;
	if (row->count == row->room && !open_grow(waits, row))
		waits->lost++;
	else
		row->ns[row->count++] = event->ns;
}

const uint64_t *breakdown_wait_take(struct breakdown_waits *waits, uint32_t pid, uint64_t start_ns,
				    size_t *count)
{
	struct breakdown_open *row = start_ns ? open_find(waits, pid, start_ns) : NULL;

	*count = row ? row->count : 0;
	if (row)
		row->start_ns = 0;
	return row ? row->ns : NULL;
}

void breakdown_waits_free(struct breakdown_waits *waits)
{
	for (uint32_t i = 0; i < waits->nrows; i++)
		free(waits->rows[i].ns);
	free(waits->rows);
	*waits = (struct breakdown_waits){ .rows = NULL };
}
