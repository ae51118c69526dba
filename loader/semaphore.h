/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Semaphores that the kernel does not count (before 4.20): written into the memory of each process
 * that runs the file, and taken back at the end. A process that is forked off inherits them; one
 * that is executed anew has to get them.
 *
 * A note in /run/dbslower says beforehand what is written, so that the next start can take back
 * what a killed one left. Its owner holds a lock on it, which goes with the process.
 */
#ifndef LOADER_SEMAPHORE_H
#define LOADER_SEMAPHORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/process.h"

/* One that was written: 1 was added to the 16 bits at @address. */
struct semaphore_mark {
	uint32_t pid;
	uint64_t start, written;	/* of the process, and when; clock ticks since the boot */
	uint64_t address;
	uint64_t dev, ino;		/* of its program */
};

/* All zero: off, nothing is ever written. */
struct semaphores {
	bool (*is_program)(const char *name);	/* for process_read(); the caller sets it */
	bool on;
	int error;			/* why a process could not be written to, the first; or 0 */
	uint32_t error_pid;
	bool noted;			/* there is a note, open as: */
	int note;
	char path[80];
	struct semaphore_mark *marks;
	size_t nmarks;
};

/*
 * Begins, with a new note. 0, or -errno where that cannot be kept: it works all the same, but
 * nothing can repair what a kill leaves. semaphores_close() ends it.
 */
int semaphores_open(struct semaphores *semaphores);

/*
 * Adds 1 to the semaphores linked to @vaddrs of a process, whose program's lowest address is
 * @lowest, unless it has been done or was inherited. A failure goes to ->error.
 */
void semaphores_write(struct semaphores *semaphores, const struct process *process, uint64_t lowest,
		      const uint64_t *vaddrs, size_t count);

/*
 * Write the semaphores into all processes that run @file. Repeats until none is new: a process may be
 * forked from one that was not written to yet.
 */
void semaphores_write_all(struct semaphores *semaphores, const struct process_file *file,
			  uint64_t lowest, const uint64_t *vaddrs, size_t count);

/* Takes back all that was written, removes the note, and is off. */
void semaphores_close(struct semaphores *semaphores);

/* Takes back what killed processes of this program have written, as their notes have it. */
void semaphores_repair(bool (*is_program)(const char *name));

/* Reads a line of a note. Whether it is one. */
bool semaphores_parse(const char *line, struct semaphore_mark *mark);

#endif
