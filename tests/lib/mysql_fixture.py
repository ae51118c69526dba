# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Programs with the symbols or probes of a MySQL server, which run a script: tests/fixtures/mysql*.c."""

import json
import subprocess
import time

# Two of its functions in MySQL 8.
DISPATCH = "_Z16dispatch_commandP3THDPK8COM_DATA19enum_server_command"
END = "_Z18log_slow_statementP3THD"
# name: (source, options)
SERVERS = {
    "mysql8": ("mysql8.c", ["-O2", "-fcf-protection=full", "-fno-omit-frame-pointer"]),
    "mysql8-without-endbr": ("mysql8.c", ["-O2", "-fcf-protection=none"]),
    "mysql80": ("mysql8.c", ["-O2", "-DSTATUS"]),
    "mysql8-cold": ("mysql8.c", ["-O2", "-DCOLD"]),
    "mysql8-cold-stripped": ("mysql8.c", ["-O2", "-DCOLD", "-s"]),
    "mysql55": ("mysql55.c", ["-O2"]),
    "usdt": ("mysqlusdt.c", ["-O2"]),
    "usdt-semaphores": ("mysqlusdt.c", ["-O2", "-DSEMAPHORES"]),
    "usdt-no-pie": ("mysqlusdt.c", ["-O1", "-DSEMAPHORES", "-no-pie"]),
}


class Fixture:
    """A make-believe server while it runs."""

    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @property
    def pid(self):
        return self.process.pid

    def script(self):
        """Runs its script; returns what must be shown of it. elapsed_ms: how long that took."""
        begin = time.monotonic()
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        found = []
        for line in self.process.stdout:
            if line == b"end\n":
                self.elapsed_ms = (time.monotonic() - begin) * 1000
                return found
            found.append(json.loads(line))
        raise AssertionError(f"it ended in mid-script with {self.process.wait()}")

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
