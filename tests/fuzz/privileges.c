/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Files of the kernel. Input: a byte that selects mountinfo, status or a file of tracefs, then its
 * content.
 */
#include "host/privileges.c"

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

static void check_event(const char *text)
{
	uint64_t offset;

	if (tracefs_format(text, "pid", &offset) > 0)
		REQUIRE(offset >= 8 && offset <= 8192 - 4, "%s", text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t choice = input_byte(&in);
	char *text;

	if (choice % 3 == 0) {
		text = input_copy(in.at, in.left);
		check_mounts(text, in.left, 1 + (choice >> 2));
		free(text);
		return 0;
	}
	text = input_until(&in, '\0');
	if (choice % 3 == 1)
		check_status(text);
	else
		check_event(text);
	free(text);
	return 0;
}
