# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Part of bench.py: the time from exec to the first event, memory and system calls of a tracer."""

import os
import re
import select
import signal
import subprocess
import tempfile
import time

from bench_servers import SCRIPT
from benching import BPFTRACE, Bench, Tracer, end, figure, heading, only, peak_kib, pin, table, turns, SERVER_CPU
from cluster import Cluster, children, wait_for
from tool import DBSLOWER

STATEMENTS = 1000		# a second: so exact is the time of the first event
ATTACHES = re.compile(r"BPF_LINK_CREATE|BPF_RAW_TRACEPOINT_OPEN|PERF_EVENT_IOC_SET_BPF")
BCC = ("/usr/sbin/dbslower-bpfcc", "/usr/share/bcc/tools/dbslower")


def bcc():
    """(bcc's dbslower or None, why not)."""
    path = next((path for path in BCC if os.access(path, os.X_OK)), None)
    if not path:
        return None, "no dbslower of bcc's is installed (bpfcc-tools)"
    headers = f"/lib/modules/{os.uname().release}/build"
    if not os.path.exists(headers) and not os.path.exists("/sys/kernel/kheaders.tar.xz"):
        return None, f"it compiles when it starts, and this kernel's headers are not there ({headers}, kheaders.tar.xz)"
    return path, ""


def begin(bench, tracer, times):
    """One start: ms to attached and to the first statement printed."""
    started = time.monotonic()
    process = tracer.start(subprocess.PIPE, subprocess.DEVNULL)
    try:
        bench.wait_attached(tracer, process)
        times["attached"].append((time.monotonic() - started) * 1000)
        seen = b""
        while not re.search(tracer.first, seen, re.M):
            if not select.select([process.stdout], [], [], 30)[0]:
                raise TimeoutError(f"{tracer.name} printed no statement within 30 s: {seen[-500:]!r}")
            got = os.read(process.stdout.fileno(), 1 << 16)
            if not got:
                raise RuntimeError(f"{tracer.name} ended with {process.wait()}: {seen[-500:]!r}")
            seen += got
        times["first"].append((time.monotonic() - started) * 1000)
        times["peak"].append(peak_kib(process.pid))
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.stdout.read()		# what it has yet to say must not keep it
        process.wait(60)
        times["stop"].append((time.monotonic() - started) * 1000)
    finally:
        process.stdout.close()
        end(process, bench.memory)


def system_calls(bench, tracer):
    """Return the number of system calls, with all threads and children, until the last probe is attached."""
    with tempfile.NamedTemporaryFile("r") as log:
        traced = subprocess.Popen(["strace", "-f", "-o", log.name, *tracer.command], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: traced.poll() is not None or bench.attached(tracer), 60, f"{tracer.name} to attach under strace")
        finally:
            for pid in children(traced.pid):
                os.kill(pid, signal.SIGINT)
            traced.wait(60)
        wait_for(lambda: not bench.memory.breakpoints(), 60, "the breakpoints to be gone")
        calls = [line for line in log if re.match(r"\d+ +\w+\(", line)]
    return max((n for n, line in enumerate(calls, 1) if ATTACHES.search(line)), default=0)


def size(path):
    """Bytes of the file and of the libraries that it is linked with."""
    said = subprocess.run(["ldd", path], capture_output=True, text=True)
    libraries = set(re.findall(r"(/\S+) \(0x", said.stdout)) if said.returncode == 0 else set()
    return os.path.getsize(path), sum(os.path.getsize(os.path.realpath(one)) for one in libraries), len(libraries)


def starters(cluster):
    """Tracers, each with how the first statement looks in its output."""
    all_ = [Tracer("dbslower -m 0 --json", [DBSLOWER, "postgres", "-p", str(cluster.pid), "-m", "0", "--json"]),
            Tracer("dbslower -m 0", [DBSLOWER, "postgres", "-p", str(cluster.pid), "-m", "0"])]
    all_[0].first, all_[1].first = rb'"type":"statement"', rb"SELECT"
    if BPFTRACE:
        all_.append(Tracer("bpftrace >= 0", [BPFTRACE, "-B", "line", "-e", SCRIPT.format(path=cluster.postgres, when=">= 0")]))
        all_[-1].first = rb"SELECT"
    path, why = bcc()
    if path:
        all_.append(Tracer("bcc's dbslower -m 0", ["/usr/bin/env", "PYTHONUNBUFFERED=1", path, "postgres", "-m", "0"]))
        all_[-1].first = rb"SELECT"
    return all_, why


def start(args):
    times, calls = {}, {}
    with Cluster(name="bench", log_min_duration_statement="-1", autovacuum="off").init() as cluster:
        cluster.start()
        pin(cluster.pid, SERVER_CPU)
        pin(0, SERVER_CPU)
        subprocess.run(["pgbench", "-i", "-q", "-s", "1"], env=cluster.env(), check=True, capture_output=True)
        with cluster.connect() as idle:
            bench = Bench(idle.info.backend_pid, cluster.postgres, cluster.dir)
            all_, no_bcc = starters(cluster)
            all_ = only(all_, args.only)
            for one in all_:
                bench.learn(one)
                times[one.name] = {"attached": [], "first": [], "stop": [], "peak": []}
                calls[one.name] = system_calls(bench, one)
            load = subprocess.Popen(["pgbench", "-n", "-S", "-c", "1", "-R", str(STATEMENTS), "-T", "600"],
                                    env=cluster.env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                for number in range(3 * args.rounds):
                    for one in turns(all_, number):
                        begin(bench, one, times[one.name])
            finally:
                load.terminate()
                load.wait()
    heading(f"Starts, {3 * args.rounds} rounds, while a server has {STATEMENTS} statements a second")
    table([["", "exec to attached, ms", "exec to first event, ms", "stop, ms", "peak memory, KiB",
            "system calls until attached"]] + [
        [one.name, *(figure(times[one.name][key]) for key in ("attached", "first", "stop")),
         figure(times[one.name]["peak"], "{:.0f}"), str(calls[one.name])] for one in all_])
    print()
    for name, path in (("dbslower", DBSLOWER), ("bpftrace", BPFTRACE)):
        if path:
            own, shared, count = size(path)
            print(f"{name}: {own} bytes" + (f", and {shared} of {count} shared libraries" if count else ", static"))
    if no_bcc:
        print(f"bcc: not measured: {no_bcc}.")
