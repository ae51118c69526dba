# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Parts of bench.py: the cost of tracing for a PostgreSQL and a MariaDB server under load."""

import glob
import os
import re
import shutil
import subprocess

from benching import BPFTRACE, SERVER_CPU, TRACER_CPU, Bench, Tracer, figure, heading, load_tables, only, pin, table, turns
from cluster import Cluster, wait_for
from mariadb import Maria, maria_server
from tool import DBSLOWER

TICKS = os.sysconf("SC_CLK_TCK")
PROTOCOLS = ("simple", "extended", "prepared")
# How sysbench asks: text, or one that it has prepared.
MODES = {"text": "disable", "prepared": "auto"}
WHERE = f"server on CPU {SERVER_CPU}, tracer on CPU {TRACER_CPU}"

SCRIPT = """
usdt:{path}:postgresql:query__start {{ @start[tid] = nsecs; @text[tid] = str(arg0); }}
usdt:{path}:postgresql:query__done /@start[tid]/ {{
    $ns = nsecs - @start[tid];
    if ($ns {when}) {{ printf("%d %d.%03d %s\\n", pid, $ns / 1000000, $ns / 1000 % 1000, @text[tid]); }}
    delete(@start[tid]); delete(@text[tid]);
}}
"""


def to_file(folder, command):
    """The command with its output in a file there, as people keep JSON."""
    return ["/bin/sh", "-c", 'exec "$@" >"$0"/json', folder, *command]


def bpftraces(path):
    if not BPFTRACE:
        return []
    return [Tracer(name, [BPFTRACE, "-B", "line", "-e", SCRIPT.format(path=path, when=when)])
            for name, when in (("bpftrace > 1 ms", "> 1000000"), ("bpftrace >= 0", ">= 0"))]


# --- PostgreSQL

def reaped(cluster):
    """Seconds of CPU of the backends that the postmaster has reaped."""
    with open(f"/proc/{cluster.pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) / TICKS


def pgbench_run(cluster, protocol, seconds):
    """Transactions a second, and the backend's CPU us a transaction: utime + stime."""
    before, children = reaped(cluster), cluster.backends()
    done = subprocess.run(["pgbench", "-n", "-S", "-M", protocol, "-c", "1", "-j", "1", "-T", str(seconds)],
                          env=cluster.env(), capture_output=True, text=True, check=True,
                          preexec_fn=lambda: pin(0, SERVER_CPU))
    wait_for(lambda: cluster.backends() == children, 60, "pgbench's backend to be reaped")
    count = int(re.search(r"actually processed: (\d+)", done.stdout)[1])
    tps = float(re.search(r"^tps = ([\d.]+)", done.stdout, re.M)[1])
    return tps, (reaped(cluster) - before) * 1e6 / count


def why_beside_plain(all_):
    """Throughput under --why, in parts of that of the same round without."""
    named = {one.name: one for one in all_}
    plain, why = named.get("dbslower -m 1"), named.get("dbslower -m 1 --why")
    if plain and why:
        print("\n--why has of the plain tool's TPS, %: " + ", ".join(
            f"{protocol} {figure([100 * a / b for a, b in zip(why.rate[protocol], plain.rate[protocol])])}"
            for protocol in PROTOCOLS))


def pgbench(args):
    with Cluster(name="bench", log_min_duration_statement="-1", autovacuum="off").init() as cluster:
        cluster.start()
        pin(cluster.pid, SERVER_CPU)
        pin(0, SERVER_CPU)		# this program waits there, away from the tracer
        subprocess.run(["pgbench", "-i", "-q", "-s", "1"], env=cluster.env(), check=True, capture_output=True)
        with cluster.connect() as idle:		# its memory shows the breakpoints
            bench = Bench(idle.info.backend_pid, cluster.postgres, cluster.dir)
            dbslower = [DBSLOWER, "postgres", "-p", str(cluster.pid)]
            all_ = only([Tracer("none", None), Tracer("dbslower -m 1", [*dbslower, "-m", "1"]),
                         Tracer("dbslower -m 1 --why", [*dbslower, "-m", "1", "--why"]),
                         Tracer("dbslower -m 0 --json", to_file(cluster.dir, [*dbslower, "-m", "0", "--json"])),
                         *bpftraces(cluster.postgres)], args.only)
            bench.learn_all(all_)
            for protocol in PROTOCOLS:
                pgbench_run(cluster, protocol, 1)	# warm
            for number in range(args.rounds):
                for protocol in PROTOCOLS:
                    for one in turns(all_, number):
                        bench.measure(one, protocol, lambda: pgbench_run(cluster, protocol, args.seconds))
    heading(f"pgbench -S, {args.rounds} rounds of {args.seconds} s each, {WHERE}")
    table([["", "exec to attached, ms", "stop, ms", "peak memory, KiB", "sites"]] + [
        [one.name, figure(one.attach_ms), figure(one.stop_ms), figure(one.peak_kib, "{:.0f}"), str(len(one.sites))]
        for one in all_ if one.command])
    print()
    load_tables(all_, PROTOCOLS, "TPS")
    why_beside_plain(all_)
    if BPFTRACE:
        print("\nbpftrace's query__start and query__done see simple statements only.")


# --- MariaDB

def cpu_of_threads(pid):
    """Seconds of CPU of its threads; a connection's stays in the server's cache."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path) as f:
            total += int(f.read().split()[0])
    return total / 1e9


def sysbench(maria, command, *options):
    done = subprocess.run(
        ["sysbench", "oltp_point_select", "--db-driver=mysql", f"--mysql-socket={maria.socket}", "--mysql-user=root",
         "--mysql-db=d", "--tables=1", "--table-size=10000", *options, command],
        capture_output=True, text=True, preexec_fn=lambda: pin(0, SERVER_CPU))
    if done.returncode:
        raise RuntimeError(f"sysbench {command}:\n{done.stdout[-2000:]}")
    return done.stdout


def sysbench_run(maria, mode, events):
    """Statements a second, and the server's CPU us for each."""
    before = cpu_of_threads(maria.pid)
    said = sysbench(maria, "run", f"--db-ps-mode={MODES[mode]}", "--threads=1", "--time=0", f"--events={events}")
    count, rate = re.search(r"queries:\s+(\d+)\s+\(([\d.]+) per sec", said).groups()
    return float(rate), (cpu_of_threads(maria.pid) - before) * 1e6 / int(count)


def maria(args):
    if not maria_server() or not shutil.which("sysbench"):
        print("\nmaria: not measured: it needs mariadb-server-core, mariadb-client-core and sysbench")
        return
    with Maria(slow_query_log="OFF").init() as server:
        server.start()
        for thread in server.threads():
            pin(thread, SERVER_CPU)
        pin(0, SERVER_CPU)
        server.query("create database d")
        sysbench(server, "prepare")
        bench = Bench(server.pid, server.server, server.dir)
        dbslower = [DBSLOWER, "mysql", "-p", str(server.pid)]
        all_ = only([Tracer("none", None), Tracer("dbslower -m 1", [*dbslower, "-m", "1"]),
                     Tracer("dbslower -m 0 --json", to_file(server.dir, [*dbslower, "-m", "0", "--json"]))],
                    args.only)
        bench.learn_all(all_)
        # As many as take that long untraced: each run then has the same share of connecting.
        events = {mode: max(int(sysbench_run(server, mode, 5000)[0] * args.seconds), 1000) for mode in MODES}
        for number in range(args.rounds):
            for mode in MODES:
                for one in turns(all_, number):
                    bench.measure(one, mode, lambda: sysbench_run(server, mode, events[mode]))
    heading(f"MariaDB, sysbench oltp_point_select, {args.rounds} rounds of "
            f"{' and '.join(f'{events[mode]} {mode}' for mode in MODES)} statements each, {WHERE}; "
            "CPU is the server's")
    load_tables(all_, list(MODES), "statements/s")
