# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A crash leaves no texts of statements behind, and others of its user do not read its memory."""

import os
import resource
import signal
import subprocess

import pytest

from requirements import need_root
from test_user_engine import memsqld	# noqa: F401  pylint: disable=unused-import
from tool import DBSLOWER
from user_engine import PROBES

pytestmark = pytest.mark.alone


@pytest.fixture
def suid_dumpable():
    """The kernel's setting under which a change of the user leaves a process dumpable."""
    need_root()
    path = "/proc/sys/fs/suid_dumpable"
    with open(path, encoding="ascii") as f:
        before = f.read()
    with open(path, "w", encoding="ascii") as f:
        f.write("1")
    yield
    with open(path, "w", encoding="ascii") as f:
        f.write(before)


@pytest.mark.parametrize("select", ["-x", "-p"])
def test_no_core_dump(tmp_path, memsqld, select, suid_dumpable):	# noqa: F811  pylint: disable=unused-argument
    os.chmod(tmp_path, 0o777)
    which = memsqld.path if select == "-x" else str(memsqld.pid)
    args = [DBSLOWER, "-m", "0", select, which, *PROBES]
    with subprocess.Popen(args, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (-1, -1))) as traced:
        assert traced.stdout.readline().startswith(b"Tracing")
        memsqld()
        assert b"QUERY" in traced.stdout.readline() and b"/* slow */" in traced.stdout.readline()
        with open(f"/proc/{traced.pid}/status", encoding="ascii") as f:
            uid = int(next(line for line in f if line.startswith("Uid:")).split()[1])
        if uid:
            reader = subprocess.run(["cat", f"/proc/{traced.pid}/maps"], user=uid, group=uid, extra_groups=[],
                                    capture_output=True, text=True, cwd="/")
            assert reader.returncode and not reader.stdout, "another process of its user reads its memory map"
        os.kill(traced.pid, signal.SIGABRT)
        status = os.waitpid(traced.pid, 0)[1]
        traced.returncode = -os.WTERMSIG(status)
    assert os.WTERMSIG(status) == signal.SIGABRT
    assert not os.WCOREDUMP(status) and not os.listdir(tmp_path), "it left a core dump"
