# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Statements that end while probes are detached one by one. strace slows detaching down."""

import shutil
import threading
import time
from datetime import datetime

import pytest

from cluster import children, wait_for
from fallbacks import force
from interrupted import strace
from mariadb import Maria, maria_server

CLIENTS = 4

# At each close of a descriptor, a probe's too: a few statements begin and end in that time.
DELAY_US = 20000


class Postgres:
    """The server, as the test uses it."""

    RUNS = "query like '%{}_*/' and state = 'active'"

    def __init__(self, server):
        self.server, self.pid = server, server.pid

    def connect(self):
        connection = self.server.connect()
        connection.autocommit = True
        return connection, lambda text: connection.execute(text.format(sleep="pg_sleep"))

    def kill(self, tag):
        return self.server.psql(f"select pg_cancel_backend(pid) from pg_stat_activity where {self.RUNS.format(tag)}").stdout

    def runs(self, tag):
        return self.server.psql(f"select pid from pg_stat_activity where {self.RUNS.format(tag)}").stdout


class Mysql(Postgres):
    RUNS = "select id from information_schema.processlist where info like '%{}_*/'"

    def connect(self):
        client = self.server.connect()

        def query(text):
            try:
                client.query(text.format(sleep="sleep"))
            finally:
                client.ping()	# the answer comes before the end
        return client, query

    def kill(self, tag):
        with self.server.connect() as client:
            found = client.rows(self.RUNS.format(tag))
            for row in found:
                client.query(f"kill query {int(row[0])}")
        return found

    def runs(self, tag):
        with self.server.connect() as client:
            return client.rows(self.RUNS.format(tag))


class Client(threading.Thread):
    """Statements one after the other. times: of each, when it was sent and answered."""

    def __init__(self, server, number):
        super().__init__(daemon=True)
        self.number, self.stop = number, threading.Event()
        self.connection, self.query = server.connect()
        self.times = {}

    def send(self, seconds):
        text = f"select {{sleep}}({seconds}) /* {self.number} {len(self.times)} */"
        sent = time.time()
        try:
            self.query(text)
        except Exception:		# it is killed; each library has its own
            assert seconds > 1
        self.times[text.split("(")[1]] = (sent, time.time())

    def run(self):
        with self.connection:
            while not self.stop.is_set():
                self.send(0.007)


class LongClient(Client):
    """One statement, until it is killed."""

    def run(self):
        with self.connection:
            self.send(600)


@pytest.fixture(scope="module", params=["postgres", "maria"])
def server(request):
    """Of each engine."""
    if request.param == "postgres":
        yield Postgres(request.getfixturevalue("postgres"))
        return
    if not maria_server():
        pytest.skip("no MariaDB server (packages mariadb-server-core, mariadb-client-core)")
    with Maria(slow_query_log="OFF").init() as maria:
        yield Mysql(maria.start())


def stop_slowly(traced, where):
    child, = children(traced.pid)	# it closes the last descriptor of each probe
    with strace(child, "-o", "/dev/null", "-e", "trace=close", "-e", f"inject=close:{where}={DELAY_US}"):
        traced.stop()


@pytest.mark.parametrize("where, args", [("delay_enter", []), ("delay_exit", force("perf"))], ids=["multi", "perf"])
def test_what_ran_when_probes_went(server, tool, where, args):
    """
    It is shown with the text and the start that its client knows, until the time when the first probe
    went; or its end was seen, and it is not shown. Counted it is either way, and once.
    """
    if not shutil.which("strace"):
        pytest.skip("no strace")
    clients = [Client(server, n) for n in range(CLIENTS)]
    for one in clients:
        one.start()
    traced = tool("-p", server.pid, "-m", "0", "--json", *args)
    clients.append(LongClient(server, CLIENTS))
    clients[-1].start()
    wait_for(lambda: len(clients[0].times) > 20 and len(traced.statements) > 20, what="statements")
    wait_for(lambda: server.runs(f"/* {CLIENTS} 0"), what="the long one")
    stop_slowly(traced, where)
    for one in clients:
        one.stop.set()
    wait_for(lambda: server.kill(f"/* {CLIENTS} 0"), what="the long one to be killed")
    for one in clients:
        one.join()
    boundary = traced.summary["boundary"]
    running = [one for one in traced.objects() if one["type"] == "running"]
    assert traced.summary["statements"] == traced.summary["printed"] == len(traced.statements), traced.said()
    assert len(running) <= boundary <= CLIENTS + len(clients) and not traced.lost(), traced.said()
    assert [one["query"] for one in running if f"/* {CLIENTS} " in one["query"]], traced.said()
    check_running(running, clients)


def check_running(running, clients):
    """Each began between its client's sending and its answer, and all were looked at once."""
    ends = []
    for one in running:
        sent, answered = clients[int(one["query"].split()[-3])].times[one["query"].split("(")[1]]
        began = datetime.fromisoformat(one["time"][:26] + "+00:00").timestamp()
        ends.append(began + one["duration_ms"] / 1000)
        # That of a statement and that of its client are two of the kernel's clocks.
        assert sent - 0.001 <= began <= ends[-1] <= answered + 0.001, (one, sent, answered)
    assert max(ends) - min(ends) < 0.001, running
