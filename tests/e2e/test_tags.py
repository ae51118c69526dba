# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tags of sqlcommenter comments, encoded by Python's urllib as its libraries do. test_record.py has live ones."""

from urllib.parse import quote

from recording_maker import Made
from replayed import Replayed
from statements import only

TAGS = {"controller": "polls", "route": "^polls/(?P<id>[0-9]+)/$ 100%", "db_driver": "psycopg:'3'", "app.name": "Zoë ☃\n"}


def comment(tags):
    return "/*" + ",".join(f"{quote(key)}='{quote(value)}'" for key, value in tags.items()) + "*/"


def test_tags():
    made = Made()
    session = made.session(made.server())
    for text in (f"select 'tagged' {comment(TAGS)}", b"select 'raw' /*a='\\\"\x01\\'',\"='1',a='2'*/",
                 "select 'none' where 'a'='b' /* a comment */"):
        made.statement(session, text, rows=1)
    table = Replayed(made, "-m", "0", "-o", "tag.controller,pid,tag.route,tag.nosuch,status")
    traced, redacted = (Replayed(made, "-m", "0", "--json", *args) for args in ((), ("--redact",)))
    assert only(traced, "tagged")["tags"] == TAGS
    assert only(traced, "raw")["tags"] == {"a": "\"\x01'"} and "tags" not in only(traced, "none")
    assert len(redacted.statements) == 3 and not any("tags" in one for one in redacted.statements)
    head, *rows = [line.split() for line in table.stdout.splitlines()[1:] if line]
    assert head == ["controller", "PID", "route", "nosuch", "STATUS"]
    assert rows == [["polls", "101", *TAGS["route"].split(), "-", "ok"], ["-", "101", "-", "-", "ok"], ["-", "101", "-", "-", "ok"]]
