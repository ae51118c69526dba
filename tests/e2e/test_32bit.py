# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""32-bit programs on x86-64: their USDT probes are traced, and what cannot be is refused."""

import os
import platform
import shutil
import subprocess

import pytest

from fallbacks import force
from requirements import need_root
from tool import FIXTURES, refused, run

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the kernel supports it on x86-64 only")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    need_root()
    path = tmp_path_factory.mktemp("32") / "probes32"
    done = subprocess.run(["gcc", "-m32", "-O1", "-ffreestanding", "-nostdlib", "-static", "-fno-pic", "-no-pie",
                           "-fno-stack-protector", "-fcf-protection=none", "-I/usr/include/x86_64-linux-gnu", "-o", path,
                           os.path.join(FIXTURES, "probes32.c")], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no 32-bit program can be built: {done.stderr[-300:]}")
    try:
        subprocess.run([path], stdin=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError) as why:
        pytest.skip(f"the kernel runs no 32-bit programs: {why}")
    return path


@pytest.fixture
def program(path):
    """Each call is a round of three statements, and returns when they have ended."""
    with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        def do_round():
            process.stdin.write(b".")
            process.stdin.flush()
            assert process.stdout.read(1) == b"."
        do_round.pid = process.pid
        yield do_round
        process.kill()


def traced_rows(tool, program, args, count):
    traced = tool("trace", *args, attached=False)
    traced.wait_for(lambda traced: "dbslower: tracing 1 probe" in traced.stderr, what="it to attach")
    program()
    traced.wait_for(lambda traced: len(traced.rows()) == count, what="its hits")
    assert traced.stop() == 0, traced.said()
    return [row.split(None, 5)[5] for row in traced.rows()]


@pytest.mark.parametrize("way", [[], force("perf")], ids=["multi", "perf"])
def test_arguments(tool, path, program, way):
    """In registers, in memory and as constants; the text is behind a pointer of 4 bytes."""
    assert traced_rows(tool, program, [*way, f'{path}:probes32:start "%d %d %s %d", arg1, arg2, arg3, arg4'], 3) == [
        f"{n} {-n} select {n} -7" for n in (1, 2, 3)]


def test_filter_and_pid(tool, program):
    assert traced_rows(tool, program, ["-p", program.pid, 'probes32:start (arg2 < -1) "%d", arg1'], 2) == ["2", "3"]


def test_return(tool, path, program):
    assert traced_rows(tool, program, [f'r:{path}:work "%d", retval'], 3) == ["-1000", "-2000", "-3000"]


def test_latency(tool, path, program):
    """The return address has 4 bytes."""
    rows = traced_rows(tool, program, ["--latency", f'{path}:work "%d", retval'], 3)
    assert [row.split() for row in rows] == [["work", str(-1000 * n)] for n in (1, 2, 3)], rows


STATEMENTS = ["--start", "probes32:start", "--done", "probes32:done", "--text-arg", "3"]


def test_statements(tool, path, program):
    traced = tool("-x", path, *STATEMENTS, "-m", 0, "--json")
    program()
    traced.wait_for(lambda traced: len(traced.statements) == 3, what="the statements")
    assert traced.stop() == 0, traced.said()
    assert [one["query"] for one in traced.statements] == ["select 1", "select 2", "select 3"]
    assert {one["pid"] for one in traced.statements} == {program.pid} and not traced.lost()


def test_what_is_refused(path, tmp_path):
    """Arguments of functions, which may be anywhere; the numbers of 32-bit system calls; the known servers."""
    refused(run("trace", f'{path}:work "%d", arg1'), r"\(arg1: only the first 6 arguments of a function are known, in 64-bit programs\)", status=1)
    for args in (["-x", path, *STATEMENTS, "--why"], ["-x", path, *STATEMENTS, "--use"],
                 ["stat", "-x", path, *STATEMENTS, "--wait", "lock"]):
        refused(run(*args), f"{path}: a 32-bit program; only its USDT probes", status=1)
    server = shutil.copy(path, tmp_path / "postgres")
    refused(run("-x", server), f"{server}: a 32-bit program; only its USDT probes", status=1)
