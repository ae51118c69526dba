// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command doctor: what stands in the way of tracing, and what to do about it. */
#include <stdarg.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/doctor.h"
#include "cli/escape.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/option_set.h"
#include "cli/option_table.h"
#include "cli/site_print.h"
#include "cli/start.h"
#include "cli/version.h"
#include "db/selftest.h"

static const char *const doctor_words[] = {
	[DOCTOR_OK] = "ok", [DOCTOR_NOTE] = "note", [DOCTOR_OBSTACLE] = "obstacle",
};

static void doctor_keep(struct doctor *doctor, enum doctor_state state, const char *about,
			const char *text, const char *remedy)
{
	struct doctor_finding *more = realloc(doctor->findings,
					      (doctor->nfindings + 1) * sizeof(*more));

	if (!more)
		return;
	doctor->findings = more;
	more[doctor->nfindings++] = (struct doctor_finding){
		.state = state, .about = strdup(about), .text = strdup(text),
		.remedy = remedy ? strdup(remedy) : NULL,
	};
}

void doctor_say(struct doctor *doctor, enum doctor_state state, const char *about,
		const char *remedy, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	doctor->obstacles += state == DOCTOR_OBSTACLE;
	if (doctor->options.json) {
		if (state != DOCTOR_OK)
			doctor_keep(doctor, state, about, text, remedy);
		return;
	}
	output_printf(&doctor->out, "  %-8s  ", doctor_words[state]);
	escape_terminal(&doctor->out, about, strlen(about), false);
	output_string(&doctor->out, ": ");
	escape_terminal(&doctor->out, text, strlen(text), false);
	output_char(&doctor->out, '\n');
	if (remedy && *remedy) {
		output_string(&doctor->out, "            ");
		escape_terminal(&doctor->out, remedy, strlen(remedy), false);
		output_char(&doctor->out, '\n');
	}
}

void doctor_error(struct doctor *doctor, const char *about, const struct error *error)
{
	static const char name[] = "dbslower: ";
	struct output *said = malloc(sizeof(*said));
	struct error copy = *error;
	char *text, *remedy;

	if (!said) {
		doctor_say(doctor, DOCTOR_OBSTACLE, about, NULL, "out of memory");
		return;
	}
	/* Nothing is written: the message stays in the buffer. The log follows by itself. */
	output_init(said, -1);
	copy.log = error->log && *error->log ? "\n" : NULL;
	message_error(said, &copy);
	said->buf[said->len < OUTPUT_SIZE ? said->len : OUTPUT_SIZE - 1] = '\0';
	text = said->buf + (strncmp(said->buf, name, strlen(name)) ? 0 : strlen(name));
	remedy = strchr(text, '\n');
	if (remedy)
		*remedy++ = '\0';
	while (remedy && (*remedy == ' ' || *remedy == '\n'))
		remedy++;
	if (remedy)
		remedy[strcspn(remedy, "\n")] = '\0';
	doctor_say(doctor, DOCTOR_OBSTACLE, about, remedy, "%s", text);
	if (error->log && !doctor->options.json)
		output_string(&doctor->out, error->log);
	free(said);
}

void doctor_heading(struct doctor *doctor, const char *text)
{
	if (!doctor->options.json)
		output_printf(&doctor->out, "%s\n", text);
}

static void self_test_step(void *arg, const struct selftest_step *step)
{
	struct doctor *doctor = arg;
	struct output *out = &doctor->out;
	char about[64];

	snprintf(about, sizeof(about), "%s, %s", step->method, step->what);
	if (doctor->options.json) {
		json_string(out, doctor->servers++ ? ",{\"way\":\"" : "{\"way\":\"", step->method);
		json_string(out, ",\"step\":\"", step->what);
		output_string(out, step->ok ? ",\"ok\":true,\"ms\":" : ",\"ok\":false,\"ms\":");
		output_fixed(out, step->ns, 6);
		json_string(out, ",\"found\":\"", step->found);
		output_char(out, '}');
	}
	if (step->error)
		doctor_error(doctor, about, step->error);
	else
		doctor_say(doctor, step->ok ? DOCTOR_OK : DOCTOR_OBSTACLE, about,
			   step->ok ? NULL : "Please report this with the output of dbslower "
					     "doctor --json and of uname -a.",
			   "%s, %u.%03u ms", step->found, (unsigned int)(step->ns / 1000000),
			   (unsigned int)(step->ns / 1000 % 1000));
	output_flush(out);
}

void doctor_self_test(struct doctor *doctor)
{
	doctor_heading(doctor, "Self-test");
	doctor->servers = 0;
	if (doctor->options.json)
		output_string(&doctor->out, ",\"self_test\":[");
	selftest_run(self_test_step, doctor);
	if (doctor->options.json)
		output_char(&doctor->out, ']');
}

static void doctor_json_findings(struct doctor *doctor, enum doctor_state state, const char *key)
{
	struct output *out = &doctor->out;
	const char *before = "{\"about\":\"";

	output_string(out, key);
	for (size_t i = 0; i < doctor->nfindings; i++) {
		const struct doctor_finding *finding = &doctor->findings[i];

		if (finding->state != state)
			continue;
		json_string(out, before, finding->about ? finding->about : "");
		json_string(out, ",\"text\":\"", finding->text);
		json_string(out, ",\"remedy\":\"", finding->remedy);
		output_char(out, '}');
		before = ",{\"about\":\"";
	}
	output_char(out, ']');
}

static void doctor_all(struct doctor *doctor)
{
	const struct options *options = &doctor->options;
	bool files = options->path_count || options->word_count;

	doctor->method = ATTACH_NONE;
	if (options->json)
		json_string(&doctor->out, "{\"type\":\"doctor\",\"version\":\"", version_text);
	if (!files && !options->self_test) {
		doctor_host(doctor);
		doctor_servers(doctor);
	}
	if (files)
		doctor_files(doctor);
	if (options->self_test)
		doctor_self_test(doctor);
	if (options->json) {
		doctor_json_findings(doctor, DOCTOR_NOTE, ",\"notes\":[");
		doctor_json_findings(doctor, DOCTOR_OBSTACLE, ",\"obstacles\":[");
		output_string(&doctor->out, "}\n");
	} else if (doctor->obstacles) {
		output_printf(&doctor->out, "%u obstacle%s\n", doctor->obstacles,
			      doctor->obstacles > 1 ? "s" : "");
	} else {
		output_string(&doctor->out, "Nothing stands in the way.\n");
	}
}

static void doctor_free(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->nfindings; i++) {
		free(doctor->findings[i].about);
		free(doctor->findings[i].text);
		free(doctor->findings[i].remedy);
	}
	free(doctor->findings);
	free(doctor->last);
	free(doctor);
}

static int cmd_doctor(const struct command *command, int argc, char *argv[])
{
	struct doctor *doctor = calloc(1, sizeof(*doctor));
	int ret;

	if (!doctor)
		return message_no_memory();
	ret = start_command(command, argc, argv, &doctor->options, &doctor->out, &doctor->err);
	if (ret != START_GO)
		goto cleanup;
	ret = EXIT_FAILED;
	doctor->last = calloc(1, SITE_TEXT);
	if (!doctor->last) {
		ret = message_no_memory();
		goto cleanup;
	}
	doctor_all(doctor);
	ret = output_flush(&doctor->out);
	ret = ret ? message_output(&doctor->err, ret) :
	      doctor->obstacles ? EXIT_FAILED : EXIT_OK;
cleanup:
	doctor_free(doctor);
	return ret;
}

static const struct option_row option_self_test = {
	.name = "self-test",
	.help = "attach to itself and prove that tracing works",
	.member = offsetof(struct options, self_test),
};

static const struct option_row option_json_object = {
	.name = "json",
	.help = "print a JSON object with all that is known",
	.member = offsetof(struct options, json),
};

static const struct option_row *const doctor_options[] = {
	&option_self_test, &option_json_object, &option_help, &option_version, NULL
};

const struct command command_doctor = {
	.name = "doctor",
	.summary = "what stands in the way of tracing here, and what to do about it",
	.invocation = "dbslower doctor",
	.usage = "[--self-test] [FILE...] [OPTION...]",
	.about =
	"Says what this kernel can do and what we may do; which servers run, and where\n"
	"probes would go on each; and what to do about each obstacle. Nothing is\n"
	"attached. Of files it says the same, which takes no privileges but to read them.\n"
	"With --self-test it attaches to itself and proves that tracing works, in less\n"
	"than a second and without a database.\n",
	.examples =
	"  dbslower doctor                       this host and the servers that run on it\n"
	"  dbslower doctor /usr/sbin/mariadbd    what can be seen of this server\n"
	"  dbslower doctor --self-test           whether tracing works at all\n"
	"  dbslower doctor --json                all of it, for a support ticket\n"
	"\n"
	"Exit status: 0 nothing stands in the way; 1 something does; 2 usage.\n",
	.words = WORDS_FREE,
	.options = doctor_options,
	.run = cmd_doctor,
};
