# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Part of bench.py: the CPU time of --sample, by the number of sessions and the interval."""

import contextlib
import re
import resource
import statistics
import subprocess
import time

from benching import figure, heading, table
from cluster import Cluster, children, wait_for
from mariadb import Maria
from tool import DBSLOWER

SESSIONS = (10, 100, 1000, 10000)
SESSION_KIB = 1600	# of PostgreSQL, in the kernel and the process
INTERVALS = (1, 10, 100)	# ms
SECONDS = 3
SPARE = 20	# connections beside these


def cpu_ns(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0])


def most_sessions():
    """As many as this host has memory and descriptors for."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    with open("/proc/meminfo", encoding="ascii") as f:
        available = int(re.search(r"MemAvailable:\s+(\d+)", f.read())[1])
    return min(files - 100, available // SESSION_KIB)


def sampled(server, interval):
    """The percentage of a CPU that both processes take, and the late samples."""
    with subprocess.Popen([DBSLOWER, "--sample", f"{interval}ms", "-p", str(server.pid)], text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as tool:
        try:
            wait_for(lambda: children(tool.pid), what="its child")
            time.sleep(1)
            pids = [tool.pid, *children(tool.pid)]
            before, begin = sum(map(cpu_ns, pids)), time.monotonic()
            time.sleep(SECONDS)
            used, took = sum(map(cpu_ns, pids)) - before, time.monotonic() - begin
        finally:
            tool.terminate()
        said = tool.stderr.read()
    late = [line.split("lost: ")[1].split()[0] for line in said.splitlines() if "samples (too late)" in line]
    return used / took / 1e7, int(late[0]) if late else 0


def sample(args):
    heading("--sample: CPU of dbslower in percent, and samples that were too late")
    rows = [("server", "sessions", *(f"{interval} ms" for interval in INTERVALS))]
    counts = [count for count in SESSIONS if count <= most_sessions()]
    connections = str(counts[-1] + SPARE)
    makers = {"PostgreSQL": lambda: Cluster(max_connections=connections),
              "MariaDB": lambda: Maria(max_connections=connections, thread_handling="pool-of-threads")}
    for name, make in makers.items():
        server = make()
        server.init()
        with server.start(), contextlib.ExitStack() as stack:
            connected = 0
            for count in counts:
                for _ in range(connected, count):
                    stack.enter_context(server.connect())
                connected = count
                found = {interval: [] for interval in INTERVALS}
                for _ in range(args.rounds):
                    for interval in INTERVALS:
                        found[interval].append(sampled(server, interval))
                rows.append((name, str(count), *(f"{figure([cpu for cpu, _ in each])}, {statistics.median(late for _, late in each):.0f} late"
                                                 for each in found.values())))
    table(rows)
