# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Names of PostgreSQL's wait events in each release, as its own pg_stat_activity has them at that moment; and who reads since 18."""

import collections
import contextlib
import re
import struct
import threading
import time

import psycopg
import pytest

from cluster import wait_for
from elffile import Memory, readelf
from postgres_releases import RELEASES, Release
from requirements import need_root
from statements import only
from tool import sessions

SESSIONS = 80
CLIENT_READ = 0x06000000
PROC_BYTES = 1024	# of a PGPROC, of which this is the beginning
# Numbers of each class; further ones are unknown. An extension's own have names only if it registered them.
CLASSES = {1: 100, 3: 16, 4: 1, 5: 30, 6: 20, 7: 1, 8: 90, 9: 20, 10: 100}
EVENTS = [number << 24 | id for number, ids in CLASSES.items() for id in range(ids)]
ACTIVITY = """select pid, wait_event_type, wait_event from pg_stat_activity
    where backend_type = 'client backend' and pid <> pg_backend_pid()"""
UNNAMED = {None, "unknown wait event", "???", "extension"}	# what a server says of numbers that have no name


@pytest.fixture(scope="module", params=RELEASES, ids=lambda number: f"PostgreSQL {number}")
def server(request):
    need_root()
    with Release(request.param, autovacuum="off", synchronous_commit="local", synchronous_standby_names="nobody").init() as cluster:
        yield cluster.start()


class Waits:
    """Sets the wait event of an idle backend, as the server's own code does."""

    def __init__(self, server, pid):
        self.memory = Memory(pid, server.postgres)
        value = {name: int(address, 16) for address, name in re.findall(
            r"^ *\d+: (\w+) .* (my_wait_event_info|MyProc)$", readelf("--dyn-syms", server.postgres), re.M)}
        if readelf("-h", server.postgres).count(" EXEC "):
            self.memory.base = 0
        if "my_wait_event_info" in value:
            self.address = self.pointer(value["my_wait_event_info"])
        else:
            proc = self.pointer(value["MyProc"])
            found = [at for at in range(0, PROC_BYTES, 4) if self.word(proc + at) == CLIENT_READ]
            assert len(found) == 1, found
            self.address = proc + found[0]
        assert self.word(self.address) == CLIENT_READ

    def pointer(self, variable):
        return struct.unpack("Q", self.memory.read(variable, 8))[0]

    def word(self, address):
        return struct.unpack("I", self.memory.read(address - self.memory.base, 4))[0]

    def set(self, event):
        with open(f"/proc/{self.memory.pid}/mem", "r+b", buffering=0) as mem:
            mem.seek(self.address)
            mem.write(struct.pack("I", event))


def listed(server):
    """{PID: (what ps says, what the server says)}"""
    with server.connect() as connection:
        rows = {pid: names for pid, *names in connection.execute(ACTIVITY).fetchall()}
    seen = {one["pid"]: one.get("wait") for one in sessions("-p", str(server.pid))}
    return {pid: (seen.get(pid), *rows[pid]) for pid in rows}


def test_every_number(server):
    """Each number of each class, whether or not the release has a name for it."""
    names = set()
    with contextlib.ExitStack() as stack:
        pids = [stack.enter_context(contextlib.closing(server.connect())).info.backend_pid for _ in range(SESSIONS)]
        wait_for(lambda: all(seen == "Client:ClientRead" for seen, *_ in listed(server).values()), what="all to be idle")
        waits = [Waits(server, pid) for pid in pids]
        for first in range(0, len(EVENTS), SESSIONS):
            events = dict(zip(pids, EVENTS[first:first + SESSIONS]))
            for wait in waits[:len(events)]:
                wait.set(events[wait.memory.pid])
            found = listed(server)
            for pid, event in events.items():
                seen, kind, name = found[pid]
                number = f"{kind}:{event & 0xffff}"
                assert seen == (number if name in UNNAMED else f"{kind}:{name}"), (f"{event:#x}", found[pid])
                names.add(seen)
    assert {"IPC:SyncRep", "Timeout:PgSleep", "IO:DataFileRead", "Activity:WalWriterMain", "Lock:transactionid",
            "LWLock:WALWriteLock" if server.number < 13 else "LWLock:WALWrite"} <= names, names


def test_activity(server):
    """What a session does and has done, as pg_stat_activity has it; its entry has no symbol before 14."""
    wait_for(lambda: not listed(server), what="earlier sessions to end")
    with server.connect() as idle, server.connect() as holder, server.connect() as failed:
        idle.execute("select 1 /* idle */")
        holder.execute("begin")
        holder.execute("select 2 /* in a transaction */")
        failed.execute("begin")
        with pytest.raises(psycopg.Error):
            failed.execute("select 1/0")
        with server.connect() as connection:
            rows = {pid: row for pid, *row in connection.execute(
                "select pid, state, query, xact_start is not null from pg_stat_activity").fetchall()}
        seen = {one["pid"]: one for one in sessions("-p", str(server.pid))}
        pids = [one.info.backend_pid for one in (idle, holder, failed)]
    for pid in pids:
        one, (state, query, transaction) = seen[pid], rows[pid]
        assert (one["state"], one["query"], "transaction_ms" in one) == (state, query, transaction) and one["state_ms"] >= 0, one


def ended_with(server, connections):
    """Cancel what these execute; one that waits for a standby is complete then."""
    for connection in connections:
        server.psql(f"select pg_cancel_backend({connection.info.backend_pid})")
    for connection in connections:
        while connection.pgconn.get_result():
            pass


def test_waits(server, tool):
    """What really waits, with a wait event that an extension has named since 17: in ps, and where the time went at the end."""
    traced = tool("-p", server.pid, "-m", "0", "--json", "--why")
    server.psql("create table t (a int); insert into t values (1)", "create extension postgres_fdw",
                "create view slow as select pg_sleep(600)::text as a")
    server.psql(f"create server here foreign data wrapper postgres_fdw options (host '{server.socket_dir}', port '{server.port}')",
                "create user mapping for postgres server here",
                "create foreign table there (a text) server here options (table_name 'slow')")
    with contextlib.ExitStack() as stack:
        idle, holder, waiter, sleeper, advisory, writer, remote = (stack.enter_context(contextlib.closing(server.connect())) for _ in range(7))
        holder.execute("begin")
        holder.execute("update t set a = 2")
        holder.execute("select pg_advisory_lock(7)")
        for connection, text in ((waiter, "update t set a = 3"), (sleeper, "select pg_sleep(600)"), (advisory, "select pg_advisory_lock(7)"),
                                 (writer, "set synchronous_commit to on; create table u ()"), (remote, "select * from there")):
            connection.pgconn.send_query(text.encode())
            connection.pgconn.flush()
        wanted = {idle: "Client:ClientRead", holder: "Client:ClientRead", waiter: "Lock:transactionid", sleeper: "Timeout:PgSleep",
                  advisory: "Lock:advisory", writer: "IPC:SyncRep",
                  remote: "Extension:PostgresFdwGetResult" if server.number >= 17 else "Extension:Extension"}
        wait_for(lambda: {c.info.backend_pid: w for c, w in wanted.items()}.items() <= {
            pid: f"{kind}:{name}" for pid, (_, kind, name) in listed(server).items()}.items(), what="all to wait")
        found = listed(server)
        assert all(seen == f"{kind}:{name}" for seen, kind, name in found.values()), found
        assert all(found[connection.info.backend_pid][0] == wait for connection, wait in wanted.items()), found
        waiting = {connection.info.backend_pid: wanted[connection] for connection in wanted if connection not in (idle, holder)}
        ended_with(server, set(wanted) - {idle, holder})
        server.psql("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'")
    traced.stop()
    for pid, wait in waiting.items():
        longest = max((one for one in traced.statements if one["pid"] == pid), key=lambda one: one["duration_ms"])
        part = {"IPC:SyncRep": "replication", "Timeout:PgSleep": "sleep", wanted[remote]: "remote"}.get(wait, wait.split(":")[0].lower())
        assert longest["waits"][0]["event"] == wait and longest["why_ms"][part] >= longest["waits"][0]["total_ms"] > 0, longest


def shares(amounts):
    return {kind: 100 * amount / sum(amounts.values()) for kind, amount in amounts.items()}


def sampled(server, pids, seconds):
    """What the sessions waited for when the server was asked, every few milliseconds: how often each type of event."""
    seen, end = collections.Counter(), time.monotonic() + seconds
    with server.connect() as admin:
        while time.monotonic() < end:
            seen.update(kind or "none" for kind, in admin.execute(
                "select wait_event_type from pg_stat_activity where pid = any(%s) and state = 'active'", [pids], prepare=True))
            time.sleep(0.005)
    return seen


@pytest.mark.alone
def test_shares(server, tool):
    """What sessions waited for, in shares of their statements' time, beside the samples of pg_stat_activity."""
    texts = ("select pg_advisory_lock(9), pg_sleep(0.05), pg_advisory_unlock(9)", "select count(*) from there, pg_sleep(0.013)",
             "insert into t select 1", "select count(*) from generate_series(1, 60000)")
    server.psql("drop view if exists slow cascade", "drop server if exists here cascade", "create extension if not exists postgres_fdw",
                "create view slow as select pg_sleep(0.03)::text as a", "create table if not exists t (a int)",
                f"create server here foreign data wrapper postgres_fdw options (host '{server.socket_dir}', port '{server.port}')",
                "create user mapping for postgres server here",
                "create foreign table there (a text) server here options (table_name 'slow')")
    stop = threading.Event()

    def run(connection):
        while not stop.is_set():
            for text in texts:
                connection.execute(text)

    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(server.connect()) for _ in range(4)]
        pids = [connection.info.backend_pid for connection in connections]
        for connection in connections:
            connection.execute("select 1 from there")
        threads = [threading.Thread(target=run, args=(connection,)) for connection in connections]
        for one in threads:
            one.start()
        traced = tool("-p", server.pid, "-m", "0", "--json", "--why")
        seen = sampled(server, pids, 5)
        traced.stop()
        stop.set()
        for one in threads:
            one.join()
    types = {"lock": "Lock", "lwlock": "LWLock", "sleep": "Timeout", "remote": "Extension", "extension": "Extension", "disk": "IO",
             "fsync": "IO", "ipc": "IPC", "network": "Client"}
    took = collections.Counter()
    for one in traced.statements:
        if one["pid"] in pids and "why_ms" in one:
            for part, ms in one["why_ms"].items():
                took[types.get(part, "none" if part == "cpu" else part)] += ms
    ours, theirs = shares(took), shares(seen)
    # The server says that a process waits until it runs again, and who asks waits for a CPU as well.
    bound = 3 + ours["runqueue"]
    assert all(abs(ours.get(kind, 0) - theirs.get(kind, 0)) <= bound for kind in {*ours, *theirs}), (ours, theirs)
    assert all(theirs[kind] > 5 for kind in ("Lock", "Timeout", "Extension")), theirs


@pytest.mark.parametrize("method", ["sync", "worker"])
def test_bytes_that_others_read(server, tool, method):
    """What the process read is what the statement read only if no other process reads for it."""
    if server.number >= 18:
        server.psql(f"alter system set io_method = '{method}'")
        server.restart()
    traced = tool("-p", server.pid, "-m", "0", "--json", "--use")
    server.psql("select 1 /* reads */")
    traced.stop()
    one = only(traced, "reads")
    assert ("read_bytes" in one["use"]) == (server.number < 18 or method == "sync") and "write_bytes" in one["use"], one
