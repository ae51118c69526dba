/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the child that samples servers tells the process that reports their statements. */
#ifndef DB_SAMPLE_MESSAGE_H
#define DB_SAMPLE_MESSAGE_H

#include "db/event.h"

enum sample_kind {
	SAMPLE_SERVER,		/* struct sample_server: it is sampled from now on */
	SAMPLE_STATEMENT,	/* struct sample_statement, and the text */
	SAMPLE_ERROR,		/* struct error, of a file or process */
	SAMPLE_READY,		/* int32_t: 0, or the -errno of the struct error that follows */
	SAMPLE_STATUS,		/* struct sample_status, once a second */
	SAMPLE_DONE,		/* the same, as the end of an answer */
};

/* The numbers of servers are not used again. */
struct sample_server {
	uint32_t number;
	struct server server;
};

struct sample_statement {
	uint32_t server;		/* its number */
	bool running;			/* it has not ended: the duration is that so far */
	bool cut, has_text;
	uint32_t len;
	uint64_t start_ns;		/* CLOCK_MONOTONIC */
	uint64_t wall_ns;		/* the start by CLOCK_REALTIME */
	uint64_t duration_ns, error_ns;	/* the true one is that, plus or minus the second */
	uint64_t query_id;
	struct who who;
};

struct sample_status {
	uint64_t late;			/* samples that came later than the interval */
	uint64_t unsampled;		/* sessions that hid what they did at the last sample */
};

/* What the child is asked for. */
enum sample_request {
	SAMPLE_BEGIN,			/* answered by SAMPLE_READY */
	SAMPLE_RUNNING,			/* the statements that run, then SAMPLE_DONE */
	SAMPLE_FINISH,			/* a last sample, then SAMPLE_DONE */
};

#endif
