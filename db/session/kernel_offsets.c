// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/session/kernel_offsets.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "host/arch.h"
#include "loader/btf.h"
#include "loader/tracefs.h"

#define STACK_BYTES	16384	/* of a kernel stack; a page if that is larger */
#define REGS		"pt_regs"

/* Rows that are not read from BTF follow those that are, of which those of sockets are last. */
enum {
	ROW_SOCKET = 31,
	ROW_HELPER = 41, ROW_STACK, ROW_ARGUMENT, ROW_CAUSE, ROW_STATE, ROW_NEXT, ROW_PID,
	ROW_WAKING,
};

static const struct offset {
	const char *name;			/* of the constant */
	const char *structure, *member;		/* NULL: none */
	const char *older;			/* former name of the member; or NULL */
	bool needed;				/* without it BTF is unusable */
	bool mask;				/* the value is a bit field's mask in its byte */
} offset_table[KERNEL_OFFSETS] = {
	{ "constant_task_pid", "task_struct", "pid", NULL, true, false },
	/* 2f064a59a11f (5.14) */
	{ "constant_task_state", "task_struct", "__state", "state", true, false },
	{ "constant_task_iowait", "task_struct", "in_iowait", NULL, true, false },
	{ "constant_task_iowait_mask", "task_struct", "in_iowait", NULL, true, true },
	{ "constant_task_frozen", "task_struct", "frozen", NULL, false, false },
	{ "constant_task_frozen_mask", "task_struct", "frozen", NULL, false, true },
	{ "constant_task_flags", "task_struct", "flags", NULL, true, false },
	{ "constant_task_works", "task_struct", "task_works", NULL, true, false },
	{ "constant_task_files", "task_struct", "files", NULL, true, false },
	{ "constant_files_table", "files_struct", "fdt", NULL, true, false },
	{ "constant_table_size", "fdtable", "max_fds", NULL, true, false },
	{ "constant_table_files", "fdtable", "fd", NULL, true, false },
	{ "constant_file_inode", "file", "f_inode", NULL, true, false },
	{ "constant_file_flags", "file", "f_flags", NULL, true, false },
	{ "constant_inode_mode", "inode", "i_mode", NULL, true, false },
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
	{ "constant_task_throttled", "task_struct", "throttled", NULL, false, false },
	{ "constant_task_queue", "task_struct", "se.cfs_rq", NULL, false, false },
	{ "constant_queue_throttled", "cfs_rq", "throttle_count", NULL, false, false },
	{ "constant_sock_path", "unix_sock", "addr", NULL, false, false },
	/* These are known together, or none. The first member of an epitem is its node. */
	[ROW_SOCKET] = { "constant_socket_sock", "socket", "sk", NULL, false, false },
	{ "constant_file_private", "file", "private_data", NULL, false, false },
	{ "constant_socket_type", "socket", "type", NULL, false, false },
	{ "constant_sock_family", "sock", "__sk_common.skc_family", NULL, false, false },
	{ "constant_sock_port", "inet_connection_sock", "icsk_bind_hash", NULL, false, false },
	{ "constant_port_reuse", "inet_bind_bucket", "fastreuse", NULL, false, false },
	{ "constant_epoll_files", "eventpoll", "rbr.rb_root.rb_node", NULL, false, false },
	{ "constant_epoll_file", "epitem", "ffd.file", NULL, false, false },
	{ "constant_node_right", "rb_node", "rb_right", NULL, false, false },
	{ "constant_node_left", "rb_node", "rb_left", NULL, false, false },
	/* Not members: offsets_from_btf() computes them. */
	[ROW_HELPER] = { "constant_task_helper", NULL, NULL, NULL, false, false },
	[ROW_STACK] = { "constant_stack_regs", NULL, NULL, NULL, false, false },
	/* The same on a thread's stack and in the tracepoint's argument. */
	[ROW_ARGUMENT] = { "constant_regs_argument", NULL, NULL, NULL, false, false },
	[ROW_CAUSE] = { "constant_regs_cause", NULL, NULL, NULL, false, false },
	/* Fields of tracepoint records. */
	[ROW_STATE] = { "constant_record_state", "sched_switch", "prev_state", NULL, true, false },
	[ROW_NEXT] = { "constant_record_next", "sched_switch", "next_pid", NULL, true, false },
	[ROW_PID] = { "constant_record_pid", "sched_wakeup", "pid", NULL, true, false },
	[ROW_WAKING] = { "constant_record_pid", "sched_waking", "pid", NULL, true, false },
};

void kernel_offsets_none(struct object_value numbers[KERNEL_OFFSETS])
{
	for (size_t i = 0; i < KERNEL_OFFSETS; i++)
		numbers[i] = (struct object_value){ .name = offset_table[i].name };
}

static int offset_from_btf(const struct btf *btf, const struct offset *row, uint64_t *number)
{
	struct btf_place place;
	int err = btf_member(btf, row->structure, row->member, &place);

	if (err == -ENOENT && row->older)
		err = btf_member(btf, row->structure, row->older, &place);
	*number = err ? 0 : row->mask ? 1u << place.bit : place.offset;
	return row->needed ? err : 0;
}

/* Without one of the offsets of sockets, none is used: 0 is no offset of these. */
static void offsets_of_sockets(const struct btf *btf, struct object_value *numbers)
{
	struct btf_place node;
	bool known = !btf_member(btf, "epitem", "rbn", &node) && !node.offset;

	for (size_t i = ROW_SOCKET; i < ROW_HELPER; i++)
		known &= numbers[i].number != 0;
	if (!known)
		numbers[ROW_SOCKET].number = 0;
}

static int offsets_from_btf(struct features *features, struct object_value *numbers)
{
	uint32_t regs_bytes, page = (uint32_t)getauxval(AT_PAGESZ);
	struct btf btf;
	int err = btf_load(&btf);

	for (size_t i = 0; !err && i < ROW_HELPER; i++)
		err = offset_from_btf(&btf, &offset_table[i], &numbers[i].number);
	if (!err)
		offsets_of_sockets(&btf, numbers);
	err = err ? err : btf_size(&btf, REGS, &regs_bytes);
	btf_close(&btf);
	if (err)
		return err;
	numbers[ROW_HELPER].number = feature_has(features, FEATURE_TASK_REGS);
	numbers[ROW_STACK].number = (page > STACK_BYTES ? page : STACK_BYTES) - regs_bytes;
	return 0;
}

int kernel_offsets_read(struct features *features, struct object_value numbers[KERNEL_OFFSETS],
			int events[KERNEL_EVENTS])
{
	int err;

	kernel_offsets_none(numbers);
	for (size_t i = 0; i < KERNEL_EVENTS; i++)
		events[i] = 0;
	err = feature_has(features, FEATURE_TYPES) ? offsets_from_btf(features, numbers) : -ENOENT;
	if (err)
		kernel_offsets_none(numbers);
	numbers[ROW_ARGUMENT].number = HOST_ARGUMENT_OFFSET;
	numbers[ROW_CAUSE].number = HOST_CAUSE_OFFSET;
	if (!err)
		return 0;
	for (size_t i = ROW_STATE; i < KERNEL_OFFSETS; i++) {
		int id = tracefs_field(offset_table[i].structure, offset_table[i].member,
				       &numbers[i].number);

		if (id < 0)
			return id;
		events[i > ROW_NEXT ? i - ROW_NEXT : 0] = id;
	}
	return 0;
}
