/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Files of /proc/PID. Input: a byte that selects maps, status, cgroup or exe, then the content. */
#include "host/container.h"
#include "host/process.c"
#include "host/process_memory.c"
#include "tests/fuzz/fuzz.h"

struct seen {
	size_t lines;
	const char *text;
	size_t len;
};

static int check_map(void *arg, const struct process_map *map)
{
	struct seen *seen = arg;
	struct process process = { .exe = "/a/b" };
	struct base base = { .process = &process };

	REQUIRE(*map->path == '/' && strlen(map->path) < seen->len);
	base_find(&base, map);
	is_loader(map->path);
	seen->lines++;
	return 0;
}

/* Parse the file in pieces of @step bytes, as process_maps() does. */
static void check_maps(const char *text, size_t len, size_t step)
{
	struct seen seen = { .text = text, .len = len + 1 };
	char *buf = malloc(len + 1);
	size_t have = 0;

	for (size_t at = 0, n; at < len; at += n) {
		n = len - at < step ? len - at : step;
		memcpy(buf + have, text + at, n);
		have += n;
		REQUIRE(!maps_parse(buf, &have, check_map, &seen));
		REQUIRE(have <= at + n && !memchr(buf, '\n', have));
	}
	free(buf);
}

static void check_container(const char *text, size_t len, size_t size)
{
	char *container = malloc(size);

	container_parse(text, len, container, size);
	REQUIRE(strnlen(container, size) < size && !strchr(container, '\n'));
	if (*container && size >= 64 && strlen(container) < size - 1)
		REQUIRE(memmem(text, len, container, strlen(container)), "%s", container);
	free(container);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t choice = input_byte(&in);
	struct process process = { 0 };
	char *text, name[256];

	switch (choice & 3) {
	case 0:
		check_maps((const char *)in.at, in.left, 1 + (choice >> 2) * 16u);
		break;
	case 1:
		text = input_until(&in, '\0');
		process_status_number(text, "\nPPid:");
		process_status_number(text, "\nNSpid:");
		free(text);
		break;
	case 2:
		text = input_copy(in.at, in.left);
		check_container(text, in.left, 64);
		check_container(text, in.left, 1 + (choice >> 2));
		free(text);
		break;
	case 3:
		input_bytes(&in, process.exe, sizeof(process.exe) - 1);
		process_name(&process, name, sizeof(name));
		REQUIRE(!strchr(name, '/'));
		process_is_loading(&process);
		break;
	}
	return 0;
}
