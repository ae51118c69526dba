/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The options that several commands accept, one row each. A command has the rows of its own options
 * in its file, and lists all that it accepts. The same of rules.
 */
#ifndef CLI_OPTION_TABLE_H
#define CLI_OPTION_TABLE_H

#include "cli/option/option.h"

extern const struct option_row option_min;
extern const struct option_row option_threshold;
extern const struct option_row option_pid;
extern const struct option_row option_path;
extern const struct option_row option_exe;
extern const struct option_row option_lib;
extern const struct option_row option_duration;
extern const struct option_row option_interval;
extern const struct option_row option_count_intervals;
extern const struct option_row option_start;
extern const struct option_row option_done;
extern const struct option_row option_text_arg;
extern const struct option_row option_engine;
extern const struct option_row option_user;
extern const struct option_row option_db;
extern const struct option_row option_client;
extern const struct option_row option_app;
extern const struct option_row option_backend;
extern const struct option_row option_match;
extern const struct option_row option_container;
extern const struct option_row option_text;
extern const struct option_row option_redact;
extern const struct option_row option_wall;
extern const struct option_row option_why;
extern const struct option_row option_use;
extern const struct option_row option_nested;
extern const struct option_row option_json;
extern const struct option_row option_strict;
extern const struct option_row option_keep_privileges;
extern const struct option_row option_max_overhead;
extern const struct option_row option_sample;
extern const struct option_row option_force;
extern const struct option_row option_verbose;
extern const struct option_row option_help;
extern const struct option_row option_version;

/* Rules of some of them. */
extern const struct option_rule rule_json_columns;
extern const struct option_rule rule_start, rule_done, rule_text_arg, rule_start_engine;
extern const struct option_rule rule_count_intervals;
extern const struct option_rule rule_sample, rule_sample_probes;

#define RULES_OF_PROBES	&rule_start, &rule_done, &rule_text_arg, &rule_start_engine, \
			&rule_sample, &rule_sample_probes

#endif
