/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Decode the events of a block of a recording to statements, lock waits and losses. A recording
 * may have any content.
 */
#ifndef DB_RECORDING_DECODE_H
#define DB_RECORDING_DECODE_H

#include "db/recording/parts.h"

/*
 * Decode the next event to @event; its type is RECORDING_TYPES if it is unknown, or for the decoder
 * only. Return 1; 0 at the end of the block; -EBADMSG if the rest of the block is invalid; or
 * -ENOMEM.
 */
int decode_next(struct decode *decode, struct decode_event *event);

#endif
