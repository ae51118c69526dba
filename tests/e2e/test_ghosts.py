# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads of an unprivileged user that lose their number unseen, and whose number another process gets."""

import os

import pytest

import ghost
from backends import Backends
from backends import build as build_backends
from ghost import Ghost
from requirements import need_root

TRIES = 100


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    need_root()
    return ghost.build(tmp_path_factory.mktemp("ghost"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    return build_backends(tmp_path_factory.mktemp("victim"))


def thread_of(victim, other, text):
    """Has @other leave a number, and @victim run the statement in a thread of that number; returns it."""
    for _ in range(TRIES):
        tid = other.execute()
        with open("/proc/sys/kernel/ns_last_pid", "w") as f:
            f.write(str(tid - 1))
        victim.do(f"threads 1 {text}")
        if os.path.exists(f"/proc/{victim.pid}/task/{tid}"):
            return tid
        victim.do("leave 0 -")
    pytest.skip("other processes took the numbers")


def test_number_of_a_thread_that_was_not_wanted(tool, program, server):
    """A backend is reported whose thread has the number of one that was not selected and executed a program."""
    with Backends(server) as victim, Ghost(program, server, "pgstat_report_activity") as other:
        traced = tool("slow", "-m", "0", "--json", "-p", victim.pid)
        tid = thread_of(victim, other, "select 'seen'")
        assert traced.stop() == 0
    found = [(one["tid"], one["query"]) for one in traced.statements if one["tid"] == tid]
    assert found == [(tid, "select 'seen'")], traced.said()


def test_number_of_a_thread_in_mid_statement(tool, program, server, tmp_path):
    """No loss is counted for a backend because of the statement of a thread that executed a program."""
    copy = build_backends(tmp_path)
    with Backends(server) as victim, Backends(copy) as idle, Ghost(program, copy, "pgstat_report_activity") as other:
        traced = tool("slow", "-m", "0", "--json", "-p", f"{victim.pid},{idle.pid}")
        tid = thread_of(victim, other, "select 'seen'")
        assert traced.stop() == 0
    assert [one["query"] for one in traced.statements if one["tid"] == tid] == ["select 'seen'"], traced.said()
    assert not [one for one in traced.summary.get("lost_by_user", []) if not one["uid"]], traced.said()
