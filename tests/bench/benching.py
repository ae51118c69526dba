# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Common parts of bench.py: tracers that take turns, and tables of medians with their spread."""

import collections
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from cluster import wait_for
from elffile import Memory, readelf, usdt_probes
from tool import BUILD, FIXTURES

EMPTY = os.path.join(BUILD, "tests", "lib", "empty-probes")
# Debian's is in /usr/bin or /usr/sbin; the latter is not in everybody's PATH.
BPFTRACE = shutil.which("bpftrace", path="/usr/bin:/usr/sbin")

ALL_CPUS = os.sched_getaffinity(0)
# The same where there is but one.
TRACER_CPU, SERVER_CPU = min(ALL_CPUS), max(ALL_CPUS)


def pin(pid, *cpus):
    os.sched_setaffinity(pid, cpus)


def machine():
    """The machine, in a line."""
    with open("/proc/cpuinfo") as f:
        name = re.search(r"^(?:model name|CPU part)\s*: (.*)", f.read(), re.M)
    release = os.uname()
    virtual = ""
    if shutil.which("systemd-detect-virt"):
        virtual = subprocess.run("systemd-detect-virt", capture_output=True, text=True).stdout.strip()
    words = [f"{len(ALL_CPUS)} CPUs", name[1] if name else "", "" if virtual in ("", "none") else f"virtual ({virtual})",
             f"{release.sysname} {release.release} {release.machine}"]
    return ", ".join(word for word in words if word)


class Tracer:
    """One way to trace; None as the command is none at all."""

    def __init__(self, name, command):
        self.name, self.command = name, command
        self.sites = []
        self.attach_ms, self.stop_ms, self.peak_kib = [], [], []
        self.rate, self.cpu_us = collections.defaultdict(list), collections.defaultdict(list)

    def start(self, out, err=subprocess.STDOUT, cpus=(TRACER_CPU,)):
        if not self.command:
            return None
        return subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                preexec_fn=lambda: pin(0, *cpus))


def peak_kib(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read())[1])


def settled(memory, process, said=lambda: "", quiet=0.5, every=0.05):
    """The sites with breakpoints, once there are some and they have not changed for so many seconds."""
    seen = [[]]

    def same():
        if process.poll() is not None:
            raise RuntimeError(f"{' '.join(process.args)[:200]} ended with {process.returncode}:\n{said()}")
        seen.append(memory.breakpoints())
        return len(seen) > quiet / every and seen[-1] and all(one == seen[-1] for one in seen[-round(quiet / every):])
    wait_for(same, 60, f"{' '.join(process.args)[:200]} to attach", every=every)
    return seen[-1]


def end(process, memory=None):
    """
    Ends it by SIGINT, and says when that was; with @memory waits until no breakpoint is left there. bpftrace goes on
    if it is interrupted while it does not wait, twice in a hundred; the next one ends it.
    """
    for _ in range(4):
        begin = time.monotonic()
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(30)
            break
        except subprocess.TimeoutExpired:
            print(f"bench: {process.args[0]} did not end within 30 s of an interrupt: once more", file=sys.stderr, flush=True)
    else:
        raise TimeoutError(f"{process.args[0]} does not end")
    if memory:
        wait_for(lambda: not memory.breakpoints(), 60, "the breakpoints to be gone")
    return begin


class Bench:
    """A server that is traced, by its process @pid that runs @path."""

    def __init__(self, pid, path, folder):
        self.path, self.memory = path, Memory(pid, path)
        self.out = tempfile.TemporaryFile(dir=folder)

    def said(self):
        self.out.seek(0)
        return self.out.read()[-2000:].decode(errors="replace")

    def learn(self, tracer):
        """Which sites it uses, by a first run."""
        process = tracer.start(self.out)
        if process:
            try:
                tracer.sites = settled(self.memory, process, self.said)
            finally:
                end(process, self.memory)

    def learn_all(self, all_):
        """… and then puts the empty programs, on dbslower's sites, behind the first tracer."""
        for one in all_:
            self.learn(one)
        sites = next((one.sites for one in all_ if one.name.startswith("dbslower")), [])
        if sites:
            all_.insert(1, Tracer("empty", [EMPTY, *file_places(self.path, sites)]))
            self.learn(all_[1])

    def attached(self, tracer):
        return all(self.memory.read(site, 1) == b"\xcc" for site in tracer.sites)

    def wait_attached(self, tracer, process):
        while not self.attached(tracer):
            if process.poll() is not None:
                raise RuntimeError(f"{tracer.name} ended with {process.returncode}:\n{self.said()}")

    def measure(self, tracer, key, load):
        """One run of load() under a tracer; it returns what it did a second, and CPU us for each."""
        self.out.seek(0)
        self.out.truncate()
        begin = time.monotonic()
        process = tracer.start(self.out)
        if process:
            self.wait_attached(tracer, process)
            tracer.attach_ms.append((time.monotonic() - begin) * 1000)
            time.sleep(0.2)
        try:
            rate, cpu = load()
        finally:
            if process:
                self.stop(tracer, process)
        tracer.rate[key].append(rate)
        tracer.cpu_us[key].append(cpu)

    def stop(self, tracer, process):
        if process.poll() is not None:
            raise RuntimeError(f"{tracer.name} ended with {process.returncode}:\n{self.said()}")
        tracer.peak_kib.append(peak_kib(process.pid))
        begin = end(process)
        tracer.stop_ms.append((time.monotonic() - begin) * 1000)
        end(process, self.memory)


def only(all_, words):
    """Those with one of @words in their names, and none."""
    return [one for one in all_ if not words or not one.command or any(word in one.name for word in words)]


def turns(all_, number):
    """All tracers, in the order of round @number."""
    return [all_[(n + number) % len(all_)] for n in range(len(all_))]


def file_places(path, sites):
    """file:offset:refctr of each site, for empty-probes."""
    segments = [tuple(int(value, 16) for value in one) for one in
                re.findall(r"^\s+LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)", readelf("-l", path), re.M)]

    def offset(address):
        return next(address - start + at for at, start, size in segments if start <= address < start + size)
    semaphores = {site: semaphore for _, site, semaphore in usdt_probes(path) if semaphore}
    return [f"{path}:{offset(site):#x}:{offset(semaphores[site]) if site in semaphores else 0:#x}" for site in sites]


def functions(path, *names):
    """The addresses of functions that are exported."""
    symbols = readelf("-Ws", "--dyn-syms", path)
    return [int(re.search(rf"(\w+)\s+\d+ FUNC .* {name}$", symbols, re.M)[1], 16) for name in names]


def compile_fixture(name, path, *flags):
    subprocess.run(["gcc", "-O2", "-rdynamic", *flags, "-o", path, os.path.join(FIXTURES, name)], check=True)
    return path


# --- what is printed

def figure(values, form="{:.1f}"):
    if not values:
        return "-"
    return f"{form.format(statistics.median(values))} ({form.format(min(values))}-{form.format(max(values))})"


def table(rows):
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    for row in rows:
        print("  ".join([row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]).rstrip())


def heading(text):
    print(f"\n{text}: median (min-max)\n")


def load_tables(all_, keys, what):
    """Rates and CPU time under each key, and what each tracer adds."""
    table([[""] + [f"{what} {key}" for key in keys]] +
          [[one.name] + [figure(one.rate[key], "{:.0f}") for key in keys] for one in all_])
    print()
    table([[""] + [f"CPU us {key}" for key in keys]] +
          [[one.name] + [figure(one.cpu_us[key], "{:.2f}") for key in keys] for one in all_])
    print()
    costs(all_, keys)


def costs(all_, keys):
    """Return what each adds to a statement, and the ratio to the cost of empty programs."""
    named = {one.name: one for one in all_}

    def added(one, key):
        """Round by round against the same round's untraced run."""
        return [a - b for a, b in zip(one.cpu_us[key], named["none"].cpu_us[key])]
    rows = [[""] + [f"added us {key}" for key in keys]]
    for one in all_[1:]:
        cells = []
        for key in keys:
            cell = figure(added(one, key), "{:.2f}")
            if "empty" in named and one.name != "empty":
                empty = statistics.median(added(named["empty"], key))
                if empty > 0:
                    cell += f" = {statistics.median(added(one, key)) / empty:.2f} x empty"
            cells.append(cell)
        rows.append([one.name] + cells)
    table(rows)


SUMMARY = re.compile(r"^dbslower: \d+ statements, (\d+) shown(?:; lost: (.+)|, nothing lost)$", re.M)
# What its summary counts for each statement that is missing, and for what is shown in part.
STATEMENTS = ("events (buffer full)", "probe hits (table full)", "starts without an end", "ends without a start")
IN_PART = ("truncated texts", "unknown values", "texts (overhead limit)", "time breakdowns")


def summary_of(said):
    """
    (number shown, {words: number lost}) of dbslower's last summary in a text, None if there is none. Other messages may
    follow it, and it comes on standard error with --json as well, and again while more is lost.
    """
    found = SUMMARY.findall(said)
    if not found:
        return None
    shown, lost = found[-1]
    return int(shown), {words: int(number) for number, words in re.findall(r"(\d+) ([^,]+)", lost)}


def lost_statements(lost):
    return sum(lost.get(words, 0) for words in STATEMENTS)


def lost_by_dbslower(said):
    """The sum of all that a summary counts as lost, 0 without one."""
    _, lost = summary_of(said) or (0, {})
    return sum(number for words, number in lost.items() if words not in IN_PART)


def lost_by_bpftrace(said):
    return sum(int(n) for n in re.findall(r"Lost (\d+) events", said))
