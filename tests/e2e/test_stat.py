# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""stat: the histograms that the kernel counts, compared with the server's log and clock, and the client's."""

import collections
import functools
import json
import math
import os
import re
import subprocess
import time

import pytest

import wire
from cluster import wait_for
from fallbacks import ALL as ALL_FALLBACKS, OLD, force
from mariadb import Maria
from recording_maker import Made
from replayed import Replayed
from requirements import need_maria
from tool import DBSLOWER, Announced, Stat, counted, run


SLEEPS = 20
SHORT, LONG = 1000, 400	# statements of the histogram
SLOT = 1 / 32		# a percentile is the middle of a slot, 16 to a power of 2
ADJUSTED, RESOLUTION_MS = 0.001, 0.002	# of the clock that the server reads: by NTP, and microseconds


@pytest.fixture
def stat(tool):
    return functools.partial(tool, "stat", kind=Stat)


def timed(connection, sleep):
    """Execute a statement. Return the ms that it took at least, by the server's clock, and at most, by the client's."""
    began = time.monotonic_ns()
    row = connection.pgconn.exec_(b"select extract(epoch from clock_timestamp())%s, extract(epoch from clock_timestamp())"
                                  % (b", pg_sleep(0.004)" if sleep else b""))
    most = (time.monotonic_ns() - began) / 1e6
    first, last = (float(row.get_value(0, column)) * 1000 for column in (0, row.nfields - 1))
    return (last - first) * (1 - ADJUSTED) - RESOLUTION_MS, most


def test_histogram_is_of_the_durations(clusters, stat):
    """Each duration is between those inside and outside of it; so is each count, and each percentile."""
    cluster = clusters(name="stat")
    traced = stat("postgres", "-p", cluster.pid, "-u", "--json")
    offset = cluster.log_size()
    with cluster.connect() as connection:
        both = [timed(connection, False) for _ in range(SHORT)] + [timed(connection, True) for _ in range(LONG)]
    cluster.settle()
    assert traced.stop() == 0
    count = SHORT + LONG
    logged = cluster.read_log(offset).count(b" ms  statement: ")
    (seen,) = traced.histograms
    assert seen["count"] == logged == count and not traced.lost(), traced.said()
    assert seen["buckets"][-1]["count"] == count
    least, most = (sorted(bounds) for bounds in zip(*both))
    for bound, shorter in (bucket.values() for bucket in seen["buckets"]):
        sure, may = (sum(ms < bound for ms in bounds) for bounds in (most, least))
        assert sure <= shorter <= may, (bound, shorter, sure, may)
    for name, share in (("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99), ("max_ms", 1)):
        rank = math.ceil(count * share) - 1
        assert least[rank] * (1 - SLOT) <= seen[name] <= most[rank] * (1 + SLOT), (name, seen, rank)


def test_by(clusters, stat):
    cluster = clusters(name="by")
    cluster.psql("create role someone login", "create database somewhere")
    traced = {by: stat("postgres", "-p", cluster.pid, "--by", by, "--json")
              for by in ("command", "status", "user", "db")}
    cluster.psql("select 1", "  SELECT 2", "create table t ()", "(select 3)", "drop table t")
    cluster.psql("select 1/0", check=False)
    cluster.psql("select 4", PGUSER="someone", PGDATABASE="somewhere")
    cluster.settle()

    def counts(by):
        assert traced[by].stop() == 0 and not traced[by].lost()
        return {one[by if by != "db" else "database"]: one["count"] for one in traced[by].histograms}

    assert counts("command") == {"select": 5, "create": 1, "drop": 1}
    assert counts("status") == {"ok": 6, "error": 1}
    assert counts("user") == {"postgres": 6, "someone": 1}
    assert counts("db") == {"postgres": 6, "somewhere": 1}


# What runs long in a text with several statements.
TEXTS = {
    "begin; update plain set n = 1; commit": "update", "BEGIN;\n\tUPDATE plain set n = 2 where n = 1; commit": "update",
    "start transaction isolation level serializable; delete from plain; rollback": "delete",
    "savepoint one; insert into plain values (1); release savepoint one": "insert",
    "set local statement_timeout to 5000; select pg_sleep(0.01)": "select", "begin; set local application_name = 'a;b'; table plain": "set",
    "begin; reset all; (select 1)": "select", "begin;set local application_name to one; values (1)": "values",
    "set application_name = $$x;y$$; select 1": "set", 'set application_name to "x;y"; select 1': "set", "begin -- a;b\n; select 1; commit": "begin",
    "begin /* a;b */; select 1": "begin", "set application_name = E'it\\'s; me'": "set", f"{' ' * 20}select 1": "select",
    f"begin;\n{' ' * 20}select 1; commit": "select", "savepointx; select 1": "select",
    "begin": "begin", "begin;": "begin", "commit ;": "commit", "select 1; update plain set n = 3": "select",
    "set application_name = 'begin; update'": "set", "beginning": "beginning",
}


def test_by_the_command_that_runs(postgres, stat, tool, tmp_path):
    """Counted in the kernel, and of a recording."""
    path = str(tmp_path / "file")
    traced = stat("-p", postgres.pid, "--by", "command", "--json")
    recorded = tool("record", path, "-m", "0", "-p", postgres.pid, kind=Announced)
    expected = collections.Counter(TEXTS.values())
    expected["create"] = 1
    with postgres.connect() as connection:
        connection.pgconn.exec_(b"create temp table plain (n int)")
        for text in TEXTS:
            inside = text.startswith("savepoint")
            if inside:
                connection.pgconn.exec_(b"begin")
            connection.pgconn.exec_(text.encode())
            connection.pgconn.exec_(b"rollback")
            expected["begin"] += inside
            expected["rollback"] += 1
    assert counted(traced, "command") == expected, traced.said()
    assert recorded.stop() == 0, recorded.said()
    replayed = [json.loads(line) for line in run("replay", path, "stat", "--by", "command", "--json").stdout.splitlines()]
    assert {one["command"]: one["count"] for one in replayed if one["type"] == "histogram"} == expected


FILTERS = {"user": ["--user", "someone"], "db": ["--db", "somewhere"], "local": ["--client", "[local]"], "host": ["--client", "127.0.0.1"],
           "engine": ["--engine", "postgres"], "container": ["--container", "0123456789ab"]}


def test_filters(clusters, stat):
    """Of those that the server's own view of its sessions has for each."""
    cluster = clusters(name="filters")
    cluster.psql("create role someone login", "create database somewhere")
    traced = {name: stat("-p", cluster.pid, "--json", *args) for name, args in FILTERS.items()}
    seen = [(env, cluster.psql("select count(*), usename, datname, host(client_addr) from pg_stat_activity"
                               " where pid = pg_backend_pid() group by 2, 3, 4", **env).stdout)
            for env in ({}, {"PGUSER": "someone"}, {"PGDATABASE": "somewhere"}, {"PGHOST": "127.0.0.1"})]
    rows = [row.decode().strip().split("|") for _, row in seen]
    cluster.settle()
    wanted = {"user": sum(row[1] == "someone" for row in rows), "db": sum(row[2] == "somewhere" for row in rows),
              "engine": len(rows), "local": sum(not row[3] for row in rows), "host": sum(row[3] == "127.0.0.1" for row in rows)}
    for name, one in traced.items():
        assert one.stop() == 0 and not one.lost(), one.said()
        assert sum(histogram["count"] for histogram in one.histograms) == wanted.get(name, 0), (name, rows, one.said())
    assert list(wanted.values()) == [1, 1, 4, 3, 1]


def test_running_at_the_start_is_no_loss(postgres, stat):
    """What waits for the lock is in no histogram: when it began is not known."""
    one, other = wire.Wire(postgres, "by hand"), wire.Wire(postgres, "by hand")
    one.ask(wire.parse("select pg_advisory_lock(1)"), wire.bind(), wire.execute())
    other.send(wire.simple("select pg_advisory_lock(1)"))
    wait_for(lambda: postgres.psql("select 1 from pg_locks where not granted and locktype = 'advisory'").stdout, what="it to wait")
    traced = stat("postgres", "-p", postgres.pid, "--json", "--strict")
    one.ask(wire.parse("select pg_advisory_unlock(1)"), wire.bind(), wire.execute())
    other.until(b"Z")
    one.close()
    other.close()
    postgres.settle()
    assert traced.stop() == 0 and traced.summary["boundary"] == 1 and not traced.lost(), traced.said()
    assert [one["count"] for one in traced.histograms] == [1]


def test_familiar_form():
    made = Made()
    session = made.session(made.server())
    for ms in (0.5, 2, 3.9, 130):
        made.statement(session, "select 1", ms=ms)
    lines = Replayed(made, "stat").stdout.splitlines()
    assert lines[0] == "Tracing database queries for pids 100 slower than 0 ms..."
    assert lines[1:4] == ["", "PostgreSQL:", "     query latency (ms)  : count     distribution"]
    counts = {0: 1, 1: 2, 7: 1}
    assert lines[4:-1] == [f"{2 ** n if n else 0:10} -> {2 ** (n + 1) - 1:<11}: {counts.get(n, 0):<9}|{'*' * (20 * counts.get(n, 0)):40}|"
                           for n in range(8)]
    shown = re.fullmatch(r"     p50 ([0-9.]+) ms, p95 ([0-9.]+) ms, p99 ([0-9.]+) ms, max ([0-9.]+) ms; 4 statements", lines[-1])
    for said, ms in zip(shown.groups(), (2, 130, 130, 130)):
        assert ms * (1 - SLOT) <= float(said) <= ms * (1 + SLOT), lines[-1]


def test_intervals(postgres, stat):
    """They add up; -n limits their number."""
    with postgres.connect() as connection:
        traced = stat("-p", postgres.pid, "-i", "100ms", "--json")
        for n in range(3):
            connection.pgconn.exec_(b"select 1")
            traced.wait_for(lambda tool, n=n: sum(one["count"] for one in tool.histograms) == n + 1, what="its interval")
    assert traced.stop() == 0
    assert [one["count"] for one in traced.histograms] == [1] * 3 and all(one["time"] for one in traced.histograms)
    assert traced.summary["printed"] == 3, traced.said()
    limited = stat("-p", postgres.pid, "-i", "100ms", "-n", "3", "--json")
    assert limited.wait() == 0 and not limited.histograms, limited.said()


def test_threshold(postgres, stat):
    traced = stat("-p", postgres.pid, "--json", "300")
    began = time.monotonic()
    postgres.psql("select 1")
    quick = time.monotonic() - began < 0.3
    postgres.psql("select pg_sleep(0.31)")
    assert traced.stop() == 0
    assert [one["count"] for one in traced.histograms] in ([[1]] if quick else [[1], [2]]), traced.said()


def test_mariadb(stat):
    need_maria()
    with Maria().init() as server:
        server.start()
        traced = stat("mysql", "-p", server.pid, "--by", "command", "--json")
        with server.connect() as client:
            for text in ("select 1", "SELECT 2", "set @a = 1", "show databases"):
                client.query(text)
        assert traced.stop() == 0 and not traced.lost()
    seen = {one["command"]: one["count"] for one in traced.histograms}
    assert seen["select"] == 2 and seen["set"] == 1 and seen["show"] == 1, traced.said()


@pytest.mark.parametrize("ways", [(), ALL_FALLBACKS, OLD], ids=["default", "fallbacks", "linux-5.4"])
def test_waits_of_sleep(postgres, stat, ways):
    """Each statement sleeps once, in one system call, and its client waits between them."""
    traced = {what: stat("-p", postgres.pid, "-u", "-m", "5", "--json", "--wait", what, *ways)
              for what in ("sleep", *(() if ways else ("network", "epoll_wait")))}
    traced["cpu"] = stat("-p", postgres.pid, "--json", "--wait", "cpu", "--by", "command", *ways)
    with postgres.connect() as connection:
        for _ in range(SLEEPS):
            connection.pgconn.exec_(b"select pg_sleep(0.016)")	# until a time that it computes before it may be preempted
            time.sleep(0.01)
    assert counted(traced["sleep"]) == {"sleep": SLEEPS}, traced["sleep"].said()
    assert counted(traced["cpu"], "command")["select"] >= SLEEPS
    if not ways:
        assert counted(traced["network"]) == {}
        assert counted(traced["epoll_wait"]) == {"epoll_wait": SLEEPS}
    one = traced["sleep"].histograms[0]
    assert one["buckets"][0]["lt_ms"] >= 16.384 and one["p50_ms"] >= 15.5, one
    assert f"{SLEEPS} waits shown" in traced["sleep"].stderr, traced["sleep"].said()


def test_waits_in_a_parse(postgres, stat):
    """With a filter they are counted in another place."""
    postgres.psql("create table parsed ()")
    traced = [stat("-p", postgres.pid, "--json", "--wait", "lock", *args) for args in ((), ("--match", "parsed"))]
    holder, waiter = wire.Wire(postgres, "by hand"), wire.Wire(postgres, "by hand")
    holder.ask(wire.parse("begin"), wire.bind(), wire.execute())
    holder.ask(wire.parse("lock table parsed"), wire.bind(), wire.execute())
    waiter.send(wire.parse("select * from parsed"), wire.SYNC)
    wait_for(lambda: postgres.psql("select 1 from pg_locks where not granted and relation = 'parsed'::regclass").stdout, what="it to wait")
    holder.ask(wire.parse("commit"), wire.bind(), wire.execute())
    waiter.until(b"Z")
    holder.close()
    waiter.close()
    postgres.settle()
    counts = [counted(one) for one in traced]
    assert all(one.get("lock") for one in counts), [one.said() for one in traced]
    postgres.psql("drop table parsed")


def test_waits_for_a_lock(postgres, stat):
    """Two sessions want the same row; the one that waits is of its user, and runs an update."""
    postgres.psql("drop table if exists wanted", "drop role if exists waiter", "create role waiter login superuser",
                  "create table wanted as select 1 as id")
    traced = {by: stat("-p", postgres.pid, "--json", "--wait", "lock", "--by", by) for by in ("user", "command")}
    with postgres.connect(autocommit=False) as holder, \
            postgres.connect(user="waiter", options="-c deadlock_timeout=60s") as waiter:
        holder.execute("update wanted set id = 2")
        waiter.pgconn.send_query(b"update wanted set id = 3")
        postgres.wait_blocked(waiter.info.backend_pid)
        start = time.monotonic_ns()
        time.sleep(0.1)
        waited = (time.monotonic_ns() - start) / 1e6
        holder.commit()
        while waiter.pgconn.get_result():
            pass
    for by, group in (("user", "waiter"), ("command", "update")):
        assert counted(traced[by], by) == {group: 1}, traced[by].said()
        assert traced[by].histograms[0]["max_ms"] >= waited * 0.97, traced[by].said()


@pytest.mark.parametrize("ways", [(), force("perfbuf")], ids=["ring", "perfbuf"])
def test_match(postgres, stat, ways):
    """Of two kinds of statements, those that have a word in their text: themselves, and their waits."""
    args = (*ways, "-p", postgres.pid, "-u", "--json", "--match", "WANTED", "--by")
    traced = {by: stat(*args, by) for by in ("command", "user")}
    traced["status"] = stat(*args, "status", "--wait", "sleep")
    with postgres.connect() as connection:
        for _ in range(SLEEPS):
            connection.pgconn.exec_(b"select pg_sleep(0.016) /* wanted */")
            connection.pgconn.exec_(b"with a as (select pg_sleep(0.02)) select 1 from a")
        connection.pgconn.exec_(b"do $$ begin perform pg_sleep(0.04); raise 'wanted'; end $$")
    assert counted(traced["command"], "command") == {"select": SLEEPS, "do": 1}, traced["command"].said()
    assert counted(traced["user"], "user") == {"postgres": SLEEPS + 1}, traced["user"].said()
    assert counted(traced["status"], "status") == {"ok": SLEEPS, "error": 1}, traced["status"].said()
    one = {one["status"]: one for one in traced["status"].histograms}["ok"]
    assert one["buckets"][0]["lt_ms"] >= 16.384 and one["p50_ms"] >= 15.5, one


def test_waits_table(postgres, stat):
    traced = stat("-p", postgres.pid, "--wait", "sleep")
    postgres.psql("select pg_sleep(0.01)")
    assert traced.stop() == 0
    lines = traced.stdout.splitlines()
    assert lines[0] == f"Tracing waits in database queries for pids {postgres.pid} longer than 0 ms..."
    assert lines[2:4] == ["PostgreSQL, wait = sleep:", "     wait latency (ms)   : count     distribution"], lines
    assert lines[-1].endswith("; 1 waits"), lines


def test_by_another_name(tmp_path):
    link = tmp_path / "dbstat"
    os.symlink(DBSLOWER, link)
    done = subprocess.run([str(link), "--help"], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("usage: dbslower stat "), done.stdout


@pytest.mark.parametrize("args, says", [(["--by", "hour"], "expected command, db, user or status"),
                                        (["-n", "2"], "specify -i SECONDS"), (["-i", "0"], "must be greater than 0"),
                                        (["--wait", "naught"], "or a system call"),
                                        (["--wait", "lock", "--by", "status"], "use command, db or user"),
                                        (["--match", "/(/"], "not a regular expression")])
def test_refused(args, says):
    done = run("stat", *args)
    assert done.returncode == 2 and says in done.stderr, done.stderr
