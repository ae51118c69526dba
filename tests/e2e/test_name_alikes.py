# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that are named so that a server is not found."""

import os
import shutil
import subprocess

import pytest

from backends import Backends, build
from requirements import need_root
from statements import with_tag

pytestmark = pytest.mark.alone

USER = {"user": 1001, "group": 1001, "extra_groups": []}


@pytest.fixture
def folders(tmp_path):
    """One for the attacker and one for the server, which everybody may enter."""
    need_root()
    for folder in tmp_path, *list(tmp_path.parents)[:3]:
        if str(folder).startswith("/tmp/"):
            os.chmod(folder, 0o755)
    for name in "attacker", "server":
        os.mkdir(tmp_path / name)
    return tmp_path / "attacker", tmp_path / "server"


def test_name_was_used_before(folders, tool):
    """An unknown name that a harmless program had before."""
    attacker, folder = folders
    shutil.copy("/bin/true", attacker / "appdb")
    path = build(folder, "appdb")
    traced = tool("-m", "0", "--json", attached=False)
    traced.wait_for(lambda tool: tool.stderr, what="its start")
    for _ in range(3):
        subprocess.run([attacker / "appdb"], check=True, cwd="/", **USER)
    with Backends(path) as server:
        try:
            traced.wait_for(lambda tool: path in tool.stderr, what="the server")
        except AssertionError:
            pytest.fail("the program of the same name hides the server")
        server.do("run 3 select 1 /* appdb */")
        traced.wait_for(lambda tool: len(with_tag(tool, "/* appdb */")) == 3)
    traced.stop()


RENAME = r"""
mount -t tmpfs tmpfs /mnt
touch /mnt/mysqld
mount --bind "$0" /mnt/mysqld
exec /mnt/mysqld
"""


def test_file_has_another_name_elsewhere(folders, tool):
    """In a mount namespace of his own a user gives the server's file the name of another engine's server."""
    path = build(folders[1])
    wrap = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if subprocess.run([*wrap, "mount -t tmpfs tmpfs /mnt"], cwd="/", **USER).returncode:
        pytest.skip("no user namespaces here")
    traced = tool("-m", "0", "--json", attached=False)
    traced.wait_for(lambda tool: tool.stderr, what="its start")
    with subprocess.Popen([*wrap, RENAME, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/",
                          **USER) as renamed:
        assert renamed.stdout.readline() == "ready\n"
        traced.wait_for(lambda tool: "/mnt/mysqld" in tool.stderr, what="the file under its other name")
        renamed.kill()
    with Backends(path) as server:
        traced.wait_for(lambda tool: path in tool.stderr, what="the server")
        server.do("run 3 select 1 /* renamed */")
        traced.wait_for(lambda tool: len(with_tag(tool, "/* renamed */")) == 3)
    traced.stop()
