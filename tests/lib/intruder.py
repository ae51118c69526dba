# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An unprivileged user's process that is traced as MySQL and passes session objects of its choice."""

import os
import subprocess
import threading

from commanded import USER as UID, Commanded, as_user, reveal
from tool import FIXTURES

KEY_SHIFT = 42		# of the key of sessions that once was the PID << this, XOR the object


def build(folder, name="mysqld"):
    """Compiles it, readable by others. Returns its path."""
    path = os.path.join(str(folder), name)
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-rdynamic", "-pthread", "-o", path,
                    os.path.join(FIXTURES, "intruder.c")], check=True)
    reveal(path)
    return path


class Intruder(Commanded):
    """It while it runs."""

    def __init__(self, path, uid=UID):
        super().__init__(path, **as_user(uid))

    def object_of(self, tid):
        """The object whose key was that of thread @tid."""
        return (self.pid << KEY_SHIFT) ^ tid

    def flood(self, what, victim):
        """Execute @what while @victim, a Backends, runs statements. Return the number of those."""
        self.begin(what)
        flooding = threading.Thread(target=self.finish)
        flooding.start()
        statements = 0
        while flooding.is_alive():
            victim.do("run 5 select 1")
            statements += 5
            flooding.join(0.01)
        return statements
