/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Events of recordings of version 1, whose members have fixed places. docs/recording.md describes
 * them; nothing here changes when later versions do.
 */
#ifndef DB_RECORDING_VERSION1_H
#define DB_RECORDING_VERSION1_H

#include "db/recording/parts.h"

/* Decode an event as decode_next() does. Return 1 or -EBADMSG. */
int version1_statement(struct decode *decode, struct decoder *body, struct decode_event *event);
int version1_transaction(struct decode *decode, struct decoder *body, struct decode_event *event);
int version1_wait(struct decode *decode, struct decoder *body, struct decode_event *event);

/* Read what a status has of statements and waits. */
void version1_summaries(struct decode *decode, struct decoder *body, struct decode_event *event);

#endif
