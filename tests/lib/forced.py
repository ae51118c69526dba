# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The end-to-end tests that do not apply to what an old release lacks: with FORCE=linux-5.4 they are left out."""

import fnmatch

from fallbacks import lacks
from tool import FORCE

OUT = [		# pattern of file::test, the release that has what it tests, the reason
    ("test_postgres.py::test_text_limit?65536*", (5, 8), "texts of that length require a ring buffer"),
    ("test_fallbacks.py::test_probe_read_calls_no_newer_helper", (5, 5), "it compares with the newer helpers"),
    ("test_fallbacks.py::test_release_forces_what_is_newer", (6, 6), "it forces releases itself"),
    ("test_old_kernels.py::*", (6, 6), "it answers as an old kernel instead"),
    ("test_hostile_locks.py::test_storm", (5, 8), "a burst of one CPU does not fit into its perf buffer"),
    ("test_architectures.py::*", (6, 6), "nothing is traced"),
    ("test_isolation.py::test_flooded_buffer_is_of_its_user", (5, 8), "the users share a perf buffer"),
    ("test_ghosts.py::test_table_of_waits_is_not_of_one_user*", (5, 8), "the users share a perf buffer"),
    ("test_ghosts.py::test_many_waits_do_not_delay_those_of_others", (5, 8), "the users share a perf buffer"),
    ("test_misuse.py::test_usage*", (6, 6), "an option without its value takes --force for that"),
    ("test_namespaces.py::test_one_of_them", (5, 7), "the kernel does not translate PIDs for programs"),
    ("test_namespaces.py::test_tool_in_a_container", (5, 7), "the kernel does not translate PIDs for programs"),
    ("test_namespaces.py::test_tool_in_a_pid_namespace*", (5, 7), "the kernel does not translate PIDs for programs"),
    ("test_namespaces.py::test_server_in_a_namespace_below_the_tools", (5, 7), "the kernel does not translate PIDs for programs"),
    ("test_slots.py::test_statement_that_ran_before", (5, 8), "there are no slots without a ring buffer"),
    ("test_slots.py::test_server_that_is_killed", (5, 8), "there are no slots without a ring buffer"),
]


def not_under_force(item):
    """Return whether @item does not apply to what FORCE forces."""
    name = f"{item.path.name}::{item.name}"
    return bool(FORCE) and any(fnmatch.fnmatchcase(name, pattern) and lacks([], release) for pattern, release, _ in OUT)
