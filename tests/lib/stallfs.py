# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A file system that an ordinary user serves and that does not answer: tests/fixtures/stallfs.c."""

import os
import subprocess

import pytest

from cluster import wait_for
from tool import FIXTURES

USER = {"user": 1001, "group": 1001, "extra_groups": []}


def build_idle(folder):
    """A program without libraries that does nothing. Returns its path."""
    source = folder / "idle.c"
    source.write_text("#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
    subprocess.run(["gcc", "-static", "-o", folder / "idle", source], check=True)
    for parent in [folder, *folder.parents][:3]:
        os.chmod(parent, 0o755)
    return str(folder / "idle")


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
