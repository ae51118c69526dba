# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""trace -p with a main process: which of its children count, compared with what they print."""

import os
import subprocess

import pytest

from test_breakdown import NO_TYPES
from test_trace import Probed, Trace, build, trace		# noqa: F401
from tool import FIXTURES, Tool

MAIN = os.path.join(FIXTURES, "forks.c")
SELF, OLD, NEW, OTHER = 1, 2, 3, 4		# who calls, see the fixture


@pytest.fixture(scope="module")
def forks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forks")
    build(folder, "-shared", "-fPIC", "-DLIBRARY", "-o", "libforks.so", MAIN)
    for name, *flags in (("main",), ("other", "-DOTHER")):
        build(folder, *flags, "-o", name, MAIN, "-L.", "-lforks", f"-Wl,-rpath,{folder}")
    return folder


def calls(lines, *wanted):
    """(PID, N) of the calls with these N that the fixture printed."""
    found = [tuple(map(int, line.split()[1:])) for line in lines if line.startswith("work")]
    return [call for call in found if call[1] in wanted]


def hits(traced):
    return [(hit["pid"], hit["args"][0]) for hit in traced.hits]


def test_children_of_a_main_process(trace, forks):		# noqa: F811
    one, other = Probed(forks / "main", [forks / "other"]), Probed(forks / "main", [forks / "other"])
    ways = [trace("-p", one.pid, "forks_work arg1", "--json"), trace("-p", one.pid, "--count", "forks_work pid", "--json")]
    lines = one() + one()
    other()
    want = calls(lines, SELF, OLD, NEW)
    ways[0].wait_for(lambda tool: len(tool.hits) >= len(want), what="the calls")
    for traced in ways:
        traced.ended()
    one.close(), other.close()
    assert len(want) == 6 and calls(lines, OTHER) and hits(ways[0]) == want, ways[0].said()
    counts = {hit["args"][0]: hit["count"] for hit in ways[1].objects() if hit["type"] == "hit_count"}
    assert counts == {pid: sum(one == pid for one, _ in want) for pid, _ in want}, ways[1].said()


def test_child_is_traced_alone(trace, forks):			# noqa: F811
    one = Probed(forks / "main")
    (old,) = subprocess.run(["pgrep", "-P", str(one.pid)], capture_output=True, text=True, check=True).stdout.split()
    traced = trace("-p", old, "forks_work arg1", "--json")
    lines = one()
    traced.wait_for(lambda tool: tool.hits, what="the call")
    traced.ended()
    one.close()
    assert hits(traced) == calls(lines, OLD), traced.said()


def test_without_types_of_the_kernel(tool, forks):
    """Those that exist are known, and that later ones are not is reported."""
    one = Probed(forks / "main", [forks / "other"])
    traced = tool("trace", "-p", one.pid, "forks_work arg1", "--json", kind=Trace, wrap=NO_TYPES)
    lines = one()
    traced.wait_for(lambda tool: len(tool.hits) >= 2, what="the calls")
    traced.ended()
    one.close()
    assert hits(traced) == calls(lines, SELF, OLD), traced.said()
    assert f"dbslower: process {one.pid}: processes that it forks from now on are not traced; " in traced.stderr


def test_backends_of_a_postmaster(trace, clusters):		# noqa: F811
    cluster, other = clusters(name="backends"), clusters(name="others")
    with cluster.connect() as before:
        traced = trace("-p", cluster.pid, "pg_parse_query arg1:s", "--json")
        before.execute("select 'before'")
        other.psql("select 'other'")
        cluster.psql("select 'after'")
        pid = before.info.backend_pid
        traced.wait_for(lambda tool: any(hit["args"][0] == "select 'after'" for hit in tool.hits), what="the statement")
    traced.ended()
    seen = {(hit["args"][0], hit["pid"] == pid) for hit in traced.hits if hit["args"][0].startswith("select '")}
    assert seen == {("select 'before'", True), ("select 'after'", False)}, traced.said()
