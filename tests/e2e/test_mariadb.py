# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""MariaDB: a mixed workload compared with the slow log, and a test for each feature."""

import contextlib
import copy
import os
import re
import shutil
import signal
import threading
import time

import pytest

import mariadb_oracle
import oracle
from cluster import wait_for
from complaints import repeated, report
from fallbacks import ALL as ALL_FALLBACKS
from mariadb import SERVER, Maria
from mariadb_client import EXECUTE, QUERY, RESET_CONNECTION, STATISTICS, ServerError
from mariadb_oracle import compare, records
from mariadb_workload import SETUP, Workload, fails
from peer import MARIADB, Peer
from requirements import need_maria
from statements import only, rows, stopped, with_tag
from tool import parsed, run, sessions
from transactions import Transactions

AT_LEAST = 20_000
QUIET = {"slow_query_log": "OFF"}	# as servers are by default
POOL = {"thread_handling": "pool-of-threads", "thread_pool_size": "2",
        # The commit waits for its flush: the command is suspended and resumed
        "innodb_flush_log_at_trx_commit": "1", "innodb_flush_method": "fsync"}


@pytest.fixture
def marias():
    """marias(setting=…) makes a server and starts it."""
    need_maria()
    made = []

    def make(start=True, **keywords):
        made.append(Maria(**keywords))
        made[-1].init()
        return made[-1].start() if start else made[-1]

    yield make
    for server in made:
        server.remove()


@pytest.fixture(scope="module")
def maria():
    """The server that most tests share. It writes no slow log."""
    need_maria()
    with Maria(**QUIET).init() as server:
        server.start()
        with server.connect() as client:
            for text in SETUP:
                client.query(text)
        yield server


@pytest.fixture
def client(maria):
    with maria.connect(database="d") as one:
        yield one


@pytest.fixture
def traced(maria, tool):
    """The tool, tracing all statements of the shared server."""
    return tool("mysql", "-p", maria.pid, "-m", "0", "--json")


def ended(traced, *clients):
    """Stops the tool when these connections' statements have ended: that is after their answers."""
    for client in clients:
        client.ping()
    return stopped(traced, idle=True)


def finished(traced, *clients):
    """As ended(), for a tool that traces all servers: what others do to theirs is not ours to judge."""
    for client in clients:
        client.ping()
    assert traced.stop() == 0, traced.said()
    return traced


def tracing(tool, *args, pids):
    """The tool, when it traces all these servers."""
    traced = tool(*args, "-m", "0", "--json")
    for pid in pids:
        traced.wait_for(lambda _: re.search(rf"tracing .*\b{pid}\b", traced.stderr), 60, f"{pid} to be traced")
    return traced


# --- the oracle


@pytest.mark.calm
@pytest.mark.parametrize("settings, events, least, args",
                         [({}, 400, AT_LEAST, ()), (POOL, 120, 5000, ()), ({}, 120, 5000, ALL_FALLBACKS)],
                         ids=["one-thread-per-connection", "pool-of-threads", "fallbacks"])
def test_tool_and_slow_log_agree(marias, tool, settings, events, least, args):
    if shutil.which("sysbench") is None:
        pytest.skip("no sysbench")
    report(repeated(lambda: agreement(marias(**settings), tool, events, least, args)))


def with_text(traced):
    """Without the commands that have none."""
    return [one for one in traced.statements if "query" in one or one["status"] == "error"]


def agreement(server, tool, events, least, args):
    """Run the workload, traced by the tool and by bpftrace. Return the complaints about the tool."""
    workload = Workload(server, events)
    workload.setup()
    # What is compared is what they see, not whether they get a CPU beside any other load.
    priority = {"preexec_fn": lambda: os.nice(oracle.NICE)}
    with Peer(server.server, MARIADB, **priority) as peer:
        traced = tool("mysql", "-p", server.pid, "-m", "0", "--json", *args, **priority)
        offset = server.log_size()
        workload.run()
        oracle.stop(traced, peer)
    logged, summary = records(server.read_log(offset)), traced.summary
    got = with_text(traced)
    peer.add(got)
    print(mariadb_oracle.figures(logged, got), summary, sep="\n")
    assert len(logged) >= least, f"the workload had only {len(logged)} statements"
    assert {one["pid"] for one in got} == {server.pid}
    assert summary["statements"] == summary["printed"] == len(logged) + workload.uses, summary
    assert len(traced.statements) == len(got) + workload.uses
    cut = sum(one["truncated"] for one in got)
    assert cut and summary["lost"]["text_truncated"] == cut, f"{cut} texts are marked as cut: {summary}"
    return compare(logged, got)


# --- the comparer must complain: a log and an output made up, then spoilt in each way

def entry(text, connection=7, ms=2.0, sent=1, affected=0, schema="d", use=""):
    return (f"# User@Host: root[root] @ localhost []\n# Thread_id: {connection}  Schema: {schema}  QC_hit: No\n"
            f"# Query_time: {ms / 1000:.6f}  Lock_time: 0.000000  Rows_sent: {sent}  Rows_examined: 0\n"
            f"# Rows_affected: {affected}  Bytes_sent: 11\n# Full_scan: Yes  Full_join: No\n{use}"
            f"SET timestamp=1700000000;\n").encode() + text + b";\n"


def shown_as(text, at, connection=7, ms=2.0, status="ok", **more):
    one = {"type": "statement", "time": f"2026-01-01T00:00:{at / 1000:012.9f}Z", "server": {"engine": "mariadb"}, "pid": 9, "tid": 10,
           "duration_ms": ms, "user": "root", "database": "d", "client": "localhost", "connection_id": connection,
           "rows": 1, "query_plan": ["full_scan"], "status": status, "query": text.decode(errors="replace"), "query_bytes": len(text),
           "truncated": False, **more}
    return one


def made_up():
    log, got = [b"mariadbd, Version: 10.11. started with:\nTcp port: 1  Unix socket: /s\n"
                b"Time\t\t    Id Command\tArgument\n"], []
    for n in range(200):
        for connection in (7, 8):
            text = f"select {n}\n /* {connection}; é */".encode()
            log.append(b"# Time: 260101  0:00:00\n" * (n % 50 == 0) + entry(text, connection))
            got.append(shown_as(text, 10 * n, connection, 2.05))
    log.append(entry(b"selec /* fails 1064 */", use="use `d`;\n"))
    got.append(shown_as(b"selec /* fails 1064 */", 3000, status="error", errno=1064))
    log.append(entry(b""))
    got.append(shown_as(b"", 3010, status="error", errno=1065))
    log.append(entry(b"insert", sent=0, affected=5))
    got.append(shown_as(b"insert", 3020, rows=5))
    log.append(entry(b"x" * 5000))
    got.append(shown_as(b"x" * 5000, 3030, query="x" * 4096, truncated=True))
    log.append(entry(b"caf\xe9"))
    got.append(shown_as(b"caf\xe9", 3040, query_base64="Y2Fm6Q=="))
    return b"".join(log), got


def test_comparer_accepts_what_fits():
    log, got = made_up()
    assert len(records(log)) == len(got) == 405
    assert compare(records(log), got) == []


SPOILT = {
    "one dropped": (lambda got: got.pop(77), "not seen"),
    "the first dropped": (lambda got: got.pop(0), "not seen"),
    "the last dropped": (lambda got: got.pop(), "not seen"),
    "a failure dropped": (lambda got: got.pop(400), "not seen"),
    "the empty one dropped": (lambda got: got.pop(401), "not seen"),
    "one twice": (lambda got: got.append(copy.deepcopy(got[5])), "invented"),
    "one invented": (lambda got: got.append(shown_as(b"select 'mine'", 50)), "invented"),
    "one of another session": (lambda got: got[5].update(connection_id=9), "not seen"),
    "a session unknown": (lambda got: got[5].pop("connection_id"), "not seen"),
    "a text changed": (lambda got: got[9].update(query=got[9]["query"][:-1] + "?"), "not seen"),
    "a text emptied": (lambda got: got[9].update(query=""), "not seen"),
    "a text absent": (lambda got: got[9].pop("query"), "not seen"),
    "an empty text absent": (lambda got: got[401].pop("query"), "no query"),
    "a byte changed": (lambda got: got[404].update(query_base64="Y2Fm6g=="), "not seen"),
    "a length wrong": (lambda got: got[403].update(query_bytes=4999), "not seen"),
    "a cut too short": (lambda got: got[403].update(query="x" * 4000), "not seen"),
    "a cut not marked": (lambda got: got[403].update(truncated=False), "truncated False"),
    "a cut marked without need": (lambda got: got[9].update(truncated=True), "truncated True"),
    "two swapped": (lambda got: got[10].update(time=got[14]["time"] + "x"), "not seen"),
    "a failure shown as ok": (lambda got: got[400].update(status="ok"), "status ok"),
    "a success shown as failed": (lambda got: got[30].update(status="error"), "status error"),
    "another errno": (lambda got: got[400].update(errno=1065), "errno 1065"),
    "an errno of a success": (lambda got: got[30].update(errno=1), "errno 1"),
    "another user": (lambda got: got[30].update(user="me"), "user me"),
    "no user": (lambda got: got[30].pop("user"), "user None"),
    "another database": (lambda got: got[30].update(database="dd"), "database dd"),
    "another client": (lambda got: got[30].update(client="::1"), "client ::1"),
    "other rows": (lambda got: got[402].update(rows=0), "rows 0"),
    "another plan": (lambda got: got[30].update(query_plan=["tmp_table"]), "query_plan ['tmp_table']"),
    "no plan": (lambda got: got[30].pop("query_plan"), "query_plan None"),
    "rows absent": (lambda got: got[402].pop("rows"), "no rows"),
    "2 % slower": (lambda got: [one.update(duration_ms=2.3) for one in got[:20:2]], "durations off"),
    "all 1 ms shorter": (lambda got: [one.update(duration_ms=1.05) for one in got], "durations off"),
    "one shorter": (lambda got: got[4].update(duration_ms=1.99), "too short"),
    "one far off": (lambda got: got[4].update(duration_ms=5000.0), "far off"),
    "one without a duration": (lambda got: got[4].pop("duration_ms"), "no duration"),
}


@pytest.mark.parametrize("how", SPOILT)
def test_comparer_complains(how):
    log, got = made_up()
    spoil, word = SPOILT[how]
    spoil(got)
    complaints = compare(records(log), got)
    assert any(word in complaint for complaint in complaints), f"{how}: said only {complaints[:5]}"


def test_comparer_grants_what_both_tracers_measured():
    log, got = made_up()
    late = got[:40:4]
    for one in late:
        one["duration_ms"] = 2.3
    assert compare(records(log), got)
    for one in late:
        one["peer_ms"] = 2.25
    assert compare(records(log), got) == []
    for one in late:
        one["peer_ms"] = 2.15
    assert compare(records(log), got), "they are off by more than the delay"


def test_log_reader_refuses_what_it_does_not_know():
    for log in (b"something else\n", entry(b"select 1").replace(b"Query_time", b"Time"), entry(b"select 1")[:-3]):
        with pytest.raises(ValueError):
            records(log)


# --- what it shows of a statement

def test_running_are_shown(maria, tool):
    """With the text, a prepared statement's too, and the client: they are in the server's memory alone."""
    text = tool("mysql", "-p", maria.pid, "-m", "100", "-o", "pid,status,query")
    traced = tool("mysql", "-p", maria.pid, "-m", "100", "--json", "--text", "64")
    long = "select sleep(600) /* " + "x" * 1000 + " */"
    with maria.connect() as killer, maria.connect() as idle:
        idle.query("select 1 /* idle is not running */")
        idle.ping()
        victims = [maria.connect(database="d") for _ in range(3)]
        victims[0].send(3, b"select sleep(600) /* it hangs */")
        victims[1].send(3, long.encode())
        prepared = victims[2].prepare("select sleep(600) /* prepared */")
        thread = threading.Thread(target=fails, args=(prepared,))
        thread.start()
        wait_for(lambda: len(killer.rows("select 1 from information_schema.processlist where state = 'User sleep'")) == 3,
                 what="all to sleep")
        killer.ping()	# the query before has ended, and not only been answered
        time.sleep(0.2)
        traced.process.send_signal(signal.SIGUSR1)
        traced.wait_for(lambda _: len(running(traced)) == 3, what="what runs")
        text.stop()
        for victim in victims:
            killer.query(f"kill query {victim.id}")
        thread.join()
        for victim in victims:
            victim.drop()
    assert traced.stop() == 0
    seen = {one["query"]: one for one in running(traced)}
    assert set(seen) == {"select sleep(600) /* it hangs */", "select sleep(600) /* prepared */", long[:64]}, seen
    assert seen[long[:64]]["truncated"] and seen[long[:64]]["query_bytes"] == len(long)
    assert all(one["pid"] == maria.pid and 100 <= one["duration_ms"] < 60000 for one in seen.values()), seen
    assert {(one["server"]["pid"], one["user"], one["database"], one["client"]) for one in seen.values()} == {
        (maria.pid, "root", "d", "localhost")}, seen
    assert {one["connection_id"] for one in seen.values()} == {victim.id for victim in victims}, seen
    lines = text.stdout.splitlines()
    assert f"{maria.pid:<7} running select sleep(600) /* it hangs */" in lines[lines.index("Still running:"):], lines


def running(traced):
    return [one for one in traced.objects() if one["type"] == "running"]



def test_columns(maria, client, traced):
    begin = time.monotonic()
    client.query("select * from item /* columns */")
    client.ping()
    elapsed_ms = (time.monotonic() - begin) * 1000
    one = only(ended(traced, client), "/* columns */")
    assert one["server"]["engine"] == "mariadb" and one["pid"] == maria.pid and one["tid"] in maria.threads()
    assert (one["user"], one["database"], one["client"]) == ("root", "d", "localhost")
    assert (one["connection_id"], one["rows"], one["status"]) == (client.id, 3, "ok")
    assert one["query"] == "select * from item /* columns */"
    assert (one["query_bytes"], one["truncated"]) == (len(one["query"]), False)
    assert 0 < one["duration_ms"] < elapsed_ms
    assert "errno" not in one


def test_user_and_client_over_tcp(maria, traced):
    with maria.connect(user="app", database="d", tcp=True) as client:
        client.query("select 1 /* over tcp */")
        one = only(ended(traced, client), "over tcp")
        assert (one["user"], one["client"], one["connection_id"]) == ("app", "127.0.0.1", client.id)


def test_database_follows_use(maria, traced):
    with maria.connect() as client:
        client.query("select 1 /* no database */")
        client.query("use d")
        client.query("select 1 /* use */")
        client.use("mysql")
        client.query("select 1 /* init db */")
        client.change_user("app", "d")
        client.query("select 1 /* change user */")
    stopped(traced)
    assert not only(traced, "no database").get("database")
    assert [only(traced, tag)["database"] for tag in ("/* use", "init db", "change user")] == ["d", "mysql", "d"]
    assert only(traced, "change user")["user"] == "app"


def test_rows(client, traced):
    client.query("insert into sink values (1, 'a'), (2, 'b'), (3, 'c') /* three in */")
    client.query("update sink set n = 9 where n < 3 /* two changed */")
    client.query("select * from sink limit 1 /* one out */")
    client.query("delete from sink /* gone */")
    ended(traced, client)
    wanted = {"three in": 3, "two changed": 2, "one out": 1, "gone": 3}
    assert {tag: only(traced, tag).get("rows") for tag in wanted} == wanted


CHANGES = (
    "insert into changed values (1, 1), (2, 2), (3, 3)",
    "insert into changed values (1, 9), (4, 4) on duplicate key update n = values(n)",	# 2 for the row that was there
    "insert into changed values (1, 9) on duplicate key update n = 9",
    "insert ignore into changed values (1, 1), (5, 5)",
    "insert into changed select id + 10, n from changed",
    "insert into changed select id, n from changed where id > 1000",
    "replace into changed values (1, 1), (2, 5), (77, 1)",
    "update changed set n = n + 1 where id < 3",
    "update changed set n = n",
    "update changed set n = 1 where id = 1000",
    "select id from changed where id < 4",
    "select id from changed where id = 1000",
    "select count(*) into @n from changed",
    "select id into @n from changed where id = 1000",
    "select id from changed union select 1",
    "insert into changed values (90, 1), (91, 2) returning id",
    "delete from changed where id >= 90 returning id",
    "insert into changed select id + 200, n from changed where id < 4 returning id",
    "delete changed, sink from changed left join sink on sink.n = changed.id where changed.id = 11",
    "delete from changed where id > 1000",
    "create table changed_too as select * from changed",
    "drop table changed_too",
    "set @n = 1",
    "begin",
    "insert into changed values (500, 1)",
    "rollback",
    "call change_some()",
    "show tables like 'item'",
    "execute immediate 'update changed set n = n + 1 where id < 5'",
)


def told(result):
    """The rows that a client got or that the server's OK says it affected."""
    return result.count if result.rows is None else len(result.rows)


def test_rows_are_what_the_client_is_told(client, traced):
    client.query("create or replace table changed (id int primary key, n int)")
    client.query("create or replace procedure change_some() begin insert into changed values (600, 1), (601, 1); "
                 "update changed set n = 7 where id = 600; end")
    wanted = [(text, told(client.query(f"{text} /* told */")[0])) for text in CHANGES]
    together = ("update changed set n = n + 1 where id < 3", "select id from changed limit 2", "delete from changed")
    results = client.query("; ".join(f"{text} /* told */" for text in together))
    wanted += [(text, told(result)) for text, result in zip(together, results, strict=True)]
    prepared = client.prepare("insert into changed values (?, ?), (?, 1) /* told */")
    wanted.append(("insert into changed values (?, ?), (?, 1)", told(prepared.execute(1, 1, 2)[0])))
    ended(traced, client)
    assert len({rows for _, rows in wanted}) > 4, "the workload has hardly any rows"
    shown = with_tag(traced, "/* told */")
    assert [(one["query"].replace(" /* told */", ""), one.get("rows")) for one in shown] == wanted


def test_rows_that_are_not_known(client, traced):
    client.failing("insert into item values (1000, 'x'), (1, 'x') /* no rows */")
    client.query("optimize table item /* no rows */")
    ended(traced, client)
    assert [one.get("rows") for one in with_tag(traced, "/* no rows")] == [None, None]


def test_rows_of_a_procedure_that_selects(client, traced):
    """The rows of all results; the final OK has only those of the last change."""
    client.query("create or replace table changed (id int primary key, n int)")
    client.query("create or replace procedure select_some() begin select 1 union select 2; insert into changed "
                 "values (1, 1); select 3; end")
    results = client.query("call select_some() /* selects */")
    ended(traced, client)
    assert [told(one) for one in results] == [2, 1, 1]
    assert only(traced, "/* selects */")["rows"] == 3


def test_prepared_text_has_placeholders(client, traced):
    insert = client.prepare("insert into sink values (?, ?) /* prepared */")
    select = client.prepare("select ? + ? /* prepared select */")
    for n in range(3):
        insert.execute(n, "text")
        select.execute(n, n)
    ended(traced, client)
    assert [one["query"] for one in with_tag(traced, "/* prepared")] == [
        "insert into sink values (?, ?) /* prepared */", "select ? + ? /* prepared select */"] * 3
    assert {one["rows"] for one in with_tag(traced, "prepared select")} == {1}


def test_prepared_before_it_was_traced(maria, client, tool):
    select = client.prepare("select name from item where id = ? /* old */")
    traced = tool("mysql", "-p", maria.pid, "-m", "0", "--json")
    select.execute(1)
    client.query("select 1 /* connected before */")
    ended(traced, client)
    one = only(traced, "/* old */")
    assert (one["user"], one["database"], one["connection_id"]) == ("root", "d", client.id)
    only(traced, "connected before")


def test_bulk(client, traced):
    client.prepare("insert into sink values (?, ?) /* bulk */").bulk((1, "a"), (2, "b"), (3, "c"))
    one = only(ended(traced, client), "/* bulk */")
    assert (one["status"], one["rows"]) == ("ok", 3)


def test_cursor(client, traced):
    cursor = client.prepare("select id from item /* cursor */")
    cursor.execute(cursor=True)
    assert len(cursor.fetch(2)) == 2 and len(cursor.fetch(2)) == 1
    only(ended(traced, client), "/* cursor */")


def test_parts_of_a_packet(client, traced):
    begin = time.monotonic()
    client.query("select 1 /* a */; select sleep(0.05) /* b */; select 3 /* c */")
    client.ping()
    elapsed_ms = (time.monotonic() - begin) * 1000
    ended(traced, client)
    texts = [one["query"] for one in traced.statements]
    assert texts == ["select 1 /* a */", "select sleep(0.05) /* b */", "select 3 /* c */"]
    assert 50 <= only(traced, "/* b */")["duration_ms"] < elapsed_ms
    times = [one["time"] for one in traced.statements]
    assert times == sorted(times)


def test_failure_ends_a_packet(client, traced):
    client.failing("select 1 /* part */; select * from nosuch /* failing part */; select 3")
    client.failing("select 1 /* part */; selec /* bad part */; select 3")
    ended(traced, client)
    assert len(with_tag(traced, "/* part */")) == 2
    assert only(traced, "failing part")["errno"] == 1146
    assert only(traced, "bad part")["errno"] == 1064
    assert len(traced.statements) == 4, traced.said()


@pytest.mark.parametrize("text, errno", [
    ("selec 1 /* mark */", 1064), ("select * from nosuch /* mark */", 1146), ("call fails() /* mark */", 1146),
    ("insert into item values (1, 'x') /* mark */", 1062),
    ("set statement max_statement_time = 0.05 for select sleep(20) /* mark */", 1969)])
def test_failures(client, traced, text, errno):
    with pytest.raises(ServerError) as failure:
        client.query(text)
    assert failure.value.number == errno
    client.query("select 1 /* after */")
    ended(traced, client)
    one = only(traced, "/* mark */")
    assert (one["status"], one["errno"], one["query"]) == ("error", errno, text)
    assert one["sqlstate"] == failure.value.state, one
    after = only(traced, "/* after */")
    assert after["status"] == "ok" and not after.keys() & {"errno", "sqlstate"}


def test_prepared_failure(client, traced):
    insert = client.prepare("insert into item values (?, 'x') /* prepared fails */")
    with pytest.raises(ServerError):
        insert.execute(1)
    one = only(ended(traced, client), "prepared fails")
    assert (one["status"], one["errno"], one["sqlstate"]) == ("error", 1062, "23000")


def test_call_is_one(client, traced):
    for name in ("several", "dynamic", "swallows"):
        client.query(f"call {name}() /* {name} */")
    client.query("insert into audited values (1), (2) /* trigger */")
    client.query("select twice(2), twice(3) /* function */")
    client.query("call nested(3) /* nested */")
    client.prepare("call dynamic() /* prepared call */").execute()
    client.query("call dynamic() /* first */; call dynamic() /* second */")
    ended(traced, client)
    seen = tags_of(traced)
    assert seen == ["several", "dynamic", "swallows", "trigger", "function", "nested", "prepared call", "first", "second"]
    assert only(traced, "several")["duration_ms"] >= 10, "it sleeps 10 ms"


def tags_of(traced):
    return [one["query"].rpartition("/* ")[2].removesuffix(" */") for one in traced.statements]


def test_call_is_one_even_if_the_server_logs_its_body(client, traced):
    client.query("set log_slow_disabled_statements = ''")
    client.query("call several() /* whole */")
    ended(traced, client)
    one = only(traced, "/* whole */")
    assert one["duration_ms"] >= 10, "it sleeps 10 ms"
    assert len(traced.statements) == 2, traced.said()


# What one text must be shown as: (part of the text, errno or 0, at least so many ms) of each statement. An
# EXECUTE is shown by the text of what it runs, as the slow log has it, or where it ran nothing by its own.
RUNS = ("select sleep(0.02) /* runs */", 0, 20)
EXECUTES = {
    "execute s": [RUNS],
    " execute s": [RUNS],
    "EXECUTE\ts": [RUNS],
    "execute\ns": [RUNS],
    "/* c */ execute s": [RUNS],
    "-- c\nexecute s": [RUNS],
    "/*!execute s*/": [RUNS],
    "execute `s`": [RUNS],
    "execute v using sleep(0.02)": [("/* value */", 0, 20)],
    "set statement max_statement_time = 5 for execute s": [RUNS],
    "set statement max_statement_time = 5 for select 1": [("for select 1", 0, 0)],
    "execute s; select 7": [RUNS, ("select 7", 0, 0)],
    "select 5; execute s": [("select 5", 0, 0), RUNS],
    "select 5; execute s; select 6": [("select 5", 0, 0), RUNS, ("select 6", 0, 0)],
    "execute s; execute s": [RUNS, RUNS],
    "execute immediate 'select 3'": [("immediate 'select 3'", 0, 0)],
    "execute  immediate 'select 4'": [("immediate 'select 4'", 0, 0)],
    "execute /* c */ immediate 'select sleep(0.02)'": [("immediate 'select sleep", 0, 20)],
    "select 5; execute immediate 'select 8'": [("select 5", 0, 0), ("immediate 'select 8'", 0, 0)],
    "execute nosuch": [("execute nosuch", 1243, 0)],
    " execute nosuch": [("execute nosuch", 1243, 0)],
    "select 5; execute nosuch; select 6": [("select 5", 0, 0), ("execute nosuch", 1243, 0)],
    "execute v": [("execute v", 1210, 0)],
    "execute s and more": [("execute s and more", 1064, 0)],
    "execute gone": [("select * from soon_gone", 1146, 0)],
    "execute immediate 'selec'": [("immediate 'selec'", 1064, 0)],
    "execute immediate 'select nosuch'": [("immediate 'select nosuch'", 1054, 0)],
    "begin not atomic execute s; end": [("begin not atomic", 0, 20)],
    "begin not atomic execute nosuch; end": [("begin not atomic", 1243, 0)],
    "call executes()": [("call executes()", 0, 20)],
    "call executes(); execute s": [("call executes()", 0, 20), RUNS],
    "execute calls": [("call executes()", 0, 20)],
    "execute plain_call": [("call several()", 0, 10)],
}


def prepare_executes(client):
    client.query("create or replace table soon_gone (n int)")
    client.query("prepare s from 'select sleep(0.02) /* runs */'; prepare v from 'select ? /* value */'; "
                 "prepare gone from 'select * from soon_gone'; drop table soon_gone")
    client.query("create or replace procedure executes() begin execute s; select 1; end")
    client.query("prepare calls from 'call executes()'; prepare plain_call from 'call several()'")


def each_shown(traced, client, texts, run):
    """The statements that are shown of each text that run() is called with; none lasts longer than the client has waited."""
    elapsed_ms = {}
    client.query("select 'the end'")
    for text in texts:
        begin = time.monotonic()
        with contextlib.suppress(ServerError):
            run(text)
        client.query("select 'the end'")
        elapsed_ms[text] = (time.monotonic() - begin) * 1000
    ended(traced, client)
    found = [[]]
    for one in traced.statements:
        if one["query"] == "select 'the end'":
            found.append([])
        else:
            found[-1].append(one)
    assert not found[-1]
    shown = dict(zip(texts, found[1:-1], strict=True))	# the first are of what has been before
    late = [one for text, ones in shown.items() for one in ones if one["duration_ms"] >= elapsed_ms[text]]
    assert not late, late
    return shown


def complaints_of(shown, wanted):
    """Return the differences from a table like EXECUTES."""
    found = []
    for text, statements in wanted.items():
        seen = [(one["query"], one.get("errno", 0), round(one["duration_ms"], 3)) for one in shown[text]]
        if len(seen) != len(statements) or not all(
                part in query and errno == number and least <= ms
                for (query, errno, ms), (part, number, least) in zip(seen, statements)):
            found.append(f"{text!r}: {seen}")
    return found


@pytest.mark.parametrize("disabled", ["sp", "", "call", "sp,call,admin,slave"])
def test_sql_execute(client, traced, disabled):
    prepare_executes(client)
    client.query(f"set log_slow_disabled_statements = '{disabled}'")
    shown = each_shown(traced, client, EXECUTES, client.query)
    assert not complaints_of(shown, EXECUTES), "\n".join(complaints_of(shown, EXECUTES))
    assert not traced.lost()


def test_counts_what_the_server_counts(maria, traced):
    """As questions, for each kind of command: COM_INIT_DB, which a client sends for use, parse errors, parts of a text."""
    def counted():
        return {name.decode(): int(value) for name, value in client.rows("show session status /* counts */")
                if name in (b"Questions", b"Com_change_db")}

    with maria.connect(database="d") as client:
        prepared = client.prepare("select ? + 1")
        before = counted()
        for command in (
                lambda: client.use("mysql"), lambda: client.use("nosuch"), lambda: client.query("use d"),
                lambda: client.query("selec"), lambda: client.query(""), lambda: client.query("/* nothing */"),
                lambda: client.query("select 1; select 2; select 3"), lambda: client.query("select 1; selec; select 2"),
                lambda: client.query("call several()"), lambda: prepared.execute(1), lambda: client.prepare("select 2"),
                lambda: client.prepare("selec ?"), lambda: client.query("prepare p from 'select 3'"),
                lambda: client.query("execute p"), client.ping):
            with contextlib.suppress(ServerError):
                command()
        after = counted()
    stopped(traced)
    shown = [one for one in traced.statements if one["connection_id"] == client.id and "counts */" not in one.get("query", "")]
    assert len(shown) == after["Questions"] - before["Questions"] - 1, traced.said()
    used = [one for one in shown if "query" not in one]
    assert [(one["status"], one.get("errno"), one.get("sqlstate")) for one in used] == [
        ("ok", None, None), ("error", 1049, "42000")]
    assert len(used) + 1 == after["Com_change_db"] - before["Com_change_db"]
    assert [one["status"] for one in shown if one.get("query", "").startswith("selec")
            and not one["query"].startswith("select")] == ["error", "error"]


def test_sql_execute_as_the_slow_log_has_it(marias):
    """The table itself, held against the server: what it logs of each text has the texts that must be shown."""
    server = marias()
    with server.connect() as client:
        for text in SETUP:
            client.query(text)
        client.use("d")
        prepare_executes(client)
        client.ping()	# what comes before is in the log
        for text, statements in EXECUTES.items():
            offset = server.log_size()
            try:
                client.query(text)
            except ServerError:
                pass
            client.ping()
            logged = [one.text.decode() for one in records(server.read_log(offset))]
            for part, errno, _ in statements:
                # One that failed before anything ran is in no log.
                assert errno in (1243, 1210, 1064) or any(part in one for one in logged), f"{text!r}: {logged}"


PREPARED = {
    "call executes()": [("call executes()", 0, 20)],
    "call several()": [("call several()", 0, 10)],
    "call dynamic()": [("call dynamic()", 0, 0)],
    "call nested(3)": [("call nested(3)", 0, 0)],
    "call fails()": [("call fails()", 1146, 0)],
    "select twice(2)": [("select twice(2)", 0, 0)],
    "insert into audited values (1), (2)": [("insert into audited", 0, 0)],
    "select sleep(0.02)": [("select sleep(0.02)", 0, 20)],
}


@pytest.mark.parametrize("disabled", ["sp", "", "call", "sp,call,admin,slave"])
def test_prepared_call_is_one(client, traced, disabled):
    prepare_executes(client)
    client.query(f"set log_slow_disabled_statements = '{disabled}'")
    shown = each_shown(traced, client, PREPARED, lambda text: client.prepare(text).execute())
    assert not complaints_of(shown, PREPARED), "\n".join(complaints_of(shown, PREPARED))


def test_rows_of_prepared_ones_without_any(client, traced):
    """The server remembers the previous text, of any kind."""
    none, changes = client.prepare("select id from item where id < 0 /* p */"), client.prepare("do 1 /* p */")
    for before in ("select 1", "set @n = 1", "insert into sink values (5, 'e')"):
        client.query(before)
        none.execute()
        changes.execute()
    ended(traced, client)
    assert [one.get("rows") for one in with_tag(traced, "/* p */")] == [0] * 6


@pytest.mark.parametrize("what", ["cursor", "failed execute", "unknown statement"])
def test_idle_connection_is_not_running(maria, client, tool, what):
    traced = tool("mysql", "-p", maria.pid, "-m", "0", "--json")
    client.query("select 1 /* first */")
    if what == "cursor":
        cursor = client.prepare("select 1 union select 2")
        cursor.execute(cursor=True)
        cursor.fetch(1)
    elif what == "failed execute":
        assert client.failing("execute nosuch") == 1243
    else:
        client.send(EXECUTE, b"\xff\xff\0\0\0\1\0\0\0")
        with pytest.raises(ServerError):
            client.results()
    wait_for(lambda: len(traced.statements) >= 2, what="what it shows")
    stopped(traced, idle=True)


def test_running_at_the_start_is_no_loss(maria, client, tool):
    with maria.connect() as other:
        client.query("select get_lock('start', 0)")
        other.send(QUERY, b"select get_lock('start', 60)")
        wait_for(lambda: client.rows("select 1 from information_schema.processlist where state = 'User lock'"), what="it to wait")
        traced = tool("mysql", "-p", maria.pid, "-m", "0", "--json", "--strict")
        client.query("select release_lock('start') /* seen */")
        other.results()
        other.ping()
        client.ping()
        stopped(traced)
    assert traced.summary["boundary"] == 1 and [one["query"] for one in traced.statements] == [
        "select release_lock('start') /* seen */"], traced.said()


def test_prepared_again_by_the_server(client, traced):
    client.query("create table again (n int)")
    select = client.prepare("select * from again /* again */")
    client.query("drop table again; create table again (n int, m int)")
    select.execute()
    client.query("drop table again")
    one = only(ended(traced, client), "/* again */")
    assert one["status"] == "ok"


def test_commands_without_a_statement(client, traced):
    client.ping()
    client.simple(STATISTICS)
    client.prepare("select 1 /* only prepared */").close()
    with pytest.raises(ServerError):
        client.prepare("selec ?")
    client.send(EXECUTE, b"\xff\xff\0\0\0\1\0\0\0")	# an unknown one
    with pytest.raises(ServerError):
        client.results()
    client.simple(RESET_CONNECTION)
    client.query("select 1 /* after */")
    ended(traced, client)
    unknown, after = traced.statements
    assert (unknown["status"], unknown["errno"]) == ("error", 1243)
    assert unknown.get("query", "65535").startswith("65535"), "the server takes its number for the text"
    assert "/* after */" in after["query"] and not traced.lost()


def test_empty_text(client, traced):
    for text in ("", ";"):
        assert client.failing(text) == 1065
    ended(traced, client)
    assert [(one["query"], one["errno"]) for one in traced.statements] == [("", 1065)] * 2


def test_long_and_odd_texts(client, traced):
    client.query("select '" + "x" * 100_000 + "' /* end */")
    client.query(b"select 'nul \0 and \x01\x1b[31m' /* nul */")
    client.query("select 'Grüße, 世界 🐘' /* utf-8 */")
    client.query("set names latin1")
    client.query(b"select 'caf\xe9' /* latin1 */")
    ended(traced, client)
    long = only(traced, "xxx")
    assert long["truncated"] and long["query_bytes"] == 100_019 and long["query"] == "select '" + "x" * 4088
    assert only(traced, "/* nul */")["query"] == "select 'nul \0 and \x01\x1b[31m' /* nul */"
    assert only(traced, "/* utf-8 */")["query"] == "select 'Grüße, 世界 🐘' /* utf-8 */"
    assert mariadb_oracle.raw_text(only(traced, "/* latin1 */")) == b"select 'caf\xe9' /* latin1 */"


# --- ends

def sleeping(client, number, state="User sleep"):
    query = f"select 1 from information_schema.processlist where id = {number} and state = '{state}'"
    wait_for(lambda: client.rows(query), 60, f"connection {number} to sleep")


@pytest.mark.parametrize("what, errnos", [("query", (1317,)), ("connection", (1317, 1927))])
def test_kill(maria, client, traced, what, errnos):
    with maria.connect() as victim:
        victim.send(3, b"select sleep(60) /* victim */")
        sleeping(client, victim.id)
        client.query(f"kill {what} {victim.id}")
        with pytest.raises((ServerError, ConnectionError)):
            victim.results()
    wait_for(lambda: with_tag(traced, "/* victim */"), what="the killed statement")
    one = only(ended(traced, client), "/* victim */")
    assert one["status"] == "error" and one["errno"] in errnos and one["duration_ms"] < 60_000


def test_client_gone_in_mid_statement(maria, client, traced):
    victim = maria.connect()
    client.query("do get_lock('gone', 0)")
    victim.send(3, b"select get_lock('gone', 600) /* gone */")
    sleeping(client, victim.id, "User lock")
    victim.drop()
    time.sleep(0.1)
    client.query("do release_lock('gone')")
    wait_for(lambda: victim.id not in maria.clients(), what="the connection to end")
    assert only(ended(traced, client), "/* gone */")["duration_ms"] >= 100


def test_server_stops_in_mid_statement(marias, tool):
    server = marias(**QUIET)
    traced = tool("mysql", "-p", server.pid, "-m", "0", "--json")
    with server.connect() as victim, server.connect() as watcher:
        victim.query("select 1 /* before */")
        victim.send(3, b"select sleep(60) /* cut short */")
        sleeping(watcher, victim.id)
        server.stop()
    stopped(traced)
    only(traced, "/* before */")
    assert len(with_tag(traced, "/* cut short */")) <= 1


# --- ps

def test_sessions(maria, client):
    """As the process list has them; a client that changes the time that the server shows does not change a duration."""
    with maria.connect(database="d") as moved, maria.connect() as sleeps, maria.connect() as idle:
        idle.query("begin")
        moved.query("set timestamp = 795624301")
        for one in (moved, sleeps):
            one.send(QUERY, b"select sleep(600)")
            sleeping(client, one.id)
        wait_for(lambda: min(float(ms) for ms, in client.rows("select time_ms from information_schema.processlist where "
                                                              f"id in ({moved.id}, {sleeps.id})")) > 50, what="50 ms")
        before = processes(client)
        shown = {one["connection_id"]: one for one in parsed(run("ps", "--json", "-p", maria.pid).stdout.splitlines())
                 if one["type"] == "session"}
        after = processes(client)
        for one in (moved, sleeps):
            client.query(f"kill query {one.id}")
    assert {moved.id, sleeps.id, idle.id} <= set(shown) <= set(before)
    for one in (moved, sleeps):
        seen = shown[one.id]
        assert (seen["state"], seen["query"], seen["user"]) == ("active", "select sleep(600)", "root"), seen
        assert seen.get("database", "") == before[one.id]["db"], seen
    assert before[sleeps.id]["time_ms"] - 1 <= shown[sleeps.id]["duration_ms"] <= after[sleeps.id]["time_ms"] + 1
    assert 50 < shown[moved.id]["duration_ms"] < shown[sleeps.id]["duration_ms"] + 5000
    assert "duration_ms" not in shown[idle.id]


def processes(client):
    """The process list by connection."""
    rows = client.rows("select id, ifnull(db, ''), time_ms from information_schema.processlist where user = 'root'")
    return {int(number): {"db": db.decode(), "time_ms": float(ms)} for number, db, ms in rows}


def test_applier():
    """What a replica's thread runs, and who blocks it."""
    with Maria(log_bin="bin", server_id="1", binlog_format="STATEMENT").init() as source, Maria(server_id="2").init() as replica:
        source.start(), replica.start()
        source.query("create user copies identified by ''", "grant replication slave on *.* to copies")
        replica.query(f"change master to master_host='127.0.0.1', master_port={source.port}, master_user='copies'", "start slave")
        source.query("create database d", "create table d.x (a int primary key, b int) engine=innodb", "insert into d.x values (1, 1)")
        with replica.connect() as holds, replica.connect() as admin:
            wait_for(lambda: fetched_row(holds), what="the row")
            holds.query("begin")
            holds.query("select * from d.x for update")
            source.query("update d.x set b = 2")
            wait_for(lambda: admin.rows("select 1 from information_schema.processlist where user = 'system user' and info like 'update%'"),
                     what="the applier to run it")
            expected = dict(admin.rows("select info, id from information_schema.processlist where user = 'system user'"))
            shown = wait_for(lambda: [one for one in sessions("-p", str(replica.pid)) if "wait" in one], what="its wait to be shown")
            number = int(holds.rows("select connection_id()")[0][0])
    assert [(one["query"], one["connection_id"], one["state"], one["wait"], one["blocked_by"]) for one in shown] == [
        ("update d.x set b = 2", int(expected[b"update d.x set b = 2"]), "active", "Lock:row", [number])]


def fetched_row(client):
    try:
        return client.rows("select * from d.x")
    except ServerError:
        return None



KILLED = [	# what a connection sends, of which the last text is not answered, and the one that was running
    (["select sleep(600) /* alone */"], "select sleep(600) /* alone */"),
    (["begin", "insert into d.item (id) values (1001)", "do sleep(600) /* in a transaction */"], "do sleep(600) /* in a transaction */"),
    (["select 1 /* earlier */", "do benchmark(1000000000000, 1)"], "do benchmark(1000000000000, 1)"),
    (["select 1 /* first */; select sleep(600) /* second */"], "select sleep(600) /* second */"),
]


@pytest.mark.parametrize("how", ["SIGKILL", "SIGSEGV", "SIGABRT"])
@pytest.mark.parametrize("settings", [{}, POOL, {"force": True}], ids=["", "pool", "fallbacks"])
def test_server_dies(marias, tool, how, settings):
    """What runs then ends as failed, with text and client; what is open is rolled back; idle sessions ran nothing."""
    force = ALL_FALLBACKS if "force" in settings else []
    server = marias(**QUIET, **({} if force else settings))
    with server.connect() as client:
        for text in SETUP:
            client.query(text)
    traced = tool("mysql", "-p", server.pid, "-m", "0", "--json", *force)
    transactions = tool("transactions", "-p", server.pid, "-m", "0", "--json", *force, kind=Transactions)
    clients = [server.connect(database="d") for _ in KILLED]
    idle, waiting, watcher = (server.connect(database="d") for _ in range(3))
    idle.query("select 1 /* idle */")
    waiting.query("begin")
    waiting.query("insert into item select 1002, sleep(0.1) /* idle in a transaction */")
    for one, (texts, _) in zip(clients, KILLED):
        for text in texts[:-1]:
            one.query(text)
        one.send(QUERY, texts[-1].encode())
    wait_for(lambda: int(watcher.rows("select count(*) from information_schema.processlist where command = 'Query' and "
                                      "(state = 'User sleep' or info like 'do bench%')")[0][0]) == len(KILLED), what="all to run")
    watcher.ping()
    server.process.send_signal(getattr(signal, how))
    server.process.wait()
    traced.wait_for(lambda _: len([one for one in traced.statements if one.get("died")]) == len(KILLED), what="what died")
    stopped(traced)
    died = {one["query"]: one for one in traced.statements if one.get("died")}
    assert set(died) == {running for _, running in KILLED}
    for one, (_, text) in zip(clients, KILLED):
        seen = died[text]
        assert (seen["status"], seen["connection_id"], seen["user"], seen["database"], seen["client"]) == (
            "error", one.id, "root", "d", "localhost"), seen
        assert "rows" not in seen and "errno" not in seen, seen
    assert not running(traced) and not any("status" not in one for one in traced.statements)
    assert transactions.stop() == 0
    rolled_back = {one["connection_id"]: one for one in transactions.ended(state="rollback")}
    for one, count, text in ((clients[1], 3, KILLED[1][1]), (waiting, 2, "insert into item select 1002, sleep(0.1) /* idle in a transaction */")):
        seen = rolled_back.get(one.id)
        if one is waiting and settings is POOL and not seen:	# its thread has served another connection since
            assert transactions.summary["lost"]["start_without_end"] == 1, transactions.said()
        else:
            assert seen and (seen["statements"], seen["query"], seen["user"]) == (count, text, "root"), seen


# --- the thread pool

def test_thread_pool(marias, tool):
    server = marias(**QUIET, **POOL)
    server.query("create database d; use d; create table t (n int primary key auto_increment, b text)")
    traced = tool("mysql", "-p", server.pid, "-m", "0", "--json")
    threads = [threading.Thread(target=insert_many, args=(server, name)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stopped(traced)
    for name in "abcd":
        mine = [one["query"] for one in with_tag(traced, f"/* {name} */")]
        assert mine == [f"insert into t (b) values ('x') /* {name} */", f"insert into t (b) values (?) /* {name} */"] * 50
        assert len({one["connection_id"] for one in with_tag(traced, f"/* {name} */")}) == 1
    assert len(traced.statements) == 400, traced.said()


def insert_many(server, name):
    with server.connect(database="d") as client:
        insert = client.prepare(f"insert into t (b) values (?) /* {name} */")
        for _ in range(50):
            client.query(f"insert into t (b) values ('x') /* {name} */")
            insert.execute("y")


def test_thread_pool_goes_on_with_a_packet(marias, tool):
    """Its last statement is suspended and resumed like one that stands alone: it began before that."""
    server = marias(**QUIET, **POOL)
    server.query("create database d; use d; create table t (n int primary key auto_increment, b text)")
    traced = tool("mysql", "-p", server.pid, "-m", "0", "--json")
    together = threading.Barrier(8)

    def work():
        with server.connect(database="d") as client:
            for _ in range(40):
                together.wait(60)
                client.query("select 1 /* first */; insert into t (b) select sleep(0.02) /* last */")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stopped(traced)
    last = with_tag(traced, "/* last */")
    assert len(last) == len(with_tag(traced, "/* first */")) == 320, traced.said()
    short = [one["duration_ms"] for one in last if one["duration_ms"] < 20]
    assert not short, f"{len(short)} of {len(last)} are said to be shorter than they slept: {short[:10]}"


# --- finding servers

def test_default_form(maria, client, tool):
    traced = tool("-p", maria.pid)
    client.query("select sleep(0.02) /* slow */")
    client.query("select sleep(0) /* fast? */")
    ended(traced, client)
    slow = [row for row in rows(traced) if "/* slow */" in row["query"]]
    assert len(slow) == 1 and int(slow[0]["pid"]) == maria.pid and float(slow[0]["ms"]) >= 20, traced.said()


def test_finds_mariadb_and_postgres_together(maria, client, postgres, tool):
    traced = tracing(tool, pids=[maria.pid, postgres.pid])
    client.query("select 1 /* of mariadb */")
    postgres.psql("select 1 /* of postgres */")
    finished(traced, client)
    assert only(traced, "of mariadb")["server"]["engine"] == "mariadb"
    assert only(traced, "of postgres")["server"]["engine"] == "postgresql"


@pytest.mark.parametrize("name", ["mysql", "mariadb"])
def test_only_this_kind(maria, client, postgres, tool, name):
    traced = tracing(tool, name, pids=[maria.pid])
    client.query("select 1 /* of mariadb */")
    postgres.psql("select 1 /* of postgres */")
    finished(traced, client)
    only(traced, "of mariadb")
    assert not with_tag(traced, "of postgres")


@pytest.mark.alone
def test_postgres_only(maria, client, postgres, tool):
    traced = tracing(tool, "postgres", pids=[postgres.pid])
    client.query("select 1 /* of mariadb */")
    postgres.psql("select 1 /* of postgres */")
    finished(traced, client)
    only(traced, "of postgres")
    assert not with_tag(traced, "of mariadb")


def test_one_of_two_servers(maria, client, marias, tool):
    other = marias(**QUIET)
    traced = tool("-p", other.pid, "-m", "0", "--json")
    client.query("select 1 /* foreign */")
    other.query("select 1 /* mine */")
    ended(traced, client)
    assert only(traced, "mine")["pid"] == other.pid
    assert not with_tag(traced, "foreign")


@pytest.mark.alone
def test_two_servers(maria, client, marias, tool):
    other = marias(**QUIET)
    traced = tracing(tool, "mysql", pids=[maria.pid, other.pid])
    client.query("select 1 /* one */")
    other.query("select 1 /* other */")
    finished(traced, client)
    assert (only(traced, "/* one */")["pid"], only(traced, "/* other */")["pid"]) == (maria.pid, other.pid)


@pytest.mark.alone
def test_server_started_later(maria, marias, tool):
    later = marias(start=False, **QUIET)
    traced = tracing(tool, "mysql", pids=[maria.pid])
    later.start()
    later.query("select 1 /* later */")
    finished(traced)
    assert only(traced, "/* later */")["pid"] == later.pid


@pytest.mark.alone
def test_restarted_server(marias, tool):
    server = marias(**QUIET)
    traced = tracing(tool, "mysql", pids=[server.pid])
    server.query("select 1 /* before */")
    server.stop()
    server.start()
    server.query("select 1 /* after */")
    finished(traced)
    assert only(traced, "/* before */")["pid"] != only(traced, "/* after */")["pid"] == server.pid


@pytest.mark.alone
def test_server_of_another_file_started_later(marias, server_file, tool):
    server = marias(start=False, server=server_file("mariadbd"), **QUIET)
    traced = tool("mysql", "-m", "0", "--json", attached=False)
    traced.wait_for(lambda _: traced.stderr, 60, "its first words")
    server.start()
    traced.wait_for(lambda _: re.search(rf"tracing .*\b{server.pid}\b", traced.stderr), 60, "the server to be traced")
    with server.connect() as client:
        version = client.rows("select version() /* another file */")[0][0].decode()
    assert f"tracing MariaDB {version}, pid {server.pid}" in traced.stderr, traced.stderr
    assert only(finished(traced), "/* another file */")["pid"] == server.pid


def test_path_before_the_server_runs(marias, server_file, tool):
    path = server_file("mariadbd")
    server = marias(start=False, server=path, **QUIET)
    traced = tool("-x", path, "-m", "0", "--json", attached=False)
    traced.wait_for(lambda _: traced.stderr, 60, "its first words")
    server.start()
    server.query("select 1 /* by path */")
    finished(traced)
    assert only(traced, "/* by path */")["pid"] == server.pid


def test_path_of_debians_server(maria, client, tool):
    traced = tracing(tool, "-x", maria.server, pids=[maria.pid])
    client.query("select 1 /* by path */")
    assert only(finished(traced, client), "/* by path */")["pid"] == maria.pid


@pytest.fixture
def server_file(tmp_path):
    """server_file(NAME) copies Debian's server, an inode of its own, under another name."""
    need_maria()
    for parent in (tmp_path, *tmp_path.parents):
        if parent.owner() == "root" and str(parent).startswith("/tmp/") and os.geteuid() == 0:
            parent.chmod(parent.stat().st_mode | 0o055)

    def make(name):
        path = tmp_path / name
        shutil.copy(SERVER, path)
        path.chmod(0o755)
        return str(path)

    return make


@pytest.mark.parametrize("name", ["mysqld", "renamed"])
def test_found_under_another_name(marias, server_file, tool, name):
    server = marias(server=server_file(name), **QUIET)
    traced = tool("mysql", "-p", server.pid, "-m", "0", "--json")
    server.query("select 1 /* other name */")
    assert only(stopped(traced), "/* other name */")["pid"] == server.pid


@pytest.mark.alone
def test_found_though_its_file_was_deleted(marias, server_file, tool):
    path = server_file("mariadbd")
    server = marias(server=path, **QUIET)
    os.unlink(path)
    traced = tracing(tool, "mysql", pids=[server.pid])
    server.query("select 1 /* deleted */")
    assert only(finished(traced), "/* deleted */")["pid"] == server.pid


@pytest.mark.alone
def test_found_though_run_through_the_loader(marias, tool):
    loader = os.path.realpath("/lib64/ld-linux-x86-64.so.2")
    if not os.path.exists(loader):
        pytest.skip("no loader of x86-64")
    server = marias(command=[loader, SERVER], **QUIET)
    traced = tracing(tool, "mysql", pids=[server.pid])
    server.query("select 1 /* by the loader */")
    assert only(finished(traced), "/* by the loader */")["pid"] == server.pid


def test_says_how_it_traces(maria, client, tool):
    traced = tool("mysql", "-p", maria.pid, "-m", "0", "--json")
    ended(traced, client)
    assert "symbols" in traced.stderr and str(maria.pid) in traced.stderr and "MariaDB" in traced.stderr


def test_many_connections_and_nothing_lost(maria, traced):
    for n in range(100):
        with maria.connect() as client:
            client.query(f"select {n} /* one of many */")
    stopped(traced)
    assert [one["query"] for one in traced.statements] == [f"select {n} /* one of many */" for n in range(100)]


def test_server_answers_after_the_tool_was_killed(maria, client, tool):
    traced = tool("mysql", "-p", maria.pid, "-m", "0", "--json")
    client.query("select 1")
    traced.kill()
    assert client.rows("select 2") == [(b"2",)]
    again = tool("mysql", "-p", maria.pid, "-m", "0", "--json")
    client.query("select 1 /* again */")
    only(ended(again, client), "/* again */")


# --- ps

PROCESSES = "select id, user, host, db, command, info, time_ms from information_schema.processlist where id <> connection_id()"


def test_sessions(maria):
    """ps, and the server's own process list."""
    with maria.connect() as idle, maria.connect() as begun, maria.connect() as active, maria.connect() as asks:
        idle.query("select 1")
        begun.query("begin")
        thread = threading.Thread(target=active.failing, args=["select sleep(600) /* caf\u00e9 */"])
        thread.start()
        wait_for(lambda: any("sleep" in one.get("query", "") for one in sessions("-p", str(maria.pid))), what="the statement")

        def alone():	# a client has its answer, or is gone, before the server says that the connection sleeps, or has ended
            rows = [[value if value is None else value.decode() for value in row] for row in asks.rows(PROCESSES)]
            return len(rows) == 3 and sorted(row[4] for row in rows) == ["Query", "Sleep", "Sleep"] and rows
        rows = {int(row[0]): row for row in wait_for(alone, what="these connections alone")}
        listed = {one["connection_id"]: one for one in sessions("-p", str(maria.pid))}
        asks.query(f"kill query {next(number for number, row in rows.items() if row[4] == 'Query')}")
        thread.join()
    for number, (_, user, host, database, command, info, time_ms) in rows.items():
        one = listed[number]
        assert (one["user"], one["client"], one.get("database")) == (user, host.split(":")[0], database), (one, host)
        assert one.get("query") == info and one["pid"] == one["server"]["pid"], (one, info)
        assert (one["state"] == "active") == (command == "Query") == ("duration_ms" in one), one
    assert sorted(one["state"] for number, one in listed.items() if number in rows) == ["active", "idle", "idle in transaction"]


# --- transactions

def test_open_transactions(maria, tool):
    """One that began before tracing has no begin; one that a client leaves is rolled back; one is open at the end."""
    with maria.connect(database="d") as before, maria.connect(database="d") as client, maria.connect(database="d") as leaving:
        ids = [int(one.rows("select connection_id()")[0][0]) for one in (before, client, leaving)]
        before.query("begin")
        traced = tool("transactions", "mysql", "0", "-p", maria.pid, "--json", kind=Transactions)
        before.query("commit")
        one = traced.nth(1, connection_id=ids[0])
        assert one["state"] == "commit" and not {"begin", "duration_ms", "statements", "idle_ms"} & one.keys() and "end" in one, one
        leaving.query("begin")
        leaving.query("select 'leaves'")
        leaving.close()
        one = traced.nth(1, connection_id=ids[2])
        assert (one["state"], one["statements"], one["user"]) == ("rollback", 2, "root"), one
        client.query("begin")
        client.failing("select nothing")
        # its end comes after the answer
        wait_for(lambda: traced.process.send_signal(signal.SIGUSR1) or
                 any(one["state"] == "idle" and one["statements"] == 2 for one in traced.open.values()), what="it to be idle", every=0.2)
        traced.complete()
    assert [(one["state"], one["user"], one["statements"]) for one in traced.open.values()] == [("idle", "root", 2)]
