// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/trace/not_found.h"

#include <string.h>

#include "cli/format/escape.h"

static void show(struct output *out, const char *text)
{
	escape_terminal(out, text, strlen(text), false);
}

static bool has_probe(struct probe_trace *probes, enum probe_request_kind kind, const char *name,
		      const struct file_list *list)
{
	const struct probe_request request = { .kind = kind, .name = name, .all = true };
	struct error error = { .kind = ERROR_NONE };
	int found = 0;

	for (size_t i = 0; found <= 0 && i < list->count; i++) {
		found = probe_trace_add(probes, &request, 0, &list->files[i], &error);
		error_clear(&error);
	}
	return found > 0;
}

/* Return whether there is a probe of the other kind, in *@file; NULL: that of @list. */
static bool has_other(struct probe_trace *probes, const struct trace_spec *spec,
		      const struct file_list *list, const struct options *options,
		      const char **file)
{
	const struct probe_request *request = &spec->request;
	bool found, function = request->kind == REQUEST_USDT;
	struct file_list own = { 0 };

	*file = spec->file;
	if (request->kind == REQUEST_ANY || request->kind == REQUEST_RETURN ||
	    (request->provider && *file))
		return false;
	/* c:recv, with -p: the provider is a library. */
	if (request->provider) {
		*file = request->provider;
		list = &own;
		file_list_named(&own, *file, options->pids, options->pid_count);
	}
	found = has_probe(probes, function ? REQUEST_FUNCTION : REQUEST_USDT, request->name, list);
	file_list_free(&own);
	return found;
}

void trace_not_found(struct output *err, struct probe_trace *probes, const struct trace_spec *spec,
		     const struct file_list *list, const struct options *options)
{
	const struct probe_request *request = &spec->request;
	const char *file, *path = list->count == 1 ? list->files[0].path : NULL;
	const char *what = request->kind == REQUEST_USDT ? "USDT probe " :
			   request->kind == REQUEST_ANY ? "USDT probe or function " : "function ";
	bool function = request->kind == REQUEST_USDT;
	bool other = has_other(probes, spec, list, options, &file);

	output_string(err, "dbslower: ");
	show(err, path ? path : "PROBE");
	output_string(err, path ? ": no " : ": no file contains ");
	output_string(err, what);
	if (request->provider) {
		show(err, request->provider);
		output_char(err, ':');
	}
	show(err, request->name);
	if (other) {
		output_string(err, function ? "; p:" : "; u:");
		show(err, file ? file : "");
		output_string(err, file ? ":" : "");
		show(err, request->name);
		output_string(err, function ? " is a function\n" : " is a USDT probe\n");
		return;
	}
	output_string(err, "; dbslower list ");
	show(err, path ? path : "-p PID");
	output_string(err, path ? " prints its USDT probes" : " prints all USDT probes");
	output_string(err, function ? "\n" :
		      "; in a stripped file without its debug file, only exported functions are "
		      "found\n");
}
