# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that replace their code by a copy, to have huge pages for it: tests/fixtures/hugify.c. Probes are not in the copy."""

import os
import re
import signal

import pytest

from cluster import wait_for
from requirements import need_root
from test_trace import Probed, build, trace		# noqa: F401
from tool import FIXTURES, refused, run

CAUSE = "its code is not mapped from its file"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """app, for trace."""
    folder = tmp_path_factory.mktemp("copied")
    hugify = os.path.join(FIXTURES, "hugify.c")
    build(folder, "-rdynamic", "-pthread", "-o", "app", os.path.join(FIXTURES, "latency.c"), hugify)
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
