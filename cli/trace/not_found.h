/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The error that no probe matches, with the prefix of one that does. */
#ifndef CLI_TRACE_NOT_FOUND_H
#define CLI_TRACE_NOT_FOUND_H

#include "cli/option/option.h"
#include "cli/output.h"
#include "cli/trace/parse.h"
#include "host/file.h"
#include "probe/trace.h"

/*
 * Report that the files in @list have no probe that @spec matches. If there is one of the other
 * kind, USDT probe or function, suggest it; it is added to @probes, which must not be attached.
 */
void trace_not_found(struct output *err, struct probe_trace *probes, const struct trace_spec *spec,
		     const struct file_list *list, const struct options *options);

#endif
