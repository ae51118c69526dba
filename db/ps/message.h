/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the child that reads sessions tells the process that lists them. */
#ifndef DB_PS_MESSAGE_H
#define DB_PS_MESSAGE_H

#include <stdint.h>

enum ps_kind {
	PS_SERVER,	/* struct server: that of the sessions that follow */
	PS_SESSION,	/* struct ps_session, ->len bytes of its text, and ->plan_len of its plan */
	PS_ERROR,	/* struct error, of a file or process */
	PS_END,		/* int32_t: 0, or the -errno of the struct error that follows */
};

/* A request: list the sessions of processes with a PID above this one. */
struct ps_request {
	uint32_t from;
	uint64_t session;	/* only that of this ID, and its plan; 0: all */
};

#endif
