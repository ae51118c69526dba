# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An unprivileged user's process that maps the program of a server and calls a traced function of it."""

import os
import re
import subprocess

from elffile import readelf, text_segments
from tool import FIXTURES

UID = 1001


def build(folder):
    """Compiles it. Returns its path."""
    path = os.path.join(str(folder), "ghost")
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-pthread", "-o", path, os.path.join(FIXTURES, "ghost.c")],
                   check=True)
    reveal(path)
    return path


def reveal(path):
    """Lets other users open the file."""
    os.chmod(path, 0o755)
    folder = os.path.dirname(path)
    while folder != "/tmp" and len(folder) > 1:
        os.chmod(folder, os.stat(folder).st_mode | 0o011)
        folder = os.path.dirname(folder)


def offset_of(path, function):
    """Return the function's offset in the file."""
    address = int(re.search(rf"^\s*\d+: (\w+)\s.* {function}$", readelf("-s", path), re.M).group(1), 16)
    return next(address - start + offset for offset, start, size in text_segments(path) if start <= address < start + size)


class Ghost:
    """It while it runs."""

    def __init__(self, path, server, function, uid=UID):
        reveal(server)
        self.process = subprocess.Popen([path, server, str(offset_of(server, function))], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, user=uid, group=uid, extra_groups=[], cwd="/")
        assert self.process.stdout.readline() == "ready\n"

    def do(self, what):
        """Return what it printed."""
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        said = []
        for line in self.process.stdout:
            if line == "done\n":
                return said
            said.append(line)
        raise AssertionError(f"it ended with {self.process.wait()}")

    def execute(self, text="select 'a ghost'"):
        """Return the number of a thread that executed another program, which ended."""
        return int(self.do(f"exec {text}")[0].split()[1])

    def end(self):
        self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.end()
