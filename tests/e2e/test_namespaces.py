# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Servers in containers and under other names, and the tool inside a namespace."""

import os
import shutil
import signal
import subprocess

import pytest

from cluster import children, run_as, server_bindir, wait_for
from containers import UNSHARE, needs_namespaces

pytestmark = pytest.mark.alone

@pytest.fixture
def containers(clusters):
    """Two servers of one image."""
    needs_namespaces()
    servers = [clusters(name=f"container{n}", wrap=UNSHARE) for n in range(2)]
    yield servers
    for server in servers:
        server.stop()


def marked(traced, mark):
    return [one for one in traced.statements if mark in one["query"]]


def backend(connection):
    return connection.execute("select pg_backend_pid()").fetchone()[0]


def test_two_servers_of_one_image(containers, tool):
    traced = tool("postgres", "-m", "0", "--json")
    for n, server in enumerate(containers):
        server.settle()
        with server.connect() as connection:
            connection.execute(f"select 1 /* container {n} */")
            # as seen from here, which the server does not know
            pids = server.client_backends()
            assert len(pids) == 1 and backend(connection) != pids[0]
            wait_for(lambda: marked(traced, f"container {n} "), what="the statement")
            assert [one["pid"] for one in marked(traced, f"container {n} ")] == pids
    assert traced.stop() == 0
    assert not traced.lost()
    # an inode is attached once
    assert traced.stderr.count(f"{containers[0].postgres}, by ") == 1, traced.stderr
    assert all(str(server.pid) in traced.stderr for server in containers), traced.stderr


def test_one_of_them(containers, tool):
    traced = tool("-p", containers[1].pid, "-m", "0", "--json")
    for n, server in enumerate(containers):
        server.psql(f"select 1 /* of two {n} */")
    traced.stop()
    assert [one["query"] for one in traced.statements] == ["select 1 /* of two 1 */"]


def test_tool_in_a_container(containers, tool):
    """The tool shows only the server of its own namespace, with the PIDs of that namespace."""
    traced = tool("postgres", "-m", "0", "--json",
                  wrap=("nsenter", "-t", str(containers[0].pid), "--pid", "--mount", "--root"))
    for n, server in enumerate(containers):
        with server.connect() as connection:
            connection.execute(f"select 1 /* inside {n} */")
            pid = backend(connection)
            if n == 0:
                wait_for(lambda: marked(traced, "inside 0"), what="the statement")
                assert [one["pid"] for one in marked(traced, "inside 0")] == [pid]
    traced.stop()
    assert not marked(traced, "inside 1"), traced.said()


@pytest.mark.parametrize("proc", [(), ("--mount-proc",)], ids=["proc of the host", "proc of its own"])
def test_tool_in_a_pid_namespace(postgres, tool, proc):
    """PIDs are those of /proc."""
    traced = tool("-m", "0", "--json", wrap=("unshare", "--pid", "--fork", *proc), attached=not proc)
    if proc:
        wait_for(lambda: "no supported database server" in traced.stderr, what="its word that there is none")
    with postgres.connect() as connection:
        pid = backend(connection)
    wait_for(lambda: proc or marked(traced, "pg_backend_pid"), what="the statement")
    traced.stop()
    assert [one["pid"] for one in marked(traced, "pg_backend_pid")] == ([] if proc else [pid]), traced.said()


def test_server_in_a_namespace_below_the_tools(clusters, tool):
    """Its PIDs cannot be told from there, and that is said."""
    inner = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    shell = ("sh", "-c", '"$@"; :', "outer")
    server = clusters(name="nested", wrap=(*inner, *shell, *inner, "setpriv", "--reuid=postgres", "--regid=postgres",
                                           "--clear-groups"))
    pid = server.process.pid
    while not os.readlink(f"/proc/{pid}/exe").endswith("/postgres"):
        pid = children(pid)[0]
    traced = tool("postgres", "-m", "0", "-p", pid)
    server.psql("select 1 /* seen from the host */")
    wait_for(lambda: "seen from the host" in traced.stdout, what="the statement")
    traced.stop()
    outer = children(server.process.pid)[0]
    traced = tool("-m", "0", wrap=("nsenter", "-t", str(outer), "--pid", "--mount"))
    server.psql("select 1 /* seen from between */")
    traced.stop()
    assert "it runs in a nested PID namespace" in traced.stderr, traced.said()
    assert "run dbslower in that namespace, or on the host" in traced.stderr and "between" not in traced.stdout
    os.kill(pid, signal.SIGQUIT)
    server.process.wait(60)


def test_proc_of_another_namespace(postgres, tool):
    """There is no /proc/self in it, and no way to name an open file."""
    with subprocess.Popen(["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sleep", "60"]) as other:
        wait_for(lambda: children(other.pid) and open(f"/proc/{children(other.pid)[0]}/comm").read() == "sleep\n", what="its child")
        traced = tool("-m", "0", attached=False, wrap=("nsenter", "-t", str(children(other.pid)[0]), "--mount"))
        assert traced.wait() == 1
        other.kill()
    assert "/proc: cannot be read" in traced.stderr and "PID namespace" in traced.stderr, traced.stderr


def test_server_of_an_unknown_name(clusters, server_copy, tool):
    """By what it exports; started before the tool and after it."""
    renamed = os.path.join(os.path.dirname(server_copy), "appdb")
    shutil.move(server_copy, renamed)
    server = clusters(name="renamed", postgres=renamed)
    for when in ("before", "after"):
        traced = tool("-m", "0", "--json", attached=when == "before")
        if when == "after":
            server.start()
            wait_for(lambda: renamed in traced.stderr, what="the renamed server")
        server.psql(f"select 1 /* renamed {when} */")
        wait_for(lambda: marked(traced, f"renamed {when}"), what="the statement")
        traced.stop()
        assert renamed in traced.stderr, traced.stderr
        server.stop()


def test_started_through_the_loader_later(clusters, server_copy, tool):
    loader = os.path.realpath("/lib64/ld-linux-x86-64.so.2")
    if not os.path.exists(loader):
        pytest.skip("no loader of x86-64")
    server = clusters(name="loader", postgres=server_copy)
    server.stop()
    traced = tool("-m", "0", "--json", attached=False)
    with open(server.log, "ab") as log:
        server.process = subprocess.Popen([loader, server_copy, "-D", server.data], cwd=server.dir, stdout=log,
                                          stderr=log, start_new_session=True, **run_as())
    wait_for(lambda: server_copy in traced.stderr, what="the server")
    wait_for(server.answers, what="its answer")
    server.psql("select 1 /* loader later */")
    wait_for(lambda: marked(traced, "loader later"), what="the statement")
    traced.stop()


def test_version_is_told(postgres, tool):
    traced = tool("-m", "0", "--json")
    traced.stop()
    version = subprocess.run([os.path.join(server_bindir(), "postgres"), "--version"], capture_output=True, text=True,
                             check=True).stdout.replace("postgres (PostgreSQL) ", "").strip()
    assert f"tracing PostgreSQL {version}, pid " in traced.stderr, traced.stderr


def test_what_only_looks_like_a_server(tmp_path, tool):
    """The file is ignored, and the tool waits for a server."""
    source = tmp_path / "fake.c"
    source.write_text("int pgstat_report_activity(void) { return 0; }\n#include <unistd.h>\nint main(void) { sleep(60); }\n")
    subprocess.run(["gcc", "-rdynamic", "-o", tmp_path / "fake", source], check=True)
    with subprocess.Popen([tmp_path / "fake"]) as fake:
        wait_for(lambda: os.readlink(f"/proc/{fake.pid}/exe").endswith("fake"), what="the program")
        traced = tool("-m", "0", "-d", "0.3", attached=False)
        assert traced.wait() == 0, traced.said()
        fake.kill()
    assert "fake" not in traced.stderr, traced.stderr


def test_server_behind_a_script_of_its_name(clusters, server_copy, tool):
    """The first exec of that name is the script's, which is no server."""
    folder = os.path.dirname(server_copy)
    os.mkdir(os.path.join(folder, "real"))
    real, script = os.path.join(folder, "real", "wrapped"), os.path.join(folder, "wrapped")
    shutil.move(server_copy, real)
    with open(script, "w") as f:
        f.write(f'#!/bin/sh\nsleep 0.3\nexec {real} "$@"\n')
    os.chmod(script, 0o755)
    server = clusters(name="script", postgres=real)
    server.stop()
    traced = tool("-m", "0", "--json", attached=False)
    server.postgres = script
    server.start()
    wait_for(lambda: real in traced.stderr, what="the server")
    server.psql("select 1 /* behind a script */")
    wait_for(lambda: marked(traced, "behind a script"), what="the statement")
    traced.stop()
