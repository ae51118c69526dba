# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Each filter selects the same sessions of each kind of event, live and in a recording: which ones is written out here. A value
that a session does not have matches no filter. All texts have the label of their session.
"""

import contextlib
import os
import re
import threading
import time

import pytest

from cluster import Cluster, wait_for
from containers import control_group, make_control_group
from mariadb import Maria
from requirements import need_maria, need_root, need_server
from test_record import Record, replay
from tool import Locks, parsed, run

CONTAINER = "fedcba987654" + "01" * 26

# What of the kinds of events below, which every session has, each filter selects.
POSTGRES = {
    ("--user", "alice"): {"label_web"},
    ("--db", "lab"): {"label_batch"},
    ("--client", "127.0.0.1"): {"label_web"},
    ("--client", "[local]"): {"label_batch", "label_plain"},
    ("--app", "batch"): {"label_batch"},
    ("--container", CONTAINER[:12]): {"label_batch"},
    ("--match", "label_plain"): {"label_plain"},
    ("--user", "nobody"): set(),
    ("--app", "[unknown]"): set(),
}
MARIA = {
    ("--user", "app"): {"label_shop"},
    ("--db", "shop"): {"label_shop"},
    ("--client", "127.0.0.1"): {"label_shop"},
    ("--match", "label_root"): {"label_root"},
    ("--app", "shop"): set(),
    ("--container", "fedcba987654"): set(),
}
KINDS = {"slow": ("statement", "running"), "transactions": ("transaction", "open"), "locks": ("ended wait", "wait")}
HELD_S = 1	# who waits, and for what, is read during the wait, by each of the tools
# MariaDB reports who runs a statement at its end.
LATE = {"running", "open"}


class Sessions:
    """Runs of the same statements in sessions by label, each of which waits at last."""

    def __init__(self, server, connections, hold, wait):
        self.server, self.connections, self.hold, self.wait = server, connections, hold, wait
        self.threads = []

    def later(self, label, number):
        text, query = self.wait.format(number=number, label=label), self.connections[label]

        def work():
            with contextlib.suppress(Exception):	# it ends when the server does
                query(text)
        self.threads.append(threading.Thread(target=work, daemon=True))
        self.threads[-1].start()
        self.hold.wait(number)

    def run(self):
        """What ends, and then what does not."""
        for number, (label, query) in enumerate(self.connections.items(), 1):
            query(f"select '{label}'")
            query("begin")
            query(f"select '{label} in a transaction'")
            query("commit")
            self.hold.take(number)
            self.later(label, number)
            time.sleep(HELD_S)
            self.hold.release(number)
            self.threads[-1].join(60)
            query("commit")
        for number, (label, query) in enumerate(self.connections.items(), 11):
            self.hold.take(number)
            query("begin")
            query(f"select '{label} in an open transaction'")
            self.later(label, number)


class Advisory:
    """Locks of PostgreSQL that other sessions hold, as each database has its own."""

    def __init__(self, server, *names):
        self.connections = [server.connect(dbname=name) for name in names]

    def all(self, text):
        return [one.execute(text).fetchone() for one in self.connections]

    def take(self, number):
        self.all(f"select pg_advisory_lock({number})")

    def release(self, number):
        self.all(f"select pg_advisory_unlock({number})")

    def wait(self, number):
        wait_for(lambda: self.all(f"select 1 from pg_locks where not granted and objid = {number}")[0], what="the lock wait")


class Rows:
    """Rows of MariaDB that another session holds."""

    def __init__(self, server):
        self.server, self.client = server, server.connect()

    def take(self, number):
        if number < 12:	# the others wait until the end, for rows of the same holder
            self.client.query("begin")
            self.client.query(f"select v from shop.t where id {'= 1' if number < 10 else '> 1'} for update")

    def release(self, number):
        self.client.query("commit")

    def wait(self, number):
        with self.server.connect() as oracle:	# InnoDB's tables are read anew only when they have not been read for 0.1 s
            wait_for(lambda: len(oracle.rows("select * from information_schema.innodb_lock_waits")) >= max(1, number - 10),
                     what="the lock wait", every=0.2)


@contextlib.contextmanager
def postgres_sessions():
    need_root()
    need_server()
    group, base = make_control_group(f"docker-{CONTAINER}.scope")
    with contextlib.ExitStack() as stack:
        move = stack.enter_context(control_group(group, base))
        server = stack.enter_context(Cluster(name="filters", autovacuum="off").init()).start()
        server.psql("create role alice login", "create role bob login", "create database shop", "create database lab")
        made = {"label_web": server.connect(user="alice", dbname="shop", host="127.0.0.1", application_name="web"),
                "label_batch": server.connect(user="bob", dbname="lab", application_name="batch"),
                "label_plain": server.connect()}
        move(made["label_batch"].info.backend_pid)
        yield Sessions(server, {label: lambda text, one=one: one.execute(text) for label, one in made.items()},
                       Advisory(server, "shop", "lab", "postgres"), "select pg_advisory_lock({number}), '{label}'")


@contextlib.contextmanager
def maria_sessions():
    need_root()
    need_maria()
    with Maria(innodb_lock_wait_timeout="1000", skip_name_resolve="ON").init() as server:
        server.start()
        server.query("create database shop", "create table shop.t (id int primary key, v int) engine = innodb",
                     "insert into shop.t values (1, 1), (2, 1), (3, 1)", "create user app", "grant all on shop.* to app")
        made = {"label_shop": server.connect(user="app", database="shop", tcp=True), "label_root": server.connect()}
        yield Sessions(server, {label: one.query for label, one in made.items()}, Rows(server),
                       "update shop.t set v = {number} where id = greatest(1, {number} - 9) /* {label} */")


def labels(objects, kind):
    """Of the sessions that have events of the kind."""
    def is_kind(one):
        if one["type"] != "lock_wait":
            return one["type"] == kind
        return kind == ("wait" if one["outcome"] == "waiting" else "ended wait")
    return {found[0] for one in objects if is_kind(one) for found in [re.findall("label_[a-z]+", one.get("query", ""))] if found}


def page(path, *args):
    done = run("report", path, *args)
    assert done.returncode == 0, done.stderr
    return set(re.findall("label_[a-z]+", done.stdout))


class Run:
    """Recordings with each filter, what live commands and ps print with it, and a recording of all."""

    def __init__(self, folder, sessions, filters):
        self.filters, self.folder, self.server = filters, folder, sessions.server
        place = ("-m", "0", "-p", sessions.server.pid)
        self.all = os.path.join(folder, "all.rec")
        with contextlib.ExitStack() as stack:
            recorders = [stack.enter_context(Record(self.path(one), *place, *one)) for one in filters]
            recorders.append(stack.enter_context(Record(self.all, *place)))
            locks = {one: stack.enter_context(Locks("locks", "--json", *place, *one)) for one in filters}
            sessions.run()
            self.sessions = {one: parsed(run("ps", "--json", "-p", sessions.server.pid, *one).stdout.encode().splitlines())
                             for one in filters}
            for recorder in recorders:
                recorder.ended()
            for one in locks.values():
                assert one.stop() == 0, one.said()
            self.locks = {one: found.objects() for one, found in locks.items()}

    def path(self, one):
        return os.path.join(self.folder, f"{'-'.join(one).strip('-')}.rec")


@pytest.fixture(scope="module")
def postgres_run(tmp_path_factory):
    with postgres_sessions() as sessions:
        yield Run(str(tmp_path_factory.mktemp("postgres")), sessions, POSTGRES)


@pytest.fixture(scope="module")
def maria_run(tmp_path_factory):
    with maria_sessions() as sessions:
        yield Run(str(tmp_path_factory.mktemp("maria")), sessions, MARIA)


def check(made, one, late=frozenset()):
    wanted = made.filters[one]
    for command, kinds in KINDS.items():
        recorded = replay(made.path(one), command, "-m", "0", "--json")
        replayed = replay(made.all, command, "-m", "0", "--json", *one)
        for kind in kinds:
            if kind in late:
                continue
            assert labels(recorded, kind) == wanted, (kind, "live", one, recorded)
            assert labels(replayed, kind) == wanted, (kind, "replay", one, replayed)
    for kind in KINDS["locks"]:
        assert labels(made.locks[one], kind) == wanted, (kind, "locks", one, made.locks[one])
    assert labels(made.sessions[one], "session") == wanted, (one, made.sessions[one])
    assert page(made.all, *one) == wanted, one


def everything(made):
    """Without a filter there is each kind of event of each session, so that the others mean something."""
    found = {kind: labels(replay(made.all, command, "-m", "0", "--json"), kind) for command, kinds in KINDS.items() for kind in kinds}
    names = set().union(*made.filters.values())
    assert found == {kind: names for kinds in KINDS.values() for kind in kinds}, found


@pytest.mark.parametrize("one", POSTGRES, ids=" ".join)
def test_postgres(postgres_run, one):
    check(postgres_run, one)


@pytest.mark.parametrize("one", MARIA, ids=" ".join)
def test_mariadb(maria_run, one):
    check(maria_run, one, LATE if one[0] not in ("--match", "--app", "--container") else set())


@pytest.mark.parametrize("made", ["postgres_run", "maria_run"])
def test_all(request, made):
    everything(request.getfixturevalue(made))


def test_session_that_is_gone(tool, postgres_run):
    """What is known of a session that waits is known at the end of the wait, too, when its process is gone."""
    server = postgres_run.server
    pids = server.psql("select pid from pg_stat_activity where application_name = 'batch'").stdout.split()
    assert len(pids) == 1, (server.psql("select * from pg_stat_activity").stdout, server.read_log(0))
    pid = int(pids[0])
    filters = (("--container", CONTAINER[:12]), ("--app", "batch"), ("--user", "bob"))
    traced = [tool("locks", "--json", "-m", 0, "-p", server.pid, *one, kind=Locks) for one in filters]
    for one in traced:
        one.sees(pid)
    server.psql(f"select pg_terminate_backend({pid})")
    for one in traced:
        wait = one.wait_of(pid)
        one.ended()
        assert wait["server"]["container"] == CONTAINER[:12] and wait["server"]["pid"] == server.pid, one.said()
        assert wait["outcome"] == "failed" and "label_batch" in wait["query"], one.said()
