/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The functions of the option rows: parsing of an argument, and its completion. */
#ifndef CLI_OPTION_SET_H
#define CLI_OPTION_SET_H

#include "cli/option/option.h"

/* See ->set of struct option_row. */
int option_set_pid(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_engine(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_path(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_minimum(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_string(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_word(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_probe(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_text_arg(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_match(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_verbose(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_time(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_number(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_text(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_size(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_overhead(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_force(struct option_parser *p, const struct option_row *row, const char *value);
int option_set_columns(struct option_parser *p, const struct option_row *row, const char *value);

/*
 * See ->complete of struct option_row. One or more candidates a line; ":files" means files,
 * ":pids NAME|NAME" the PIDs of processes with these names, and ":list" a list with commas.
 */
void option_complete_files(struct output *out);
void option_complete_pids(struct output *out);
void option_complete_columns(struct output *out);
void option_complete_transaction_columns(struct output *out);

#endif
