# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Part of bench.py: the highest rate of statements without a loss, and the losses beyond it."""

import os
import tempfile

from backends import Backends
from benching import ALL_CPUS, BPFTRACE, Tracer, compile_fixture, end, figure, heading, lost_by_bpftrace, lost_statements, \
    only, pin, settled, summary_of, table, turns
from elffile import Memory
from tool import DBSLOWER

RUN_MS = 600
STEPS = 6			# of the bisection: to 1/64 of the most that there can be

SCRIPT = """
uprobe:{path}:pgstat_report_activity {{
    if (arg1) {{ @s[tid] = nsecs; @t[tid] = str(arg1); }}
    else if (@s[tid]) {{ $ns = nsecs - @s[tid];
        printf("%d %d.%03d %s\\n", pid, $ns / 1000000, $ns / 1000 % 1000, @t[tid]); delete(@s[tid]); delete(@t[tid]); }} }}
"""


class Count:
    """Of one run: statements that were run, that the tracer printed, that it counts as lost; a second."""

    def __init__(self, ran, printed, lost, seconds):
        self.ran, self.printed, self.lost, self.seconds = ran, printed, lost, seconds

    @property
    def rate(self):
        return self.ran / self.seconds


def dbslower_counts(out):
    """(printed, lost): its summary's word, which the number of lines must bear out."""
    lines, messages = lines_of(out, b"SELECT abalance", b"dbslower: ")
    shown, lost = summary_of(messages) or (None, {})
    if shown != lines:
        raise RuntimeError(f"dbslower wrote {lines} statements and says {shown}")
    return lines, lost_statements(lost)


def bpftrace_counts(out):
    lines, messages = lines_of(out, b"SELECT abalance", b"Lost ")
    return lines, lost_by_bpftrace(messages)


def lines_of(out, mark, message):
    """Return the number of lines with @mark, and the text of those that begin with @message."""
    out.seek(0)
    lines, messages = 0, []
    for line in out:
        lines += mark in line
        if line.startswith(message):
            messages.append(line.decode(errors="replace"))
    return lines, "".join(messages)


def run(servers, path, tracer, out, rate):
    """All servers at @rate statements a second together, 0: as fast as they can."""
    out.seek(0)
    out.truncate()
    process = tracer.start(out, cpus=ALL_CPUS)
    try:
        settled(Memory(servers[0].pid, path), process, lambda: out.seek(0) or out.read()[-2000:].decode(errors="replace"),
                quiet=0.2, every=0.02)
        for server in servers:
            server.begin(f"pace {RUN_MS} {rate / len(servers):f}")
        ran = [[int(word) for word in server.finish()[0].split()[1:]] for server in servers]
    finally:
        end(process, Memory(servers[0].pid, path))
    return Count(sum(n for n, _ in ran), *tracer.counts(out), max(ns for _, ns in ran) / 1e9)


def highest(servers, path, tracer, out):
    """(the run as fast as they can, the highest rate that was asked for and had no loss)."""
    flood = run(servers, path, tracer, out, 0)
    if not flood.lost and flood.printed == flood.ran:
        return flood, flood.rate
    low, high = 0, flood.rate
    for _ in range(STEPS):
        middle = (low + high) / 2
        count = run(servers, path, tracer, out, middle)
        if count.lost or count.printed < count.ran:
            high = middle
        else:
            low = min(middle, count.rate)
    return flood, low


def tracers(path):
    all_ = [Tracer("dbslower -m 0 --json", [DBSLOWER, "-x", path, "-m", "0", "--json"]),
            Tracer("dbslower -m 0", [DBSLOWER, "-x", path, "-m", "0"])]
    all_[0].counts = all_[1].counts = dbslower_counts
    if BPFTRACE:
        all_.append(Tracer("bpftrace >= 0", [BPFTRACE, "-e", SCRIPT.format(path=path)]))
        all_[-1].counts = bpftrace_counts
    return all_


def rate(args):
    found = {}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as out:
        path = compile_fixture("backends.c", os.path.join(folder, "postgres"), "-pthread")
        servers = [Backends(path) for _ in ALL_CPUS]
        try:
            for server, cpu in zip(servers, sorted(ALL_CPUS)):
                pin(server.pid, cpu)
            all_ = only(tracers(path), args.only)
            for number in range(args.rounds):
                for one in turns(all_, number):
                    found.setdefault(one.name, []).append(highest(servers, path, one, out))
        finally:
            for server in servers:
                server.end()
    heading(f"Statements a second, of servers that do nothing else, one on each of {len(ALL_CPUS)} CPUs, the tracer anywhere; "
            f"output to a file; {args.rounds} bisections of {STEPS} runs of {RUN_MS} ms")
    rows = [["", "the most without a loss", "as fast as they can: run", "printed", "lost and counted", "lost and not counted"]]
    for name, runs in found.items():
        floods = [flood for flood, _ in runs]
        rows.append([name, figure([low for _, low in runs], "{:.0f}"), figure([one.rate for one in floods], "{:.0f}"),
                     *(figure([value(one) / one.seconds for one in floods], "{:.0f}") for value in
                       (lambda one: one.printed, lambda one: one.lost, lambda one: one.ran - one.printed - one.lost))])
    table(rows)
