# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A process of another user whose copies of a server's semaphores cannot be incremented."""

import os
import subprocess

import pytest

from commanded import as_user
from elf_oracle import Oracle
from elffile import usdt_probes
from fallbacks import force
from statements import with_tag
from tool import FIXTURES


@pytest.fixture
def spoiler(tmp_path):
    path = tmp_path / "copy" / "spoiler"
    running = []

    def start(server):
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-o", path, os.path.join(FIXTURES, "spoiler.c")], check=True)
        offsets = {Oracle(server).offset(semaphore) for _, _, semaphore in usdt_probes(server) if semaphore}
        running.append(subprocess.Popen([path, server, *map(str, offsets)], stdout=subprocess.PIPE, **as_user()))
        assert running[0].stdout.readline() == b"ready\n"

    yield start
    for process in running:
        process.kill()
        process.stdout.close()
        process.wait()


@pytest.mark.parametrize("args", [[], force("perf")], ids=" ".join)
def test_server_is_traced_all_the_same(clusters, server_copy, spoiler, tool, args):
    cluster = clusters(name="spoiled", postgres=server_copy)
    spoiler(server_copy)
    traced = tool("postgres", "-p", cluster.pid, "-m", "0", "--json", *args)
    cluster.psql("select 1 /* spoiled */", "select 1/0 /* spoiled */", check=False)
    assert traced.stop() == 0
    found = [(one["query"], one["status"]) for one in with_tag(traced, "spoiled")]
    assert found == [("select 1 /* spoiled */", "ok"), ("select 1/0 /* spoiled */", "error")], traced.said()
    assert "by its symbols" in traced.stderr, traced.said()


@pytest.mark.parametrize("args", [[], force("perf")], ids=" ".join)
def test_probes_are_traced_all_the_same(clusters, server_copy, spoiler, tool, args):
    """Without semaphores, which is said: PostgreSQL tests those of few probes."""
    cluster = clusters(name="spoiled", postgres=server_copy)
    spoiler(server_copy)
    traced = tool("trace", "--json", server_copy, "postgresql:query__start \"%s\", arg1", *args, attached=False)
    traced.wait_for(lambda tool: "dbslower: tracing" in tool.stderr, what="its start")
    cluster.psql("select 1 /* spoiled */")
    assert traced.stop() == 0
    assert any("spoiled" in str(one) for one in traced.objects()), traced.said()
    assert f"{server_copy}: a process has made the semaphores of probes unusable; a probe that" in traced.stderr, traced.said()
