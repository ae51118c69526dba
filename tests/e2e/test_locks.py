# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""locks: waits and holders, compared with pg_locks, pg_blocking_pids() and the server's log."""

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from datetime import datetime

import pytest

import wire
from cluster import Cluster, has_left_cpu, server_bindir, wait_for
from containers import UNSHARE, needs_namespaces
from elffile import usdt_probes
from fallbacks import OLD, force
from interrupted import strace
from mariadb import Maria, maria_server
from mariadb_client import ServerError
from recording_maker import Made, holder as holder_of
from replayed import Replayed
from requirements import need_root, need_server
from tool import Locks

SETTINGS = {"log_lock_waits": "on", "deadlock_timeout": "50ms", "log_min_duration_statement": "-1",
            "max_prepared_transactions": "4", "autovacuum": "off"}


@pytest.fixture(scope="module")
def server():
    need_server()
    need_root()
    with Cluster(name="locks", **SETTINGS).init() as cluster:
        cluster.start().psql("create table acc (id int primary key, v int)", "create table other (x int)",
                             "insert into acc select g, 0 from generate_series(1, 20) g", "checkpoint")
        yield cluster


@pytest.fixture
def locks(tool, server):
    """locks(OPTION…) traces the server and prints JSON."""
    return functools.partial(tool, "locks", "--json", "-m", 0, "-p", server.pid, kind=Locks)


class Session:
    """A connection in a transaction; later() runs a statement that waits, in a thread."""

    def __init__(self, cluster, **keywords):
        self.cluster = cluster
        self.connection = cluster.connect(autocommit=False, **keywords)
        self.pid = self.connection.info.backend_pid
        self.thread = self.error = self.took = None

    def __call__(self, sql):
        self.connection.execute(sql)
        return self

    def run(self, sql):
        begun = time.monotonic()
        try:
            self.connection.execute(sql)
        except Exception as error:
            self.error = type(error).__name__
        self.took = (time.monotonic() - begun) * 1000

    def run_later(self, sql):
        self.thread = threading.Thread(target=self.run, args=(sql,), daemon=True)
        self.thread.start()

    def later(self, sql):
        """Returns once the server says that it waits: for whom, and the row of pg_locks."""
        self.run_later(sql)
        return self.blocked()

    def blocked(self):
        with self.cluster.connect() as oracle:
            by = wait_for(lambda: oracle.execute("select pg_blocking_pids(%s)", (self.pid,)).fetchone()[0], what="the lock wait")
            row = oracle.execute("select locktype, database, relation, page, tuple, transactionid, classid, objid, mode"
                                 " from pg_locks where pid = %s and not granted", (self.pid,)).fetchone()
        names = ("locktype", "database", "relation", "page", "tuple", "transactionid", "classid", "objid", "mode")
        return by, dict(zip(names, row))

    def done(self):
        self.thread.join(60)
        assert not self.thread.is_alive()
        return self

    def end(self, how="rollback"):
        getattr(self.connection, how)()
        return self


@pytest.fixture
def sessions(server):
    with contextlib.ExitStack() as stack:
        def make(count, cluster=server, **keywords):
            made = [Session(cluster, **keywords) for _ in range(count)]
            for one in made:
                stack.callback(one.connection.close)
            return made
        yield make


def oid(server, name):
    return int(server.psql(f"select '{name}'::regclass::oid").stdout)


def logged_wait(server, pid, since):
    """Return the duration of the process's wait in the server's log, in ms."""
    found = re.findall(rb"\|%d\|.*process %d acquired \w+ on .* after ([0-9.]+) ms" % (pid, pid), server.read_log(since))
    return float(found[0]) if found else None


@pytest.mark.parametrize("way", [[], force("perf"), OLD], ids=" ".join)
def test_row(locks, server, sessions, way):
    holder, waiter = sessions(2)
    traced = locks(*way)
    since = server.log_size()
    place = server.psql("select ctid from acc where id = 1").stdout.decode().strip()
    begun = time.monotonic()
    holder("update acc set v = 1 where id = 1")
    time.sleep(0.05)
    by, row = waiter.later("update acc set v = 2 where id = 1 -- waits")
    wait_for(lambda: b"still waiting" in server.read_log(since), what="the log")
    traced.sees(waiter.pid)
    holder.end("commit")
    waiter.done().end()
    wait = traced.wait_of(waiter.pid)
    traced.ended()
    assert by == [holder.pid] == [one["pid"] for one in wait["holders"]], traced.said()
    assert (wait["lock"], wait["mode"]) == (row["locktype"], row["mode"]) == ("transactionid", "ShareLock")
    assert wait["transaction"] == int(row["transactionid"]) and wait["outcome"] == "granted"
    assert wait["relation"] == "acc" and wait["relation_oid"] == oid(server, "acc") and f"row {place}" in wait["object"]
    assert wait["query"] == "update acc set v = 2 where id = 1 -- waits"
    held = wait["holders"][0]
    assert held["query"] == "update acc set v = 1 where id = 1" and not held["running"] and not held["queued"]
    assert held["idle_in_transaction"] and 50 <= held["idle_ms"] <= (time.monotonic() - begun) * 1000, held
    logged = logged_wait(server, waiter.pid, since)
    # the server counts from its timer's start, the client has the way there and back
    assert logged - 1 <= wait["duration_ms"] <= waiter.took, (logged, wait, waiter.took)
    ended = [one for one in traced.objects() if one["type"] == "lock_wait" and one["outcome"] != "waiting"]
    assert traced.summary["waits"] == traced.summary["printed"] == len(ended)


def test_holder_between_two_messages(locks, server, sessions):
    """It has received a Parse and a Bind but no Execute: it runs a statement, as the server says."""
    waiter, = sessions(1)
    traced = locks()
    holder = wire.Wire(server, "by hand")
    holder.ask(wire.parse("begin"), wire.bind(), wire.execute())
    holder.ask(wire.parse("lock table other"), wire.bind(), wire.execute())
    by, _ = waiter.later("lock table other")
    traced.sees(waiter.pid)
    holder.send(wire.parse("commit /* of the wait */"), wire.bind(), wire.FLUSH)
    holder.until(b"2")
    row = f"select state, query from pg_stat_activity where pid = {by[0]}"
    assert server.psql(row).stdout.decode().strip() == "active|commit /* of the wait */"
    held = traced.ask()[0]["holders"][0]
    assert held["running"] and not held["idle_in_transaction"] and "idle_ms" not in held, held
    assert held["query"] == "commit /* of the wait */"
    holder.ask(wire.execute())
    waiter.done().end()
    traced.ended()
    holder.close()


def test_statement_that_ends_the_wait(locks, server, sessions):
    """A wait has the statement before that, also of a driver that sends it in parts."""
    waiter, = sessions(1)
    traced = locks()
    holder = wire.Wire(server, "by hand")
    holder.ask(wire.parse("begin"), wire.bind(), wire.execute())
    holder.ask(wire.parse("lock table other"), wire.bind(), wire.execute())
    waiter.later("lock table other")
    traced.sees(waiter.pid)
    holder.send(wire.parse("commit"), wire.bind(), wire.FLUSH)
    holder.until(b"2")
    time.sleep(0.5)	# in which it reads the holders again
    holder.ask(wire.execute())
    waiter.done().end()
    held = traced.wait_of(waiter.pid)["holders"][0]
    traced.ended()
    assert held["query"] == "lock table other" and held["idle_in_transaction"], held
    holder.close()


SENT = 16384	# bytes of a text that are read when the wait begins


@pytest.mark.parametrize("length", [60, SENT, SENT + 1, SENT + 4000])
@pytest.mark.parametrize("way", [[], force("perfbuf"), OLD], ids=" ".join)
def test_statement_of_a_wait_that_is_over(tool, server, sessions, way, length):
    """Is the one that waited, as in the server's log, although the process runs another one when its memory is read."""
    holder, waiter = sessions(2)
    options = ("locks", "--json", "-m", 0, "-p", server.pid, "--text", "64k", *way)
    traced, selected = tool(*options, kind=Locks), tool(*options, "--match", "another", kind=Locks)
    traced.pause()
    selected.pause()
    since, text = server.log_size(), "update acc set v = 7 where id = 3 --".ljust(length, "x")
    holder("update acc set v = 6 where id = 3")
    waiter.later(text)
    wait_for(lambda: b"still waiting for ShareLock on transaction" in server.read_log(since), what="it to wait for deadlock_timeout")
    holder.end("commit")
    waiter.done()("select 'another'")
    logged = wait_for(lambda: re.search(rb"acquired ShareLock on transaction.*?STATEMENT:  ([^\n]*)", server.read_log(since), re.S), what="the log")
    for one in (traced, selected):
        one.process.send_signal(signal.SIGCONT)
    wait = traced.wait_of(waiter.pid)
    waiter.end()
    for one in (traced, selected):
        one.ended()
    sent = min(length, SENT)
    assert logged[1].decode() == text and wait["query"] == text[:sent] and wait["truncated"] == (sent < length), traced.said()
    assert not wait.get("holders") and not selected.waits


def test_long_statement_that_waits(tool, server, sessions):
    """Of a text that does not fit in the record, the rest is read while it waits."""
    holder, waiter = sessions(2)
    traced = tool("locks", "--json", "-m", 0, "-p", server.pid, "--text", "64k", kind=Locks)
    text = "update acc set v = 7 where id = 4 --".ljust(SENT + 4000, "x")
    holder("update acc set v = 6 where id = 4")
    waiter.later(text)
    traced.sees(waiter.pid)
    holder.end("commit")
    waiter.done().end()
    wait = traced.wait_of(waiter.pid)
    traced.ended()
    assert (wait["query"], wait["truncated"]) == (text, False)


def test_redact(locks, server, sessions):
    holder, waiter = sessions(2)
    traced = locks("--redact")
    holder("update acc set v = 11 where id = 1 -- secret")
    waiter.later("update acc set v = 22 where id = 1 /* secret */")
    traced.sees(waiter.pid)
    holder.end("commit")
    waiter.done().end()
    wait = traced.wait_of(waiter.pid)
    traced.ended()
    assert wait["query"] == "update acc set v = ? where id = ? /*?*/", wait
    assert wait["holders"][0]["query"] == "update acc set v = ? where id = ? -- ?", wait
    assert "secret" not in traced.stdout


def test_relation_and_queue(locks, server, sessions):
    holder, waiter, behind = sessions(3)
    traced = locks()
    holder("select * from other")
    by, row = waiter.later("lock table other")
    queue, last = behind.later("select count(*) from other")
    traced.sees(waiter.pid, behind.pid)
    holder.end()
    waiter.done().end()
    behind.done().end()
    first, second = traced.wait_of(waiter.pid), traced.wait_of(behind.pid)
    traced.ended()
    assert by == [one["pid"] for one in first["holders"]] == [holder.pid]
    assert (first["lock"], first["mode"]) == (row["locktype"], row["mode"]) == ("relation", "AccessExclusiveLock")
    assert first["relation_oid"] == row["relation"] == oid(server, "other") and first["database_oid"] == row["database"]
    assert first["relation"] == second["relation"] == "other" and first["object"] == f"other ({row['relation']})"
    assert queue == [waiter.pid] and {one["pid"] for one in second["holders"]} == {waiter.pid}, second
    assert second["holders"][0]["queued"] and second["holders"][0]["running"]
    assert second["holders"][0]["query"] == "lock table other"
    assert second["mode"] == last["mode"] == "AccessShareLock"


def test_new_relation(locks, server, sessions):
    """Its row in the catalog is not in a file yet, but whoever waits for a row of it has its name."""
    holder, first, second = sessions(3)
    server.psql("create table fresh (id int primary key, v int)", "insert into fresh values (1, 1)",
                "create table also (id int primary key, v int)", "insert into also values (1, 1)")
    traced = locks()
    for table in ("fresh", "also"):	# the same place in each
        holder(f"update {table} set v = 2")
        first.later(f"update {table} set v = 3")
        _, row = second.later(f"update {table} set v = 4")
        assert row["locktype"] == "tuple"
        traced.sees(first.pid, second.pid)
        holder.end()
        first.done().end()
        second.done().end()
    traced.ended()
    for table in ("fresh", "also"):
        named = f"{table} ({oid(server, table)})"
        waits = [one for one in traced.waits if f"update {table} " in one["query"]]
        assert [one["object"] for one in waits if one["lock"] == "tuple"] == [f"(0,1) of {named}"], traced.said()
        rows = [one["object"] for one in waits if one["lock"] == "transactionid"]
        assert rows and all(one.endswith(f" of {named}") for one in rows), traced.said()
        assert {one["relation"] for one in waits} == {table}, traced.said()
    server.psql("drop table fresh, also")


def holders_named(traced, key, waiter):
    """The holders that are named so far for the wait of @waiter."""
    return [held[key] for one in traced.ask() if one.get(key) == waiter for held in one.get("holders", ())]


def check_turn(traced, waiter, turn, key, waiter_id):
    """Ends the transactions of @turn in that order, and compares their times with what the tool says."""
    identity = {"pid": lambda one: one.pid, "connection_id": lambda one: one.id}[key]
    until = []
    for one in turn:
        traced.wait_for(lambda tool: identity(one) in holders_named(tool, key, waiter_id), what="the next holder")
        time.sleep(0.05)
        until.append(time.time())
        if key == "pid":
            one.end()
        else:
            one("commit")
        for other in turn[turn.index(one) + 1:][:1]:
            other.done()
    waiter.done()
    wait = traced.wait_for(lambda tool: [one for one in tool.waits if one[key] == waiter_id])[0]
    begun = datetime.fromisoformat(wait["time"][:26] + "+00:00").timestamp()
    held = {}
    for one in wait["holders"]:		# one may also have been seen in the queue, when the other one had left
        held[one[key]] = held.get(one[key], 0) + one["blocked_ms"]
    assert list(held) == [identity(one) for one in turn], traced.said()
    assert abs(sum(held.values()) - wait["duration_ms"]) < 0.01, wait
    # the first one counts until it is seen to be gone, which is never before it has ended
    assert held[identity(turn[0])] >= (until[0] - begun) * 1000 - 1 and held[identity(turn[1])] >= 50 - 1, (until, wait)


@pytest.mark.parametrize("texts, ends", [
    (["savepoint s", "update acc set v = 1 where id = 1"], "rollback"),
    (["savepoint s", "update acc set v = 1 where id = 1", "release s"], "rollback"),
    (["savepoint s", "update acc set v = 1 where id = 1"], "release s; rollback"),
    (["do $$ begin update acc set v = 1 where id = 1; exception when others then null; end $$"], "rollback"),
], ids=lambda one: "" if isinstance(one, list) else one)
def test_row_of_a_subtransaction(locks, server, sessions, texts, ends):
    """The waits for it and for what it is part of have the row, which the waiter has locked meanwhile."""
    holder, waiter = sessions(2)
    traced = locks()
    for text in texts:
        holder(text)
    waiter.later("update acc set v = 2 where id = 1")
    traced.sees(waiter.pid)
    (row,) = server.psql("select relation, '(' || page || ',' || tuple || ')' from pg_locks where locktype = 'tuple' and "
                         f"pid = {waiter.pid}").stdout.decode().strip().splitlines()
    for number, text in enumerate(ends.split("; ")):
        traced.wait_for(lambda tool: len([one for one in tool.waits if one["pid"] == waiter.pid]) == number, what="the wait before")
        traced.sees(waiter.pid)
        holder(text)
    waiter.done().end()
    waits = traced.wait_for(lambda tool: [one for one in tool.waits if one["pid"] == waiter.pid][number:]) and [
        one for one in traced.waits if one["pid"] == waiter.pid]
    traced.ended()
    relation, place = row.split("|")
    assert len(waits) == len(ends.split("; ")) and {one["lock"] for one in waits} == {"transactionid"}
    for one in waits:
        assert one["relation_oid"] == int(relation) and one["relation"] == "acc" and f"row {place} of acc" in one["object"], traced.said()


def test_holders_in_turn(locks, sessions):
    """The holder, and the one that was ahead in the queue: each is named, and for how long."""
    holder, second, waiter = sessions(3)
    traced = locks()
    holder("lock table other")
    second.later("lock table other")
    assert waiter.later("lock table other")[0] == [holder.pid, second.pid]
    check_turn(traced, waiter, [holder, second], "pid", waiter.pid)
    waiter.end()
    traced.ended()


def test_name_that_changes(locks, server, sessions):
    """Which of two names a relation will have is not known."""
    holder, waiter = sessions(2)
    server.psql("create table before (x int)", "checkpoint")
    number = oid(server, "before")
    traced = locks()
    holder("alter table before rename to after")
    server.psql("checkpoint")
    waiter.later("select 1 from before")
    traced.sees(waiter.pid)
    holder.end()
    waiter.done().end()
    wait = traced.wait_of(waiter.pid)
    traced.ended()
    assert wait["relation_oid"] == number and "relation" not in wait and wait["object"] == str(number), wait


def test_several_holders(locks, sessions):
    *holders, waiter = sessions(4)
    traced = locks()
    for one in holders:
        one("select * from acc where id = 7 for key share")
    by, row = waiter.later("lock table acc in exclusive mode")
    traced.sees(waiter.pid)
    for one in holders:
        one.end()
    waiter.done().end()
    wait = traced.wait_of(waiter.pid)
    traced.ended()
    assert {one["pid"] for one in wait["holders"]} == set(by) == {one.pid for one in holders}
    assert wait["mode"] == row["mode"] == "ExclusiveLock"


def test_deadlock(locks, server, sessions):
    for seconds in (1, 5, 30):	# time for it to look at both before the server does
        one, two = sessions(2)
        traced = locks()
        since = server.log_size()
        one("set local deadlock_timeout = '1h'")("update acc set v = 1 where id = 3")
        two(f"set local deadlock_timeout = '{seconds}s'")("update acc set v = 1 where id = 4")
        one.later("update acc set v = 2 where id = 4")
        two.run_later("update acc set v = 2 where id = 3")

        def known(tool):
            holders = {held["pid"] for wait in tool.ask() for held in wait.get("holders", ())}
            return holders >= {one.pid, two.pid} or not two.thread.is_alive()
        traced.wait_for(known, what="both waits")
        seen = two.thread.is_alive()
        victim, other = two.done().end(), one.done().end()
        lost = traced.wait_of(victim.pid)
        got = traced.wait_of(other.pid)
        traced.ended()
        if seen:
            break
    assert b"deadlock detected" in server.read_log(since) and victim.error == "DeadlockDetected"
    assert lost["outcome"] == "deadlock" and got["outcome"] == "granted", traced.said()
    assert lost["cycle"] == [victim.pid, other.pid], traced.said()
    said = re.search(rb"Process %d waits for ShareLock on transaction (\d+); blocked by process %d" % (victim.pid, other.pid),
                     server.read_log(since))
    assert lost["transaction"] == int(said[1])


def test_advisory_and_failures(locks, server, sessions):
    holder, waiter = sessions(2)
    traced = locks()
    holder("select pg_advisory_xact_lock(1234567890123), pg_advisory_xact_lock(7, -8)")
    waiter("set lock_timeout = '50ms'").connection.commit()
    waiter.run("select pg_advisory_lock(1234567890123)")
    waiter.end()("select 1")
    waiter.run("select pg_advisory_lock(7, -8)")
    waiter.end()("set lock_timeout = 0").connection.commit()
    waiter.later("select pg_advisory_lock(7, -8)")
    traced.sees(waiter.pid)
    server.psql(f"select pg_cancel_backend({waiter.pid})")
    waiter.done().end()
    traced.wait_for(lambda tool: len(tool.waits) == 3)
    traced.ended()
    assert [one["object"] for one in traced.waits] == ["1234567890123", "7,-8", "7,-8"]
    assert {one["lock"] for one in traced.waits} == {"advisory"} and {one["mode"] for one in traced.waits} == {"ExclusiveLock"}
    assert {one["outcome"] for one in traced.waits} == {"failed"} and waiter.error == "QueryCanceled"
    assert traced.waits[2]["holders"][0]["pid"] == holder.pid


def test_prepared_transaction(locks, server, sessions):
    holder, waiter = sessions(2)
    traced = locks()
    holder("update acc set v = 5 where id = 9")("prepare transaction 'locks'")
    holder.connection.close()
    by, _ = waiter.later("update acc set v = 6 where id = 9")
    traced.sees(waiter.pid)
    server.psql("rollback prepared 'locks'")
    waiter.done().end()
    wait = traced.wait_of(waiter.pid)
    traced.ended()
    assert by == [0] and [one.get("prepared_transaction") for one in wait["holders"]] == [True], wait


def test_waits_from_before_and_to_the_end(locks, server, sessions):
    holder, waiter = sessions(2)
    holder("lock table other")
    waiter.later("select 1 from other")
    if int(server.psql("show server_version_num").stdout) >= 140000:	# it is in the queue before it takes the time
        waitstart = f"select waitstart from pg_locks where pid = {waiter.pid} and not granted"
        wait_for(lambda: server.psql(waitstart).stdout.strip(), what="the start of the wait")
    time.sleep(0.1)
    traced = locks()
    holder.end()
    waiter.done().end()
    wait = traced.wait_of(waiter.pid)
    assert wait["holders"][0]["pid"] == holder.pid and wait["relation_oid"] == oid(server, "other"), wait
    assert wait["query"] == "select 1 from other"
    assert wait.get("began_before") or 100 <= wait["duration_ms"] <= waiter.took + 1, (wait, waiter.took)
    holder("lock table other")
    waiter.later("select 2 from other")
    traced.ended()
    assert len(traced.waits) == len(traced.running()) == 1, traced.said()
    assert traced.running()[0]["query"] == "select 2 from other" and traced.running()[0]["holders"][0]["pid"] == holder.pid
    holder.end()
    waiter.done()


def test_slow_reads(locks, sessions):
    """When the time for the waits of a user is over before all of one is known, the rest is read later."""
    if not shutil.which("strace"):
        pytest.skip("no strace")
    holder, *waiters = sessions(1) + [one for i in range(8) for one in sessions(1, application_name=f"application {i}")]
    holder("lock table other")
    traced = locks()
    slow = strace(traced.pid, "-o", "/dev/null", "-e", "inject=pread64:delay_enter=4000")
    for one in waiters:
        one.later("select 1 from other")
    time.sleep(2)
    slow.terminate()
    slow.wait()
    names = {f"application {i}" for i in range(8)}
    traced.wait_for(lambda tool: {one.get("application") for one in tool.ask()} == names, what="the names")
    traced.ended()
    assert {one.get("application") for one in traced.running()} == names, traced.said()
    holder.end()
    for one in waiters:
        one.done()


def test_time_namespace(tool, server, sessions):
    """CLOCK_MONOTONIC is another one there than that of programs: no time may show it."""
    wrap = ("unshare", "--time", "--monotonic", "100000", "--fork")
    if subprocess.run([*wrap, "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no time namespaces here")
    holder, before, after = sessions(3)
    holder("lock table other")
    begun = time.time()
    before.later("select 1 from other")
    traced = tool("locks", "--json", "-m", 0, "-p", server.pid, kind=Locks, wrap=wrap)
    after.later("select 2 from other")
    assert traced.stop() == 0
    ended = time.time()
    holder.end()
    before.done()
    after.done()
    shown = {one["pid"]: one for one in traced.running()}
    assert set(shown) == {before.pid, after.pid}, traced.said()
    for one in shown.values():
        at = datetime.fromisoformat(one["time"][:26] + "+00:00").timestamp()
        assert begun - 0.01 <= at <= at + one["duration_ms"] / 1000 <= ended + 0.01, (begun, one, ended)


def test_redact_of_waits_from_before(tool, server, sessions):
    holder, waiter = sessions(2)
    holder("lock table other -- secret")
    waiter.later("select 'secret' from other")
    traced = tool("locks", "--json", "--redact", "-m", 0, "-p", server.pid, kind=Locks)
    holder.end()
    waiter.done().end()
    wait = traced.wait_of(waiter.pid)
    traced.ended()
    assert wait["query"] == "select ? from other" and wait["holders"][0]["query"] == "lock table other -- ?"
    assert "secret" not in traced.stdout


FILTERS = {"user": ["--user", "someone"], "db": ["--db", "somewhere"], "client": ["--client", "127.0.0.1"],
           "match": ["--match", "NEEDLE", "--redact"], "stat": ["--stat", "--user", "someone"],
           "container": ["--container", "0123456789ab"]}


def test_filters(locks, server, sessions):
    """Of those that the server's own view of its sessions has for each."""
    server.psql("drop role if exists someone; create role someone login", "create database somewhere")
    holders = sessions(1) + sessions(1, dbname="somewhere")
    waiters = sessions(1, user="someone") + sessions(1, dbname="somewhere", host="127.0.0.1")
    seen = {one.pid: one.connection.execute("select usename, datname, host(client_addr) from pg_stat_activity"
                                            " where pid = pg_backend_pid()").fetchone() for one in waiters}
    wanted = {"user": {pid for pid, row in seen.items() if row[0] == "someone"},
              "db": {pid for pid, row in seen.items() if row[1] == "somewhere"},
              "client": {pid for pid, row in seen.items() if row[2] == "127.0.0.1"}, "match": {waiters[1].pid}}
    traced = {name: locks("--engine", "postgres", *args) for name, args in FILTERS.items()}
    for holder, waiter, text in zip(holders, waiters, ("select pg_advisory_lock(1)", "select pg_advisory_lock(1), 'needle'")):
        holder("select pg_advisory_lock(1)")
        waiter.later(text)
    for name, pids in wanted.items():
        traced[name].shows("pid", *pids)
    for holder, waiter in zip(holders, waiters):
        holder("select pg_advisory_unlock(1)")
        waiter.done()
    for name, one in traced.items():
        one.ended()
        assert {wait["pid"] for wait in one.running() + one.waits} == wanted.get(name, set()), (name, seen, one.said())
    sums = [(one["lock"], one["waits"]) for one in traced["stat"].objects() if one["type"] == "lock_stat"]
    assert [one for one in sums if one[0] != "lwlock"] == [("advisory", 1)], traced["stat"].said()
    for one in holders + waiters:
        one.connection.close()
    server.settle()
    server.psql("drop database somewhere", "drop role someone")


def test_one_backend(tool, server, sessions):
    holder, waiter, other = sessions(3)
    traced = tool("locks", "--json", "-m", 0, "-p", waiter.pid, kind=Locks)
    holder("lock table other")
    other.later("select 1 from other")
    waiter.later("select 2 from other")
    holder.end()
    other.done().end()
    waiter.done().end()
    traced.wait_of(waiter.pid)
    traced.ended()
    assert {one["pid"] for one in traced.waits} == {waiter.pid}


def test_text_form_and_threshold():
    made = Made()
    session = made.session(made.server(), pid=4711)
    made.wait(session, ms=5, text="select 'short' from other", name="other", holders=[holder_of(12, "lock table other", ms=5)])
    made.wait(session, ms=301.25, mode="AccessShareLock", tag=(5, 16384, 0, 0), text="select E'\x1b[31m' from other", name="other",
              holders=[holder_of(12, "lock table other", ms=301, idle=True, idle_ms=320), holder_of(13, ms=7, queued=True)])
    made.wait(session, ms=310, lock="transactionid", mode="ShareLock", outcome="failed", tag=(728, 0, 0, 0), text="update acc set v = 1",
              holders=[holder_of(12, "delete from acc", ms=310, running=True)])
    made.wait(session, ms=400, outcome="waiting", text="lock table other", name="other", holders=[holder_of(12, "select 1", ms=400)])
    traced = Replayed(made, "locks", "-m", "300")
    rows = traced.rows()
    assert re.fullmatch(r"0\.007000 +4711 +301\.250 granted  relation other \(16384\) +AccessShareLock +12 +select E'\\x1b\[31m' from other",
                        rows[0]), traced.said()
    assert rows[1].lstrip() == "held by 12 for 301.000 ms, idle in transaction for 0.320 s; its last statement: lock table other", traced.said()
    assert rows[2].lstrip() == "queued behind 13 for 7.000 ms", traced.said()
    assert re.fullmatch(r"0\.\d+ +4711 +310\.000 failed   transactionid 728 +ShareLock +12 +update acc set v = 1", rows[3]), traced.said()
    assert rows[4].lstrip() == "held by 12, running: delete from acc", traced.said()
    assert rows[5] == "Still waiting:" and re.match(r"[\d.]+ +4711 +400\.000 waiting  relation other ", rows[6]), traced.said()
    assert "\x1b" not in traced.stdout and "short" not in traced.stdout
    assert "2 waits, 2 shown, nothing lost" in traced.stderr, traced.said()


def parse_dot(text):
    """Nodes and edges with their attributes: the part of the language that is used here, strictly."""
    string = r'"((?:[^"\\]|\\.)*)"'
    lines = text.splitlines()
    assert lines[0] == "digraph locks {" and lines[-1] == "}"
    nodes, edges = {}, []
    for line in lines[3:-1]:
        node = re.fullmatch(rf"\t{string} \[label={string}\];", line)
        edge = re.fullmatch(rf"\t{string} -> {string} \[label={string}(, style=dashed)?(, color=red)?\];", line)
        assert node or edge, line
        if node:
            nodes[node[1]] = node[2]
        else:
            edges.append(edge.groups())
    return nodes, edges


def test_table_and_graph(tmp_path):
    made, dot = Made(), tmp_path / "waits.dot"
    server = made.server()
    holder, waiter, behind = (made.session(server, pid=pid) for pid in (11, 12, 13))
    for ms in (2, 5):
        made.wait(waiter, ms=ms, lock="transactionid", mode="ShareLock", tag=(728, 0, 0, 0), relation=16386, name="acc",
                  text='update acc set v = 2 where id = 11 -- "quoted\\"', holders=[holder_of(11, "update acc set v = 1", ms=ms, idle=True)])
    made.wait(waiter, ms=10, name="other", text="lock table other", holders=[holder_of(11, "select * from other", ms=10)])
    made.wait(behind, ms=8, mode="AccessShareLock", name="other", text="select 3 from other", holders=[
        holder_of(11, "select * from other", ms=2), holder_of(12, "lock table other", ms=8, queued=True)], outcome="failed")
    traced = Replayed(made, "locks", "--stat", "--json", "--dot", dot)
    rows = [(one["lock"], one["object"], one["mode"], one["waits"], one["total_ms"], one["max_ms"], one["failed"])
            for one in traced.of("lock_stat")]
    assert sorted(rows) == [("relation", "other (16384)", "AccessExclusiveLock", 1, 10, 10, 0),
                            ("relation", "other (16384)", "AccessShareLock", 1, 8, 8, 1),
                            ("transactionid", "rows of acc (16386)", "ShareLock", 2, 7, 5, 0)], traced.said()
    assert not traced.of("lock_wait") and traced.summary["printed"] == 3 and traced.summary["waits"] == 4
    assert " 3 lines shown" in traced.stderr, traced.said()
    assert dot.stat().st_mode & 0o777 == 0o600		# texts are in it
    nodes, edges = parse_dot(dot.read_text())
    assert set(nodes) == {"11", "12", "13"} and holder[1] == 11
    assert {(edge[0], edge[1], bool(edge[3])) for edge in edges} == {("12", "11", False), ("13", "11", False), ("13", "12", True)}, edges
    if shutil.which("dot"):
        subprocess.run(["dot", "-Tsvg", "-o", tmp_path / "waits.svg", dot], check=True)


class Load:
    """Statements by pgbench, for as long as it is entered."""

    def __init__(self, server, *scripts):
        self.command = ["pgbench", "-n", "-c", "8", "-j", "2", "-T", "600", *(f"--file={script}" for script in scripts)]
        self.server = server

    def __enter__(self):
        self.process = subprocess.Popen(self.command, env=self.server.env(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.server.settle()	# else a wait of one of its backends may not have ended


def oracle_lwlocks(server, extension=None):
    """The LWLocks that the server says somebody waits for, until one of its own and @extension's are among them."""
    seen = set()
    with server.connect() as oracle:
        def look():
            rows = oracle.execute("select wait_event from pg_stat_activity where wait_event_type = 'LWLock'")
            seen.update(name for name, in rows)
            return seen - {extension} and seen >= ({extension} - {None})
        wait_for(look, timeout=300, what="a wait for an LWLock", every=0.001)
    return seen


def check_lwlocks(traced, program, extension=None):
    """The names of the sums, which are the server's own."""
    light = [one for one in traced.objects() if one["type"] == "lock_stat" and one["lock"] == "lwlock"]
    with open(program, "rb") as f:
        strings = f.read()
    for one in light:
        assert one["object"] == extension or one["object"].encode() + b"\0" in strings, one
        assert one["mode"] in ("exclusive", "shared", "until free"), one
        assert 0 < one["max_ms"] <= one["total_ms"] and one["waits"]
    keys = [(one["object"], one["mode"]) for one in light]
    assert len(keys) == len(set(keys))
    return {one["object"] for one in light}


@pytest.fixture
def updates(tmp_path):
    path = tmp_path / "updates.sql"
    path.write_text("\\set id random(1, 20)\nupdate acc set v = v + 1 where id = :id;\n")
    return path


def test_lwlocks(tool, server, updates):
    """Under load some wait for each other; the names are the server's own."""
    program = server.postgres
    if not any(name.startswith("lwlock__wait") for name, *_ in usdt_probes(program)):
        pytest.skip("this server has no USDT probes")
    traced = tool("locks", "--stat", "--json", "-v", "-p", server.pid, kind=Locks)
    with Load(server, updates):
        seen = oracle_lwlocks(server)
    assert traced.stop() == 0, traced.said()
    programs = re.findall(r"^program (\w+),", traced.stderr, re.M)
    assert programs.count("postgresql") <= 1 and "semaphore_start" not in programs, "probes for what USDT tells"
    assert check_lwlocks(traced, program) >= seen, traced.said()


def test_lwlocks_of_names_that_cannot_be_read(tool, clusters, server_copy, updates):
    """As where the page of the name is not mapped: the note says that it is at an address where nothing is."""
    with open(server_copy, "rb+") as f:
        spoilt, number = re.subn(rb"(\0lwlock__wait__done\x008@)([^ \0]+)",
                                 lambda match: match[1] + b"$" + b"1" * (len(match[2]) - 1), f.read())
        f.seek(0)
        f.write(spoilt)
    if not number:
        pytest.skip("this server has no USDT probes")
    cluster = clusters(postgres=server_copy, **SETTINGS)
    cluster.psql("create table acc (id int primary key, v int)", "insert into acc select g, 0 from generate_series(1, 20) g")
    traced = tool("locks", "--stat", "--json", "-p", cluster.pid, kind=Locks)
    with Load(cluster, updates):
        seen = oracle_lwlocks(cluster)
    assert traced.stop() == 0, traced.said()
    assert check_lwlocks(traced, server_copy) >= seen, traced.said()


@pytest.mark.parametrize("way", [[], force("perf")], ids=" ".join)
def test_lwlocks_without_usdt(tool, clusters, server_copy, updates, tmp_path, way):
    """Waits that slept, by the function; also the lock of an extension."""
    subprocess.run(["objcopy", "--remove-section", ".note.stapsdt", server_copy], check=True)
    statements = tmp_path / "statements.sql"
    # so many that it has to forget some
    statements.write_text("".join(f"select {', '.join(['1'] * n)};\n" for n in range(1, 200)))
    extension = "pg_stat_statements"
    library = os.path.join(os.path.dirname(server_bindir()), "lib", f"{extension}.so")
    preload = {"shared_preload_libraries": extension, f"{extension}.max": "100"}
    if not os.path.exists(library):
        extension, preload = None, {}
    cluster = clusters(postgres=server_copy, **preload, **SETTINGS)
    cluster.psql("create table acc (id int primary key, v int)", "insert into acc select g, 0 from generate_series(1, 20) g")
    summed = tool("locks", "--stat", "--json", "-p", cluster.pid, *way, kind=Locks)
    traced = tool("locks", "--json", "-m", 0, "-v", "-p", cluster.pid, *way, kind=Locks)
    with Load(cluster, updates, statements):
        seen = oracle_lwlocks(cluster, extension)
    assert traced.stop() == summed.stop() == 0, traced.said()
    assert "LWLock waits are not seen" not in traced.stderr
    waits = [one for one in traced.objects() if one["type"] == "lock_wait" and one["lock"] == "lwlock"]
    assert {one["outcome"] for one in waits} == {"granted"}
    # One that it has seen waited for only once may be among those that found no room while it had no CPU.
    assert traced.summary["lost"]["ring_full"] or {one["object"] for one in waits} >= seen
    names = check_lwlocks(summed, server_copy, extension)
    assert names >= seen and not [name for name in names if name.startswith("tranche")], names


def test_without_usdt(tool, clusters, sessions, server_copy):
    """A build without probes: by functions alone."""
    subprocess.run(["objcopy", "--remove-section", ".note.stapsdt", server_copy], check=True)
    cluster = clusters(postgres=server_copy, **SETTINGS)
    cluster.psql("create table acc (id int primary key, v int)", "insert into acc values (1, 0), (2, 0)")
    traced = tool("locks", "--json", "-m", 0, "-v", "-p", cluster.pid, kind=Locks)
    assert "by its symbols" in traced.stderr
    one, two = sessions(2, cluster)
    one("update acc set v = 1 where id = 1")
    two("update acc set v = 1 where id = 2")
    by, row = two.later("update acc set v = 1 where id = 1")
    traced.sees(two.pid)
    one.end()
    two.done().end()
    wait = traced.wait_of(two.pid)
    assert by == [one.pid] == [held["pid"] for held in wait["holders"]] and wait["outcome"] == "granted"
    assert wait["transaction"] == int(row["transactionid"]) and wait["duration_ms"] <= two.took
    one("update acc set v = 1 where id = 1")
    two("update acc set v = 1 where id = 2")
    one.later("update acc set v = 2 where id = 2")
    two.run("update acc set v = 2 where id = 1")
    two.end()
    one.thread.join(60)
    one.end()
    traced.wait_for(lambda tool: len(tool.waits) == 3)
    traced.ended()
    assert sorted(wait["outcome"] for wait in traced.waits) == ["deadlock", "granted", "granted"], traced.said()


def test_server_that_starts_later(tool, clusters, sessions, server_copy):
    """One after the other; nothing was there to attach to but the file."""
    traced = tool("locks", "--json", "-m", 0, "-x", server_copy, kind=Locks)
    cluster = clusters(postgres=server_copy, **SETTINGS)
    for _ in range(2):
        holder, waiter = sessions(2, cluster)
        holder("select pg_advisory_xact_lock(1)")
        by, _ = waiter.later("select pg_advisory_xact_lock(1)")
        traced.sees(waiter.pid)
        holder.end()
        waiter.done().end()
        wait = traced.wait_of(waiter.pid)
        assert by == [holder.pid] == [one["pid"] for one in wait["holders"]], traced.said()
        for one in (holder, waiter):
            one.connection.close()
        cluster.restart()
    traced.ended()


def seen_pids(cluster):
    """{PID as the server has it: as it is seen from here}"""
    found = {}
    for pid in cluster.client_backends():
        with open(f"/proc/{pid}/status") as f:
            found[int(re.search(r"^NSpid:.*\s(\d+)$", f.read(), re.M)[1])] = pid
    return found


def test_container(tool, clusters, sessions):
    """PIDs are told as they are seen from here; the server knows others."""
    needs_namespaces()
    cluster = clusters(name="contained", wrap=UNSHARE, **SETTINGS)
    cluster.psql("create table acc (id int primary key, v int)", "insert into acc values (1, 0)")
    traced = tool("locks", "--json", "-m", 0, "-p", cluster.pid, kind=Locks)
    holder, waiter = sessions(2, cluster)
    holder("update acc set v = 1 where id = 1")
    by, _ = waiter.later("update acc set v = 2 where id = 1")
    wait_for(lambda: len(cluster.client_backends()) == 2, what="the oracle's end")
    pids = seen_pids(cluster)
    traced.sees(pids[waiter.pid])
    holder.end()
    waiter.done().end()
    wait = traced.wait_of(pids[waiter.pid])
    traced.ended()
    assert by == [holder.pid] != [pids[holder.pid]] == [one["pid"] for one in wait["holders"]], (pids, wait)
    assert wait["holders"][0]["query"] == "update acc set v = 1 where id = 1" and wait["relation"] == "acc"


# --- MariaDB

@pytest.fixture(scope="module")
def maria():
    need_root()
    if not maria_server():
        pytest.skip("no MariaDB server (packages mariadb-server-core, mariadb-client-core)")
    with contextlib.ExitStack() as stack:
        one = Maria(innodb_lock_wait_timeout="1000")
        stack.callback(one.remove)
        one.init().start()
        with contextlib.closing(one.connect()) as setup:
            for sql in ("create database shop", "create table shop.acc (id int primary key, v int)",
                        "insert into shop.acc values (1, 1), (2, 2)"):
                setup.query(sql)
        yield one


class Connection:
    """As Session, of MariaDB."""

    def __init__(self, server, **keywords):
        self.server = server
        self.client = server.connect(**keywords)
        self.id = int(self.client.rows("select connection_id()")[0][0])
        self.thread = self.took = None

    def __call__(self, sql):
        self.client.query(sql)

    def run(self, sql):
        begun = time.monotonic()
        try:
            self.client.query(sql)
        finally:
            self.took = (time.monotonic() - begun) * 1000

    def later(self, sql, state):
        """Returns once the processlist, or @state as a query, says that it waits; that query's rows."""
        query = state if state.startswith("select") else (
            f"select id from information_schema.processlist where id = {self.id} and state like '{state}'")
        self.thread = threading.Thread(target=self.run, args=(sql,), daemon=True)
        self.thread.start()
        with contextlib.closing(self.server.connect()) as oracle:
            # InnoDB's tables are read anew only when they have not been read for 0.1 s
            return wait_for(lambda: oracle.rows(query), what="the lock wait", every=0.2)

    def sleeps(self):
        """Wait until its thread has left its CPU; the processlist says before that it waits."""
        with contextlib.closing(self.server.connect()) as oracle:
            thread = int(oracle.rows(f"select tid from information_schema.processlist where id = {self.id}")[0][0])
        wait_for(lambda: has_left_cpu(thread), what="its sleep")

    def done(self):
        self.thread.join(60)
        assert not self.thread.is_alive()


def test_mariadb(tool, maria, tmp_path):
    dot = tmp_path / "waits.dot"
    traced = tool("locks", "--json", "--dot", dot, "-m", 0, "-p", maria.pid, kind=Locks)
    holder, waiter = Connection(maria), Connection(maria)

    def sees(kind):
        def known(tool):
            return [one for one in tool.ask() if one["lock"] == kind and one.get("connection_id") == waiter.id and
                    (one.get("holders") or not known_holders[kind])]
        traced.wait_for(known, what=f"a wait for {kind}")

    version = [int(part) for part in re.search(r"MariaDB (\d+)\.(\d+)", traced.stderr).groups()]
    known_holders = {"row": version >= [10, 6], "metadata": True}

    holder("begin")
    holder("update shop.acc set v = 3 where id = 1")
    blocking = waiter.later("update shop.acc set v = 4 where id = 1",
                            "select b.trx_mysql_thread_id, r.trx_mysql_thread_id from information_schema.innodb_lock_waits w"
                            " join information_schema.innodb_trx b on b.trx_id = w.blocking_trx_id"
                            " join information_schema.innodb_trx r on r.trx_id = w.requesting_trx_id")
    sees("row")
    with contextlib.closing(maria.connect()) as oracle:
        table = oracle.rows("select replace(lock_table, '`', ''), lock_index from information_schema.innodb_locks"
                            f" join information_schema.innodb_trx on trx_id = lock_trx_id where trx_mysql_thread_id = {holder.id}")
    holder("commit")
    waiter.done()
    traced.wait_for(lambda tool: [one for one in tool.waits if one["lock"] == "row"])
    row_took = waiter.took
    holder("begin")
    holder("select * from shop.acc")
    waiter.later("alter table shop.acc add extra int", "Waiting for table metadata lock")
    sees("metadata")
    holder("commit")
    waiter.done()
    traced.wait_for(lambda tool: [one for one in tool.waits if one["lock"] == "metadata"])
    traced.ended()
    row = max((one for one in traced.waits if one["lock"] == "row"), key=lambda one: one["duration_ms"])
    assert (row["query"], row["outcome"], row["server"]["engine"]) == ("update shop.acc set v = 4 where id = 1", "granted", "mariadb")
    assert [[int(one) for one in pair] for pair in blocking] == [[holder.id, waiter.id]]
    assert row["connection_id"] == waiter.id and 0 < row["duration_ms"] <= row_took
    if known_holders["row"]:
        (held,) = row["holders"]
        assert held["connection_id"] == holder.id and held["idle_in_transaction"] and not held["running"], traced.said()
        assert (row["object"], row["index"]) == tuple(name.decode() for name in table[0]), traced.said()
    else:
        assert "holders" not in row, traced.said()
    metadata = max((one for one in traced.waits if one["lock"] == "metadata"), key=lambda one: one["duration_ms"])
    assert metadata["object"] == "shop.acc" and metadata["query"] == "alter table shop.acc add extra int"
    assert [one["idle_in_transaction"] for one in metadata["holders"] if one["connection_id"] == holder.id] == [True], traced.said()
    assert 0 < metadata["duration_ms"] <= waiter.took
    _, edges = parse_dot(dot.read_text())
    assert (str(waiter.id), str(holder.id)) in [edge[:2] for edge in edges], edges
    for one in (holder, waiter):
        one.client.close()


def wait_of_connection(traced, connection):
    """The wait of this connection, once it has ended."""
    return traced.wait_for(lambda tool: [one for one in tool.waits if one.get("connection_id") == connection.id])[0]


class Killed(Connection):
    def run(self, sql):
        with contextlib.suppress(ServerError):
            super().run(sql)


def test_mariadb_statement_of_a_wait_that_is_over(tool, maria):
    traced = tool("locks", "--json", "-m", 0, "-p", maria.pid, kind=Locks)
    holder, waiter = Connection(maria), Killed(maria)
    traced.pause()
    holder("begin")
    holder("update shop.acc set v = 3 where id = 1")
    waiter.later("update shop.acc set v = 4 where id = 1",
                 f"select 1 from information_schema.innodb_trx where trx_mysql_thread_id = {waiter.id} and trx_state = 'LOCK WAIT'")
    waiter.sleeps()
    holder("commit")
    waiter.done()
    waiter.later("select sleep(600) /* another */", "User sleep")
    traced.process.send_signal(signal.SIGCONT)
    wait = wait_of_connection(traced, waiter)
    holder(f"kill query {waiter.id}")
    waiter.done()
    traced.ended()
    assert wait["query"] == "update shop.acc set v = 4 where id = 1" and not wait["truncated"], traced.said()
    for one in (holder, waiter):
        one.client.close()


@pytest.mark.parametrize("wait, hold, release, known", [
    ("alter table shop.acc comment 'x'", "select * from shop.acc", "commit", ("metadata", "shop.acc")),
    ("select get_lock('slices', 600)", "select get_lock('slices', 600)", "do release_lock('slices')", ("user", "slices")),
    ("update shop.acc set v = 9 where id = 2", "flush tables with read lock", "unlock tables", ("metadata", "backup lock")),
    ("alter table shop.acc comment 'y'", "select * from shop.acc", None, ("metadata", "shop.acc"))],
    ids=["metadata", "user", "global", "killed"])
def test_mariadb_wait_in_slices(tool, maria, wait, hold, release, known):
    """The server wakes up each second; the wait is one."""
    options = ("locks", "--json", "-p", maria.pid)
    traced, longer = tool(*options, "-m", 0, kind=Locks), tool(*options, "-m", 2200, kind=Locks)
    holder, waiter = Connection(maria), Killed(maria)
    holder("begin")
    holder(hold)
    waiter.later(wait, f"select id from information_schema.processlist where id = {waiter.id} and"
                       " (state like 'Waiting for %lock' or state = 'User lock')")
    waiter.sleeps()
    seen = time.monotonic()
    time.sleep(2.5)
    current, = traced.ask()
    least = (time.monotonic() - seen) * 1000
    if release:
        holder(release)
    else:
        holder(f"kill query {waiter.id}")
    waiter.done()
    holder("commit")
    found = [wait_of_connection(one, waiter) for one in (traced, longer)]
    for one in (traced, longer):
        one.ended()
        assert len(one.waits) == one.summary["waits"] == 1 or one is longer, one.said()
    for one in [current, *found]:
        assert (one["lock"], one["object"], one["query"]) == (*known, wait), traced.said()
        assert [held["connection_id"] for held in one["holders"]] == [holder.id] and one["duration_ms"] > 2200
    assert least <= found[0]["duration_ms"] <= waiter.took
    for one in (holder, waiter):
        one.client.close()


def test_mariadb_locks_of_no_table(tool, maria):
    """The server's own words for what is waited for; none of the sessions is in a transaction."""
    traced = tool("locks", "--json", "-m", 0, "-p", maria.pid, kind=Locks)
    redacted = tool("locks", "--json", "--redact", "-m", 0, "-p", maria.pid, kind=Locks)
    holder, waiter, other = Connection(maria), Connection(maria), Connection(maria)
    holder("flush tables with read lock")
    state = waiter.later("update shop.acc set v = 6 where id = 1",
                         f"select state from information_schema.processlist where id = {waiter.id} and state like 'Waiting for %lock'")
    traced.wait_for(lambda tool: any(one.get("holders") for one in tool.ask()), what="a holder")
    holder("unlock tables")
    waiter.done()
    lock = wait_of_connection(traced, waiter)
    holder("select get_lock('secret', 10)")
    other.later("select get_lock('secret', 600)", "User lock")
    for tool in (traced, redacted):
        tool.wait_for(lambda tool: any(one.get("holders") for one in tool.ask()), what="a holder")
    holder("select release_lock('secret')")
    other.done()
    user = wait_of_connection(traced, other)
    for one in (traced, redacted):
        one.ended()
    assert (lock["lock"], "Waiting for " + lock["object"]) == ("metadata", state[0][0].decode()), traced.said()
    assert (user["lock"], user["object"]) == ("user", "secret"), traced.said()
    for one in (lock, user):
        assert [(held["connection_id"], held["idle_in_transaction"]) for held in one["holders"]] == [(holder.id, False)], traced.said()
    assert [one["object"] for one in redacted.waits if one["lock"] == "user"] == ["?"] and "secret" not in redacted.stdout
    for one in (holder, waiter, other):
        one.client.close()


def test_mariadb_filters(tool, maria):
    with contextlib.closing(maria.connect()) as setup:
        setup.query("create user someone")
        setup.query("grant all on *.* to someone")
    holder, unwanted, wanted = Connection(maria), Connection(maria), Connection(maria, user="someone", database="shop")
    traced = [tool("locks", "--json", "-m", 0, "-p", maria.pid, *args, kind=Locks)
              for args in (("--user", "someone"), ("--db", "shop", "--match", "acc"), ("--client", "localhost", "--match", "/2$/"))]
    holder("begin")
    holder("update shop.acc set v = 3")
    for number, waiter in enumerate((unwanted, wanted), 1):
        waiter.later(f"update shop.acc set v = 4 where id = {number}",
                     f"select 1 from information_schema.innodb_trx where trx_mysql_thread_id = {waiter.id} and trx_state = 'LOCK WAIT'")
    for one in traced:
        one.shows("connection_id", wanted.id)
    holder("rollback")
    for waiter in unwanted, wanted:
        waiter.done()
    for one in traced:
        one.ended()
        assert {wait.get("connection_id") for wait in one.running() + one.waits} == {wanted.id}, one.said()


def test_mariadb_holders_in_turn(tool, maria):
    """One after the other has the row, while a third waits: each is named, and for how long."""
    traced = tool("locks", "--json", "-m", 0, "-p", maria.pid, kind=Locks)
    if [int(part) for part in re.search(r"MariaDB (\d+)\.(\d+)", traced.stderr).groups()] < [10, 6]:
        pytest.skip("its transactions do not tell for whom they wait")
    holder, second, waiter = Connection(maria), Connection(maria), Connection(maria)
    waiting = "select 1 from information_schema.innodb_trx where trx_state = 'LOCK WAIT' and trx_mysql_thread_id = {}"
    for one in (holder, second):
        one("begin")
    holder("update shop.acc set v = 3 where id = 1")
    second.later("update shop.acc set v = 4 where id = 1", waiting.format(second.id))
    waiter.later("update shop.acc set v = 5 where id = 1", waiting.format(waiter.id))
    check_turn(traced, waiter, [holder, second], "connection_id", waiter.id)
    traced.ended()
    for one in (holder, second, waiter):
        one.client.close()


def test_redact_of_a_recording():
    """In the dialect of the server."""
    made = Made()
    server = made.server("mariadb")
    made.wait(made.session(server), lock="metadata", mode=None, engine="mysql", outcome="ended", thing="shop.acc",
              text='alter table shop.acc comment "it\'s secret"', holders=[holder_of(100, 'select "secret" # secret', connection=7, ms=1)])
    made.wait(made.session(made.server(), pid=7), text='select 1 as "name", \'secret\'', holders=[holder_of(8, "lock table t -- secret", ms=1)])
    traced = Replayed(made, "locks", "--json", "--redact", "-m", "0")
    assert [(one["query"], one["holders"][0]["query"]) for one in traced.waits] == [
        ("alter table shop.acc comment ?", "select ? #?"), ('select ? as "name", ?', "lock table t -- ?")], traced.said()
    assert "secret" not in traced.stdout


def test_mariadb_after_short_waits(tool, maria):
    """Of those that had ended when it came to look nothing is learned, and nothing is held against the next."""
    traced = tool("locks", "--json", "-m", 0, "-p", maria.pid, kind=Locks)
    if [int(part) for part in re.search(r"MariaDB (\d+)\.(\d+)", traced.stderr).groups()] < [10, 6]:
        pytest.skip("its transactions do not tell for whom they wait")
    holder, waiter = Connection(maria), Connection(maria)
    waits = "select count_reset from information_schema.innodb_metrics where name = 'lock_rec_lock_waits'"
    holder("set global innodb_monitor_enable = 'lock_rec_lock_waits'")

    def wait(number):
        before = holder.client.rows(waits)
        holder("begin")
        holder(f"update shop.acc set v = {number} where id = 1")
        waiter.thread = threading.Thread(target=waiter.run, args=("update shop.acc set v = -1 where id = 1",), daemon=True)
        waiter.thread.start()
        wait_for(lambda: holder.client.rows(waits) != before, what="the lock wait", every=0.001)

    other = tool("locks", "--json", "-m", 0, "-p", maria.pid, kind=Locks)
    traced.pause()
    number = 0
    while len(other.waits) < 70:	# the server counts a wait before it announces it, and it may be over by then
        wait(number)
        holder("commit")
        waiter.done()
        number += 1
    other.ended()
    count = len(other.waits)
    traced.process.send_signal(signal.SIGCONT)
    traced.wait_for(lambda tool: len(tool.waits) >= count, what="the short waits")
    wait(number)
    traced.wait_for(lambda tool: any(one.get("holders") for one in tool.ask()), what="a holder")
    holder("commit")
    waiter.done()
    traced.wait_for(lambda tool: tool.waits[count:])
    assert [one["connection_id"] for one in traced.waits[-1]["holders"]] == [holder.id], traced.said()
    traced.ended()
    for one in (holder, waiter):
        one.client.close()


def test_mariadb_holder_among_others(tool, maria):
    """All use the table while they wait, and one has the row; each in turn."""
    traced = tool("locks", "--json", "-m", 0, "-p", maria.pid, kind=Locks)
    if [int(part) for part in re.search(r"MariaDB (\d+)\.(\d+)", traced.stderr).groups()] < [10, 6]:
        pytest.skip("its transactions do not tell for whom they wait")
    connections = [Killed(maria) for _ in range(4)]
    for turn, holder in enumerate(connections):
        waiter = connections[turn - 1]
        others = [one for one in connections if one not in (holder, waiter)]
        for one in others:
            one.later("select sleep(600) from shop.acc where id = 2", "User sleep")
        holder("begin")
        holder(f"update shop.acc set v = {turn + 10} where id = 1")
        blocking = waiter.later(f"update shop.acc set v = {turn + 20} where id = 1",
                                "select b.trx_mysql_thread_id from information_schema.innodb_lock_waits w"
                                " join information_schema.innodb_trx b on b.trx_id = w.blocking_trx_id"
                                " join information_schema.innodb_trx r on r.trx_id = w.requesting_trx_id"
                                f" where r.trx_mysql_thread_id = {waiter.id}")
        assert [int(row[0]) for row in blocking] == [holder.id]
        traced.wait_for(lambda tool: any(one.get("holders") for one in tool.ask()), what="a holder")
        for one in others:
            holder(f"kill query {one.id}")
        holder("commit")
        waiter.done()
        for one in others:
            one.done()
        traced.wait_for(lambda tool: [one for one in tool.waits if one["lock"] == "row"][turn:])
        wait = [one for one in traced.waits if one["lock"] == "row"][turn]
        assert [one["connection_id"] for one in wait["holders"]] == [holder.id], traced.said()
        assert wait["connection_id"] == waiter.id
    traced.ended()
    for one in connections:
        one.client.close()
