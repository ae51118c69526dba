# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""File systems that an ordinary user serves and that do not answer."""

import os
import subprocess
import time

import pytest

from cluster import wait_for
from requirements import need_root
from test_user_engine import memsqld	# noqa: F401  pylint: disable=unused-import
from tool import FIXTURES, Tool, run
from user_engine import PROBES

USER = {"user": 1001, "group": 1001, "extra_groups": []}


class StallFs:
    """tests/fixtures/stallfs.c, which runs `program` under the name. who: see there."""

    def __init__(self, folder, program, name, who, layer):
        os.chmod(folder, 0o755)
        path = str(folder / "stallfs")
        subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-Wall", "-Werror", "-o", path,
                        os.path.join(FIXTURES, "stallfs.c")], check=True)
        self.process = subprocess.Popen([path, program, name, who, layer], stdin=subprocess.DEVNULL, text=True, cwd="/",
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **(USER if who == "user" else {}))
        first = self.process.stdout.readline()
        self.pid = int(first) if first else None

    def runs(self, name):
        """Wait until the program runs. Skip where the mounts are not permitted."""
        def there():
            try:
                return os.readlink(f"/proc/{self.pid}/exe").endswith("/" + name)
            except OSError:
                self.process.kill()
                pytest.skip(f"cannot be mounted here: {self.process.stderr.read()}")
        wait_for(there, what="the program")

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def idle(tmp_path_factory):
    """A program without libraries that does nothing."""
    folder = tmp_path_factory.mktemp("idle")
    source = folder / "idle.c"
    source.write_text("#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
    subprocess.run(["gcc", "-static", "-o", folder / "idle", source], check=True)
    for parent in [folder, *folder.parents][:3]:
        os.chmod(parent, 0o755)
    return str(folder / "idle")


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
