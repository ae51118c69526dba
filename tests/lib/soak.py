# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Full speed with churn: `make soak SECONDS=300`; tests/e2e/test_soak.py has a short one.

Connections, servers and statements of 1 byte to 1 MiB come and go. Then the books must balance: what
clients have run is what the tool has seen, and what it has seen is printed, filtered or counted as
lost; its memory and descriptors are as after the start, and the servers have nothing to complain of.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import backends
import wire
from cluster import Cluster, wait_for
from fallbacks import force
from mariadb import Maria, maria_server
from tool import DBSLOWER

WARM_UP = 0.3		# of the time, once each client has begun anew; memory and descriptors count from then on
CLOSING = 60		# seconds after which a descriptor is one that stays
GROWTH_KB = 2048	# of memory that is no leak: tables that have not been at their fullest before
NEEDLE = "needle"
# Bytes, and how often: the small ones are the many.
SIZES = [(1, 4), (40, 200), (1000, 40), (4096, 10), (4097, 10), (70000, 3), (1 << 20, 1)]
COMPLAINT = re.compile(r"\b(ERROR|FATAL|PANIC|WARNING|TRAP|signal \d+)\b|\[(ERROR|Warning)\]")


class Load(threading.Thread):
    """One client after the other. count: its statements, marked: those with the needle."""

    def __init__(self, stop, seed):
        super().__init__(daemon=True)
        self.stop, self.pick = stop, random.Random(seed)
        self.count = self.marked = self.connections = 0
        self.fault = None

    def text(self, least):
        """A statement of a size by chance."""
        size = self.pick.choices([size for size, _ in SIZES], [weight for _, weight in SIZES])[0]
        marked = self.pick.random() < 0.1 and size >= 40
        self.marked += marked
        self.count += 1
        if size <= len(least):
            return least
        word = f"select 1 /* {NEEDLE if marked else 'hay'} "
        return word + "x" * max(size - len(word) - 3, 0) + " */"

    def run(self):
        try:
            while not self.stop.is_set():
                self.connections += 1
                self.one()
        except Exception as why:	# whoever waits for it tells
            self.fault = why


class PostgresLoad(Load):
    def __init__(self, stop, seed, cluster):
        super().__init__(stop, seed)
        self.cluster = cluster

    def one(self):
        connection = wire.Wire(self.cluster, "soak")
        for _ in range(self.pick.randrange(1, 200)):
            connection.send(wire.simple(self.text(";")))
            connection.until(b"Z")
            if self.stop.is_set():
                break
        connection.close()


class MariaLoad(Load):
    def __init__(self, stop, seed, maria):
        super().__init__(stop, seed)
        self.maria = maria

    def one(self):
        with self.maria.connect() as connection:
            for _ in range(self.pick.randrange(1, 200)):
                connection.query(self.text("do 1"))
                if self.stop.is_set():
                    break


class ServerLoad(Load):
    """Servers that come and go, whose backends die."""

    def __init__(self, stop, seed, program):
        super().__init__(stop, seed)
        self.program = program

    def one(self):
        with backends.Backends(self.program) as server:
            for _ in range(5):
                for what, n in (("run", 2000), ("exit", 40), ("kill", 40), ("blob", 3)):
                    server.do(f"{what} {n} {self.pick.choice([40, 4097, 1 << 20]) if what == 'blob' else 'select 1'}")
                    self.count += n
                if self.stop.is_set():
                    break


class Traced:
    """The tool, whose output is read and counted as it comes."""

    def __init__(self, *args):
        self.process = subprocess.Popen([DBSLOWER, "-m", "0", "--json", *args], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said, self.printed, self.last = b"", 0, b""
        self.readers = [threading.Thread(target=read, daemon=True) for read in (self.count, self.listen)]
        for reader in self.readers:
            reader.start()

    def count(self):
        for line in self.process.stdout:
            self.printed += line.startswith(b'{"type":"statement"')
            self.last = line

    def listen(self):
        for line in self.process.stderr:
            self.said += line

    def usage(self, most=None):
        """
        KiB of memory of its own, and open descriptors. @most: of these; wait for more to be closed, as one may be of a
        file that it reads just now.
        """
        def descriptors():
            return len(os.listdir(f"/proc/{self.process.pid}/fd"))
        end = time.monotonic() + CLOSING
        while most is not None and descriptors() > most and time.monotonic() < end:
            time.sleep(0.02)
        with open(f"/proc/{self.process.pid}/status") as f:
            anonymous = int(re.search(r"RssAnon:\s+(\d+)", f.read())[1])
        return anonymous, descriptors()

    def end(self):
        """Its summary: what was seen, printed, lost in the ring, lost elsewhere."""
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(60)
        for reader in self.readers:
            reader.join(60)
        assert status == 0, self.said
        found = json.loads(self.last)
        return {**found, **found["lost"]}


def balance(traced, loads):
    """Ends it. Complaints, and what there was to count."""
    seen = traced.end()
    wanted = sum(load.count for load in loads)
    other = {name: seen[name] for name in ("table_full", "start_without_end", "end_without_start", "text_unreadable") if seen[name]}
    if seen["statements"] != wanted:
        yield f"{wanted} statements were run, {seen['statements']} seen"
    if seen["printed"] != traced.printed:
        yield f"{seen['printed']} printed by its own word, {traced.printed} by count"
    # What is lost in the ring is also the end of a session without a statement, or an exec.
    if not seen["printed"] <= seen["statements"] <= seen["printed"] + seen["ring_full"]:
        yield f"{seen['printed']} printed and {seen['ring_full']} lost are not {seen['statements']}"
    if other:
        yield f"lost: {other}"
    print(f"  {seen['statements']} statements seen, {seen['printed']} printed, {seen['ring_full']} lost and counted", flush=True)


def balance_filtered(traced, loads):
    """As above; what it does not print is no needle, or was lost."""
    seen = traced.end()
    wanted, marked = sum(load.count for load in loads), sum(load.marked for load in loads)
    if seen["statements"] != wanted:
        yield f"{wanted} statements were run, {seen['statements']} seen with a filter"
    if not marked - seen["ring_full"] <= seen["printed"] == traced.printed <= marked:
        yield f"{seen['printed']} ({traced.printed}) of {marked} printed by the filter, {seen['ring_full']} lost"
    print(f"  {seen['statements']} statements seen with a filter, {seen['printed']} of {marked} printed, "
          f"{seen['ring_full']} lost and counted", flush=True)


def settle(loads, maria):
    for load in loads:
        load.join(120)
        if load.is_alive() or load.fault:
            yield f"{type(load).__name__}: {load.fault or 'does not end'}"
    if maria:
        maria.rest()		# the last statement's end follows its answer


def soak(seconds, program, cluster=None, maria=None):
    """Runs it. A list of complaints."""
    stop, complaints = threading.Event(), []
    servers = [one for one in (cluster, maria) if one]
    pids = [arg for one in servers for arg in ("-p", str(one.pid))]
    clients = [PostgresLoad(stop, n, cluster) for n in range(2) if cluster]
    clients += [MariaLoad(stop, n, maria) for n in range(2) if maria]
    churn = [ServerLoad(stop, 7, program)]
    logs = [(one.log, os.path.getsize(one.log)) for one in servers]
    tools = [Traced(*pids), Traced(*pids, "--match", NEEDLE), Traced("-x", program)]
    for tool in tools:
        wait_for(lambda tool=tool: b"dbslower: tracing" in tool.said, what="the tool to attach")
    begin = time.monotonic()
    for load in clients + churn:
        load.start()
    wait_for(lambda: all(load.connections > 1 or load.fault for load in clients + churn), what="all clients to begin anew")
    time.sleep(seconds * WARM_UP)
    before = [tool.usage() for tool in tools]
    time.sleep(seconds * (1 - WARM_UP))
    stop.set()
    complaints += settle(clients + churn, maria)
    after = [tool.usage(files) for tool, (_, files) in zip(tools, before)]
    elapsed = time.monotonic() - begin
    for (memory, files), (memory_now, files_now) in zip(before, after):
        print(f"  memory {memory} KiB, then {memory_now}; descriptors {files}, then {files_now}")
        if memory_now > memory + GROWTH_KB or files_now > files:
            complaints.append(f"memory {memory} to {memory_now} KiB, descriptors {files} to {files_now}")
    print(f"  {elapsed:.0f} s, {sum(load.connections for load in clients)} connections, "
          f"{churn[0].connections} servers of {sum(load.connections for load in churn)} starts")
    complaints += balance(tools[0], clients)
    complaints += balance_filtered(tools[1], clients)
    complaints += balance(tools[2], churn)
    for path, size in logs:
        with open(path, errors="replace") as log:
            log.seek(size)
            complaints += [f"{path}: {line.strip()[:200]}" for line in log if COMPLAINT.search(line)][:5]
    return complaints


def deaths(number, program):
    """So many backends that end in mid-statement. The table has 4096 entries, and none may stay."""
    complaints = []
    with backends.Backends(program) as server:
        traced = Traced("-p", str(server.pid), *force("prealloc"))
        wait_for(lambda: b"dbslower: tracing" in traced.said, what="the tool to attach")
        begin = time.monotonic()
        for n in range(0, number, 1000):
            server.do(f"{'exit' if n // 1000 % 2 else 'kill'} {min(1000, number - n)} select 1")
            if n // 1000 == number // 3000:
                before = traced.usage()
        elapsed, after = time.monotonic() - begin, traced.usage(before[1])
        load = argparse.Namespace(count=number)
        complaints += balance(traced, [load])
    print(f"  {number} backends died in {elapsed:.0f} s, {number / elapsed:.0f} a second; memory {before[0]} KiB, then {after[0]}")
    if after[0] > before[0] + GROWTH_KB or after[1] > before[1]:
        complaints.append(f"memory {before[0]} to {after[0]} KiB, descriptors {before[1]} to {after[1]}")
    return complaints


def images(number, folder):
    """So many files of servers that come and go, as images of containers do, more than stay attached."""
    os.mkdir(folder)
    program, seen, complaints = backends.build(folder), [], []
    traced = Traced("postgres")
    wait_for(lambda: b"dbslower: " in traced.said, what="the tool to start")
    begin = time.monotonic()
    for first in range(0, number, 20):
        paths = [os.path.join(folder, str(n), "postgres") for n in range(first, min(first + 20, number))]
        for path in paths:
            os.mkdir(os.path.dirname(path))
            shutil.copy(program, path)
        servers = [backends.Backends(path) for path in paths]
        wait_for(lambda: all(path.encode() in traced.said for path in paths), what="the tool to attach")
        for server in servers:
            server.do("run 1 select 1")
        with open(f"/proc/{traced.process.pid}/maps") as f:
            seen.append((*traced.usage(), len(f.readlines())))
        for server in servers:
            server.end()
        for path in paths:
            shutil.rmtree(os.path.dirname(path))
    elapsed = time.monotonic() - begin
    early, late = ([max(column) for column in zip(*part)] for part in (seen[:len(seen) // 2], seen[len(seen) // 2:]))
    if traced.end()["statements"] < number:
        complaints.append(f"fewer than {number} statements were seen")
    print(f"  {number} files in {elapsed:.0f} s; in the first half at most {early[0]} KiB, {early[1]} descriptors and "
          f"{early[2]} mappings, then {late[0]}, {late[1]} and {late[2]}")
    if late[0] > early[0] + GROWTH_KB or late[1] > early[1] + 20 or late[2] > early[2] + 20:
        complaints.append(f"it grows: {seen}")
    return complaints


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--deaths", type=int, default=1000000)
    parser.add_argument("--images", type=int, default=200)
    given = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="dbslower-soak-")
    try:
        program = backends.build(folder)
        with Cluster(name="soak", log_min_duration_statement="-1").init() as cluster:
            if not maria_server():
                complaints = soak(given.seconds, program, cluster.start())
            else:
                with Maria(slow_query_log="OFF").init() as maria:
                    complaints = soak(given.seconds, program, cluster.start(), maria.start())
        complaints += deaths(given.deaths, program)
        complaints += images(given.images, os.path.join(folder, "images"))
    finally:
        shutil.rmtree(folder)
    print("\n".join(complaints) or "The books balance.")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
