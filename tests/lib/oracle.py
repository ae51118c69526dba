# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Test oracle: the statements that the server's log implies, compared with those that the tool shows.

With log_min_duration_statement = 0 the server logs each simple message with its
duration and each Parse, Bind and Execute message apart; a failure is logged with
its text and without a duration. expected() folds these into the tool's statements:

 * a simple message is one statement, whatever it holds, with the whole text;
 * Parse, Bind and Execute up to the completion are one; after the completion the
   next message starts another (a part of a pipeline);
 * a Sync ends what is open; a Parse that only a Sync follows is part of none, unless it fails;
 * what failed is a statement with status error; without a text, if it is a message of which no statement had begun, or a
   connection that is refused.

The log does not show a Sync. It follows from three facts, see synced(): a new
virtual transaction; libpq's PQprepare always sends one (a named Parse), except in
a pipeline, and sessions with pipelines say so in their application_name.

How the log's durations add up to the tool's (D):
 * simple: the log counts from the message's receipt to the commit's end. D starts
   some instructions later and ends at ReadyForQuery, so that it includes the
   writing of the log line itself. |D - log| <= max(100 us, 5 %).
 * extended: D is wall time, from the first message's activity. The log's parts are
   each message's own time: their sum lacks the waiting between the messages, the
   writing of the parts' log lines, and the commit when that comes with the Sync.
   So D >= sum always. D - sum <= max(100 us, 5 %) holds where the commit writes
   nothing and the client sends the messages in one go: tight() tells which.
   The others are held between D >= sum and the log's time stamps (in ms).
 * failed: the log has no duration, only the time stamp of the failure. Where parts
   were logged before it, D is held between the same two; else only below SCHEDULING.

A backend can lose its CPU between a clock of the log and a probe of the tool, wait for what the log's line costs, or be
stopped by a hypervisor, which no kernel attributes. D includes that, the log does not. bpftrace has probes at the same
places, see peer.py: a D that is not as the log says must be as bpftrace has measured it. 99 % must be as one of the two
says, so the bounds do not depend on the load of the machine; the others lost their CPU between the two tracers' readings.
That both measure the same wrong thing is excluded by the log alone: half of a kind must be as it says. No statement may
be off by more than FAR_MS: a mix-up of starts would show there.
"""

import dataclasses
import datetime
import re
from collections import Counter, defaultdict

from complaints import Off, RingFull

TOLERANCE_MS = 0.1
TOLERANCE_PART = 0.05
SHARE = 0.99		# of the statements must be within the tolerance of the log or of the other tracer
ALONE = 0.5		# ... of the log
STAMP_MS = 2.0		# the log's time stamps are truncated to 1 ms, ours are exact
CUT_MS = 1.0		# by as much the log's time stamps are too early at most
CLOCKS_MS = 0.05	# between readings of two clocks
FAR_MS = 100.0		# no duration may be off by more
LONG_LINE = 65536	# bytes of a text; writing its log line takes long, and is in D alone
NICE = -10		# of the tools that are compared

HEAD = re.compile(
    rb"(?P<time>\d+\.\d+)\|(?P<pid>\d+)\|(?P<session>[0-9a-f.]+)\|(?P<line>\d+)\|(?P<backend>[^|]*)\|"
    rb"(?P<user>[^|]*)\|(?P<database>[^|]*)\|(?P<vxid>[^|]*)\|(?P<sqlstate>[^|]*)\|(?P<app>[^|]*)\| "
    rb"(?P<severity>[A-Z0-9]+):  (?P<message>.*)", re.S)
DURATION = re.compile(
    rb"duration: (?P<ms>\d+\.\d+) ms  (?:(?P<simple>statement)|(?P<step>parse|bind|execute fetch from|execute)"
    rb" (?P<name>[^:]*)): (?P<text>.*)", re.S)
OF_MESSAGES = ("26000", "34000", "22021", "08P01")	# an unknown name, or what cannot be read: never at a Sync
FAILURES = (b"ERROR", b"FATAL", b"PANIC")
ADDITIONS = (b"DETAIL", b"HINT", b"STATEMENT", b"CONTEXT", b"QUERY", b"LOCATION", b"BACKTRACE")


def stop(tool, peer):
    """Stop them. They must have lost nothing, but for what a full buffer explains: RingFull."""
    assert tool.stop() == 0, tool.said()
    peer.stop()
    if "ring_full" in tool.lost() or peer.lost:
        raise RingFull(tool.lost(), peer.lost)
    assert not tool.lost(), f"lost something: {tool.lost()}"


def beyond(one, logged_ms, alone=False):
    """Return by how many ms a duration is outside of the tolerance of the log and, unless @alone, of the other tracer."""
    others = [logged_ms] if alone or "peer_ms" not in one else [logged_ms, one["peer_ms"]]
    return min(abs(one["duration_ms"] - ms) - max(TOLERANCE_MS, TOLERANCE_PART * ms) for ms in others)


@dataclasses.dataclass
class Entry:
    """One entry of the log with its additional lines."""
    time_ms: float
    pid: int
    session: str
    line: int
    backend: str
    user: str
    database: str
    vxid: str
    sqlstate: str
    app: str
    severity: bytes
    message: bytes
    additions: dict


@dataclasses.dataclass
class Logical:
    """One statement as the tool should show it."""
    pid: int
    user: str
    database: str
    app: str
    text: bytes
    kind: str				# simple, extended, failed
    failed: bool = False
    sqlstate: str = None		# of its error, unless that ended the session
    parts: list = dataclasses.field(default_factory=list)	# [(step, ms)]
    previous_ms: float = 0.0		# the log's time of the last line of the statement before
    first_ms: float = 0.0		# … of its first part's start
    line_ms: float = 0.0		# … of its first part's line
    last_ms: float = 0.0		# … of its last part's line
    next_ms: float = float("inf")	# … of the session's next line
    vxid: str = ""
    named_parse: bool = False
    completed: bool = False
    last_in_pipeline: bool = True

    @property
    def logged_ms(self):
        return sum(ms for _, ms in self.parts)

    def __str__(self):
        steps = " ".join(f"{step} {ms:.3f}" for step, ms in self.parts)
        return f"pid {self.pid} {self.app} {'error' if self.failed else 'ok'} [{steps}] {shown(self.text)}"


def shown(text):
    """A text for a message: short, on one line."""
    text = text if isinstance(text, bytes) else (text or "").encode()
    return repr(text[:100])[1:] + (f"… ({len(text)} bytes)" if len(text) > 100 else "")


def entries(log):
    """The log's entries in order. A line that starts with a tab goes on with the line before it."""
    lines = []
    for line in log.split(b"\n")[:-1]:		# behind the last one is a line that is being written
        if line.startswith(b"\t") and lines:
            lines[-1] += b"\n" + line[1:]
        elif line:
            lines.append(line)
    last = {}
    for line in lines:
        match = HEAD.fullmatch(line)
        if not match:
            raise ValueError(f"not a line of the log: {line[:200]!r}")
        field = {key: value.decode() for key, value in match.groupdict().items()
                 if key not in ("severity", "message")}
        pid = int(field["pid"])
        if match["severity"] in ADDITIONS:
            last[pid].additions[match["severity"]] = match["message"]
            continue
        last[pid] = entry = Entry(
            float(field["time"]) * 1000, pid, field["session"], int(field["line"]), field["backend"],
            field["user"], field["database"], field["vxid"], field["sqlstate"], field["app"],
            match["severity"], match["message"], {})
        yield entry


def synced(open_, entry):
    """Was there a Sync between the open statement and this entry?"""
    def transaction(vxid):
        return vxid.rpartition("/")[2] not in ("", "0") and vxid
    before, now = transaction(open_.vxid), transaction(entry.vxid)
    if before and now and before != now:
        return True
    return open_.named_parse and "pipeline" not in open_.app


class Session:
    """Folds one session's entries into statements."""

    def __init__(self, add):
        self.add = add
        self.open = None	# extended, not completed
        self.last = None	# the last one of the session

    def start(self, entry, kind, text, ms=None):
        self.end()
        self.last = Logical(entry.pid, entry.user, entry.database, entry.app, text, kind,
                            previous_ms=self.last.last_ms if self.last else 0.0, first_ms=entry.time_ms - (ms or 0),
                            line_ms=entry.time_ms, last_ms=entry.time_ms, vxid=entry.vxid)
        self.add(self.last)
        return self.last

    def end(self):
        self.open = None

    def take(self, entry):
        if self.last and self.last.next_ms == float("inf"):
            self.last.next_ms = entry.time_ms
        if entry.severity in FAILURES:
            self.failure(entry)
        elif entry.severity == b"LOG":
            match = DURATION.fullmatch(entry.message)
            if match and match["simple"]:
                statement = self.start(entry, "simple", match["text"], float(match["ms"]))
                statement.parts.append(("statement", float(match["ms"])))
            elif match:
                self.step(entry, match)

    def step(self, entry, match):
        """A Parse, Bind or Execute message."""
        step, ms, text = match["step"].decode(), float(match["ms"]), match["text"]
        if step == "execute fetch from" and self.last and self.last.text == text and self.last.completed:
            self.open = self.last		# its portal was suspended, not completed
            self.open.completed = False
        # Between a Bind and its Execute is no Sync: VACUUM and REINDEX CONCURRENTLY begin other transactions.
        if self.open and not step.startswith("execute") and synced(self.open, entry):
            self.end()
        if not self.open:
            self.open = self.start(entry, "extended", text, ms)
        now = self.open
        now.text, now.vxid, now.last_ms, now.next_ms = text, entry.vxid, entry.time_ms, float("inf")
        now.named_parse = step == "parse" and match["name"] != b"<unnamed>"
        now.parts.append((step, ms))
        if step.startswith("execute"):
            now.completed = True
            self.end()

    def failure(self, entry):
        text = entry.additions.get(b"STATEMENT")
        if text is None:
            self.failure_without_text(entry)
            return
        if self.open and (self.open.text != text or synced(self.open, entry)):
            self.end()
        statement = self.open or self.start(entry, "failed", text)
        statement.failed = True
        if entry.severity == b"ERROR":
            statement.sqlstate = entry.sqlstate
        statement.last_ms, statement.next_ms = entry.time_ms, float("inf")
        self.end()


    def failure_without_text(self, entry):
        last = self.last
        if (entry.sqlstate not in OF_MESSAGES and last and last.kind == "extended" and last.vxid == entry.vxid
                and entry.severity == b"ERROR"):
            # At the Sync: a deferred check, at the commit of the last one.
            last.failed = True
            last.sqlstate = entry.sqlstate
            last.last_ms, last.next_ms = entry.time_ms, float("inf")
        elif entry.severity == b"ERROR" or entry.line == 1:		# of a message, or the connection is refused
            if self.open and synced(self.open, entry):
                self.end()
            kept = self.open
            self.start(entry, "failed", None)
            self.last.failed, self.last.sqlstate = True, entry.sqlstate
            self.open = kept


def expected(log):
    """The tool's statements that follow from the server's log, in each session's order."""
    statements = []
    sessions = {}
    found = list(entries(log))
    for entry in found:
        if entry.backend == "client backend":
            sessions.setdefault(entry.session, Session(statements.append)).take(entry)
    return [one for one in statements if one.failed or {step for step, _ in one.parts} != {"parse"}]


def same_text(text, got, limit):
    """Is what the tool says the text, or its first @limit bytes with the marks of a cut?"""
    query, size, cut = got.get("query"), got.get("query_bytes"), got.get("truncated", False)
    if query is None or text is None:
        return query is None and text is None
    query = query.encode("utf-8", "surrogatepass")
    if len(text) <= limit:
        return query == text and not cut and size in (None, len(text))
    kept = query.rstrip("\ufffd".encode())	# a character may be cut in two
    return (cut and text.startswith(kept) and limit - 4 <= len(kept) <= limit
            and size in (None, len(text)))


def tight(statement):
    """Do the log's durations of this statement tell the whole of the tool's? See the top."""
    if statement.failed:
        return False
    if statement.kind == "simple":
        return len(statement.text) < LONG_LINE
    return "tight" in statement.app and statement.completed


def bounds(statement):
    """The least and the most that the tool's duration can be, from the log, in ms."""
    least = statement.logged_ms
    if statement.failed and not statement.parts:
        return 0.0, float("inf")	# the log does not tell when it began
    return least, max(statement.next_ms - statement.first_ms + STAMP_MS, least)


def outside(statement, got, alone=False):
    """Return by how many ms the tool's duration is outside of its bounds and, unless @alone, of what the other tracer says."""
    least, most = bounds(statement)
    slack = max(TOLERANCE_MS, TOLERANCE_PART * statement.logged_ms)
    off = max(least - slack - got["duration_ms"], got["duration_ms"] - most - slack, 0.0)
    if alone or "peer_ms" not in got:
        return off
    return min(off, max(beyond(got, got["peer_ms"], alone=True), 0.0))


def off_by(statement, got, alone=False):
    """Return by how many ms a tight statement's duration is outside of the tolerance."""
    return beyond(got, statement.logged_ms, alone)


def by_pid(statements, pid):
    groups = defaultdict(list)
    for statement in statements:
        groups[pid(statement)].append(statement)
    return groups


def pair_session(logged, got, limit, complaints):
    """Pairs one session's statements in order; complains about what has no partner."""
    pairs, i, j = [], 0, 0
    while i < len(logged) or j < len(got):
        if i < len(logged) and j < len(got) and same_text(logged[i].text, got[j], limit):
            pairs.append((logged[i], got[j]))
            i, j = i + 1, j + 1
            continue
        # The nearest place where both go on together tells what is missing or invented.
        skip = next(((a, b) for total in range(1, 40) for a in range(total + 1) for b in [total - a]
                     if i + a < len(logged) and j + b < len(got)
                     and same_text(logged[i + a].text, got[j + b], limit)), (len(logged) - i, len(got) - j))
        complaints += [f"not seen: {statement}" for statement in logged[i:i + skip[0]]]
        complaints += [f"invented: {invented(one)}" for one in got[j:j + skip[1]]]
        i, j = i + skip[0], j + skip[1]
    return pairs


def invented(got):
    return (f"pid {got.get('pid')} {got.get('status')} {got.get('duration_ms')} ms truncated={got.get('truncated')} "
            f"bytes={got.get('query_bytes')} {shown(got.get('query'))}")


def paired(logged, got, limit, complaints):
    """Pair all sessions' statements."""
    pairs, theirs, ours = [], by_pid(logged, lambda s: s.pid), by_pid(got, lambda g: g.get("pid"))
    for pid in sorted(set(theirs) | set(ours), key=str):
        mine = sorted(ours.get(pid, []), key=lambda g: g.get("time", ""))
        pairs += pair_session(theirs.get(pid, []), mine, limit, complaints)
    return pairs


def compare(logged, got, limit=4096):
    """Return the complaints about @got, the tool's statements, against @logged; none if they agree."""
    complaints = []
    pairs = paired(logged, got, limit, complaints)
    for statement, one in pairs:
        status = "error" if statement.failed else "ok"
        if one.get("status") != status:
            complaints.append(f"status {one.get('status')}, not {status}: {statement}")
        if one.get("sqlstate") != statement.sqlstate:
            complaints.append(f"SQLSTATE {one.get('sqlstate')}, not {statement.sqlstate}: {statement}")
        for key, value in (("user", statement.user), ("database", statement.database)):
            if key in one and one[key] != value:
                complaints.append(f"{key} {one[key]}, not {value}: {statement}")
        if not isinstance(one.get("duration_ms"), (int, float)):
            return complaints + [f"no duration: {one}"]
    return complaints + far_off(pairs) + often_off(pairs)


def far_off(pairs):
    """Return complaints about single durations that are far outside of their bounds."""
    complaints = []
    for statement, got in pairs:
        off = max(outside(statement, got, alone=True), off_by(statement, got) if tight(statement) else 0.0)
        if off > FAR_MS:
            complaints.append(Off(f"{got['duration_ms']:.3f} ms, must be within {bounds(statement)}: {statement}"))
    return complaints


def often_off(pairs):
    """Return complaints if less than a share of a kind is within the tolerance, or of all within their bounds."""
    complaints = []
    kinds = by_pid([pair for pair in pairs if tight(pair[0])], lambda pair: pair[0].kind)
    checks = [("durations outside of their bounds", SHARE, pairs, outside),
              ("durations outside of the log's bounds", ALONE, pairs, lambda *pair: outside(*pair, alone=True))]
    for kind, members in kinds.items():
        off = f"{kind} durations off by more than max({TOLERANCE_MS} ms, 5 %)"
        checks.append((off, SHARE, members, off_by))
        checks.append((f"{off} from the log", ALONE, members, lambda *pair: off_by(*pair, alone=True)))
    for what, share, members, how_far in checks:
        off = [pair for pair in members if how_far(*pair) > 0]
        if len(off) > (1 - share) * len(members):
            examples = "".join(f"\n    {got['duration_ms']:.3f}, {got.get('peer_ms')} by bpftrace, against {statement}"
                               for statement, got in off[:5])
            complaints.append(Off(f"{len(off)} of {len(members)} {what}:{examples}"))
    return complaints


def out_of_order(logged, got, limit=4096):
    """
    Return complaints about statements that do not begin behind the line of the one before and before their own first
    line, or do not end behind their last line and before the next one. The clock of both must be the same one. This
    holds wherever the backend loses its CPU.
    """
    complaints = []
    for statement, one in paired(logged, got, limit, []):
        start = datetime.datetime.fromisoformat(one["time"][:26] + "+00:00").timestamp() * 1000
        end = start + one["duration_ms"]
        if not (statement.previous_ms <= start + CLOCKS_MS and start - CLOCKS_MS <= statement.line_ms + CUT_MS
                and statement.last_ms <= end + CLOCKS_MS and end - CLOCKS_MS <= statement.next_ms + CUT_MS):
            complaints.append(f"from {start:.3f} to {end:.3f}, not around {statement.line_ms} to {statement.last_ms} and "
                              f"between {statement.previous_ms} and {statement.next_ms}: {statement}")
    return complaints


def mostly_short(logged, got, tolerance_ms, limit=4096):
    """
    Return complaints if more than half of a kind are shorter than in the log by more than the tolerance: the CPU would have
    been lost between the log's first clock and the start probe by as many.
    """
    kinds = by_pid([pair for pair in paired(logged, got, limit, []) if tight(pair[0])], lambda pair: pair[0].kind)
    short = {kind: sum(one["duration_ms"] < statement.logged_ms - tolerance_ms for statement, one in members)
             for kind, members in kinds.items()}
    return [f"{number} of {len(kinds[kind])} {kind} durations are too short"
            for kind, number in short.items() if number > len(kinds[kind]) / 2]


def spread(logged, got):
    """Return the distribution of the differences from the log, in us, as text."""
    out = paired(logged, got, 4096, [])
    lines = []
    for kind, members in by_pid([p for p in out if tight(p[0])], lambda p: p[0].kind).items():
        diffs = sorted((g["duration_ms"] - s.logged_ms) * 1000 for s, g in members)
        at = [diffs[int(part * (len(diffs) - 1))] for part in (0, 0.5, 0.9, 0.99, 1)]
        off = [sum(off_by(*pair, alone=alone) > 0 for pair in members) for alone in (True, False)]
        lines.append(f"{kind}: ours - log in us: min {at[0]:.0f}, median {at[1]:.0f}, 90 % {at[2]:.0f}, "
                     f"99 % {at[3]:.0f}, max {at[4]:.0f}; {off[0]} of {len(diffs)} outside of the tolerance, {off[1]} also of "
                     "bpftrace's")
    return "\n".join(lines)


def figures(logged, got):
    """A line for people: how much was compared."""
    kinds = Counter(("tight " if tight(s) else "bounded ") + s.kind for s in logged)
    return f"{len(logged)} logged, {len(got)} seen; " + ", ".join(f"{n} {kind}" for kind, n in sorted(kinds.items()))
