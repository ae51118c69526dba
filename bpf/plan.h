/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef BPF_PLAN_H
#define BPF_PLAN_H

/*
 * How MySQL and MariaDB executed a statement: name of the bit, and in the output, which is that of
 * MariaDB's log_slow_filter where it has one.
 */
#define PLAN_TABLE(BIT)							\
	BIT(NO_GOOD_INDEX, "no_good_index")				\
	BIT(NO_INDEX, "no_index")					\
	BIT(FILESORT, "filesort")					\
	BIT(FILESORT_DISK, "filesort_on_disk")				\
	BIT(PRIORITY_QUEUE, "filesort_priority_queue")			\
	BIT(FULL_JOIN, "full_join")					\
	BIT(FULL_SCAN, "full_scan")					\
	BIT(TMP_TABLE, "tmp_table")					\
	BIT(TMP_DISK, "tmp_table_on_disk")

enum plan {
#define PLAN_NUMBER(bit, name)	PLAN_ ## bit,
	PLAN_TABLE(PLAN_NUMBER)
#undef PLAN_NUMBER
	PLAN_BITS
};

#define PLAN_INDEX	(1u << PLAN_NO_GOOD_INDEX | 1u << PLAN_NO_INDEX)

#endif
