# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tags of sqlcommenter comments, encoded by Python's urllib as its libraries do."""

from urllib.parse import quote

from statements import only, stopped

TAGS = {"controller": "polls", "route": "^polls/(?P<id>[0-9]+)/$ 100%", "db_driver": "psycopg:'3'", "app.name": "Zoë ☃\n"}


def comment(tags):
    return "/*" + ",".join(f"{quote(key)}='{quote(value)}'" for key, value in tags.items()) + "*/"


def test_tags(postgres, tool):
    table = tool("-p", postgres.pid, "-m", "0", "-o", "tag.controller,pid,tag.route,tag.nosuch,status")
    traced = tool("-p", postgres.pid, "-m", "0", "--json")
    redacted = tool("-p", postgres.pid, "-m", "0", "--json", "--redact")
    with postgres.connect() as connection:
        pid = connection.info.backend_pid
        send = connection.pgconn.exec_
        send(f"select 'tagged' {comment(TAGS)}".encode())
        send(b"select 'raw' /*a='\\\"\x01\\'',\"='1',a='2'*/")
        send(b"select 'none' where 'a'='b' /* a comment */")
    for one in (table, traced, redacted):
        stopped(one)
    assert only(traced, "tagged")["tags"] == TAGS
    assert only(traced, "raw")["tags"] == {"a": "\"\x01'"} and "tags" not in only(traced, "none")
    assert sum(one["pid"] == pid for one in redacted.statements) == 3 and not any("tags" in one for one in redacted.statements)
    head, *rows = [line.split() for line in table.stdout.splitlines()[1:] if line]
    rows = [row for row in rows if str(pid) in row]	# others may use the server
    assert head == ["controller", "PID", "route", "nosuch", "STATUS"]
    assert rows == [["polls", str(pid), *TAGS["route"].split(), "-", "ok"], ["-", str(pid), "-", "-", "ok"],
                    ["-", str(pid), "-", "-", "ok"]]
