/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Server files: probe selection and linking, up to the programs that would be loaded. Input: a byte
 * that selects the engine, a user-defined one after the known ones, then the file. Nothing is
 * loaded into the kernel.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/embed.h"
#include "db/engines.h"
#include "db/discover/user_engine.h"
#include "db/discover/target.h"
#include "tests/fuzz/fuzz.h"

static void check_plan(const struct uprobe_set *set, const struct target *target, size_t size)
{
	REQUIRE(set->ngroups && set->nsites);
	for (uint32_t i = 0; i < set->nsites; i++)
		REQUIRE(set->sites[i].offset < size && set->sites[i].semaphore < size &&
			set->sites[i].group < set->ngroups);
	for (uint32_t i = 0; i < set->ngroups; i++)
		REQUIRE(set->groups[i].count && set->groups[i].count <= OBJECT_INSNS_MAX);
	REQUIRE(memchr(target->version, '\0', sizeof(target->version)) &&
		describe_title(target->engine, target->version));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct user_engine user_engine;
	static struct runtime runtime;
	static size_t nengines;
	struct input in = { data, size };
	size_t which = input_byte(&in);
	struct target_common common = { .runtime = &runtime };
	struct error error = { 0 };
	struct target target;
	struct uprobe_set set;
	int fd, err;

	if (!nengines) {
		REQUIRE(!runtime_open_offline(&runtime, bpf_statement, bpf_statement_end));
		while (engine_table[nengines])
			nengines++;
		REQUIRE(!user_engine_init(&user_engine, "app:query__start", "app:query__done", 1));
	}
	fd = memfd_create("server", MFD_CLOEXEC);
	REQUIRE(fd >= 0 && write(fd, in.at, in.left) == (ssize_t)in.left);
	which %= nengines + 1;
	err = target_prepare(&target, &(struct target_file){
		.engine = which < nengines ? engine_table[which] : &user_engine.engine,
		.fd = fd, .path = "/a/file",
	}, &common, &set, &error);
	REQUIRE(err <= 0 && !err == !error.kind, "%d %d", err, error.kind);
	/* Errors are those of the file: the object of the BPF programs is complete. */
	REQUIRE(error.kind != ERROR_LINK, "%s %s", error.subject, error.detail);
	if (!err)
		check_plan(&set, &target, in.left);
	uprobe_set_free(&set);
	error_clear(&error);
	close(fd);
	return 0;
}
