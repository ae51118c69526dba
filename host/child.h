/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A child process that does one thing, at the other end of a socket. */
#ifndef HOST_CHILD_H
#define HOST_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Start a child that calls @run with its end of the socket, and ends when that returns: in a
 * session of its own, with all signals blocked, no other descriptor, and @name: not that of the
 * program, by which both would be killed at once. Return its PID, with the other end in *@socket,
 * which the caller owns; 0: none could be started.
 */
pid_t child_start(const char *name, void (*run)(void *arg, int socket), void *arg, int *socket);

/* Write all @size bytes, or read as many. Return success. */
bool child_write(int socket, const void *data, size_t size);
bool child_read(int socket, void *data, size_t size);

#endif
