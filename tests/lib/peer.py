# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What another tracer sees of a server's statements: bpftrace notes when the server was at the places where dbslower begins
and ends a statement. Between these and the clocks of the server's log lie the log's writing, the answer, a lost CPU, and
what a hypervisor takes. It delays both tracers alike, so that their durations agree on the busiest machine.
"""

import bisect
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import typing
from collections import defaultdict

import pytest

from cluster import wait_for
from requirements import need_root
from transactions import seconds

NEAR_NS = 100_000		# between the readings of a hit by two tracers, whose clocks are told apart by a third
BUFFER_BYTES = 1 << 24		# of each CPU


def postgres_ends(hits):
    """Yield when, and in which thread, a statement may have ended: in a pipeline when it completed, else when it was idle."""
    completed = idle = None
    for ns, place, tid in hits:
        if place == "i":
            idle = True
            yield ns, tid
        elif idle:
            return
        elif place == "e":
            completed = ns, tid
        elif completed:
            yield completed
            return


def mariadb_ends(hits):
    """The same: where it is logged, a prepared one behind its execution."""
    logged = False
    for ns, place, tid in hits:
        if place == "b" or (logged and place == "e"):
            return
        logged |= place == "e"
        yield ns, tid


@dataclasses.dataclass(frozen=True)
class Places:
    """
    The places of a server. Each has a letter; bpftrace prints it, the thread, what tells sessions apart (0: it is that which
    the thread served last), and the time.
    """
    script: str			# {} is the program
    begins: str			# letters of those where a statement begins
    ends: typing.Callable	# of the hits behind that one


# A backend that is to lose the CPU does so at a breakpoint: a tool that has its own at the USDT probe, inside of the first
# function, is compared with what is noted there.
FUNCTIONS = """
uprobe:{0}:pgstat_report_activity {{ printf("%s %d %llu %llu\\n", arg1 ? "b" : "i", tid, pid, nsecs); }}
uprobe:{0}:EndCommand {{ printf("e %d %llu %llu\\n", tid, pid, nsecs); }}
"""
POSTGRES_FUNCTIONS = Places(FUNCTIONS, "b", postgres_ends)
POSTGRES = Places(FUNCTIONS + """
usdt:{0}:postgresql:statement__status {{ printf("%s %d %llu %llu\\n", arg0 ? "b" : "i", tid, pid, nsecs); }}
""", "b", postgres_ends)

# The later parts of a packet begin where the one before ended.
MARIADB = Places("""
uprobe:{0}:_Z16dispatch_command19enum_server_commandP3THDPcjb {{ printf("b %d %llu %llu\\n", tid, arg1, nsecs); }}
uprobe:{0}:_Z18log_slow_statementP3THD {{ printf("e %d %llu %llu\\n", tid, arg0, nsecs); }}
uprobe:{0}:_Z20delete_explain_queryP3LEX {{ printf("x %d 0 %llu\\n", tid, nsecs); }}
""", "bex", mariadb_ends)


class Bpftrace:
    """A script of bpftrace, attached in the body of a with statement or until stop()."""

    def __init__(self, *args, **keywords):
        self.args, self.keywords = args, keywords

    def __enter__(self):
        need_root()
        if not shutil.which("bpftrace"):
            pytest.skip("no bpftrace (package bpftrace)")
        environment = {**os.environ, "__BPFTRACE_NOTIFY_PROBES_ATTACHED": "1",
                       "BPFTRACE_PERF_RB_PAGES": str(BUFFER_BYTES // os.sysconf("SC_PAGESIZE"))}
        self.out = tempfile.NamedTemporaryFile()
        self.process = subprocess.Popen(["bpftrace", *self.args], stdout=self.out, stderr=subprocess.STDOUT, env=environment,
                                        **self.keywords)
        try:
            wait_for(self.is_attached, what="bpftrace to attach")
        except BaseException:
            self.__exit__()
            raise
        return self

    def is_attached(self):
        assert self.process.poll() is None, self.said()
        return "__BPFTRACE_NOTIFY_PROBES_ATTACHED" in self.said()

    def said(self):
        with open(self.out.name) as out:
            return out.read()

    def stop(self):
        """Return what it has said."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        return self.said()

    def __exit__(self, *why):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.out.close()


def wall_offset_ns():
    """Return how much the wall clock is ahead of bpftrace's, by the quickest of some readings."""
    def read():
        before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        wall = time.clock_gettime_ns(time.CLOCK_REALTIME)
        after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        return after - before, wall - (before + after) // 2
    return min(read() for _ in range(20))[1]


class Peer(Bpftrace):
    """It notes when a program's threads are at the places."""

    def __init__(self, program, places, **keywords):
        super().__init__("-e", places.script.format(program), **keywords)
        self.places = places

    def stop(self):
        self.take(super().stop().splitlines(), wall_offset_ns())

    def take(self, lines, offset_ns):
        """Keep the hits of the lines, in the order of their times."""
        self.sessions, self.lost = defaultdict(list), [line for line in lines if line.startswith("Lost ")]
        hits = [line.split() for line in lines if re.fullmatch(r"\w \d+ \d+ \d+", line)]
        served = {}		# the session of a thread
        for ns, place, tid, key in sorted((int(ns) + offset_ns, place, int(tid), int(key)) for place, tid, key, ns in hits):
            served[tid] = key = key or served.get(tid)
            self.sessions[key].append((ns, place, tid))
        self.begins = sorted((ns, key, at) for key, found in self.sessions.items()
                             for at, (ns, place, _) in enumerate(found) if key and place in self.places.begins)

    def durations_ms(self, one):
        """Yield how long a statement in JSON may have lasted, by where its thread was at about its begin and later."""
        begin = round(seconds(one["time"]) * 1e9)
        at = bisect.bisect_left(self.begins, (begin - NEAR_NS,))
        behind = bisect.bisect_left(self.begins, (begin + NEAR_NS,))
        for ns, key, first in self.begins[at:behind]:
            hits = self.sessions[key]
            for end_ns, tid in self.places.ends(hits[i] for i in range(first + 1, len(hits))):
                if one["tid"] in (tid, hits[first][2]):
                    yield (end_ns - ns) / 1e6

    def add(self, got):
        """Set peer_ms of each statement to the duration nearest to its own."""
        for one in got:
            found = list(self.durations_ms(one))
            if found:
                one["peer_ms"] = min(found, key=lambda ms: abs(ms - one["duration_ms"]))
