// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/trace/request.h"

#include <errno.h>
#include <string.h>

#include "cli/command.h"
#include "cli/format/escape.h"
#include "cli/message.h"

/* Report @error in @word, the argument of @subject, and mark its position. Return EXIT_USAGE. */
static int trace_refuse(struct loop *loop, const char *subject, const char *word,
			const struct trace_error *error)
{
	struct output *err = &loop->err;

	output_string(err, "dbslower: ");
	output_string(err, subject);
	output_string(err, ": ");
	output_string(err, error->why);
	if (!strchr(error->why, ';'))
		output_string(err, "; dbslower trace --help describes and shows the syntax");
	output_string(err, "\n  ");
	escape_terminal(err, word, strlen(word), false);
	output_string(err, "\n  ");
	output_spaces(err, escape_width(word, error->at));
	output_string(err, "^\n");
	return EXIT_USAGE;
}

bool trace_request_counts(const struct trace_options *options)
{
	return options->count || options->histogram;
}

bool trace_request_by_latency(const struct trace_options *options)
{
	return options->histogram && !strcmp(options->histogram, "latency");
}

bool trace_request_latency(const struct trace_options *options)
{
	return options->latency || trace_request_by_latency(options);
}

/*
 * Apply --ret and --latency: of one probe, a function, the latency of its calls; of two, that from
 * the first to the second, whose values are printed.
 */
static int trace_apply_ends(struct loop *loop, const struct trace_options *own,
			    struct trace_spec *spec, const char *word)
{
	const struct options *options = &loop->options;
	bool latency = trace_request_latency(own), call = latency && options->word_count == 1;
	struct trace_error error = { call ? "--latency of one probe requires a function; specify "
					    "a second probe, at which it ends" :
					    "--ret requires a function: a USDT probe does not "
					    "return", 0 };

	if (latency)
		spec->request.latency = call ? LATENCY_CALL :
					word == options->words[0] ? LATENCY_START : LATENCY_END;
	if (spec->request.latency == LATENCY_START && !spec->request.all) {
		error.why = "values are printed of the second probe, at which the latency ends";
		return trace_refuse(loop, "PROBE", word, &error);
	}
	if (!own->on_return && !call)
		return EXIT_OK;
	if (call && spec->request.provider && !spec->file)
		error.why = "--latency of one probe requires a function, and with PATH, -l or -p "
			    "this is a USDT probe; p: before it makes it a function of a library";
	if (spec->request.kind == REQUEST_USDT || spec->request.provider)
		return trace_refuse(loop, "PROBE", word, &error);
	spec->request.kind = REQUEST_RETURN;
	return EXIT_OK;
}

/* Apply the options that concern all probes: --ret, --latency, --hist, --count, --args. */
static int trace_apply(struct loop *loop, const struct trace_options *own,
		       struct trace_spec *spec, const char *word)
{
	struct trace_error error;
	int err = trace_apply_ends(loop, own, spec, word);

	if (err)
		return err;
	spec->request.registers = own->registers;
	if (trace_request_counts(own) && trace_spec_countable(spec, word, &error))
		return trace_refuse(loop, "PROBE", word, &error);
	if (trace_request_by_latency(own))
		trace_spec_latency(spec);
	else if (own->histogram && trace_spec_histogram(spec, own->histogram, &error))
		return trace_refuse(loop, "--hist", own->histogram, &error);
	return EXIT_OK;
}

int trace_request_read(struct loop *loop, const struct trace_options *own,
		       struct trace_spec *specs)
{
	const struct options *options = &loop->options;
	bool files = options->path_count || options->pid_count;
	int status = EXIT_OK;

	for (unsigned int i = 0; status == EXIT_OK && i < options->word_count; i++) {
		const char *word = options->words[i];
		size_t begin, path = option_probe_path(word, &begin);
		struct trace_error error;
		int err = trace_spec_parse(&specs[i], word, begin, path, files, &error);

		if (err == -ENOMEM)
			return message_no_memory();
		status = err ? trace_refuse(loop, "PROBE", word, &error) :
			       trace_apply(loop, own, &specs[i], word);
	}
	return status;
}
