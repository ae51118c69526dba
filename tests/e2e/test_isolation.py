# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What an unprivileged user's process can do to what is reported about another process: nothing."""

import os
import shutil
import signal

import pytest

import intruder
import wire
from backends import Backends
from backends import build as build_backends
from cluster import wait_for
from commanded import as_user, reveal
from intruder import Intruder

pytestmark = pytest.mark.alone

SESSIONS = 70000	# more than the table has
FLOOD = 2000		# of 4000 bytes: more than the buffer has


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return intruder.build(tmp_path_factory.mktemp("intruder"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The simulated server of user root that is to be reported correctly."""
    return build_backends(tmp_path_factory.mktemp("victim"))


def of(traced, process):
    return [one for one in traced.statements if one["pid"] == process.pid]


def lost_by(traced, uid):
    """Return the losses of @uid, {} if there are none."""
    found = [one for one in traced.summary.get("lost_by_user", []) if one["uid"] == uid]
    return found[0] if found else {}


@pytest.mark.parametrize("attack", ["close", "command", "begin"])
def test_session_of_another_process(postgres, tool, program, attack):
    """Statements of a backend are reported while another process passes an object with the backend's key."""
    connection, holder = wire.Wire(postgres, "by hand"), postgres.connect()
    holder.execute("select pg_advisory_lock(79)")
    with Intruder(program) as other:
        traced = tool("slow", "-m", "0", "--json", "-p", f"{postgres.pid},{other.pid}")
        connection.send(wire.simple("select pg_advisory_lock(79) /* attacked */"))
        query = "select pid from pg_stat_activity where wait_event = 'advisory' and application_name = 'by hand'"
        backend = int(wait_for(lambda: postgres.psql(query).stdout.strip(), what="the statement to wait"))
        for _ in range(3):
            other.do(f"{attack} {other.object_of(backend):x}")
        holder.close()
        connection.until(b"Z")
        connection.send(wire.simple("select 2 /* attacked later */"))
        connection.until(b"Z")
        assert traced.stop() == 0
    found = [(one["pid"], one["query"], one["user"], one["database"]) for one in traced.statements
             if one["server"]["engine"] == "postgresql" and "attacked" in (one["query"] or "")]
    assert found == [(backend, f"select {what} */", "postgres", "postgres")
                     for what in ("pg_advisory_lock(79) /* attacked", "2 /* attacked later")], traced.said()
    assert not [one for one in traced.statements if one["pid"] == backend and one["server"]["engine"] != "postgresql"]
    connection.close()


def test_threads_of_other_processes_are_not_ignored(postgres, tool, program):
    """A process that is not selected passes objects with the keys of threads that do not exist yet."""
    with Intruder(program) as selected, Intruder(program) as other:
        traced = tool("slow", "-m", "0", "--json", "-p", f"{postgres.pid},{selected.pid}")
        with open("/proc/sys/kernel/ns_last_pid") as f:
            last = int(f.read())
        for tid in range(last, last + 500):
            other.do(f"begin {other.object_of(tid):x}")
        for number in range(6):
            postgres.psql(f"select {number} /* new connection */")
        assert traced.stop() == 0
    assert sum("/* new connection */" in (one["query"] or "") for one in traced.statements) == 6, traced.said()


def test_full_table_is_of_its_user(tool, program, server):
    """New sessions of a server are reported after another user's process has opened all it can."""
    with Backends(server) as victim, Intruder(program) as other:
        traced = tool("slow", "-m", "0", "--json", "-p", f"{victim.pid},{other.pid}")
        other.do(f"begin 100000 {SESSIONS}")
        victim.do("threads 300 select 1")
        victim.do("leave 0 -")
        traced.stop()
        assert len(of(traced, victim)) == 300, traced.said()
        assert traced.summary["lost"]["table_full"] > 0, "the table was not filled"
        assert lost_by(traced, intruder.UID)["table_full"] == traced.summary["lost"]["table_full"]
        assert not lost_by(traced, 0)


def test_full_table_is_emptied(tool, program):
    """When the process that filled the table has ended, another one of its user can use it."""
    with Intruder(program) as first, Intruder(program) as second:
        traced = tool("slow", "-m", "0", "--json", "-p", f"{first.pid},{second.pid}")
        first.do(f"begin 100000 {SESSIONS}")
        first.end()

        def reported():
            second.do("close 7f0000000000 100")
            second.do("command 7f0000000000 100")
            return len(of(traced, second)) >= 100
        wait_for(reported, 120, "statements of the second one")


def test_flooded_buffer_is_of_its_user(tool, program, server):
    """The statements of a server are reported while another user's process fills the buffer."""
    with Backends(server) as victim, Intruder(program) as other:
        traced = tool("slow", "-m", "0", "--json", "-p", f"{victim.pid},{other.pid}")
        other.do("text 4000")
        traced.pause()	# it may be faster than a process that gets no CPU
        other.do(f"repeat {FLOOD}")
        os.kill(traced.pid, signal.SIGCONT)
        expected = other.flood("flood 2000", victim)
        traced.stop()
        assert lost_by(traced, intruder.UID).get("ring_full"), "the buffer was not filled"
        assert not lost_by(traced, 0), traced.said()
        assert len(of(traced, victim)) == expected, traced.said()


def test_titles_of_another_user(tool, server):
    """Process titles of a user do not decide whether the memory of another user's server is trusted."""
    reveal(server)
    title = "postgres: two words db [local] idle"	# which could be another user and database as well
    with Backends(title, executable=server) as victim, Backends(server, **as_user()) as other:
        traced = tool("slow", "-m", "0", "--json", "-p", f"{victim.pid},{other.pid}")
        other.do("threads 3 select 1")
        traced.wait_for(lambda tool: len(tool.statements) == 3, what="the other user's statements")
        victim.do("client 0 two words")
        victim.do("threads 1 select 2")
        traced.wait_for(lambda tool: len(tool.statements) == 4, what="the statement")
        traced.stop()
    assert [(one.get("user"), one.get("database")) for one in of(traced, victim)] == [("two words", "db")], traced.said()


def test_losses_of_a_server(tool, program, tmp_path):
    """Losses are of one file and user: not of another file of that user, nor of another user's processes of that file."""
    copy = shutil.copy(program, tmp_path / "mysqld")
    reveal(str(copy))
    with Intruder(program) as loser, Intruder(copy) as same_user, Intruder(program, uid=intruder.UID + 1) as same_file:
        traced = tool("slow", "-m", "0", "--json", "-p", f"{loser.pid},{same_user.pid},{same_file.pid}")
        for one in same_user, same_file:
            one.do("command 1 5")
        traced.wait_for(lambda tool: len(of(tool, same_user)) == len(of(tool, same_file)) == 5, what="the statements")
        loser.do("text 4000")
        traced.pause()
        loser.do(f"repeat {FLOOD}")
        os.kill(traced.pid, signal.SIGCONT)
        traced.stop()
    lost = lost_by(traced, intruder.UID)
    assert lost["ring_full"] == traced.summary["lost"]["ring_full"] > 0
    (row,) = traced.summary["lost_by_server"]
    assert row == {"server": {**row["server"], "engine": "mysql", "path": program}, **lost}
    # A statement is one loss, though its client is in a record of its own.
    assert len(of(traced, loser)) + lost["ring_full"] == FLOOD and "who_unknown" not in lost
    assert f"dbslower: lost by server: {program} of user ID {intruder.UID}: {lost['ring_full']}\n" in traced.stderr


def test_durations_do_not_wrap(tool, program):
    """Two threads begin and end statements of one session: no duration is longer than the test."""
    with Intruder(program) as other:
        traced = tool("slow", "-m", "0", "--json", "-p", other.pid)
        other.do("share 1000")
        traced.stop()
        assert of(traced, other)
        assert all(one["duration_ms"] < 60000 for one in of(traced, other)), \
            max(one["duration_ms"] for one in of(traced, other))
