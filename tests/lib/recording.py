# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A reader of recordings, written from docs/recording.md alone. Its objects are as those of --json."""

import base64
import collections
import contextlib
import datetime
import struct

HEAD = struct.Struct("<8sIHHQQQQQII")
MAGIC = b"dbslower"
VERSION = 1
START, EVENTS, END = 1, 2, 3
LONGEST = 8388608
PARTS = "cpu runqueue disk fsync lock lwlock futex network pipe sleep ipc stopped other".split()
PHASES = "parse rewrite plan execute".split()
RESOURCES = """read_bytes write_bytes read_calls write_calls minor_faults major_faults peak_growth_bytes sent_bytes
    received_bytes shared_blks_hit shared_blks_read shared_blks_dirtied shared_blks_written local_blks_hit local_blks_read
    local_blks_dirtied local_blks_written temp_blks_read temp_blks_written wal_records wal_fpi wal_bytes sorts sorts_external
    sort_bytes sort_blocks""".split()
LOSSES = "ring_full table_full start_without_end end_without_start who_unknown text_unreadable text_truncated".split()
STATES = {1: "commit", 2: "rollback", 3: "prepare", 4: "running", 5: "idle", 6: "aborted"}
MODES = {number + 1: f"{name}Lock" for number, name in enumerate(
    "AccessShare RowShare RowExclusive ShareUpdateExclusive Share ShareRowExclusive Exclusive AccessExclusive".split())}
LWLOCK_MODES = {0: "exclusive", 1: "shared", 2: "until free"}
TAGS = {"relation", "extend", "page", "tuple"}
PLAN = """no_good_index no_index filesort filesort_on_disk filesort_priority_queue full_join full_scan tmp_table
    tmp_table_on_disk""".split()
WORD = (1 << 64) - 1


def crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = crc_table()


def crc32c(data):
    value, table = 0xffffffff, TABLE
    for byte in data:
        value = value >> 8 ^ table[(value ^ byte) & 0xff]
    return value ^ 0xffffffff


class Invalid(ValueError):
    """Bytes that are not as docs/recording.md states."""


class Block:
    def __init__(self, data, offset):
        if len(data) - offset < HEAD.size:
            raise Invalid("shorter than a head")
        (magic, crc, self.version, self.kind, self.id, self.sequence, self.begin_ns, self.end_ns, self.statements, self.length,
         self.crc) = HEAD.unpack_from(data, offset)
        if magic != MAGIC or crc != crc32c(data[offset + 12:offset + 64]):
            raise Invalid("not a head")
        if self.version != VERSION or self.kind not in (START, EVENTS, END) or self.length > LONGEST:
            raise Invalid("an unknown head")
        self.offset = offset
        self.end = offset + HEAD.size + self.length
        if self.end > len(data):
            raise Invalid("cut")
        self.events = memoryview(data)[offset + HEAD.size:self.end]

    def is_sound(self):
        return crc32c(self.events) == self.crc


class Cursor:
    """The members of an event."""

    def __init__(self, data, at=0, end=None):
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    def number(self):
        value = shift = 0
        while True:
            if self.at >= self.end or shift > 63:
                raise Invalid("a number")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7f) << shift
            if byte < 0x80:
                if value > WORD:
                    raise Invalid("a large number")
                return value
            shift += 7

    def numbers(self, count):
        return [self.number() for _ in range(count)]

    def difference(self, base):
        n = self.number()
        return (base + (n // 2 if n % 2 == 0 else -(n + 1) // 2)) & WORD

    def bytes(self, count):
        if count > self.end - self.at:
            raise Invalid("more bytes than there are")
        self.at += count
        return bytes(self.data[self.at - count:self.at])

    def string(self):
        n = self.number()
        value = self.bytes(n - 1) if n else None
        if value and b"\0" in value:
            raise Invalid("a NUL")
        return value

    def sparse(self, count):
        bits = self.number()
        values = [self.number() if bits >> i & 1 else 0 for i in range(64)]
        return values[:count]


def rfc3339(ns):
    seconds, ns = divmod(ns, 10 ** 9)
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%dT%H:%M:%S}.{ns:09}Z"


def known(**members):
    return {key: value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            for key, value in members.items() if value not in (None, b"")}


def ms(ns):
    """As a number of JSON that has 6 decimals."""
    return float(f"{ns // 10 ** 6}.{ns % 10 ** 6:06}")


def plan(number):
    return [word for bit, word in enumerate(PLAN, 1) if number >> bit & 1]


OF_NUMBER = {"lock_ms": ms, "query_plan": plan}	# others are as they are


def text_members(text, truncated):
    """A text that is not UTF-8 also has its bytes; a character at the end may be cut."""
    try:
        return {"query": text.decode()}
    except UnicodeDecodeError as why:
        if truncated and why.end == len(text) and why.reason == "unexpected end of data":
            return {"query": text[:why.start].decode()}
    return {"query_base64": base64.b64encode(text).decode()}


class Decoder:
    """The events of one block, as objects."""

    def __init__(self, events):
        self.cursor = Cursor(bytes(events))
        self.servers, self.sessions, self.calls, self.queries = [], [], [], []
        self.places, self.kept = [None] * 256, 0
        self.last_ns = self.offset_ns = 0

    def __iter__(self):
        c = self.cursor
        while c.at < c.end:
            kind, length = c.number(), c.number()
            if length > c.end - c.at:
                raise Invalid("an event")
            body = Cursor(c.data, c.at, c.at + length)
            c.at += length
            found = self.READ[kind](self, body) if kind in self.READ else None
            if found:
                yield found

    def option(self, c):
        return {"type": "option", "name": c.string(), "value": c.string()}

    def server(self, c):
        names = ("engine", "service", "otel", "version", "path")
        server = {name: c.string() for name in names}
        c.number()
        server["container"], server["uid"], server["pid"] = c.string(), c.number(), c.number()
        c.string()
        server["json"] = known(engine=server["service"], version=server["version"],
                               pid=server["pid"] if server["pid"] else None, path=server["path"], container=server["container"])
        self.servers.append(server)

    def session(self, c):
        server, (pid, tid, _, connection) = self.entry(self.servers, c, 1024), c.numbers(4)
        self.sessions.append((server, pid, tid, known(
            user=c.string(), database=c.string(), client=c.string(), application=c.string(), connection_id=connection or None)))

    def entry(self, entries, c, kept):
        number = c.number()
        if not len(entries) - kept <= number < len(entries):
            raise Invalid("an entry that is not there")
        return entries[number]

    def call(self, c):
        self.calls.append(c.string().decode())

    def query(self, c):
        number = c.number()
        self.queries.append(str(number - 2 ** 64 if number >> 63 else number))

    def clock(self, c):
        self.offset_ns = c.number()

    def wall(self, ns):
        return rfc3339((ns + self.offset_ns) & WORD)

    def start(self, c):
        self.last_ns = c.difference(self.last_ns)
        return self.last_ns

    def statement(self, c):
        flags = c.number()
        server, pid, tid, session = self.entry(self.sessions, c, 4096)
        start, duration = self.start(c), c.number()
        kind = "running" if flags & 0x4000 else "prepare" if flags & 0x2000 else "statement"
        found = {"type": kind, "time": self.wall(start), "server": server["json"], "pid": pid, "tid": tid,
                 "duration_ms": ms(duration), "end_ns": start + duration, **session}
        failed = bool(flags & 0x40000)
        if not flags & (0x80000 | 0x4000 | 0x2000):
            own = found["own"] = self.transaction_of(server, pid, tid, session, start, duration, False, True,
                                                     (2 if failed else 1) if flags & 0x2 else 0)
            own.update(statements=1, idle_ms=0)
        if flags & 0x4:
            rows = c.number()
            if not failed:
                found["rows"] = rows
        length = c.number() if flags & 0x100 else None
        if flags & 0x2:
            found["status"] = "error" if failed else "ok"
        if flags & 0x200:
            found.update(known(errno=c.number() or None, sqlstate=c.string()))
        for flag, name in ((0x400, "rows_examined"), (0x800, "lock_ms"), (0x100000, "query_plan"), (0x1000, "fetches"),
                           (0x10000, "original_bytes")):
            if flags & flag:
                found[name] = OF_NUMBER.get(name, int)(c.number())
        if flags & 0x20000:
            found["parent"] = c.string(), c.string(), c.number()
        if flags & 0x40:
            found["query_id"] = self.entry(self.queries, c, 4096)
        if flags & 0x1:
            text = self.text(c)
            found.update(text_members(text, flags & 0x80), truncated=bool(flags & 0x80))
            length = len(text) if flags & 0x8 else length
        if length is not None:
            found["query_bytes"] = length
        if "own" in found:
            found["own"].update({key: found[key] for key in ("query", "query_base64", "truncated", "query_bytes", "original_bytes")
                                 if key in found})
        if flags & 0x10:
            found.update(self.breakdown(c))
        return found

    def transaction(self, c):
        flags = c.number()
        server, pid, tid, session = self.entry(self.sessions, c, 4096)
        start, duration, state = c.difference(self.last_ns), *c.numbers(2)
        found = self.transaction_of(server, pid, tid, session, start, duration, is_open=flags & 0x2, is_dated=flags & 0x4, state=state)
        if flags & 0x10:
            found.update(statements=c.number(), idle_ms=ms(c.number()))
        length = c.number() if flags & 0x100 else None
        if flags & 0x10000:
            found["original_bytes"] = c.number()
        if flags & 0x1:
            text = self.text(c)
            found.update(text_members(text, flags & 0x80), truncated=bool(flags & 0x80))
            length = len(text) if flags & 0x8 else length
        if length is not None:
            found["query_bytes"] = length
        return found

    def transaction_of(self, server, pid, tid, session, start, duration, is_open, is_dated, state):
        end = self.wall(start + duration)
        found = {"type": "open" if is_open else "transaction", "server": server["json"], "pid": pid, "tid": tid, **session, "time": end}
        if not is_open:
            found["end"] = end
        if is_dated:
            found.update(begin=self.wall(start), duration_ms=ms(duration))
        if state:
            found["state"] = STATES[state]
        return found

    def text(self, c):
        base = c.number()
        if not base:
            text = c.bytes(c.number())
            if len(text) <= 16384:
                self.places[self.kept % 256] = text
                self.kept += 1
            return text
        if base > 256 or self.places[base - 1] is None:
            raise Invalid("a text that is not there")
        base, at, parts = Cursor(self.places[base - 1]), 0, []
        for _ in range(c.number()):
            copied, skipped, inserted = c.numbers(3)
            parts.append(base.bytes(copied))
            base.bytes(skipped)
            parts.append(c.bytes(inserted))
        return b"".join(parts) + base.bytes(base.end - base.at)

    def breakdown(self, c):
        found = {"why_ms": dict(zip(PARTS, map(ms, c.sparse(len(PARTS)))))}
        waits = [(self.entry(self.calls, c, 64), *c.numbers(2)) for _ in range(c.number())]
        found["waits"] = [{"call": call, "sleeps": sleeps, "total_ms": ms(ns)} for call, sleeps, ns in waits]
        workers = c.number()
        if workers:
            found["workers"] = {"count": workers, "why_ms": dict(zip(PARTS, map(ms, c.sparse(len(PARTS)))))}
        phases = {name: ms(ns - 1) for name, ns in zip(PHASES, c.numbers(4)) if ns}
        if phases:
            found["phases_ms"] = phases
        used = c.number()
        if used:
            values = c.sparse(len(RESOURCES))
            found["use"] = {name: values[i] for i, name in enumerate(RESOURCES) if used >> i & 1}
        return found

    def backend(self, c):
        flags, pid, connection, blocked, idle, length = c.numbers(6)
        text = c.bytes(length - 1) if length else None
        found = {"pid": pid} if pid else {"prepared_transaction": True}
        if connection:
            found["connection_id"] = connection
        found.update(queued=bool(flags & 1), blocked_ms=ms(blocked))
        if flags & 2:
            found["running"] = bool(flags & 4)
        if flags & 8:
            found["idle_in_transaction"] = bool(flags & 0x10)
        if idle:
            found["idle_ms"] = ms(idle)
        if text is not None:
            found.update(query=text.decode("utf-8", "replace"), truncated=bool(flags & 0x20))
        return found

    def wait(self, c):
        flags = c.number()
        server = self.entry(self.servers, c, 1024)
        pid, tid = c.numbers(2)
        start = self.start(c)
        duration, event, kind, mode, *tag = c.numbers(8)
        c.numbers(2)
        lock, tranche = c.string(), c.string()
        cycle = c.numbers(c.number())
        found = {"type": "lock_wait", "time": self.wall(start), "server": server["json"], "pid": pid, "tid": tid,
                 "duration_ms": ms(duration), "end_ns": start + duration}
        found["outcome"] = ("waiting" if flags & 1 else "deadlock" if event & 8 else "ended" if event & 2 else
                            "failed" if event & 4 else "granted")
        found.update(known(lock=lock, mode=(LWLOCK_MODES if event & 1 else {} if event & 2 else MODES).get(mode)))
        if flags & 2:
            found["began_before"] = True
        if not event & 3:
            found.update(tag=tag, tag_type=kind)
            if lock and lock.decode() in TAGS:
                found["relation_oid"] = tag[1]
        if cycle:
            found["cycle"] = cycle
        if flags & 4:
            self.info(c, found, flags, event)
        if c.at < c.end:
            *session, who = self.entry(self.sessions, c, 4096)
            if session != [server, pid, tid]:
                raise Invalid(f"a wait of {pid}, {tid} in another session")
            found.update(known(connection_id=who.get("connection_id")))
        return found

    def info(self, c, found, flags, event):
        relation, (name, thing, index), own = c.number(), (c.string(), c.string(), c.string()), self.backend(c)
        holders = [self.backend(c) for _ in range(c.number())]
        more = c.number()
        found.update(known(index=index, more_holders=more or None, connection_id=own.get("connection_id")))
        found.update({key: own[key] for key in ("query", "truncated") if key in own})
        if event & 2:
            found.update(known(object=thing))
        elif not event & 1:
            found.update(known(relation=name))
            if relation:
                found.setdefault("relation_oid", relation)
        if flags & 8 or holders:
            found["holders"] = holders

    def status(self, c):
        time_ns, cpu, bpf = c.difference(self.last_ns), *c.numbers(2)
        found = {"type": "status", "end_ns": time_ns, "cpu_ns": cpu, "bpf_ns": bpf - 1 if bpf else None}
        for name in ("statements", "waits"):
            count, *lost, boundary = c.numbers(9)
            found[name] = {"statements": count, "lost": dict(zip(LOSSES, lost)), "boundary": boundary}
        if c.at < c.end:
            found["statements"].update(zip(("text_dropped", "why_dropped", "untraced_ns"), c.numbers(3)))
        return found

    READ = {1: option, 2: server, 3: session, 4: call, 5: clock, 6: statement, 7: wait, 8: status, 9: query, 10: transaction}


class Recording:
    """The whole blocks of the bytes of a file, in order."""

    def __init__(self, data):
        self.data, self.blocks, self.searched = data, [], []
        id_ = self.identify()
        at = 0
        while at < len(data):
            try:
                block = Block(data, at)
                if block.id != id_:
                    raise Invalid("of another recording")
            except Invalid:
                self.searched.append(at)
                at = data.find(MAGIC, at + 1)
                if at < 0:
                    break
                continue
            self.blocks.append(block)
            at = block.end
        if not self.blocks:
            raise Invalid("not a recording")
        self.is_ring = any(a.sequence > b.sequence for a, b in zip(self.blocks, self.blocks[1:]))
        self.blocks.sort(key=lambda block: block.sequence)
        self.is_started = self.blocks[0].kind == START
        self.is_ended = self.blocks[-1].kind == END
        self.broken = 0

    def identify(self):
        """The ID: of the first head or, if that is invalid, that of the sound blocks with the most bytes."""
        with contextlib.suppress(Invalid):
            return Block(self.data, 0).id
        sums, at = collections.Counter(), 0
        while at >= 0:
            try:
                block = Block(self.data, at)
                if not block.is_sound():
                    raise Invalid("damaged events")
            except Invalid:
                at = self.data.find(MAGIC, at + 1)
                continue
            sums[block.id] += HEAD.size + block.length
            at = block.end
        if not sums:
            raise Invalid("not a recording")
        return sums.most_common(1)[0][0]

    def events(self, check=True):
        """All objects. Without @check, only the CRC32C of every tenth block is compared."""
        for number, block in enumerate(self.blocks):
            if (check or number % 10 == 0) and not block.is_sound():
                self.broken += 1
                continue
            yield from Decoder(block.events)

    def options(self):
        return {one["name"].decode(): one["value"].decode() for one in Decoder(self.blocks[0].events) if one["type"] == "option"}


def read(path):
    with open(path, "rb") as f:
        return Recording(f.read())
