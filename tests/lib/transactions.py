# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The command transactions while it runs."""

import datetime

from cluster import wait_for
from tool import Tool


class Transactions(Tool):
    def ready(self):
        return any(line.startswith((b"dbslower: tracing", b"Tracing database transactions")) for line in self.err.lines + self.out.lines)

    def ended(self, **members):
        """Those that have ended and have these members."""
        return [one for one in self.objects() if one["type"] == "transaction" and members.items() <= one.items()]

    def nth(self, number, **members):
        """Wait for a number of those; return the last one."""
        return self.wait_for(lambda tool: tool.ended(**members)[number - 1:], what=f"{number} transactions of {members}")[0]

    @property
    def open(self):
        """The last state of those that have not ended, by PID."""
        return {one["pid"]: one for one in self.objects() if one["type"] == "open"}

    def complete(self):
        assert self.stop() == 0 and "nothing lost" in self.stderr, self.said()


def seconds(stamp):
    """RFC 3339 with nanoseconds, in seconds since 1970."""
    whole, fraction = stamp.rstrip("Z").split(".")
    return datetime.datetime.fromisoformat(whole + "+00:00").timestamp() + float("0." + fraction)


# Of MySQL and MariaDB: statements, of which the last one ends a transaction; {} is replaced by an insertion. None: it is one of its own.
FAIL = {"insert into x values (0)", "create table x (a int)", "drop table nosuch", "xa rollback 'none'"}
BEGUN = [
    (["begin", "{}", "commit"], "commit"),
    (["begin", "{}", "rollback"], "rollback"),
    (["{}"], "commit"),
    (["begin", "{}", "insert into x values (0)", "commit"], "commit"),
    (["insert into x values (0)"], "rollback"),
    (["begin", "{}", "begin"], "commit"),					# implicit
    (["{}", "create table if not exists x1 (a int)"], "commit"),
    (["begin", "{}", "create table x (a int)"], "commit"),
    (["begin", "{}", "drop table nosuch"], "commit"),
    (["begin", "{}", "commit and chain"], "commit"),
    (["{}", "rollback"], "rollback"),
    (["rollback"], "rollback"),
    (["xa start 'a'", "{}", "xa end 'a'", "xa rollback 'a'"], "rollback"),
    (["xa start 'b'", "{}", "xa end 'b'", "xa commit 'b' one phase"], "commit"),
    (["xa rollback 'none'"], "rollback"),
    (["set autocommit = 0", None, "{}", "select 1", "rollback"], "rollback"),
    (["{}", "set autocommit = 1"], "commit"),
]


def outcomes(server, tool, database):
    """Outcome, number of statements and identity; the rows that are left are the server's word."""
    traced = tool("transactions", "mysql", "0", "-p", server.pid, "--json", kind=Transactions)
    with server.connect(database=database) as client, server.connect(database=database) as other:
        own = int(client.rows("select connection_id()")[0][0])
        client.query("create table x (a int primary key) engine=innodb")
        client.query("insert into x values (0)")
        count, left = 3, ["0"]
        for key, (texts, state) in enumerate(BEGUN, 1):
            for text in texts:
                if text in FAIL:
                    client.failing(text)
                elif text is not None:
                    client.query(text.format(f"insert into x values ({key})"))
            count += 1 + (None in texts)
            left += [str(key)] if state == "commit" else []
            one = traced.nth(count, connection_id=own)
            number = len(texts) - (texts.index(None) + 1 if None in texts else 0)
            assert (one["state"], one["statements"], one["user"], one["database"]) == (state, number, "root", database), (one, texts)
            assert 0 <= one["idle_ms"] <= one["duration_ms"] and one["time"] == one["end"], one
            assert [row[0].decode() for row in other.rows("select a from x order by a")] == left, texts
        traced.complete()
        assert len(traced.ended(connection_id=own)) == count
        client.query("drop table x, x1")


def second_phase(server, tool, database):
    """What one session has prepared, and left, another ends."""
    traced = tool("transactions", "mysql", "0", "-p", server.pid, "--json", kind=Transactions)
    with server.connect(database=database) as other:
        own = int(other.rows("select connection_id()")[0][0])
        other.query("create table x (a int primary key) engine=innodb")
        for key, state in (1, "commit"), (2, "rollback"):
            with server.connect(database=database) as client:
                number = int(client.rows("select connection_id()")[0][0])
                for text in "xa start 'z'", f"insert into x values ({key})", "xa end 'z'", "xa prepare 'z'":
                    client.query(text)
            wait_for(lambda: len(other.rows("xa recover")) == 1, what="the transaction to be left")
            other.query(f"xa {state} 'z'")
            assert traced.nth(1, state="prepare", connection_id=number)["statements"] == 4
            assert traced.nth(1, connection_id=own, query=f"xa {state} 'z'")["state"] == state
        assert [row[0].decode() for row in other.rows("select a from x")] == ["1"]
        other.query("drop table x")
    traced.complete()
