// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "cli/trace/not_found.h"

#include <elf.h>
#include <string.h>

#include "cli/format/escape.h"
#include "host/elf_map.h"
#include "sql/glob.h"

#define NEEDED_MAX	64		/* libraries of a file that are searched */

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

/*
 * Return the name of the library that has function @name, of those that the file of @elf needs;
 * borrowed. NULL: none does.
 */
static const char *needed_with(struct probe_trace *probes, const struct elf *elf, const char *name,
			       const struct options *options)
{
	struct elf_section dynamic, strings;
	const unsigned char *data;
	bool found = false;
	Elf64_Dyn entry;
	size_t size;

	if (!elf->is64 || elf->big_endian || elf_section_find_type(elf, SHT_DYNAMIC, &dynamic) ||
	    elf_section(elf, dynamic.link, &strings))
		return NULL;
	data = elf_section_data(elf, &dynamic, &size);
	for (int left = NEEDED_MAX; left && size >= sizeof(entry);
	     data += sizeof(entry), size -= sizeof(entry)) {
		struct file_list list = { 0 };
		const char *needed;

		memcpy(&entry, data, sizeof(entry));
		if (entry.d_tag != DT_NEEDED)
			continue;
		left--;
		needed = elf_string(elf, &strings, (uint32_t)entry.d_un.d_val);
		if (*needed && !strchr(needed, '/') &&
		    !file_list_named(&list, needed, options->pids, options->pid_count))
			found = has_probe(probes, REQUEST_FUNCTION, name, &list);
		file_list_free(&list);
		if (found)
			return needed;
	}
	return NULL;
}

/* End the message if it is known where the function is that @file does not contain. */
static bool explain_function(struct output *err, struct probe_trace *probes,
			     const struct probe_request *request, const struct file *file,
			     const struct options *options)
{
	const char *library = NULL, *name = request->name;
	struct elf_section section;
	struct elf_map map;
	bool compressed;

	if (elf_map_open(&map, file->fd, NULL))
		return false;
	compressed = !elf_section_find(&map.elf, ".gnu_debugdata", &section);
	if (!glob_is_pattern(name))
		library = needed_with(probes, &map.elf, name, options);
	if (library) {
		output_string(err, request->kind == REQUEST_RETURN ? "; it is in a library: r:" :
								     "; it is in a library: p:");
		show(err, library);
		output_char(err, ':');
		show(err, name);
		output_char(err, '\n');
	} else if (compressed) {
		output_string(err, "; its other symbols are compressed (.gnu_debugdata); install "
			      "its debug package\n");
	}
	elf_map_close(&map);
	return library || compressed;
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
	if (!function && path &&
	    explain_function(err, probes, request, &list->files[0], options))
		return;
	output_string(err, "; dbslower list ");
	show(err, path ? path : "-p PID");
	output_string(err, path ? " prints its USDT probes" : " prints all USDT probes");
	output_string(err, function ? "\n" :
		      "; in a stripped file without its debug file, only exported functions are "
		      "found\n");
}
