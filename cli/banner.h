/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The output of a tracing command before its data: the first line to standard output; servers,
 * features and the sandbox to standard error.
 */
#ifndef CLI_BANNER_H
#define CLI_BANNER_H

#include "cli/loop.h"
#include "db/tracer.h"
#include "loader/feature.h"
#include "loader/sandbox.h"

/* Callbacks of struct tracer_config and struct probe_trace_config. @arg is the loop. */
void banner_server(void *arg, const struct server_info *server);
void banner_error(void *arg, const struct error *error);
void banner_site(void *arg, const struct target_site *site);

/* Print one line with the features that the kernel was asked for. */
void banner_features(struct loop *loop, const struct features *features);

/* With -v, print which privileges remain. */
void banner_sandbox(struct loop *loop, const struct sandbox *sandbox);

/*
 * Call ->ops->begin if files of servers are traced, of which there are @targets; else report that
 * none was found.
 */
void banner_start(struct loop *loop, const struct features *features, size_t targets);

/* Add "Tracing database queries for pids 25776 slower than 1 ms..." to ->out. */
void banner_headline(struct loop *loop);

#endif
