// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command doctor: what prevents tracing on this host, and the remedies. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/host.h"
#include "cli/doctor/server.h"
#include "cli/format/json.h"
#include "cli/message.h"
#include "cli/option/set.h"
#include "cli/option/table.h"
#include "cli/start.h"
#include "cli/version.h"
#include "db/selftest/selftest.h"
#include "host/clock.h"

static bool own_self_test;		/* of --self-test */

struct cmd_doctor {
	struct doctor doctor;
	unsigned int steps;		/* of the self-test, that were reported */
};

static void step_json(struct cmd_doctor *cmd, const struct selftest_step *step)
{
	struct output *out = &cmd->doctor.out;

	json_string(out, cmd->steps++ ? ",{\"way\":\"" : "{\"way\":\"", step->method);
	json_string(out, ",\"step\":\"", step->what);
	output_string(out, step->ok ? ",\"ok\":true" : ",\"ok\":false");
	json_ms(out, ",\"duration_ms\":", step->ns);
	json_string(out, ",\"found\":\"", step->found);
	json_string(out, ",\"instead\":\"", step->instead);
	output_char(out, '}');
}

static void self_test_step(void *arg, const struct selftest_step *step)
{
	struct cmd_doctor *cmd = arg;
	struct doctor *doctor = &cmd->doctor;
	char subject[64], note[96];

	snprintf(subject, sizeof(subject), "%s, %s", step->method, step->what);
	if (doctor->options.json)
		step_json(cmd, step);
	if (step->instead)
		snprintf(note, sizeof(note), "tracing on this host uses %s, and does not require "
			 "this", step->instead);
	if (step->error)
		doctor_error(doctor, subject, step->error, step->instead ? note : NULL);
	else
		doctor_report(doctor, step->ok ? DOCTOR_OK : DOCTOR_OBSTACLE, subject,
			      step->ok ? NULL : "report this with the output of dbslower doctor "
						"--json and of uname -a",
			      "%s, %u.%03u ms", step->found, (unsigned int)(step->ns / 1000000),
			      (unsigned int)(step->ns / 1000 % 1000));
	output_flush(&doctor->out);
}

static void self_test(struct cmd_doctor *cmd)
{
	struct doctor *doctor = &cmd->doctor;

	doctor_heading(doctor, "Self-test");
	if (doctor->options.json)
		output_string(&doctor->out, ",\"self_test\":[");
	selftest_run(self_test_step, cmd);
	if (doctor->options.json)
		output_char(&doctor->out, ']');
}

static void doctor_run(struct cmd_doctor *cmd)
{
	struct doctor *doctor = &cmd->doctor;
	const struct options *options = &doctor->options;
	bool files = options->path_count || options->word_count;

	doctor->method = ATTACH_NONE;
	if (options->json) {
		json_head(&doctor->out, "{\"type\":\"doctor\",\"time\":\"",
			  clock_ns(CLOCK_REALTIME), NULL);
		json_string(&doctor->out, ",\"version\":\"", version_text);
	}
	if (!files && !own_self_test) {
		doctor_host(doctor);
		doctor_servers(doctor);
	}
	if (files)
		doctor_files(doctor);
	if (own_self_test)
		self_test(cmd);
	doctor_finish(doctor);
}

static int cmd_doctor(const struct command *command, int argc, char *argv[])
{
	struct cmd_doctor *cmd = calloc(1, sizeof(*cmd));
	struct doctor *doctor;
	int ret;

	if (!cmd)
		return message_no_memory();
	doctor = &cmd->doctor;
	ret = start_command(command, argc, argv, &doctor->options, &doctor->out, &doctor->err);
	if (ret != START_GO)
		goto cleanup;
	doctor_run(cmd);
	ret = output_flush(&doctor->out);
	ret = ret ? message_output(&doctor->err, ret) :
	      doctor->obstacles ? EXIT_FAILED : EXIT_OK;
cleanup:
	doctor_clear(doctor);
	free(cmd);
	return ret;
}

static const struct option_row option_self_test = {
	.name = "self-test",
	.help = "trace dbslower itself to prove that tracing works",
	OPTION_OWN(own_self_test),
};

static const struct option_row option_json_object = {
	.name = "json",
	.help = "print the findings as one JSON object",
	.member = offsetof(struct options, json),
};

static const struct option_row option_verbose_doctor = {
	.letter = 'v', .name = "verbose",
	.help = "also print what is fine: features, settings, sites",
	.set = option_set_verbose,
};

static const struct option_row *const doctor_options[] = {
	&option_self_test, &option_json_object, &option_verbose_doctor, &option_help,
	&option_version, NULL
};

const struct command command_doctor = {
	.name = "doctor",
	.summary = "report obstacles to tracing on this host, with remedies",
	.invocation = "dbslower doctor",
	.usage = "[--self-test] [FILE...] [OPTION...]",
	.about =
	"Report the features of the kernel, the privileges of the user, the running\n"
	"servers and how each is traced, and a remedy for each obstacle. Nothing is\n"
	"attached. With FILE, check only that server binary, which requires read\n"
	"permission. With --self-test, trace dbslower itself: this takes less than a\n"
	"second and requires no database server.\n",
	.examples =
	"  dbslower doctor                       check this host and its running servers\n"
	"  dbslower doctor -v /usr/sbin/mariadbd check this server binary, with its sites\n"
	"  dbslower doctor --self-test           prove that tracing works\n"
	"  dbslower doctor --json                print all findings, for a bug report\n"
	"\n"
	"Exit status: 0 no obstacles; 1 obstacles or failure; 2 usage error.\n",
	.words = WORDS_FREE,
	.options = doctor_options,
	.run = cmd_doctor,
};
