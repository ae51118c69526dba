// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * db/discover/bind with rows of an engine of our own: which of them are used for a file. The file
 * is this test itself, which has the functions below and the USDT probes of db/selftest/selfprobe.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "bpf/embed.h"
#include "db/discover/bind.h"
#include "db/selftest/selfprobe.h"
#include "host/elf_map.h"
#include "tests/unit/check.h"

#define VALUES	128

static struct object object;
static struct object_value values[VALUES];
static size_t nvalues;
static struct elf_map file;
static struct bind bind;
static struct uprobe_set set;
static struct error error;

__attribute__((noinline)) static void bind_test_first(void)
{
	__asm__ volatile("nop" ::: "memory");
}

__attribute__((noinline)) static void bind_test_second(void)
{
	__asm__ volatile("nop; nop" ::: "memory");
}

/* As C++ would call bind_test_mangled(int). */
__attribute__((noinline)) static void _Z17bind_test_mangledi(void)
{
	__asm__ volatile("nop; nop; nop" ::: "memory");
}

/* Not const, so that the linker keeps the functions. */
static void (*volatile functions[])(void) = {
	bind_test_first, bind_test_second, _Z17bind_test_mangledi,
};

#define FAILURE(which)	.step = which, .program = "failure"
#define FIRST		.function = "bind_test_first"
#define SECOND		.function = "bind_test_second"
#define MISSING		.function = "bind_test_missing"
#define PROBES(...)	(const struct engine_probe[]){ __VA_ARGS__, { .step = NULL } }

static size_t count_probes(const struct engine_probe *probes)
{
	size_t n = 0;

	while (probes[n].step)
		n++;
	return n;
}

/* Bind sets @first and @second, which may be NULL. */
static int bind_sets(const struct engine_probe *first, const struct engine_probe *second,
		     const struct engine_arg *common, uint32_t asked)
{
	struct engine_probe_set sets[2] = {
		{ .probes = first, .nprobes = count_probes(first) },
		{ .probes = second, .nprobes = second ? count_probes(second) : 0 },
	};
	struct engine engine = { .name = "test", .probe_sets = sets,
				 .nprobe_sets = second ? 2 : 1, .common = common };
	int err;

	uprobe_set_free(&set);
	error_clear(&error);
	err = bind_open(&bind, &(struct bind_config){
		.engine = &engine, .elf = file.elf, .path = "a file", .version = "", .asked = asked,
		.object = &object, .values = values, .nvalues = nvalues,
	}, &set, &error);
	CHECK(!err == !error.kind, "%d %d", err, error.kind);
	CHECK(!err || (!set.nsites && !set.ngroups), "%u", set.nsites);
	bind_close(&bind);
	return err;
}

static int bind_probes(const struct engine_probe *probes)
{
	return bind_sets(probes, NULL, NULL, 0);
}

/* Return whether site @i is at the start of @function; a landing pad of 4 bytes may come first. */
static bool site_is(uint32_t i, void (*function)(void))
{
	return i < set.nsites && bind.sites[i].site.vaddr - (uint64_t)(uintptr_t)function <= 4 &&
	       !bind.sites[i].site.args;
}

static void alternatives(void)
{
	CHECK(!bind_probes(PROBES({ FAILURE("a"), MISSING }, { FAILURE("a"), FIRST },
				  { FAILURE("a"), SECOND })));
	CHECK(set.nsites == 1 && site_is(0, functions[0]), "%u", set.nsites);
	/* Rows of another step are not alternatives. */
	CHECK(!bind_probes(PROBES({ FAILURE("a"), FIRST }, { FAILURE("a"), MISSING },
				  { FAILURE("b"), SECOND })));
	CHECK(set.nsites == 2 && site_is(0, functions[0]) && site_is(1, functions[1]));
	CHECK(set.ngroups == 1, "the same program is linked once: %u", set.ngroups);
	CHECK(!bind.usdt);
}

static void required(void)
{
	CHECK(bind_probes(PROBES({ FAILURE("a"), FIRST }, { FAILURE("b"), MISSING })) == -ENOENT);
	CHECK(error.kind == ERROR_NO_PROBES && !strcmp(error.subject, "a file") &&
	      !strcmp(error.detail, "bind_test_missing"), "%s", error.detail);
	CHECK(!bind_probes(PROBES({ FAILURE("a"), FIRST },
				  { FAILURE("b"), MISSING, .optional = true,
				    .has = TARGET_HAS_SORTS })));
	CHECK(set.nsites == 1 && !(bind.has & TARGET_HAS_SORTS), "%x", bind.has);
	CHECK(!bind_probes(PROBES({ FAILURE("b"), FIRST, .optional = true,
				    .has = TARGET_HAS_SORTS })));
	CHECK(set.nsites == 1 && bind.has == TARGET_HAS_SORTS, "%x", bind.has);
	/* A function is named without its arguments, which another one of that name has. */
	CHECK(bind_probes(PROBES({ FAILURE("a"), .function = "_Z17bind_test_mangledPv" })) ==
	      -ENOENT);
	CHECK(!strcmp(error.detail, "a known form of bind_test_mangled"), "%s", error.detail);
	CHECK(bind_probes(PROBES({ FAILURE("a"), .function = "_Z17bind_test_missingPv" },
				 { FAILURE("a"), .function = "_Z17bind_test_mangledPv" })) ==
	      -ENOENT);
	CHECK(!strcmp(error.detail, "a known form of bind_test_mangled"), "%s", error.detail);
	/* Of the alternatives, the one whose function is there. */
	CHECK(bind_probes(PROBES({ FAILURE("a"), .function = "_Z17bind_test_mangledi",
				   .calls = "_Z17bind_test_missingPv" },
				 { FAILURE("a"), MISSING })) == -ENOENT);
	CHECK(!strcmp(error.detail, "bind_test_missing"), "%s", error.detail);
	CHECK(bind_probes(PROBES({ FAILURE("a"), .function = "_Z17bind_test_mangledi",
				   .calls = "_Z17bind_test_mangledi" })) == -ENOENT);
	CHECK(!strcmp(error.detail, "a known call of bind_test_mangled"), "%s", error.detail);
	/* A variable is not a function. */
	CHECK(bind_probes(PROBES({ FAILURE("a"), .function = "functions" })) == -ENOENT);
}

static void only_with(void)
{
	CHECK(!bind_probes(PROBES({ FAILURE("a"), FIRST, .only_with = "bind_test_missing" },
				  { FAILURE("a"), SECOND, .only_with = "bind_test_first" })));
	CHECK(set.nsites == 1 && site_is(0, functions[1]));
	CHECK(bind_probes(PROBES({ FAILURE("a"), FIRST,
				   .only_with = "bind_test_missing" })) == -ENOENT);
}

static void asked(void)
{
	const struct engine_probe *probes = PROBES(
		{ FAILURE("a"), FIRST },
		{ FAILURE("b"), SECOND, .optional = true, .asked = ENGINE_WHY | ENGINE_USE });

	for (uint32_t bits = 0; bits < 8; bits++) {
		CHECK(!bind_sets(probes, NULL, NULL, bits));
		CHECK(set.nsites == (bits & (ENGINE_WHY | ENGINE_USE) ? 2 : 1), "%u: %u", bits,
		      set.nsites);
	}
}

static void probe_sets(void)
{
	const struct engine_probe *unusable = PROBES(
		{ FAILURE("a"), .provider = "dbslower", .probe = "self__done",
		  .has = TARGET_HAS_STATUS }, { FAILURE("b"), MISSING });
	const struct engine_probe *usable = PROBES({ FAILURE("a"), SECOND });

	CHECK(!bind_sets(unusable, usable, NULL, 0));
	CHECK(set.nsites == 1 && site_is(0, functions[1]) && !bind.usdt && !bind.has);
	CHECK(!bind_sets(usable, unusable, NULL, 0));
	CHECK(set.nsites == 1 && bind.probe_set->probes == usable);
	CHECK(bind_sets(unusable, unusable, NULL, 0) == -ENOENT && error.kind == ERROR_NO_PROBES);
}

static void usdt(void)
{
	CHECK(!bind_probes(PROBES({ FAILURE("a"), .provider = "dbslower", .probe = "none" },
				  { FAILURE("a"), .provider = "other", .probe = "self__start" },
				  { FAILURE("a"), .provider = "dbslower", .probe = "self__start" },
				  { FAILURE("a"), FIRST })));
	CHECK(set.nsites && bind.usdt && bind.sites[0].site.args && set.sites[0].semaphore);
	CHECK(bind_probes(PROBES({ FAILURE("a"), .provider = "dbslower",
				   .probe = "none" })) == -ENOENT);
	CHECK(!strcmp(error.detail, "none"), "%s", error.detail);
}

#define ROWS(...)	{ FAILURE("a"), FIRST, .args = ENGINE_ARGS(__VA_ARGS__) }

static void arguments(void)
{
	/* The first row that can be resolved; a fallback is not known. */
	CHECK(!bind_probes(PROBES(ROWS({ .name = "arg_rows", .spec = "8@none(%ip)" },
				       { .name = "arg_rows", .spec = "8@%arg0" }))));
	CHECK(bind.has == TARGET_HAS_ROWS, "%x", bind.has);
	CHECK(!bind_probes(PROBES(ROWS({ .name = "arg_rows", .spec = "8@none(%ip)" }))));
	CHECK(!bind.has, "%x", bind.has);
	CHECK(!bind_probes(PROBES(ROWS({ .name = "arg_rows", .spec = "8@%arg0",
					 .only_with = "bind_test_missing" },
				       { .name = "arg_rows" }))));
	CHECK(!bind.has, "%x", bind.has);
	/* A function has no numbered arguments. */
	CHECK(!bind_probes(PROBES(ROWS({ .name = "arg_rows", .probe_arg = 1 }))));
	CHECK(!bind.has, "%x", bind.has);
	/* The probe's row wins over the engine's. */
	CHECK(!bind_sets(PROBES(ROWS({ .name = "arg_user" })), NULL,
			 ENGINE_ARGS({ .name = "arg_host", .spec = "8@%arg1" },
				     { .name = "arg_user", .spec = "8@%arg0" }), 0));
	CHECK(bind.has == TARGET_HAS_CLIENT, "%x", bind.has);
}

/* Without a fallback the probe is not used, but another one for its step. */
static void indispensable(void)
{
#define NEEDED	ENGINE_ARGS({ .name = "arg_text", .spec = "8@none(%ip)", .fallback = -1 })
	CHECK(!bind_probes(PROBES({ FAILURE("a"), FIRST, .args = NEEDED },
				  { FAILURE("a"), SECOND })));
	CHECK(set.nsites == 1 && site_is(0, functions[1]));
	CHECK(!bind_probes(PROBES({ FAILURE("a"), FIRST },
				  { FAILURE("b"), SECOND, .args = NEEDED, .optional = true })));
	CHECK(set.nsites == 1 && site_is(0, functions[0]));
	CHECK(bind_probes(PROBES({ FAILURE("a"), FIRST, .args = NEEDED })) == -ENOTSUP);
	CHECK(error.kind == ERROR_NO_PROBES &&
	      !strcmp(error.detail, "a known place of the statement's text"), "%s", error.detail);
}

static void broken(void)
{
	/* A program that the object lacks, and one that lacks an argument. */
	CHECK(bind_probes(PROBES({ .step = "a", .program = "none", FIRST })) == -ENOENT);
	CHECK(error.kind == ERROR_LINK && !strcmp(error.subject, "none"), "%s", error.subject);
	CHECK(bind_probes(PROBES({ .step = "a", .program = "activity", FIRST })) == -ENOENT);
	CHECK(error.kind == ERROR_LINK && !strcmp(error.subject, "arg_text"), "%s",
	      error.subject);
	/* An accessor that the file lacks. */
	CHECK(!bind_probes(PROBES(ROWS({ .name = "arg_rows",
					 .spec = "8@{bind_test_missing}(%arg0)" }))));
	CHECK(!bind.has, "%x", bind.has);
}

int main(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const char *name;
	uint64_t at = 0;

	selfprobe_start("", 0);
	selfprobe_done(0);
	for (size_t i = 0; i < 2; i++)
		functions[i]();
	if (fd < 0 || elf_map_open(&file, fd, NULL) ||
	    object_open(&object, bpf_statement, (size_t)(bpf_statement_end - bpf_statement)))
		return 1;
	close(fd);
	while (nvalues < VALUES && (name = object_undefined(&object, &at)))
		values[nvalues++] = (struct object_value){ .name = name };
	RUN(alternatives);
	RUN(required);
	RUN(only_with);
	RUN(asked);
	RUN(probe_sets);
	RUN(usdt);
	RUN(arguments);
	RUN(indispensable);
	RUN(broken);
	uprobe_set_free(&set);
	elf_map_close(&file);
	return check_done();
}
