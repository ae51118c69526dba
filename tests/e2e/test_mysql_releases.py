# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What holds for all releases of MySQL and MariaDB, those of other Debian releases, too; with the servers' own words as the oracle."""

import contextlib
import os
import re
import subprocess
import threading
import time

import pytest

from cluster import free_port, wait_for
from mariadb import Maria
from mariadb_client import ServerError
from releases import Maria11, Mysql9
from requirements import need_maria, need_root
from statements import stopped
from tool import DBSLOWER, Announced, Locks, sessions
from transactions import Transactions
from x_client import XClient

KINDS = {"MariaDB 10.11": Maria, "MariaDB 11.8": Maria11, "MySQL 9": Mysql9}

TEXTS = [
    "create table goods (id int primary key, price int) engine=innodb", "insert into goods values (1, 10), (2, 20), (3, 30)",
    "select * from goods where id > 1", "select sum(price) from goods", "update goods set price = price + 1",
    "delete from goods where id = 3", "insert into goods values (1, 1)", "select * from missing", "selec 1",
    "select count(*) from goods; select * from nowhere; select 3", "signal sqlstate '45000' set mysql_errno = 30001",
    "select price + 1, count(*) from goods group by price + 1 order by 2", "analyze table goods", "show tables",
]
# An entry of the slow log; only MySQL's has "Errno", and none for what it could not parse.
ENTRY = re.compile(rb"^# Query_time: [\d.]+ +Lock_time: (?P<locked>[\d.]+) +Rows_sent: (?P<sent>\d+) +Rows_examined: (?P<examined>\d+)"
                   rb"(?: Thread_id: \d+ Errno: (?P<errno>\d+) [^\n]*)?\n(?:# [^\n]*\n)*(?:use [^\n]*;\n)?SET timestamp=\d+;\n(?P<text>.*?);\n",
                   re.M | re.S)


@pytest.fixture(scope="module", params=KINDS, ids=list(KINDS))
def server(request):
    need_root()
    need_maria()
    with KINDS[request.param]().init() as one:
        one.start()
        one.query("create database shop")
        yield one


def run(server, texts=TEXTS):
    """{text: the error's number and SQLSTATE} as the client was told."""
    told = {}
    server.query("drop database shop", "create database shop")
    with server.connect(database="shop") as client:
        for text in texts:
            try:
                client.query(text)
            except ServerError as error:
                told[text] = error.number, error.state
        client.ping()
    return told


def test_as_the_slow_log_has_it(server, tool):
    traced = tool("mysql", "-p", server.pid, "--db", "shop", "-m", "0", "--json")
    assert "does not report" not in traced.stderr, traced.stderr
    before = server.log_size()
    told = run(server)
    server.settle()
    shown = {one["query"]: one for one in stopped(traced).statements}
    logged = {one["text"].decode(): one for one in ENTRY.finditer(server.read_log(before))}
    parts = [part for text in TEXTS for part in text.split("; ") if part != "select 3"]
    assert list(shown) == parts and set(parts) - set(logged) <= {"selec 1"}, traced.said()
    for text, one in shown.items():
        log = logged.get(text)
        if log:
            assert (one["rows_examined"], one["lock_ms"]) == (int(log["examined"]), pytest.approx(float(log["locked"]) * 1000)), text
        if log and log["errno"]:
            assert one.get("errno", 0) == int(log["errno"]), text
        error = next((error for whole, error in told.items() if text == whole.split("; ")[-2 if "; " in whole else -1]), None)
        assert (one.get("errno"), one.get("sqlstate")) == (error or (None, None)), text
    assert len(told) == 5 and max(one["rows_examined"] for one in shown.values()) >= 6


def test_its_own_summary_of_the_log(server, tool, tmp_path):
    """mysqldumpslow and mariadb-dumpslow take our log as their server's."""
    traced = tool("mysql", "-p", server.pid, "--db", "shop", "-m", "0", "--format", "slowlog", kind=Announced)
    before = server.log_size()
    run(server)
    server.settle()
    assert traced.stop() == 0, traced.said()
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.write_bytes(b"".join(traced.out.lines))
    theirs.write_bytes(server.read_log(before))
    found, wanted = summary(server, ours), summary(server, theirs)
    # MySQL does not log what it cannot parse.
    assert set(found) - set(wanted) <= {"selec N"} and not any("#" in text for text in found), ours.read_text()
    assert {text: one for text, one in found.items() if text in wanted} == {text: wanted[text] for text in found if text in wanted}
    assert sum(count for count, _ in found.values()) == len(TEXTS) + 1


def summary(server, path):
    """{text: (calls, rows sent …)} of the program that comes with the server."""
    program = ["/usr/bin/mariadb-dumpslow"] if not isinstance(server, Mysql9) else ["perl", f"{server.root}/usr/bin/mysqldumpslow"]
    said = subprocess.run([*program, path], capture_output=True, text=True, check=True).stdout
    # Debian 12's does not know all lines of MariaDB 11.8.
    return {text if path.name == "ours" else text.split("\n  ")[-1]: (int(count), rows) for count, rows, text in
            re.findall(r"^Count: (\d+)  Time=.*?  (Rows.*?), \S+\n  (.*?)\n\n", said, re.M | re.S)}


# --- transactions

# Statements, of which the last one ends a transaction; {} is replaced by an insertion. None: it is one of its own.
FAIL = {"insert into x values (0)", "create table x (a int)", "drop table nosuch", "xa rollback 'none'"}
BEGUN = [
    (["begin", "{}", "commit"], "commit"),
    (["begin", "{}", "rollback"], "rollback"),
    (["{}"], "commit"),
    (["begin", "{}", "insert into x values (0)", "commit"], "commit"),
    (["insert into x values (0)"], "rollback"),
    (["begin", "{}", "begin"], "commit"),					# implicit
    (["{}", "create table if not exists x1 (a int)"], "commit"),
    (["begin", "{}", "create table x (a int)"], "commit"),
    (["begin", "{}", "drop table nosuch"], "commit"),
    (["begin", "{}", "commit and chain"], "commit"),
    (["{}", "rollback"], "rollback"),
    (["rollback"], "rollback"),
    (["xa start 'a'", "{}", "xa end 'a'", "xa rollback 'a'"], "rollback"),
    (["xa start 'b'", "{}", "xa end 'b'", "xa commit 'b' one phase"], "commit"),
    (["xa rollback 'none'"], "rollback"),
    (["set autocommit = 0", None, "{}", "select 1", "rollback"], "rollback"),
    (["{}", "set autocommit = 1"], "commit"),
]


def test_transactions(server, tool):
    """Outcome, number of statements and identity; the rows that are left are the server's word."""
    traced = tool("transactions", "mysql", "0", "-p", server.pid, "--json", kind=Transactions)
    with server.connect(database="shop") as client, server.connect(database="shop") as other:
        own = int(client.rows("select connection_id()")[0][0])
        client.query("create table x (a int primary key) engine=innodb")
        client.query("insert into x values (0)")
        count, left = 3, ["0"]
        for key, (texts, state) in enumerate(BEGUN, 1):
            for text in texts:
                if text in FAIL:
                    client.failing(text)
                elif text is not None:
                    client.query(text.format(f"insert into x values ({key})"))
            count += 1 + (None in texts)
            left += [str(key)] if state == "commit" else []
            one = traced.nth(count, connection_id=own)
            number = len(texts) - (texts.index(None) + 1 if None in texts else 0)
            assert (one["state"], one["statements"], one["user"], one["database"]) == (state, number, "root", "shop"), (one, texts)
            assert 0 <= one["idle_ms"] <= one["duration_ms"] and one["time"] == one["end"], one
            assert [row[0].decode() for row in other.rows("select a from x order by a")] == left, texts
        traced.complete()
        assert len(traced.ended(connection_id=own)) == count
        client.query("drop table x, x1")


def test_transactions_prepared_by_another(server, tool):
    """What one session has prepared, and left, another ends."""
    traced = tool("transactions", "mysql", "0", "-p", server.pid, "--json", kind=Transactions)
    with server.connect(database="shop") as other:
        own = int(other.rows("select connection_id()")[0][0])
        other.query("create table x (a int primary key) engine=innodb")
        for key, state in (1, "commit"), (2, "rollback"):
            with server.connect(database="shop") as client:
                number = int(client.rows("select connection_id()")[0][0])
                for text in "xa start 'z'", f"insert into x values ({key})", "xa end 'z'", "xa prepare 'z'":
                    client.query(text)
            wait_for(lambda: len(other.rows("xa recover")) == 1, what="the transaction to be left")
            other.query(f"xa {state} 'z'")
            assert traced.nth(1, state="prepare", connection_id=number)["statements"] == 4
            assert traced.nth(1, connection_id=own, query=f"xa {state} 'z'")["state"] == state
        assert [row[0].decode() for row in other.rows("select a from x")] == ["1"]
        other.query("drop table x")
    traced.complete()


# --- locks

def errno_of(client, text):
    try:
        client.query(text)
        return 0
    except ServerError as error:
        return error.number


OUTCOMES = {0: "granted", 1205: "timeout", 1213: "deadlock", 1317: "killed"}


@pytest.mark.calm
def test_outcomes_of_waits(server, tool):
    """What became of a wait is what its client is told of the statement."""
    traced = tool("locks", "mysql", "-m", "100", "-p", server.pid, "--json", kind=Locks)
    told = {}

    def run_all(client, *texts):
        for text in texts:
            told[text] = errno_of(client, text)

    def waits(client, text, end=None, *more):
        """Runs it, and more at once; end() is called when it has waited long enough to be shown."""
        thread = threading.Thread(target=run_all, args=(client, text, *more))
        thread.start()
        if end:
            wait_for(lambda: any(one.get("query") == text and one["duration_ms"] >= 150 for one in traced.ask()), what="the wait")
            end()
        return thread

    with server.connect(database="shop") as holds, server.connect(database="shop") as works, server.connect() as kills:
        number = int(works.rows("select connection_id()")[0][0])
        for text in ("create table slots (id int primary key, n int) engine=innodb", "insert into slots values (1, 1), (2, 2)"):
            holds.query(text)
        works.query("set innodb_lock_wait_timeout = 1, lock_wait_timeout = 1")
        holds.query("begin")
        holds.query("update slots set n = 2 where id = 1")
        waits(works, "update slots set n = 3 where id = 1 /* times out */").join()
        waits(works, "alter table slots add column more int /* times out */").join()
        works.query("set innodb_lock_wait_timeout = 60, lock_wait_timeout = 60")
        waits(works, "update slots set n = 3 where id = 1 /* is killed */", lambda: kills.query(f"kill query {number}")).join()
        waits(works, "alter table slots add column more int /* is killed */", lambda: kills.query(f"kill query {number}")).join()
        # The error of another statement is not one of the wait before.
        kills.query("begin")
        kills.query("update shop.slots set n = 2 where id = 2")
        waits(works, "update slots set n = 3 where id = 1 /* gets it */", lambda: holds.query("commit"),
              "select * from slots where id = 2 for update nowait").join()
        assert told.pop("select * from slots where id = 2 for update nowait") in (1205, 3572)
        kills.query("rollback")
        holds.query("select get_lock('named', 1)")
        waits(works, "select get_lock('named', 60) /* gets it */", lambda: holds.query("select release_lock('named')")).join()
        # Of a deadlock either may be the victim.
        for one, id in ((holds, 1), (works, 2)):
            one.query("begin")
            one.query(f"update slots set n = 4 where id = {id}")
        thread = waits(works, "update slots set n = 5 where id = 1 /* first */", lambda: None)
        waits(holds, "update slots set n = 5 where id = 2 /* second */").join()
        holds.query("rollback")
        thread.join()
        works.query("rollback")
        holds.query("drop table slots")
    assert traced.stop() == 0, traced.said()
    shown = {one["query"]: one["outcome"] for one in traced.objects() if one["type"] == "lock_wait"}
    assert sorted(told.values()) == [0, 0, 0, 1205, 1205, 1213, 1317, 1317], told
    # The victim may be chosen before its wait is long enough to be shown.
    assert {text: OUTCOMES[number] for text, number in told.items() if text in shown or number != 1213} == shown, traced.said()


# --- who

# --- who holds a row

BLOCKERS = {
    Mysql9: "select r.trx_mysql_thread_id, b.trx_mysql_thread_id from performance_schema.data_lock_waits w join information_schema.innodb_trx r "
            "on r.trx_id = w.requesting_engine_transaction_id join information_schema.innodb_trx b on b.trx_id = w.blocking_engine_transaction_id",
    Maria: "select r.trx_mysql_thread_id, b.trx_mysql_thread_id from information_schema.innodb_lock_waits w join information_schema.innodb_trx r "
           "on r.trx_id = w.requesting_trx_id join information_schema.innodb_trx b on b.trx_id = w.blocking_trx_id",
}
# What two sessions do in a transaction, what then waits in two others, and the index of the row.
ROWS = {
    "shared": (["select * from goods where id in (2, 3) lock in share mode"] * 2, ["update goods set n = 9 where id = 2"] * 2, "PRIMARY"),
    "gap": (["select * from goods where id = 100 for update"] * 2, ["insert into goods values (101, 1, 101)", "insert into goods values (102, 1, 102)"],
            "PRIMARY"),
    "not yet committed": (["insert into goods values (50, 1, 50)", "select 1"], ["update goods set n = 3 where id = 50"] * 2, "PRIMARY"),
    "another row of the page": (["update goods set n = 2 where id = 1", "update goods set n = 2 where id = 2"],
                                ["delete from goods where id = 1", "delete from goods where id = 2"], "PRIMARY"),
    "secondary index": (["select by_k from goods force index (by_k) where by_k = 2 for update", "select * from goods where id = 3 for update"],
                        ["select by_k from goods force index (by_k) where by_k = 2 for update"] * 2, "by_k"),
}


@pytest.mark.parametrize("case", ROWS)
def test_holders_of_a_row(server, tool, case):
    """All of them, as the server's own view has them, which also has those that wait themselves."""
    held, waiting, index = ROWS[case]
    with server.connect(database="shop") as admin:
        admin.query("drop table if exists goods")
        admin.query("create table goods (id int primary key, n int, by_k int, key by_k (by_k)) engine=innodb")
        for i in range(4):
            admin.query(f"insert into goods values ({i}, 1, {i})")
        traced = tool("locks", "mysql", "-p", server.pid, "--json", kind=Locks)
        sessions_of = [server.connect(database="shop") for _ in range(4)]
        numbers = [int(one.rows("select connection_id()")[0][0]) for one in sessions_of]
        for one, text in zip(sessions_of, held):
            one.query("begin")
            one.query(text)

        def blockers():
            found = {}
            time.sleep(0.15)			# MariaDB shows the same again to who asks sooner
            for waiter, blocker in admin.rows(of_kind(server, BLOCKERS)):
                found.setdefault(int(waiter), set()).add(int(blocker))
            return found

        threads = []
        for number, one, text in zip(numbers[2:], sessions_of[2:], waiting):
            threads.append(threading.Thread(target=one.query, args=[text]))
            threads[-1].start()
            wait_for(lambda: number in blockers(), what="it to wait")
        wanted = blockers()
        assert any(number in some for some in wanted.values() for number in wanted) == (case not in ("gap", "another row of the page"))
        wanted = {waiter: some - set(wanted) for waiter, some in wanted.items()}
        assert len(wanted) == 2 and any(len(some) > 1 for some in wanted.values()) == (case in ("gap", "shared"))

        def seen(_):
            return {one["connection_id"]: {holder["connection_id"] for holder in one.get("holders", ())} for one in traced.ask()} == wanted
        traced.wait_for(seen, what="all of the holders")
        began = time.monotonic()
        time.sleep(0.1)
        alone = time.monotonic() - began
        sessions_of[0].query("rollback")

        def passed(_):
            """It has read that one of two is left: when it does depends on how long it was kept from the CPU before."""
            times = [[ms for _, ms in sorted((holder["connection_id"], holder["blocked_ms"]) for holder in one.get("holders", ())
                                             if holder["connection_id"] in numbers[:2])] for one in traced.ask()]
            return all(some[0] < some[-1] for some in times if len(some) > 1)
        traced.wait_for(passed, what="the first of two to be gone")
        sessions_of[1].query("rollback")
        for thread in threads:
            thread.join()
        for one in sessions_of:
            one.close()
        admin.query("drop table goods")
    assert traced.stop() == 0
    waits = {one["connection_id"]: one for one in traced.waits if "connection_id" in one}	# not of the server's own threads
    assert set(waits) == set(wanted)
    for number, one in waits.items():
        assert (one["lock"], one["object"], one["index"]) == ("row", "shop.goods", index)
        holders = {holder["connection_id"]: holder for holder in one["holders"]}
        # When the other one has got the row, it holds it for a moment.
        assert set(holders) - set(numbers[2:]) == wanted[number]
        assert not any(holders[who]["queued"] for who in wanted[number])
        if set(numbers[:2]) <= set(holders):
            first, second = (holders[who]["blocked_ms"] for who in numbers[:2])
            assert 1000 * alone <= first < second <= one["duration_ms"] + 0.001


def test_definers(server, tool):
    """Procedures run as their definer; their waits and sessions are the caller's."""
    traced = {user: tool("locks", "mysql", "-m", "100", "-p", server.pid, "--user", user, "--json", kind=Locks) for user in ("worker", "boss")}
    with server.connect(database="shop") as holds, server.connect() as makes:
        for text in ("create table stock (id int primary key, n int) engine=innodb", "insert into stock values (1, 1)", "create user boss, worker",
                     "grant all on shop.* to boss", "grant execute on shop.* to worker",
                     "create definer = boss procedure take() sql security definer update stock set n = n - 1 where id = 1"):
            holds.query(text)
        for begin, end in (("begin; update stock set n = 2 where id = 1", "commit"), ("lock tables stock write", "unlock tables")):
            for text in begin.split("; "):
                holds.query(text)
            with server.connect("worker", "shop") as works:
                number = int(works.rows("select connection_id()")[0][0])
                thread = threading.Thread(target=works.query, args=["call take()"])
                thread.start()
                one = wait_for(lambda: next((one for one in sessions("-p", str(server.pid)) if one["connection_id"] == number and
                                             one.get("query", "").startswith("update stock") and one.get("wait")), None), what="it to wait")
                time.sleep(0.2)
                holds.query(end)
                thread.join()
            assert (one["user"], one["client"]) == ("worker", "localhost"), one
        makes.query("drop user boss, worker")
        holds.query("drop table stock")
    for one in traced.values():
        assert one.stop() == 0
    waits = [one for one in traced["worker"].objects() if one["type"] == "lock_wait"]
    assert [one["lock"] for one in waits] == ["row", "metadata"] and not [one for one in traced["boss"].objects() if one["type"] == "lock_wait"]


# --- sessions

RUNNING = {	# connection, ms that its statement has run, and the state that the server shows
    Mysql9: "select t.processlist_id, e.timer_wait / 1e9, t.processlist_state from performance_schema.threads t join "
            "performance_schema.events_statements_current e using (thread_id) where e.end_event_id is null and t.processlist_id <> connection_id()",
    Maria: "select id, time_ms, state from information_schema.processlist where command = 'Query' and id <> connection_id()",
}


def of_kind(server, texts):
    return next(text for kind, text in texts.items() if isinstance(server, kind))


def test_who_blocks_whom(server):
    """ps: waits and durations as the server shows them, blockers as it names those of rows, and the session that is idle with the locks."""
    with server.connect(database="shop") as admin:
        admin.query("drop table if exists goods")
        admin.query("create table goods (id int primary key, n int) engine=innodb")
        admin.query("insert into goods values (1, 1), (2, 2)")
        clients = [server.connect(database="shop") for _ in range(7)]
        holds, row, alters, reads, user, sleeps, idle = (int(one.rows("select connection_id()")[0][0]) for one in clients)
        for one in clients:
            one.query("set lock_wait_timeout = 600, innodb_lock_wait_timeout = 600")
        for text in ("begin", "update goods set n = 2 where id = 1", "select get_lock('a', 0)"):
            clients[0].query(text)
        clients[5].query("set timestamp = 795624301")
        threads = []
        for one, number, state, text in (
                (1, row, "updating", "update goods set n = 3"), (2, alters, "waiting for table metadata lock", "alter table goods add column x int"),
                (3, reads, "waiting for table metadata lock", "select * from goods"), (4, user, "user lock", "select get_lock('a', 100)"),
                (5, sleeps, "user sleep", "select sleep(600)")):
            threads.append(threading.Thread(target=fails, args=(clients[one], text)))
            threads[-1].start()
            wait_for(lambda: running(server, admin).get(number, (0, ""))[1].lower() == state, what=text)
        wait_for(lambda: min(ms for ms, _ in running(server, admin).values()) > 100, what="100 ms")
        time.sleep(0.2)
        before, blockers = running(server, admin), admin.rows(of_kind(server, BLOCKERS))
        shown = {one["connection_id"]: one for one in sessions("-p", str(server.pid))}
        again = {one["connection_id"]: one for one in sessions("100ms", "-p", str(server.pid))}
        after = running(server, admin)
        tree = subprocess.run([DBSLOWER, "ps", "--tree", "-o", "id,query", "-p", str(server.pid)], capture_output=True, text=True).stdout
        for number in (row, alters, reads, user, sleeps):
            admin.query(f"kill query {number}")
        for thread in threads:
            thread.join()
        for one in clients:
            one.close()
        admin.query("drop table goods")
    assert {int(waiter): int(blocker) for waiter, blocker in blockers} == {row: holds}
    states = {number: state for number, (_, state) in before.items()}
    assert {number for number, state in states.items() if state == "Waiting for table metadata lock"} == {alters, reads}
    waits = {number: (one.get("wait"), set(one.get("blocked_by", ()))) for number, one in shown.items() if "wait" in one or "blocked_by" in one}
    assert waits == {row: ("Lock:row", {holds}), alters: ("Lock:metadata", {holds, row}), reads: ("Lock:metadata", {holds, row, alters}),
                     user: ("Lock:user", {holds})}
    # For how long those that are idle have been so is not known; the one that others wait for is listed.
    assert idle in set(shown) - set(again) and set(again) >= {holds, row, alters, reads, user, sleeps}
    for number in (row, alters, reads, user, sleeps):
        assert before[number][0] - 5 <= shown[number]["duration_ms"] <= after[number][0] + 5
    depths = {int(line[:8]): len(line[9:]) - len(line[9:].lstrip()) for line in tree.splitlines()[1:]}
    assert depths[holds] == depths[sleeps] == 0 < depths[row] and min(depths[alters], depths[user]) > 0, tree


TABLE_WAITS = """select id from information_schema.processlist where state = 'Waiting for table level lock' and id = {}"""


def test_locks_of_tables(server, tool):
    """LOCK TABLES is a metadata lock. MyISAM locks whole tables besides; MySQL does not announce these waits."""
    def start(client, text, waits):
        thread = threading.Thread(target=client.query, args=(text,))
        thread.start()
        started.append(thread)
        shown = TABLE_WAITS.format(number[client]) if waits else \
            f"select id from information_schema.processlist where state = 'User sleep' and id = {number[client]}"
        wait_for(lambda: admin.rows(shown), what=text)
        time.sleep(0.5)		# it is read during the wait

    def ended():
        while started:
            started.pop().join()

    started = []
    with contextlib.ExitStack() as stack:
        admin, waits, queues, *readers = (stack.enter_context(server.connect(database="shop")) for _ in range(5))
        number = {one: int(one.rows("select connection_id()")[0][0]) for one in (waits, queues, *readers)}
        for text in ("create table plain (n int) engine = myisam", "insert into plain values (1), (2), (3)",
                     "create table audited (n int) engine = innodb", "create view shown as select n from plain where n > 1",
                     "create trigger audits after insert on audited for each row update plain set n = 2"):
            admin.query(text)
        traced = tool("locks", "mysql", "--json", "-m", "100", "-p", server.pid, kind=Locks)
        readers[0].query("lock tables plain write")
        thread = threading.Thread(target=waits.query, args=("update plain set n = 2 /* locked */",))
        thread.start()
        wait_for(lambda: admin.rows("select 1 from information_schema.processlist where state = 'Waiting for table metadata lock'"), what="locked")
        time.sleep(0.3)
        readers[0].query("unlock tables")
        thread.join()
        if server.__class__ is not Mysql9:
            start(readers[0], "select sleep(1) from plain", False)
            start(waits, "update plain set n = 3 /* one */", True)
            ended()
            start(readers[0], "select sleep(2) from plain", False)
            start(readers[1], "select sleep(2) from plain", False)
            start(waits, "update shown set n = 3 /* two */", True)
            start(queues, "select n from plain /* behind */", True)
            ended()
            readers[1].query("begin")
            readers[1].query("select * from plain")		# has a metadata lock only
            readers[0].query("lock tables plain read local")
            start(waits, "insert into audited values (1) /* idle */", True)
            start(queues, "update plain set n = 5 /* queued */", True)
            readers[0].query("unlock tables")
            readers[1].query("commit")
            ended()
        traced.ended()
        for text in ("drop table audited", "drop view shown", "drop table plain"):
            admin.query(text)
    found = {re.search(r"/\* (\w+)", one["query"])[1]: one for one in traced.waits}
    locked = found.pop("locked")
    assert (locked["lock"], locked["object"], locked["connection_id"]) == ("metadata", "shop.plain", number[waits]), traced.said()
    assert [one["connection_id"] for one in locked["holders"]] == [number[readers[0]]], traced.said()
    if server.__class__ is Mysql9:
        assert not found, traced.said()
        return
    queued = {"behind", "queued"}
    for name, one in found.items():
        assert (one["lock"], one["object"], one["user"]) == ("table", "shop.plain", "root"), traced.said()
        assert one["connection_id"] == number[queues if name in queued else waits], traced.said()
    holders = {name: {(holder["connection_id"], holder["queued"]): holder for holder in one["holders"]} for name, one in found.items()}
    first, second, wait = ((number[one], False) for one in (*readers, waits))
    # At the end of a wait behind another one, that has the lock for a moment.
    assert {name: set(one) - ({wait} if name in queued else set()) for name, one in holders.items()} == {
        "one": {first}, "two": {first, second}, "behind": {first, second, (wait[0], True)}, "idle": {first},
        "queued": {first, (wait[0], True)}}, traced.said()
    assert (holders["one"][first]["running"], holders["one"][first]["query"]) == (True, "select sleep(1) from plain"), traced.said()
    assert not holders["idle"][first]["running"], traced.said()


def test_short_waits_for_tables(server, tool):
    """What is read after a wait is not taken for it: between their updates the clients read another table, in which nothing waits."""
    def load():
        with server.connect(database="shop") as client:
            for _ in range(150):
                client.query("update plain set n = n + 1")
                client.query("select sleep(0.002) from other limit 1")

    with server.connect(database="shop") as admin:
        for name in ("plain", "other"):
            admin.query(f"create table {name} (n int) engine = myisam")
            admin.query(f"insert into {name} values (1)")
        for _ in range(12):
            admin.query("insert into plain select * from plain")
        traced = tool("locks", "mysql", "--json", "-m", "0", "-p", server.pid, kind=Locks)
        threads = [threading.Thread(target=load) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        traced.ended()
        for name in ("plain", "other"):
            admin.query(f"drop table {name}")
    found = [one for one in traced.waits if one["lock"] == "table"]
    named = [one for one in found if "object" in one]
    if server.__class__ is Mysql9:
        assert not found, traced.said()
        return
    assert len(named) > 10, f"{len(named)} of {len(found)}"
    assert {one["object"] for one in named} == {"shop.plain"}, traced.said()
    texts = {one.get("query") for one in (*found, *(holder for one in found for holder in one.get("holders", ())))}
    assert texts <= {None, "update plain set n = n + 1"}, traced.said()


def running(server, admin):
    return {int(number): (float(ms), state.decode() if state else "") for number, ms, state in admin.rows(of_kind(server, RUNNING))}


def fails(client, text):
    """Its statement is killed in the end."""
    try:
        client.query(text)
    except ServerError:
        pass


def test_waits_under_load(server):
    """No session is said to wait that does not: those of a load have locks, but none for long; and one that sleeps with locks has none to wait for."""
    stop = threading.Event()

    def load(one, number):
        while not stop.is_set():
            for text in ("begin", f"update goods set n = n + 1 where id = {number}", "select count(*) from goods", "select sleep(0.01)", "commit"):
                one.query(text)
    with server.connect(database="shop") as admin:
        admin.query("drop table if exists goods")
        admin.query("create table goods (id int primary key, n int) engine=innodb")
        admin.query("insert into goods values " + ", ".join(f"({i}, 0)" for i in range(8)))
        clients = [server.connect(database="shop") for _ in range(8)]
        threads = [threading.Thread(target=load, args=pair) for pair in zip(clients, range(8))]
        for one in threads:
            one.start()
        try:
            seen = [one for _ in range(30) for one in sessions("-p", str(server.pid))]
        finally:
            stop.set()
            for one in threads:
                one.join()
            for one in clients:
                one.close()
            admin.query("drop table goods")
    active = [one for one in seen if one["state"] == "active"]
    assert len(active) > 50
    assert not [(one["wait"], one.get("blocked_by"), one["query"]) for one in active if "wait" in one]


GRANTED = {	# what a session does that then waits for nothing
    "user locks": ["select get_lock('x', 0)", "select get_lock('y', 0)", "select get_lock('z', 0)"],
    "global lock": ["flush tables with read lock", "select get_lock('x', 0)", "select get_lock('y', 0)"],
    "tables": ["begin", "update goods1 set n = 1", *(f"select * from goods{i} for update" for i in range(4))],
    "locked tables": ["lock tables goods0 write, goods1 read, goods2 write"],
}


@pytest.mark.parametrize("case", GRANTED)
def test_locks_that_are_granted(server, case):
    """A session that has several is not said to wait for one of them, whichever is the first of its lists."""
    with server.connect(database="shop") as admin:
        one = server.connect(database="shop")
        for i in range(4):
            admin.query(f"create table goods{i} (id int primary key, n int) engine=innodb")
        number = int(one.rows("select connection_id()")[0][0])
        for text in GRANTED[case]:
            one.query(text)
        thread = threading.Thread(target=fails, args=(one, "select sleep(600)"))
        thread.start()
        wait_for(lambda: number in running(server, admin), what="it to sleep")
        seen = [one for _ in range(3) for one in sessions("-p", str(server.pid)) if one["connection_id"] == number]
        admin.query(f"kill query {number}")
        thread.join()
        one.close()
        for i in range(4):
            admin.query(f"drop table goods{i}")
    assert len(seen) == 3 and not [one for one in seen if "wait" in one or "blocked_by" in one]


def test_stages(server, tool):
    """What active sessions do, as the list of processes has it at that moment; at the end, in which of it they waited."""
    traced, printed = (tool("-p", server.pid, "-m", "0", "--why", *args) for args in (["--json"], []))
    states = """select id, state from information_schema.processlist
        where info like '%/* staged */' and id <> connection_id()"""
    texts = ["select sleep(600) /* staged */", "select get_lock('staged', 600) /* staged */", "update goods set n = 1 /* staged */",
             "alter table goods add m int /* staged */"]
    waiting = {b"user sleep", b"user lock", b"updating", b"waiting for table metadata lock"}
    with server.connect(database="shop") as admin:
        admin.query("create table goods (id int primary key, n int) engine=innodb")
        admin.query("insert into goods values (1, 1)")
        clients = [server.connect(database="shop") for _ in texts]
        for text in ("select get_lock('staged', 0)", "begin", "select * from goods for update"):
            admin.query(text)
        threads = [threading.Thread(target=fails, args=pair) for pair in zip(clients, texts)]
        for one in threads:
            one.start()
            # Behind the last one, which is last, the update would wait for that.
            wait_for(lambda: len(admin.rows(states)) == sum(thread.ident is not None for thread in threads)
                     and {(state or b"").lower() for _, state in admin.rows(states)} <= waiting, what="it to wait")
        assert {(state or b"").lower() for _, state in admin.rows(states)} == waiting
        before = {int(number): state.decode() for number, state in admin.rows(states)}
        seen = {one["connection_id"]: one for one in sessions("-p", str(server.pid))}
        for number in before:
            admin.query(f"kill query {number}")
        for one in threads:
            one.join()
        for one in clients:
            one.close()
        admin.query("rollback")
        admin.query("drop table goods")
    stopped(traced)
    assert {number: seen[number].get("stage") for number in before} == before
    waits = {one["query"]: {wait.get("event") for wait in one["waits"]} for one in traced.statements if one["query"] in texts}
    assert all(before[client.id] in waits[text] for client, text in zip(clients, texts)), (waits, before)
    printed.stop()
    assert all(f"{before[client.id]} (futex) " in printed.stdout for client in clients), printed.said()
    # The other one's last statement may still be ending.
    assert not any("stage" in one for one in seen.values() if one["state"] != "active")
    assert set(seen) > set(before)


# What a session ran before is in its memory, and in what it gave back.
HISTORY = ["select * from goods", "select count(*), n from goods group by n", "create temporary table if not exists own (id int)", "drop table own",
           "prepare p from 'select * from goods where id = ?'", "execute p using @a", "deallocate prepare p", "select get_lock(connection_id(), 0)",
           "select * from information_schema.columns limit 3", "show full columns from goods", "begin", "insert into nowhere values (1)",
           "select a.n from goods a join goods b using (id) order by 1", "commit", "select repeat('x', 3000)", "handler goods open", "handler goods close",
           "select 3, 3 union select * from (select 3, 4) s", "show grants", "explain select * from goods a, goods b", "do release_lock(connection_id())"]


def test_many_that_wait(server):
    """Of forty sessions behind an ALTER each has the one that holds the lock among its blockers; none of those behind blocks the ALTER."""
    with server.connect(database="shop") as admin:
        admin.query("drop table if exists goods")
        admin.query("create table goods (id int primary key, n int) engine=innodb")
        clients = [server.connect(database="shop") for _ in range(42)]
        numbers = [int(one.rows("select connection_id()")[0][0]) for one in clients]
        for at, one in enumerate(clients):
            for text in [*HISTORY[at // 2:], "rollback", "set lock_wait_timeout = 600"]:
                fails(one, text)
        clients[0].query("begin")
        clients[0].query("select * from goods for update")
        threads = []
        for number, one in zip(numbers[1:], clients[1:]):
            threads.append(threading.Thread(target=fails, args=(one, "select * from goods" if threads else "alter table goods add column x int")))
            threads[-1].start()
            wait_for(lambda: running(server, admin).get(number, (0, ""))[1] == "Waiting for table metadata lock", what="it to wait")
        seen = {one["connection_id"]: one for one in sessions("-p", str(server.pid))}
        clients[0].query("rollback")
        for thread in threads:
            thread.join()
        for one in clients:
            one.close()
        admin.query("drop table goods")
    blockers = {number: set(numbers[:2]) - {number} for number in numbers[1:]}
    assert {number: set(seen[number].get("blocked_by", ())) for number in blockers} == blockers
    assert {seen[number]["wait"] for number in blockers} == {"Lock:metadata"}


def test_x_protocol(tool):
    """Its login looks for the user as mysql.session, the name that the slow log has of it."""
    with Mysql9(mysqlx="ON", mysqlx_port=free_port(), mysqlx_bind_address="127.0.0.1").init() as one:
        one.settings["mysqlx_socket"] = os.path.join(one.dir, "x")
        one.start()
        one.query("create user xena", "grant select on *.* to xena")
        traced = tool("mysql", "-p", one.pid, "-m", "0", "--json")
        before = one.log_size()
        client = XClient(one.settings["mysqlx_socket"], "xena")
        assert client.query("select 1") is None and client.query("select * from nowhere.at_all") == 1049
        client.close()
        one.settle()
        shown = [(one["user"], one.get("errno", 0)) for one in stopped(traced).statements if one["user"] != "root"]
        logged = re.findall(rb"^# User@Host: (?!root)(\S+)\[.*\n.* Errno: (\d+) .*\n(?:use .*\n)?SET .*\n(?!# administrator)", one.read_log(before), re.M)
        assert shown == [(user.decode(), int(errno)) for user, errno in logged] and {("mysql.session", 0), ("xena", 1049)} <= set(shown)
