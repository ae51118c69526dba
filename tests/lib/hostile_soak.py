# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Servers under load beside three attackers: `make soak SECONDS=180`; tests/e2e/test_soak.py has a short one.

The attackers have no privileges. One passes session objects that are meant to be the sessions of the servers,
one fills the tables and the buffer, one executes programs that are named as servers, with files that are made to
stall whoever reads them. A fourth one waits for locks, with memory that is made to stall locks. The judge is the servers' own logs: each statement in them is shown as it was, or counted
as lost for that server; and nothing else is shown of the servers.
"""

import argparse
import collections
import glob
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import intruder
import mariadb_oracle
import oracle
import wire
from cluster import Cluster, children, wait_for
from file_attacker import Attacker
from mariadb import Maria, maria_server
from stallfs import USER, StallFs, build_idle
from complaints import Off
from tool import DBSLOWER, FIXTURES, parsed

WORD = "soak"		# in each text of the clients
PACE_S = 0.004		# between two statements of a client
LATE_MS = 10000.0	# no duration may exceed the log's by more: beyond that it is not the CPU's scheduling
SHOWN = 5		# examples of a complaint
FLOOD = "xxxxxxxx"	# texts of the flood, which only the programs and the buffer see
ABSENT = ("user None, ", "database None, ", "client None, ")	# the record of a client was lost
KINDS = ("ring_full", "table_full", "start_without_end", "end_without_start", "text_unreadable", "who_unknown")


def lost_of(summary, pid):
    """Return how many events are counted as lost for the server with main process @pid, and how many in all."""
    server = os.stat(f"/proc/{pid}").st_uid, os.readlink(f"/proc/{pid}/exe")
    servers = [one for one in summary.get("lost_by_server", []) if (one["uid"], one["server"]["path"]) == server]
    return sum(one.get(kind, 0) for one in servers for kind in KINDS), sum(summary["lost"].get(kind, 0) for kind in KINDS)


class Worker(threading.Thread):
    """Calls one() until the time is over. fault: why it ended early."""

    def __init__(self, stop):
        super().__init__(daemon=True)
        self.stop, self.fault = stop, None

    def run(self):
        try:
            while not self.stop.is_set():
                self.one()
        except Exception as why:	# whoever waits for it reports it
            self.fault = f"{type(self).__name__}: {type(why).__name__}: {why}"


# --- clients

class Client(Worker):
    """Connections of 40 statements each, so that new ones come all the time."""

    def __init__(self, stop, number):
        super().__init__(stop)
        self.number = number
        self.statements = self.connections = 0

    def texts(self):
        self.connections += 1
        for _ in range(40):
            if self.stop.wait(PACE_S):
                return
            self.statements += 1
            yield f"select {self.statements} /* {WORD} {self.number} {self.connections} */"


class PostgresClient(Client):
    def __init__(self, stop, number, server):
        super().__init__(stop, number)
        self.server = server

    def one(self):
        connection = wire.Wire(self.server, WORD)
        for text in self.texts():
            connection.send(wire.simple(text))
            connection.until(b"Z")
        connection.close()


class MariaClient(Client):
    def __init__(self, stop, number, server):
        super().__init__(stop, number)
        self.server = server

    def one(self):
        with self.server.connect() as connection:
            for text in self.texts():
                connection.query(text)


class LockClient(Client):
    """Two connections, one of which waits for the lock of the other."""

    def __init__(self, stop, number, server):
        super().__init__(stop, number)
        self.server, self.waits, self.holders = server, 0, set()

    def begin(self, connection, text):
        self.statements += 1
        connection.send(wire.simple(f"{text} /* {WORD} {self.number} {self.statements} */"))

    def ask(self, connection, text):
        """Run a statement. Return the first column of its row, or None."""
        self.begin(connection, text)
        column, kind = None, None
        while kind != b"Z":
            kind, body = connection.one()
            column = body[6:] if kind == b"D" else column
        return column

    def one(self):
        holder, waiter = wire.Wire(self.server, WORD), wire.Wire(self.server, WORD)
        self.connections += 2
        self.holders.add(int(self.ask(holder, "select pg_backend_pid()")))
        self.ask(waiter, "set log_lock_waits = on")
        self.ask(waiter, "set deadlock_timeout = '10ms'")
        for _ in range(20):
            self.ask(holder, f"select pg_advisory_lock({self.number})")
            self.begin(waiter, f"select pg_advisory_lock({self.number})")
            self.waits += 1
            self.stop.wait(0.03)
            self.ask(holder, f"select pg_advisory_unlock({self.number})")
            waiter.until(b"Z")
            self.ask(waiter, f"select pg_advisory_unlock({self.number})")
        holder.close()
        waiter.close()


# --- attackers

class Attack(Worker):
    """did: what it tried, and how often."""

    def __init__(self, stop):
        super().__init__(stop)
        self.did = collections.Counter()

    def run(self):
        super().run()
        self.end()


class Forger(Attack):
    """Statements in, and the end of, the sessions of the servers' threads, which it is told."""

    def __init__(self, stop, program, victims):
        super().__init__(stop)
        self.process, self.victims = intruder.Intruder(program), victims

    def one(self):
        tids = [int(os.path.basename(path)) for pid in self.victims for one in (pid, *children(pid))
                for path in glob.glob(f"/proc/{one}/task/*")]
        for tid in tids:
            for what in "command", "begin", "close":
                self.process.do(f"{what} {self.process.object_of(tid):x} 1")
                self.did[f"{what} in a session of a server"] += 1
        self.process.do("command 1 2000")
        self.did["command in an address from 1 on"] += 2000

    def end(self):
        self.process.end()


class Filler(Attack):
    """More sessions than the table has, and more records than the buffer."""

    def __init__(self, stop, program):
        super().__init__(stop)
        self.program, self.process = program, intruder.Intruder(program)

    def one(self):
        self.process.do("begin 10000000 70000")
        self.did["sessions begun"] += 70000
        self.process.do("text 4000")
        self.process.do("flood 300")
        self.process.do("share 100")
        self.did["ms of flood"] += 400
        if self.did["sessions begun"] % 350000 == 0:
            self.process.end()		# its sessions remain
            self.process = intruder.Intruder(self.program)
            self.did["ends with open sessions"] += 1

    def end(self):
        self.process.end()


class Namesake(Attack):
    """Programs named as servers: harmless ones, sparse files, files that are cut, and those of no answer."""

    def __init__(self, stop, program, folder, stall):
        super().__init__(stop)
        self.files, self.stall = Attacker(program), stall
        self.folder = pathlib.Path(folder)
        self.idle = build_idle(self.folder)
        for name in "postgres", "mariadbd", "mysqld", "appdb":
            shutil.copy("/bin/true", os.path.join(folder, name))
        storm = "for i in $(seq 50); do ./postgres; ./mariadbd; ./mysqld; ./appdb; done"
        self.storm = ["sh", "-c", storm]

    def one(self):
        subprocess.run(self.storm, check=True, cwd=self.folder, **USER)
        self.did["executions of names of servers"] += 200
        for count, entry in ((100000000, 24), (1 << 20, 8192)):
            self.files.do("make", count, entry)
            self.files.begin("run", 5, 0.02)
            self.files.finish()
            self.did["executions of sparse files"] += 5
            self.files.do("truncate", 4096)
            self.did["files cut"] += 1
        if not self.stall or self.stop.is_set():
            return
        with StallFs(self.folder, self.idle, "mysqld", "user", "overlay") as fs:
            self.did["programs on a file system without answer"] += fs.pid is not None
            self.stop.wait(1)

    def end(self):
        self.files.end()


class LockForger(Attack):
    """Processes that are servers by their symbols wait for locks, whose memory is hostile."""

    def __init__(self, stop, folder):
        super().__init__(stop)
        self.programs = {}
        for name, option in (("postgres", []), ("mysqld", ["-DMYSQLD"])):
            self.programs[name] = os.path.join(folder, name)
            subprocess.run(["gcc", "-O2", "-rdynamic", "-no-pie", "-fcf-protection=none", *option, "-o", self.programs[name],
                            os.path.join(FIXTURES, "hostilelocks.c")], check=True)

    def one(self):
        for name, scene in (("postgres", "noise"), ("postgres", "storm"), ("mysqld", "session"), ("mysqld", "metadata")):
            subprocess.run([self.programs[name], scene], input=b"\n", stdout=subprocess.DEVNULL, check=True, timeout=120, **USER)
            self.did[f"{scene} of locks"] += 1

    def end(self):
        pass


# --- the tool

class Traced:
    """The tool on all servers. What is shown of the flood is not kept."""

    def __init__(self, folder):
        self.out = os.path.join(folder, "out")
        with open(self.out, "wb") as out, open(os.path.join(folder, "err"), "wb") as err:
            self.process = subprocess.Popen([DBSLOWER, "-m", "0", "--json"], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=err)
            self.filter = subprocess.Popen(["grep", "-avF", f'"query":"{FLOOD}'], stdin=self.process.stdout, stdout=out,
                                           env={**os.environ, "LC_ALL": "C"})
        self.process.stdout.close()
        self.err = os.path.join(folder, "err")

    def said(self):
        with open(self.err, encoding="utf-8", errors="replace") as f:
            return f.read()

    def ready(self, *pids):
        assert self.process.poll() is None, self.said()
        return all(re.search(rf"^dbslower: tracing .*\b{pid}\b", self.said(), re.M) for pid in pids)

    def end(self):
        """Return its objects, or None if it does not end."""
        self.process.terminate()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None
        self.filter.wait(120)
        with open(self.out, encoding="utf-8") as f:
            return parsed(f)


class TracedLocks(Traced):
    """The command locks on all servers."""

    def __init__(self, folder):
        self.out, self.err = os.path.join(folder, "locks.out"), os.path.join(folder, "locks.err")
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen([DBSLOWER, "locks", "-m", "0", "--json"], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=err)
        self.filter = self.process

    def objects(self):
        """Those of the lines that it has completed."""
        with open(self.out, encoding="utf-8", errors="replace") as f:
            return parsed(f.read().split("\n")[:-1])


# --- the judge

def waits_of(cluster, offset, objects):
    """Return the process of each wait that the server's log has, and the waits that are shown of these processes."""
    logged = [int(pid) for pid in re.findall(rb"process (\d+) still waiting for ", cluster.read_log(offset))]
    return logged, [one for one in objects
                    if one["type"] == "lock_wait" and one["pid"] in logged and one.get("lock") == "advisory"]


def judge_locks(cluster, offset, client, objects):
    """Complaints about the waits of PostgreSQL's sessions: those that its log has are shown or counted as lost, no others."""
    logged, waits = waits_of(cluster, offset, objects)
    lost, _ = lost_of(objects[-1], cluster.pid)
    named = [held.get("pid") for one in waits for held in one.get("holders", [])]
    print(f"  locks: {len(logged)} waits in PostgreSQL's log, {len(waits)} shown, {lost} events counted as lost, {len(named)} "
          f"holders; {len(objects)} lines", flush=True)
    if not logged or len(waits) + lost < len(logged):
        yield f"locks: {len(logged)} waits in the log, {len(waits)} shown, {lost} lost"
    if len(waits) > client.waits:
        yield f"locks: {len(waits)} waits shown, of {client.waits}"
    if set(named) - client.holders or not named:
        yield f"locks: holders {set(named) - client.holders} are none"


def judge(name, pid, complaints, logged, summary):
    """Complaints about one server, from those of its oracle."""
    missing = [one for one in complaints if one.startswith("not seen: ")]
    unknown = [one for one in complaints if one.startswith(ABSENT)]
    wrong = [one for one in complaints if not one.startswith(("not seen: ", *ABSENT)) and not isinstance(one, Off)]
    lost, lost_in_all = lost_of(summary, pid)
    print(f"  {name}: {logged} statements in its log, {len(missing)} not shown, {len(unknown)} clients unknown, "
          f"{lost} events counted as lost for it, {lost_in_all} in all; {len(wrong)} shown wrongly", flush=True)
    # The record of a client has all three.
    if len(missing) + sum(one.startswith("user ") for one in unknown) > lost:
        yield f"{name}: {len(missing)} of {logged} statements were hidden, and {lost} counted as lost for it: " \
              + "; ".join((missing + unknown)[:SHOWN])
    if wrong:
        yield f"{name}: {len(wrong)} shown wrongly: " + "; ".join(wrong[:SHOWN])


def late(name, statements):
    """Complaints about durations that no scheduling explains."""
    off = [one for one in statements if not 0 <= one["duration_ms"] <= LATE_MS]
    return [f"{name}: {len(off)} durations, such as {off[0]}"] if off else []


def judge_postgres(cluster, offset, objects):
    with open(cluster.log, "rb") as f:
        f.seek(offset)
        logged = oracle.expected(f.read())
    pids = {one.pid for one in logged}
    got = [one for one in objects if one["type"] == "statement" and one["pid"] in pids]
    yield from judge("PostgreSQL", cluster.pid, oracle.compare(logged, got), len(logged), objects[-1])
    yield from late("PostgreSQL", got)


def judge_maria(maria, offset, objects):
    logged = mariadb_oracle.records(maria.read_log(offset))
    got = [one for one in objects if one["type"] == "statement" and one["pid"] == maria.pid]
    yield from judge("MariaDB", maria.pid, mariadb_oracle.compare(logged, got), len(logged), objects[-1])
    yield from late("MariaDB", got)


def finish(workers):
    for worker in workers:
        worker.join(240)
        if worker.is_alive():
            yield f"{type(worker).__name__} does not end"
        elif worker.fault:
            yield worker.fault


def attackers(stop, folder, victims, stall):
    os.chmod(folder, 0o755)
    names = os.path.join(folder, "names")
    os.mkdir(names)
    program = intruder.build(folder)
    return [Forger(stop, program, victims), Filler(stop, program), Namesake(stop, program, names, stall)]


def soak(seconds, folder, cluster, maria=None, stall=True):
    """Run it with running servers. Return a list of complaints."""
    stop, complaints = threading.Event(), []
    servers = [one for one in (cluster, maria) if one]
    traced = Traced(folder)
    wait_for(lambda: traced.ready(*[one.pid for one in servers]), what="the tool to attach")
    time.sleep(0.5)
    offsets = [os.path.getsize(cluster.log), maria.log_size() if maria else 0]
    clients = [PostgresClient(stop, n, cluster) for n in range(2)] + [MariaClient(stop, n, maria) for n in range(2) if maria]
    attacks = attackers(stop, folder, [one.pid for one in servers], stall)
    for worker in clients + attacks:
        worker.start()
    time.sleep(seconds)
    stop.set()
    complaints += finish(clients + attacks)
    for attack in attacks:
        print(f"  {type(attack).__name__}: " + (", ".join(f"{n} {what}" for what, n in attack.did.items()) or "nothing"))
    print(f"  {sum(one.statements for one in clients)} statements in {sum(one.connections for one in clients)} connections")
    if maria:
        maria.rest()		# the last statement's end follows its answer
    if traced.process.poll() is not None:
        return [*complaints, f"the tool ended with {traced.process.returncode}: {traced.said()[-1000:]}"]
    objects = traced.end()
    if objects is None:
        return [*complaints, f"the tool does not end after SIGTERM: {traced.said()[-1000:]}"]
    complaints += judge_postgres(cluster, offsets[0], objects)
    if maria:
        complaints += judge_maria(maria, offsets[1], objects)
    return complaints


def soak_locks(seconds, folder, cluster):
    """The same for the command locks; @folder can be read by all."""
    stop = threading.Event()
    traced, client = TracedLocks(folder), LockClient(stop, 7, cluster)
    wait_for(lambda: traced.ready(cluster.pid), what="locks to attach")
    offset = os.path.getsize(cluster.log)
    forger = LockForger(stop, folder)
    for worker in client, forger:
        worker.start()
    time.sleep(seconds)
    # Without a CPU nobody has waited yet. When the time is over, nobody does.
    wait_for(lambda: any(one.get("holders") for one in waits_of(cluster, offset, traced.objects())[1]), 120,
             "a wait that is logged, and shown with its holder", every=0.5)
    stop.set()
    complaints = [*finish([client, forger])]
    print("  LockForger: " + ", ".join(f"{n} {what}" for what, n in forger.did.items()))
    time.sleep(0.5)
    objects = traced.end()
    if objects is None or objects[-1]["type"] != "summary":
        return [*complaints, f"locks does not end: {traced.said()[-1000:]}"]
    return complaints + [*judge_locks(cluster, offset, client, objects)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--no-stall", action="store_true", help="without file systems that do not answer")
    given = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="dbslower-soak-")
    try:
        with Cluster(name="soak").init() as cluster:
            if maria_server():
                with Maria().init() as maria:
                    complaints = soak(given.seconds, folder, cluster.start(), maria.start(), not given.no_stall)
            else:
                complaints = soak(given.seconds, folder, cluster.start(), stall=not given.no_stall)
    finally:
        shutil.rmtree(folder)
    if platform.machine() == "x86_64":	# as the program of this attacker
        with Cluster(name="soak").init() as cluster, tempfile.TemporaryDirectory(prefix="dbslower-soak-") as folder:
            os.chmod(folder, 0o755)
            complaints += soak_locks(given.seconds / 4, folder, cluster.start())
    print("\n".join(complaints) or "Nothing was hidden, forged or stalled.")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
