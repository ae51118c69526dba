// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/banner.h"

#include <string.h>

#include "cli/format/escape.h"
#include "cli/format/site_print.h"
#include "cli/message.h"
#include "host/privileges.h"

void banner_site(void *arg, const struct target_site *site)
{
	struct loop *loop = arg;

	site_absent(loop->banner.absent, sizeof(loop->banner.absent), site);
}

void banner_server(void *arg, const struct server_info *server)
{
	struct loop *loop = arg;
	bool later = loop->banner.opened;

	server_set_add(&loop->banner.servers, server);
	if (loop->banner.silent)
		return;
	/* Those of -p are there. */
	for (size_t i = 0; i < server->npids && loop->banner.npids < SERVER_PIDS &&
			   !(later && loop->options.pid_count); i++)
		loop->banner.pids[loop->banner.npids++] = server->pids[i];
	if (later && !loop->banner.begun) {
		loop->banner.begun = true;
		loop->ops->begin(loop);
	}
	output_string(&loop->err, loop->options.sample_ns ? "dbslower: sampling " :
							    "dbslower: tracing ");
	output_string(&loop->err, server->title);
	if (*server->version) {
		output_string(&loop->err, " ");
		escape_terminal(&loop->err, server->version, strlen(server->version), false);
	}
	for (size_t i = 0; i < server->npids; i++) {
		output_string(&loop->err, i ? " " : ", pid ");
		output_u64(&loop->err, server->pids[i]);
	}
	output_string(&loop->err, ", ");
	escape_terminal(&loop->err, server->path, strlen(server->path), false);
	if (!loop->options.sample_ns) {
		output_string(&loop->err, server->usdt ? ", by its USDT probes and symbols (" :
							 ", by its symbols (");
		output_string(&loop->err, server->method);
		output_string(&loop->err, ")");
	}
	site_lacks(&loop->err, server, ", which does not report ");
	if (loop->banner.phases && !(server->has & TARGET_HAS_PHASES))
		output_string(&loop->err, "; it has no USDT probes for phases");
	if (loop->banner.transactions && !(server->has & TARGET_HAS_TRANSACTIONS))
		output_string(&loop->err, "; its transactions are unknown");
	if (server->copied)
		output_string(&loop->err, "; no process that runs it is traced");
	if (server->nested)
		output_string(&loop->err, "; it runs in a nested PID namespace, and its statements "
					   "are invisible here: run dbslower in that namespace, "
					   "or on the host");
	output_string(&loop->err, "\n");
	if (*loop->banner.absent) {
		output_string(&loop->err, "dbslower: cannot be read: ");
		escape_terminal(&loop->err, loop->banner.absent, strlen(loop->banner.absent),
				false);
		output_string(&loop->err, "\n");
		*loop->banner.absent = '\0';
	}
	/* At the start, the lines are flushed together once all probes are attached. */
	if (later)
		output_flush(&loop->err);
}

void banner_error(void *arg, const struct error *error)
{
	struct loop *loop = arg;

	*loop->banner.absent = '\0';
	loop->banner.explained |= error->kind == ERROR_COPIED || error->kind == ERROR_YOUNG;
	message_error(&loop->err, error);
	output_flush(&loop->err);
}

/* Append @label and the names of the features that the kernel was asked for and has, or lacks. */
static void banner_names(struct output *out, const struct features *features, bool has,
			 const char *label)
{
	for (int i = 0; i < FEATURES; i++) {
		if (!features->row[i].probed || features->row[i].has != has)
			continue;
		output_string(out, label);
		output_string(out, feature_name(i));
		label = ", ";
	}
}

void banner_features(struct loop *loop, const struct features *features)
{
	output_string(&loop->err, "dbslower: features of the kernel:");
	banner_names(&loop->err, features, true, " ");
	banner_names(&loop->err, features, false, "; missing: ");
	output_string(&loop->err, "\n");
}

void banner_sandbox(struct loop *loop, const struct sandbox *sandbox)
{
	struct output *err = &loop->err;
	const char *before = " ";

	if (!loop->options.verbose)
		return;
	output_string(err, "dbslower: capabilities kept:");
	for (size_t i = 0; i < PRIVILEGES_CAPABILITIES; i++) {
		if (!(sandbox->capabilities >> privileges_capabilities[i].bit & 1))
			continue;
		output_printf(err, "%s%s", before, privileges_capabilities[i].name);
		before = ", ";
	}
	output_string(err, *before == ',' ? "" : " none");
	if (sandbox->user)
		output_printf(err, "; user: %u", (unsigned int)sandbox->user);
	if (sandbox->filter)
		output_string(err, "; seccomp filter: on\n");
	else
		output_printf(err, "; seccomp filter: refused by the kernel (%s)\n",
			      strerror(-sandbox->filter_error));
}

void banner_headline(struct loop *loop)
{
	output_string(&loop->out, "Tracing ");
	output_string(&loop->out, loop->banner.subject ? loop->banner.subject : "database queries");
	output_string(&loop->out, loop->banner.npids ? " for pids " : "");
	for (size_t i = 0; i < loop->banner.npids; i++) {
		output_string(&loop->out, i ? " " : "");
		output_u64(&loop->out, loop->banner.pids[i]);
	}
	output_string(&loop->out, loop->banner.than ? loop->banner.than : " slower than ");
	output_ms(&loop->out, loop->options.threshold_ns);
	output_string(&loop->out, " ms...\n");
}

void banner_start(struct loop *loop, const struct features *features, size_t targets)
{
	const struct options *options = &loop->options;

	loop->banner.opened = true;
	if (options->verbose && features)
		banner_features(loop, features);
	if (options->pid_count) {
		loop->banner.npids = options->pid_count;
		memcpy(loop->banner.pids, options->pids,
		       options->pid_count * sizeof(*loop->banner.pids));
	}
	if (loop->interrupted)
		message_interrupted(&loop->err);
	output_flush(&loop->err);
	if (targets) {
		loop->banner.begun = true;
		loop->ops->begin(loop);
	} else if (!loop->interrupted && !loop->banner.explained) {
		message_waiting(&loop->err);
		output_flush(&loop->err);
	}
}
