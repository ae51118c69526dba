# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Figures, side by side: what tracing costs, with dbslower and with others. Not a test.

The server's processes and pgbench run on one CPU, the tracer on another: unpinned, one
client mostly measures how long an idle CPU takes to wake up. All tracers take turns in
every round, the order changes by round, and each figure is a median with (min-max).

Attached means: the breakpoints are in the server's memory, read there, for all alike.
Peak memory is VmHWM at the end; wait4's ru_maxrss would count this Python before exec.
CPU per statement is of the backend alone: utime + stime that the postmaster reaped.
"""

import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from cluster import Cluster, server_bindir, wait_for	# noqa: E402
from elffile import Memory, readelf, usdt_probes	# noqa: E402
from tool import BUILD, DBSLOWER	# noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
PROTOCOLS = ("simple", "extended", "prepared")
EMPTY = os.path.join(BUILD, "tests", "empty-probes")

BPFTRACE = """
usdt:{path}:postgresql:query__start {{ @start[tid] = nsecs; @text[tid] = str(arg0); }}
usdt:{path}:postgresql:query__done /@start[tid]/ {{
    $ns = nsecs - @start[tid];
    if ($ns {when}) {{ printf("%d %d.%03d %s\\n", pid, $ns / 1000000, $ns / 1000 % 1000, @text[tid]); }}
    delete(@start[tid]); delete(@text[tid]);
}}
"""


class Tracer:
    """One way to trace; None as the command is none at all."""

    def __init__(self, name, command):
        self.name, self.command = name, command
        self.sites = []
        self.attach_ms, self.stop_ms, self.peak_kib = [], [], []
        self.tps = {protocol: [] for protocol in PROTOCOLS}
        self.cpu_us = {protocol: [] for protocol in PROTOCOLS}

    def start(self, out):
        if not self.command:
            return None
        return subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                preexec_fn=lambda: pin(0, TRACER_CPU))


def cpus():
    """(the tracer's CPU, the server's CPU); the same where there is but one."""
    have = sorted(os.sched_getaffinity(0))
    return have[0], have[-1]


TRACER_CPU, SERVER_CPU = cpus()


def pin(pid, cpu):
    os.sched_setaffinity(pid, {cpu})


class Bench:
    def __init__(self, cluster, seconds):
        self.cluster, self.seconds = cluster, seconds
        self.path = cluster.postgres
        self.idle = cluster.connect()		# its memory shows the breakpoints
        self.memory = Memory(self.idle.info.backend_pid, self.path)
        self.out = tempfile.TemporaryFile(dir=cluster.dir)

    def learn(self, tracer):
        """Which sites it uses, by a first run."""
        process = tracer.start(self.out)
        if not process:
            return
        seen = [[]]

        def settled():
            """The sites, once they have not changed for half a second."""
            if process.poll() is not None:
                raise RuntimeError(f"{tracer.name} ended with {process.returncode}:\n{self.said()}")
            seen.append(self.memory.breakpoints())
            return len(seen) > 12 and seen[-1] and all(one == seen[-1] for one in seen[-10:])
        try:
            wait_for(settled, 60, f"{tracer.name} to attach", every=0.05)
        finally:
            self.end(process)
        tracer.sites = seen[-1]

    def said(self):
        self.out.seek(0)
        return self.out.read()[-2000:].decode(errors="replace")

    def end(self, process):
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        process.wait(60)
        wait_for(lambda: not self.memory.breakpoints(), 60, "the breakpoints to be gone")

    def attached(self, tracer):
        return all(self.memory.read(site, 1) == b"\xcc" for site in tracer.sites)

    def measure(self, tracer, protocol):
        """One run of one tracer under one protocol."""
        self.out.seek(0)
        self.out.truncate()
        begin = time.monotonic()
        process = tracer.start(self.out)
        if process:
            while not self.attached(tracer):
                if process.poll() is not None:
                    raise RuntimeError(f"{tracer.name} ended with {process.returncode}:\n{self.said()}")
            tracer.attach_ms.append((time.monotonic() - begin) * 1000)
            time.sleep(0.2)
        try:
            tps, cpu = self.pgbench(protocol)
        finally:
            if process:
                self.stop(tracer, process)
        tracer.tps[protocol].append(tps)
        tracer.cpu_us[protocol].append(cpu)

    def stop(self, tracer, process):
        with open(f"/proc/{process.pid}/status") as f:
            tracer.peak_kib.append(int(re.search(r"VmHWM:\s+(\d+)", f.read())[1]))
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(60)
        tracer.stop_ms.append((time.monotonic() - begin) * 1000)
        wait_for(lambda: not self.memory.breakpoints(), 60, "the breakpoints to be gone")

    def reaped(self):
        """Seconds of CPU of the backends that the postmaster has reaped."""
        with open(f"/proc/{self.cluster.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[13]) + int(fields[14])) / TICKS

    def pgbench(self, protocol):
        """Transactions a second, and the backend's CPU us a transaction."""
        before, children = self.reaped(), self.cluster.backends()
        done = subprocess.run(["pgbench", "-n", "-S", "-M", protocol, "-c", "1", "-j", "1", "-T", str(self.seconds)],
                              env=self.cluster.env(), capture_output=True, text=True, check=True,
                              preexec_fn=lambda: pin(0, SERVER_CPU))
        wait_for(lambda: self.cluster.backends() == children, 60, "pgbench's backend to be reaped")
        count = int(re.search(r"actually processed: (\d+)", done.stdout)[1])
        tps = float(re.search(r"^tps = ([\d.]+)", done.stdout, re.M)[1])
        return tps, (self.reaped() - before) * 1e6 / count


def file_places(path, sites):
    """file:offset:refctr of each site, for empty-probes."""
    segments = [tuple(int(value, 16) for value in one) for one in
                re.findall(r"^\s+LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", readelf("-l", path), re.M)]

    def offset(address):
        return next(address - start + at for at, start, size in segments if start <= address < start + size)
    semaphores = {site: semaphore for _, site, semaphore in usdt_probes(path) if semaphore}
    return [f"{path}:{offset(site):#x}:{offset(semaphores[site]) if site in semaphores else 0:#x}" for site in sites]


def tracers(cluster, json_path):
    path = cluster.postgres
    dbslower = [DBSLOWER, "postgres", "-p", str(cluster.pid)]
    all_ = [Tracer("none", None),
            Tracer("dbslower -m 1", [*dbslower, "-m", "1"]),
            Tracer("dbslower -m 0 --json", ["/bin/sh", "-c", 'exec "$@" >"$0"', json_path, *dbslower, "-m", "0", "--json"])]
    bpftrace = next((folder for folder in ("/usr/bin", "/usr/sbin") if os.access(f"{folder}/bpftrace", os.X_OK)), None)
    if bpftrace:
        for name, when in (("bpftrace > 1 ms", "> 1000000"), ("bpftrace >= 0", ">= 0")):
            all_.append(Tracer(name, [f"{bpftrace}/bpftrace", "-e", BPFTRACE.format(path=path, when=when)]))
    return all_


def figure(values, form="{:.1f}"):
    if not values:
        return "-"
    return f"{form.format(statistics.median(values))} ({form.format(min(values))}-{form.format(max(values))})"


def table(rows):
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        print("  ".join([row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]))


def report(all_, rounds, seconds):
    print(f"\n{rounds} rounds, {seconds} s of pgbench -S each, server on CPU {SERVER_CPU}, tracer on CPU {TRACER_CPU}: "
          "median (min-max)\n")
    table([["", "exec to attached, ms", "stop, ms", "peak memory, KiB", "sites"]] + [
        [one.name, figure(one.attach_ms), figure(one.stop_ms), figure(one.peak_kib, "{:.0f}"), str(len(one.sites))]
        for one in all_ if one.command])
    print()
    head = [""] + [f"TPS {protocol}" for protocol in PROTOCOLS]
    table([head] + [[one.name] + [figure(one.tps[p], "{:.0f}") for p in PROTOCOLS] for one in all_])
    print()
    head = [""] + [f"CPU us {protocol}" for protocol in PROTOCOLS]
    table([head] + [[one.name] + [figure(one.cpu_us[p], "{:.2f}") for p in PROTOCOLS] for one in all_])
    costs(all_)
    print(f"\ndbslower: {os.path.getsize(DBSLOWER)} bytes. bpftrace's query__start and query__done see "
          "simple statements only.")


def costs(all_):
    """What each adds to a statement, and that in parts of the empty programs' cost."""
    named = {one.name: one for one in all_}
    def added(one, protocol):
        """Round by round against the same round's untraced run."""
        return [a - b for a, b in zip(one.cpu_us[protocol], named["none"].cpu_us[protocol])]
    rows = [[""] + [f"added us {protocol}" for protocol in PROTOCOLS]]
    for one in all_[1:]:
        cells = []
        for protocol in PROTOCOLS:
            cell = figure(added(one, protocol), "{:.2f}")
            if "empty" in named and one.name != "empty":
                empty = statistics.median(added(named["empty"], protocol))
                if empty > 0:
                    cell += f" = {statistics.median(added(one, protocol)) / empty:.2f} x empty"
            cells.append(cell)
        rows.append([one.name] + cells)
    print()
    table(rows)


# --- the cost of a hit, on a program that does nothing else

VICTIM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures", "victim.c")
PROBED = ("pgstat_report_activity", "EndCommand", "AbortCurrentTransaction")


def victim_build(folder):
    """The victim, and its probed functions' file offsets; no landing pads, as on Debian 12."""
    path = os.path.join(folder, "victim")
    subprocess.run(["gcc", "-O2", "-fcf-protection=none", "-rdynamic", "-o", path, VICTIM], check=True)
    symbols = readelf("-Ws", "--dyn-syms", path)
    return path, file_places(path, [int(re.search(rf"(\w+)\s+\d+ FUNC .* {name}$", symbols, re.M)[1], 16)
                                    for name in PROBED])


def victim_run(path, tracer):
    """ns for a statement of three hits (text, completion, idle): the median of the victim's rounds."""
    process = subprocess.Popen([path, "15", "20000"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               preexec_fn=lambda: pin(0, SERVER_CPU))
    process.stdout.readline()
    with open(os.devnull, "wb") as out:
        tracing = tracer.start(out)
    if tracing:
        time.sleep(1)			# bpftrace takes a third of that
    ns = float(process.communicate("\n")[0].split()[0])
    if tracing:
        tracing.send_signal(signal.SIGINT)
        tracing.wait()
    return ns


def victim_report(rounds):
    with tempfile.TemporaryDirectory() as folder:
        path, places = victim_build(folder)
        start, done = (f"uprobe:{path}:{name}" for name in PROBED[:2])
        script = (f"{start} /arg1/ {{ @s[tid] = nsecs; @t[tid] = str(arg1); }} "
                  f"{done} {{ @d[tid] = nsecs - @s[tid]; }} "
                  f"{start} /!arg1 && @d[tid] > 1000000/ {{ printf(\"%s\", @t[tid]); }}")
        all_ = [Tracer("none", None), Tracer("empty", [EMPTY, *places]),
                Tracer("dbslower -m 1", [DBSLOWER, "-x", path, "-m", "1"]),
                Tracer("dbslower -m 0 --json", [DBSLOWER, "-x", path, "-m", "0", "--json"])]
        if shutil.which("bpftrace"):
            all_.append(Tracer("bpftrace > 1 ms", ["bpftrace", "-e", script]))
        ns = {one.name: [] for one in all_}
        for number in range(rounds):
            for n in range(len(all_)):
                one = all_[(n + number) % len(all_)]
                ns[one.name].append(victim_run(path, one))
    floor = statistics.median(ns["empty"]) - statistics.median(ns["none"])
    print(f"{rounds} rounds of 300,000 statements of three hits each: median (min-max)\n")
    lines = [["", "ns per statement", "of the empty programs'"]]
    for name, seen in ns.items():
        added = statistics.median(seen) - statistics.median(ns["none"])
        lines.append([name, figure(seen), "" if name == "none" else f"{added / floor:.2f}"])
    table(lines)
    print(flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--no-empty", action="store_true", help=f"without {os.path.basename(EMPTY)}")
    parser.add_argument("--only", action="append", help="only tracers with this in their names, and none")
    args = parser.parse_args()
    if os.geteuid() != 0 or not server_bindir():
        sys.exit("bench: needs root and a PostgreSQL server (postgresql-15)")
    victim_report(2 * args.rounds)
    with Cluster(name="bench", log_min_duration_statement="-1", autovacuum="off").init() as cluster:
        cluster.start()
        pin(cluster.pid, SERVER_CPU)
        pin(0, SERVER_CPU)		# this program waits there, away from the tracer
        subprocess.run(["pgbench", "-i", "-q", "-s", "1"], env=cluster.env(), check=True, capture_output=True)
        bench = Bench(cluster, args.seconds)
        all_ = tracers(cluster, os.path.join(cluster.dir, "out.json"))
        if args.only:
            all_ = all_[:1] + [one for one in all_[1:] if any(word in one.name for word in args.only)]
        for one in all_:
            bench.learn(one)
        sites = next((one.sites for one in all_ if one.name.startswith("dbslower")), [])
        if os.access(EMPTY, os.X_OK) and sites and not args.no_empty:
            all_.insert(1, Tracer("empty", [EMPTY, *file_places(cluster.postgres, sites)]))
            bench.learn(all_[1])
        else:
            print(f"without empty programs: no {EMPTY}", file=sys.stderr)
        run(bench, all_, args.rounds)
        report(all_, args.rounds, args.seconds)


def run(bench, all_, rounds):
    for one in PROTOCOLS:
        bench.pgbench(one)		# warm
    for number in range(rounds):
        for protocol in PROTOCOLS:
            for n in range(len(all_)):
                bench.measure(all_[(n + number) % len(all_)], protocol)
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
