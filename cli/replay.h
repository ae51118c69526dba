/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A recording as the source of what a command prints. */
#ifndef CLI_REPLAY_H
#define CLI_REPLAY_H

#include "cli/loop.h"
#include "cli/source.h"
#include "db/recording/replay.h"

extern const struct source source_recording;

/*
 * Open the file @path, without reading it. Return EXIT_OK with *@replay, which the caller closes;
 * or EXIT_FAILED after a message on @err.
 */
int replay_open_path(struct replay **replay, const char *path, struct output *err);

/*
 * Drop privileges but for @needs (SANDBOX_*), as a recording may come from anywhere, and then begin
 * to read the one at @path, until @loop is to end; NULL: a signal ends the process. Return EXIT_OK,
 * or EXIT_FAILED after a message on @err.
 */
int replay_read_path(struct replay *replay, const char *path, unsigned int needs,
		     struct loop *loop, struct output *err);

/*
 * Set *@since_ns and *@until_ns, CLOCK_MONOTONIC of the recording, by the options. Return EXIT_OK,
 * after a message if they are outside of it; or EXIT_USAGE after a message.
 */
int replay_times(const struct replay *replay, uint64_t *since_ns, uint64_t *until_ns,
		 struct output *err);

/* Report what is missing in the recording at @path. */
void replay_report(const struct replay *replay, const char *path, struct output *err);

/* The options of those times. */
extern const struct option_row option_since, option_until;

#endif
