# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An unprivileged user's process that is traced as MySQL and passes session objects of its choice."""

import os
import subprocess

from tool import FIXTURES

UID = 1001
KEY_SHIFT = 42		# of the key of sessions that once was the PID << this, XOR the object


def build(folder, name="mysqld"):
    """Compiles it, readable by others. Returns its path."""
    path = os.path.join(str(folder), name)
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-rdynamic", "-pthread", "-o", path,
                    os.path.join(FIXTURES, "intruder.c")], check=True)
    folder = os.path.dirname(path)
    while folder != "/tmp" and len(folder) > 1:
        os.chmod(folder, os.stat(folder).st_mode | 0o011)
        folder = os.path.dirname(folder)
    os.chmod(path, 0o755)
    return path


class Intruder:
    """It while it runs."""

    def __init__(self, path, uid=UID):
        self.uid = uid
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        user=uid, group=uid, extra_groups=[], cwd="/")
        assert self.process.stdout.readline() == "ready\n"

    @property
    def pid(self):
        return self.process.pid

    def begin(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()

    def finish(self):
        line = self.process.stdout.readline()
        assert line == "done\n", f"it said {line!r} and ended with {self.process.poll()}"

    def do(self, what):
        self.begin(what)
        self.finish()

    def object_of(self, tid):
        """The object whose key was that of thread @tid."""
        return (self.pid << KEY_SHIFT) ^ tid

    def end(self):
        self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.end()
