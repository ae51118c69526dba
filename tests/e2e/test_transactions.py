# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""transactions of PostgreSQL, compared with pg_stat_activity and txid_status()."""

import contextlib
import functools
import json
import signal
import time

import pytest

from cluster import wait_for
from fallbacks import OLD
from tool import Announced, refused, run
from transactions import Transactions, seconds

TOLERANCE = 0.002	# of a time stamp in us, of which JSON has the difference to another clock reading
NOW = """select txid_current(), extract(epoch from xact_start), extract(epoch from clock_timestamp())
    from pg_stat_activity where pid = pg_backend_pid()"""


def execute(connection, *texts):
    """Return the result of the last one; an error is one. Nothing is added, as psycopg's transactions would be."""
    for text in texts:
        result = connection.pgconn.exec_(text.encode())
    return result


@pytest.fixture
def traced(request, postgres, tool):
    return tool("transactions", "-m", "0", "-p", postgres.pid, "--json", *getattr(request, "param", ()), kind=Transactions)


ENDS = [	# statements after BEGIN, and what the server then says of it and of the one that follows
    (["commit"], "commit", "committed"),
    (["end"], "commit", "committed"),
    (["/* commit */ rollback"], "rollback", "aborted"),
    (["select 1/0", "select 2", "commit"], "rollback", "aborted"),
    (["select 1/0", "", "commit"], "rollback", "aborted"),
    (["savepoint s", "select 1/0", "rollback to s", "commit"], "commit", "committed"),
    (["rollback and chain"], "rollback", "aborted"),
    (["commit and chain"], "commit", "committed"),
    (["prepare transaction 'test'"], "prepare", "in progress"),
]


@pytest.mark.parametrize("traced", [(), OLD], ids=["default", "linux-5.4"], indirect=True)
def test_ends(postgres, traced):
    """Outcome, begin, number of statements and user of each transaction. AND CHAIN begins another one."""
    with postgres.connect(application_name="ends") as connection, postgres.connect() as other:
        count = 0
        for texts, state, status in ENDS:
            execute(connection, "begin")
            now = execute(connection, NOW)
            number, began, latest = (now.get_value(0, i).decode() for i in range(3))
            execute(connection, *texts)
            count += 1
            one = traced.nth(count, pid=connection.info.backend_pid)
            assert (one["state"], one["statements"]) == (state, len(texts) + 2), one
            assert one["user"] == one["database"] == "postgres" and one["client"] == "[local]", one
            assert float(began) - TOLERANCE <= seconds(one["begin"]) <= float(latest) + TOLERANCE, (one, began)
            assert seconds(one["end"]) - seconds(one["begin"]) == pytest.approx(one["duration_ms"] / 1000, abs=TOLERANCE)
            assert one["time"] == one["end"] and 0 <= one["idle_ms"] <= one["duration_ms"]
            assert other.execute("select txid_status(%s)", [int(number)]).fetchone()[0] == status
            if "chain" in texts[-1]:
                execute(connection, "select 1", "commit")
                count += 1
                chained = traced.nth(count, pid=connection.info.backend_pid)
                assert (chained["statements"], chained["state"]) == (2, "commit")
                assert seconds(chained["begin"]) == pytest.approx(seconds(one["end"]), abs=TOLERANCE)
            if state == "prepare":
                execute(connection, "rollback prepared 'test'")
                count += 1
        traced.nth(count, pid=connection.info.backend_pid)
        traced.complete()
        assert len(traced.ended(pid=connection.info.backend_pid)) == count


def test_of_one_statement(postgres, traced):
    """A statement outside of a block; one text that is a block; a failure; a pipeline; a backend that is terminated."""
    with postgres.connect() as connection:
        for number, (text, state) in enumerate([("select 1", "commit"), ("select 1/0", "rollback"), ("begin; select 2; commit", "commit")]):
            execute(connection, text)
            one = traced.nth(number + 1, pid=connection.info.backend_pid)
            assert (one["query"], one["statements"], one["state"], one["idle_ms"]) == (text, 1, state, 0)
        with connection.pipeline():
            for i in range(3):
                connection.execute("select %s::int", [i])
        one = traced.nth(4, pid=connection.info.backend_pid)
        assert (one["statements"], one["state"]) == (3, "commit")
    connection = postgres.connect()
    execute(connection, "begin", "select 'killed'")
    postgres.psql(f"select pg_terminate_backend({connection.info.backend_pid})")
    one = traced.nth(1, pid=connection.info.backend_pid)
    assert (one["statements"], one["state"]) == (2, "rollback")
    connection.close()


def test_idle(postgres, traced):
    """The idle part is that between an answer and the next statement; the text that of the longest statement."""
    took = {}
    with postgres.connect() as connection:
        for text in ("begin", "select pg_sleep(0.1)", "commit"):
            start = time.monotonic()
            execute(connection, text)
            took[text] = time.monotonic() - start
            time.sleep(0.1)
        one = traced.nth(1, pid=connection.info.backend_pid)
    assert one["idle_ms"] >= 200 and one["duration_ms"] - one["idle_ms"] >= 100
    # On a busy machine another one may be longer.
    assert took[one["query"]] >= 0.1, (one, took)


def test_begun_before(postgres, tool):
    """Those that are open at the start: begin as in pg_stat_activity, at their ends or while they are open."""
    named = functools.partial(postgres.connect, application_name="begun before")
    with named() as idle, named() as ending, named() as failing, named() as running, named() as failed, named() as failed_ending:
        for one in (idle, ending, failing, failed, failed_ending):
            execute(one, "begin", "select 1")
        for one in (failed, failed_ending):
            execute(one, "select 1/0")
        running.pgconn.send_query(b"select pg_sleep(600)")
        running.pgconn.flush()
        xact_start = "select pid, extract(epoch from xact_start) from pg_stat_activity where xact_start is not null and pid <> pg_backend_pid()"
        pids = [one.info.backend_pid for one in (idle, ending, failing, running)]
        wait_for(lambda: postgres.psql(f"select wait_event from pg_stat_activity where pid = {pids[3]}").stdout == b"PgSleep\n", what="it to sleep")
        with postgres.connect() as other:
            began = {pid: float(at) for pid, at in other.execute(xact_start) if pid in pids}
        traced = tool("transactions", "-m", "0", "-p", postgres.pid, "--json", kind=Transactions)
        execute(ending, "select 2", "commit")
        execute(failing, "select 1/0")
        execute(failed_ending, "commit")
        assert traced.nth(1, pid=failed_ending.info.backend_pid)["state"] == "rollback"
        end = traced.nth(1, pid=ending.info.backend_pid)
        assert end["state"] == "commit" and "statements" not in end and "idle_ms" not in end, end
        traced.process.send_signal(signal.SIGUSR1)
        pids.append(failed.info.backend_pid)
        traced.wait_for(lambda tool: set(tool.open) >= {pids[0], *pids[2:]}, what="the open ones")
        traced.complete()
        found = traced.open
        assert {pid: found[pid]["state"] for pid in pids if pid in found} == \
            {pids[0]: "idle", pids[2]: "aborted", pids[3]: "running", pids[4]: "aborted"}
        assert "end" not in found[pids[0]] and found[pids[3]]["statements"] == 1 and found[pids[3]]["query"] == "select pg_sleep(600)"
        for one in [end] + [found[pid] for pid in (pids[0], pids[2], pids[3])]:
            assert seconds(one["begin"]) == pytest.approx(began[one["pid"]], abs=TOLERANCE)
            assert (one["user"], one["application"]) == ("postgres", "begun before")
        running.cancel()
        while running.pgconn.get_result():
            pass
        for one in (idle, failing):
            execute(one, "rollback")


def test_ended_with_its_connection(postgres, tool, tmp_path):
    """A statement outside of a block, whose backend is terminated: live and from a recording."""
    path = tmp_path / "recording"
    traced = tool("transactions", "0", "-p", postgres.pid, "--json", kind=Transactions)
    record = tool("record", path, "-p", postgres.pid, kind=Announced)
    for begin in ("", "begin"):
        with contextlib.closing(postgres.connect()) as connection:
            execute(connection, begin or "select 1")
            connection.pgconn.send_query(b"select pg_sleep(600) /* terminated */")
            connection.pgconn.flush()
            pid = connection.info.backend_pid
            wait_for(lambda: postgres.psql(f"select wait_event from pg_stat_activity where pid = {pid}").stdout == b"PgSleep\n", what="it to sleep")
            postgres.psql(f"select pg_terminate_backend({pid})")
            traced.nth(1, pid=pid)
    traced.complete()
    assert record.stop() == 0, record.said()
    replayed = [json.loads(line) for line in run("replay", path, "transactions", "0", "--json").stdout.splitlines()]
    for found in traced.objects(), replayed:
        ended = [(one["state"], one["statements"], one["query"]) for one in found if one["type"] == "transaction" and "terminated */" in one.get("query", "")]
        assert ended == [("rollback", 1, "select pg_sleep(600) /* terminated */"), ("rollback", 2, "select pg_sleep(600) /* terminated */")], found


# 0.1 s, without the word that is matched
LASTS = "begin while clock_timestamp() < statement_timestamp() + interval '100 ms' loop end loop; end"


def test_options(postgres, tool):
    """Threshold, filters, --redact and the table."""
    postgres.psql("drop role if exists teller", "create role teller login")
    some = ("-p", postgres.pid, "-n", "1")
    table = tool("transactions", "0", *some, "--user", "teller", "--redact", "-o", "state,statements,user,query", kind=Transactions)
    long = tool("transactions", "100ms", *some, "--json", "--match", "SLEEP", kind=Transactions)
    with postgres.connect(user="teller") as teller, postgres.connect() as connection:
        execute(connection, "select 'short'", "begin", f"do $${LASTS}$$", "rollback")
        execute(teller, "select 'teller', 42")
        # On a busy machine another statement may be the longest one, whose text is compared.
        wait_for(lambda: execute(connection, "begin", "select pg_sleep(0.1)", "rollback") and long.process.poll() is not None,
                 what="the transaction that is long and sleeps")
    assert table.wait() == 0 and long.wait() == 0, table.said() + long.said()
    assert table.stdout.splitlines()[1:] == ["STATE    STMTS USER         QUERY", "commit       1 teller       select ?, ?"]
    assert [(one["query"], one["state"], one["statements"]) for one in long.ended()] == [("select pg_sleep(0.1)", "rollback", 3)]


def test_refused():
    refused(run("transactions", "-o", "idle,rows"), "-o rows: unknown column", "begin, end, pid", status=2)
    refused(run("slow", "-o", "idle"), "-o idle: unknown column", status=2)
    refused(run("transactions", "--start", "a:b"), "--start: unknown option", status=2)
