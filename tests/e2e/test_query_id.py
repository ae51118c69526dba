# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""PostgreSQL's query ID. The judges are pg_stat_statements and, for what that omits, the server's log (%Q)."""

import glob
import re

import pytest

import wire
from cluster import Cluster, server_bindir, wait_for
from requirements import need_root
from statements import only, stopped, with_tag

PREFIX = "%n|%p|%c|%l|%b|%u|%d|%v|%e|%a| "


@pytest.fixture(scope="module")
def counting():
    need_root()
    if not glob.glob(f"{server_bindir()}/../lib/pg_stat_statements.so"):
        pytest.skip("no pg_stat_statements (package postgresql-contrib)")
    with Cluster(shared_preload_libraries="pg_stat_statements", log_line_prefix=f"'{PREFIX}%Q| '").init().start() as cluster:
        cluster.psql("create extension pg_stat_statements", "create table ids (a int primary key, b text)",
                     "insert into ids select g, g::text from generate_series(1, 100) g",
                     "create function nested(n int) returns bigint language plpgsql as "
                     "$$ declare c bigint; begin select count(*) into c from ids where a > n; return c; end $$",
                     "create procedure steps() language plpgsql as $$ begin update ids set b = 'x' where a = 1; commit; "
                     "update ids set b = 'y' where a = 2; rollback; perform 1; end $$")
        yield cluster


def counted(cluster):
    """The query IDs of each tag. An identifier is not normalized, as a constant is."""
    rows = cluster.psql("select queryid, replace(query, chr(10), ' ') from pg_stat_statements where toplevel").stdout.decode()
    return {tag: int(number) for number, tag in re.findall(r"^(-?\d+)\|.*\b(t_\w+)", rows, re.M)}


def logged(cluster, offset):
    """The query IDs that the log has of each tag, of the last line about it."""
    text = cluster.read_log(offset).decode()
    return {tag: int(number) for number, tag in re.findall(r"\| (-?\d+)\| LOG:  duration: .*\b(t_\w+)", text)}


def ids(traced):
    """The query IDs by tag."""
    return {re.search(r"\bt_\w+", one["query"])[0]: int(one["query_id"]) if "query_id" in one else None
            for one in with_tag(traced, "t_")}


def test_as_pg_stat_statements(counting, tool):
    """Each kind of statement; signed, and different ones have different IDs."""
    traced = tool("postgres", "-m", "0", "--json", "-p", counting.pid)
    with counting.connect() as one, counting.connect(prepare_threshold=0) as prepared:
        for n in range(24):
            one.pgconn.exec_(f"select a{' + a' * n} as t_{n} from ids where a = {n}".encode())
        for n in range(3):
            one.execute("select b as t_extended from ids where a = %s", (n,))
            prepared.execute("select b as t_prepared from ids where a > %s", (n,))
            one.pgconn.exec_(b"select nested(%d) as t_nested" % n)
        with one.pipeline():
            for n in range(3):
                one.execute(f"select {n} as t_pipeline, b from ids where a = %s", (n,))
                one.execute("update ids set b = 'z' where a = %s returning b as t_update", (n,))
        one.execute("create table t_utility (a int)")
        one.execute("call steps() /* t_call */")
        one.execute("do $$ begin perform 1 from ids; end $$ /* t_do */")
        one.execute("begin /* t_begin */")
        one.execute("declare t_cursor cursor for select * from ids")
        one.execute("rollback /* t_rollback */")
    by_hand = wire.Wire(counting, "by hand")
    by_hand.ask(wire.parse("select a as t_portal from ids"), wire.bind(), wire.execute(rows=30), wire.execute(rows=30),
                wire.execute())
    by_hand.close()
    counting.settle()
    stopped(traced, idle=True)
    found, judge = ids(traced), counted(counting)
    assert len(found) >= 35 and {tag: judge[tag] for tag in found if tag in judge} == {
        tag: number for tag, number in found.items() if tag in judge}, traced.said()
    assert set(found) - set(judge) <= {"t_begin", "t_rollback"}
    assert len({found[f"t_{n}"] for n in range(24)}) == 24
    assert min(found.values()) < 0 < max(found.values())
    assert all(re.fullmatch(r"-?[1-9]\d*", one["query_id"]) for one in with_tag(traced, "t_"))


def test_none_is_inherited(counting, tool):
    """Statements without an ID follow others that have one."""
    traced = tool("postgres", "-m", "0", "--json", "-p", counting.pid)
    offset = counting.log_size()
    with counting.connect() as one:
        send = one.pgconn.exec_
        send(b"select 1 as t_first")
        send(b"selec 1 as t_syntax")
        send(b"select 2 as t_first")
        send(b"/* t_empty */")
        send(b"select 1 / (a - a) as t_division from ids")
        send(b"select nosuch as t_column")
        send(b"select 1 as one; select a as two, b as t_last from ids")
        one.execute("prepare t_name as select a from ids where a = $1")
        send(b"execute t_name(1)")
        one.execute("set compute_query_id = off /* t_off */")
        send(b"select 3 as t_without")
        one.execute("select %s as t_extended_without", (1,))
    by_hand = wire.Wire(counting, "by hand")
    by_hand.ask(wire.parse("select 5 as t_parsed"), wire.bind(), wire.execute(), wire.parse("selec t_broken"))
    by_hand.close()
    counting.settle()
    stopped(traced, idle=True)
    found, log = ids(traced), logged(counting, offset)
    none = ("t_syntax", "t_empty", "t_column", "t_without", "t_extended_without", "t_broken")
    assert {tag: found[tag] for tag in none} == dict.fromkeys(none), traced.said()
    assert found["t_division"] and found["t_first"]
    assert {tag: number or None for tag, number in log.items()} == {tag: found[tag] for tag in log}, traced.said()
    assert {"t_first", "t_last", "t_name", "t_parsed"} <= set(log)


def test_column_and_threshold(counting, tool):
    """As a column; and a statement that is not shown leaves nothing behind."""
    traced = tool("postgres", "50", "-o", "query_id,ms,query", "-p", counting.pid)
    with counting.connect() as one:
        one.pgconn.exec_(b"select pg_sleep(0.06) as t_slow")
        one.pgconn.exec_(b"select 1 as t_fast")
        one.pgconn.exec_(b"selec pg_sleep(0.06)")
        one.execute("select pg_sleep(%s) as t_slower", (0.07,))
    stopped(traced)
    judge = counted(counting)
    shown = [row.split(None, 2) for row in traced.stdout.splitlines()[2:]]
    assert all(float(ms) >= 50 for _, ms, _ in shown), traced.said()
    assert [number for number, _, text in shown if " t_slow" in text] == [str(judge["t_slow"]), str(judge["t_slower"])], traced.said()


def test_unknown_of_the_dead(counting, tool):
    traced = tool("postgres", "-m", "0", "--json", "-p", counting.pid)
    one = counting.connect()
    one.pgconn.exec_(b"select 1 as t_before")
    one.pgconn.send_query(b"select pg_sleep(60) as t_dies")
    one.pgconn.flush()
    wait_for(lambda: counting.psql("select 1 from pg_stat_activity where wait_event = 'PgSleep'").stdout, what="it to sleep")
    counting.psql("select pg_terminate_backend(pid) from pg_stat_activity where query like 'select pg_sleep(60)%'")
    one.close()
    counting.settle()
    assert traced.stop() == 0
    assert "query_id" in only(traced, "t_before") and only(traced, "t_dies")["status"] == "error"


OWN = b"select query_id as t_own from pg_stat_activity where pid = pg_backend_pid()"


@pytest.mark.parametrize("options", ["-c compute_query_id=on", ""], ids=["on", "auto"])
def test_without_a_module(postgres, tool, options):
    """The setting alone, from the start of the session; and a server that computes none."""
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    with postgres.connect(options=options) as one:
        own = [one.pgconn.exec_(OWN).get_value(0, 0) for _ in range(3)]
    stopped(traced)
    found = [one.get("query_id") for one in with_tag(traced, "t_own")]
    assert found == [number.decode() if number else None for number in own] and len(set(found)) == 1, traced.said()
    assert bool(found[0]) == bool(options)
