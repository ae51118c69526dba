# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The application of a session: program_name. The judge is the server's performance_schema.session_connect_attrs."""

import json
import threading

import pytest

from cluster import wait_for
from mariadb import Maria
from mariadb_client import QUERY, ServerError, with_length
from releases import Maria11, Mysql9
from requirements import need_maria, need_root
from statements import stopped
from tool import Announced, Locks, Tool, run

CLIENTS = 32
ROUNDS = 12	# of clients: the Performance Schema has 256 places for threads at first
OWN = ("select attr_value from performance_schema.session_connect_attrs where processlist_id = connection_id() "
       "and attr_name = 'program_name'")
COMMON = {"_client_name": "libmysql", "_pid": "4711", "_os": "Linux", "_platform": "x86_64"}
NAME = "program_name"
NAMES = ["a b", "x" * 63, "é ü", "it's", '"quoted"', "a,b|c", "[local]", "%a %s", "\\", "名前"]
LONG = ["x" * 64, "x" * 300, "ünïcödé " * 9, "x" * 62 + "é", "x" * 61 + "€"]
ABSENT = [None, {}, COMMON, {NAME: ""}, {"program_name_": "no", "program": "no", "Program_Name": "no"}, {"_source": NAME}]
# Lists that claim more than is there; those that the server refuses reach no session.
HOSTILE = [with_length(b"_pid") + b"\xfc\xff\xff1", b"\x0cprogram_name\xfe" + b"\xff" * 8, b"\x0cprogram_name\xfc\x00\x02x",
           b"\xff" * 40, b"\x0cprogram_name", b"\xfc", b"\x00" * 300, with_length(b"k" * 300) + with_length(b"v")]


KEEPS = {"performance_schema": "ON", "performance_schema_session_connect_attrs_size": "1024"}
SERVERS = {"MySQL 9": (Mysql9, {}), "MariaDB 10.11": (Maria, {}), "its pool": (Maria, {"thread_handling": "pool-of-threads"}),
           "MariaDB 11.8": (Maria11, {})}


@pytest.fixture(scope="module", name="server", params=SERVERS, ids=list(SERVERS))
def make_server(request):
    need_root()
    need_maria()
    make, settings = SERVERS[request.param]
    with make(**KEEPS, **settings).init() as one:
        one.start()
        one.query("create database shop", "create table shop.t (i int primary key, a int)", "insert into shop.t values (1, 0)")
        yield one


def cut(name):
    """As the columns of names have it: at most 63 bytes, of whole characters."""
    return name.encode()[:63].decode(errors="ignore")


def application(one):
    return one.get("application")


def test_of_each_session(server, tool):
    """Clients at once, each of which has its own name, or none; among them hostile ones."""
    tools = [tool("mysql", "-p", server.pid, "-m", "0", "--json"), tool("transactions", "-p", server.pid, "-m", "0", "--json"),
             tool("top", "-p", server.pid, "--json", "--app", "program 7"), tool("-o", "app,query", "-p", server.pid, "-m", "0"),
             tool("mysql", "-p", server.pid, "-m", "0", "--json", "--app", "program 7")]
    stat = tool("stat", "-p", server.pid, "--json", "--app", "program 7", attached=False)
    stat.wait_for(lambda tool: "dbslower: tracing" in tool.stderr)
    given = [{**COMMON, NAME: f"program {n}"} if n % 2 else {NAME: f"program {n}", **COMMON} for n in range(CLIENTS)]
    given += [{**COMMON, NAME: name} for name in NAMES + LONG] + ABSENT + HOSTILE
    expected, together = {}, threading.Barrier(len(given))

    def work(attributes):
        together.wait()
        try:
            client = server.connect(attributes=attributes)
        except (ServerError, OSError):
            return	# it refuses this list
        with client:
            own = client.rows(OWN)
            expected[client.id] = cut(own[0][0].decode()) if own and own[0][0] else None
            for n in range(3):
                client.query(f"select {n}")
            client.query("begin")
            client.query("select 9")
            client.query("commit")

    threads = [threading.Thread(target=work, args=(each,)) for each in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each in (*tools, stat):
        stopped(each)
    assert len(expected) >= len(given) - len(HOSTILE) and {f"program {n}" for n in range(CLIENTS)} <= set(expected.values())
    assert {cut(name) for name in NAMES + LONG} <= set(expected.values()) and None in expected.values()
    slow, transactions, top, rows, filtered = tools
    for number, name in expected.items():
        found = [application(one) for one in slow.statements if one["connection_id"] == number]
        assert found == [name] * 7, (number, name, found)
        found = [application(one) for one in transactions.objects() if one["type"] == "transaction" and one["connection_id"] == number]
        assert found == [name] * 5, (number, name, found)
    assert sum(line.startswith("program 7 ") for line in rows.stdout.splitlines()) == 7
    assert len(filtered.statements) == 7 and {application(one) for one in filtered.statements} == {"program 7"}
    assert sum(one["calls"] for one in top.objects() if one["type"] == "group") == 7
    assert sum(one["count"] for one in stat.objects() if one["type"] == "histogram") == 7


def test_failures_and_other_users(server, tool):
    """A statement that fails; a session that gives its attributes up, and one that begins anew in another's thread."""
    traced = tool("mysql", "-p", server.pid, "-m", "0", "--json")
    with server.connect(attributes={NAME: "before"}) as client:
        with pytest.raises(ServerError):
            client.query("select 1 from nowhere.fails")
        client.query("select 1; select 2")
        client.prepare("select 'prepared'").execute()
        plugin = "caching_sha2_password" if isinstance(server, Mysql9) else "mysql_native_password"
        client.change_user("root", plugin=plugin, attributes={NAME: "after"})
        client.query("select 'changed'")
        client.change_user("root", plugin=plugin, attributes={})
        client.query("select 'none'")
    with server.connect() as client:
        client.query("select 'other'")
    stopped(traced)
    names = {one["query"]: application(one) for one in traced.statements}
    assert names == {"select 1 from nowhere.fails": "before", "select 1": "before", "select 2": "before",
                     "select 'prepared'": "before", "select 'changed'": "after", "select 'none'": None, "select 'other'": None}, traced.said()


def test_running_and_open(server, tool):
    """What has not ended is read from memory, as is what ps and --sample show."""
    with server.connect(attributes={**COMMON, NAME: "holds"}) as holder, server.connect(attributes={**COMMON, NAME: "waits"}) as waiter:
        locks = tool("locks", "mysql", "-p", server.pid, "--json", kind=Locks)
        slow = tool("mysql", "-p", server.pid, "-m", "0", "--json")
        transactions = tool("transactions", "-p", server.pid, "-m", "0", "--json")
        with Tool("--sample", "10ms", "--json", "-p", server.pid) as sampled:
            holder.query("begin")
            holder.query("update shop.t set a = 1 where i = 1")
            waiting = threading.Thread(target=waiter.query, args=("update shop.t set a = 2 where i = 1",))
            waiting.start()
            wait_for(lambda: "waits" in run("ps", "-p", str(server.pid), "-o", "app,blocked_by,query").stdout, what="the wait")
            shown = run("ps", "-p", str(server.pid), "--json", "--app", "waits").stdout
            both = run("ps", "-p", str(server.pid), "-o", "app").stdout.split()
            assert slow.stop() == 0 and transactions.stop() == 0 and locks.stop() == 0
            holder.query("rollback")
            waiting.join()
            sampled.wait_for(lambda t: any(one.get("application") == "waits" for one in t.statements), what="the sample")
            assert sampled.stop() == 0, sampled.said()
    idle = {"holds"} if isinstance(server, Mysql9) else set()	# MariaDB tells it only of a session that runs a statement
    assert shown.count('"application":"waits"') == 1 and {"holds", "waits"} & set(both) == {"waits"} | idle, (shown, both)
    assert [application(one) for one in locks.objects() if one["type"] == "lock_wait"] == ["waits"], locks.said()
    running = [one for one in slow.objects() if one["type"] == "running"]
    assert [application(one) for one in running] == ["waits"], slow.said()
    found = {application(one) for one in transactions.objects() if one["type"] == "open"}
    assert found == {"holds", "waits"}, transactions.said()


def test_not_instrumented(server, tool):
    """MariaDB then leaves in a session's memory what an earlier one had there, and gives that to the next ones in turn."""
    consumer = "update performance_schema.setup_consumers set enabled = '{}' where name = 'thread_instrumentation'"
    waiting = f"select count(*) = {CLIENTS} from information_schema.processlist where state = 'User lock'"
    own = {}

    def come_and_go(tag):
        """Return what ps shows meanwhile."""
        with server.connect() as holder:
            them = [server.connect(attributes={**COMMON, NAME: f"{tag} {n}"}) for n in range(CLIENTS)]
            own.update((one.id, f"{tag} {n}") for n, one in enumerate(them))
            holder.query("select get_lock('held', 600)")
            for one in them:
                one.query("begin; select 'own'; commit")
                one.send(QUERY, b"select get_lock('held', 600)")
            wait_for(lambda: holder.rows(waiting) == [(b"1",)], what="the waits")
            shown = run("ps", "-p", str(server.pid), "--json").stdout.splitlines()
        for one in them:
            one.drop()
        wait_for(lambda: not set(server.clients()) & set(own), what="their end")
        return [json.loads(line) for line in shown]

    def check(shown, least):
        known = [one for one in shown if one.get("connection_id") in own]
        wrong = [one for one in known if application(one) != (own[one["connection_id"]] if isinstance(server, Mysql9) else None)]
        assert len(known) >= least and not wrong, wrong

    come_and_go("before")
    server.query(consumer.format("NO"))
    try:
        traced = tool("mysql", "-p", server.pid, "-m", "0", "--json")
        transactions = tool("transactions", "-p", server.pid, "-m", "0", "--json")
        shown = [one for n in range(ROUNDS) for one in come_and_go(f"round {n}")]
        stopped(traced)
        stopped(transactions)
    finally:
        server.query(consumer.format("YES"))
    check(traced.statements, ROUNDS * CLIENTS * 4)
    check([one for one in transactions.objects() if one["type"] == "transaction"], ROUNDS * CLIENTS * 2)
    check(shown, ROUNDS * CLIENTS)


def test_recorded(server, tool, tmp_path):
    path = str(tmp_path / "r")
    traced = tool("record", path, "-p", server.pid, "-m", "0", kind=Announced)
    with server.connect(attributes={**COMMON, NAME: "recorded"}) as client:
        client.query("select 'recorded'")
    stopped(traced)
    assert run("replay", path, "-m", "0", "-o", "app,query").stdout.splitlines()[-1].split(None, 1) == ["recorded", "select 'recorded'"]


@pytest.mark.parametrize("make, settings", [(Mysql9, {"performance_schema": "OFF"}), (Maria, {}), (Maria11, {}),
                                            (Mysql9, {"performance_schema_session_connect_attrs_size": "0"})])
def test_absent(make, settings, tool):
    """Where the server does not keep the attributes."""
    need_maria()
    with make(**settings).init() as server:
        server.start()
        traced = tool("mysql", "-p", server.pid, "-m", "0", "--json")
        with server.connect() as holder, server.connect(attributes={**COMMON, NAME: "lost"}) as client:
            holder.query("select get_lock('held', 600)")
            client.send(QUERY, b"do get_lock('held', 600)")
            wait_for(lambda: holder.rows("select state from information_schema.processlist where state = 'User lock'"), what="the wait")
            shown = [json.loads(line) for line in run("ps", "-p", str(server.pid), "--json").stdout.splitlines()]
            holder.query("do release_lock('held')")
            client.results()
        (one,) = [one for one in shown if one.get("connection_id") == client.id]
        assert "get_lock" in one["query"] and "application" not in one, one
        stopped(traced)
        assert traced.statements and not any("application" in one for one in traced.statements), traced.said()
