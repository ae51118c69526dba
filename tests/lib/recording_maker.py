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

from recording import (END, EVENTS, HEAD, LOSSES, LWLOCK_MODES, MAGIC, MODES, PARTS, PHASES, PLAN, RESOURCES, START, STATES, VERSION, WORD,
                       crc32c)

ID = 0x1122334455667788
HOST = "db1"
STARTED_NS = 10 ** 12				# of CLOCK_MONOTONIC
WALL_NS = 1767225600 * 10 ** 9			# then, 2026-01-01T00:00:00Z
BLOCK = 64 << 10
DIALECTS = {"postgresql": 0, "mysql": 1, "mariadb": 1}
TEXT, STATUS, ROWS, WHOLE, WHY, CHANGED, QUERY_ID, CUT, LENGTH = (1 << bit for bit in range(9))
ERROR, EXAMINED, LOCK_TIME, FETCHES, PREPARE, RUNNING, NO_TEXT, REDACTED, PARENT, FAILED, NOT_OWN, HOW = (1 << bit for bit in range(9, 21))


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


def holder(pid=0, text=None, ms=0, connection=0, queued=False, running=None, idle=None, idle_ms=0, cut=False):
    """A backend of a lock wait, for @ms of it. @running, @idle (in a transaction): True, False or None, if unknown."""
    flags = (queued | (running is not None) << 1 | bool(running) << 2 | (idle is not None) << 3 | bool(idle) << 4 | cut << 5)
    return numbers(flags, pid, connection, ns_of(ms), ns_of(idle_ms), 0 if text is None else len(octets(text)) + 1) + octets(text or b"")


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

    def bytes(self, kind, sequence):
        events = b"".join(self.events)
        head = HEAD.pack(MAGIC, 0, VERSION, kind, ID, sequence, min(self.ends, default=0), max(self.ends, default=0), self.statements,
                         len(events), crc32c(events))
        return head[:8] + crc32c(head[12:]).to_bytes(4, "little") + head[12:] + events


class Made:
    def __init__(self, threshold_ms=0, pids="100", **options):
        self.options = {"host": HOST, "architecture": "x86_64", "kernel": "6.1.0", "dbslower": "0.1.0", "start_ns": STARTED_NS,
                        "start_wall_ns": WALL_NS, "threshold_ns": ns_of(threshold_ms), "pids": pids, **options}
        self.blocks = [self.start_block(), self.new_block()]
        self.last, self.now_ns, self.pids = None, STARTED_NS, 100
        self.counts = {"statements": 0, "waits": 0}

    def start_block(self):
        block = Block()
        for name, value in self.options.items():
            block.add(1, string(name), string(str(value)))
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

    def statement(self, session, text, ms=1, at=None, rows=None, error=None, errno=0, status=True, changed=None, examined=None,
                  lock_ms=None, plan=None, fetches=None, query_id=None, length=None, parent=None, original=None, kind="statement",
                  own=True, why=None, calls=(), workers=None, phases=(), use=None):
        """
        One that has failed if it has an @error, the SQLSTATE. @length: of the whole text, of which @text is the beginning.
        @parent: trace, span and flags. @why: ms by part, the rest is cpu; @calls: {name: (sleeps, ms)}; @workers: their
        number and ms by part. @kind: also "running" and "prepare".
        """
        block, (start_ns, took) = self.block(), self.ended(at, ms)
        failed = error is not None
        optional = [(ROWS | (changed is not None) * CHANGED, rows if changed is None else changed, number),
                    (LENGTH | CUT, length, number), (ERROR, error, lambda state: number(errno) + string(state)),
                    (EXAMINED, examined, number), (LOCK_TIME, lock_ms, lambda ms: number(ns_of(ms))),
                    (HOW, plan, lambda words: number(1 | sum(2 << PLAN.index(word) for word in words))),
                    (FETCHES, fetches, number), (REDACTED, original, number),
                    (PARENT, parent, lambda one: string(one[0]) + string(one[1]) + number(one[2])),
                    (QUERY_ID, query_id, lambda one: block.entry(9, number(one & WORD))),
                    (TEXT | (length is None) * WHOLE, text, self.text)]
        flags = ({"statement": 0, "running": RUNNING, "prepare": PREPARE}[kind] | status * STATUS | failed * FAILED | (not own) * NOT_OWN |
                 (why is not None) * WHY | (text is None) * NO_TEXT)
        for flag, value, _ in optional:
            flags |= flag if value is not None else 0
        # The entries come before the event that refers to them.
        entry = self.session_entry(block, session)
        body = [encode(value) for _, value, encode in optional if value is not None]
        body += [] if why is None else self.breakdown(block, took, why, dict(calls), workers, dict(phases), use)
        block.add(6, number(flags), entry, block.start(start_ns), number(took), *body, end=start_ns + took)
        if kind == "statement":
            block.statements += 1
            self.counts["statements"] += 1
        return start_ns

    @staticmethod
    def text(text):
        return number(0) + number(len(octets(text))) + octets(text)

    @staticmethod
    def parts(total, why):
        parts = {name: ns_of(ms) for name, ms in why.items()}
        return sparse(PARTS, {**parts, "cpu": parts.get("cpu", 0) + total - sum(parts.values())})

    def breakdown(self, block, took, why, calls, workers, phases, use):
        body = [self.parts(took, why), number(len(calls))]
        for name, (sleeps, ms) in calls.items():
            body += [block.entry(4, string(name)), numbers(sleeps, ns_of(ms))]
        body += [number(0)] if workers is None else [number(workers[0]), self.parts(sum(map(ns_of, workers[1].values())), workers[1])]
        body.append(numbers(*(1 + ns_of(phases[name]) if name in phases else 0 for name in PHASES)))
        body.append(number(sum(1 << RESOURCES.index(name) for name in use or ())))
        return body + ([sparse(RESOURCES, use)] if use else [])

    def transaction(self, session, text=None, ms=1, at=None, state="commit", statements=None, idle_ms=0, dated=True):
        """One of several statements, of which @text is the longest; an open one has a state of those."""
        block, (start_ns, took) = self.block(), self.ended(at, ms)
        word = {name: value for value, name in STATES.items()}.get(state, 0)
        flags = ((text is not None) | (word > 3) << 1 | dated << 2 | (statements is not None) << 4 | (text is not None) * WHOLE |
                 (text is None) * NO_TEXT)
        entry = self.session_entry(block, session)
        block.add(10, number(flags), entry, difference(start_ns, block.last_ns), numbers(took, word),
                  numbers(statements, ns_of(idle_ms)) if statements is not None else b"",
                  self.text(text) if text is not None else b"", end=start_ns + took)

    def wait(self, session, ms=1, at=None, lock="relation", mode="AccessExclusiveLock", outcome="granted", tag=(5, 16384, 0, 0), kind=0,
             tranche=None, cycle=(), text=None, relation=0, name=None, thing=None, index=None, holders=None, more=0,
             engine="postgresql", connection=0, named=True):
        """
        A lock wait of the session, which ran @text, of this @connection. @holders: of holder(), None if they could not be read.
        @named: with its session, as earlier versions did not record it.
        """
        block, (start_ns, took) = self.block(), self.ended(at, ms)
        server, pid, tid, _ = session
        event_flags = ((lock == "lwlock") | (engine == "mysql") << 1 | (outcome in ("failed", "deadlock")) << 2 |
                       (outcome == "deadlock") << 3)
        mode = {word: value for value, word in (LWLOCK_MODES if lock == "lwlock" else MODES).items()}.get(mode, 0)
        body = [numbers((outcome == "waiting") | (holders is not None) * 0xc), block.entry(2, server), numbers(pid, tid)]
        body += [block.start(start_ns), numbers(took, event_flags, kind, mode, *tag, 0, 0), string(lock), string(tranche)]
        body += [numbers(len(cycle), *cycle)]
        if holders is not None:
            own = holder(pid, text, connection=connection)
            body += [number(relation), string(name), string(thing), string(index), own, number(len(holders)), *holders, number(more)]
        if named:
            body.append(self.session_entry(block, session))
        block.add(7, *body, end=start_ns + took)
        self.counts["waits"] += 1

    def status(self, lost=(), boundary=0, cpu_ms=5, limit=()):
        """The counts so far. @lost: of statements by name; @limit: text_dropped, why_dropped and ns without probes."""
        lost = dict(lost)
        block = self.block()
        block.add(8, difference(self.now_ns, block.last_ns), numbers(ns_of(cpu_ms), 0),
                  numbers(self.counts["statements"], *(lost.get(name, 0) for name in LOSSES), boundary),
                  numbers(self.counts["waits"], *[0] * len(LOSSES), 0), numbers(*limit), end=self.now_ns)
        self.last = block

    def bytes(self):
        if self.last is not self.blocks[-1]:
            self.status()
        last = Block()
        return b"".join(block.bytes(START if not n else END if n == len(self.blocks) else EVENTS, n)
                        for n, block in enumerate([*self.blocks, last]))

    def save(self, path):
        with open(path, "wb") as f:
            f.write(self.bytes())
        return path
