# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""File systems that an ordinary user serves and that do not answer."""

import subprocess
import time

import pytest

from requirements import need_root
from stallfs import StallFs, build_idle
from test_user_engine import memsqld	# noqa: F401  pylint: disable=unused-import
from tool import Tool, run
from user_engine import PROBES


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    return build_idle(tmp_path_factory.mktemp("idle"))


@pytest.mark.parametrize("who, layer", [("user", "overlay"), ("user", "plain"), ("root", "plain")])
@pytest.mark.parametrize("name", ["mysqld", "anything"])
def test_no_answer(tmp_path, idle, name, who, layer):
    """Processes of such files are examined without a request to the file system."""
    need_root()
    with StallFs(tmp_path, idle, name, who, layer) as fs:
        fs.runs(name)
        begin = time.monotonic()
        try:
            done = run("doctor", "--json", timeout=10)
        except subprocess.TimeoutExpired:
            pytest.fail(f"doctor waits for the file system of {who}")
        assert time.monotonic() - begin < 8
        assert "/tmp/fs/" not in done.stdout and "/tmp/merged/" not in done.stdout, done.stdout
        run("list", "nothing", timeout=10)


@pytest.mark.parametrize("who, layer", [("user", "overlay"), ("root", "plain")])
def test_no_answer_later(tmp_path, idle, memsqld, who, layer):	# noqa: F811
    """The same for a program that is started while another server is traced."""
    need_root()
    with Tool("-m", "0", "--json", "-x", memsqld.path, *PROBES) as traced, \
         StallFs(tmp_path, idle, "memsqld", who, layer) as fs:
        fs.runs("memsqld")
        memsqld()
        traced.wait_for(lambda tool: tool.statements, timeout=8, what="a statement")
        assert traced.stop() == 0
