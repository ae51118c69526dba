# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PostgreSQL's extended protocol: which messages are one statement. The judge is the server's log, which names each step."""

import collections
import re
import struct
import time

import pytest

import oracle
import wire
from cluster import has_left_cpu, wait_for
from complaints import Off
from statements import only, stopped, why_ns, with_tag
from test_record import Record, replay
from tool import run

QUERY = "select generate_series(1, 25)"
HEAD = "x" * 150	# longer than what is compared of a text


def series(tag):
    return f"{QUERY} /* {tag} */"


def logged(cluster, offset):
    """The steps of each tag, as the log names them."""
    found = collections.defaultdict(list)
    for step, tag in re.findall(r"duration: \S+ ms  (statement|parse|bind|execute fetch from|execute) ?.*/\* (\S+)",
                                cluster.read_log(offset).decode()):
        found[tag].append(step)
    return found


@pytest.fixture
def by_hand(postgres):
    connection = wire.Wire(postgres, "by hand")
    yield connection
    connection.close()


def simple(connection, text):
    connection.send(wire.simple(text))
    connection.until(b"Z")


def test_empty_query_is_no_portal(postgres, tool):
    """A comment alone, of which the server has reused no memory, has neither completed nor failed."""
    by_hand, traced = wire.Wire(postgres, "by hand"), tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    offset = postgres.log_size()
    simple(by_hand, "begin")
    for _ in range(3):
        simple(by_hand, f"/* empty {'x' * 2000} */")
    simple(by_hand, "commit")
    by_hand.close()
    postgres.settle()
    stopped(traced, idle=True)
    assert ["fetches" in one for one in with_tag(traced, "/* empty")] == [False] * 3, traced.said()
    assert logged(postgres, offset)["empty"] == ["statement"] * 3


@pytest.mark.parametrize("wrong", [wire.bind(name="nosuch"), wire.message(b"D", b"Snosuch\0"), wire.message(b"D", b"Pnosuch\0"),
                                   wire.execute("nosuch")], ids=["bind", "describe", "portal", "execute"])
def test_error_of_a_missing_name(postgres, tool, wrong):
    """It is not one of the statement before it in the pipeline, but what fails with the Sync is."""
    by_hand, traced = wire.Wire(postgres, "by hand"), tool("postgres", "-m", "0", "--json", "-p", postgres.pid, "--prepares")
    by_hand.ask(wire.parse("create table if not exists deferred (n int unique deferrable initially deferred)"), wire.bind(),
                wire.execute())
    assert b"E" in by_hand.ask(wire.parse(series("first")), wire.bind(), wire.execute(), wrong)
    assert b"E" in by_hand.ask(wire.parse("select 1 /* alone */"), wrong)
    assert b"E" in by_hand.ask(wire.parse("insert into deferred values (1), (1) /* late */"), wire.bind(), wire.execute())
    assert b"E" in by_hand.ask(wire.parse("execute nosuch /* own */"), wire.bind(), wire.execute())
    by_hand.close()
    postgres.settle()
    stopped(traced, idle=True)
    found = {re.search(r"/\* (\w+)", one["query"])[1]: (one["type"], one["status"]) for one in traced.objects()
             if "/*" in one.get("query", "")}
    assert found == {"first": ("statement", "ok"), "alone": ("prepare", "ok"), "late": ("statement", "error"),
                     "own": ("statement", "error")}, traced.said()
    postgres.psql("drop table deferred")


OLDEST = ("--force=linux-5.4",)


@pytest.mark.parametrize("way", [(), OLDEST], ids=" ".join)
def test_failures_before_a_statement(postgres, tool, tmp_path, way):
    """Messages of which none begins, and refused connections: each is one that failed, as the log has them."""
    import psycopg
    by_hand = wire.Wire(postgres, "by hand pipeline")
    offset = postgres.log_size()
    traced = [tool("postgres", "-m", "0", "--json", "-p", postgres.pid, *way),
              tool("stat", "--by", "status", "--json", "-m", "0", "-p", postgres.pid, *way)]
    with Record(tmp_path / "all.rec", "-m", "0", "-p", postgres.pid, *way) as recorder:
        simple(by_hand, "select 1 /* first */")
        by_hand.send(wire.message(b"Q", b"select '\xff'\0"))
        by_hand.until(b"Z")
        assert b"E" in by_hand.ask(wire.parse("select 4 /* sixth */"), wire.bind(), wire.execute(), wire.parse(b"select '\xff'"))
        assert b"E" in by_hand.ask(wire.bind(name="nosuch"), wire.execute())
        assert b"E" in by_hand.ask(wire.parse("select 2 /* second */"), wire.bind(), wire.execute(), wire.bind(name="nosuch"))
        simple(by_hand, "begin /* third */")
        assert b"E" in by_hand.ask(wire.execute("nosuch"))
        simple(by_hand, "rollback /* fourth */")
        by_hand.send(wire.message(b"F", struct.pack("!ihhh", 999999, 0, 0, 0)))
        by_hand.until(b"Z")
        simple(by_hand, "select 3 /* fifth */")
        for wrong in ({"user": "nobody at all"}, {"dbname": "nowhere"}):
            with pytest.raises(psycopg.OperationalError):
                postgres.connect(**wrong)
        by_hand.close()
        postgres.settle()
        recorder.ended()
    stopped(traced[0], idle=True)
    logged = oracle.expected(postgres.read_log(offset))
    failed = [one.sqlstate for one in logged if one.text is None]
    assert sorted(failed) == ["22021", "22021", "26000", "26000", "28000", "34000", "3D000", "42883"]
    replayed = [one for one in replay(tmp_path / "all.rec", "-m", "0", "--json") if one["type"] == "statement"]
    for got in traced[0].statements, replayed:
        # Too few for the shares of durations that it asks for.
        complaints = [one for one in oracle.compare(logged, got) if not isinstance(one, Off)]
        assert not complaints, (complaints, traced[0].said())
        assert {one["user"] for one in got if one.get("sqlstate") == "28000"} == {"nobody at all"}, got
    done = run("replay", tmp_path / "all.rec", "-m", "0", "--format", "pgbadger")
    assert done.stdout.count("ERROR:  ") == len(failed) and "STATEMENT:  " not in done.stdout and "[no text]" not in done.stdout, done.stdout
    assert done.stdout.count("LOG:  duration: ") == len(logged) - len(failed), done.stdout
    assert traced[1].stop() == 0
    counted = [one for one in traced[1].objects() if one["type"] == "histogram"]
    assert {one["status"]: one["count"] for one in counted} == {"ok": len(logged) - len(failed), "error": len(failed)}, counted


def test_aborts_without_an_error(clusters, tool):
    """Logical decoding aborts transactions of its own. Called by a message for functions it has no statement, and does not fail."""
    server = clusters(wal_level="logical")
    server.psql("select pg_create_logical_replication_slot('slot', 'test_decoding')", "create table changed (n int)",
                "insert into changed values (1)", "insert into changed values (2)",
                "create function decoded() returns bigint language sql as "
                "$$ select count(*) from pg_logical_slot_peek_changes('slot', null, null) $$")
    number = int(server.psql("select 'decoded'::regproc::oid").stdout)
    traced, by_hand = tool("postgres", "-m", "0", "--json", "-p", server.pid), wire.Wire(server, "by hand")
    offset = server.log_size()
    simple(by_hand, "select 1 /* before */")
    by_hand.send(wire.message(b"F", struct.pack("!ihhh", number, 0, 0, 0)))
    assert b"V" in by_hand.until(b"Z")
    simple(by_hand, "select 2 /* after */")
    by_hand.close()
    server.settle()
    stopped(traced, idle=True)
    assert not re.search(rb"\| ERROR", server.read_log(offset))
    assert [(one["status"], one["query"]) for one in traced.statements] == [("ok", "select 1 /* before */"), ("ok", "select 2 /* after */")]


def test_fetches(postgres, tool, by_hand):
    """All Executes of a portal are one statement, whose rows only the last one reports."""
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    offset = postgres.log_size()
    w, fetch = by_hand, wire.execute(rows=10)
    w.ask(wire.parse(series("one_trip")), wire.bind(), fetch, fetch, wire.execute())
    simple(w, "begin")
    w.ask(wire.parse(series("trips")), wire.bind(), fetch)
    w.ask(fetch)
    w.ask(wire.execute())
    w.ask(wire.parse(series("bound_alone"), "s1"))
    w.ask(wire.bind("s1", "p1"))
    for rows in (10, 10, 0):
        w.ask(wire.execute("p1", rows))
    # The end is a trip with two Executes, whose texts are at different addresses.
    w.ask(wire.parse(series("two_last")), wire.bind(), fetch)
    w.ask(fetch, wire.execute())
    simple(w, "commit")
    stopped(traced)
    steps = logged(postgres, offset)
    for tag in ("one_trip", "trips", "bound_alone", "two_last"):
        one = only(traced, tag)
        assert one["fetches"] == sum(step.startswith("execute") for step in steps[tag]) == 3, one
        assert "rows" not in one and one["status"] == "ok", one


def test_rows_of_one_execute(postgres, tool, by_hand):
    """Rows are known if the portal was executed once, whichever way its statement was prepared."""
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    w = by_hand
    for name in ("", "s", "seven_7", "fifteen_letters"):
        # Behind a simple query, the first step is not examined closely.
        for before in ("begin", "commit"):
            simple(w, before)
            w.ask(wire.parse(series(f"named_{len(name)}_{before}"), name + before[0] * bool(name)),
                  wire.bind(name + before[0] * bool(name)), wire.execute())
            w.ask(wire.bind(name + before[0] * bool(name)), wire.execute(rows=26))
    w.ask(wire.parse(series("several")), *[part for _ in range(3) for part in (wire.bind(), wire.execute())])
    simple(w, f"{series('twice')}; {QUERY}")
    stopped(traced)
    found = with_tag(traced, "named_")
    assert len(found) == 16 and all(one["rows"] == 25 and "fetches" not in one for one in found), traced.said()
    assert [one["rows"] for one in with_tag(traced, "several")] == [25, 25, 25]
    assert only(traced, "twice")["rows"] == 50


def test_portals_in_turns(postgres, tool, by_hand):
    """Rows are not known if a portal may have been read before."""
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    w = by_hand
    w.ask(wire.parse(series("turn_a"), "a"), wire.parse(series("turn_b"), "b"))
    simple(w, "begin")
    w.ask(wire.bind("a", "a"), wire.execute("a", 10))
    w.ask(wire.bind("b", "b"), wire.execute("b", 10))
    w.ask(wire.execute("a", 10), wire.execute("b", 10), wire.execute("a"), wire.execute("b"))
    w.ask(wire.bind("a", "c"), wire.execute("c", 10), wire.bind("a", "d"), wire.execute("d"))
    simple(w, "commit")
    stopped(traced)
    for tag, rows in (("turn_a", [None] * 4 + [25]), ("turn_b", [None] * 3)):
        assert [one.get("rows") for one in with_tag(traced, tag)] == rows, traced.said()


def sleeps(cluster, pid):
    """Return whether the backend waits for its client's next message, and not only for a CPU to do so."""
    row = f"select 1 from pg_stat_activity where pid = {pid} and wait_event = 'ClientRead'"
    return cluster.psql(row).stdout and has_left_cpu(pid)


def test_pauses(postgres, tool, by_hand):
    """The client's pauses between round trips do not count; those within one are waits for the network."""
    traced = tool("postgres", "-m", "0", "--json", "--why", "-p", postgres.pid)
    w, fetch = by_hand, wire.execute(rows=10)
    simple(w, "begin")
    (pid,) = {one["pid"] for one in traced.wait_for(lambda tool: tool.statements, what="the first statement")}
    start = time.monotonic()
    w.ask(wire.parse(series("paused")), wire.bind(), fetch)
    pause = time.monotonic()
    time.sleep(0.1)
    pause = time.monotonic() - pause
    w.ask(wire.execute())
    total = time.monotonic() - start
    w.send(wire.parse(series("flushed")), wire.bind(), fetch, wire.FLUSH)
    w.until(b"s")
    wait_for(lambda: sleeps(postgres, pid), what="the server to wait for the network")
    time.sleep(0.1)
    w.ask(wire.execute())
    w.ask(wire.parse(series("left")), wire.bind(), fetch)
    simple(w, "commit")
    stopped(traced)
    one = only(traced, "paused")
    assert one["duration_ms"] <= (total - pause) * 1000, f"{total} s with a pause of {pause}: {one}"
    for tag in ("paused", "flushed", "left"):
        assert sum(why_ns(only(traced, tag)).values()) == round(only(traced, tag)["duration_ms"] * 1e6), traced.said()
    assert why_ns(only(traced, "flushed"))["network"] > 0 and only(traced, "flushed")["duration_ms"] >= 100
    assert only(traced, "left")["fetches"] == 1


def test_end_of_a_suspended_statement(postgres, tool):
    """By an error, by the end of the transaction, by that of its session, or not before tracing ends."""
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    fetch, connections = wire.execute(rows=10), [wire.Wire(postgres, "by hand") for _ in range(3)]
    for w in connections:
        simple(w, "begin")
    failing = "select 1 / (15 - g) from generate_series(1, 25) g /* failing */"
    connections[0].ask(wire.parse(failing), wire.bind(), fetch)
    connections[0].ask(fetch)
    simple(connections[0], "rollback")
    connections[0].ask(wire.parse(series("no_transaction")), wire.bind(), fetch)
    wait_for(lambda: with_tag(traced, "no_transaction"), what="it, which its Sync has ended")
    for w, tag in zip(connections[1:], ("session", "tracing")):
        w.ask(wire.parse(series(tag)), wire.bind(), fetch)
    connections[1].close()
    wait_for(lambda: with_tag(traced, "session"), what="the end of the session")
    traced.stop()
    connections[0].close()
    connections[2].close()
    assert (only(traced, "failing")["status"], only(traced, "failing")["fetches"]) == ("error", 2)
    assert only(traced, "session")["status"] == "ok" and only(traced, "no_transaction")["status"] == "ok"
    assert [one["type"] for one in traced.objects() if "/* tracing */" in one.get("query", "")] == ["running"], traced.said()


def test_prepares(postgres, tool, by_hand):
    """What only prepares is no statement, and has a kind of its own where it is asked for."""
    args = ("postgres", "-m", "0", "--json", "-p", postgres.pid)
    plain, asked = tool(*args), tool(*args, "--prepares")
    offset = postgres.log_size()
    w = by_hand
    # Names of 7 and 15 letters end where the server's allocator could place a text.
    for name in ("n", "seven_7", "fifteen_letters"):
        w.ask(wire.parse(series(f"alone_{name}"), name))
        simple(w, f"select 1 /* simple_{name} */")
        w.ask(wire.parse(series(f"behind_{name}"), name + "b" * 8))
    w.ask(*(wire.parse(f"select {n} /* {HEAD} head */", f"many_{n:02}") for n in range(9)))
    simple(w, "select 1")
    w.ask(*(wire.parse(f"select {n} /* {HEAD} head */", "z" * n) for n in range(1, 9)))
    w.ask(wire.parse("selec /* failed */", "failed"))
    for text in ("", "-- a comment"):
        simple(w, text)
    for traced in (plain, asked):
        stopped(traced)
    assert plain.summary["statements"] == asked.summary["statements"] == len(plain.statements), plain.said() + asked.said()
    assert not [one for one in plain.objects() if one["type"] == "prepare"] and not with_tag(plain, "head")
    prepared = [one["query"] for one in asked.objects() if one["type"] == "prepare"]
    steps = logged(postgres, offset)
    assert len(prepared) == 6 + 17 == sum(steps[tag].count("parse") for tag in steps), prepared
    assert only(plain, "failed")["status"] == "error"
    assert [one["query"] for one in plain.statements].count("") == 1 and only(plain, "-- a comment")


def test_calls_are_executions(postgres, tool):
    """top and stat count what pg_stat_statements and the log do: executions."""
    top = tool("top", "postgres", "--json", "-m", "0", "-p", postgres.pid)
    with postgres.connect(autocommit=True) as connection:
        for n in range(5):
            connection.execute("select %s::int /* counted */", (n,), prepare=True)
    stopped(top)
    groups = [one for one in top.objects() if "counted" in one.get("sample", "")]
    assert [one["calls"] for one in groups] == [5], top.said()
