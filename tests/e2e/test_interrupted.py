# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Signals while dbslower attaches: nothing may remain in the processes that map the file."""

import os
import shutil
import signal

import pytest

import interrupted
from fallbacks import force
from tool import DBSLOWER

PROCESSES = 150

# Each perf event takes the kernel long to remove: fewer probes, and fewer runs.
FEW = {"probes": ["idle:probe0", "idle:probe1"]}
METHODS = [pytest.param([], {}, 20, id="multi"), pytest.param(force("perf"), FEW, 5, id="perf"),
           pytest.param(force("tracefs"), FEW, 5, id="tracefs")]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    return interrupted.build(tmp_path_factory.mktemp("idle"))


@pytest.fixture
def idle(program):
    processes = interrupted.Idle(program, PROCESSES)
    yield processes
    processes.end()


def ended(process, idle):
    """The process ended as it should, and took its probes with it."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and b"lost" in err, (process.returncode, out, err)
    assert idle.left() == (0, 0), err


@pytest.mark.parametrize("args, probes, times", METHODS)
def test_terminated_while_attaching(idle, args, probes, times):
    """It removes the probes, prints the summary, and ends with success."""
    for _ in range(times):
        process = interrupted.start(DBSLOWER, idle, *args, **probes)
        interrupted.wait_attaching(process, idle)
        process.terminate()
        ended(process, idle)


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGHUP])
def test_interrupted_while_attaching(idle, sig):
    """The same, as from a terminal: the signal is sent to the process group."""
    for _ in range(5):
        process = interrupted.start(DBSLOWER, idle, start_new_session=True)
        interrupted.wait_attaching(process, idle)
        os.killpg(process.pid, sig)
        ended(process, idle)


def test_rest_is_not_attached(program, idle):
    """Of two files, the second one is left alone after a signal, which is said."""
    other = interrupted.Idle(program, 1, 1)
    try:
        process = interrupted.start(DBSLOWER, idle, probes=["idle:*", f"{other.path}:idle:*"])
        interrupted.wait_attaching(process, idle)
        process.terminate()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0 and b"interrupted while attaching" in err and b"tracing" not in err, err
        assert idle.left() == other.left() == (0, 0)
    finally:
        other.end()
