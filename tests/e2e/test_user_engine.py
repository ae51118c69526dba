# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A server without built-in support: the user names the probes around its statements."""

import os
import re
import signal
import shutil
import subprocess

import pytest

from statements import only, stopped, with_tag
from tool import DBSLOWER, FIXTURES, VICTIM, Stat, Tool, parsed, run
from user_engine import PROBES

FIXTURE = os.path.join(FIXTURES, "memsqld.c")


@pytest.fixture(scope="module")
def memsqld(tmp_path_factory):
    path = tmp_path_factory.mktemp("memsqld") / "memsqld"
    subprocess.run(["gcc", "-O2", "-o", path, FIXTURE], check=True)
    with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"

        def work():
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"
        work.path, work.pid = str(path), process.pid
        yield work
        process.stdin.close()


def test_by_file(memsqld, tool):
    traced = tool("-x", memsqld.path, *PROBES, "-m", "0", "--json")
    memsqld()
    memsqld()
    stopped(traced)
    slow = with_tag(traced, "/* slow */")
    assert [one["server"]["engine"] for one in slow] == ["memsqld"] * 2, traced.said()
    assert not any("status" in one for one in slow), "no probe says whether it failed"
    assert all(one["duration_ms"] >= 20 and one["pid"] == memsqld.pid for one in slow), slow
    assert len(with_tag(traced, "/* quick */")) == 2, traced.said()


def test_by_process_and_threshold(memsqld, tool):
    traced = tool("-p", memsqld.pid, *PROBES, "10", "--json")
    memsqld()
    stopped(traced)
    only(traced, "/* slow */")
    # On a busy machine the quick one may take as long.
    assert all(one["duration_ms"] >= 10 for one in traced.statements), traced.said()
    assert traced.summary["statements"] == 2 >= traced.summary["printed"] == len(traced.statements), traced.said()


@pytest.mark.parametrize("select", ["-x", "-p"])
def test_recorded(memsqld, tmp_path, select):
    """Its lock waits are not known."""
    which = memsqld.path if select == "-x" else memsqld.pid
    with Tool("record", tmp_path / "recording", select, which, *PROBES, "-m", "0", attached=False) as record:
        record.wait_for(lambda tool: "dbslower: tracing" in tool.stderr, what="its start")
        memsqld()
        assert record.stop() == 0, record.said()
    shown = parsed(run("replay", tmp_path / "recording", "-m", "0", "--json").stdout.splitlines())
    assert ["/* slow */" in one["query"] for one in shown if one["type"] == "statement"] == [True, False], shown


@pytest.mark.parametrize("args,status,word", [
    (["--start", "memsqld:query__start"], 2, "requires --done"),
    (["--start", "memsqld:query__start", "--done", "memsqld:query__done"], 2, "requires --done"),
    (["--start", "query__start", "--done", "memsqld:query__done", "-x", "/bin/true"], 2, "not a probe name"),
    (["--start", "a" * 64 + ":start", "--done", "memsqld:query__done", "-x", "/bin/true"], 2, "too long"),
    ([*PROBES, "--text-arg", "13", "-x", "/bin/true"], 2, "not an argument number"),
    ([*PROBES, "-x", "/bin/true"], 1, "query__"),
    (["postgres", *PROBES, "-x", "/bin/true"], 2, "cannot be combined with a database"),
])
def test_refused(args, status, word):
    done = subprocess.run([DBSLOWER, *args], capture_output=True, text=True, timeout=60)
    assert done.returncode == status and word in done.stderr, done.stderr


def test_argument_that_is_not_there(memsqld):
    done = subprocess.run([DBSLOWER, "-x", memsqld.path, *PROBES[:4], "--text-arg", "9"], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 1 and "cannot be traced" in done.stderr, done.stderr


def test_server_that_forks(postgres, clusters, tool):
    """-p with a main process selects those that it has forked, and will fork; not those of another server of the same file."""
    other = clusters(postgres=postgres.postgres, name="other")
    with postgres.connect() as before, other.connect() as another:
        traced = tool("-p", postgres.pid, "--start", "postgresql:query__start", "--done", "postgresql:query__done", "-m", "0", "--json")
        another.execute("select 'of another server'")
        before.execute("select 'before'")
        with postgres.connect() as after:
            after.execute("select 'after'")
            pids = [before.info.backend_pid, after.info.backend_pid]
        stopped(traced)
    shown = [one for one in traced.statements if re.search("before|after|another", one["query"])]
    assert [one["pid"] for one in shown] == pids, traced.said()


def test_start_without_arguments(memsqld, tool):
    """The probe at a statement's end has none: from there to the next statement."""
    probes = ("-x", memsqld.path, "--start", "memsqld:query__done", "--done", "memsqld:query__start", "--json")
    stat, slow = tool("stat", *probes, kind=Stat), tool(*probes, "-m", "0")
    for _ in range(3):
        memsqld()
    slow.wait_for(lambda tool: len(tool.statements) == 5, what="the pairs")
    assert slow.stop() == stat.stop() == 0, slow.said()
    assert "text_unreadable" not in slow.lost() and not any("query" in one for one in slow.statements), slow.said()
    assert [one["count"] for one in stat.histograms] == [5], stat.said()


def test_fifo_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    done = subprocess.run([DBSLOWER, "-x", tmp_path / "fifo"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "not an ELF file" in done.stderr, done.stderr


def test_burst_balances(tool, tmp_path):
    """More than the ring holds while the tool is stopped: each one is shown or counted, once."""
    victim = shutil.copy(VICTIM, tmp_path)
    with subprocess.Popen([victim], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        traced = tool("-x", victim, *PROBES, "-m", "0", "--json")
        traced.pause()
        process.stdin.write("burst 3000\n")
        process.stdin.flush()
        # At its start, and after the burst. It lives on, as its end has a record, too.
        assert [process.stdout.readline() for _ in range(2)] == ["end\n"] * 2
        traced.process.send_signal(signal.SIGCONT)
        assert traced.stop() == 0, traced.said()
    lost = traced.lost()
    assert set(lost) == {"ring_full"} and len(traced.statements) + lost["ring_full"] == 3000, traced.said()
    assert traced.summary["statements"] == 3000
