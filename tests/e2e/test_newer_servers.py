# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Releases of MySQL and MariaDB that Debian 12 does not have, against what they write to their slow log themselves."""

import re
import subprocess

import pytest

from mariadb_client import ServerError
from newer import Maria11, Mysql9
from requirements import need_root
from statements import stopped
from tool import Tool
from transactions import outcomes, second_phase

KINDS = {"MariaDB 11.8": Maria11, "MySQL 9": Mysql9}

TEXTS = [
    "create table goods (id int primary key, price int) engine=innodb", "insert into goods values (1, 10), (2, 20), (3, 30)",
    "select * from goods where id > 1", "select sum(price) from goods", "update goods set price = price + 1",
    "delete from goods where id = 3", "insert into goods values (1, 1)", "select * from missing", "selec 1",
    "select count(*) from goods; select * from nowhere; select 3", "signal sqlstate '45000' set mysql_errno = 30001",
    "select price + 1, count(*) from goods group by price + 1 order by 2", "analyze table goods", "show tables",
]
# The part that the log has, of MySQL without "Errno" for what it could not parse: that is not in the log.
ENTRY = re.compile(rb"^# Query_time: [\d.]+ +Lock_time: (?P<locked>[\d.]+) +Rows_sent: (?P<sent>\d+) +Rows_examined: (?P<examined>\d+)"
                   rb"(?: Thread_id: \d+ Errno: (?P<errno>\d+) [^\n]*)?\n(?:# [^\n]*\n)*(?:use [^\n]*;\n)?SET timestamp=\d+;\n(?P<text>.*?);\n",
                   re.M | re.S)


class Log(Tool):
    def ready(self):
        return "dbslower: tracing" in self.stderr


@pytest.fixture(scope="module", params=KINDS, ids=list(KINDS))
def server(request):
    need_root()
    with KINDS[request.param]().init() as one:
        yield one.start()


def run(server, texts=TEXTS):
    """{text: the error's number and SQLSTATE} as the client was told."""
    told = {}
    server.query("drop database if exists shop", "create database shop")
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
    traced = tool("mysql", "-p", server.pid, "--db", "shop", "-m", "0", "--format", "slowlog", kind=Log)
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
    program = ["/usr/bin/mariadb-dumpslow"] if isinstance(server, Maria11) else ["perl", f"{server.root}/usr/bin/mysqldumpslow"]
    said = subprocess.run([*program, path], capture_output=True, text=True, check=True).stdout
    # Debian 12's does not know all lines of MariaDB 11.8.
    return {text if path.name == "ours" else text.split("\n  ")[-1]: (int(count), rows) for count, rows, text in
            re.findall(r"^Count: (\d+)  Time=.*?  (Rows.*?), \S+\n  (.*?)\n\n", said, re.M | re.S)}


def test_transactions(server, tool):
    server.query("create database if not exists shop")
    outcomes(server, tool, "shop")
    second_phase(server, tool, "shop")
