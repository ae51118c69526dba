/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Report the steps of --max-overhead. */
#ifndef CLI_OVERHEAD_H
#define CLI_OVERHEAD_H

#include "db/tracer.h"

/* For tracer_config.limited; @arg is the loop. */
void overhead_event(void *arg, const struct limit_event *event);

#endif
