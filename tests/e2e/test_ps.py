# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ps: the sessions, compared with pg_stat_activity and the process list of MariaDB."""

import contextlib
import datetime
import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import termios
import unicodedata

import pytest

from cluster import Cluster, wait_for
from commanded import as_user
from requirements import need_root
from tool import DBSLOWER, parsed, refused, run, sessions

ACTIVITY = """select pid, usename, datname, coalesce(host(client_addr) || '(' || client_port || ')', '[local]'), application_name, state,
    wait_event_type, wait_event, extract(epoch from query_start), extract(epoch from state_change), extract(epoch from xact_start),
    pg_blocking_pids(pid), query from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()"""
TOLERANCE = 0.002	# of a time stamp in us, of which JSON has the difference to another clock reading


def seconds(stamp):
    """RFC 3339 with nanoseconds, in seconds since 1970."""
    whole, fraction = stamp.rstrip("Z").split(".")
    return datetime.datetime.fromisoformat(whole + "+00:00").timestamp() + float("0." + fraction)


def since(session, member):
    return seconds(session["time"]) - session[member] / 1000 if member in session else None


class Busy:
    """Sessions in each state, one of which waits for another one's lock, and a third for both."""

    def __init__(self, server):
        server.psql("drop table if exists busy", "create table busy (id int primary key, v int)", "insert into busy values (1, 1)")
        self.server, self.connections, self.threads = server, [], []
        server.psql("drop role if exists teller", "create role teller login superuser")
        idle, holder, aborted, sleeper, waiter, third = (
            self.connect(application_name=f"app {n}", user=user, host=host) for n, (user, host) in enumerate(
                [("postgres", "127.0.0.1"), ("teller", None), ("postgres", None), ("postgres", None), ("teller", None), ("postgres", None)]))
        idle.execute("select 'idle now'")
        holder.pgconn.exec_(b"begin; update busy set v = 2 where id = 1")
        aborted.pgconn.exec_(b"begin")
        aborted.pgconn.exec_(b"select 1/0")
        self.begin(sleeper, "select pg_sleep(600), 'caf\u00e9'")
        self.waits(sleeper, b"Timeout")
        self.begin(waiter, "update busy set v = 3 where id = 1")
        self.waits(waiter)
        self.begin(third, "lock table busy in access exclusive mode")
        self.waits(third)
        self.alone()

    def connect(self, host=None, **keywords):
        self.connections.append(self.server.connect(**({"host": host} if host else {}), **keywords))
        return self.connections[-1]

    def begin(self, connection, text):
        if "lock table" in text:
            connection.pgconn.exec_(b"begin")
        connection.pgconn.send_query(text.encode())
        connection.pgconn.flush()

    def waits(self, connection, kind=b"Lock"):
        wait_for(lambda: self.server.psql(f"select wait_event_type from pg_stat_activity where pid = {connection.info.backend_pid}"
                                          ).stdout == kind + b"\n", what="it to wait")

    def alone(self):
        """Waits until the backends of clients that are gone have ended."""
        pids = {one.info.backend_pid for one in self.connections}
        wait_for(lambda: set(self.server.client_backends()) == pids, what="other sessions to end")

    def activity(self):
        """The rows of the sessions, each of which waits: what has been answered does not yet."""
        def rows():
            with self.server.connect() as connection:
                found = {row[0]: row[1:] for row in connection.execute(ACTIVITY)}
            return found if all(row[5] for row in found.values()) else None
        found = wait_for(rows, what="all to wait")
        self.alone()
        return found

    def __enter__(self):
        return self

    def __exit__(self, *why):
        self.server.psql("select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend'"
                         " and pid <> pg_backend_pid()")
        for connection in self.connections:
            connection.close()


@pytest.fixture(scope="module")
def busy():
    need_root()
    with Cluster(name="ps", autovacuum="off", deadlock_timeout="600s").init() as cluster, Busy(cluster.start()) as found:
        yield found


def test_sessions_of_postgres(busy):
    """All that pg_stat_activity has of them, and who blocks whom."""
    before = busy.activity()
    seen = {one["pid"]: one for one in sessions("-p", str(busy.server.pid))}
    after = busy.activity()
    assert set(before) == set(after) == set(seen) and len(seen) == 6
    for pid, row in before.items():
        one = seen[pid]
        user, database, client, application, state, wait_class, wait, query_start, state_change, xact_start, blockers, query = row
        assert (one["user"], one["database"], one["client"], one["application"], one["state"]) == (
            user, database, client, application, state), (one, row)
        assert one["wait"] == f"{wait_class}:{wait}", (one, row)
        assert one["query"] == query and one["server"]["pid"] == busy.server.pid and "connection_id" not in one
        assert set(one.get("blocked_by", [])) <= set(blockers) and bool(blockers) == ("blocked_by" in one), (one, row)
        for member, wanted in (("duration_ms", query_start if state == "active" else None), ("state_ms", state_change),
                               ("transaction_ms", xact_start)):
            got = since(one, member)
            assert (got is None) == (wanted is None) and (got is None or abs(got - float(wanted)) < TOLERANCE), (member, one, row)
    assert {row[4] for row in before.values()} == {"active", "idle", "idle in transaction", "idle in transaction (aborted)"}


@pytest.mark.parametrize("args, wanted", [
    (["--user", "teller"], {1, 4}), (["--client", "127.0.0.1"], {0}), (["--match", "busy set"], {1, 4}), (["--db", "nosuch"], set()),
    (["10m"], set()), (["--engine", "mysql"], None), (["--container", "0123456789ab"], set())], ids=lambda args: str(args))
def test_filters(busy, args, wanted):
    if wanted is None:
        refused(run("ps", *args, "-p", str(busy.server.pid)), "server of another kind", status=1)
        return
    assert {one["pid"] for one in sessions("-p", str(busy.server.pid), *args)} == {
        busy.connections[n].info.backend_pid for n in wanted}


def test_one_process(busy):
    pid = busy.connections[3].info.backend_pid
    (one,) = sessions("-p", str(pid), "--redact")
    assert one["pid"] == pid and one["query"] == "select pg_sleep(?), ?"
    (cut,) = sessions("-p", str(pid), "--text", "27")	# in the middle of a character
    assert cut["query"] == "select pg_sleep(600), 'caf" and cut["truncated"]


@pytest.mark.parametrize("text", ["select 'C:\\', '" + "zzsecret " * 200 + "'", "select 'a\\', 'zzsecret"], ids=["cut", "failed"])
def test_last_statement_is_redacted(postgres, text):
    """The server has cut it, or it failed as a string has no end: no reading of its quotes can be ruled out."""
    connection = postgres.connect()
    with contextlib.closing(connection):
        connection.pgconn.exec_(text.encode())
        pid = str(connection.info.backend_pid)
        (whole,), (redacted,) = sessions("-p", pid), sessions("-p", pid, "--redact", "--match", "zzsecret")
        assert "zzsecret" in whole["query"] and whole.get("truncated", False) == (len(text) > 1023), whole
        assert "zzsecret" not in redacted["query"] and "select" in redacted["query"], redacted


def test_files_of_another_user(busy, tmp_path):
    """Programs of one user that are named as a server leave room for the others'."""
    started = []
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o711)
    try:
        for n in range(70):
            (tmp_path / str(n)).mkdir(mode=0o755)
            shutil.copy("/bin/sleep", tmp_path / str(n) / "postgres")
            started.append(subprocess.Popen([tmp_path / str(n) / "postgres", "600"], **as_user()))
        done = run("ps", "--json")
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert {one.get("pid") for one in parsed(done.stdout.splitlines())} >= {one.info.backend_pid for one in busy.connections}
    assert done.stderr.count("too many files of servers of one user (user ID 1001)") == 1, done.stderr


def columns_of(text):
    """The width of a line on a terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


@pytest.mark.parametrize("width", [60, 100, 200])
def test_lines_fit_the_terminal(busy, width):
    """The statement is cut, the tree indents it."""
    busy.connections[0].execute("select '" + "\u65e5\u672c\u8a9e e\u0301 " * 40 + "'")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    process = subprocess.Popen([DBSLOWER, "ps", "-p", str(busy.server.pid), "--tree", "-o", "id,state,blocked_by,query"], stdout=slave)
    os.close(slave)
    out = b""
    while True:
        try:
            out += os.read(master, 65536)
        except OSError:
            break
    os.close(master)
    assert process.wait() == 0
    lines = out.decode().replace("\r", "").splitlines()
    assert len(lines) == 7 and all(columns_of(line) <= width for line in lines), lines
    assert max(columns_of(line) for line in lines) >= width - 1, lines
    holder, waiter, third = (str(busy.connections[n].info.backend_pid) for n in (1, 4, 5))
    order = [line.split()[0] for line in lines]
    assert order.index(holder) + 1 == order.index(waiter) or order.index(holder) + 2 == order.index(waiter), lines
    row = lines[order.index(waiter)]
    assert re.search(rf"{holder} +  update busy", row), row
    assert order.index(third) > order.index(holder), lines


def test_columns_are_checked():
    refused(run("ps", "-o", "id,quary"), "-o quary: unknown column; did you mean query", status=2)
    refused(run("ps", "-o", "id,nonsense"), "the columns are id, pid, ", status=2)
    refused(run("ps", "-n", "3"), "requires -i", status=2)
    refused(run("ps", "-p", str(os.getpid())), "not a supported database server", status=1)


def test_repeats(busy):
    done = run("ps", "-p", str(busy.server.pid), "-i", "50ms", "-n", "3", "-o", "id")
    assert done.stdout.split("\n").count("      ID") == 3 and done.returncode == 0
    assert len(done.stdout.split("\n\n")) == 3


def test_without_privileges(busy, public_tool):
    done = subprocess.run([public_tool, "ps", "-p", str(busy.server.pid)], capture_output=True, text=True, **as_user())
    assert re.search(r"process \d+: cannot be read: .*CAP_SYS_PTRACE", done.stderr), done.stderr
    assert done.stderr.count("\n") == 1


def test_track_activities_off(postgres):
    """Then the entry is empty, and variables and the title tell."""
    idle, active, begun = (postgres.connect(options="-c track_activities=off") for _ in range(3))
    with contextlib.closing(idle), contextlib.closing(active), contextlib.closing(begun):
        idle.execute("select 1")
        begun.pgconn.exec_(b"begin")
        active.pgconn.send_query(b"select pg_sleep(600)")
        active.pgconn.flush()
        pids = [one.info.backend_pid for one in (idle, active, begun)]
        wait_for(lambda: sessions("-p", str(pids[1]))[0].get("query") == "select pg_sleep(600)", what="the statement")
        assert [sessions("-p", str(pid))[0].get("state") for pid in pids] == ["idle", "active", "idle in transaction"]
        postgres.psql(f"select pg_terminate_backend({pids[1]})")


@pytest.mark.parametrize("user, database", [("Big Boss", "postgres"), ("postgres", "my shop [local]"), ("a: b", "c d e")])
def test_names_with_blanks(postgres, user, database):
    """They are ambiguous in a process title, and shown as pg_stat_activity has them."""
    for kind, name in (("role", user), ("database", database)):
        if name != "postgres":
            postgres.psql(f'create {kind} "{name}"' + (" login" if kind == "role" else ""))
    with contextlib.closing(postgres.connect(user=user, dbname=database)) as one, contextlib.closing(postgres.connect()) as other:
        pid = one.info.backend_pid
        (row,) = other.execute("select usename, datname from pg_stat_activity where pid = %s", [pid]).fetchall()
        (seen,) = sessions("-p", str(pid))
    assert (seen["user"], seen["database"], seen["client"]) == (*row, "[local]") == (user, database, "[local]")
    for kind, name in (("database", database), ("role", user)):
        if name != "postgres":
            postgres.psql(f'drop {kind} "{name}"')


def test_prepared_transaction(tool):
    """It has no process: pg_blocking_pids() calls it 0."""
    with Cluster(name="prepared", max_prepared_transactions="2").init() as cluster:
        cluster.start()
        cluster.psql("create table t (a int); insert into t values (1)")
        with contextlib.closing(cluster.connect()) as holder, contextlib.closing(cluster.connect()) as waiter:
            holder.execute("begin")
            holder.execute("update t set a = 2")
            holder.execute("prepare transaction 'p'")
            waiter.pgconn.send_query(b"update t set a = 3")
            waiter.pgconn.flush()
            pid = waiter.info.backend_pid
            (row,) = wait_for(lambda: [row for row in holder.execute("select pg_blocking_pids(%s)", [pid]).fetchall() if row[0]], what="it to wait")
            (seen,) = sessions("-p", str(pid))
            shown = run("ps", "-p", str(pid), "-o", "id,blocked_by,query").stdout
            holder.execute("rollback prepared 'p'")
    assert seen["blocked_by"] == row[0] == [0]
    assert re.search(rf"^ *{pid} prepared +update t set a = 3$", shown, re.M), shown


@pytest.mark.parametrize("form", [["ps", "-i", "0.1"], ["slow"], ["stat", "-i", "0.1"], ["locks"]], ids=" ".join)
def test_ends_on_sigint_in_the_background(form):
    """A shell that is not interactive starts what has an & with SIGINT ignored."""
    need_root()
    script = """"$@" >/dev/null &
        sleep 1
        while grep -q 'SigIgn:.*[2367abef]$' /proc/$!/status; do sleep 0.1; done
        kill -INT $!; wait $!; echo $?"""
    done = subprocess.run(["sh", "-c", script, "sh", DBSLOWER, *form], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() in ("0", "130"), done
