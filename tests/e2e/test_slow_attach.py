# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A file that a user's processes map so often that the kernel needs seconds to attach to it."""

import os
import subprocess

import pytest

from backends import Backends, build
from commanded import as_user, reveal
from oracle import NICE
from tool import FIXTURES

pytestmark = pytest.mark.alone

PROCESSES = 6


def test_records_are_drained_while_probes_are_attached(tool, tmp_path):
    """The statements of a server are reported meanwhile, without loss."""
    server = build(tmp_path)
    (tmp_path / "other").mkdir()
    other = build(tmp_path / "other")
    mapper = str(tmp_path / "mapper")
    subprocess.run(["gcc", "-O2", "-o", mapper, os.path.join(FIXTURES, "mapper.c")], check=True)
    later = build(tmp_path / "other", "later")
    user = as_user()
    reveal(later)
    reveal(mapper)
    mappers = [subprocess.Popen([mapper, later], stdout=subprocess.PIPE, **user) for _ in range(PROCESSES)]
    try:
        for one in mappers:
            assert one.stdout.readline() == b"ready\n"
        with Backends(server) as victim:
            # The buffer has room for a second: what takes longer here is the kernel, not the wait for a CPU.
            traced = tool("slow", "-m", "0", "--json", "-x", server, "-x", other, preexec_fn=lambda: os.nice(NICE))
            os.rename(later, other)
            with Backends(other, **user) as hostile:
                ran = int(victim.do("pace 4000 8000")[0].split()[1])
                traced.wait_for(lambda one: f"pid {hostile.pid}" in one.stderr, what="the other server to be traced")
                traced.stop()
        assert sum(one["pid"] == victim.pid for one in traced.statements) == ran, traced.said()
    finally:
        for one in mappers:
            one.kill()
            one.communicate()
