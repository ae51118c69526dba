// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/format/escape.h"
#include "cli/format/json.h"
#include "cli/message.h"

#define INDENT	"            "

static const char *const doctor_words[] = {
	[DOCTOR_DETAIL] = "ok", [DOCTOR_OK] = "ok", [DOCTOR_NOTE] = "note",
	[DOCTOR_OBSTACLE] = "obstacle",
};

/* Best effort: without memory the finding is missing from the output, but not from the count. */
static void doctor_keep(struct doctor *doctor, enum doctor_state state, const char *subject,
			const char *text, const char *remedy)
{
	struct doctor_finding *more = realloc(doctor->findings,
					      (doctor->nfindings + 1) * sizeof(*more));

	if (!more)
		return;
	doctor->findings = more;
	more[doctor->nfindings++] = (struct doctor_finding){
		.state = state, .subject = strdup(subject), .text = strdup(text),
		.remedy = remedy ? strdup(remedy) : NULL,
	};
}

void doctor_report(struct doctor *doctor, enum doctor_state state, const char *subject,
		   const char *remedy, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	doctor->obstacles += state == DOCTOR_OBSTACLE;
	if (doctor->options.json) {
		if (state > DOCTOR_OK)
			doctor_keep(doctor, state, subject, text, remedy);
		return;
	}
	if (state == DOCTOR_DETAIL && !doctor->options.verbose)
		return;
	output_printf(&doctor->out, "  %-8s  ", doctor_words[state]);
	escape_terminal(&doctor->out, subject, strlen(subject), false);
	output_string(&doctor->out, ": ");
	escape_terminal(&doctor->out, text, strlen(text), false);
	output_char(&doctor->out, '\n');
	if (remedy && *remedy) {
		output_string(&doctor->out, INDENT);
		escape_terminal(&doctor->out, remedy, strlen(remedy), false);
		output_char(&doctor->out, '\n');
	}
}

void doctor_error(struct doctor *doctor, const char *subject, const struct error *error,
		  const char *note)
{
	struct output *cause = malloc(sizeof(*cause)), *remedy = malloc(sizeof(*remedy));

	if (!cause || !remedy) {
		doctor_report(doctor, DOCTOR_OBSTACLE, subject, NULL, "out of memory");
		goto cleanup;
	}
	/* The texts stay in the buffers. */
	output_init(cause, -1);
	output_init(remedy, -1);
	message_cause(cause, error);
	if (note)
		output_string(remedy, note);
	else
		message_remedy(remedy, "", error);
	output_char(cause, '\0');
	output_char(remedy, '\0');
	doctor_report(doctor, note ? DOCTOR_NOTE : DOCTOR_OBSTACLE, subject,
		      *remedy->buf ? remedy->buf : NULL, "%s", cause->buf);
	if (error->log && !doctor->options.json)
		output_string(&doctor->out, error->log);
cleanup:
	free(cause);
	free(remedy);
}

void doctor_heading(struct doctor *doctor, const char *text)
{
	if (!doctor->options.json)
		output_printf(&doctor->out, "%s\n", text);
}

static void json_findings(struct doctor *doctor, enum doctor_state state, const char *key)
{
	struct output *out = &doctor->out;
	const char *before = "{\"about\":\"";

	output_string(out, key);
	for (size_t i = 0; i < doctor->nfindings; i++) {
		const struct doctor_finding *finding = &doctor->findings[i];

		if (finding->state != state)
			continue;
		json_string(out, before, finding->subject ? finding->subject : "");
		json_string(out, ",\"text\":\"", finding->text);
		json_string(out, ",\"remedy\":\"", finding->remedy);
		output_char(out, '}');
		before = ",{\"about\":\"";
	}
	output_char(out, ']');
}

void doctor_finish(struct doctor *doctor)
{
	struct output *out = &doctor->out;

	if (doctor->options.json) {
		json_findings(doctor, DOCTOR_NOTE, ",\"notes\":[");
		json_findings(doctor, DOCTOR_OBSTACLE, ",\"obstacles\":[");
		output_string(out, "}\n");
	} else if (doctor->obstacles) {
		output_printf(out, "%u obstacle%s\n", doctor->obstacles,
			      doctor->obstacles > 1 ? "s" : "");
	} else {
		output_string(out, "No obstacles found.\n");
	}
}

void doctor_clear(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->nfindings; i++) {
		free(doctor->findings[i].subject);
		free(doctor->findings[i].text);
		free(doctor->findings[i].remedy);
	}
	free(doctor->findings);
	doctor->findings = NULL;
	doctor->nfindings = 0;
}
