// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * accessor_read_element() with the bodies of PostgreSQL's geterrcode(), which returns
 * errordata[errordata_stack_depth].sqlerrcode. The addresses are those that objdump prints.
 */
#include "usdt/accessor.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/check.h"

#define BODY_MAX	256

static const struct body {
	const char *name, *hex;
	uint16_t machine;
	uint64_t vaddr, index, member;
} bodies[] = {
	{ "Debian's 15", "48630511e42c0085c00f88a144baff4869c0b8000000488d15f3972e008b440230c3",
	  EM_X86_64, 0x5a7b30, 0x875f48, 0x891340 + 0x30 },
	{ "17", "486305a2f1520085c079404883ec0831f6bf15000000c70589f15200ffffffffe87ad5ffff488d3d0c"
	  "911c0031c0e801e2ffff488d155f941c00488d3d0f911c00be1e060000e80ae0ffff4869c0b8000000488d15"
	  "e8d154008b440230c3", EM_X86_64, 0x4d303f, 0xa021e8, 0xa20280 + 0x30 },
	{ "12", "4863055afd470085c07945488d0dcf131800488d357c1018004883ec084531c0baca040000bf140000"
	  "00c7052dfd4700ffffffffe800d4ffff488d3d7a10180031c0e892e7ffff31ff31c0e810e5ffff4869c0b800"
	  "0000488d15eb6249008b440238c3", EM_X86_64, 0x406e57, 0x886bb8, 0x89d1a0 + 0x38 },
	{ "10, not relocated", "4883ec088b059228470085c0781448984869c0b80000008b80789ece004883c408"
	  "c34531c0b9c6fe9b00badb040000bec6f89b00bf14000000c70559284700ffffffffe8e8f2ffff84c07500bf"
	  "cdf89b0031c0e838f1ffff89c731c0e80feeffff", EM_X86_64, 0x82b350, 0xc9dbec, 0xce9e78 },
	{ "18 for aarch64", "a11300f021200a91200840b94002f836fd7bbfa900008012fd0300912008"
	  "00b9010080d2a00280526cf3ff97400e00d000c836912bf7ff97420e00d042bc2a91400e00d042d4"
	  "069181c68052002837918bf6ff97007c4093c114009021c00491021780d20004029b00a041b9c003"
	  "5fd6", EM_AARCH64,
	  0x561434, 0x7d8290, 0x7f9130 + 416 },
	{ "another register", "4863050000000085c04869c0b8000000488d0d000000008b840130000000c3",
	  EM_X86_64, 0, 7, 23 + 0x30 },
	{ "two variables", "8b050000000085c08b050000000085c04869c0b8000000488d15000000008b440230c3",
	  EM_X86_64, 0, 0, 0 },
	{ "no index", "4869c0b8000000488d15000000008b440230c3", EM_X86_64,
	  0, 0, 0 },
	{ "another base", "8b050000000085c04869c0b8000000488d15000000008b440330c3", EM_X86_64,
	  0, 0, 0 },
	{ "another architecture", "48630511e42c0085c0", EM_MIPS, 0, 0, 0 },
};

static size_t unhex(const char *hex, unsigned char bytes[BODY_MAX])
{
	size_t n = 0;

	for (; hex[2 * n]; n++) {
		char pair[] = { hex[2 * n], hex[2 * n + 1], '\0' };

		bytes[n] = (unsigned char)strtoul(pair, NULL, 16);
	}
	return n;
}

/* Read from a copy of exactly @size bytes, so that a sanitizer detects an overread. */
static int read_exactly(const struct body *body, const unsigned char *bytes, size_t size,
			struct accessor_element *out)
{
	unsigned char *copy = malloc(size + !size);
	int err;

	if (!copy)
		abort();
	memcpy(copy, bytes, size);
	err = accessor_body_element(body->machine, copy, size, body->vaddr, out);
	free(copy);
	return err;
}

static void servers(void)
{
	unsigned char bytes[BODY_MAX];

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		const struct body *body = &bodies[i];
		struct accessor_element got = { 0, 0 };
		int err = read_exactly(body, bytes, unhex(body->hex, bytes), &got);

		CHECK(err == (body->index ? 0 : -EINVAL), "%s: %d", body->name, err);
		if (!err)
			CHECK(body->vaddr + (uint64_t)got.index == body->index &&
			      body->vaddr + (uint64_t)got.member == body->member,
			      "%s: %#lx %#lx", body->name, (long)body->vaddr + (long)got.index,
			      (long)body->vaddr + (long)got.member);
	}
}

/* Nothing is read beyond the end. */
static void truncated(void)
{
	unsigned char bytes[BODY_MAX];

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		size_t size = unhex(bodies[i].hex, bytes);
		struct accessor_element got;

		for (size_t cut = 0; cut < size; cut++) {
			int err = read_exactly(&bodies[i], bytes, cut, &got);

			CHECK(err == -EINVAL || (!err && bodies[i].index), "%s at %zu",
			      bodies[i].name, cut);
		}
	}
}

int main(void)
{
	RUN(servers);
	RUN(truncated);
	return check_done();
}
