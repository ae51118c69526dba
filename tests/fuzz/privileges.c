/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files of the kernel and of the semaphore journal. Input: a byte that selects mountinfo, status,
 * a file of tracefs or a line of the journal, then its content.
 */
#include "host/privileges.c"

#include "loader/semaphore.h"
#include "loader/tracefs.h"
#include "tests/fuzz/fuzz.h"

static void check_mounts(const char *text, size_t len, size_t size)
{
	char *value = malloc(size);

	privileges_mount_option(text, len, "/proc", "hidepid", value, size);
	REQUIRE(strnlen(value, size) < size && !strpbrk(value, ",\n "));
	if (*value)
		REQUIRE(memmem(text, len, value, strlen(value)), "%s", value);
	free(value);
}

static void check_status(const char *text)
{
	status_number(text, "\nCapEff:", 16);
	status_number(text, "\nSeccomp:", 10);
}

static void check_event(const char *text, size_t size)
{
	char *event = malloc(size);
	uint64_t offset;

	if (tracefs_format(text, "pid", &offset) > 0)
		REQUIRE(offset >= 8 && offset <= 8192 - 4, "%s", text);
	if (tracefs_parse(text, event, size))
		REQUIRE(strlen(event) < size && strchr(event, '/') && !strpbrk(event, " \n") &&
			!strncmp(text + 2, event, strlen(event)), "%s", event);
	free(event);
}

static void check_mark(const char *text)
{
	struct semaphore_mark mark = { 0 };
	char line[160], *end = strchr(text, '\n');

	if (!semaphores_parse(text, &mark))
		return;
	REQUIRE(end && mark.pid && mark.start);
	snprintf(line, sizeof(line), "%u %llu %llu %llx %llu %llu\n", mark.pid,
		 (unsigned long long)mark.start, (unsigned long long)mark.written,
		 (unsigned long long)mark.address, (unsigned long long)mark.dev,
		 (unsigned long long)mark.ino);
	REQUIRE(semaphores_parse(line, &mark), "%s", line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t choice = input_byte(&in);
	char *text;

	if (choice % 4 == 0) {
		text = input_copy(in.at, in.left);
		check_mounts(text, in.left, 1 + (choice >> 2));
		free(text);
		return 0;
	}
	text = input_until(&in, '\0');
	if (choice % 4 == 1)
		check_status(text);
	else if (choice % 4 == 2)
		check_event(text, 1 + (choice >> 2));
	else
		check_mark(text);
	free(text);
	return 0;
}
