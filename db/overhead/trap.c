// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "db/overhead/trap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "db/selftest/selfprobe.h"
#include "host/clock.h"
#include "host/elf_map.h"
#include "usdt/note.h"

#define HITS	32		/* of one measurement .. */
#define TRIES	41		/* .. of which the median counts: some are interrupted */

static const char self_path[] = "/proc/self/exe";

static const struct bpf_insn nothing[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
	{ .code = BPF_JMP | BPF_EXIT },
};

/* Find the site of self__done in the file of this process. Return 0 or -errno. */
static int trap_site(int fd, uint64_t *offset)
{
	struct usdt_note_iter iter;
	struct usdt_site site;
	struct elf_map map;
	int err = elf_map_open(&map, fd, NULL);

	if (err)
		return err;
	err = -ENOENT;
	if (!usdt_notes(&map.elf, &iter))
		while (err && usdt_note_next(&iter, &site))
			if (!strcmp(site.name, "self__done")) {
				*offset = site.offset;
				err = 0;
			}
	elf_map_close(&map);
	return err;
}

/* Return the time of HITS hits, in ns. */
static uint64_t trap_time(void)
{
	uint64_t ns[TRIES] = { 0 };

	for (int i = 0; i < TRIES; i++) {
		uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC), took_ns;
		int at = i;

		for (int hit = 0; hit < HITS; hit++)
			selfprobe_done(0);
		took_ns = clock_ns(CLOCK_MONOTONIC) - begin_ns;
		for (; at && ns[at - 1] > took_ns; at--)
			ns[at] = ns[at - 1];
		ns[at] = took_ns;
	}
	return ns[TRIES / 2];
}

int trap_measure(struct runtime *rt, uint64_t *ns, struct error *error)
{
	int fd = open(self_path, O_RDONLY | O_CLOEXEC), err = fd < 0 ? -errno : 0;
	struct uprobe_links links = { 0 };
	struct uprobe_set set = { 0 };
	struct uprobe_site site = { 0 };
	uint64_t without_ns = trap_time(), with_ns;

	if (!err)
		err = trap_site(fd, &site.offset);
	if (err) {
		error_set(error, ERROR_FILE, err, self_path, NULL);
		goto cleanup;
	}
	err = uprobe_set_add(&set, "trap", nothing, sizeof(nothing) / sizeof(*nothing), &site);
	if (err) {
		error_set(error, ERROR_MEMORY, err, NULL, NULL);
		goto cleanup;
	}
	err = runtime_attach(rt, &set, &(struct uprobe_file){ "trap", fd, self_path }, &links,
			     error);
	if (err)
		goto cleanup;
	with_ns = trap_time();
	uprobe_set_detach(&links);
	*ns = with_ns > without_ns ? (with_ns - without_ns) / HITS : 0;
cleanup:
	uprobe_set_free(&set);
	if (fd >= 0)
		close(fd);
	return err;
}
