/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * USDT semaphores on kernels that do not count them (before 1cc33161a83d, Linux 4.20): increment
 * them in the memory of each process that runs the file, and decrement them at the end. A forked
 * process inherits them; one that executes the file does not.
 *
 * Each increment is first recorded in a note, a file in /run/dbslower, so that the next start can
 * undo the increments of a killed process. The owner holds a lock on its note until it exits.
 *
 * A value is written only after it is verified, on the descriptor through which it is written, that
 * the process runs the same program, maps the same bytes of its file at the address, and has a
 * plausible value there.
 */
#ifndef LOADER_SEMAPHORE_H
#define LOADER_SEMAPHORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/process.h"

/*
 * A mark: an increment of the 16-bit semaphore at ->address. The other members identify the
 * address space: a process keeps its PID and start when it executes another program.
 */
struct semaphore_mark {
	uint32_t pid;
	uint64_t start, written;	/* process start, increment: clock ticks since boot */
	uint64_t address;
	uint64_t offset;		/* in the mapped file, bytes */
	uint64_t dev, ino;		/* of the process's program */
	uint64_t map_dev, map_ino;	/* the same as in /proc/PID/maps */
};

/* All zero is off: nothing is written. Everything is owned. */
struct semaphores {
	bool (*is_program)(const char *name);	/* for process_read(); the caller sets it */
	bool on;
	int error;			/* -errno of the first failure to write to a process */
	uint32_t error_pid;		/* that process */
	bool noted;			/* there is a note: */
	int note;			/* its descriptor */
	char path[80];			/* its path */
	struct semaphore_mark *marks;
	size_t nmarks;
};

/*
 * Turn on and create a note. Return 0, or -errno without a note: semaphores are still written, but
 * after SIGKILL they cannot be repaired. semaphores_close() ends it.
 */
int semaphores_open(struct semaphores *semaphores);

/*
 * Increment the semaphores at @vaddrs, as linked, of a process unless that was done or inherited.
 * @lowest is the lowest address of its program. A failure is stored in ->error.
 */
void semaphores_write(struct semaphores *semaphores, const struct process *process, uint64_t lowest,
		      const uint64_t *vaddrs, size_t count);

/*
 * Write the semaphores into all processes that run @file. Repeat until there is no new one, or
 * several times: a process may have been forked from one that had no increment yet.
 */
void semaphores_write_all(struct semaphores *semaphores, const struct process_file *file,
			  uint64_t lowest, const uint64_t *vaddrs, size_t count);

/* Undo all increments, remove the note, and turn off. */
void semaphores_close(struct semaphores *semaphores);

/* Undo the increments in notes of killed processes of this program, and remove these notes. */
void semaphores_repair(bool (*is_program)(const char *name));

/* Parse a line of a note. Return whether it is valid. */
bool semaphores_parse(const char *line, struct semaphore_mark *mark);

#endif
