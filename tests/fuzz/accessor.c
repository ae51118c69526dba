/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Function bodies: a byte that selects the architecture, then the instructions. */
#include <errno.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/machines.h"
#include "usdt/accessor.h"
#include "usdt/x86_length.h"

static void check_body(int (*read)(uint16_t machine, const void *code, size_t size,
				   struct accessor *out),
		       uint16_t machine, const void *code, size_t size)
{
	struct accessor got = { 0 }, again = { 0 };
	int err = read(machine, code, size, &got);

	REQUIRE(err == 0 || err == -EINVAL, "%d", err);
	REQUIRE(read(machine, code, size, &again) == err);
	if (err)
		return;
	REQUIRE(!memcmp(&got, &again, sizeof(got)));
	REQUIRE(got.kind <= ACCESSOR_FLAG);
	REQUIRE(got.offset >= 0 && got.inner >= 0 && got.second >= -1);
	REQUIRE(got.size == 1 || got.size == 2 || got.size == 4 || got.size == 8);
}

/* A truncated instruction has no length. */
static void check_length(const uint8_t *data, size_t size)
{
	unsigned int n = x86_length_decode(data, size);

	REQUIRE(n <= size && n <= 15);
	for (unsigned int i = 0; i < n; i++) {
		uint8_t *cut = malloc(i + 1);

		memcpy(cut, data, i);
		REQUIRE(!x86_length_decode(cut, i));
		free(cut);
	}
}

static int body_copied(uint16_t machine, const void *code, size_t size, struct accessor *out)
{
	return accessor_body_copied(machine, code, size, 8, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint16_t machine = machine_at(input_byte(&in));
	void *code = input_copy(in.at, in.left);

	check_body(accessor_body, machine, code, in.left);
	check_body(accessor_body_setter, machine, code, in.left);
	check_body(accessor_body_compared, machine, code, in.left);
	check_body(accessor_body_passed, machine, code, in.left);
	check_body(accessor_body_given, machine, code, in.left);
	check_body(accessor_body_third, machine, code, in.left);
	check_body(body_copied, machine, code, in.left);
	check_body(accessor_body_flag, machine, code, in.left);
	check_length(code, in.left);
	free(code);
	return 0;
}
