# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sessions in slots and in the overflow. Long texts leave room for few slots."""

import os
import shutil
import signal
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest

import bpf_objects
import wire
from cluster import wait_for
from fallbacks import force, forces
from mariadb import SERVER, Maria, maria_server
from statements import stopped

TEXT = 65536		# for which there are 16 slots
CLIENTS = 40


class Slots:
    """The slots of a tool, in the map that the tool has a descriptor of."""

    def __init__(self, traced):
        self.traced = traced

    def read(self):
        """[(key, owner, claims)]"""
        values = bpf_objects.array_values(bpf_objects.objects(self.traced.pid)["maps"], "slots")
        return [struct.unpack_from("=QQI", value) for value in values]

    def taken(self):
        return [slot for slot in self.read() if any(slot)]

    def wait_until_free(self):
        wait_for(lambda: not self.taken(), 60, "all slots to be free again")


def tagged(traced):
    """{text: [pid]} of the statements of these tests."""
    found = {}
    for one in traced.statements:
        if "/* slots" in one.get("query", "/* slots"):
            found.setdefault(one.get("query"), []).append(one["pid"])
    return found


@pytest.mark.parametrize("args", [[], force("perf"), force("perfbuf")], ids=" ".join)
def test_more_sessions_than_slots(postgres, tool, args):
    """Sessions come and go in the slots and the overflow; each statement is reported once, with its own session."""
    traced = tool("postgres", "-p", postgres.pid, "-m", "0", "--json", "--text", TEXT, *args)
    slots = Slots(traced)
    expected, connections = {}, []

    def run(number):
        text = f"select {number} /* slots {len(expected)} {number} */"
        connections[number].execute(text)
        return text, [connections[number].info.backend_pid]

    for _ in range(4):
        connections += [postgres.connect() for _ in range(CLIENTS - len(connections))]
        for _ in range(3):
            with ThreadPoolExecutor(8) as pool:
                expected.update(pool.map(run, range(CLIENTS)))
        taken = slots.taken()
        if forces(args, "perfbuf"):
            assert not taken, "there are none without a ring"
        else:
            assert len(slots.read()) == 16 and len(taken) > 8
            pids = {connection.info.backend_pid for connection in connections}
            assert all(key in pids and claims == 1 for key, _, claims in taken), taken
        closed = {connection.info.backend_pid for connection in connections[::2]}
        for connection in connections[::2]:
            connection.close()
        wait_for(lambda: not closed & set(postgres.backends()), what="their backends to end")
        connections = connections[1::2]
    for connection in connections:
        connection.close()
    postgres.settle()
    slots.wait_until_free()
    stopped(traced, idle=True)
    assert tagged(traced) == expected


def test_unwanted_sessions_free_their_slots(postgres, tool):
    postgres.psql("drop role if exists slot_user; create role slot_user login")
    traced = tool("postgres", "-p", postgres.pid, "-m", "0", "--json", "--text", TEXT, "--user", "slot_user")
    slots = Slots(traced)
    for number in range(3):
        others = [postgres.connect() for _ in range(CLIENTS)]
        for other in others:
            other.execute("select 'other' /* slots */")
        wait_for(lambda: slots.read() and not any(key for key, _, _ in slots.read()), 60, "the sessions to be dismissed")
        for other in others:
            other.execute("select 'another' /* slots */")
        with postgres.connect(user="slot_user") as mine:
            mine.execute(f"select {number} /* slots */")
            wait_for(lambda: len(tagged(traced)) == number + 1, 60, "it to be shown")
        for other in others:
            other.close()
    postgres.settle()
    slots.wait_until_free()
    assert traced.stop() == 0, traced.said()
    assert set(tagged(traced)) == {f"select {number} /* slots */" for number in range(3)}


BEFORE = "select pg_advisory_lock(73) /* slots before */"


def held(postgres):
    """A connection that has the lock which BEFORE waits for, until it is closed."""
    holder = postgres.connect()
    holder.execute("select pg_advisory_lock(73)")
    return holder


def test_statement_that_ran_before(postgres, tool):
    """User space adds its session; once idle it gets a slot like any other."""
    with postgres.connect() as connection:
        pid, holder = connection.info.backend_pid, held(postgres)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(connection.execute, BEFORE)
            wait_for(lambda: b"t\n" == postgres.psql(f"select wait_event = 'advisory' from pg_stat_activity where pid = {pid}")
                     .stdout, 60, "it to wait")
            traced = tool("postgres", "-p", postgres.pid, "-m", "0", "--json")
            slots = Slots(traced)
            assert not any(key == pid for key, _, _ in slots.read())
            holder.close()
            running.result()
        wait_for(lambda: any(key == pid for key, _, _ in slots.read()), 60, "it to have a slot")
        connection.execute("select 2 /* slots next */")
        assert any(key == pid for key, _, _ in slots.read())
    stopped(traced, idle=True)
    assert tagged(traced) == {BEFORE: [pid], "select 2 /* slots next */": [pid]}


@pytest.mark.parametrize("args", [[], force("perfbuf"), ["--why"]], ids=" ".join)
def test_error_after_a_statement_that_ran_before(postgres, tool, args):
    """The first hit of the idle session is a failure, of a message without a statement: it is seen, and no end is missed."""
    connection, holder = wire.Wire(postgres, "slots"), held(postgres)
    connection.send(wire.simple(BEFORE))
    wait_for(lambda: b"t\n" == postgres.psql("select count(*) = 1 from pg_stat_activity where wait_event = 'advisory'").stdout,
             60, "it to wait")
    traced = tool("postgres", "-p", postgres.pid, "-m", "0", "--json", *args)
    holder.close()
    connection.until(b"Z")
    assert b"E" in connection.ask(wire.bind(name="nothing"))
    connection.ask(wire.parse("select 2 /* slots next */"), wire.bind(), wire.execute())
    connection.close()
    postgres.settle()
    stopped(traced, idle=True)
    assert {text: len(pids) for text, pids in tagged(traced).items()} == {
        BEFORE: 1, None: 1, "select 2 /* slots next */": 1}


def test_server_that_is_killed(tool, tmp_path):
    """Its sessions are objects that nobody closes: they are removed when another server starts."""
    if not maria_server():
        pytest.skip("no MariaDB server (packages mariadb-server-core, mariadb-client-core)")
    for parent in tmp_path.parents:
        if parent.owner() == "root" and str(parent).startswith("/tmp/") and os.geteuid() == 0:
            parent.chmod(parent.stat().st_mode | 0o055)
    tmp_path.chmod(0o755)
    path = shutil.copy(SERVER, tmp_path)	# a file that no other server runs
    server = Maria(server=path).init()
    try:
        server.start()
        traced = tool("mysql", "-x", path, "-m", "0", "--json")
        slots = Slots(traced)
        clients, keys = [], set()
        while len(keys) < 8:		# the slot of an object is random, and may be taken
            assert len(clients) < 40
            clients.append(server.connect())
            clients[-1].query(f"select {len(clients) - 1} /* slots */")
            keys = {key for key, _, _ in slots.taken()}
        # The client is answered before the statement has ended.
        wait_for(lambda: len(tagged(traced)) == len(clients), 60, "all to be shown")
        killed = server.pid
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        server.start()
        wait_for(lambda: not keys & {key for key, _, _ in slots.taken()}, what="the slots of the killed one to be free")
        before, again = len(clients), server.pid
        while len(clients) == before or not slots.taken():	# as above
            assert len(clients) < before + 40
            clients.append(server.connect())
            clients[-1].query(f"select {len(clients) - 1} /* slots */")
        wait_for(lambda: len(tagged(traced)) == len(clients), 60, "all to be shown")
        server.stop()
        assert traced.stop() == 0, traced.said()
    finally:
        server.remove()
    found = tagged(traced)
    assert killed != again
    assert found == {f"select {number} /* slots */": [killed if number < before else again] for number in range(len(clients))}
