/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Sessions for processes that have been running a statement, or have had a transaction open, since
 * before the probes were attached, as if the programs had seen that begin.
 */
#ifndef DB_SESSION_SEED_H
#define DB_SESSION_SEED_H

#include "db/discover/target.h"
#include "db/session/sessions.h"

/*
 * Add a session for @process, which runs the file of @target, if it has such a statement or
 * transaction. If the programs have seen its end since, the thread has a session already and none
 * is added. Return whether one was.
 */
bool seed_session(const struct sessions *sessions, const struct runtime *rt,
		  const struct target *target, const struct process *process);

#endif
