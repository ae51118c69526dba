/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Probes that harm the traced program on some kernels, which is tried in a child process, and those
 * that every kernel refuses as soon as a process maps the file.
 *
 * 5-byte nops: Linux 6.18 to 7.1 (ba2bfc97b462) replaces one on which a probe is hit by a call, in
 * 64-bit programs on x86-64. The call writes its return address below the stack pointer, where a
 * leaf function has variables. Its target, a page that the kernel adds to the process, is missing
 * in a process that is forked later, which crashes at the call. At a function's start nothing is
 * below the stack pointer yet, but forked processes crash there, too.
 *
 * Returns: from Linux 6.11 on (ff474a78cef5), the function returns to code of the kernel's that
 * calls uretprobe(2). A seccomp filter may kill the process for it, unless the kernel passes it
 * through (cf6cb56ef244, Linux 6.14 and stable releases).
 */
#ifndef LOADER_HAZARD_H
#define LOADER_HAZARD_H

#include "host/filtered.h"
#include "loader/feature.h"
#include "usdt/elf.h"

/*
 * Store in @features whether the kernel lacks uprobe(2), so that it can replace no nop. Costs a
 * system call, is asked before the sandbox forbids it, and answers for servers that start later.
 */
void hazard_exclude(struct features *features);

/*
 * Return 1 if the kernel has @feature, FEATURE_SAFE_NOPS or FEATURE_SAFE_RETURNS, or 0. The first
 * call finds out: a program that does nothing is attached to this process's own file, and a child
 * executes the site, unharmed or not. Return -errno if that cannot be found out now: -EMFILE,
 * -ENOMEM, -EPERM and others; a second later it is tried again. It counts as 0, since the loss is a
 * probe, not a process.
 */
int hazard_safe(struct features *features, enum feature feature);

/*
 * Return why no probe may be placed at file offset @offset of @elf, static, or NULL. Only for a
 * nop that the kernel may replace is it asked what it does. @features may be NULL: without it, as
 * offline, every site is accepted.
 */
const char *hazard_refusal(struct features *features, const struct elf *elf, uint64_t offset);

/*
 * Return whether no return may be probed in the file open as @fd, because that may kill the
 * processes that @found names. Others may install a filter later. @features as above.
 */
bool hazard_forbids_returns(struct features *features, int fd, struct filtered *found);

#endif
