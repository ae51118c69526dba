# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The probes of tests/fixtures/memsqld.c and tests/kernel/guest/victim.c, as a user names them."""

PROBES = ("--start", "memsqld:query__start", "--done", "memsqld:query__done", "--text-arg", "2")
