# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Statements that no client sent: of background workers, logical replication, autovacuum and walsenders. The server's log,
pg_cron's history and pg_stat_activity are the oracle.
"""

import re
import time

import psycopg
import pytest

from cluster import Cluster, wait_for
from postgres_releases import Release
from statements import only, stopped, with_tag
from tool import Announced, run, sessions

RELEASES = [15, 10, 13, 18]
APPLY = "logical replication apply"


def cluster_of(number, **settings):
    """A server of that release; 15 is Debian's."""
    settings = {"wal_level": "logical", "log_autovacuum_min_duration": "0", "autovacuum": "on", "log_replication_commands": "on", **settings}
    return (Cluster(**settings) if number == 15 else Release(number, **settings)).init()


@pytest.fixture(scope="module", params=RELEASES, ids=lambda number: f"PostgreSQL {number}")
def server(request):
    with cluster_of(request.param) as cluster:
        cluster.number = request.param
        yield cluster.start()


def query(server, text, **where):
    with server.connect(**where) as connection:
        return connection.execute(text).fetchall()


def of_kind(traced, *words):
    return [one for one in traced.statements if one.get("backend") in words]


def test_clients_and_walsenders(server, tool):
    """The commands of a walsender are statements, too: those that the server logs. Its title lacks user and database."""
    commands = ["IDENTIFY_SYSTEM", "select 1 /* of a walsender */", "SHOW port", "DROP_REPLICATION_SLOT none", "select 1/0 /* of a walsender */"]
    traced = tool("-p", server.pid, "-m", "0", "--json")
    before = server.log_size()
    server.psql("select 1 /* of a client */")
    with server.connect(replication="database") as connection:
        failed = [connection.pgconn.exec_(text.encode()).status == psycopg.pq.ExecStatus.FATAL_ERROR for text in commands]
    server.settle()
    stopped(traced)
    logged = re.findall(r"received replication command: (.*)", server.read_log(before).decode())
    found = of_kind(traced, "walsender")
    assert only(traced, "of a client")["backend"] == "client"
    assert [one["query"] for one in found] == commands and [text for text in commands if "/*" not in text] == [
        text for text in logged if "/*" not in text], (found, logged)
    assert [one["status"] == "error" for one in found] == failed, found
    assert all((one["user"], one["database"], one["client"]) == ("postgres", "postgres", "[local]") for one in found), found


def test_streaming(server, tool):
    """It runs until the connection ends."""
    traced = tool("-p", server.pid, "-m", "0", "--json")
    with server.connect(replication="true") as connection:
        lsn = connection.pgconn.exec_(b"IDENTIFY_SYSTEM").get_value(0, 2).decode()
        command = f"START_REPLICATION PHYSICAL {lsn}"
        assert connection.pgconn.exec_(command.encode()).status == psycopg.pq.ExecStatus.COPY_BOTH
        time.sleep(0.2)
        pid = connection.info.backend_pid
        connection.close()
    server.settle()
    stopped(traced)
    one = only(traced, "START_REPLICATION")
    assert (one["query"], one["pid"], one["backend"], one["user"]) == (command, pid, "walsender", "postgres") and "database" not in one, one
    assert one["duration_ms"] >= 200, one


@pytest.fixture
def subscribed(server):
    """A database "copy" with a subscription to table changes of database postgres."""
    server.psql("create table changes (id int primary key, text text)", "create publication all_changes for table changes",
                "select pg_create_logical_replication_slot('changes', 'pgoutput')", "create database copy", "checkpoint")
    server.psql("create table changes (id int primary key, text text)",
                "create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(0.2); return new; end $$",
                "create trigger slow before insert on changes for each row when (new.text = 'slow') execute procedure slow()",
                "alter table changes enable always trigger slow",
                f"create subscription changes connection 'host={server.socket_dir} port={server.port} dbname=postgres user=postgres' "
                "publication all_changes with (create_slot = false, slot_name = 'changes')", PGDATABASE="copy")
    wait_for(lambda: query(server, "select srsubstate from pg_subscription_rel", dbname="copy") == [("r",)], what="the tables to be copied")
    yield
    server.psql("drop subscription changes", PGDATABASE="copy")
    server.psql("drop publication all_changes", "drop table changes")
    server.settle()
    server.psql("drop database copy")


def test_logical_replication(server, subscribed, tool):
    """Each transaction that is applied is a statement, with the time that it took. That of the walsender ends without an error."""
    traced = tool("-p", server.pid, "-m", "0", "--json")
    short = tool("-p", server.pid, "-m", "0", "--json", "--text", "16")
    for what in ("disable", "enable"):
        server.psql(f"alter subscription changes {what}", PGDATABASE="copy")
        wait_for(lambda: len(query(server, "select 1 from pg_stat_replication where state = 'streaming'")) == (what == "enable"), what=what)
    with server.connect() as connection:
        for i in range(20):
            connection.execute("insert into changes values (%s, %s)", [i, "slow" if i == 7 else "fast"])
        with connection.transaction():
            for i in range(20, 30):
                connection.execute("insert into changes values (%s, 'fast')", [i])
    wait_for(lambda: query(server, "select count(*) from changes", dbname="copy") == [(30,)], what="the changes")
    wait_for(lambda: len(with_tag(traced, APPLY)) >= 21, what="its statements")
    # Others than in "changes", as the worker's own in the catalog, are none.
    time.sleep(0.5)
    server.psql("alter subscription changes disable", PGDATABASE="copy")
    stream = wait_for(lambda: with_tag(traced, "START_REPLICATION"), what="the end of the stream")[0]
    server.psql("alter subscription changes enable", PGDATABASE="copy")
    wait_for(lambda: query(server, "select 1 from pg_stat_replication"), what="the next one")
    stopped(traced)
    assert short.stop() == 0
    assert (stream["status"], stream["backend"]) == ("ok", "walsender"), stream
    assert [one["truncated"] for one in with_tag(short, APPLY[:16]) if one["query"] == APPLY[:16]] == [True] * 21, short.said()
    applied = with_tag(traced, APPLY)
    kind = "background worker" if server.number == 10 else "logical replication"
    assert len(applied) == 21 and all(kind in one["backend"] for one in applied), traced.said()
    assert [one for one in applied if one["duration_ms"] >= 200] == [applied[7]] and applied[7]["duration_ms"] < 1000, applied
    users = [(one.get("user"), one["database"]) for one in applied]
    # Before 14 the user is in a variable that is not exported; 13 has its symbols here.
    assert set(users) == {("postgres" if server.number >= 13 else None, "copy")}, users
    assert {one["status"] for one in applied} == {"ok"} and all("client" not in one for one in applied)


def vacuumed(server, before):
    """(what, the table) of what autovacuum says that it did."""
    return sorted((what, table) for what, table in re.findall(r"automatic (?:aggressive )?(vacuum|analyze) of table \"postgres\.public\.(\w+)\"",
                                                              server.read_log(before).decode()))


def test_autovacuum(server, tool):
    """Each table that it says it vacuumed or analyzed is in a statement, and no others. Its database is if its process lasts."""
    traced = tool("-p", server.pid, "-m", "0", "--json")
    short = tool("-p", server.pid, "-m", "0", "--json", "--text", "16")
    before = server.log_size()
    names = [f"dead{i}" for i in range(3)]
    with server.connect() as connection:
        for name in names:
            connection.execute(f"create table {name} (i int)")
            connection.execute(f"insert into {name} select generate_series(1, 5000)")
            connection.execute(f"delete from {name}")
    wait_for(lambda: {("vacuum", name) for name in names} <= set(vacuumed(server, before)), what="the tables to be vacuumed")
    time.sleep(1)
    for name in names:
        server.psql(f"drop table {name}")
    stopped(traced)
    assert short.stop() == 0
    # Of the workers that both have seen.
    pids = {one["pid"] for one in of_kind(traced, "autovacuum worker") if ".dead" in one["query"]}
    assert len([1 for one in of_kind(short, "autovacuum worker") if one["pid"] in pids]) == len(
        [1 for one in of_kind(traced, "autovacuum worker") if one["pid"] in pids]), short.said()
    found = []
    for one in of_kind(traced, "autovacuum worker"):
        words = re.fullmatch(r"autovacuum: (VACUUM ANALYZE|VACUUM|ANALYZE) (\w+)\.(\w+)(?: \(.*\))?", one["query"])
        assert words and one.get("database") in (None, "postgres", "template1", "copy") and one["status"] == "ok", one
        found += [(what.lower(), words[3]) for what in words[1].split() if words[2] == "public"]
    assert sorted(found) == vacuumed(server, before), traced.said()


def test_autovacuum_that_is_cancelled(server, tool):
    """It gives way to who waits for its lock."""
    traced = tool("-p", server.pid, "-m", "0", "--json")
    waits = tool("locks", "-p", server.pid, "-m", "100", "--json", kind=Announced)
    with server.connect() as connection:
        connection.execute("create table given (i int) with (autovacuum_vacuum_cost_delay = 50, autovacuum_vacuum_cost_limit = 1)")
        connection.execute("insert into given select generate_series(1, 100000)")
        connection.execute("delete from given")
        text = "select pid from pg_stat_activity where query like 'autovacuum: VACUUM%public.given%'"
        wait_for(lambda: connection.execute(text).fetchall(), what="the autovacuum")
        connection.execute("alter table given set (autovacuum_enabled = off)")
        connection.execute("drop table given")
    wait = wait_for(lambda: [one for one in waits.objects() if one["type"] == "lock_wait"], what="the wait for it")[0]
    # Another worker may have begun with the table meanwhile, and have ended before.
    holders = [holder["pid"] for holder in wait["holders"]]
    one = wait_for(lambda: [one for one in of_kind(traced, "autovacuum worker") if "public.given" in one["query"] and one["pid"] in holders],
                   what="its statement")[0]
    stopped(traced)
    assert waits.stop() == 0 and wait["backend"] == "client", wait
    assert [(holder["pid"], holder["backend"], holder.get("query", one["query"])) for holder in wait["holders"]] == [(one["pid"], one["backend"], one["query"])], wait
    assert (one["backend"], one["status"], one["sqlstate"]) == ("autovacuum worker", "error", "57014"), one


def test_only_clients(server, tool):
    """--backend selects."""
    traced = tool("-p", server.pid, "-m", "0", "--json", "--backend", "walsender")
    server.psql("select 1 /* of a client */")
    with server.connect(replication="database") as connection:
        connection.pgconn.exec_(b"IDENTIFY_SYSTEM")
    server.settle()
    stopped(traced)
    assert [one["query"] for one in traced.statements] == ["IDENTIFY_SYSTEM"], traced.said()


def test_background_workers(tool):
    """pg_cron's jobs in background workers, by its history of them."""
    with cluster_of(15, shared_preload_libraries="'pg_cron'", autovacuum="off", **{"cron.use_background_workers": "on"}) as cluster:
        cluster.start().psql("create extension pg_cron", "create role worker login superuser", "checkpoint")
        for text in ("select pg_sleep(0.3) /* good */", "select 1/length(pg_sleep(0.3)::text) /* bad */",
                     "select pg_sleep(0.3); select 2 /* two */"):
            with cluster.connect() as connection:
                connection.execute("select cron.schedule('@reboot', %s)", [text])
        cluster.psql("update cron.job set username = 'worker'")
        ending = tool("-p", cluster.pid, "-m", "0", "--json")
        cluster.stop()
        assert ending.stop() == 0 and not ending.statements, ending.said()		# workers without a database end with an error, but are no connections
        traced = tool("-x", cluster.postgres, "-m", "0", "--json")
        cluster.start()
        text = "select command, job_pid, status, 1000 * extract(epoch from end_time - start_time) from cron.job_run_details order by 1"
        wait_for(lambda: [row[2] for row in query(cluster, text)] == ["failed", "succeeded", "succeeded"], what="the jobs")
        history = query(cluster, text)
        stopped(traced)
    found = {one["query"]: one for one in of_kind(traced, "pg_cron")}
    assert len(found) == len(of_kind(traced, "pg_cron")) == 3, traced.said()
    for command, pid, status, ms in history:
        one = found[command]
        assert (one["pid"], one["status"], one["user"], one["database"]) == (pid, "ok" if status == "succeeded" else "error", "worker", "postgres"), one
        assert ms is None or one["duration_ms"] <= float(ms) + 1, (one, ms)
    assert [one["sqlstate"] for one in found.values() if one["status"] == "error"] == ["22012"]
    assert all(one["duration_ms"] >= 300 for one in found.values())


# --- ps

ACTIVITY = """select pid, case backend_type when 'client backend' then 'client' else backend_type end, usename::text, datname::text, state
    from pg_stat_activity where pid <> pg_backend_pid()"""


def test_all_processes(server, subscribed):
    """ps --all lists those of pg_stat_activity with the same type, user and database; without it, those that do nothing are left out."""
    with server.connect(replication="database") as walsender:
        walsender.pgconn.exec_(b"IDENTIFY_SYSTEM")
        for _ in range(20):		# an autovacuum worker may end meanwhile
            before = sorted(query(server, ACTIVITY))
            found = sessions("-p", server.pid, "--all")
            some = sessions("-p", server.pid)
            if before == sorted(query(server, ACTIVITY)):
                break
        else:
            pytest.fail("the processes change all the time")
    who = {one["pid"]: (one["pid"], one["backend"], one.get("user"), one.get("database"), one.get("state")) for one in found}
    assert sorted(who) == [row[0] for row in before], (before, found)
    for row in before:
        assert who[row[0]] == row, (row, found)
    busy = {row[0] for row in before if row[1] in ("client", "walsender") or row[4] not in (None, "idle")}
    assert {one["pid"] for one in some} == busy, (some, before)


def test_parallel_workers(server):
    """They are listed below their leader."""
    server.psql("create table wide as select generate_series(1, 100000) i", "alter table wide set (parallel_workers = 2)", "analyze wide")
    with server.connect() as connection:
        for setting in ("parallel_setup_cost = 0", "parallel_tuple_cost = 0", "min_parallel_table_scan_size = 0", "max_parallel_workers_per_gather = 2"):
            connection.execute(f"set {setting}")
        connection.pgconn.send_query(b"select count(*) from wide where pg_sleep(0.001) is not null /* parallel */")
        leader = connection.pgconn.backend_pid
        type_of = "background worker" if server.number == 10 else "parallel worker"
        listed = wait_for(lambda: [found for found in [sessions("-p", server.pid)] if sum("leader_pid" in one for one in found) == 2],
                          what="two parallel workers")[0]
        table = run("ps", "-p", server.pid, "-o", "pid,query").stdout
        truth = {row[0] for row in query(server, f"select pid from pg_stat_activity where query like '%/* parallel */' and pid <> {leader} "
                                                 "and pid <> pg_backend_pid()")}
        connection.cancel()
        connection.close()
    workers = [one for one in listed if "leader_pid" in one]
    assert {one["pid"] for one in workers} == truth and {one["leader_pid"] for one in workers} == {leader}, (listed, truth)
    assert {one["backend"] for one in workers} == {type_of} and all("/* parallel */" in one["query"] for one in workers), workers
    pids = [int(line.split()[0]) for line in table.splitlines()[1:]]
    assert set(pids[pids.index(leader) + 1:pids.index(leader) + 3]) == truth, table
    server.psql("drop table wide")


def test_blocker_is_a_row(server):
    """Whatever the filter is."""
    server.psql("create role waiter superuser login", "create table held (i int)")
    with server.connect() as holder, server.connect(user="waiter") as waiter:
        holder.pgconn.exec_(b"begin; lock table held")
        waiter.pgconn.send_query(b"select * from held")
        pids = [waiter.pgconn.backend_pid, holder.pgconn.backend_pid]
        listed = wait_for(lambda: [found for found in [sessions("-p", server.pid, "--user", "waiter")] if len(found) > 1], what="the wait")[0]
        assert sorted(one["pid"] for one in listed) == sorted(pids) and listed[0]["blocked_by"] == [pids[1]], listed
        holder.close()
        waiter.close()
    server.psql("drop table held", "drop role waiter")


# --- without probes


def test_sampled(server, subscribed, tool):
    """The same statements, from memory."""
    traced = tool("-p", server.pid, "-m", "100", "--json", "--sample", "10ms")
    with server.connect() as connection:
        numbers = iter(range(1000))

        def applied():
            """On a busy host a sample can come so late that it misses a transaction: another one follows."""
            for word in ("fast", "slow"):
                connection.execute("insert into changes values (%s, %s)", [next(numbers), word])
            time.sleep(0.5)
            return [one for one in with_tag(traced, APPLY) if one["duration_ms"] >= 190]

        one = wait_for(applied, what="the transaction that is applied")[0]
        connection.execute("create table cleaned (i int) with (autovacuum_vacuum_cost_delay = 20, autovacuum_vacuum_cost_limit = 1)")
        connection.execute("insert into cleaned select generate_series(1, 5000)")
        connection.execute("delete from cleaned")
    cleaned = wait_for(lambda: with_tag(traced, "public.cleaned"), what="the autovacuum")[0]
    assert traced.stop() == 0, traced.said()		# on a busy host samples come late
    server.psql("drop table cleaned")
    assert one["database"] == "copy" and one["query"] == APPLY, one
    assert (cleaned["backend"], cleaned["database"]) == ("autovacuum worker", "postgres") and cleaned["query"].startswith("autovacuum: VACUUM"), cleaned
