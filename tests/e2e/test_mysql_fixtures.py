# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""MySQL releases that Debian does not have: programs with the same symbols or probes, which run a script."""

import os
import re
import subprocess

import pytest

from mysql_fixture import DISPATCH, END, Fixture, SERVERS
from requirements import need_root
from statements import stopped
from tool import FIXTURES, run, sessions


@pytest.fixture
def server(mysql_program):
    """server(NAME) runs one."""
    running = []

    def start(name):
        running.append(Fixture(mysql_program(name)))
        return running[-1]

    yield start
    for one in running:
        one.end()


def agree(wanted, one, most_ms):
    """Complaints about one statement that is shown."""
    for key, value in wanted.items():
        if key == "least_ms":
            if not value <= one["duration_ms"] <= most_ms:
                yield f"{one['duration_ms']} ms, not {value} to {most_ms}: {wanted['query']}"
        elif value is None and key in one:
            yield f"{key} {one[key]!r}, which cannot be known: {wanted['query']}"
        elif value is not None and one.get(key) != value:
            yield f"{key} {one.get(key)!r}, not {value!r}: {wanted['query']}"


def compare(wanted, got, server):
    texts, seen = [one["query"] for one in wanted], [one.get("query") for one in got]
    assert seen == texts
    complaints = [complaint for pair in zip(wanted, got) for complaint in agree(*pair, server.elapsed_ms)]
    complaints += [f"pid {one['pid']}, engine {one['server']['engine']}" for one in got
                   if (one["pid"], one["server"]["engine"]) != (server.pid, "mysql")]
    assert not complaints, "\n".join(complaints)


def test_query_plan(server, tool):
    """MySQL has the flags of its answers, and nothing of MariaDB's."""
    one = server("mysql8")
    traced = tool("mysql", "-p", one.pid, "-m", "0", "--json")
    one.script()
    stopped(traced)
    plans = {shown["query"]: shown["query_plan"] for shown in traced.statements}
    assert plans.pop("select slow") == ["no_index"] and len(plans) > 6 and not any(plans.values())


@pytest.mark.parametrize("name", SERVERS)
def test_script(server, tool, name):
    one = server(name)
    traced = tool("mysql", "-p", one.pid, "-m", "0", "--json")
    wanted = one.script()
    stopped(traced)
    assert len(wanted) >= 6
    compare(wanted, traced.statements, one)
    assert ("USDT" in traced.stderr) == ("usdt" in name), traced.stderr


@pytest.mark.parametrize("name, end", [
    ("mysql8", "log_slow_statement(THD*)"),
    ("mysql80", "log_slow_statement(THD*, System_status_var*)"),    # sql/log.h of MySQL 8.0.14 to 8.0.27
])
def test_symbols(mysql_program, name, end):
    """The fixture has the functions that the release declares, as binutils reads their names."""
    listed = subprocess.run(["nm", "-DC", "--defined-only", mysql_program(name)], capture_output=True, text=True, check=True).stdout
    ends = [line.split(" ", 2)[2] for line in listed.splitlines() if "log_slow_statement" in line]
    assert ends == [end] and "dispatch_command(THD*, COM_DATA const*, enum_server_command)" in listed


@pytest.mark.parametrize("name", ["mysql8", "mysql80", "mysql55", "usdt"])
def test_threshold(server, tool, name):
    one = server(name)
    traced = tool("mysql", "15", "-p", one.pid, "--json")
    wanted = one.script()
    stopped(traced)
    seen = [statement["query"] for statement in traced.statements]
    assert set(seen) >= {statement["query"] for statement in wanted if statement["least_ms"] >= 15}
    assert all(statement["duration_ms"] >= 15 for statement in traced.statements)


@pytest.mark.parametrize("name", ["mysql8", "usdt-semaphores"])
def test_without_a_tracer(server, name):
    assert len(server(name).script()) > 6, "the fixture itself runs"


def called_by(path, callee):
    """The functions in which objdump sees calls of that one."""
    said = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True).stdout
    return [re.match(r"\w+ <(.*)>:", block)[1] for block in said.split("\n\n")
            if re.match(r"\w+ <", block) and re.search(rf"\t(call|bl) .*<{callee}>", block)]


def test_cold_part(mysql_program):
    """The fixture that test_script() runs has an end of statements outside of the function's body."""
    assert sorted(called_by(mysql_program("mysql8-cold"), END)) == [DISPATCH, f"{DISPATCH}.cold"]
    assert called_by(mysql_program("mysql8"), END) == [DISPATCH]


def test_profile(tool, tmp_path):
    """A server that was optimized for statements of other kinds than those that it runs."""
    path, source = str(tmp_path / "mysqld"), os.path.join(FIXTURES, "mysql8.c")
    for option in ("-fprofile-generate", "-fprofile-use"):
        subprocess.run(["gcc", "-O2", option, "-c", "-o", tmp_path / "mysql8.o", source], check=True)
        subprocess.run(["gcc", option, "-rdynamic", "-o", path, tmp_path / "mysql8.o"], check=True)
        if option == "-fprofile-generate":
            subprocess.run([path, "train"], check=True, stdout=subprocess.DEVNULL)
    assert set(called_by(path, END)) == {DISPATCH, f"{DISPATCH}.cold"}
    one = Fixture(path)
    try:
        traced = tool("mysql", "-p", one.pid, "-m", "0", "--json")
        wanted = one.script()
        stopped(traced)
    finally:
        one.end()
    assert [shown["query"] for shown in traced.statements] == [statement["query"] for statement in wanted]


def test_variant(mysql_program, tool, tmp_path):
    """A copy of a function without some of its arguments is named; its statements are not shown."""
    path = tmp_path / "mysqld"
    subprocess.run(["gcc", "-O3", "--param", "ipa-cp-eval-threshold=1", "-DVARIANT", "-rdynamic", "-o", path, os.path.join(FIXTURES, "mysql8.c")], check=True)
    variants = [one for one in called_by(path, END) if one != DISPATCH and not one.endswith(".cold")]
    if not variants:
        pytest.skip("the compiler made no copy")
    (variant,) = variants
    traced = tool("mysql", "-x", path, "-m", "0", "--json")
    stopped(traced)
    said = f"{path}: statements may be missing: the compiler made a variant of a function, which is not traced (dispatch_command{{}}); "
    assert said.format(variant.removeprefix(DISPATCH)) in traced.stderr, traced.stderr
    for name in ("mysql8", "mysql8-cold"):
        traced = tool("mysql", "-x", mysql_program(name), "-m", "0", "--json")
        stopped(traced)
        assert "may be missing" not in traced.stderr, traced.stderr


def test_two_kinds_at_once(server, tool):
    one, other = server("mysql8"), server("usdt")
    traced = tool("mysql", "-p", one.pid, "-p", other.pid, "-m", "0", "--json")
    wanted, others = one.script(), other.script()
    stopped(traced)
    for each, expected in ((one, wanted), (other, others)):
        compare(expected, [statement for statement in traced.statements if statement["pid"] == each.pid], each)


@pytest.mark.parametrize("name, symbol, lacks", [
    ("mysql8", None, None),
    ("mysql80", None, "lock times"),
    ("mysql8", "_ZN16Diagnostics_area13set_ok_statusEyyPKc", "changed rows"),
    ("mysql8", "_ZN3THD18set_sent_row_countEy", "sent rows"),
    ("mysql8", "_ZN16Diagnostics_area16set_error_statusEjPKcS1_", "error numbers"),
    ("mysql8", "_ZN3THD22inc_examined_row_countEy", "examined rows"),
    ("mysql8", "_ZN3THD13inc_lock_usecEy", "lock times"),
    ("mysql55", None, "failures, rows, users, databases, clients, examined rows, lock times"),
])
def test_tells_what_it_cannot_show(mysql_program, tool, tmp_path, name, symbol, lacks):
    """A symbol that is called by another name is not there. The fixtures have no events, and are no replicas."""
    path = tmp_path / "mysqld"
    with open(mysql_program(name), "rb") as f:
        content = f.read()
    if symbol:
        assert symbol.encode() in content
        content = content.replace(symbol.encode(), b"x" * len(symbol))
    path.write_bytes(content)
    traced = tool("mysql", "-x", path, "-m", "0", "--json")
    stopped(traced)
    (line,) = [line for line in traced.stderr.splitlines() if str(path) in line]
    always = "events, statements that replicas apply, changes of rows that replicas apply, statements of init_file"
    assert line.partition(", which does not report ")[2] == (f"{lacks}, {always}" if lacks else always), line


def test_sessions(tmp_path):
    """Those of the Global_THD_manager, and none that has left its pointer behind; none at all if their number is wrong."""
    need_root()
    path = tmp_path / "mysqld"
    subprocess.run(["gcc", "-O2", "-rdynamic", "-fcf-protection=full", "-o", path, os.path.join(FIXTURES, "mysqlsessions.c")],
                   check=True)
    with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout.readline() == b"ready\n"
            common = {"type": "session", "server": {"engine": "mysql", "pid": server.pid, "path": str(path)}, "pid": server.pid,
                      "user": "anna", "client": "10.0.0.7"}
            stage = "Making temporary file (append) before replaying LOAD DATA INFILE"
            listed = [{key: value for key, value in one.items() if key != "time"} for one in sessions("-p", server.pid)]
            assert listed == [
                {**common, "connection_id": 11, "state": "active", "database": "shop", "query": "select 1", "truncated": False,
                 "stage": stage},
                *({**common, "connection_id": number, "state": "active", "database": "shop", "query": "select 2", "truncated": False}
                  for number in range(31, 38)),
                {**common, "connection_id": 12, "state": "idle in transaction"},
                {**common, "connection_id": 21, "state": "idle"}]
            server.stdin.write(b"\n")
            server.stdin.flush()
            assert server.stdout.readline() == b"ready\n"
            done = run("ps", "--json", "-p", server.pid)
            assert done.stdout.count("\n") == 1 and '"start"' in done.stdout and f"{path}: its sessions cannot be listed; " in done.stderr, done
        finally:
            server.kill()
