# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A user without privileges starts programs whose files are made to stall or to end the tool."""

import subprocess
import time

import pytest

import backends
import sparse_elf
from file_attacker import Attacker
from requirements import need_root
from statements import stopped

SYMBOLS = 1 << 20	# entries of a table: more are not read
HEAD = 65536		# bytes of a file that remain when it is truncated


@pytest.fixture
def attacker(mysql_program, tmp_path):
    need_root()
    program = tmp_path / "program"
    subprocess.run(["strip", "-o", program, mysql_program("mysql8")], check=True)
    one = Attacker(program)
    yield one
    one.end()


@pytest.fixture
def victim(tmp_path):
    folder = tmp_path / "victim"
    folder.mkdir()
    with backends.Backends(backends.build(folder)) as one:
        yield one


def tracing(tool, victim, attacker, *args):
    """The tool on the files of both, so that other servers of this machine do not matter."""
    return tool("-m", "0", "--json", "-x", victim.path, "-x", attacker.path, *args)


def shows(traced, victim, tag):
    """It still shows what the victim runs."""
    victim.do(f"run 3 select '{tag}'")
    traced.wait_for(lambda traced: sum(tag in one["query"] for one in traced.statements) == 3, timeout=20)


@pytest.mark.parametrize("entry", [sparse_elf.SYMBOL, 8192])
def test_truncated_while_it_is_parsed(attacker, victim, tool, entry):
    """Its process has ended by then: the file of one that runs cannot be written to."""
    attacker.do("make", 0, sparse_elf.SYMBOL)
    traced = tracing(tool, victim, attacker)
    for seconds in (0.02, 0.05, 0.1, 0.2):
        attacker.do("make", SYMBOLS, entry)
        attacker.do("run", 1, seconds)
        attacker.do("truncate", HEAD)
        time.sleep(0.5)
    shows(traced, victim, "after")
    stopped(traced)
