# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
--nested: statements in procedures, functions, triggers and events of MariaDB and MySQL. The oracles are the servers' Performance
Schema, which has all statements with what they are nested in, and MariaDB's slow log, which has those in procedures that did
not fail.
"""

import json
import os
import re
import statistics
import threading
from collections import Counter
from datetime import datetime

import pytest

from cluster import wait_for
from mariadb_client import ServerError
from products import KINDS, kind	# the fixture
from releases import Mysql9
from statements import only, stopped
from tool import BUILD, Announced, Tool, run

MARIADB = [name for name in KINDS if name != "MySQL 9"]	# whose log has statements in routines, and which has a query cache
LEVELS = 8	# that are followed
PERFORMANCE_SCHEMA = {"performance_schema": "ON", "performance_schema_events_statements_history_long_size": "20000",
                      "performance_schema_consumer_events_statements_current": "ON",
                      "performance_schema_consumer_events_statements_history_long": "ON",
                      "performance_schema_consumer_events_transactions_current": "OFF",	# or statements are nested in these
                      "performance_schema_max_statement_stack": "25"}
ENTRY = re.compile(rb"^# Query_time: (?P<time>[\d.]+) [^\n]*Rows_sent: (?P<sent>\d+) [^\n]*\n(?:# [^\n]*\n)*(?:use [^\n]*;\n)?SET [^\n]*timestamp=\d+;\n(?P<text>.*?);\n"
                   rb"(?=# |\Z)", re.M | re.S)
ROUTINES = (
    "create procedure put(a int) begin insert into t(s) values (concat('v', a)); select * from t where i = a; end",
    "create function f(x int) returns int begin declare r int; select count(*) into r from t where i < x; return r; end",
    "create procedure outside(a int) begin declare v int default 5; call put(a); update t set s = v where i = a; "
    "set v = f(3); if f(4) > 0 then select f(v); end if; do sleep(0.02); end",
    "create procedure fails() begin insert into t values (1, 'x'); select 'not reached'; end",
    "create procedure handled() begin declare continue handler for sqlexception select 'handled'; "
    "insert into t values (1, 'x'); call fails(); select 'after'; end",
    "create procedure prepares(a int) begin prepare q from 'select ? + 1 /* prepared */'; set @a = a; execute q using @a; "
    "deallocate prepare q; end",
    "create procedure scans() begin declare done int default 0; declare x int; declare c cursor for select i from t where i < 4; "
    "declare continue handler for not found set done = 1; open c; while not done do fetch c into x; do f(x); end while; close c; end",
    "create procedure recurses(n int) begin if n > 0 then insert into t(s) values (n); call recurses(n - 1); end if; end",
    "create trigger inserted before insert on log for each row begin insert into t(s) values (new.s); set new.s = f(3); "
    "insert into t(s) values (f(3)); end",
    "create procedure traps() begin insert into log(s) values ('x'), ('y'); end",
)
WORK = ("call outside(1)", "call fails()", "call handled()", "call prepares(5)", "call scans()", "call recurses(3)", "call recurses(12)",
        "insert into log(s) values ('a'), ('b')", "select f(2), f(3)", "select 1; call put(3); select 2", "call traps()")
FAILS = {"call fails()": 1062}


@pytest.fixture(scope="module")
def server(kind):
    logs = {} if kind is Mysql9 else {"log_slow_disabled_statements": ""}
    with kind(**PERFORMANCE_SCHEMA, **logs, event_scheduler="ON").init() as one:
        one.start()
        one.query("set global log_bin_trust_function_creators = 1", "create user planner@localhost", "create user app@localhost",
                  "create database app", "grant all on *.* to planner@localhost", "grant all on app.* to app@localhost",
                  "create table app.t (i int primary key auto_increment, s varchar(20)) engine=innodb",
                  "create table app.log (i int primary key auto_increment, s varchar(20)) engine=innodb",
                  "insert into app.t(s) values ('a'), ('b'), ('c'), ('d')")
        with one.connect(database="app") as client:
            for text in ROUTINES:
                client.query(text)
        yield one


def work(client, texts=WORK):
    client.query("set max_sp_recursion_depth = 20")
    for text in texts:
        try:
            client.query(text)
        except ServerError as error:
            assert error.number == FAILS.get(text), (text, error)


def plain(text):
    """A text without what MariaDB, and at times MySQL, has in place of a variable of a routine."""
    return re.sub(r" NAME_CONST\('(\w+)',(?:'[^']*'|[^()])*?\)", r"\1", text)


def history(server, *connections):
    """{connection: [(level, text, text of the caller, number of the error, rows read, ms)]}, as they ended.
    MySQL's number of rows read has those of the routine's earlier statements, MariaDB's in part those of routines that it calls."""
    found = {}
    for connection in connections:
        rows = [dict(zip(("id", "name", "within", "text", "errno", "examined", "ns"),
                         (value and value.decode() for value in row))) for row in server.query(
            "select event_id, event_name, nesting_event_id, sql_text, mysql_errno, rows_examined, timer_wait / 1000 "
            "from performance_schema.events_statements_history_long join performance_schema.threads using (thread_id) "
            f"where processlist_id = {connection} order by timer_end, event_id desc")[0].rows]
        by_id = {row["id"]: row for row in rows}
        callers_of_all = {row["within"] for row in rows}
        shown = found[connection] = []
        for row in rows:
            callers, within = [], row
            while within := by_id.get(within["within"]):
                if within["name"] == "statement/sp/stmt" or within["within"] not in by_id:
                    callers.append(within["text"])
            if not callers or row["name"] == "statement/sp/stmt":
                shown.append((len(callers), row["text"], callers[0] if callers else None, int(row["errno"]),
                              None if isinstance(server, Mysql9) or row["id"] in callers_of_all else int(row["examined"]), float(row["ns"]) / 1e6))
    return found


def traced_of(traced, connection):
    """The same of the tool."""
    return [(one.get("level", 0), one.get("query"), one.get("caller"), one.get("errno", 0), one.get("rows_examined"), one["duration_ms"])
            for one in traced.statements if one["connection_id"] == connection]


def compare(traced, judged):
    """Compare what the tool has of a connection with what the Performance Schema has, one by one."""
    judged = [one for one in judged if one[0] <= LEVELS and one[1]]
    assert len(traced) == len(judged), "\n".join(map(str, [*traced, "", *judged]))
    for one, its in zip(traced, judged):
        (level, text, caller, errno, examined, ms), (want, its_text, its_caller, its_errno, its_examined, its_ms) = one, its
        # It may have the statement that is prepared, or its name.
        if "/* prepared */" in text + its_text:
            assert re.match(r"prepare q|execute q|select \? \+", its_text) and re.match(r"(deallocate )?prepare q|select 5", text), (one, its)
            its_text = plain(text)
        assert (level, errno) == (want, its_errno), (one, its)
        assert not level or its_examined is None or examined == its_examined, (one, its)
        # Of a text with several statements it has the rest for each.
        assert plain(text) == its_text or (level == 0 and its_text.startswith(text)), (one, its)
        assert caller is None if not level else plain(caller) == its_caller or its_caller.startswith(caller), (one, its)
        # It begins before and ends behind what is measured here.
        assert not level or ms <= its_ms + 0.001, (one, its)


def test_statements(server, tool):
    """None is missing and none invented; levels, callers, failures and rows are those of the Performance Schema."""
    traced = tool("-p", server.pid, "-m", "0", "--json", "--nested")
    with server.connect(database="app") as client:
        connection = int(client.rows("select connection_id()")[0][0])
        work(client)
        judged = history(server, connection)[connection]
        stopped(traced)
    mine = traced_of(traced, connection)
    first = next(i for i, one in enumerate(judged) if one[1].startswith("set max_sp"))
    compare(mine[next(i for i, one in enumerate(mine) if one[1].startswith("set max_sp")):], judged[first:])
    assert {one[0] for one in mine} == set(range(LEVELS + 1)) and max(one[0] for one in judged) > LEVELS
    assert Counter(one[3] for one in mine if one[0])[1062] == 4, mine
    known = {"select * from t where i = a": (1, 1), "update t set s = v where i = a": (1, 1)}
    rows = {(plain(one["query"]), one["rows"], one["rows_examined"]) for one in traced.statements if plain(one["query"]) in known}
    assert rows == {(text, *numbers) for text, numbers in known.items()}, rows


@pytest.mark.parametrize("kind", MARIADB, indirect=True)
def test_slow_log(server, tool):
    """Texts, rows and ends are those of MariaDB's slow log, which has what succeeded in procedures."""
    server.rest()
    before = server.log_size()
    traced = tool("-p", server.pid, "-m", "0", "--json", "--nested")
    with server.connect(database="app") as client:
        connection = int(client.rows("select connection_id()")[0][0])
        work(client, [text for text in WORK if "prepares" not in text and "(12)" not in text])
    server.rest()
    stopped(traced)
    mine = [one for one in traced.statements if one["connection_id"] == connection]
    # It has no statement in a function or a trigger, no failed one in a routine, and the time since the CALL began.
    triggered = ("insert into log", "insert into t(s) values (f(3))", "insert into t(s) values (new.s)")
    mine = [one for one in mine if not one.get("level") or (one["status"] == "ok" and not one.get("caller", "").startswith(triggered[0]) and
                                                            not one["query"].startswith(("select count(*) into r", *triggered[1:])))]
    logged = [(match["text"], 1000 * float(match["time"]), int(match["sent"])) for match in ENTRY.finditer(server.read_log(before))]
    first = next(i for i, one in enumerate(logged) if one[0] == b"select connection_id()")
    logged = [one for one in logged[first:] if not one[0].startswith(b"# admin")]
    assert [one["query"].encode() for one in mine] == [text for text, ms, sent in logged]
    later, begin = [], None
    for one, (text, ms, sent) in reversed(list(zip(mine, logged))):
        assert not sent or one["rows"] == sent, (one, sent)
        if not one.get("level"):
            begin = datetime.fromisoformat(one["time"][:26])
        elif begin:
            end = 1000 * (datetime.fromisoformat(one["time"][:26]) - begin).total_seconds() + one["duration_ms"]
            later.append(end - ms)
    # What is measured here ends when the log has been written.
    assert min(later) > -0.1 and statistics.median(later) < 1, later


def test_clients(server, tool):
    """Sixteen at once, whose levels and callers are their own."""
    traced = tool("-p", server.pid, "-m", "0", "--json", "--nested")
    clients = [server.connect(database="app") for _ in range(16)]
    try:
        ids = [int(client.rows("select connection_id()")[0][0]) for client in clients]
        texts = [text for text in WORK if "prepares" not in text]
        threads = [threading.Thread(target=work, args=(client, texts)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        judged = history(server, *ids)
    finally:
        for client in clients:
            client.close()
    stopped(traced)
    for connection in ids:
        compare(traced_of(traced, connection), judged[connection])


def test_client(server, tool):
    """The user is that of the session, not the definer; the filters apply; the caller is redacted, too."""
    traced = tool("-p", server.pid, "-m", "0", "--json", "--nested", "--user", "app", "--redact", "--match", "put")
    with server.connect(user="app", database="app") as client:
        client.query("call put(7)")
    with server.connect(user="planner", database="app") as client:
        client.query("call put(7)")
    stopped(traced)
    assert [(one.get("level"), one["user"], one["database"], one["client"], one.get("caller")) for one in traced.statements] == \
        [(1, "app", "app", "localhost", "call put(?)")] * 2 + [(None, "app", "app", "localhost", None)], traced.statements
    assert "7" not in "".join(one["query"] for one in traced.statements).replace("NAME_CONST(?,?)", "")


def test_not_asked(server, tool):
    """Without the option no such statement is printed; the table has them marked."""
    traced = tool("-p", server.pid, "-m", "0")
    nested = tool("-p", server.pid, "-m", "0", "--nested", "-o", "level,query")
    with server.connect(database="app") as client:
        client.query("call put(8)")
    stopped(traced)
    stopped(nested)
    assert len([row for row in traced.rows() if "values (concat" in row]) == 0
    rows = nested.stdout.splitlines()
    assert [row for row in rows if re.fullmatch(r" *1 > insert into t\(s\) values \(concat\('v',.*\)\) \[in: call put\(8\)\]", row)], rows
    assert [row for row in rows if re.fullmatch(r" *- call put\(8\)", row)], rows


def test_event(server, tool):
    """The body of an event calls what is on level 1, as its definer."""
    traced = tool("-p", server.pid, "-m", "0", "--json", "--nested")
    server.query("create definer = planner@localhost event app.once on schedule at now() do begin call put(9); end", database="app")
    wait_for(lambda: [one for one in traced.statements if one["backend"] == "event worker" and not one.get("level")], what="the event")
    stopped(traced)
    found = [(one.get("level", 0), one["user"], plain(one["query"])) for one in traced.statements if one["backend"] == "event worker"]
    assert [one[:2] for one in found] == [(2, "planner")] * 2 + [(1, "planner"), (0, "planner")], found
    assert found[2][2].endswith("call put(9)") and "PROCEDURE" in found[3][2], found


def test_killed(server, tool):
    """What is killed in a procedure leaves no level behind, in its session nor in the next one."""
    traced = tool("-p", server.pid, "-m", "0", "--json", "--nested")
    server.query("create procedure app.waits() begin call app.sleeps(); end", "create procedure app.sleeps() begin select sleep(60); select 2; end")
    for how in ("query", "connection"):
        with server.connect(database="app") as client:
            connection = int(client.rows("select connection_id()")[0][0])
            client.send(3, b"call waits()")
            wait_for(lambda: server.query("select count(*) from information_schema.processlist where info like 'select sleep%'")[0].rows[0][0] == b"1",
                     what="the procedure")
            server.query(f"kill {how} {connection}")
            try:
                client.results()
            except (ServerError, OSError):
                pass
            if how == "query":
                client.query("call put(10)")
        with server.connect(database="app") as client:
            client.query("call put(10)")
    stopped(traced)
    killed = [(one.get("level", 0), one["status"]) for one in traced.statements
              if one["query"] in ("call waits()", "call app.sleeps()", "select sleep(60)")]
    levels = [one.get("level", 0) for one in traced.statements if "put(10)" in one["query"] or "put(10)" in one.get("caller", "")]
    assert levels == [1, 1, 0] * 3, levels
    # In MySQL, sleep() just ends if the query is killed.
    assert Counter(killed) >= Counter({(2, "error"): 1, (1, "error"): 1, (0, "error"): 1}) and len(killed) == 6, killed


@pytest.mark.parametrize("kind", MARIADB, indirect=True)
def test_query_cache(kind, tool):
    """What MariaDB's query cache answers has no end: it is not shown, and those that follow keep their level."""
    with kind(query_cache_type="ON", query_cache_size="1M").init() as server:
        server.start()
        server.query("create database app", "create table app.t (i int) engine=innodb", "insert into app.t values (1)",
                     "create procedure app.reads_it() begin select i from app.t; select i from app.t; select i from app.t; end",
                     "create function app.one() returns int begin declare r int; select count(*) into r from app.t where i + 0 > rand(); "
                     "return r; end",
                     "create procedure app.both() begin declare v int; call app.reads_it(); select i from app.t; set v = app.one(); "
                     "select 2 from app.t where i + 0 > rand(); end")
        traced = tool("-p", server.pid, "-m", "0", "--json", "--nested")
        server.query("call app.both()", "call app.both()", database="app")
        hits = int(server.query("show status like 'Qcache_hits'")[0].rows[0][1])
        stopped(traced)
    found = [(one.get("level", 0), one["query"]) for one in traced.statements if "app" in one["query"] and "show" not in one["query"]]
    first = [(2, "select i from app.t")] * 3 + [(1, "call app.reads_it()"), (1, "select i from app.t"),
                                                (1, "select count(*) into r from app.t where i + 0 > rand()"),
                                                (1, "select 2 from app.t where i + 0 > rand()"), (0, "call app.both()")]
    assert hits == 4 and found == first + [one for one in first if one[1] != "select i from app.t"], (hits, found)


def test_dies(kind, tool):
    """A server that dies in a procedure: the statement of its session died, and those that follow have their own levels."""
    with kind().init() as server:
        server.start()
        server.query("create database app", "create procedure app.sleeps() begin select sleep(60); end",
                     "create procedure app.two() begin select 2; end")
        traced = tool("-x", server.server, "-m", "0", "--json", "--nested")
        client = server.connect(database="app")
        client.send(3, b"call sleeps()")
        wait_for(lambda: server.query("select count(*) from information_schema.processlist where info like 'select sleep%'")[0].rows[0][0] == b"1",
                 what="the procedure")
        server.process.kill()
        server.process.wait()
        server.start()
        server.query("call app.two()")
        stopped(traced)
    assert only(traced, "select sleep(60)")["died"]
    assert [one.get("level") for one in traced.statements if one["query"] in ("select 2", "call app.two()")] == [1, None]


def test_recording(server, tool, tmp_path):
    """A recording has them; replay prints them if asked; top counts their time once, and the report lists them."""
    path = str(tmp_path / "nested.rec")
    recorder = tool("record", path, "-p", server.pid, "-m", "0", "--nested", kind=Announced)
    direct = tool("-p", server.pid, "-m", "0", "--json", "--nested")
    with server.connect(database="app") as client:
        client.query("call outside(1)")
        client.query("select s from t where i = 2")
    stopped(direct)
    stopped(recorder)

    def shown(*args):
        return [json.loads(line) for line in run(*args).stdout.splitlines()]

    def key(one):
        return one["query"], one.get("level"), one.get("caller"), one.get("rows")

    whole = Counter(key(one) for one in direct.statements)
    own = Counter({one: count for one, count in whole.items() if not one[1]})
    with_them, without = (Counter(key(one) for one in shown("replay", path, "-m", "0", "--json", *more) if one["type"] == "statement")
                          for more in (["--nested"], []))
    assert with_them == whole and without == own and whole != own
    groups = [one for one in shown("replay", path, "top", "--json", "--nested") if one["type"] == "group"]
    assert "do sleep(?)" in {one["fingerprint"] for one in groups if one.get("nested")}, groups
    assert sum(one["calls"] for one in groups if not one.get("nested")) == sum(own.values()), groups
    assert not [one for one in shown("replay", path, "top", "--json") if one.get("nested")]
    assert run("replay", path, "stat").returncode == 0
    page = run("report", path).stdout
    assert "&gt; " in page and "[in: call outside(1)]" in page


@pytest.mark.parametrize("release", ["5.4", "5.8"])
def test_old_kernels(server, tool, tmp_path, release):
    """Where there are perf buffers, or no allocation in programs; and a text that is cut, as is its caller's."""
    traced = tool("-p", server.pid, "-m", "0", "--json", "--nested", "--text", "16", attached=False,
                  wrap=(os.path.join(BUILD, "tests", "lib", "oldkernel"), release, str(tmp_path / "refused")))
    traced.wait_for(Tool.is_attached)
    with server.connect(database="app") as client:
        client.query(f"call put(1 /* {300 * 'x'} */)")
    stopped(traced)
    found = [(one.get("level"), one["query"], one["query_bytes"] > 16, one.get("caller", "")[:18], one.get("caller_truncated"), one["user"])
             for one in traced.statements]
    assert found[:2] == [(1, text, True, "call put(1 /* xxxx", True, "root") for text in ("insert into t(s)", "select * from t ")], found
    assert len(found) == 3 and {len(one.get("caller", 256 * "x")) for one in traced.statements} == {256}, found


def test_usage(tool):
    done = run("--sample", "10ms", "--nested")
    assert done.returncode == 2 and re.fullmatch(r"dbslower: --sample: cannot be combined with [^;]*--nested[^;]*; [^\n]+\n", done.stderr), done.stderr
