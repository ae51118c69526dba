# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""trace -U, compared with the return addresses that the traced program knows."""

import os
import signal

import pytest

from requirements import need_root
from test_trace import WAYS, Probed, build, said, trace		# noqa: F401
from tool import FIXTURES, run

MAIN = os.path.join(FIXTURES, "stacks.c")
FRAMES = ("-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """pie and fixed, with a library that has exported symbols only."""
    path = tmp_path_factory.mktemp("stacks")
    build(path, *FRAMES, "-shared", "-fPIC", "-s", "-DLIBRARY", "-o", "libstacks.so", MAIN)
    for name, *flags in (("pie", "-pie", "-fPIE"), ("fixed", "-no-pie", "-fno-pie")):
        build(path, *FRAMES, *flags, "-o", name, MAIN, "-L.", "-lstacks", f"-Wl,-rpath,{path}")
    return path


def frames(lines, name):
    (stack,) = said(lines, "stack")
    return [f"{frame} ({name})" for frame in stack.split()]


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_stacks(trace, folder, way):		# noqa: F811
    one, other = Probed(folder / "pie"), Probed(folder / "fixed")
    call = trace("-U", *way, folder / "libstacks.so", "stacks_leaf", "--json")
    wanted = {one.pid: frames(one(), "pie"), other.pid: frames(other(), "fixed")}
    call.wait_for(lambda tool: len(tool.hits) == 2, what="the calls")
    call.ended()
    # Only now: the kernel replaces return addresses, and the program would print those.
    back = trace("-U", *way, "-p", one.pid, "--latency", "stacks_leaf", "--json")
    one()
    back.wait_for(lambda tool: tool.hits, what="the return")
    back.ended()
    one.close(), other.close()
    for hit in call.hits:
        assert hit["stack"][:4] == ["stacks_leaf+0x0 (libstacks.so)", *wanted[hit["pid"]]], call.said()
        assert hit["stack"][4].endswith(" (libc.so.6)"), call.said()
    assert [hit["stack"][:3] for hit in back.hits] == [wanted[one.pid]], back.said()


def test_stack_as_text(trace, folder):		# noqa: F811
    one = Probed(folder / "pie")
    traced = trace("-U", "-p", one.pid, "stacks_leaf")
    lines = one()
    traced.wait_for(lambda tool: "main" in tool.stdout, what="the stack")
    traced.ended()
    one.close()
    assert traced.stdout.splitlines()[2:6] == [f"{'':8}{frame}" for frame in
                                               ("stacks_leaf+0x0 (libstacks.so)", *frames(lines, "pie"))], traced.said()


def test_process_that_is_gone(trace, folder):		# noqa: F811
    """Its maps cannot be read any more: there are only addresses."""
    one = Probed(folder / "pie")
    traced = trace("-U", "-p", one.pid, "stacks_leaf", "--json")
    traced.pause()
    one()
    one.close()
    traced.process.send_signal(signal.SIGCONT)
    traced.wait_for(lambda tool: tool.hits, what="the call")
    traced.ended()
    (hit,) = traced.hits
    assert len(hit["stack"]) > 4 and all(int(frame, 16) for frame in hit["stack"]), traced.said()


def test_refused(folder):
    need_root()
    done = run("trace", "-U", "--count", folder / "pie", "main")
    assert done.returncode == 2 and "-U: cannot be combined" in done.stderr and not done.stdout, done
