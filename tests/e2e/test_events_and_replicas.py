# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Statements of MariaDB and MySQL that no client sent: bodies of events, and what a replica applies. The slow logs of the servers
and their process lists are the oracle.
"""

import contextlib
import os
import re
import signal
import subprocess
import threading
import time

import pytest

from cluster import wait_for
from mariadb import Maria
from products import kind	# the fixture
from releases import Maria11, Mysql9
from requirements import need_maria, need_root
from statements import only, stopped, with_tag
from tool import Announced, Locks, sessions

ENTRY = re.compile(rb"^# Query_time: (?P<time>[\d.]+) [^\n]*\n(?:# [^\n]*\n)*(?:use [^\n]*;\n)?SET timestamp=\d+;\n(?P<text>.*?);\n", re.M | re.S)


@pytest.fixture(scope="module")
def server(kind):
    with kind(event_scheduler="ON").init() as one:
        one.start()
        one.query("create database app", "create user planner@localhost", "grant all on *.* to planner@localhost",
                  "create table app.log (i int primary key, s varchar(20)) engine=innodb")
        yield one


def of_kind(traced, word):
    return [one for one in traced.statements if one.get("backend") == word]


def applied(traced):
    """Those that a replica has applied, without what begins and ends transactions."""
    return [one for one in of_kind(traced, "replication applier") if one["query"] not in ("BEGIN", "COMMIT")]


def logged(server, before, pattern):
    """[(text, ms)] of the slow log's entries whose text matches."""
    return [(match["text"].decode(), 1000 * float(match["time"])) for match in ENTRY.finditer(server.read_log(before))
            if re.search(pattern, match["text"])]


def test_events(server, tool):
    """The body of an event is a statement of its definer, with those in it, which the slow log of MariaDB has."""
    traced = tool("-p", server.pid, "-m", "0", "--json")
    before = server.log_size()
    server.query("set global log_slow_disabled_statements = ''" if "maria" in server.server else "select 1")
    begin = time.monotonic()
    server.query("create definer = planner@localhost event app.nightly on schedule at now() on completion preserve do begin "
                 "select sleep(0.2) /* in the event */; select 2 /* in the event */; end")
    one = wait_for(lambda: of_kind(traced, "event worker"), what="its statement")[0]
    most = 1000 * (time.monotonic() - begin)
    server.query("create definer = planner@localhost event app.wrong on schedule at now() on completion preserve do insert into app.missing values (1)")
    wrong = wait_for(lambda: of_kind(traced, "event worker")[1:], what="the other one")[0]
    server.query("create event app.dropped on schedule at now() do insert into app.log values (1, 'from an event')")
    dropped = wait_for(lambda: of_kind(traced, "event worker")[2:], what="the third one")[0]
    stopped(traced)
    inside = [ms for text, ms in logged(server, before, rb"in the event") if "create" not in text]
    server.query("drop event app.nightly", "drop event app.wrong", "delete from app.log")
    assert len(of_kind(traced, "event worker")) == 3 and only(traced, "create definer = planner@localhost event app.nightly")["backend"] == "client"
    assert (one["user"], one["database"], one["client"], one["status"]) == ("planner", "app", "localhost", "ok"), one
    assert re.fullmatch(r"CREATE PROCEDURE `nightly`\(\) SQL SECURITY INVOKER begin select sleep.*end", one["query"], re.S), one
    # MariaDB's log has them, too, with the time since the thread began.
    assert len(inside) == (0 if "mysqld" in server.server else 2) and 200 <= one["duration_ms"] <= most, (one, inside)
    assert (wrong["status"], wrong["errno"], wrong["sqlstate"]) == ("error", 1146, "42S02"), wrong
    # The last execution drops its event, which has an outcome of its own.
    assert "status" not in dropped and "from an event" in dropped["query"], dropped


def test_running_event(server, tool):
    """What it runs, by the process list; and it holds a lock."""
    traced = tool("-p", server.pid, "-m", "0", "--json")
    waits = tool("locks", "-p", server.pid, "-m", "0", "--json", kind=Announced)
    server.query("insert into app.log values (7, '')")
    server.query("create definer = planner@localhost event app.busy on schedule at now() on completion preserve do begin "
                 "start transaction; update app.log set s = 'held' where i = 7; select sleep(2); rollback; end")
    listed = "select id, user, info from information_schema.processlist where info like '%sleep(2)%' and info not like '%processlist%'"
    row = wait_for(lambda: server.connect().rows(listed), what="the event")[0]
    blocked = threading.Thread(target=server.query, args=("update app.log set s = 'mine' where i = 7",))
    blocked.start()
    wait_for(lambda: [one for one in sessions("-p", server.pid) if one.get("blocked_by")], what="the wait for it")
    shown = [one for one in sessions("-p", server.pid) if one["connection_id"] == int(row[0])]
    traced.process.send_signal(signal.SIGUSR1)
    running = wait_for(lambda: [one for one in traced.objects() if one["type"] == "running" and one["backend"] != "client"], what="what runs")
    blocked.join()
    wait_for(lambda: [one for one in waits.objects() if one["type"] == "lock_wait"], what="the wait")
    stopped(traced)
    assert waits.stop() == 0
    server.query("drop event app.busy", "delete from app.log")
    wait = [one for one in waits.objects() if one["type"] == "lock_wait" and one.get("lock") == "row"]
    assert [(one["backend"], one["state"]) for one in shown] == [("event worker", "active")] and "sleep(2)" in shown[0]["query"], shown
    assert [(one["connection_id"], one["backend"]) for one in running] == [(int(row[0]), "event worker")], running
    assert [(holder["connection_id"], holder["backend"]) for one in wait for holder in one["holders"]] == [(int(row[0]), "event worker")], wait


def test_user_of_a_running_event(server, tool):
    """As the process list has it: its definer or, in a procedure of another definer, that one. All wait for locks."""
    server.query("create user other@'%'", "grant all on *.* to other@'%'", "create definer = other@'%' procedure app.nap() do get_lock('held', 600)")
    traced = tool("-p", server.pid, "-m", "0", "--json")
    waits = tool("locks", "-p", server.pid, "-m", "0", "--json", kind=Locks)
    text = ("select id, user, host from information_schema.processlist where db = 'app' and "
            "(state = 'User lock' or state like 'Waiting for table%')")
    with server.connect() as holder:
        holder.query("select get_lock('held', 600)")
        holder.query("lock tables app.log write")
        for name, body in ("own", "do get_lock('held', 600)"), ("called", "call app.nap()"), ("waits", "insert into app.log values (9, '')"):
            server.query(f"create definer = planner@localhost event app.{name} on schedule at now() on completion preserve do {body}")
        wait_for(lambda: len(holder.rows(text)) == 3, what="the events")
        listed = {int(number): (user.decode(), host.decode()) for number, user, host in holder.rows(text)}
        shown = {one["connection_id"]: (one.get("user"), one.get("client")) for one in sessions("-p", server.pid) if one["connection_id"] in listed}
        traced.process.send_signal(signal.SIGUSR1)
        running = wait_for(lambda: {one["connection_id"]: (one.get("user"), one.get("client")) for one in traced.objects() if one["type"] == "running"
                                    and one["connection_id"] in listed}, what="what runs")
        waits.shows("user", "planner")
        same = listed == {int(number): (user.decode(), host.decode()) for number, user, host in holder.rows(text)}
    wait_for(lambda: len(of_kind(traced, "event worker")) == 3, what="their ends")
    stopped(traced)
    assert waits.stop() == 0
    server.query("drop event app.own", "drop event app.called", "drop event app.waits", "drop procedure app.nap", "drop user other", "delete from app.log")
    assert same and sorted(listed.values()) == [("other", "%"), ("planner", "localhost"), ("planner", "localhost")], listed
    assert shown == listed and running == listed, (listed, shown, running)
    # The whole of each is its definer's.
    assert {one["user"] for one in of_kind(traced, "event worker")} == {"planner"}, traced.said()
    assert [one["user"] for one in waits.waits if one.get("object") == "app.log"] == ["planner"], waits.said()


def test_process_list(server):
    """ps --all has each row of the process list; without it, idle threads of the server itself are left out."""
    with server.connect() as client:
        for _ in range(20):
            text = "select id, user from information_schema.processlist where id <> connection_id()"
            before = {int(number): user for number, user in client.rows(text)}
            found = {one["connection_id"]: one for one in sessions("-p", server.pid, "--all")}
            some = {one["connection_id"]: one for one in sessions("-p", server.pid)}
            if set(before) == {int(row[0]) for row in client.rows(text)}:
                break
        own = int(client.rows("select connection_id()")[0][0])
    assert set(found) == set(before) | {own}, (before, found)
    scheduler = [number for number, user in before.items() if user in ("event_scheduler", b"event_scheduler")]
    assert len(scheduler) == 1 and found[scheduler[0]]["backend"] == "event scheduler", found
    assert own in some and found[own]["backend"] == "client" and scheduler[0] not in some, some


def replicate(stack, kind, workers, binlog_format, **settings):
    """(source, replica)"""
    pair = [stack.enter_context(kind(server_id=number, log_bin="bin", binlog_format=binlog_format, **settings).init()) for number in "12"]
    for one in pair:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(one.data, "auto.cnf"))		# MySQL's UUID, which the template has
        one.start()
    source, copy = pair
    source.query("create user copier@'127.0.0.1'", "grant all on *.* to copier@'127.0.0.1'", "create database app")
    if kind is Mysql9:
        texts = [f"set global replica_parallel_workers = {workers}", "set global log_slow_replica_statements = on",
                 f"change replication source to source_host='127.0.0.1', source_port={source.port}, source_user='copier', get_source_public_key=1",
                 "start replica"]
    else:
        # Optimistic workers run what conflicts, and then again: how often is their luck.
        texts = [f"set global slave_parallel_threads = {workers}", "set global slave_parallel_mode = conservative", "set global log_slow_slave_statements = on",
                 f"change master to master_host='127.0.0.1', master_port={source.port}, master_user='copier'", "start slave"]
    copy.query(*texts)
    wait_for(lambda: copy.connect().rows("show databases like 'app'"), what="the replica")
    return source, copy


@pytest.fixture(scope="module", params=["0", "4"], ids=lambda number: f"{number} workers")
def replica(request, kind):
    """(source, replica) with statements in the binary log."""
    with contextlib.ExitStack() as stack:
        yield replicate(stack, kind, request.param, "statement")


@pytest.fixture(scope="module", params=["0", "4"], ids=lambda number: f"{number} workers")
def rows(request, kind):
    """The same with changes of rows. MySQL's has the texts, MariaDB's only if it writes them to its own binary log."""
    more = {"binlog_rows_query_log_events": "ON"} if kind is Mysql9 else {"log_slave_updates": "ON"} if request.param == "4" else {}
    with contextlib.ExitStack() as stack:
        yield *replicate(stack, kind, request.param, "row", **more), bool(more)


TEXTS = ["create table copied (i int primary key, s varchar(20)) engine=innodb", "insert into copied values (1, 'a'), (2, 'b'), (3, 'c')",
         "update copied set s = sleep(0.2) where i = 1 /* slow */", "delete from copied where i = 2"]


def test_replica(replica, tool):
    """Each statement that it applies, as its slow log has it."""
    source, copy = replica
    traced = tool("-p", copy.pid, "-m", "0", "--json")
    before = copy.log_size()
    with source.connect(database="app") as client:
        for text in (*TEXTS, "begin", "insert into copied values (10, 'x')", "update copied set s = 'y' where i = 10", "commit",
                     "drop table copied"):
            client.query(text)
    wait_for(lambda: not copy.connect().rows("show tables in app") and with_tag(traced, "DROP TABLE"), what="the last one")
    stopped(traced)
    found = applied(traced)
    wanted = [(text, ms) for text, ms in logged(copy, before, rb"copied")]
    assert sorted(one["query"] for one in found) == sorted(text for text, _ in wanted) and len(found) == 7, (found, wanted)
    assert not [one for one in traced.statements if one.get("backend") not in ("replication applier", "client")], traced.said()
    off = []
    for one in found:
        assert (one["database"], one["status"]) == ("app", "ok"), one
        ms = [ms for text, ms in wanted if text == one["query"]]
        assert ms, one
        off.append(abs(one["duration_ms"] - ms[0]))
    # The server takes the time some tens of us before the probe is hit, if it is not preempted.
    assert sorted(off)[len(off) // 2] <= 1 and only(traced, "/* slow */")["duration_ms"] >= 200, off
    assert {one["query"]: one["rows"] for one in found}["insert into copied values (1, 'a'), (2, 'b'), (3, 'c')"] == 3, found


def test_rows(rows, tool):
    """Each statement whose changes of rows it applies, however many events these take. A lock is held as long as the driver says."""
    source, copy, has_texts = rows
    with source.connect(database="app") as client:
        client.query("create table changed (i int primary key, s varchar(2000)) engine=innodb")
        wait_for(lambda: copy.connect().rows("show tables in app like 'changed'"), what="the table")
        traced = tool("-p", copy.pid, "-m", "0", "--json")
        texts = ["insert into changed values (1, 'a'), (2, 'b'), (3, 'c')", "update changed set s = repeat('u', 1000)",
                 "insert into changed select 100 * a.i + 10 * b.i + c.i + 1000, repeat('x', 2000) from changed a, changed b, changed c",
                 "delete from changed where i = 2"]
        for text in (*texts, "begin", "insert into changed values (10, 'x')", "update changed set s = 'y' where i = 10", "commit"):
            client.query(text)
        texts += ["insert into changed values (10, 'x')", "update changed set s = 'y' where i = 10"]
        wait_for(lambda: copy.connect().rows("select * from app.changed where s = 'y'"), what="all rows")
        with copy.connect(database="app") as holder:
            holder.query("begin")
            holder.query("select * from changed where i = 3 for update")
            client.query("delete from changed where i = 3")
            begin = time.monotonic()
            wait_for(lambda: len(applied(traced)) >= 6, what="those before")
            time.sleep(0.5)
            held = 1000 * (time.monotonic() - begin)
            holder.query("commit")
        wait_for(lambda: len(applied(traced)) == 7, what="the last one")
        most = 1000 * (time.monotonic() - begin)
        copy.query("insert into app.changed values (77, 'of another')")
        client.query("insert into changed values (77, 'of the source')")
        wait_for(lambda: re.search(r"1062", copy.log_tail(4000)), what="an error in the server's own log")
        wait_for(lambda: len(applied(traced)) >= 8, what="the one that fails")
        texts += ["delete from changed where i = 3", "insert into changed values (77, 'of the source')"]
    stopped(traced)
    found = sorted(applied(traced), key=lambda one: one["duration_ms"])
    failed, done = [[one for one in found if one["status"] == status] for status in ("error", "ok")]
    assert [one["errno"] for one in failed] == [1062], found
    if has_texts:
        assert sorted(one["query"] for one in done) == sorted(texts[:-1]) and failed[0]["query"] == texts[-1], found
        assert done[-1]["query"] == "delete from changed where i = 3", found
    else:
        assert {one["query"] for one in found} == {"replication apply"} and len(done) == 7, found
    assert 450 <= held and held - 50 <= done[-1]["duration_ms"] <= most + 50 and done[-2]["duration_ms"] < 450, (held, most, found)
    copy.query("delete from app.changed where i = 77", "start replica")
    source.query("drop table app.changed")
    wait_for(lambda: not copy.connect().rows("show tables in app"), what="the replica")


def test_rows_of_a_killed_replica(kind, tool):
    """It ends with its statement, which is still the applier's; what a replica ignores is none."""
    with contextlib.ExitStack() as stack:
        source, copy = replicate(stack, kind, "0", "row", replicate_ignore_table="app.ignored")
        source.query("create table app.changed (i int primary key) engine=innodb", "create table app.ignored (i int primary key) engine=innodb")
        wait_for(lambda: copy.connect().rows("show tables in app like 'changed'"), what="the table")
        traced = tool("-p", copy.pid, "-m", "0", "--json")
        source.query("insert into app.changed values (1)", "insert into app.ignored values (1)", "insert into app.changed values (2)")
        wait_for(lambda: len(applied(traced)) == 2, what="both that it does not ignore")
        holder = copy.connect()
        holder.query("begin")
        holder.query("select * from app.changed where i = 1 for update")
        source.query("delete from app.changed where i = 1")
        wait_for(lambda: copy.connect().rows("select 1 from information_schema.innodb_trx where trx_state = 'LOCK WAIT'"), what="it to wait")
        text = "select id, db from information_schema.processlist where user = 'system user' and db is not null"
        listed = [(int(number), database.decode()) for number, database in copy.connect().rows(text)]
        shown = [(one["connection_id"], one.get("database")) for one in sessions("-p", copy.pid) if one.get("backend") == "replication applier"]
        assert shown == listed and [database for _, database in listed] == ["app"], (listed, shown)
        os.kill(copy.pid, signal.SIGKILL)
        wait_for(lambda: len(applied(traced)) == 3, what="the one that died")
        stopped(traced)
    found = applied(traced)
    assert [one.get("died", False) for one in found] == [False, False, True] and found[-1]["status"] == "error", found


@pytest.mark.parametrize("of", [Maria, Maria11], ids=["MariaDB 10.11", "MariaDB 11.8"])
def test_binlog_statement(of, tool):
    """A client's BINLOG applies rows, too: it is one statement of the client, also if that is first seen in it."""
    need_root()
    need_maria()
    with of(server_id=1, log_bin="bin", binlog_format="row").init() as server:
        server.start()
        server.query("create database app", "create table app.t (i int primary key) engine=innodb", "insert into app.t values (1)",
                     "insert into app.t values (2)", "flush logs", "delete from app.t")
        text = subprocess.run(["mariadb-binlog", os.path.join(server.data, "bin.000001")], capture_output=True, check=True, text=True).stdout
        head, *changes = re.findall(r"BINLOG '\n(.*?)'", text, re.S)
        assert len(changes) >= 2, text
        both = f"BINLOG '\n{''.join(changes[:2])}'"
        with server.connect() as client, server.connect() as holder:
            client.query(f"BINLOG '\n{head}'")
            holder.query("lock tables app.t read")
            thread = threading.Thread(target=client.query, args=(both,))
            thread.start()
            wait_for(lambda: holder.rows("select 1 from information_schema.processlist where state like 'Waiting for table%'"), what="it to wait")
            traced = tool("-p", server.pid, "-m", "0", "--json")
            holder.query("unlock tables")
            thread.join()
            client.query("delete from app.t")
            client.query(both)
            client.query("select 1 /* later */")
    stopped(traced)
    assert {one["backend"] for one in traced.statements} == {"client"}, traced.statements
    own = [one["query"] for one in traced.statements if one["connection_id"] == only(traced, "/* later */")["connection_id"]]
    assert own in (["delete from app.t", both, "select 1 /* later */"], [both, "delete from app.t", both, "select 1 /* later */"]), own


def test_replica_in_ps(replica):
    """Its threads do nothing, so they are listed with --all only; MySQL's process list tells what they are."""
    _, copy = replica
    with copy.connect() as client:
        listed = {int(number) for (number,) in client.rows("select id from information_schema.processlist where user = 'system user'")}
    found = {one["connection_id"]: one for one in sessions("-p", copy.pid, "--all")}
    assert listed and {found[number]["backend"] for number in listed} <= {"replication receiver", "replication applier", "system thread"}, found
    assert {"replication receiver", "replication applier"} <= {found[number]["backend"] for number in listed}, found
    wait_for(lambda: not listed & {one["connection_id"] for one in sessions("-p", copy.pid)}, what="idle threads")


def test_only_clients(server, tool):
    traced = tool("-p", server.pid, "-m", "0", "--json", "--backend", "client")
    server.query("create event app.none on schedule at now() on completion preserve do insert into app.log values (3, '')")
    wait_for(lambda: server.connect().rows("select i from app.log"), what="the event")
    server.query("drop event app.none", "delete from app.log")
    stopped(traced)
    assert {one["backend"] for one in traced.statements} == {"client"}, traced.said()
