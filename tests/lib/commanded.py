# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs that execute the commands on their standard input, one a line, and print "done" after each."""

import os
import subprocess

USER = 1001		# an ordinary user


def as_user(uid=USER):
    """Return the options of subprocess that run a program as an ordinary user."""
    return {"user": uid, "group": uid, "extra_groups": [], "cwd": "/"}


def reveal(path):
    """Lets other users open the file or folder."""
    os.chmod(path, 0o755)
    folder = os.path.dirname(path)
    while folder != "/tmp" and len(folder) > 1:
        os.chmod(folder, os.stat(folder).st_mode | 0o011)
        folder = os.path.dirname(folder)


class Commanded:
    """One of them while it runs."""

    def __init__(self, *command, **keywords):
        self.path = command[0]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **keywords)
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
