# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A user without privileges starts programs whose files are made to stall or to end the tool."""

import os
import shutil
import subprocess
import time

import pytest

import backends
import sparse_elf
from cluster import wait_for
from file_attacker import Attacker
from requirements import need_root
from statements import stopped
from tool import cpu_seconds, spent_by_children

pytestmark = pytest.mark.alone

SYMBOLS = 1 << 20	# entries of a table: more are not read
ENDS = 0.7		# seconds of CPU time it may take longer to end
NICE = -10		# of the tool
HEAD = 65536		# bytes of a file that remain when it is truncated


@pytest.fixture
def attackers(mysql_program):
    """attackers(PROGRAM) starts a user who makes files of it; first there is a server, which can be traced."""
    need_root()
    started = []

    def start(program):
        started.append(Attacker(program))
        shutil.copy(mysql_program("mysql8"), started[-1].path)
        return started[-1]
    yield start
    for one in started:
        one.end()


@pytest.fixture
def attacker(attackers, mysql_program, tmp_path):
    """One whose program has all symbols that are required, and none that are optional."""
    program = tmp_path / "program"
    subprocess.run(["strip", "-o", program, mysql_program("mysql8")], check=True)
    return attackers(program)


@pytest.fixture
def pretender(attackers, tmp_path):
    """One whose program has nothing of a server but the name."""
    program = tmp_path / "program"
    subprocess.run(["gcc", "-s", "-o", program, "-x", "c", "-"], input=b"int getchar(void); int main(void)"
                   b" { return getchar(); }", check=True)
    return attackers(program)


@pytest.fixture
def victim(tmp_path):
    folder = tmp_path / "victim"
    folder.mkdir()
    with backends.Backends(backends.build(folder)) as one:
        yield one


def tracing(tool, victim, attacker, *args):
    """
    The tool on the files of both, so that other servers of this machine do not matter. Its buffer is to be full because
    of what it reads, not because it gets no CPU beside any other load.
    """
    return tool("-m", "0", "--json", "-x", victim.path, "-x", attacker.path, *args, preexec_fn=lambda: os.nice(NICE))


def shows(traced, victim, tag):
    """It still shows what the victim runs."""
    victim.do(f"run 3 select '{tag}'")
    traced.wait_for(lambda traced: sum(tag in one["query"] for one in traced.statements) == 3)


@pytest.mark.parametrize("entry", [sparse_elf.SYMBOL, 8192])
def test_truncated_while_it_is_parsed(attacker, victim, tool, entry):
    """Its process has ended by then: the file of one that runs cannot be written to."""
    traced = tracing(tool, victim, attacker)
    for seconds in (0.02, 0.05, 0.1, 0.2):
        attacker.do("make", SYMBOLS, entry)
        attacker.do("run", 1, seconds)
        attacker.do("truncate", HEAD)
        time.sleep(0.5)
    shows(traced, victim, "after")
    stopped(traced)


def test_others_are_drained_meanwhile(attacker, victim, tool):
    """The victim's own count is the judge."""
    traced = tracing(tool, victim, attacker)
    attacker.begin("storm", 5, SYMBOLS)
    said = victim.do("pace 4000 10000")
    attacker.finish()
    ran = int(next(line for line in said if line.startswith("ran ")).split()[1])
    stopped(traced)
    shown = sum(one["pid"] == victim.pid for one in traced.statements)
    assert shown == ran, traced.said()


def test_ends_meanwhile(attacker, victim, tool):
    """It does not first read the files that are still to be read. Compared with an end in peace, in CPU time."""
    took = []
    for files in (0, 8):
        traced = tracing(tool, victim, attacker)
        attacker.begin("storm", files, SYMBOLS)
        time.sleep(0.5)
        begun = spent_by_children() + cpu_seconds(traced.pid)
        assert traced.stop() == 0, traced.said()
        took.append(spent_by_children() - begun)
        attacker.finish()
    assert took[1] < took[0] + ENDS, f"{took} s"


def test_the_same_file_again(pretender, victim, tool):
    """Read once, whatever it was executed; reported once."""
    traced = tracing(tool, victim, pretender)
    refusal = f"{pretender.path}: cannot be traced, its functions have no symbols"
    pretender.do("make", SYMBOLS, sparse_elf.SYMBOL)
    wait_for(lambda: pretender.do("run", 1, 1) or refusal in traced.stderr, what="the tool to have read it")
    begun = cpu_seconds(traced.pid)
    pretender.do("run", 200, 0.02)
    shows(traced, victim, "after")
    took = cpu_seconds(traced.pid) - begun
    stopped(traced)
    assert took < 0.5, f"{took} s of CPU time"
    assert traced.stderr.count(refusal) == 1, traced.said()
