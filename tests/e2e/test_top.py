# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""top: groups of statements, compared with the statements sent and the server's own counters."""

import datetime
import functools
import re
import time

import pytest

from cluster import wait_for
from statements import why_ns
from tool import Stat, run


class Top(Stat):
    def groups(self, kind="group"):
        return [one for one in self.objects() if one["type"] == kind]


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


def test_table(postgres, top):
    traced = top("-p", postgres.pid, "--sort", "calls", "--lines", "1")
    postgres.psql("select 1", "select 2", "select 3", "select 1 as a, 2 as b")
    assert traced.stop() == 0
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}, \d+\.\d{3} s since the start", traced.stdout.splitlines()[0])
    lines = traced.stdout.splitlines()[1:]
    assert lines[0].split() == ["CALLS", "TOTAL(ms)", "MEAN(ms)", "P95(ms)", "P99(ms)", "MAX(ms)", "ROWS", "ERR",
                                "QUERY"]
    assert lines[1].split()[0] == "3" and lines[1].split()[6:] == ["3", "0", "select", "?"]
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
    sorted_by = {part: top("-p", postgres.pid, "--json", "--sort", part) for part in ("sleep", "lock", "wal_records")}
    waited = 0
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
    for traced in sorted_by.values():
        assert traced.stop() == 0, traced.said()
    for part, first in (("sleep", "select pg_sleep(?)"), ("lock", "update top_locked set id = ?")):
        seen = whys(sorted_by[part])
        assert list(seen)[0] == first, sorted_by[part].said()
        asleep = seen["select pg_sleep(?)"]	# another process may have had the CPU when it was about to sleep
        assert asleep["sleep"] + asleep["runqueue"] >= 8 * 99e6 and asleep["lock"] == 0, seen
        assert seen["update top_locked set id = ?"]["lock"] >= waited, (seen, waited)
    used = [(one["use"]["wal_records"], one["fingerprint"]) for one in sorted_by["wal_records"].groups()]
    assert used[0][0] and [records for records, _ in used] == sorted((records for records, _ in used), reverse=True), used
    assert dict((text, records) for records, text in used)["update top_locked set id = ?"] >= 2, used


def test_where_the_time_goes_table(postgres, top):
    traced = top("-p", postgres.pid, "--use", "--sort", "sleep")
    postgres.psql("select pg_sleep(0.05)", "select 1")
    assert traced.stop() == 0
    lines = traced.stdout.splitlines()[1:]
    assert len(lines) >= 7 and lines[1].endswith("select pg_sleep(?)") and lines[4].endswith(" select ?"), traced.said()
    assert re.match(r"    (.*, )?sleep [\d.]+", lines[2]) and "cpu " in lines[5], traced.said()
    assert all(line.startswith("    ") and "_" in line or line == "    used nothing" for line in (lines[3], lines[6]))


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


def test_many_are_folded(clusters, top):
    """More groups than there is room for: none is forgotten in the sum."""
    cluster = clusters(name="many")
    traced = top("-p", cluster.pid, "--json")
    with cluster.connect() as connection:
        for n in range(3000):
            connection.pgconn.exec_(f"select 1 as name{n}".encode())
    cluster.settle()
    assert traced.stop() == 0
    (other,) = traced.groups("other")
    assert other["fingerprints"] == other["calls"] > 900
    assert len(traced.groups()) <= 2000
    assert other["calls"] + sum(one["calls"] for one in traced.groups()) == 3000


@pytest.mark.parametrize("args, says", [(["--sort", "name"], "expected total, calls, mean"),
                                        (["--lines", "0"], "must be at least 1"), (["-n", "1"], "specify -i")])
def test_refused(args, says):
    done = run("top", *args)
    assert done.returncode == 2 and says in done.stderr, done.stderr


def test_redact(postgres, top):
    """Samples and what runs have no literals; the groups are the same."""
    def run_all(*args):
        traced = top("-p", postgres.pid, "--json", *args)
        postgres.psql("select 'secret', 1 -- secret", "select $$secret$$ as a", "select 1 as b")
        assert traced.stop() == 0
        return traced

    plain, redacted = run_all(), run_all("--redact")
    assert "secret" in plain.stdout and "secret" not in redacted.stdout
    assert {one["sample"] for one in redacted.groups()} == {"select ?, ? -- ?", "select ? as a", "select ? as b"}
    assert {one["hash"] for one in plain.groups()} == {one["hash"] for one in redacted.groups()}
