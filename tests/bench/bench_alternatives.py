# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Part of bench.py: what servers' own means to find slow statements add to the CPU time of a statement, beside tracers. One
connection for each asks for a row by its key, as pgbench -S and sysbench's oltp_point_select do. CPU time is that of the
backend, or of the server's threads, by the kernel's scheduler. Each traced server runs a copy of the program, in which
nothing but its tracer has breakpoints, so that all are ready at once and take short turns.
"""

import collections
import contextlib
import os
import shutil
import statistics
import subprocess
import tempfile

from bench_servers import SCRIPT, cpu_of_threads, to_file
from benching import (BPFTRACE, EMPTY, SERVER_CPU, TRACER_CPU, Tracer, end, figure, file_places, heading, pin, settled, table,
                      turns)
from cluster import Cluster
from elffile import Memory
from mariadb import SERVER, Maria, maria_server
from tool import DBSLOWER

ROUNDS = 100
STATEMENTS = 250	# of a turn
ROWS = 10_000

# Settings of a connection. A threshold of 1 s is never reached.
POSTGRES = {
    "log_min_duration_statement=1s": ("log_min_duration_statement=1s",),
    "log_min_duration_statement=0": ("log_min_duration_statement=0",),
    "auto_explain": ("session_preload_libraries=auto_explain", "auto_explain.log_min_duration=1s"),
    "auto_explain, log_analyze": ("session_preload_libraries=auto_explain", "auto_explain.log_min_duration=1s",
                                  "auto_explain.log_analyze=on"),
    "auto_explain, log_analyze, no log_timing": (
        "session_preload_libraries=auto_explain", "auto_explain.log_min_duration=1s", "auto_explain.log_analyze=on",
        "auto_explain.log_timing=off"),
}
# The log of the server is on.
MARIA = {
    "slow log, long_query_time=1": ("set long_query_time = 1",),
    "slow log, long_query_time=0": ("set long_query_time = 0",),
}


def cpu_of(pid):
    """Seconds of CPU of a process with one thread."""
    with open(f"/proc/{pid}/schedstat") as f:
        return int(f.read().split()[0]) / 1e9


class Alternatives:
    """Connections by the name of what is measured, and the tracers of their servers."""

    def __init__(self, stack):
        self.stack, self.loads = stack, {}
        self.folder = stack.enter_context(tempfile.TemporaryDirectory())
        self.out = stack.enter_context(tempfile.TemporaryFile())
        os.chmod(self.folder, 0o755)
        self.cpu_us = collections.defaultdict(list)

    def copy(self, program):
        return shutil.copy(program, f"{self.folder}/{len(os.listdir(self.folder))}-{os.path.basename(program)}")

    def add(self, name, ask, cpu, text):
        def turn():
            before = cpu()
            for n in range(STATEMENTS):
                ask(text % (1 + n * 7919 % ROWS))
            return (cpu() - before) * 1e6 / STATEMENTS
        self.loads[name] = turn

    def trace(self, name, command, pid, path):
        """Starts a tracer; returns its sites."""
        process = Tracer(name, command).start(self.out)
        self.stack.callback(end, process)
        return settled(Memory(pid, path), process)

    def run(self, rounds, what):
        for turn in self.loads.values():
            turn()
        for number in range(rounds):
            for name in turns(list(self.loads), number):
                self.cpu_us[name].append(self.loads[name]())
        heading(f"{what}, {rounds} rounds of {STATEMENTS} statements each, server on CPU {SERVER_CPU}, tracer on CPU "
                f"{TRACER_CPU}; CPU time of the server, us a statement")
        table([["", "CPU us", "added us", "quartiles"]] + [[name, figure(values, "{:.2f}"), *self.added(values)]
                                                          for name, values in self.cpu_us.items()])

    def added(self, values):
        """Round by round against the same round's "none"."""
        low, middle, high = statistics.quantiles([a - b for a, b in zip(values, self.cpu_us["none"])], n=4)
        return f"{middle:.2f}", f"{low:.2f} to {high:.2f}"


def postgres(rounds):
    with contextlib.ExitStack() as stack:
        all_ = Alternatives(stack)

        def start(**settings):
            cluster = Cluster(postgres=all_.copy(Cluster().postgres), name="alternatives",
                              log_min_duration_statement="-1", autovacuum="off", **settings)
            stack.enter_context(cluster.init()).start()
            pin(cluster.pid, SERVER_CPU)
            subprocess.run(["pgbench", "-i", "-q", "-s", "1"], env=cluster.env(), check=True, capture_output=True)
            return cluster

        def add(name, cluster, *settings):
            one = stack.enter_context(cluster.connect(options=" ".join(f"-c {setting}" for setting in settings)))
            all_.add(name, lambda text: one.pgconn.exec_(text.encode()), lambda: cpu_of(one.info.backend_pid),
                     "SELECT abalance FROM pgbench_accounts WHERE aid = %d;")
            return one.info.backend_pid

        plain = start()
        add("none", plain)
        sites = []
        for name, command in postgres_tracers():
            cluster = start()
            backend = add(name, cluster)
            sites = all_.trace(name, command(cluster, sites), backend, cluster.postgres)
        for name, settings in POSTGRES.items():
            add(name, plain, *settings)
        add("pg_stat_statements", start(shared_preload_libraries="pg_stat_statements"))
        all_.run(rounds, "PostgreSQL, SELECT by primary key")


def dbslower(*options):
    return lambda server, _: to_file(server.dir, [DBSLOWER, "-p", str(server.pid), *options])


def postgres_tracers():
    """(name, function from a cluster, and the sites of the one before, to the command)."""
    found = [("dbslower -m 1000", dbslower("-m", "1000")),
             ("empty programs", lambda cluster, sites: [EMPTY, *file_places(cluster.postgres, sites)]),
             ("dbslower -m 0 --json", dbslower("-m", "0", "--json"))]
    if BPFTRACE:
        found += [("bpftrace, > 1 s", bpftrace("> 1000000000")), ("bpftrace, each printed", bpftrace(">= 0"))]
    return found


def bpftrace(when):
    return lambda cluster, _: to_file(cluster.dir, [
        BPFTRACE, "-B", "line", "-e", SCRIPT.format(path=cluster.postgres, when=when)])


def maria(rounds):
    if not maria_server():
        print("\nalternatives: MariaDB not measured: it needs mariadb-server-core and mariadb-client-core")
        return
    with contextlib.ExitStack() as stack:
        all_ = Alternatives(stack)

        def start(**settings):
            server = stack.enter_context(Maria(server=all_.copy(SERVER), **settings).init())
            server.start()
            server.query("create database d")
            server.query("create table t (id int primary key, c char(120))",
                         f"insert into t select seq, repeat('c', 120) from seq_1_to_{ROWS}", database="d")
            for thread in server.threads():
                pin(thread, SERVER_CPU)
            return server

        def add(name, server, *settings):
            client = stack.enter_context(server.connect(database="d"))
            for text in settings:
                client.query(text)
            all_.add(name, client.query, lambda: cpu_of_threads(server.pid), "SELECT c FROM t WHERE id=%d")

        add("none", start(slow_query_log="OFF"))
        sites = []
        for name, command in (("dbslower -m 1000", dbslower("-m", "1000")),
                              ("empty programs", lambda server, sites: [EMPTY, *file_places(server.server, sites)]),
                              ("dbslower -m 0 --json", dbslower("-m", "0", "--json"))):
            server = start(slow_query_log="OFF")
            add(name, server)
            sites = all_.trace(name, command(server, sites), server.pid, server.server)
        logging = start()
        for name, settings in MARIA.items():
            add(name, logging, *settings)
        add("performance schema", start(slow_query_log="OFF", performance_schema="ON"))
        all_.run(rounds, "MariaDB, SELECT by primary key")


def alternatives(args):
    rounds = max(args.rounds, ROUNDS)
    pin(0, SERVER_CPU)		# this program is the client
    postgres(rounds)
    maria(rounds)
