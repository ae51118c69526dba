# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Slow statements of a PostgreSQL server: a test for each feature."""

import datetime
import os
import re
import shutil
import signal
import subprocess
import threading
import time

import pytest

import bpf_objects
import wire
from cluster import children, other_servers, wait_for
from elffile import Memory, usdt_probes
from fallbacks import force
from statements import KEYS, ROW, only, rows, stopped, tags, text_of, with_tag
from tool import DBSLOWER, Tool, run



def tool_gone_wrong(traced, condition, what):
    """Waits for a condition of a running tool; its end is a failure."""
    def check():
        assert traced.process.poll() is None, f"it ended before {what}\n{traced.said()}"
        return condition()
    traced.wait_for(lambda _: check(), 60, what)


# --- the familiar form, thresholds

def test_default_form(postgres, tool):
    traced = tool("postgres", "-p", postgres.pid)
    postgres.psql("select pg_sleep(0.02) /* slow */", "select 1 /* fast? */")
    stopped(traced)
    lines = traced.stdout.splitlines()
    head = re.fullmatch(r"Tracing database queries for pids ([\d, ]+) slower than 1 ms\.\.\.", lines[0])
    assert head, f"first line: {lines[0]!r}"
    assert str(postgres.pid) in re.split(r"[, ]+", head[1]), f"pids {head[1]}, not {postgres.pid}"
    assert lines[1] == "TIME(s)        PID           MS QUERY"
    slow = [row for row in rows(traced) if "/* slow */" in row["query"]]
    assert len(slow) == 1, traced.said()
    line = next(line for line in lines if "/* slow */" in line)
    row = slow[0]
    assert line == "%-14.6f %-7d %8.3f %s" % (float(row["time"]), int(row["pid"]), float(row["ms"]), row["query"])
    assert row["query"] == "select pg_sleep(0.02) /* slow */"
    assert 20 <= float(row["ms"]) and 0 <= float(row["time"]), line


def test_threshold(postgres, tool):
    """The programs compare; test_replay.py has the ways to write a threshold."""
    traced = {ms: tool("postgres", *args, "-p", postgres.pid) for ms, *args in ((1,), (30, "30"), (0.25, "0.25"))}
    for sleep in (0, 5, 40, 80):
        postgres.psql(f"select pg_sleep({sleep / 1000}) /* sleep {sleep} */")
    for ms, one in traced.items():
        seen = tags(stopped(one))
        for sleep in (5, 40, 80):
            # A sleep lasts at least as long, and longer than the threshold only by chance
            if sleep > ms:
                assert f"sleep {sleep}" in seen, f"{sleep} ms is not shown\n{one.said()}"
        for row in rows(one):
            assert float(row["ms"]) >= ms, f"shown though it is not slower than {ms} ms: {row[0]}"


def test_zero_threshold_shows_all(postgres, tool):
    traced = tool("postgres", "-m", "0", "-p", postgres.pid)
    postgres.psql(*[f"select {n} /* n{n} */" for n in range(50)])
    stopped(traced)
    assert tags(traced) == [f"n{n}" for n in range(50)], traced.said()


@pytest.mark.alone
def test_without_arguments_finds_the_server(postgres, tool):
    traced = tool()
    postgres.psql("select pg_sleep(0.02) /* found */")
    stopped(traced)
    # Others may be there, with statements that still run.
    assert any("/* found */" in row["query"] for row in map(ROW.fullmatch, traced.rows()) if row), traced.said()


# --- which server, which process

def test_backend(postgres, tool):
    with postgres.connect() as one, postgres.connect() as other:
        traced = tool("postgres", "-m", "0", "--json", "-p", one.info.backend_pid)
        one.execute("select 1 /* of the one */")
        other.execute("select 1 /* of the other */")
        stopped(traced)
        assert only(traced, "of the one")["pid"] == one.info.backend_pid
        assert not with_tag(traced, "of the other"), traced.said()


def test_two_backends(postgres, tool):
    with postgres.connect() as one, postgres.connect() as two, postgres.connect() as three:
        traced = tool("postgres", "-m", "0", "--json", "-p", one.info.backend_pid, "-p", two.info.backend_pid)
        for connection, name in ((one, "one"), (two, "two"), (three, "three")):
            connection.execute(f"select 1 /* of {name} */")
        stopped(traced)
        only(traced, "of one")
        only(traced, "of two")
        assert not with_tag(traced, "of three"), traced.said()


def test_postmaster_means_its_backends(postgres, clusters, tool):
    other = clusters(name="other")
    with postgres.connect() as before, other.connect() as foreign:
        traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
        before.execute("select 1 /* connected before */")
        foreign.execute("select 1 /* foreign before */")
        postgres.psql("select 1 /* connected after */")
        other.psql("select 1 /* foreign after */")
        stopped(traced)
    only(traced, "connected before")
    only(traced, "connected after")
    assert not with_tag(traced, "foreign"), traced.said()


@pytest.mark.alone
def test_two_clusters_on_one_binary(postgres, clusters, tool):
    other = clusters(name="other")
    traced = tool("postgres", "-m", "0", "--json")
    postgres.psql("select 1 /* of the first */")
    other.psql("select 1 /* of the second */")
    stopped(traced)
    assert only(traced, "of the first")["pid"] != only(traced, "of the second")["pid"]


def test_file(postgres, clusters, server_copy, tool):
    other = clusters(postgres=server_copy, name="copy")
    traced = tool("postgres", "-m", "0", "--json", "-x", server_copy)
    postgres.psql("select 1 /* of Debian's file */")
    other.psql("select 1 /* of the copy */")
    stopped(traced)
    only(traced, "of the copy")
    assert not with_tag(traced, "of Debian's"), traced.said()


@pytest.mark.alone
def test_two_files(postgres, clusters, server_copy, tool):
    other = clusters(postgres=server_copy, name="copy")
    traced = tool("postgres", "-m", "0", "--json")
    postgres.psql("select 1 /* of Debian's file */")
    other.psql("select 1 /* of the copy */")
    stopped(traced)
    only(traced, "of Debian's")
    only(traced, "of the copy")


def test_connection_made_after(postgres, tool):
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    for n in range(10):
        postgres.psql(f"select {n} /* new {n} */")
    stopped(traced)
    assert len({only(traced, f"new {n} ")["pid"] for n in range(10)}) == 10


def test_connection_made_before(postgres, tool):
    with postgres.connect() as connection:
        connection.execute("select 0 /* not traced yet */")
        traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
        connection.execute("select 1 /* old connection */")
        stopped(traced)
    only(traced, "old connection")
    assert not with_tag(traced, "not traced yet"), traced.said()


@pytest.mark.parametrize("limit", [16, 64, 125, 126, 127, 4096])
def test_extended_is_one_whatever_its_length(postgres, tool, limit):
    """Parse, Bind and Execute are known to be of one statement by the beginning of their texts."""
    traced = tool("-p", postgres.pid, "-m", "0", "--json", "--text", limit)
    sizes = sorted({*range(limit - 3, limit + 4), *range(118, 138), 200, 1000, 5000})
    with postgres.connect() as connection:
        for size in sizes:
            text = f"select $1::int /* {size} " + "x" * (size - len(f"select $1::int /* {size}  */")) + " */"
            assert len(text) == max(size, len(f"select $1::int /* {size}  */"))
            connection.execute(text.replace("$1", "%s"), (1,), prepare=False)
            for _ in range(2):
                connection.execute(text.replace("$1", "%s"), (1,), prepare=True)
    traced.stop()
    assert [(one["query_bytes"], one.get("rows")) for one in traced.statements] == [
        (max(size, len(f"select $1::int /* {size}  */")), rows) for size in sizes for rows in (1, 1, 1)]


def test_only_its_server_is_announced(postgres, clusters, tool):
    other = clusters(name="other")
    with postgres.connect() as connection:
        for pid in (postgres.pid, connection.info.backend_pid):
            traced = tool("-p", pid, "-m", "0")
            traced.stop()
            assert f", pid {postgres.pid}, " in traced.stderr and not re.search(rf"\b{other.pid}\b", traced.stderr), traced.stderr


@pytest.mark.parametrize("args", [[], force("perf")], ids=["multi", "perf"])
def test_under_load(postgres, tool, args):
    """
    Probes come and go one after the other, by perf uprobes slowly, while statements begin and end. All of
    them fail, and each that began and ended in between is shown.
    """
    stop, done = threading.Event(), []

    def work():
        with postgres.connect() as connection:
            while not stop.is_set():
                done.append(connection.pgconn.exec_(b"select 1/0 /* fails always */"))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        wait_for(lambda: len(done) > 100, what="the load")
        for _ in range(6):
            traced = tool("-p", postgres.pid, "-m", "0", "--json", *args)
            before = len(done)
            time.sleep(0.2)
            # More than began before: one that is shown is among them.
            wait_for(lambda: len(done) > before + len(threads), what="statements")	# pylint: disable=cell-var-from-loop
            least = len(done) - before - len(threads)
            traced.stop()
            assert traced.summary["statements"] >= least, traced.said()
            assert {one["status"] for one in traced.statements} == {"error"}, traced.said()
            # The reader may not get a CPU for so long that the buffer is full.
            assert traced.summary["statements"] == traced.summary["printed"] + traced.summary["lost"]["ring_full"]
            assert traced.summary["boundary"] <= 2 * len(threads), traced.said()
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_who_was_connected_before(postgres, tool):
    """Also of those that are gone with their statement, that began before the tool."""
    postgres.psql("drop role if exists early", "create role early login")
    with postgres.connect() as holder:
        holder.execute("select pg_advisory_lock(1)")
        running = [subprocess.Popen(["psql", "-X", "-q", "-c", "select pg_advisory_lock_shared(1) /* early */"],
                                    stdout=subprocess.DEVNULL, env={**postgres.env(), "PGUSER": "early"}) for _ in range(20)]
        wait_for(lambda: postgres.psql("select count(*) from pg_stat_activity where usename = 'early' and wait_event_type = 'Lock'"
                                       ).stdout == b"20\n", what="all to run")
        traced = [tool("-p", postgres.pid, "-m", "0", "--json", *args)
                  for args in (["--user", "early"], ["--db", "postgres", "--user", "early"], [])]
    for one in running:
        one.wait()
    for each in traced:
        each.stop()
        seen = with_tag(each, "/* early */")
        assert len(seen) == 20 and {(one.get("user"), one.get("database"), one.get("client")) for one in seen} == {
            ("early", "postgres", "[local]")}, each.said()


@pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])
def test_joined_in_the_middle(postgres, tool, extended):
    """A statement that was running at the start, whose start is in the server's memory."""
    text = "select pg_advisory_lock_shared(70) /* running already */"
    with postgres.connect() as connection, postgres.connect() as hangs:
        holder = postgres.connect()
        holder.execute("select pg_advisory_lock(70)")
        run = (lambda: connection.execute(text, prepare=True)) if extended else (lambda: connection.pgconn.exec_(text.encode()))
        thread = threading.Thread(target=run)
        hangs.pgconn.send_query(b"select pg_sleep(600) /* hangs already */")
        thread.start()
        where = f"from pg_stat_activity where pid = {connection.info.backend_pid}"
        wait_for(lambda: postgres.psql(f"select wait_event = 'advisory' {where}").stdout == b"t\n", what="the statement to wait")
        asleep = f"select wait_event = 'PgSleep' from pg_stat_activity where pid = {hangs.info.backend_pid}"
        wait_for(lambda: postgres.psql(asleep).stdout == b"t\n", what="the other one to hang")
        waits = time.monotonic()
        began = float(postgres.psql(f"select extract(epoch from query_start) {where}").stdout)
        traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
        waited = (time.monotonic() - waits) * 1000
        holder.close()
        thread.join()
        connection.execute("select 1 /* the next one */")
        assert traced.stop() == 0
        hangs.cancel()
        while hangs.pgconn.get_result():
            pass
    one, (running,) = only(traced, "running already"), [one for one in traced.objects() if one["type"] == "running"]
    assert abs(datetime.datetime.fromisoformat(one["time"][:26] + "+00:00").timestamp() - began) < 0.005, (one, began)
    # Its portal may have been read before.
    rows = None if extended else 1
    assert waited <= one["duration_ms"] < 60000 + waited and (one.get("rows"), one["status"]) == (rows, "ok"), one
    assert one["query"] == text and not one["truncated"] and one["query_bytes"] == len(text)
    assert running["query"] == "select pg_sleep(600) /* hangs already */" and running["user"] == "postgres", running
    only(traced, "the next one")
    assert not traced.lost() and traced.summary["boundary"] >= 1, traced.said()


def test_long_statement_that_ran_already(postgres, tool):
    """Its text is cut as any other's; what parallel workers and other processes do is no statement."""
    text = "select pg_advisory_lock(71) /* ran " + "x" * 5000 + " */"
    with postgres.connect() as connection:
        holder = postgres.connect()
        holder.execute("select pg_advisory_lock(71)")
        thread = threading.Thread(target=lambda: connection.pgconn.exec_(text.encode()))
        thread.start()
        wait_for(lambda: postgres.psql("select count(*) from pg_stat_activity where wait_event = 'advisory'").stdout ==
                 b"1\n", what="the statement to wait")
        traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
        holder.close()
        thread.join()
        assert traced.stop() == 0
    (one,) = traced.statements
    assert one["truncated"] and text.startswith(one["query"]) and len(one["query"]) == 4096, one


def no_other_server(*known):
    others = other_servers(*known)
    if others:
        pytest.skip(f"another PostgreSQL server runs here: {others}")


@pytest.mark.alone
def test_server_started_after(postgres, tool):
    postgres.stop()
    no_other_server()
    traced = tool("postgres", "-m", "0", "--json", attached=False)
    tool_gone_wrong(traced, lambda: "wait" in traced.stderr.lower(), "to say that it waits")
    assert not traced.ready(), traced.said()
    postgres.start()
    tool_gone_wrong(traced, traced.ready, "to attach to the new server")
    postgres.psql("select 1 /* at last */")
    stopped(traced)
    only(traced, "at last")


@pytest.mark.alone
def test_server_restarted(postgres, tool):
    traced = tool("postgres", "-m", "0", "--json")
    postgres.psql("select 1 /* before */")
    postgres.restart()
    tool_gone_wrong(traced, lambda: postgres.psql("select 1 /* poll */") and with_tag(traced, "/* poll"), "the new server")
    postgres.psql("select 1 /* after */")
    stopped(traced)
    only(traced, "before")
    only(traced, "after")


@pytest.mark.alone
def test_server_file_replaced(clusters, server_copy, tool):
    cluster = clusters(postgres=server_copy, name="upgraded")
    traced = tool("postgres", "-m", "0", "--json")
    cluster.psql("select 1 /* old file */")
    shutil.copy(server_copy, server_copy + ".new")
    os.rename(server_copy + ".new", server_copy)	# an upgrade: the running server's file is deleted
    cluster.psql("select 1 /* deleted file */")
    cluster.restart()
    tool_gone_wrong(traced, lambda: cluster.psql("select 1 /* poll */") and with_tag(traced, "/* poll"), "the new file")
    cluster.psql("select 1 /* new file */")
    stopped(traced)
    for tag in ("old file", "deleted file", "new file"):
        only(traced, tag)


@pytest.mark.alone
def test_attaches_when_file_was_already_replaced(clusters, server_copy, tool):
    cluster = clusters(postgres=server_copy, name="upgraded")
    shutil.copy(server_copy, server_copy + ".new")
    os.rename(server_copy + ".new", server_copy)
    traced = tool("postgres", "-m", "0", "--json")
    cluster.psql("select 1 /* deleted file */")
    stopped(traced)
    only(traced, "deleted file")


# --- what is a statement

def test_simple(postgres, tool):
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    postgres.psql("select 1 /* simple */")
    one = only(stopped(traced), "simple")
    assert one["query"] == "select 1 /* simple */" and one["status"] == "ok"


def test_extended_is_one(postgres, tool):
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    with postgres.connect() as connection:
        connection.execute("select %s::int /* extended */", (1,), prepare=False)
    one = only(stopped(traced), "extended")
    assert one["query"] == "select $1::int /* extended */", one


def test_prepared(postgres, tool):
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    with postgres.connect() as connection:
        for n in range(5):
            connection.execute("select %s::int /* prepared */", (n,), prepare=True)
    found = with_tag(stopped(traced), "prepared")
    assert len(found) == 5, f"five executions, not {len(found)}\n{traced.said()}"


def test_slow_prepared(postgres, tool):
    """Slow executions of a prepared statement, which bcc's tool does not show."""
    traced = tool("postgres", "10", "--json", "-p", postgres.pid)
    with postgres.connect() as connection:
        for _ in range(3):
            connection.execute("select pg_sleep(%s) /* slow prepared */", (0.03,), prepare=True)
    found = with_tag(stopped(traced), "slow prepared")
    assert len(found) == 3 and all(one["duration_ms"] >= 30 for one in found), traced.said()


def test_pipeline(postgres, tool):
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    with postgres.connect() as connection:
        begun = time.monotonic()
        with connection.pipeline():
            for n in range(5):
                connection.execute(f"select pg_sleep(%s) /* part {n} */", (n * 0.02,), prepare=False)
        took = (time.monotonic() - begun) * 1000
    stopped(traced)
    parts = [only(traced, f"part {n} ") for n in range(5)]
    for n, one in enumerate(parts):
        assert n * 20 <= one["duration_ms"] and one["status"] == "ok", one
    assert sum(one["duration_ms"] for one in parts) <= took, "they ran one after the other"


def test_pipeline_with_an_error(postgres, tool):
    import psycopg
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    with postgres.connect() as connection:
        with pytest.raises(psycopg.errors.DivisionByZero), connection.pipeline():
            for n in (1, 0, 2):
                connection.execute(f"select 1 / %s::int /* by {n} */", (n,), prepare=False)
    stopped(traced)
    assert only(traced, "by 1")["status"] == "ok"
    assert only(traced, "by 0")["status"] == "error"
    assert not with_tag(traced, "by 2"), "the server never ran it"


def test_several_in_one_message(postgres, tool):
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    text = "select 1; select pg_sleep(0.02); select 3 /* several */"
    postgres.psql(text)
    one = only(stopped(traced), "several")
    assert one["query"] == text and one["duration_ms"] >= 20, one


def test_copy(postgres, tool):
    postgres.psql("drop table if exists copied; create table copied (n int)")
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    postgres.psql(stdin=b"copy copied from stdin /* in */;\n" + b"1\n" * 1000 + b"\\.\n")
    postgres.psql("copy copied to stdout /* out */")
    stopped(traced)
    assert only(traced, "/* in")["rows"] == 1000
    assert only(traced, "/* out")["rows"] == 1000


def test_functions_and_procedures(postgres, tool):
    postgres.psql("create or replace function inner_sleep() returns int language plpgsql as "
                  "$$ begin perform pg_sleep(0.03) /* inside */; return 1; end $$",
                  "create or replace procedure three() language plpgsql as "
                  "$$ begin for n in 1..3 loop perform pg_sleep(0.01); commit; end loop; end $$")
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    postgres.psql("select inner_sleep() /* function */", "call three() /* procedure */",
                  "do $$ begin perform pg_sleep(0.01); end $$ /* block */")
    stopped(traced)
    assert only(traced, "/* function")["duration_ms"] >= 30
    assert only(traced, "/* procedure")["duration_ms"] >= 30
    assert only(traced, "/* block")["duration_ms"] >= 10
    assert len(traced.statements) == 3, "what runs inside is no statement of its own" + traced.said()


SLOW_COMMIT = """
drop table if exists committed;
create table committed (n int);
create or replace function at_commit() returns trigger language plpgsql as
  $$ begin perform pg_sleep(0.1); return null; end $$;
create constraint trigger late after insert on committed deferrable initially deferred
  for each row execute function at_commit();
"""


def test_commit_is_in_the_time(postgres, tool):
    """The trigger sleeps at the commit: in extended that is at the Sync, after the completion."""
    postgres.psql(SLOW_COMMIT)
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    postgres.psql("insert into committed values (1) /* simple autocommit */")
    with postgres.connect() as connection:
        connection.execute("begin")
        begun = time.monotonic()
        connection.execute("insert into committed values (2) /* in a block */")
        took = (time.monotonic() - begun) * 1000
        connection.execute("commit /* block's end */")
        connection.execute("insert into committed values (%s) /* extended autocommit */", (3,), prepare=False)
    stopped(traced)
    assert only(traced, "simple autocommit")["duration_ms"] >= 100
    assert only(traced, "block's end")["duration_ms"] >= 100
    assert only(traced, "extended autocommit")["duration_ms"] >= 100
    assert only(traced, "in a block")["duration_ms"] <= took


def test_errors(postgres, tool):
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    texts = ["select 1/0 /* it */", "selec /* it */", "select x from nowhere /* it */",
             "do $$ begin raise exception 'mine'; end $$ /* it */", "select 1; select 1/0 /* it */"]
    for text in texts:
        postgres.psql(text, check=False)
    found = with_tag(stopped(traced), "/* it */")
    assert sorted((one["query"], one["status"]) for one in found) == sorted((text, "error") for text in texts), traced.said()


def test_error_in_aborted_transaction(postgres, tool):
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    with postgres.connect() as connection:
        for text in (b"begin", b"select 1/0", b"select 1 /* aborted */", b"rollback /* out of it */"):
            connection.pgconn.exec_(text)
    stopped(traced)
    assert only(traced, "/* aborted")["status"] == "error"
    assert only(traced, "/* out of it")["status"] == "ok"


@pytest.mark.parametrize("protocol", ["simple", "extended"])
def test_error_at_commit(postgres, tool, protocol):
    import psycopg
    postgres.psql("drop table if exists node; create table node (id int primary key, "
                  "parent int references node deferrable initially deferred)")
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    with postgres.connect() as connection:
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            if protocol == "simple":
                connection.execute("insert into node values (1, 2) /* late */")
            else:
                connection.execute("insert into node values (1, %s) /* late */", (2,), prepare=False)
    assert only(stopped(traced), "late")["status"] == "error"


def test_caught_errors_and_notices_are_no_failures(postgres, tool):
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    postgres.psql("do $$ begin perform 1/0; exception when division_by_zero then null; end $$ /* caught */",
                  "do $$ begin raise notice 'n'; raise warning 'w'; raise log 'l'; end $$ /* notices */")
    stopped(traced)
    assert only(traced, "caught")["status"] == "ok"
    assert only(traced, "notices")["status"] == "ok"


def test_cancel(postgres, tool):
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    end_other(postgres, "pg_cancel_backend")
    one = only(stopped(traced), "/* victim")
    assert one["status"] == "error" and one["duration_ms"] < 60000, one


def test_terminate(postgres, tool):
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    end_other(postgres, "pg_terminate_backend")
    one = only(stopped(traced), "/* victim")
    assert one["status"] == "error" and one["duration_ms"] < 60000, one


def end_other(postgres, function):
    import psycopg
    with postgres.connect() as victim:
        def run():
            with pytest.raises(psycopg.Error):
                victim.execute("select pg_sleep(60) /* victim */")
        thread = threading.Thread(target=run)
        thread.start()
        pid = victim.info.backend_pid
        query = f"select wait_event = 'PgSleep' from pg_stat_activity where pid = {pid}"
        wait_for(lambda: postgres.psql(query).stdout == b"t\n", what="the victim to sleep")
        postgres.psql(f"select {function}({pid})")
        thread.join()


@pytest.mark.parametrize("protocol", ["simple", "extended"])
def test_statement_timeout(postgres, tool, protocol):
    import psycopg
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    with postgres.connect(options="-c statement_timeout=200") as connection:
        with pytest.raises(psycopg.errors.QueryCanceled):
            if protocol == "simple":
                connection.execute("select pg_sleep(60) /* timed out */")
            else:
                connection.execute("select pg_sleep(%s) /* timed out */", (60,), prepare=False)
    one = only(stopped(traced), "timed out")
    assert one["status"] == "error" and 200 <= one["duration_ms"] < 30000, one


def test_backend_killed(clusters, tool):
    """A crash in the middle of a statement: it is shown as failed, or counted."""
    cluster = clusters(name="crash")
    traced = tool("postgres", "-m", "0", "--json", "-p", cluster.pid)
    connection = cluster.connect()
    thread = threading.Thread(target=lambda: connection.pgconn.exec_(b"select pg_sleep(60) /* killed */"))
    thread.start()
    pid = connection.info.backend_pid
    query = f"select wait_event = 'PgSleep' from pg_stat_activity where pid = {pid}"
    wait_for(lambda: cluster.psql(query).stdout == b"t\n", what="it to sleep")
    os.kill(pid, signal.SIGKILL)
    thread.join()
    assert traced.stop() == 0, traced.said()
    found = with_tag(traced, "/* killed")
    if found:
        assert [(one["status"], one["died"]) for one in found] == [("error", True)], found
    else:
        assert traced.summary["lost"]["start_without_end"] >= 1, traced.said()
    wait_for(cluster.answers, 60, "the server to recover: it heeds no shutdown before")


def test_parallel_workers_are_not_counted(postgres, tool):
    postgres.psql("drop table if exists wide; create table wide as select g, md5(g::text) t from "
                  "generate_series(1, 200000) g; analyze wide")
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    with postgres.connect(options="-c max_parallel_workers_per_gather=2 -c parallel_setup_cost=0 "
                                  "-c parallel_tuple_cost=0") as connection:
        plan = connection.execute("explain (analyze, costs off) select count(*) from wide where t > 'a' "
                                  "/* parallel */").fetchall()
        pid = connection.info.backend_pid
    plan = "\n".join(row[0] for row in plan)
    stopped(traced)
    assert re.search(r"Workers Launched: [12]", plan), f"no worker ran, so this proves nothing:\n{plan}"
    assert only(traced, "/* parallel")["pid"] == pid


def test_portal_suspended_and_flush(postgres, tool):
    """One statement in several Execute messages, and one whose messages come late."""
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    connection = wire.Wire(postgres, "by hand")
    connection.ask(wire.parse("select generate_series(1, 25) /* suspended */"), wire.bind(),
                   wire.execute(rows=10), wire.execute(rows=10), wire.execute(rows=10))
    connection.send(wire.parse("select 1 /* late */"), wire.bind(), wire.FLUSH)
    connection.until(b"2")
    time.sleep(0.05)
    connection.ask(wire.execute())
    connection.close()
    stopped(traced)
    only(traced, "suspended")
    assert only(traced, "late")["duration_ms"] >= 50


# --- what is told of a statement


def test_json(postgres, tool):
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    before = datetime.datetime.now(datetime.timezone.utc)
    with postgres.connect(host="127.0.0.1") as connection:
        connection.execute("select generate_series(1, 7) /* json é */")
        pid = connection.info.backend_pid
    after = datetime.datetime.now(datetime.timezone.utc)
    one = only(stopped(traced), "json")
    assert set(one) == KEYS, f"keys: {sorted(one)}"
    assert one["type"] == "statement" and one["server"]["engine"] == "postgresql"
    assert (one["pid"], one["tid"], one["user"], one["database"]) == (pid, pid, "postgres", "postgres")
    assert one["client"].startswith("127.0.0.1"), one
    assert (one["rows"], one["status"], one["truncated"]) == (7, "ok", False)
    assert one["query_bytes"] == len(one["query"].encode()) == len("select generate_series(1, 7) /* json é */") + 1
    stamp = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{9})Z", one["time"])
    assert stamp, f"no RFC 3339 with nanoseconds in UTC: {one['time']}"
    start = datetime.datetime.fromisoformat(f"{stamp[1]}.{stamp[2][:6]}+00:00")
    slack = datetime.timedelta(seconds=1)
    assert before - slack <= start <= after + slack, f"{start} is not in {before} … {after}"
    summary = traced.summary
    assert set(summary) == {"type", "time", "statements", "printed", "lost", "boundary"}, summary
    assert traced.objects()[-1] == summary, "the summary is the last line"


def test_summary_counts(postgres, tool):
    traced = tool("postgres", "30", "--json", "-p", postgres.pid)
    postgres.psql(*["select 1"] * 10, "select pg_sleep(0.05)")
    stopped(traced)
    # On a busy machine any of them may take as long.
    assert (traced.summary["statements"], traced.summary["printed"]) == (11, len(traced.statements)), traced.said()
    assert with_tag(traced, "pg_sleep") and all(one["duration_ms"] >= 30 for one in traced.statements), traced.said()


def test_rows(postgres, tool):
    postgres.psql("drop table if exists counted; create table counted (n int)")
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    postgres.psql("insert into counted select generate_series(1, 42) /* insert */",
                  "update counted set n = n where n <= 10 /* update */", "delete from counted where n > 40 /* delete */",
                  "select * from counted where false /* none */")
    with postgres.connect() as connection:
        connection.execute("select * from counted where n <= %s /* extended */", (5,), prepare=False)
    stopped(traced)
    for tag, count in (("insert", 42), ("update", 10), ("delete", 2), ("none", 0), ("extended", 5)):
        assert only(traced, f"/* {tag}")["rows"] == count, f"{tag}\n{traced.said()}"


def test_user_and_database(postgres, tool):
    postgres.psql("drop database if exists \"a db\"", "drop role if exists \"some one\"")
    postgres.psql("create role \"some one\" login", "create database \"a db\" template template0")
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid)
    postgres.psql("select 1 /* plain */")
    postgres.psql("select 1 /* strange */", PGUSER="some one", PGDATABASE="a db")
    stopped(traced)
    one = only(traced, "plain")
    assert (one["user"], one["database"]) == ("postgres", "postgres") and "local" in one["client"], one
    one = only(traced, "strange")
    for key, value in (("user", "some one"), ("database", "a db")):
        # Names with blanks cannot be told apart in the process's title: absent or right
        assert one.get(key, value) == value, one


@pytest.mark.parametrize("limit, sizes", [
    (4096, (4095, 4096, 4097)), (20, (21,)), (65536, (65536, 100_000)), (1000, (100_000,))])
def test_text_limit(postgres, tool, limit, sizes):
    args = [] if limit == 4096 else ["--text", limit]
    traced = tool("postgres", "-m", "0", "--json", "-p", postgres.pid, *args)
    texts = [text_of(size) for size in sizes]
    with postgres.connect() as connection:
        for text in texts:
            connection.pgconn.exec_(text.encode())
    stopped(traced)
    assert len(traced.statements) == len(texts), traced.said()
    for text, one in zip(texts, traced.statements):
        size, cut = len(text), len(text) > limit
        assert one["truncated"] == cut, f"{len(one['query'])} bytes, {one['truncated']}"
        assert one["query"] == text[:limit], f"{len(one['query'])} bytes, ends {one['query'][-30:]!r}"
        assert one.get("query_bytes", size) == size and ("query_bytes" in one or cut), one["query_bytes"]
    assert traced.summary["lost"]["text_truncated"] == sum(size > limit for size in sizes)


# --- -v, -d, -n

def test_verbose_takes_a_few_lines(postgres):
    """The kernel's features, the arguments that cannot be read and the privileges that are kept."""
    said = run("postgres", "-v", "-d", "0.1", "-p", postgres.pid).stderr
    assert "features of the kernel: " in said and "capabilities kept:" in said and said.count("\n") <= 5, said


def test_seconds(postgres, tool):
    with postgres.connect() as connection:
        stop, times = threading.Event(), []

        def work():
            while not stop.is_set():
                start = time.monotonic()
                connection.pgconn.exec_(b"select 1 /* within */")
                times.append((start, time.monotonic()))
        thread = threading.Thread(target=work)
        thread.start()
        try:
            begin = time.monotonic()
            traced = tool("postgres", "-m", "0", "-d", "1", "--json", "-p", postgres.pid)
            attached = time.monotonic()
            assert traced.wait(60) == 0, traced.said()
            assert time.monotonic() - begin >= 1, "it ended too early"
        finally:
            stop.set()
            thread.join()
    # On a busy machine there may be none in that second. The last one may have been answered, but not have ended.
    least = sum(attached <= start and end <= begin + 1 for start, end in times) - 1
    assert traced.summary["statements"] >= least, traced.said()
    assert traced.summary["printed"] == len(traced.statements), traced.said()
    assert traced.summary["statements"] == traced.summary["printed"] + traced.summary["lost"]["ring_full"]


def test_count(postgres, tool):
    traced = tool("postgres", "-m", "0", "-n", "3", "--json", "-p", postgres.pid)
    postgres.psql(*[f"select {n} /* n{n} */" for n in range(10)])
    assert traced.wait(60) == 0, traced.said()
    assert [one["query"] for one in traced.statements] == [f"select {n} /* n{n} */" for n in range(3)], traced.said()
    assert traced.summary["printed"] == 3


# --- the end

@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_it_with_the_loss_line(postgres, tool, sig):
    traced = tool("postgres", "-m", "0", "-p", postgres.pid)
    postgres.psql("select 1 /* before the end */")
    stopped(traced, sig)
    assert "before the end" in tags(traced)
    assert re.search(r"\blost\b", traced.stderr), f"no word of losses\n{traced.said()}"
    assert not re.search(r"\blost\b", "\n".join(traced.rows())), "diagnostics are on standard error"


def test_nohup(postgres, tool):
    traced = tool("postgres", "-m", "0", "-p", postgres.pid, wrap=["timeout", "90", "nohup"])
    for pid in children(traced.pid):
        os.kill(pid, signal.SIGHUP)
    postgres.psql("select 1 /* after the terminal */")
    stopped(traced)
    assert "after the terminal" in tags(traced)


@pytest.mark.parametrize("json_", [True, False])
def test_closed_pipe_ends_it_quietly(postgres, need_tool, json_):
    args = ["--json"] if json_ else []
    process = subprocess.Popen([DBSLOWER, "postgres", "-m", "0", "-p", str(postgres.pid), *args], bufsize=0,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        if json_:
            assert b"tracing" in process.stderr.readline()
        else:
            assert process.stdout.readline().startswith(b"Tracing")
        process.stdout.close()
        wait_for(lambda: postgres.psql("select 1") and process.poll() is not None, 60, "it to end")
        said = process.stderr.read().decode()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()
    assert process.returncode in (0, -signal.SIGPIPE), f"exit status {process.returncode}: {said}"
    assert not re.search(r"pipe|error|fail", said, re.I), f"not quiet: {said}"


def test_head(postgres, need_tool):
    """dbslower postgres | head -1, as a shell does it."""
    shell = subprocess.Popen(["/bin/bash", "-c", f'"{DBSLOWER}" postgres -m 0 -p {postgres.pid} | head -1; echo "${{PIPESTATUS[0]}}"'],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        wait_for(lambda: postgres.psql("select 1") and shell.poll() is not None, 60, "the pipeline to end")
    finally:
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGKILL)
        out, err = shell.communicate()
    lines = out.splitlines()
    assert len(lines) == 2 and lines[0].startswith("Tracing") and lines[1] in ("0", "141"), f"{out}\n{err}"
    assert not re.search(r"pipe|error|fail", err, re.I), f"not quiet: {err}"


def test_terminal_is_flushed_at_once(postgres, need_tool):
    """On a terminal a row is there while the tool runs on."""
    try:
        leader, follower = os.openpty()
    except OSError as why:
        pytest.skip(f"no terminal to be had: {why}")
    process = subprocess.Popen([DBSLOWER, "postgres", "-m", "0", "-p", str(postgres.pid)], stdout=follower,
                               stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    os.close(follower)
    seen = bytearray()

    def read():
        try:
            while chunk := os.read(leader, 4096):
                seen.extend(chunk)
        except OSError:
            pass	# the terminal's other end was closed
    reader = threading.Thread(target=read)
    reader.start()
    try:
        wait_for(lambda: b"QUERY" in seen, 60, "the header on the terminal")
        postgres.psql("select 1 /* on the terminal */")
        wait_for(lambda: b"on the terminal" in seen, 60, "the row on the terminal")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        reader.join(10)
        os.close(leader)
        process.stderr.close()
    assert process.returncode == 0


def test_kill_leaves_nothing(clusters, server_copy, tool):
    """kill -9: breakpoints, semaphores, programs, maps and links are as before."""
    postgres, path = clusters(name="kill", postgres=server_copy), server_copy	# no other tool traces this file
    with postgres.connect() as connection:
        memory = Memory(connection.info.backend_pid, path)
        assert memory.breakpoints() == [] and memory.semaphores() == {}, "something else traces this server"
        traced = tool("postgres", "-m", "0", "-p", postgres.pid)
        during, counted = memory.breakpoints(), memory.semaphores()
        assert during, "no breakpoint while it is traced, so this test proves nothing"
        probes = {site: name for name, site, semaphore in usdt_probes(path) if semaphore}
        for site in during:
            if site in probes:
                assert memory.read(site, 1) == b"\xcc", f"{probes[site]}: {memory.read(site, 1)!r}"
                assert counted.get(probes[site]) == 1, f"semaphore of {probes[site]}: {counted}"
        attached = bpf_objects.objects(traced.pid)
        assert attached["programs"] or not attached["links"], attached
        assert attached["maps"], "no BPF object while it is traced"
        traced.kill()
        wait_for(lambda: memory.breakpoints() == [] and memory.semaphores() == {}, 60,
                 "the probes to be gone")
        wait_for(lambda: all(not now & attached[kind] for kind, now in bpf_objects.everything().items()),
                 60, "the programs, maps and links to be gone")
        connection.execute("select 1 /* works on */")


def test_stop_leaves_nothing(clusters, server_copy, tool):
    postgres, path = clusters(name="stop", postgres=server_copy), server_copy
    with postgres.connect() as connection:
        memory = Memory(connection.info.backend_pid, path)
        traced = tool("postgres", "-m", "0", "-p", postgres.pid)
        assert memory.breakpoints()
        stopped(traced)
        assert memory.breakpoints() == [] and memory.semaphores() == {}


def test_two_at_once(postgres, tool):
    """Two tracers on one server: both see all, the first's end leaves the second at work."""
    one, two = (tool("postgres", "-m", "0", "--json", "-p", postgres.pid) for _ in range(2))
    postgres.psql("select 1 /* for both */")
    stopped(one)
    postgres.psql("select 1 /* for the second */")
    stopped(two)
    only(one, "for both")
    only(two, "for both")
    only(two, "for the second")
    assert not with_tag(one, "for the second")


def test_strict_is_content_without_losses(postgres, tool):
    traced = tool("postgres", "-m", "0", "--strict", "--json", "-p", postgres.pid)
    postgres.psql("select 1")
    stopped(traced)


@pytest.mark.parametrize("args", [[], force("perfbuf")], ids=["ring", "perfbuf"])
def test_strict_tells_of_losses(postgres, tool, args):
    """A reader that is stopped while the server works: the buffer fills, and that is counted."""
    traced = tool("postgres", "-m", "0", "--strict", "--json", "--text", "65536", "-p", postgres.pid, *args)
    postgres.psql("select 1 /* first */")
    traced.pause()
    text = text_of(60000).encode()
    with postgres.connect() as connection:
        for _ in range(3000):
            connection.pgconn.exec_(text)
    traced.process.send_signal(signal.SIGCONT)
    status = traced.stop()
    lost = traced.summary["lost"]["ring_full"]
    assert lost > 0, f"180 MB fitted into the ring\n{traced.said()[-2000:]}"
    assert status == 1, f"exit status {status} with {lost} lost"
    summary = traced.summary
    assert summary["statements"] == 3001, summary
    assert len(traced.statements) == summary["printed"] == 3001 - lost, f"{len(traced.statements)} shown: {summary}"


@pytest.fixture
def need_tool(tool):
    """For tests that start the tool by themselves."""
    return Tool


def test_running_are_shown(postgres, tool):
    """A statement that hangs never reaches its end: by a signal, and when the tool ends."""
    json_ = tool("postgres", "-p", postgres.pid, "-m", "100", "--json")
    text = tool("postgres", "-p", postgres.pid, "-m", "100", "-o", "pid,user,status,query")

    def running():
        return [one for one in json_.objects() if one["type"] == "running"]

    with postgres.connect() as one, postgres.connect() as other:
        pid = one.execute("select pg_backend_pid()").fetchone()[0]
        one.pgconn.send_query(b"select pg_sleep(600) /* it hangs */")
        wait_for(lambda: other.execute("select state = 'active' /* idle is not running */ from pg_stat_activity "
                                       "where pid = %s", [pid]).fetchone()[0], what="it to begin")
        time.sleep(0.3)
        json_.process.send_signal(signal.SIGUSR1)
        json_.wait_for(lambda _: running(), what="what runs")
        (seen,) = running()
        assert seen["query"] == "select pg_sleep(600) /* it hangs */" and seen["pid"] == pid and "status" not in seen
        assert 300 <= seen["duration_ms"] < 60000 and seen["user"] == "postgres", seen
        assert text.stop() == 0
        assert text.stdout.splitlines()[-2:] == [
            "Still running:", f"{pid:<7} postgres     running select pg_sleep(600) /* it hangs */"], text.said()
        one.cancel()
        while one.pgconn.get_result():
            pass
    json_.wait_for(lambda tool: with_tag(tool, "it hangs"), what="its end")
    assert json_.stop() == 0
    assert only(json_, "it hangs")["status"] == "error" and len(running()) == 1
    assert json_.summary["printed"] == len(json_.statements)


# --- literals; test_output.py has more

def test_redact(postgres, tool):
    """No literal is shown, and --match sees them all the same."""
    traced = tool("postgres", "-m", "0", "-p", postgres.pid, "--redact", "--match", "secret", "--text", "200")
    long = "select 'secret' || repeat('secret', 2) || '" + "secret " * 40 + "'"
    with postgres.connect() as connection:
        connection.pgconn.exec_(long.encode())
        connection.pgconn.exec_(b"select 'secret', 'not ended")
        connection.pgconn.exec_params(b"select $1::text /* secret */", [b"secret value"])
        connection.pgconn.exec_(b"select 'other'")
        connection.pgconn.send_query(b"select pg_sleep(600) as secret_sleep, 'secret'")
        asleep = f"select wait_event = 'PgSleep' from pg_stat_activity where pid = {connection.info.backend_pid}"
        wait_for(lambda: postgres.psql(asleep).stdout == b"t\n", what="it to run")
        traced.process.send_signal(signal.SIGUSR1)
        traced.wait_for(lambda _: "secret_sleep" in traced.stdout, what="what runs")
        connection.cancel()
        while connection.pgconn.get_result():
            pass
    assert traced.stop() == 0, traced.said()
    shown = traced.stdout.replace("secret_sleep", "")
    assert "secret" not in shown and "other" not in shown and "secret" not in traced.stderr, traced.said()
    for text in (f"select ? || repeat(?, ?) || ? [cut: 200 of {len(long)} bytes]", "select ?, ?", "select $1::text /*?*/",
                 "select pg_sleep(?) as secret_sleep, ?"):
        assert f" {text}\n" in traced.stdout, traced.said()


def test_prepares_while_it_detaches(postgres, tool):
    """A Parse is not counted, so that none is subtracted for one that ended too late."""
    traced = tool("postgres", "-m", "0", "-p", postgres.pid, "--prepares", "--json")
    with postgres.connect() as connection:
        stop = threading.Event()

        def prepare():
            while not stop.is_set():
                connection.pgconn.prepare(b"", b"select 1")
        thread = threading.Thread(target=prepare)
        thread.start()
        try:
            wait_for(lambda: '"prepare"' in traced.stdout, what="one to be shown")
            assert traced.stop() == 0, traced.said()
        finally:
            stop.set()
            thread.join()
    # The reader may not get a CPU for so long that the buffer is full.
    assert traced.summary["statements"] == 0 and not set(traced.lost()) - {"ring_full"}, traced.summary
