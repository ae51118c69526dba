// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/doctor/server.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/format/json.h"
#include "cli/format/site_print.h"
#include "db/discover/survey.h"
#include "host/arch.h"
#include "host/library.h"
#include "host/open.h"
#include "usdt/arch.h"

/* The servers that are being reported. */
struct servers {
	struct doctor *doctor;
	unsigned int count;		/* of servers */
	unsigned int sites;		/* of the current server */
	char last[SITE_TEXT];		/* the arguments of the previous site */
};

static void server_json(struct servers *servers, const struct server_info *server, bool traced)
{
	struct output *out = &servers->doctor->out;
	struct server of;

	describe_server(&of, server->engine, server->version, server->path);
	json_string(out, servers->count ? ",{\"engine\":\"" : "{\"engine\":\"", of.product);
	json_string(out, ",\"title\":\"", server->title);
	json_string(out, ",\"version\":\"", *server->version ? server->version : NULL);
	json_string(out, ",\"path\":\"", server->path);
	output_string(out, ",\"pids\":[");
	for (size_t i = 0; i < server->npids; i++)
		json_number(out, i ? "," : "", server->pids[i]);
	output_string(out, traced ? "],\"traced\":true" : "],\"traced\":false");
	if (traced)
		output_string(out, server->usdt ? ",\"usdt\":true" : ",\"usdt\":false");
	output_string(out, ",\"sites\":[");
}

/* Write "PostgreSQL 15.14, pid 12 34, by its symbols" to @text. */
static void server_words(const struct doctor *doctor, const struct server_info *server,
			 bool traced, char *text, size_t size)
{
	int at = snprintf(text, size, "%s%s%s", server->title, *server->version ? " " : "",
			  server->version);

	for (size_t i = 0; i < server->npids && (size_t)at < size - 32; i++)
		at += snprintf(text + at, size - (size_t)at, i ? " %u" : ", pid %u",
			       server->pids[i]);
	if (!traced)
		return;
	at += snprintf(text + at, size - (size_t)at, server->usdt ?
		       ", by its USDT probes and symbols" : ", by its symbols");
	if (doctor->method != ATTACH_NONE)
		snprintf(text + at, size - (size_t)at, " (%s)", server->method);
}

static void server_end(struct servers *servers)
{
	if (servers->doctor->options.json && servers->count)
		output_string(&servers->doctor->out, "]}");
}

static void server_each(void *arg, const struct server_info *server, const struct error *error)
{
	struct servers *servers = arg;
	struct doctor *doctor = servers->doctor;
	char text[512];

	server_end(servers);
	server_words(doctor, server, !error, text, sizeof(text));
	if (doctor->options.json)
		server_json(servers, server, !error);
	servers->count++;
	servers->sites = 0;
	*servers->last = '\0';
	if (error) {
		doctor_error(doctor, server->path, error, NULL);
		return;
	}
	if (server->nested)
		doctor_report(doctor, DOCTOR_OBSTACLE, server->path,
			      "run dbslower in that namespace, or on the host",
			      "%s; it runs in a nested PID namespace, and its statements are "
			      "invisible here", text);
	else
		doctor_report(doctor, DOCTOR_OK, server->path, NULL, "%s", text);
	if (!doctor->options.json && site_lacks(&doctor->out, server,
						"            this server does not report "))
		output_char(&doctor->out, '\n');
}

static void server_site(void *arg, const struct target_site *site)
{
	struct servers *servers = arg;
	struct doctor *doctor = servers->doctor;

	if (!doctor->options.json) {
		site_print(&doctor->out, site, servers->last);
		return;
	}
	output_string(&doctor->out, servers->sites++ ? "," : "");
	site_json(&doctor->out, site);
}

static struct survey server_survey(struct servers *servers)
{
	const struct options *options = &servers->doctor->options;

	return (struct survey){ .method = servers->doctor->method, .arg = servers,
				.server = server_each,
				.site = options->json || options->verbose ? server_site : NULL };
}

void doctor_servers(struct doctor *doctor)
{
	struct servers servers = { .doctor = doctor };
	struct survey survey = server_survey(&servers);
	struct error error = { .kind = ERROR_NONE };
	int n;

	doctor_heading(doctor, "Servers");
	if (doctor->options.json)
		output_string(&doctor->out, ",\"servers\":[");
	n = doctor->blind ? 0 : survey_running(&survey);
	server_end(&servers);
	if (doctor->options.json)
		output_char(&doctor->out, ']');
	if (n < 0) {
		error_set(&error, n == -ENOMEM ? ERROR_MEMORY : ERROR_PROC, n, NULL, NULL);
		doctor_error(doctor, "servers", &error, NULL);
	} else if (doctor->blind) {
		doctor_report(doctor, DOCTOR_NOTE, "servers", NULL, "not searched: %s",
			      doctor->blind);
	} else if (!n) {
		doctor_report(doctor, DOCTOR_NOTE, "servers",
			      "dbslower waits for one to start; dbslower doctor --self-test "
			      "requires none",
			      "no supported database server found%s", doctor->restricted ?
			      " among the processes that dbslower may inspect" : "");
	}
}

static const char *machine_name(uint16_t machine, char text[32])
{
	const struct arch *arch = arch_of(machine);

	if (arch)
		return arch->name;
	snprintf(text, 32, "ELF machine %u", machine);
	return text;
}

/* Report a file that is not a server's. */
static void file_other(struct doctor *doctor, const char *path, const struct survey_other *other)
{
	char remedy[2 * PATH_MAX + 160], machine[32];

	if (other->embedded) {
		doctor_report(doctor, DOCTOR_OBSTACLE, path,
			      "trace prints calls of its library: dbslower trace -p PID FUNCTION",
			      "the embedded server is not supported");
		return;
	}
	if (other->probes && other->machine != HOST_ELF_MACHINE &&
	    other->machine != HOST_ELF_COMPAT)
		snprintf(remedy, sizeof(remedy), "dbslower list %s prints them; they can be traced "
			 "on a host of that architecture", path);
	else if (other->probes)
		snprintf(remedy, sizeof(remedy),
			 "dbslower list %s prints them; if two of them delimit statements, use "
			 "dbslower -x %s --start PROVIDER:NAME --done PROVIDER:NAME",
			 path, path);
	else
		snprintf(remedy, sizeof(remedy),
			 "specify the binary of a supported database server, not a program "
			 "that starts it");
	doctor_report(doctor, DOCTOR_OBSTACLE, path, remedy,
		      "not a recognised database server; it has %zu USDT probe%s (%s)",
		      other->probes, other->probes == 1 ? "" : "s",
		      machine_name(other->machine, machine));
}

static void file_path(struct servers *servers, const char *path)
{
	struct doctor *doctor = servers->doctor;
	struct survey survey = server_survey(servers);
	struct survey_other other;
	int fd = open_regular(path);
	int err = fd < 0 ? fd : survey_file(&survey, path, fd, &other);

	if (fd >= 0)
		close(fd);
	if (err == -ENOENT && fd >= 0) {
		file_other(doctor, path, &other);
	} else if (err == -ENOEXEC) {
		doctor_report(doctor, DOCTOR_OBSTACLE, path,
			      "specify the server's binary, not a script that starts it",
			      "not an ELF file");
	} else if (err) {
		doctor_report(doctor, DOCTOR_OBSTACLE, path, err == -EACCES ?
			      "run dbslower as a user who may read the file" :
			      "specify the path of an existing file",
			      "cannot open: %s",
			      err == -EINVAL ? "not a regular file" : strerror(-err));
	}
}

static void file_named(struct servers *servers, const char *name)
{
	char path[PATH_MAX];

	if (library_find(name, path, sizeof(path)))
		doctor_report(servers->doctor, DOCTOR_OBSTACLE, name,
			      "specify a path, which contains a '/'; without FILE, all running "
			      "servers are checked",
			      "program or library not found");
	else
		file_path(servers, path);
}

void doctor_files(struct doctor *doctor)
{
	const struct options *options = &doctor->options;
	struct servers servers = { .doctor = doctor };

	doctor_heading(doctor, "Files");
	if (options->json)
		output_string(&doctor->out, ",\"servers\":[");
	for (unsigned int i = 0; i < options->path_count; i++)
		file_path(&servers, options->paths[i]);
	for (unsigned int i = 0; i < options->word_count; i++)
		file_named(&servers, options->words[i]);
	server_end(&servers);
	if (options->json)
		output_char(&doctor->out, ']');
}
