# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A reader of recordings, written from docs/recording.md alone. Its objects are as those of --json."""

import base64
import collections
import contextlib
import datetime
import struct

HEAD = struct.Struct("<8sIHHQQQQIIII")
MAGIC = b"dbslower"
VERSION = 2
START, EVENTS, END = 1, 2, 3
LONGEST = 8388608
STATES = {1: "commit", 2: "rollback", 3: "prepare", 4: "running", 5: "idle", 6: "aborted"}
MODES = {number + 1: f"{name}Lock" for number, name in enumerate(
    "AccessShare RowShare RowExclusive ShareUpdateExclusive Share ShareRowExclusive Exclusive AccessExclusive".split())}
LWLOCK_MODES = {0: "exclusive", 1: "shared", 2: "until free"}
TAGS = {"relation", "extend", "page", "tuple"}
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
        (magic, crc, self.version, self.kind, self.id, self.sequence, self.begin_ns, self.end_ns, self.statements, self.layout,
         self.length, self.crc) = HEAD.unpack_from(data, offset)
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

    def named(self, names):
        """The values of a sparse list, by name; those that are 0 are not in it."""
        bits = self.number()
        return {names[i] if i < len(names) else i: self.number() for i in range(64) if bits >> i & 1}

    def value(self, letter):
        if letter == "n":
            return self.number()
        if letter == "s":
            return self.string()
        if letter == "l":
            return self.numbers(self.number())
        return self.bytes(self.number())


def rfc3339(ns):
    seconds, ns = divmod(ns, 10 ** 9)
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.UTC):%Y-%m-%dT%H:%M:%S}.{ns:09}Z"


def known(**members):
    return {key: value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            for key, value in members.items() if value not in (None, b"")}


def ms(ns):
    """As a number of JSON that has 6 decimals."""
    return float(f"{ns // 10 ** 6}.{ns % 10 ** 6:06}")


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

    def __init__(self, events, layout=""):
        self.cursor = Cursor(bytes(events))
        self.layout = {line.split()[0]: line.split()[1:] for line in layout.splitlines()}
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

    def members(self, c, which):
        """Those of an event, by name; flags are True."""
        names, flags, found = self.layout[which], c.number(), {}
        if flags >> len(names):
            raise Invalid("a flag without a name")
        for name, _, letter in (names[i].partition(":") for i in range(len(names)) if flags >> i & 1):
            found[name] = self.READ_MEMBER[letter](self, c) if letter in self.READ_MEMBER else c.value(letter) if letter else True
        return found

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
            user=c.string(), database=c.string(), client=c.string(), application=c.string(), backend=c.string() if c.at < c.end else None,
            connection_id=connection or None)))

    def entry(self, entries, c, kept):
        return self.entry_at(entries, c.number(), kept)

    @staticmethod
    def entry_at(entries, number, kept):
        if not len(entries) - kept <= number < len(entries):
            raise Invalid("an entry that is not there")
        return entries[number]

    def call(self, c):
        name = c.string().decode(errors="replace")
        self.calls.append({"call": name, **({"event": c.string().decode(errors="replace")} if c.at < c.end else {})})

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

    def begin(self, c):
        """What each event begins with: server, PID, TID and session; its start and its duration."""
        return self.entry(self.sessions, c, 4096), self.start(c), c.number()

    def statement(self, c):
        (server, pid, tid, session), start, duration = self.begin(c)
        m = self.members(c, "statement")
        has, failed = m.keys().__contains__, "failed" in m
        if has("transaction"):
            return {**self.transaction_of(server, pid, tid, session, start, duration, has("running"), has("dated"), m.get("state", 0)),
                    **({"statements": m["statements"], "idle_ms": ms(m.get("idle_ns", 0))} if has("statements") else {}),
                    **self.text_of(m)}
        kind = "running" if has("running") else "prepare" if has("prepare") else "statement"
        found = {"type": kind, "time": self.wall(start), "server": server["json"], "pid": pid, "tid": tid,
                 "duration_ms": ms(duration), "end_ns": start + duration, **session}
        if has("counted") and not failed:
            found["rows"] = m.get("sent", 0) + m.get("affected", 0)
        if has("status"):
            found["status"] = "error" if failed else "ok"
        found.update(known(errno=m.get("errno"), sqlstate=m.get("sqlstate"), rows_examined=m.get("rows_examined"), fetches=m.get("fetches")))
        if has("lock_ns"):
            found["lock_ms"] = ms(m["lock_ns"])
        if has("plan"):
            found["query_plan"] = [name for bit, name in enumerate(self.layout["plan"]) if m["plan"] >> bit & 1]
        if has("traceparent"):
            _, trace, span, flags = m["traceparent"].split(b"-")
            found["parent"] = trace, span, int(flags, 16)
        if has("query_id"):
            found["query_id"] = self.entry_at(self.queries, m["query_id"] - 1, 4096)
        found.update(self.text_of(m), **m.get("breakdown", {}))
        if has("alone") and kind == "statement":
            own = found["own"] = self.transaction_of(server, pid, tid, session, start, duration, False, True,
                                                     (2 if failed else 1) if has("status") else 0)
            own.update(statements=1, idle_ms=0, **self.text_of(m))
        return found

    @staticmethod
    def text_of(m):
        found = {}
        if "text" in m:
            found = {**text_members(m["text"], "truncated" in m), "truncated": "truncated" in m}
        length = len(m.get("text", b"")) if "whole" in m else m.get("query_bytes")
        return {**found, **known(query_bytes=length, original_bytes=m.get("original_bytes"))}

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

    def parts(self, c):
        """All that the layout names, also those that are 0."""
        parts = c.named(self.layout["parts"])
        return {name: ms(parts.get(name, 0)) for name in self.layout["parts"]}

    def breakdown(self, c):
        found = {"why_ms": self.parts(c)}
        waits = [(self.entry(self.calls, c, 64), *c.numbers(2)) for _ in range(c.number())]
        found["waits"] = [{**call, "sleeps": sleeps, "total_ms": ms(ns)} for call, sleeps, ns in waits]
        workers = c.number()
        if workers:
            found["workers"] = {"count": workers, "why_ms": self.parts(c)}
        phases = {name: ms(ns - 1) for name, ns in c.named(self.layout["phases"]).items()}
        if phases:
            found["phases_ms"] = phases
        used = c.number()
        values = c.named(self.layout["resources"])
        if used:
            found["use"] = {name: values.get(name, 0) for i, name in enumerate(self.layout["resources"]) if used >> i & 1}
        return found

    def backends(self, c):
        return [self.backend(self.members(c, "backend")) for _ in range(c.number())]

    @staticmethod
    def backend(m):
        found = {"pid": m["pid"]} if "pid" in m else {"prepared_transaction": True}
        found.update(known(connection_id=m.get("connection_id"), backend=m.get("backend")), queued="queued" in m, blocked_ms=ms(m.get("blocked_ns", 0)))
        if "read" in m:
            found["running"] = "running" in m
        if "idle_read" in m:
            found["idle_in_transaction"] = "idle" in m
        if "idle_ns" in m:
            found["idle_ms"] = ms(m["idle_ns"])
        if "text" in m:
            found.update(query=m["text"].decode("utf-8", "replace"), truncated="cut" in m)
        return found

    def wait(self, c):
        (server, pid, tid, session), start, duration = self.begin(c)
        m = self.members(c, "wait")
        has = m.keys().__contains__
        found = {"type": "lock_wait", "time": self.wall(start), "server": server["json"], "pid": pid, "tid": tid,
                 "duration_ms": ms(duration), "end_ns": start + duration, **session}
        found["outcome"] = ("waiting" if has("waiting") else "deadlock" if has("deadlock") else "timeout" if has("timeout") else
                            "killed" if has("killed") else "failed" if has("failed") else
                            "ended" if has("session") and not has("granted") else "granted")
        modes = LWLOCK_MODES if has("lwlock") else {} if has("session") else MODES
        found.update(known(lock=m.get("lock"), mode=modes.get(m.get("mode", 0)),
                           index=m.get("index"), more_holders=m.get("more_holders"), cycle=m.get("cycle")))
        if has("began_before"):
            found["began_before"] = True
        if not has("lwlock") and not has("session"):
            tag = m.get("tag", [0] * 4)
            found.update(tag=tag, tag_type=m.get("type", 0), **known(relation=m.get("relation"), relation_oid=m.get("relation_oid")))
            if has("lock") and m["lock"].decode(errors="replace") in TAGS:
                found["relation_oid"] = tag[1]
        if has("waiter"):
            found.update({key: own[key] for own in m["waiter"] for key in ("query", "truncated", "connection_id") if key in own})
        if has("session"):
            found.update(known(object=m.get("object")))
        if has("all_holders") or has("holders"):
            found["holders"] = m.get("holders", [])
        return found

    def status(self, c):
        time_ns, cpu, bpf = c.difference(self.last_ns), *c.numbers(2)
        found = {"type": "status", "end_ns": time_ns, "cpu_ns": cpu, "bpf_ns": bpf - 1 if bpf else None}
        for name in ("statements", "waits"):
            count, lost, (boundary, untraced) = c.number(), c.named(self.layout["losses"]), c.numbers(2)
            found[name] = {"statements": count, "lost": {loss: lost.get(loss, 0) for loss in self.layout["losses"]}, "boundary": boundary,
                           "untraced_ns": untraced}
        return found

    READ = {1: option, 2: server, 3: session, 4: call, 5: clock, 6: statement, 7: wait, 8: status, 9: query}
    READ_MEMBER = {"t": text, "b": breakdown, "h": backends}


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
            yield from Decoder(block.events, self.layout())

    def layout(self):
        layout = self.options().get("layout", "")
        if any(block.layout != crc32c(layout.encode()) for block in self.blocks):
            raise Invalid("another layout")
        return layout

    def options(self):
        return {one["name"].decode(): one["value"].decode(errors="replace") for one in Decoder(self.blocks[0].events) if one["type"] == "option"}


def read(path):
    with open(path, "rb") as f:
        return Recording(f.read())
