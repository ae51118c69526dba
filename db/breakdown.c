// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/breakdown.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "db/engine.h"
#include "loader/btf.h"

#define STACK_BYTES	16384	/* of a thread in the kernel, or a page if that is larger */

#define REGS	"pt_regs"
#ifdef __x86_64__
#define CALL	"orig_ax"
#else
#define CALL	"syscallno"
#endif

static const struct {
	uint32_t number;
	enum why_part part;
	const char *name;
} why_calls[] = {
#define ROW(name, part)	{ SYS_ ## name, part, #name }
	ROW(pread64, WHY_DISK), ROW(pwrite64, WHY_DISK), ROW(preadv, WHY_DISK),
	ROW(pwritev, WHY_DISK), ROW(preadv2, WHY_DISK), ROW(pwritev2, WHY_DISK),
	ROW(io_uring_enter, WHY_DISK), ROW(io_getevents, WHY_DISK), ROW(io_submit, WHY_DISK),
	ROW(openat, WHY_DISK), ROW(truncate, WHY_DISK), ROW(ftruncate, WHY_DISK), ROW(fallocate, WHY_DISK),
	ROW(unlinkat, WHY_DISK), ROW(mkdirat, WHY_DISK), ROW(renameat, WHY_DISK), ROW(fadvise64, WHY_DISK),
	ROW(fsync, WHY_FSYNC), ROW(fdatasync, WHY_FSYNC), ROW(sync_file_range, WHY_FSYNC),
	ROW(msync, WHY_FSYNC), ROW(syncfs, WHY_FSYNC),
	ROW(futex, WHY_FUTEX), ROW(semtimedop, WHY_FUTEX), ROW(semop, WHY_FUTEX),
	/* Of a file they are the disk's, which the thread's state tells. */
	ROW(read, WHY_NETWORK), ROW(write, WHY_NETWORK), ROW(readv, WHY_NETWORK),
	ROW(writev, WHY_NETWORK),
	ROW(recvfrom, WHY_NETWORK), ROW(sendto, WHY_NETWORK), ROW(recvmsg, WHY_NETWORK),
	ROW(sendmsg, WHY_NETWORK), ROW(connect, WHY_NETWORK), ROW(accept4, WHY_NETWORK),
	ROW(ppoll, WHY_NETWORK), ROW(epoll_pwait, WHY_NETWORK),
	ROW(sendfile, WHY_NETWORK),
	ROW(nanosleep, WHY_SLEEP), ROW(clock_nanosleep, WHY_SLEEP), ROW(pselect6, WHY_SLEEP),
	ROW(wait4, WHY_OTHER), ROW(mmap, WHY_OTHER), ROW(munmap, WHY_OTHER),
	ROW(madvise, WHY_OTHER), ROW(brk, WHY_OTHER), ROW(clone, WHY_OTHER),
#ifdef __x86_64__
	ROW(select, WHY_SLEEP), ROW(poll, WHY_NETWORK), ROW(epoll_wait, WHY_NETWORK),
	ROW(open, WHY_DISK), ROW(unlink, WHY_DISK), ROW(rmdir, WHY_DISK), ROW(mkdir, WHY_DISK), ROW(rename, WHY_DISK),
#endif
#undef ROW
};

#define CALLS	(sizeof(why_calls) / sizeof(why_calls[0]))

enum why_part why_call_part(uint32_t call)
{
	for (size_t i = 0; i < CALLS; i++)
		if (why_calls[i].number == call)
			return why_calls[i].part;
	return WHY_OTHER;
}

const char *why_call_name(uint32_t call)
{
	for (size_t i = 0; i < CALLS; i++)
		if (why_calls[i].number == call)
			return why_calls[i].name;
	return NULL;
}

const char *why_part_name(enum why_part part)
{
	static const char *const names[WHY_PARTS] = {
		[WHY_CPU] = "cpu", [WHY_RUNQUEUE] = "runqueue", [WHY_DISK] = "disk",
		[WHY_FSYNC] = "fsync", [WHY_LOCK] = "lock", [WHY_LWLOCK] = "lwlock",
		[WHY_FUTEX] = "futex", [WHY_NETWORK] = "network", [WHY_SLEEP] = "sleep",
		[WHY_IPC] = "ipc", [WHY_OTHER] = "other",
	};

	return names[part];
}

const char *why_phase_name(enum phase phase)
{
	static const char *const names[PHASES] = {
		[PHASE_PARSE] = "parse", [PHASE_REWRITE] = "rewrite", [PHASE_PLAN] = "plan",
		[PHASE_EXECUTE] = "execute",
	};

	return names[phase];
}

int why_by_name(const char *name, enum why_part *part, uint32_t *call)
{
	*part = WHY_PARTS;
	*call = strcmp(name, "page_fault") ? WHY_NONE : WHY_NO_CALL;
	for (int i = 0; i < WHY_PARTS; i++)
		if (!strcmp(name, why_part_name((enum why_part)i)))
			*part = (enum why_part)i;
	for (size_t i = 0; i < CALLS; i++)
		if (!strcmp(name, why_calls[i].name))
			*call = why_calls[i].number;
	return *part == WHY_PARTS && *call == WHY_NONE ? -ENOENT : 0;
}

const char *why_use_name(enum use use)
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

static const struct why_number {
	const char *name;
	const char *structure, *member, *older;	/* NULL: none */
	bool needed, mask;			/* of a bit field, its bit */
} why_table[WHY_NUMBERS] = {
	{ "constant_task_pid", "task_struct", "pid", NULL, true, false },
	/* 2f064a59a11f (5.14) */
	{ "constant_task_state", "task_struct", "__state", "state", true, false },
	{ "constant_task_iowait", "task_struct", "in_iowait", NULL, true, false },
	{ "constant_task_iowait_mask", "task_struct", "in_iowait", NULL, true, true },
	{ "constant_task_stack", "task_struct", "stack", NULL, true, false },
	{ "constant_regs_call", REGS, CALL, NULL, true, false },
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
	/* What is no member: why_types() fills them. */
	[ROW_HELPER] = { "constant_task_helper", NULL, NULL, NULL, false, false },
	[ROW_STACK] = { "constant_stack_regs", NULL, NULL, NULL, false, false },
	/* Of records of the scheduler's events. */
	[ROW_STATE] = { "constant_record_state", "sched_switch", "prev_state", NULL, true, false },
	[ROW_NEXT] = { "constant_record_next", "sched_switch", "next_pid", NULL, true, false },
	[ROW_PID] = { "constant_record_pid", "sched_wakeup", "pid", NULL, true, false },
};

void why_no_numbers(struct object_value numbers[WHY_NUMBERS])
{
	for (size_t i = 0; i < WHY_NUMBERS; i++)
		numbers[i] = (struct object_value){ .name = why_table[i].name };
}

static int why_number(const struct btf *btf, const struct why_number *row, uint64_t *number)
{
	struct btf_place place;
	int err = btf_member(btf, row->structure, row->member, &place);

	if (err == -ENOENT && row->older)
		err = btf_member(btf, row->structure, row->older, &place);
	*number = err ? 0 : row->mask ? 1u << place.bit : place.offset;
	return row->needed ? err : 0;
}

static int why_types(struct features *features, struct object_value *numbers)
{
	uint32_t regs_bytes, page = (uint32_t)sysconf(_SC_PAGESIZE);
	struct btf btf;
	int err = btf_load(&btf);

	for (size_t i = 0; !err && i < ROW_HELPER; i++)
		err = why_number(&btf, &why_table[i], &numbers[i].number);
	err = err ? err : btf_size(&btf, REGS, &regs_bytes);
	btf_close(&btf);
	if (err)
		return err;
	numbers[ROW_HELPER].number = feature_has(features, FEATURE_TASK_REGS);
	numbers[ROW_STACK].number = (page > STACK_BYTES ? page : STACK_BYTES) - regs_bytes;
	return 0;
}

int why_numbers(struct features *features, struct object_value numbers[WHY_NUMBERS], int events[2])
{
	why_no_numbers(numbers);
	events[0] = events[1] = 0;
	if (!why_types(features, numbers))
		return 0;
	why_no_numbers(numbers);
	for (size_t i = ROW_STATE; i < WHY_NUMBERS; i++) {
		int id = tracefs_field(why_table[i].structure, why_table[i].member,
				       &numbers[i].number);

		if (id < 0)
			return id;
		events[i == ROW_PID] = id;
	}
	return 0;
}

void why_use_add(__u64 *sum, __u64 value, enum use use)
{
	if (use != USE_PEAK_GROWTH && use != USE_SORT_BYTES)
		*sum += value;
	else if (value > *sum)
		*sum = value;
}

/* Adds what a record has in other places to ->use. */
static void why_complete(struct event_why *why, uint32_t has)
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
			why_use_add(use + i, why->workers.use[i], (enum use)(USE_SORTS + i));
}

void why_put(struct why_pending *pending, const struct event_why *event, uint32_t has)
{
	struct event_why *row = pending->rows ? &pending->rows[pending->next++ % WHY_PENDING] : NULL;

	if (!row)
		return;
	*row = *event;
	if (row->used)
		why_complete(row, has);
}

/* Takes @over ns out of what was waited in: for the client, or whatever it was. */
static void why_forget(struct event_why *why, uint64_t over, bool client)
{
	int kept = 0;

	for (int i = 0; i < WHY_WAITS && why->waits[i].count; i++) {
		struct why_wait wait = why->waits[i];
		uint64_t less = over < wait.ns ? over : wait.ns;

		if (!client || why_call_part(wait.call) == WHY_NETWORK) {
			wait.ns -= less;
			over -= less;
		}
		if (wait.ns)
			why->waits[kept++] = wait;
	}
	for (; kept < WHY_WAITS; kept++)
		why->waits[kept].count = 0;
}

/*
 * The parts end where the statement does, but for one whose end was a message before: what the
 * thread did since, wait for the next one above all, is not its own.
 */
static void why_fit(struct event_why *why, uint64_t duration_ns)
{
	static const uint8_t order[] = { WHY_NETWORK, WHY_CPU, WHY_RUNQUEUE, WHY_DISK, WHY_FSYNC,
					 WHY_LOCK, WHY_LWLOCK, WHY_FUTEX, WHY_SLEEP, WHY_IPC,
					 WHY_OTHER };
	uint64_t sum = 0;

	for (int i = 0; i < WHY_PARTS; i++)
		sum += why->ns[i];
	for (size_t i = 0; sum > duration_ns && i < sizeof(order); i++) {
		__u64 *ns = &why->ns[order[i]];
		uint64_t over = sum - duration_ns;

		over = over < *ns ? over : *ns;
		*ns -= over;
		sum -= over;
		if (order[i] != WHY_CPU && order[i] != WHY_RUNQUEUE)
			why_forget(why, over, order[i] == WHY_NETWORK);
	}
	if (sum < duration_ns)
		why->ns[WHY_OTHER] += duration_ns - sum;
}

const struct event_why *why_take(struct why_pending *pending, uint32_t tid, uint64_t start_ns,
				 uint64_t duration_ns)
{
	for (uint32_t i = 0; pending->rows && i < WHY_PENDING; i++) {
		/* The newest first: nearly always it is that. */
		struct event_why *why = &pending->rows[(pending->next - 1 - i) % WHY_PENDING];

		if (why->tid != tid || why->start_ns != start_ns)
			continue;
		why_fit(why, duration_ns);
		return why;
	}
	return NULL;
}

static struct why_open *open_find(struct why_waits *waits, uint32_t pid, uint64_t start_ns)
{
	for (struct why_open *row = waits->rows; row < waits->rows + waits->nrows; row++)
		if (row->start_ns == start_ns && row->pid == pid)
			return row;
	return NULL;
}

/* A free row, or the one that was idle longest. */
static struct why_open *open_place(struct why_waits *waits)
{
	struct why_open *oldest = waits->rows;

	for (struct why_open *row = waits->rows; row < waits->rows + waits->nrows; row++) {
		if (!row->start_ns)
			return row;
		oldest = row->used < oldest->used ? row : oldest;
	}
	if (waits->nrows < WHY_OPEN)
		return &waits->rows[waits->nrows++];
	waits->lost += oldest->count;
	return oldest;
}

static bool open_grow(struct why_waits *waits, struct why_open *row)
{
	uint32_t more = row->room ? row->room : 16;
	uint64_t *ns = waits->room + more > WHY_ROOM ? NULL :
		       realloc(row->ns, (row->room + more) * sizeof(*ns));

	if (!ns)
		return false;
	row->ns = ns;
	row->room += more;
	waits->room += more;
	return true;
}

void why_wait_put(struct why_waits *waits, const struct event_wait *event)
{
	struct why_open *row;

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

const uint64_t *why_wait_take(struct why_waits *waits, uint32_t pid, uint64_t start_ns,
			      size_t *count)
{
	struct why_open *row = start_ns ? open_find(waits, pid, start_ns) : NULL;

	*count = row ? row->count : 0;
	if (row)
		row->start_ns = 0;
	return row ? row->ns : NULL;
}

void why_waits_free(struct why_waits *waits)
{
	for (uint32_t i = 0; i < waits->nrows; i++)
		free(waits->rows[i].ns);
	free(waits->rows);
	*waits = (struct why_waits){ .rows = NULL };
}
