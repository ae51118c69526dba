/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The source of a command in the event loop, as the options ask for it. */
#ifndef CLI_TRACING_H
#define CLI_TRACING_H

#include "cli/loop.h"
#include "cli/source.h"

/* Return the selection of statements by the options, which are borrowed. */
struct filter tracing_filter(const struct options *options);

/* Return the selection of servers by the options, which are borrowed. */
struct server_filter tracing_servers(const struct options *options);

/*
 * Fill @config from the options; the command then sets the callbacks of events and what else it
 * needs. All callbacks get @loop.
 */
void tracing_config(struct loop *loop, struct tracer_config *config);

/* Begin. The command has set @config. Return EXIT_OK or an exit status. */
int tracing_start(struct loop *loop, const struct tracer_config *config);

/* For struct loop_ops. */
int tracing_drain(struct loop *loop);
int tracing_sleep(struct loop *loop);
void tracing_running(struct loop *loop);
void tracing_detach(struct loop *loop);
void tracing_summary(struct loop *loop, struct summary *summary);

#endif
