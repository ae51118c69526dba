# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Parts of bench.py: the cost of a probe hit, on programs that do nothing else."""

import os
import platform
import statistics
import subprocess
import tempfile

from benching import BPFTRACE, EMPTY, SERVER_CPU, Tracer, compile_fixture, end, figure, file_places, functions, heading, \
    lost_by_bpftrace, lost_by_dbslower, only, pin, settled, table, turns
from elffile import Memory, usdt_probes
from tool import DBSLOWER

PROBED = ("pgstat_report_activity", "EndCommand", "AbortCurrentTransaction")


def measured(arguments, tracer, out):
    """Return the output of the traced program, which waits for a line before it starts."""
    out.seek(0)
    out.truncate()
    process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               preexec_fn=lambda: pin(0, SERVER_CPU))
    process.stdout.readline()
    memory = Memory(process.pid, arguments[0])
    tracing = tracer.start(out)
    try:
        if tracing:
            settled(memory, tracing, lambda: said(out), quiet=0.2, every=0.01)
        process.stdin.write("\n")
        process.stdin.flush()
        line = process.stdout.readline()
    finally:
        if tracing:
            end(tracing)
        process.communicate()
    return [float(word) for word in line.split()]


def said(out):
    out.seek(0)
    return out.read().decode(errors="replace")


# --- a statement

def victim(args):
    """ns for a statement of three probe hits (text, completion, idle)."""
    rounds = 2 * args.rounds
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as out:
        # No landing pads, as on Debian 12.
        path = compile_fixture("victim.c", os.path.join(folder, "victim"), "-fcf-protection=none")
        places = file_places(path, functions(path, *PROBED))
        start, done = (f"uprobe:{path}:{name}" for name in PROBED[:2])
        script = (f"{start} /arg1/ {{ @s[tid] = nsecs; @t[tid] = str(arg1); }} "
                  f"{done} {{ @d[tid] = nsecs - @s[tid]; }} "
                  f"{start} /!arg1 && @d[tid] > 1000000/ {{ printf(\"%s\", @t[tid]); }}")
        all_ = [Tracer("none", None), Tracer("empty", [EMPTY, *places]),
                Tracer("dbslower -m 1", [DBSLOWER, "-x", path, "-m", "1"]),
                Tracer("dbslower -m 0 --json", ["/bin/sh", "-c", 'exec "$@" >/dev/null', "-",
                                                DBSLOWER, "-x", path, "-m", "0", "--json"])]
        if BPFTRACE:
            all_.append(Tracer("bpftrace > 1 ms", [BPFTRACE, "-e", script]))
        all_ = only(all_, args.only)
        ns = {one.name: [] for one in all_}
        for number in range(rounds):
            for one in turns(all_, number):
                ns[one.name].append(measured([path, "15", "20000"], one, out)[0])
    heading(f"A statement of three probe hits, {rounds} rounds of 300,000")
    middle = {name: statistics.median(values) for name, values in ns.items()}
    lines = [["", "ns per statement", "of the empty programs'"]]
    for name, values in ns.items():
        part = (middle[name] - middle["none"]) / (middle["empty"] - middle["none"]) if "empty" in ns else 0
        lines.append([name, figure(values), f"{part:.2f}" if part and name != "none" else ""])
    table(lines)


# --- each kind of hit

# A statement of each kind of site: what probe_cost.c is told, how it is compiled, what must stand there.
SITES = {"nop": ("usdt", "none", b"\x90"), "push": ("functions", "none", b"\x53"),
         "endbr64": ("functions", "full", b"\xf3\x0f\x1e\xfa")}
KINDS = ("start", "done")

USDT_SCRIPT = """
usdt:{path}:probe_cost:begin {{ @s[tid] = nsecs; @t[tid] = str(arg0); }}
usdt:{path}:probe_cost:end /@s[tid]/ {{ $ns = nsecs - @s[tid];
    if ($ns {when}) {{ printf("%d %d %s\\n", pid, $ns, @t[tid]); }} delete(@s[tid]); delete(@t[tid]); }}
"""
FUNCTION_SCRIPT = """
uprobe:{path}:pgstat_report_activity {{
    if (arg1) {{ @s[tid] = nsecs; @t[tid] = str(arg1); }}
    else if (@s[tid]) {{ $ns = nsecs - @s[tid];
        if ($ns {when}) {{ printf("%d %d %s\\n", pid, $ns, @t[tid]); }} delete(@s[tid]); delete(@t[tid]); }} }}
"""


def site_tracers(path, mode, head):
    """The same rows for each kind of site."""
    if mode == "usdt":
        sites = [site for _, site, _ in usdt_probes(path)]
        args = ["--start", "probe_cost:begin", "--done", "probe_cost:end"]
    else:
        sites, args = functions(path, *PROBED), []
    places = file_places(path, sites)
    with open(path, "rb") as f:
        f.seek(int(places[0].split(":")[-2], 16))
        if f.read(len(head)) != head:
            raise RuntimeError(f"{path} does not have {head.hex()} at {places[0]}")
    dbslower = [DBSLOWER, "-x", path, *args]
    script = USDT_SCRIPT if mode == "usdt" else FUNCTION_SCRIPT
    all_ = [Tracer("none", None), Tracer("empty, perf uprobe", [EMPTY, "perf", *places]),
            Tracer("empty, uprobe_multi", [EMPTY, *places]),
            Tracer("dbslower, below its threshold", [*dbslower, "-m", "1000"]),
            Tracer("dbslower -m 0 --json, above", [*dbslower, "-m", "0", "--json"])]
    if BPFTRACE:
        all_ += [Tracer("bpftrace, below", [BPFTRACE, "-e", script.format(path=path, when="> 1000000000")]),
                 Tracer("bpftrace >= 0, above", [BPFTRACE, "-e", script.format(path=path, when=">= 0")])]
    return all_


def probes(args):
    """ns of a hit that starts a statement, and of one that ends it."""
    sites = {name: site for name, site in SITES.items() if platform.machine() == "x86_64"}
    if not sites:
        print("\nprobes: not measured: it knows the instructions of x86-64 only")
        return
    ns, lost = {}, {}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as out:
        all_ = {}
        for name, (mode, protection, head) in sites.items():
            path = compile_fixture("probe_cost.c", os.path.join(folder, name), f"-fcf-protection={protection}")
            all_[name] = path, mode, only(site_tracers(path, mode, head), args.only)
        for number in range(args.rounds):
            for name, (path, mode, tracers) in all_.items():
                for one in turns(tracers, number):
                    got = measured([path, mode, "15", "1000"], one, out)
                    for kind, value in zip(KINDS, got):
                        ns.setdefault((one.name, name, kind), []).append(value)
                    text = said(out)
                    lost[one.name] = lost.get(one.name, 0) + lost_by_dbslower(text) + lost_by_bpftrace(text)
    heading(f"ns of a hit with the clock's own, {args.rounds} rounds of 15,000 statements on each kind of site")
    columns = [(name, kind) for name in sites for kind in KINDS]
    table([[""] + [f"{name}, {kind}" for name, kind in columns]] +
          [[one.name] + [figure(ns[one.name, *column], "{:.0f}") for column in columns] for one in next(iter(all_.values()))[2]])
    for name, count in lost.items():
        if count:
            print(f"\n{name} lost {count} events: its figures are of fewer than all.")
