# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that replace their code by a copy, to have huge pages for it: tests/fixtures/hugify.c. Probes are not in the copy."""

import os
import re
import signal
import subprocess
import time

import pytest

from cluster import wait_for
from mysql_fixture import SERVERS, Fixture
from requirements import need_root
from statements import stopped
from test_trace import Probed, build, trace		# noqa: F401
from tool import FIXTURES, refused, run
from user_engine import PROBES

CAUSE = "its code is not mapped from its file"
YOUNG = "it may copy its code in its first minute"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """app, for trace; plain/mysqld and bolt/mysqld, which has a symbol of BOLT's runtime."""
    folder = tmp_path_factory.mktemp("copied")
    hugify = os.path.join(FIXTURES, "hugify.c")
    build(folder, "-rdynamic", "-pthread", "-o", "app", os.path.join(FIXTURES, "latency.c"), hugify)
    source, options = SERVERS["mysql8"]
    for name, more in (("plain", []), ("bolt", ["-DBOLT"])):
        (folder / name).mkdir()
        build(folder, *options, *more, "-rdynamic", "-o", f"{name}/mysqld", os.path.join(FIXTURES, source), hugify)
    build(folder, "-DBOLT", "-rdynamic", "-o", "memsqld", os.path.join(FIXTURES, "memsqld.c"), hugify)
    return folder


def is_copied(pid, path):
    with open(f"/proc/{pid}/maps") as maps:
        return not any(line.split()[1:2] == ["r-xp"] and line.rstrip().endswith(str(path)) for line in maps)


def catches(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"^SigCgt:\s+(\w+)$", status.read(), re.M)[1], 16) >> (signal.SIGUSR1 - 1) & 1


def copy(pid, path):
    wait_for(lambda: catches(pid), what="the handler of the signal")
    os.kill(pid, signal.SIGUSR1)
    wait_for(lambda: is_copied(pid, path), what="the copy")


def described(traced, path):
    """The lines that name the file."""
    return [line for line in traced.stderr.splitlines() if str(path) in line]


# --- trace

@pytest.fixture
def apps(programs):
    """Two processes, the first of which has copied its code."""
    need_root()
    both = [Probed(programs / "app"), Probed(programs / "app")]
    copy(both[0].pid, programs / "app")
    yield both
    for one in both:
        one.close()


@pytest.mark.parametrize("words", [["work_nest"], ["FILE:work_nest"], ["--latency", "work_nest"], ["*:work_nest"]], ids=" ".join)
def test_selected_process(apps, words):
    words = [word.replace("FILE", apps[0].path) for word in words if not word.startswith("*")] or ["work_*"]
    refused(run("trace", "-p", apps[0].pid, *words), rf"{apps[0].path}: {CAUSE} \(pid {apps[0].pid}\); ")


@pytest.mark.parametrize("selected", [False, True], ids=["all", "pids"])
def test_others_are_traced(apps, trace, selected):		# noqa: F811
    traced = trace(*(["-p", f"{apps[0].pid},{apps[1].pid}"] if selected else []), f"{apps[0].path}:work_nest", "--json")
    for one in apps:
        one()
    traced.wait_for(lambda tool: len(tool.hits) >= 6, what="the hits")
    traced.ended()
    assert {hit["pid"] for hit in traced.hits} == {apps[1].pid}, traced.said()
    (line,) = [line for line in traced.stderr.splitlines() if CAUSE in line]
    assert f"(pid {apps[0].pid})" in line, traced.said()


def test_library_of_a_copied_program(apps, trace):		# noqa: F811
    """It is where it was."""
    traced = trace("-p", apps[0].pid, "p:c:usleep", "--json")
    apps[0]()
    traced.wait_for(lambda tool: tool.hits, what="a hit")
    traced.ended()
    assert CAUSE not in traced.stderr, traced.said()


# --- servers

@pytest.fixture
def server():
    """server(PATH, copied=False) runs one."""
    need_root()
    running = []

    def start(path, copied=False):
        running.append(Fixture(path))
        if copied:
            copy(running[-1].pid, path)
        return running[-1]

    yield start
    for one in running:
        one.end()


@pytest.mark.alone
def test_server_of_which_another_one_copies(programs, server, tool):
    path = programs / "plain" / "mysqld"
    copies, other = server(path, True), server(path)
    traced = tool("mysql", "-m", "0", "--json")
    copies.script()
    wanted = other.script()
    stopped(traced)
    lines = described(traced, path)
    (tracing,) = [line for line in lines if "dbslower: tracing " in line]
    (message,) = [line for line in lines if CAUSE in line]
    assert f", pid {other.pid}, " in tracing and f"(pid {copies.pid})" in message, traced.said()
    seen = [one for one in traced.statements if one["server"].get("path", str(path)) == str(path) and one["pid"] in (copies.pid, other.pid)]
    assert {one["pid"] for one in seen} == {other.pid} and len(seen) == len(wanted), traced.said()


@pytest.mark.parametrize("command", [["slow"], ["top", "--batch"], ["stat"]], ids=" ".join)
def test_server_of_a_pid(programs, server, command):
    path = programs / "plain" / "mysqld"
    one = server(path, True)
    refused(run(*command, "-p", one.pid), rf"{path}: {CAUSE} \(pid {one.pid}\); ")
    assert len(one.script()) > 6, "it still runs"


@pytest.mark.parametrize("selected", [True, pytest.param(False, marks=pytest.mark.alone)], ids=["path", "all"])
def test_file_without_another_server(programs, server, tool, selected):
    """It is said that nothing is traced now; the next server is, whoever runs the copies."""
    path = programs / "plain" / "mysqld"
    one = server(path, True)
    traced = tool(*(("-x", path) if selected else ("mysql",)), "-m", "0", "--json")
    (tracing,) = [line for line in described(traced, path) if "dbslower: tracing " in line]
    assert "; no process that runs it is traced" in tracing and ", pid " not in tracing, traced.said()
    assert any(f"{CAUSE} (pid {one.pid})" in line for line in described(traced, path)), traced.said()
    later = server(path)
    wanted = later.script()
    traced.wait_for(lambda tool: len([found for found in tool.statements if found["pid"] == later.pid]) == len(wanted), what="its statements")
    assert traced.stop() == 0, traced.said()


@pytest.fixture
def aged(tmp_path):
    """aged(PID, SECONDS): a command that runs another one, for which the process is so old."""
    need_root()

    def wrap(pid, seconds):
        with open(f"/proc/{pid}/stat") as stat:
            name, _, fields = stat.read().rpartition(")")
        fields = fields.split(" ")
        fields[20] = str(int((time.clock_gettime(time.CLOCK_BOOTTIME) - seconds) * os.sysconf("SC_CLK_TCK")))	# the 22nd
        path = tmp_path / f"stat{pid}"
        path.write_text(f"{name}){' '.join(fields)}")
        return ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                f'mount --bind {path} /proc/{pid}/stat && "$@"; exit $?', "sh"]
    return wrap


WAYS = [pytest.param(["mysql"], marks=pytest.mark.alone), ["-p", "PID"], ["-x", "PATH"]]


@pytest.mark.parametrize("words", WAYS, ids=" ".join)
@pytest.mark.parametrize("age", [0, 40])
def test_young_server(programs, server, aged, tool, words, age):
    """It is named and not attached to: it copies its code and runs on."""
    path = programs / "bolt" / "mysqld"
    one = server(path)
    words = [word.replace("PID", str(one.pid)).replace("PATH", str(path)) for word in words]
    waits = tool(*words, "-m", "0", "--json", attached=False, wrap=aged(one.pid, age))
    waits.wait_for(lambda tool: any(f"{YOUNG}" in line and f"(pid {one.pid})" in line for line in described(tool, path)),
                   what="the message")
    time.sleep(4)
    copy(one.pid, path)
    assert len(one.script()) > 6, "it has ended"
    waits.stop()
    assert not any("dbslower: tracing " in line for line in described(waits, path)), waits.said()
    assert sum(YOUNG in line for line in waits.stderr.splitlines()) == 1, waits.said()


@pytest.mark.parametrize("words", WAYS, ids=" ".join)
@pytest.mark.parametrize("age", [50, 61])
def test_old_server(programs, server, aged, tool, words, age):
    """It is traced once it is a minute old."""
    path = programs / "bolt" / "mysqld"
    one = server(path)
    words = [word.replace("PID", str(one.pid)).replace("PATH", str(path)) for word in words]
    traced = tool(*words, "-m", "0", "--json", attached=False, wrap=aged(one.pid, age))
    traced.wait_for(lambda tool: any("dbslower: tracing " in line and f", pid {one.pid}, " in line for line in described(tool, path)),
                    what="the server to be traced")
    wanted = one.script()
    traced.wait_for(lambda tool: len([s for s in tool.statements if s["pid"] == one.pid]) >= len(wanted), what="the statements")
    traced.stop()
    assert [s["query"] for s in traced.statements if s["pid"] == one.pid] == [s["query"] for s in wanted], traced.said()
    assert any(YOUNG in line for line in described(traced, path)) == (age < 60), traced.said()


@pytest.mark.parametrize("select", ["-p", "-x"])
def test_old_server_of_probes_that_are_named(programs, aged, tool, select):
    """As others are, though its kind is not known."""
    need_root()
    path = programs / "memsqld"
    with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        try:
            which = one.pid if select == "-p" else path
            traced = tool(select, which, *PROBES, "-m", "0", "--json", attached=False, wrap=aged(one.pid, 50))
            traced.wait_for(lambda tool: any(YOUNG in line for line in described(tool, path)), what="the message")
            traced.wait_for(lambda tool: any("dbslower: tracing " in line for line in described(tool, path)), what="the server to be traced")
            one.stdin.write(b"\n")
            one.stdin.flush()
            traced.wait_for(lambda tool: len(tool.statements) == 2, what="the statements")
            traced.stop()
        finally:
            one.kill()


@pytest.mark.alone
def test_server_that_starts_later(programs, server, tool):
    """It is seen when it is executed, by a process that is much older."""
    path = programs / "bolt" / "mysqld"
    found = tool("mysql", "-m", "0", "--json", attached=False)
    wait_for(lambda: found.err.lines, what="a first line")
    one = server(path)
    found.wait_for(lambda tool: any(YOUNG in line and f"(pid {one.pid})" in line for line in described(tool, path)), what="the message")
    copy(one.pid, path)
    assert len(one.script()) > 6, "it has ended"
    found.stop()
    assert not any("dbslower: tracing " in line for line in described(found, path)), found.said()


def test_started_while_traced(programs, tool):
    """What docs/security.md warns of: a breakpoint that was copied ends the process."""
    need_root()
    path = programs / "plain" / "mysqld"
    tool("-x", path, "-m", "0", "--json")
    with subprocess.Popen([path], env={**os.environ, "HUGIFY": "start"}, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as one:
        one.stdin.write(b"\n")
        one.stdin.flush()
        assert one.wait(60) == -signal.SIGTRAP
