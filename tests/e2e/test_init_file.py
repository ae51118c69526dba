# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
What MariaDB and MySQL execute before they serve clients: the statements of init_file, and those that create the server's tables. No
log has them; the statements themselves ask the server for its clock, its connection and its user.
"""

import os
import re
import signal
import subprocess
import threading

import pytest

from cluster import wait_for
from products import kind	# the fixture
from statements import only, stopped
from tool import sessions

# The last one fails, which the server writes to its own log; it executes no other one then.
TEXTS = [
    "create database app",
    "create table app.seen (number int primary key, at datetime(6), connection int, user varchar(80), db varchar(80))",
    "use app",
    "insert into seen values (1, sysdate(6), connection_id(), user(), database())",
    "select sleep(0.3) /* slow */",
    "insert into seen values (2, sysdate(6), connection_id(), user(), database()), (3, sysdate(6), 0, '', '')",
    "insert into missing values (1)",
]


@pytest.fixture
def server(kind):
    with kind().init() as one:
        yield one


def init_file(server, texts):
    path = os.path.join(server.dir, "init.sql")
    with open(path, "w", encoding="ascii") as f:
        f.write("".join(f"{text};\n" for text in texts))
    os.chmod(path, 0o644)
    return path


def of_init(traced, pid):
    """(text, statement) of each of the process that no client sent: another test may start a server of the same file."""
    return [(one["query"].rstrip(";"), one) for one in traced.statements if one["backend"] == "init" and one["server"]["pid"] == pid]


def test_init_file(server, tool):
    """Each statement, with its time by the server's clock."""
    server.settings["init_file"] = init_file(server, [*TEXTS, "select 'after the error'"])
    traced = tool("mysql", "-x", server.server, "-m", "0", "--json")
    server.start()
    (first, begin), *_, (_, end) = server.connect().rows("select connection, unix_timestamp(at) from app.seen where number in (1, 2)")
    user, database = server.connect().rows("select user, db from app.seen where number = 1")[0]
    stopped(traced)
    found = of_init(traced, server.pid)
    assert [text for text, _ in found] == TEXTS, traced.said()
    slow = only(traced, "/* slow */")
    assert 300 <= slow["duration_ms"] <= 1000 * (float(end) - float(begin)), (slow, begin, end)
    assert {one["connection_id"] for _, one in found} == {int(first)}, found
    assert slow["user"] == user.decode().partition("@")[0] == "boot" and slow["database"] == database.decode() == "app", (slow, user, database)
    assert [one["rows"] for text, one in found if text.startswith("insert into seen")] == [1, 2], found
    assert {one["status"] for _, one in found[:-1]} == {"ok"}, found
    assert found[-1][1]["status"] == "error" and re.search(rf"{found[-1][1]['errno']} +Table 'app.missing'", server.log_tail(4000)), found


def test_running(server, tool):
    """While it runs. MySQL's process list has it, and so has ps; then the server is killed in it."""
    server.settings["init_file"] = init_file(server, ["select sleep(60) /* slow */"])
    traced = tool("mysql", "-x", server.server, "-m", "0", "--json")
    failed = []

    def start():
        try:
            server.start()
        except RuntimeError as error:
            failed.append(error)
    starts = threading.Thread(target=start)
    starts.start()

    def running():
        traced.process.send_signal(signal.SIGUSR1)
        return [one for one in traced.objects() if one["type"] == "running" and one["server"]["pid"] == pid]
    wait_for(lambda: server.process, what="the server to start")
    pid = server.pid
    one = wait_for(running, what="the statement")[0]
    shown = sessions("-p", pid)
    os.kill(pid, signal.SIGKILL)
    starts.join()
    assert failed, "a server that is killed does not answer"
    wait_for(lambda: of_init(traced, pid), what="its end")
    stopped(traced)
    assert (one["backend"], one["user"]) == ("init", "boot") and "slow" in one["query"], one
    if "mysqld" in server.server:
        assert [(row["backend"], row["user"], row["query"]) for row in shown if row["state"] == "active"] == [("init", "boot", one["query"])], shown
    ((_, ended),) = of_init(traced, pid)
    assert ended["died"] and ended["status"] == "error" and "slow" in ended["query"], ended


def bootstrap(server, texts, folder):
    """Create the server's tables with its own program, and execute the texts. Returns its PID."""
    settings = {**{name: server.settings[name] for name in ("basedir", "user", "lc_messages_dir", "innodb_log_file_size") if name in server.settings},
                "tmpdir": server.dir, "innodb_use_native_aio": "0", "datadir": server.data}
    if "mysqld" in server.server:
        settings.update(datadir=folder, innodb_redo_log_capacity="16M", init_file=init_file(server, texts))
    option = "--initialize-insecure" if "mysqld" in server.server else "--bootstrap"
    done = subprocess.Popen([*server.command, "--no-defaults", option, *(f"--{name.replace('_', '-')}={value}" for name, value in settings.items())],
                            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=server.dir, **type(server).RUN_AS())
    said = done.communicate("".join(f"{text};\n" for text in texts), timeout=300)[1]
    assert done.returncode == 0, said
    return done.pid


def test_bootstrap(server, tool):
    """A server that only executes statements, without clients."""
    texts = ["create database app", "create table app.t (i int)", "select sleep(0.2) /* slow */"]
    traced = tool("mysql", "-x", server.server, "-m", "0", "--json")
    pid = bootstrap(server, texts, os.path.join(server.dir, "new"))
    wait_for(lambda: [text for text, _ in of_init(traced, pid)][-1:] == texts[-1:], what="the last one")
    stopped(traced)
    found = of_init(traced, pid)
    assert [text for text, _ in found[-3:]] == texts and {one["status"] for _, one in found} == {"ok"}, traced.said()
    assert {one["backend"] for one in traced.statements if one["server"]["pid"] == pid} == {"init"}, traced.said()
    assert 200 <= found[-1][1]["duration_ms"] <= 10000, found
    # Before that, MySQL creates what is in the new directory.
    created = [name for text, _ in found for name in re.findall(r"(?i)^create table if not exists (\w+)", text)]
    assert "user" in created if "mysqld" in server.server else len(found) == 3, created
