/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Statements as spans of OpenTelemetry: one OTLP/JSON ExportTraceServiceRequest a line, as the
 * collector's otlpjsonfile receiver reads them.
 */
#ifndef CLI_OTLP_H
#define CLI_OTLP_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/output.h"
#include "db/statement.h"

struct otlp {
	struct output *out;	/* NULL: spans are not wanted */
	struct output file;
	uint64_t random[2];	/* states of a generator */
	char host[65];		/* "": it has no name */
};

/*
 * Begins: "-" is @standard; any other path is opened, to append to what is there, else made for its
 * owner alone. NULL: no spans. 0, or -errno: it cannot be opened. @standard is borrowed.
 */
int otlp_open(struct otlp *otlp, const char *path, struct output *standard);

/* output_stoppable() for the file, if there is one. */
void otlp_stoppable(struct otlp *otlp, int stop_fd);

/* Whether the standard output is spans' alone. */
bool otlp_is_standard(const struct otlp *otlp);

/* Adds the span of a statement that has ended. Does nothing where spans are not wanted. */
void otlp_statement(struct otlp *otlp, const struct statement *statement);

/* As output_flush(); 0 where spans are not wanted. */
int otlp_flush(struct otlp *otlp);

/* Closes the file, if there is one; what was not flushed is lost. */
void otlp_close(struct otlp *otlp);

#endif
