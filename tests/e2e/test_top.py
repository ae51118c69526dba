# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""top: groups of statements, compared with the statements sent or recorded and the server's own counters."""

import datetime
import functools
import re
import time

import pytest

from cluster import wait_for
from recording_maker import Made
from replayed import Replayed
from statements import why_ns
from tool import Stat, run


class Groups:
    def groups(self, kind="group"):
        return [one for one in self.objects() if one["type"] == kind]


class Top(Groups, Stat):
    pass


class ReplayedTop(Groups, Replayed):
    pass


@pytest.fixture
def top(tool):
    return functools.partial(tool, "top", kind=Top)


def by_fingerprint(traced):
    return {one["fingerprint"]: one for one in traced.groups()}


def test_groups(clusters, top):
    cluster = clusters(name="top")
    traced = top("-p", cluster.pid, "--json")
    with cluster.connect() as connection:
        send = connection.pgconn.exec_
        for n in range(40):
            send(f"SELECT  {n}, '{n}' -- number {n}".encode())
        for n in range(5):
            send(b"select pg_sleep(0.02)")
            send(b"select generate_series(1, %d)" % (n + 1))
            send(b"select 1 / %d - %d" % (0, n))
        connection.execute("select 1 from pg_class where oid = %s", (1,))
    cluster.settle()
    assert traced.stop() == 0
    seen = by_fingerprint(traced)
    totals = [one["total_ms"] for one in traced.groups()]
    assert totals == sorted(totals, reverse=True), "the most expensive is the first"
    assert (seen["select ?, ?"]["calls"], seen["select ?, ?"]["rows"]) == (40, 40)
    assert (seen["select pg_sleep(?)"]["calls"], seen["select generate_series(?, ?)"]["rows"]) == (5, 15)
    assert [(one["calls"], one["errors"]) for text, one in seen.items() if " / " in text] == [(5, 5)]
    assert seen["select ? from pg_class where oid = ?"]["calls"] == 1
    sleep = seen["select pg_sleep(?)"]
    assert 100 <= sleep["total_ms"] and sleep["min_ms"] >= 20 and sleep["p95_ms"] <= sleep["max_ms"]
    assert sleep["sample"] == "select pg_sleep(0.02)"
    assert sum(one["calls"] for one in traced.groups()) == 56 == traced.summary["statements"]


def test_table():
    made = Made()
    session = made.session(made.server())
    for text, ms in (("select 1", 2), ("select 2", 4), ("select 3", 6), ("select 1 as a, 2 as b", 100)):
        made.statement(session, text, ms=ms, rows=1)
    traced = Replayed(made, "top", "--sort", "calls", "--lines", "1")
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}, 0\.116 s since the start", traced.stdout.splitlines()[0])
    lines = traced.stdout.splitlines()[1:]
    assert lines[0].split() == ["CALLS", "TOTAL(ms)", "MEAN(ms)", "P95(ms)", "P99(ms)", "MAX(ms)", "ROWS", "ERR",
                                "QUERY"]
    assert lines[1].split() == ["3", "12.000", "4.000", "6.000", "6.000", "6.000", "3", "0", "select", "?"]
    assert lines[2] == "(1 more)", traced.said()


def test_intervals(postgres, top):
    """--delta: each call is counted in one interval, with its time."""
    traced = top("-p", postgres.pid, "--json", "-i", "200ms", "--delta")
    for n in range(3):
        seen = len(traced.groups())
        postgres.psql(f"select {n}", "select count(*) from pg_class")
        traced.wait_for(lambda tool: len(tool.groups()) >= seen + 2, what="the interval")
    assert traced.stop() == 0
    calls = {}
    for one in traced.groups():
        calls.setdefault(one["fingerprint"], {}).setdefault(one["interval"], []).append(one["calls"])
        age = datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.fromisoformat(one["time"][:26] + "+00:00")
        assert 0 <= age.total_seconds() < 100 and one["database"] == "postgres", one
    assert all(len(counts) == 1 for by in calls.values() for counts in by.values()), "a group is in a table once"
    assert {text: sum(sum(counts) for counts in by.values()) for text, by in calls.items()} == {
        "select ?": 3, "select count(*) from pg_class": 3}, traced.said()
    assert all(len(by) >= 2 for by in calls.values()), traced.said()


def whys(traced):
    """Each group's parts by its fingerprint: all calls are known, and the parts add up to what the calls took."""
    for one in traced.groups():
        assert one["why_calls"] == one["calls"], one
        assert sum(why_ns(one).values()) == round(one["total_ms"] * 1e6), one
    return {one["fingerprint"]: why_ns(one) for one in traced.groups()}


def test_where_the_time_goes(postgres, top):
    """Two statements that wait for the same row, and one that sleeps longer."""
    postgres.psql("create table if not exists top_locked as select 1 as id")
    traced, waited = top("-p", postgres.pid, "--json", "--use", "--sort", "lock"), 0
    with postgres.connect(autocommit=False) as holder, postgres.connect(options="-c deadlock_timeout=60s") as waiter:
        for n in range(2):
            holder.execute("select id from top_locked for update")
            waiter.pgconn.send_query(f"update top_locked set id = {n + 3}".encode())
            postgres.wait_blocked(waiter.info.backend_pid)
            start = time.monotonic_ns()
            time.sleep(0.2)
            waited += time.monotonic_ns() - start
            holder.commit()
            while waiter.pgconn.get_result():
                pass
        for _ in range(8):
            holder.execute("select pg_sleep(0.1)")
    assert traced.stop() == 0, traced.said()
    seen = whys(traced)
    assert list(seen)[0] == "update top_locked set id = ?", traced.said()
    asleep = seen["select pg_sleep(?)"]	# another process may have had the CPU when it was about to sleep
    assert asleep["sleep"] + asleep["runqueue"] >= 8 * 99e6 and asleep["lock"] == 0, seen
    assert seen["update top_locked set id = ?"]["lock"] >= waited, (seen, waited)
    (used,) = [one["use"]["wal_records"] for one in traced.groups() if one["fingerprint"] == "update top_locked set id = ?"]
    assert used >= 2, traced.said()


def breakdowns():
    """Groups of which each is the first by something else: two calls each."""
    made = Made()
    session = made.session(made.server())
    for text, ms, why, use in (("select pg_sleep(0.5)", 500, {"sleep": 450}, {"wal_records": 0}),
                               ("update t set a = 1", 300, {"lock": 250.5, "disk": 2}, {"wal_records": 3}),
                               ("insert into t values (1)", 100, {"fsync": 90, "lock": 4}, {"wal_records": 70}), ("select 1", 1, {}, {})):
        for _ in range(2):
            made.statement(session, text, ms=ms, rows=1, why=why, use=use)
    return made


@pytest.mark.parametrize("by, order", [("sleep", "select pg_sleep(?)"), ("lock", "update t set a = ?; insert into t values(?+)"),
                                       ("fsync", "insert into t values(?+)"), ("cpu", "select pg_sleep(?); update t set a = ?"),
                                       ("wal_records", "insert into t values(?+); update t set a = ?")])
def test_sorted_by_a_part(by, order):
    traced = ReplayedTop(breakdowns(), "top", "--json", "--sort", by)
    order, seen = order.split("; "), whys(traced)
    assert list(seen)[:len(order)] == order
    assert seen["update t set a = ?"]["lock"] == 501e6 and seen["update t set a = ?"]["cpu"] == 95e6, seen
    if by == "wal_records":
        assert [one["use"]["wal_records"] for one in traced.groups()[:2]] == [140, 6]


def test_where_the_time_goes_table():
    traced = Replayed(breakdowns(), "top", "--use", "--sort", "sleep")
    lines = traced.stdout.splitlines()[1:]
    assert lines[1].endswith(" select pg_sleep(?)") and lines[4].endswith(" update t set a = ?"), traced.said()
    assert lines[2] == "    sleep 900.000, cpu 100.000", traced.said()
    assert lines[5:7] == ["    lock 501.000, cpu 95.000, disk 4.000", "    wal_records 6"], traced.said()
    assert lines[11:] == ["    cpu 2.000", "    used nothing", ""], traced.said()


def test_running(postgres, top):
    traced = top("-p", postgres.pid, "-i", "200ms", "--json")
    with postgres.connect() as connection:
        connection.pgconn.send_query(b"select pg_sleep(600) /* runs on */")
        traced.wait_for(lambda tool: tool.groups("running"), what="what runs")
        connection.cancel()
        while connection.pgconn.get_result():
            pass
    one = traced.groups("running")[0]
    assert one["query"] == "select pg_sleep(600) /* runs on */" and one["duration_ms"] >= 1000
    wait_for(lambda: "select pg_sleep(?)" in by_fingerprint(traced), what="its group")
    traced.stop()
    assert by_fingerprint(traced)["select pg_sleep(?)"]["errors"] == 1


def test_many_are_folded():
    """More groups than there is room for: none is forgotten in the sum."""
    made = Made()
    session = made.session(made.server())
    for n in range(3000):
        made.statement(session, f"select 1 as name{n}", ms=0.01)
    traced = ReplayedTop(made, "top", "--json")
    (other,) = traced.groups("other")
    assert other["fingerprints"] == other["calls"] > 900
    assert len(traced.groups()) <= 2000
    assert other["calls"] + sum(one["calls"] for one in traced.groups()) == 3000


@pytest.mark.parametrize("args, says", [(["--sort", "name"], "expected total, calls, mean"),
                                        (["--lines", "0"], "must be at least 1"), (["-n", "1"], "specify -i")])
def test_refused(args, says):
    done = run("top", *args)
    assert done.returncode == 2 and says in done.stderr, done.stderr


def test_redact():
    """Samples and what runs have no literals; the groups are the same."""
    made = Made()
    session = made.session(made.server())
    for text in ("select 'secret', 1 -- secret", "select $$secret$$ as a", "select 1 as b"):
        made.statement(session, text)
    made.statement(session, "select 'secret' as runs", kind="running", ms=2000)
    plain, redacted = (ReplayedTop(made, "top", "--json", *args) for args in ((), ("--redact",)))
    assert "secret" in plain.stdout and "secret" not in redacted.stdout
    assert {one["sample"] for one in redacted.groups()} == {"select ?, ? -- ?", "select ? as a", "select ? as b"}
    assert [one["query"] for one in redacted.groups("running")] == ["select ? as runs"]
    assert {one["hash"] for one in plain.groups()} == {one["hash"] for one in redacted.groups()}
