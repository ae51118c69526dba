# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Threads of an unprivileged user that end unseen or in mid-wait, and whose number another process gets."""

import os
import subprocess

import pytest

import ghost
from backends import Backends
from backends import build as build_backends
from commanded import reveal
from fallbacks import force
from ghost import UID, Ghost
from requirements import need_root
from tool import FIXTURES, Locks

pytestmark = pytest.mark.alone

WAITS = 16384		# in the table of waits
THREADS = 4096		# in that of breakdowns, if its elements are allocated in advance
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


def test_table_of_breakdowns_is_not_of_one_user(tool, server):
    """The times of a server are broken down while another user has as many threads as the table has room for."""
    reveal(server)
    with Backends(server) as victim, Backends(server, user=UID, group=UID, extra_groups=[], cwd="/") as other:
        traced = tool("slow", "-m", "0", "--json", "--why", "-p", f"{victim.pid},{other.pid}", "--text", 64, *force("prealloc"))
        other.do(f"threads {2 * THREADS} select 'other'")
        victim.do("threads 100 select 'seen'")
        traced.stop()
    seen = [one for one in traced.statements if one["pid"] == victim.pid]
    assert len(seen) == 100 and all(one.get("why_ms") for one in seen), traced.said()
    lost = {one["uid"]: one for one in traced.summary["lost_by_user"]}
    assert lost[UID]["table_full"] and not lost.get(0), traced.said()


@pytest.fixture(scope="module")
def waits(tmp_path_factory):
    """A program whose processes wait for locks as those of PostgreSQL do."""
    path = tmp_path_factory.mktemp("waits") / "postgres"
    subprocess.run(["gcc", "-O2", "-rdynamic", "-no-pie", "-fcf-protection=none", "-o", path,
                    os.path.join(FIXTURES, "hostilelocks.c")], check=True)
    return str(path)


@pytest.mark.parametrize("attack", [f"threads {WAITS + 1000}", f"crowd {WAITS + 1000}"])
def test_table_of_waits_is_not_of_one_user(tool, program, waits, attack):
    """The waits of a server are known after threads of another user have begun any number of waits."""
    with Ghost(program, waits, "ProcSleep", 0) as victim, Ghost(program, waits, "ProcSleep") as other:
        traced = tool("locks", "--json", "-m", 0, "-x", waits, kind=Locks)
        other.do(attack)
        victim.do("crowd 100")
        traced.stop()
    assert not [one for one in traced.summary.get("lost_by_user", []) if not one["uid"]], traced.said()
    assert len([one for one in traced.running() if one["pid"] == victim.process.pid]) == 100


def test_many_waits_do_not_delay_those_of_others(tool, program, waits):
    """A burst of a server's waits is reported without loss while another user's threads wait."""
    with Ghost(program, waits, "ProcSleep") as other:
        # Both bursts fit into the buffer only if it reads meanwhile: it gets a CPU beside any other load.
        traced = tool("locks", "--json", "-m", 0, "-x", waits, kind=Locks, preexec_fn=lambda: os.nice(-10))
        other.do(f"crowd {WAITS + 1000}")
        with subprocess.Popen([waits, "storm"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as victim:
            victim.stdout.readline()
            victim.communicate("\n", 60)
        traced.stop()
    assert not [one for one in traced.summary.get("lost_by_user", []) if not one["uid"]], traced.said()
    ended = [one for one in traced.objects() if one["type"] == "lock_wait" and one["pid"] == victim.pid]
    assert len(ended) == 3000, traced.said()
