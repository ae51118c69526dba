#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""tests/bench/interrupt.py TOOL [COUNT [METHOD...]]: what remains in 150 idle processes after signals.

Sends COUNT times SIGKILL, then SIGTERM, to dbslower at random moments between its start and the end
of attaching, and counts the runs that leave something."""

import collections
import os
import random
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import interrupted

PROCESSES = 150
# To remove a perf event takes so long that a few probes must do.
FEW = ["idle:probe0", "idle:probe1", "idle:probe2"]
METHODS = {"uprobe_multi": ([], ["idle:*"]), "perf": (["--force=perf"], FEW)}


def attach_time(tool, idle, args, probes):
    """Seconds until all is attached."""
    began = time.monotonic()
    process = interrupted.start(tool, idle, *args, probes=probes)
    process.stdout.readline()
    took = time.monotonic() - began
    process.send_signal(signal.SIGINT)
    process.communicate()
    return took


def interrupt(tool, idle, args, probes, moment, sig):
    process = interrupted.start(tool, idle, *args, probes=probes, start_new_session=True)
    time.sleep(moment)
    inside = 0 < idle.breakpoints(idle.pids[0]) < (3 if args else interrupted.PROBES)
    os.killpg(process.pid, sig)
    process.communicate()
    return inside, process.returncode


def measure(tool, program, method, sig, count):
    args, probes = METHODS[method]
    names, number = (os.path.basename(tool), "uprobe-attacher"), 0
    idle = interrupted.Idle(program, PROCESSES)
    took = sorted(attach_time(tool, idle, args, probes) for _ in range(7))[3]
    found, logged, statuses = collections.Counter(), interrupted.leaks(*names), collections.Counter()
    for _ in range(count):
        inside, status = interrupt(tool, idle, args, probes, random.uniform(0, took * 1.1), sig)
        found["inside"] += inside
        statuses[status] += 1
        left = idle.left_after(3)
        if left == (0, 0):
            continue
        found["runs"] += 1
        found["breakpoints"] += left[0] > 0
        found["semaphores"] += left[1] > 0
        attach_time(tool, idle, args, probes)
        again = idle.left()
        found["not repaired: breakpoints"] += again[0] > 0
        found["not repaired: semaphores"] += again[1] > 0
        number += 1
        idle.end()
        idle = interrupted.Idle(program, PROCESSES, number)
    idle.end()
    print(f"{method:13} {sig.name:8} attach {took * 1000:5.0f} ms  left something: {found['runs']:3} of {count}  ",
          {**found}, "kernel log:", interrupted.leaks(*names) - logged, "status:", dict(statuses), flush=True)


def main():
    tool = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(tool))) as folder:
        program = interrupted.build(folder)
        for method in sys.argv[3:] or METHODS:
            for sig in (signal.SIGKILL, signal.SIGTERM):
                measure(tool, program, method, sig, count)


if __name__ == "__main__":
    main()
