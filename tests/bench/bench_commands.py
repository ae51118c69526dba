# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Part of bench.py: the time of commands that do not trace until they are stopped."""

import glob
import subprocess
import time

from benching import figure, heading, table
from tool import DBSLOWER

LIBJVM = "/usr/lib/jvm/*/lib/server/libjvm.so"	# the library with most probes that Debian has


def commands(args):
    rows = [("doctor --self-test", ["doctor", "--self-test"]), ("list -vv of PostgreSQL", ["list", "-vv", "postgres"])]
    rows += [("list -vv of libjvm", ["list", "-vv", path]) for path in glob.glob(LIBJVM)[:1]]
    times = {name: [] for name, _ in rows}
    for _ in range(3 * args.rounds):
        for name, command in rows:
            begin = time.monotonic()
            subprocess.run([DBSLOWER, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            times[name].append((time.monotonic() - begin) * 1000)
    heading(f"Commands, {3 * args.rounds} rounds")
    table([["", "ms"]] + [[name, figure(times[name])] for name, _ in rows])
