# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Semaphores that are written, of processes that execute a set-user-ID program meanwhile: it must stay as it is."""

import os
import select
import subprocess

import pytest

from fallbacks import force
from requirements import need_root
from tool import FIXTURES, run
from user_engine import PROBES

OTHER = 1001
SEMAPHORE = 0x800000
INTACT = "7 7"


class Program:
    """The fixture, run by the user 1001."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=OTHER,
                                        group=OTHER, extra_groups=[], cwd="/")
        assert self.line() == "ready"

    def line(self):
        return self.process.stdout.readline().strip()

    def say(self, line):
        print(line, file=self.process.stdin, flush=True)

    def ask(self, line="state"):
        self.say(line)
        return self.line()

    def execute(self, path):
        assert self.ask(f"exec {path}") == "ready"

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The one with probes, and the set-user-ID one."""
    need_root()
    folder = tmp_path_factory.mktemp("exec")
    for parent in (folder, folder.parent, folder.parent.parent):
        if str(parent) != "/tmp":
            parent.chmod(0o755)
    for name, args in (("traced", ()), ("guarded", ("-DGUARD",))):
        subprocess.run(["gcc", "-O2", "-static", "-no-pie", f"-Wl,--section-start=.probes={SEMAPHORE:#x}", *args, "-o",
                        folder / name, os.path.join(FIXTURES, "executes.c")], check=True)
    os.chown(folder / "traced", OTHER, OTHER)
    (folder / "guarded").chmod(0o4755)
    return folder / "traced", folder / "guarded"


@pytest.fixture
def program(programs):
    running = []

    def start(path=None):
        running.append(Program(path or programs[0]))
        return running[-1]
    yield start
    for one in running:
        one.end()


def traced_at(tool, programs):
    return tool("-x", programs[0], *PROBES, "-m", "0", "--json", *force("semaphore"))


def is_root(pid):
    with open(f"/proc/{pid}/status") as f:
        return "\nUid:\t1001\t0\t" in f.read()


@pytest.mark.parametrize("killed", [False, True], ids=["end", "repair"])
@pytest.mark.parametrize("forks", [False, True], ids=["itself", "child"])
def test_program_that_executes_another(programs, program, tool, forks, killed):
    victim = program()
    traced = traced_at(tool, programs)
    assert (victim.ask("fork") if forks else victim.ask()) == "1 1"
    victim.execute(programs[1])
    assert forks or (victim.ask() == INTACT and is_root(victim.process.pid))
    if killed:
        traced.kill()
        traced = traced_at(tool, programs)
    assert traced.stop() == 0, traced.said()
    assert victim.ask() == INTACT


@pytest.mark.parametrize("killed", [False, True], ids=["end", "repair"])
def test_program_that_stays(programs, program, tool, killed):
    """What is incremented is decremented, also in a child."""
    parent, child = program(), program()
    traced = traced_at(tool, programs)
    assert parent.ask() == "1 1" and child.ask("fork") == "1 1"
    if killed:
        traced.kill()
        assert parent.ask() == child.ask() == "1 1"
        traced = traced_at(tool, programs)
    assert traced.stop() == 0, traced.said()
    assert parent.ask() == child.ask() == "0 0"


def test_set_user_id(programs, tmp_path, program, tool):
    """A program with probes that is itself set-user-ID is not written to."""
    victim = program()
    programs[0].chmod(0o4755)
    try:
        done = run("-p", victim.process.pid, *PROBES, "-d", "0.5", *force("semaphore"))
        assert victim.ask() == "0 0" and "cannot enable its probes" in done.stderr, done.stderr
    finally:
        programs[0].chmod(0o755)


def test_programs_that_alternate(programs, program, tool):
    """The two execute each other all the while, so that a check and a write can meet either."""
    flippers = [program() for _ in range(4)]
    for one in flippers:
        one.say(f"flip 4000 {programs[1]}")
    lines = [one.process.stdout for one in flippers]
    while len(select.select(lines, [], [], 0)[0]) < len(lines):
        run("-x", programs[0], *PROBES, "-d", "0.05", *force("semaphore"))
    assert [one.line() for one in flippers] == ["0"] * len(flippers)
