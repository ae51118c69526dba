/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Statements as spans of OpenTelemetry: one OTLP/JSON ExportTraceServiceRequest a line, as the
 * otlpjsonfile receiver of the collector reads them. Attributes have the names of the semantic
 * conventions for databases; those without a convention begin with "dbslower.".
 */
#ifndef CLI_FORMAT_OTLP_H
#define CLI_FORMAT_OTLP_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/format/fields.h"
#include "cli/output.h"
#include "db/event.h"

#define OTLP_FIELDS	32
#define OTLP_OPERATION	16	/* bytes of an operation, without the NUL */

struct otlp {
	struct output *out;	/* NULL: no spans are written */
	struct output file;
	uint64_t random[2];	/* state of the generator of ids */
	char host[65];		/* "": unknown */
	const struct field *fields[OTLP_FIELDS];	/* that are attributes, in their order */
	unsigned int nfields;
};

/*
 * Open the output of spans: @path "-" is @standard, which is borrowed; NULL is none. A file is
 * appended to, or created with mode 0600. Return 0, or -errno as open_output().
 */
int otlp_open(struct otlp *otlp, const char *path, struct output *standard);

/* Set the name of the host, foreign bytes, to that of a recording; "": unknown. */
void otlp_host(struct otlp *otlp, const char *host);

/* Call output_stoppable() for the file, if there is one. */
void otlp_stoppable(struct otlp *otlp, int stop_fd);

/* Return whether spans are the only content of standard output. */
bool otlp_is_standard(const struct otlp *otlp);

/* Append the span of a statement that has ended. Do nothing if no spans are written. */
void otlp_statement(struct otlp *otlp, const struct statement *statement);

/* Copy the first word of ->span_text in capitals; "" if it is not a short one of letters. */
void otlp_operation(const struct statement *statement, char operation[OTLP_OPERATION + 1]);

/* Append @value, or INT64_MAX if it is larger: OTLP's integers have a sign. */
void otlp_integer(struct output *out, uint64_t value);

/* Flush as output_flush() does. Return 0 if no spans are written. */
int otlp_flush(struct otlp *otlp);

/*
 * Forget the error of the file, which otlp_flush() returned, and what was not written: the next
 * output begins a line.
 */
void otlp_retry(struct otlp *otlp);

/* Close the file, if there is one. Unflushed spans are discarded. */
void otlp_close(struct otlp *otlp);

#endif
