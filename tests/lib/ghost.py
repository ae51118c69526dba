# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An unprivileged user's process that maps the program of a server and calls a traced function of it."""

import os
import re
import subprocess

from commanded import USER as UID, Commanded, as_user, reveal
from elffile import readelf, text_segments
from tool import FIXTURES


def build(folder):
    """Compiles it. Returns its path."""
    path = os.path.join(str(folder), "ghost")
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-pthread", "-o", path, os.path.join(FIXTURES, "ghost.c")],
                   check=True)
    reveal(path)
    return path


def offset_of(path, function):
    """Return the function's offset in the file."""
    address = int(re.search(rf"^\s*\d+: (\w+)\s.* {function}$", readelf("-s", path), re.M).group(1), 16)
    return next(address - start + offset for offset, start, size in text_segments(path) if start <= address < start + size)


class Ghost(Commanded):
    """It while it runs."""

    def __init__(self, path, server, function, uid=UID):
        reveal(server)
        super().__init__(path, server, str(offset_of(server, function)), **as_user(uid))

    def execute(self, text="select 'a ghost'"):
        """Return the number of a thread that executed another program, which ended."""
        return int(self.do(f"exec {text}")[0].split()[1])
