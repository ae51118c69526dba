# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The simulated PostgreSQL of fixtures/backends.c: any number of statements and of backends that end."""

import os
import shutil
import subprocess

import pytest

from tool import FIXTURES

SOURCE = os.path.join(FIXTURES, "backends.c")


def build(folder, name="postgres"):
    """Compiles it, an inode of its own. Returns its path."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    path = os.path.join(str(folder), name)
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-rdynamic", "-pthread", "-o", path, SOURCE], check=True)
    return path


class Backends:
    """It while it runs."""

    def __init__(self, path, **keywords):
        self.path = path
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **keywords)
        assert self.process.stdout.readline() == "ready\n"

    @property
    def pid(self):
        return self.process.pid

    def begin(self, what):
        """Gives it a line, whose end finish() waits for."""
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()

    def finish(self):
        """Return its output until the command is done."""
        said = []
        for line in self.process.stdout:
            if line == "done\n":
                return said
            said.append(line.rstrip("\n"))
        raise AssertionError(f"it ended with {self.process.wait()}")

    def do(self, what):
        self.begin(what)
        return self.finish()

    def end(self):
        self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.end()
