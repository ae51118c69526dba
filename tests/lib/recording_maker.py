# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Recordings from Python data, for tests of what is printed: written from docs/recording.md alone, as their reader is.

    made = Made()
    shop = made.session(made.server("postgresql"), user="app", database="shop")
    made.statement(shop, "select 1", ms=12.5, rows=1)
    made.statement(shop, "select 1/0", ms=2, error="22012")
    made.wait(shop, ms=40, lock="relation", holders=[holder(pid=102, text="lock table t")])
    made.save(path)

Each event starts a millisecond after the one before has ended, unless @at names the ms since the start of the recorder.
"""

import os
import re

from recording import END, EVENTS, HEAD, LWLOCK_MODES, MAGIC, MODES, START, STATES, VERSION, WORD, crc32c
from tables import tables
from tool import ROOT

ID = 0x1122334455667788
HOST = "db1"
STARTED_NS = 10 ** 12				# of CLOCK_MONOTONIC
WALL_NS = 1767225600 * 10 ** 9			# then, 2026-01-01T00:00:00Z
BLOCK = 64 << 10
DIALECTS = {"postgresql": 0, "mysql": 1, "mariadb": 1}


def page(name):
    with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as f:
        return f.read()


def documented_layout():
    """The lists of docs/recording.md, whose lines are broken there, and those with names of JSON."""
    lines = re.search(r"<!-- layout -->\n((?: {4}.*\n)+)", page("recording.md"))[1]
    lists = [line.split() for line in lines.replace("\n        ", " ").splitlines()]
    plan = re.search(r"^\| `query_plan` \|.*?: (.*?) \|", page("json.md"), re.M)[1]
    return {name: names for name, *names in lists} | {
        "parts": tables()["parts"], "phases": tables()["phases"], "resources": tables()["use"],
        "plan": re.findall(r"`(\w+)`", plan), "losses": [row["name"] for row in tables()["losses"]]}


LAYOUT = documented_layout()


def ns_of(ms):
    return round(ms * 10 ** 6)


def number(value):
    data = bytearray()
    while value > 0x7f:
        data.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes([*data, value])


def numbers(*values):
    return b"".join(map(number, values))


def difference(value, base):
    step = (value - base + (1 << 63)) % (1 << 64) - (1 << 63)
    return number(2 * step if step >= 0 else -2 * step - 1)


def octets(text):
    return text if isinstance(text, bytes) else text.encode()


def string(text):
    return number(0) if text is None else number(len(octets(text)) + 1) + octets(text)


def sparse(names, values):
    """A list of which @values, by name, has the elements that are not 0."""
    assert set(values) <= set(names), values
    present = [i for i, name in enumerate(names) if values.get(name)]
    return number(sum(1 << i for i in present)) + numbers(*(values[names[i]] for i in present))


def event(kind, *body):
    body = b"".join(body)
    return numbers(kind, len(body)) + body


def counted_numbers(values):
    return numbers(len(values), *values)


def counted(data):
    return number(len(data)) + data


def given(**values):
    """Flags that are set, and encoded values that there are."""
    return {name: value for name, value in values.items() if value not in (None, False)}


def holder(pid=0, text=None, ms=0, connection=0, queued=False, running=None, idle=None, idle_ms=0, cut=False):
    """A backend of a lock wait, for @ms of it. @running, @idle (in a transaction): True, False or None, if unknown."""
    return given(pid=number(pid) if pid else None, connection_id=number(connection) if connection else None,
                 blocked_ns=number(ns_of(ms)) if ms else None, text=None if text is None else counted(octets(text)),
                 read=running is not None, running=bool(running), idle_read=idle is not None, idle=bool(idle),
                 idle_ns=number(ns_of(idle_ms)) if idle_ms else None, queued=queued, cut=cut)


class Block:
    """The events of one block, and what the ones before it in the block have defined."""

    def __init__(self):
        self.events, self.ends, self.statements = [], [], 0
        self.entries = {}
        self.last_ns = 0

    def add(self, kind, *body, end=None):
        self.events.append(event(kind, *body))
        self.ends += [] if end is None else [end]

    def entry(self, kind, body):
        """The number of the entry with this body, which is added if it is new."""
        entries = self.entries.setdefault(kind, [])
        if body not in entries:
            entries.append(body)
            self.add(kind, body)
        return number(entries.index(body))

    def start(self, start_ns):
        before, self.last_ns = self.last_ns, start_ns
        return difference(start_ns, before)

    def bytes(self, kind, sequence, layout):
        events = b"".join(self.events)
        head = HEAD.pack(MAGIC, 0, VERSION, kind, ID, sequence, min(self.ends, default=0), max(self.ends, default=0), self.statements,
                         crc32c(layout), len(events), crc32c(events))
        return head[:8] + crc32c(head[12:]).to_bytes(4, "little") + head[12:] + events


class Made:
    def __init__(self, threshold_ms=0, pids="100", layout=LAYOUT, extra=(), **options):
        """@layout: names in the order of their bits; @extra: by list, what each event, or sparse list, has of further ones."""
        self.layout, self.extra = layout, dict(extra)
        self.options = {"layout": "".join(f"{name} {' '.join(names)}\n" for name, names in layout.items()), "host": HOST,
                        "architecture": "x86_64", "kernel": "6.1.0", "dbslower": "0.1.0", "start_ns": STARTED_NS, "start_wall_ns": WALL_NS, "threshold_ns": ns_of(threshold_ms), "pids": pids, **options}
        self.blocks = [self.start_block(), self.new_block()]
        self.last, self.now_ns, self.pids = None, STARTED_NS, 100
        self.counts = {"statements": 0, "waits": 0}

    def start_block(self):
        block = Block()
        for name, value in self.options.items():
            block.add(1, string(name), string(value if isinstance(value, bytes) else str(value)))
        return block

    @staticmethod
    def new_block():
        block = Block()
        block.add(5, number((WALL_NS - STARTED_NS) & WORD))
        return block

    def block(self):
        if sum(map(len, self.blocks[-1].events)) > BLOCK:
            self.blocks.append(self.new_block())
        return self.blocks[-1]

    def now_ms(self):
        """The end of the last event, since the start of the recorder."""
        return (self.now_ns - STARTED_NS) / 10 ** 6

    def ended(self, at, ms):
        """When an event starts, and how long it takes, ns."""
        start_ns = self.now_ns + 10 ** 6 if at is None else STARTED_NS + ns_of(at)
        self.now_ns = max(self.now_ns, start_ns + ns_of(ms))
        return start_ns, ns_of(ms)

    # who

    @staticmethod
    def server(service="postgresql", version="15.18", pid=100, path="/usr/lib/server", container=None, uid=101, directory="/srv"):
        """The body of a server; a session has one. @uid None, @pid 0: unknown."""
        names = {"mariadb": ("mysql", "mariadb", "mariadb"), "mysql": ("mysql", "mysql", "mysql")}
        engine, service, otel = names.get(service, (service, service, service))
        return (b"".join(map(string, (engine, service, otel, version, path))) + number(DIALECTS.get(service, 2)) + string(container) +
                numbers(0 if uid is None else uid + 1, pid) + string(directory))

    def session(self, server, pid=None, tid=None, user="postgres", database="postgres", client="[local]", application=None,
                connection=0, uid=101):
        """A session, of the next process unless @pid names one."""
        self.pids += pid is None
        pid = pid or self.pids
        return server, pid, tid or pid, numbers(uid + 1, connection) + b"".join(map(string, (user, database, client, application)))

    @staticmethod
    def session_entry(block, session):
        server, pid, tid, rest = session
        return block.entry(3, block.entry(2, server) + numbers(pid, tid) + rest)

    # what

    def members(self, which, values):
        """Flags and encoded values, by name."""
        names = [name.partition(":")[::2] for name in self.layout[which]]
        values = {**values, **self.extra.get(which, {})}
        assert set(values) <= {name for name, _ in names}, values
        flags = sum(1 << i for i, (name, _) in enumerate(names) if name in values)
        return number(flags) + b"".join(values[name] for name, kind in names if kind and name in values)

    def sparse(self, which, values):
        return sparse(self.layout[which], {**values, **self.extra.get(which, {})})

    def bits(self, which, words):
        return number(sum(1 << self.layout[which].index(word) for word in words))

    def begin(self, block, session, at, ms):
        """What each event begins with, its start and its duration in ns."""
        start_ns, took = self.ended(at, ms)
        # The entry comes before the event that refers to it.
        return self.session_entry(block, session) + block.start(start_ns) + number(took), start_ns, took

    def text(self, text, length=None):
        """@text: or the place of another one, and what is copied of it, skipped, and inserted."""
        if text is None:
            return {"no_text": True}
        base = {"text": numbers(text[0], 1, *text[1:3]) + counted(octets(text[3])) if isinstance(text, tuple) else
                        number(0) + counted(octets(text))}
        return {**base, "whole": True} if length is None else {**base, "truncated": True, "query_bytes": number(length)}

    def statement(self, session, text, ms=1, at=None, rows=None, error=None, errno=0, status=True, changed=None, examined=None,
                  lock_ms=None, plan=None, fetches=None, query_id=None, length=None, parent=None, original=None, kind="statement",
                  own=True, why=None, calls=(), workers=None, phases=(), use=None):
        """
        One that has failed if it has an @error, the SQLSTATE. @length: of the whole text, of which @text is the beginning.
        @parent: trace, span and flags. @why: ms by part, the rest is cpu; @calls: {name, or (name, wait event): (sleeps, ms)}; @workers: their
        number and ms by part. @kind: also "running" and "prepare".
        """
        block = self.block()
        begin, start_ns, took = self.begin(block, session, at, ms)
        failed = error is not None
        values = {
            "errno": number(errno) if errno else None, "sqlstate": string(error) if error else None,
            "sent": number(rows) if rows else None, "affected": number(changed) if changed else None,
            "rows_examined": None if examined is None else number(examined),
            "lock_ns": None if lock_ms is None else number(ns_of(lock_ms)), "plan": None if plan is None else self.bits("plan", plan),
            "fetches": None if fetches is None else number(fetches), "original_bytes": None if original is None else number(original),
            "traceparent": None if parent is None else string(b"00-%b-%b-%02x" % parent),
            "query_id": None if query_id is None else self.query(block, query_id),
            "breakdown": None if why is None else self.breakdown(block, took, why, dict(calls), workers, dict(phases), use),
        }
        flags = given(status=status, failed=failed, unended=failed, counted=rows is not None or changed is not None, alone=own,
                      planned=plan is not None, prepare=kind == "prepare", running=kind == "running")
        block.add(6, begin, self.members("statement", {**given(**values), **flags, **self.text(text, length)}), end=start_ns + took)
        if kind == "statement":
            block.statements += 1
            self.counts["statements"] += 1
        return start_ns

    @staticmethod
    def query(block, query_id):
        entry = number(query_id & WORD)
        block.entry(9, entry)
        return number(1 + block.entries[9].index(entry))

    def parts(self, total, why):
        parts = {name: ns_of(ms) for name, ms in why.items()}
        return self.sparse("parts", {**parts, "cpu": parts.get("cpu", 0) + total - sum(parts.values())})

    def breakdown(self, block, took, why, calls, workers, phases, use):
        body = [self.parts(took, why), number(len(calls))]
        for names, (sleeps, ms) in calls.items():
            names = names if isinstance(names, tuple) else (names,)
            body += [block.entry(4, b"".join(map(string, names))), numbers(sleeps, ns_of(ms))]
        body += [number(0)] if workers is None else [number(workers[0]), self.parts(sum(map(ns_of, workers[1].values())), workers[1])]
        body.append(self.sparse("phases", {name: 1 + ns_of(ms) for name, ms in phases.items()}))
        return b"".join([*body, self.bits("resources", use or ()), self.sparse("resources", use or {})])

    def transaction(self, session, text=None, ms=1, at=None, state="commit", statements=None, idle_ms=0, dated=True):
        """One of several statements, of which @text is the longest; an open one has a state of those."""
        block = self.block()
        begin, start_ns, took = self.begin(block, session, at, ms)
        word = {name: value for value, name in STATES.items()}.get(state, 0)
        values = given(state=number(word) if word else None, statements=None if statements is None else number(statements),
                       idle_ns=number(ns_of(idle_ms)) if idle_ms else None)
        flags = given(transaction=True, unended=True, running=word > 3, dated=dated)
        block.add(6, begin, self.members("statement", {**values, **flags, **self.text(text)}), end=start_ns + took)

    def wait(self, session, ms=1, at=None, lock="relation", mode="AccessExclusiveLock", outcome="granted", tag=(5, 16384, 0, 0), kind=0,
             tranche=None, cycle=(), text=None, relation=0, name=None, thing=None, index=None, holders=None, more=0,
             engine="postgresql", connection=0):
        """A lock wait of the session, which ran @text, of this @connection. @holders: of holder(), None if they could not be read."""
        block = self.block()
        begin, start_ns, took = self.begin(block, session, at, ms)
        mode = {word: value for value, word in (LWLOCK_MODES if lock == "lwlock" else MODES).items()}.get(mode, 0)
        values = {
            "type": number(kind) if kind else None, "mode": number(mode) if mode else None, "tag": counted_numbers(tag),
            "cycle": counted_numbers(cycle) if cycle else None, "lock": string(lock), "tranche": string(tranche) if tranche else None,
        }
        flags = given(waiting=outcome == "waiting", failed=outcome in ("failed", "deadlock", "timeout", "killed"), deadlock=outcome == "deadlock",
                      timeout=outcome == "timeout", killed=outcome == "killed", granted=outcome == "granted" and engine == "mysql",
                      lwlock=lock == "lwlock", session=engine == "mysql")
        if holders is not None:
            own = holder(session[1], text, connection=connection)
            values |= {"relation_oid": number(relation) if relation else None, "relation": string(name) if name else None,
                       "object": string(thing) if thing else None, "index": string(index) if index else None,
                       "waiter": self.backends([own]), "holders": self.backends(holders) if holders else None,
                       "more_holders": number(more) if more else None, "all_holders": True}
        block.add(7, begin, self.members("wait", {**given(**values), **flags}), end=start_ns + took)
        self.counts["waits"] += 1

    def backends(self, backends):
        return number(len(backends)) + b"".join(self.members("backend", one) for one in backends)

    def status(self, lost=(), boundary=0, cpu_ms=5, untraced_ns=0):
        """The counts so far. @lost: of statements by name."""
        block = self.block()
        block.add(8, difference(self.now_ns, block.last_ns), numbers(ns_of(cpu_ms), 0),
                  number(self.counts["statements"]), self.sparse("losses", dict(lost)), numbers(boundary, untraced_ns),
                  numbers(self.counts["waits"], 0, 0, 0), end=self.now_ns)
        self.last = block

    def bytes(self):
        if self.last is not self.blocks[-1]:
            self.status()
        last = Block()
        layout = self.options["layout"].encode()
        return b"".join(block.bytes(START if not n else END if n == len(self.blocks) else EVENTS, n, layout)
                        for n, block in enumerate([*self.blocks, last]))

    def save(self, path):
        with open(path, "wb") as f:
            f.write(self.bytes())
        return path


# Ends a line, a string, a colour, a tag; C1 in UTF-8 and as a byte; turns text around.
BAD = b'a"\\\n\r\x1b[31m</script>\xc2\x9b\x9b\xe2\x80\xaeb\'`;'


def hostile():
    """Everything that has a name is BAD."""
    made = Made(pids=BAD, host=BAD, dbslower=BAD, options=BAD, kernel=BAD)
    bad = dict(user=BAD, database=BAD, client=BAD, application=BAD)
    servers = [made.server(BAD, version=BAD, path=BAD, container=BAD, directory=BAD), made.server("postgresql", version=BAD, path=BAD),
               made.server("mariadb", version=BAD, container=BAD)]
    for server in servers:
        session = made.session(server, connection=9, **bad)
        for sqlstate in (BAD[:5], b"\x1b[31m", b"abcde", b"1", b"22012", b"22012\n"):
            made.statement(session, b"select '" + BAD, error=sqlstate, errno=7, why={"disk": 0.5}, calls={(BAD, BAD): (1, 0.25)})
        made.statement(session, BAD, rows=2 ** 64 - 1, examined=2 ** 64 - 1, fetches=2 ** 32 - 1, length=2 ** 63, parent=(b'"' * 32, BAD[:16], 1))
        made.statement(session, None, parent=(BAD, BAD, 1), original=3)
        made.transaction(session, BAD, statements=2 ** 64 - 1)
        for lock in ("relation", BAD):
            made.wait(session, lock=lock, text=BAD, name=BAD, thing=BAD, index=BAD, tranche=BAD, cycle=(1, 2), outcome="deadlock",
                      holders=[holder(9, BAD), holder(connection=4, text=BAD)])
    made.statement(made.session(servers[0], **bad), BAD, kind="running")
    return made
