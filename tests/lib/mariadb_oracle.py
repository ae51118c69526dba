# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Test oracle for MariaDB: its slow log with long_query_time = 0, compared with the output of the tool.

The log has an entry for each statement: a text packet's parts apart, a prepared
statement at each execution, a CALL once (log_slow_disabled_statements holds sp), not
the statements in the bodies of procedures, functions and triggers. Not in the log,
and so not in the workload: the opening of a cursor. Two entries for one statement:
EXECUTE IMMEDIATE, and an execution that had to prepare again; they are not in the
workload either (test_mariadb.py has them apart).

Durations: Query_time runs from the command's receipt in dispatch_command (for the
later parts of a packet: from the part's start) to the end of its execution, in whole
us, and lacks what ends the answer (the OK or EOF packet, its sending, the statistics).
The tool's runs from dispatch_command's entry (the later parts: from the end of the
part before) to the call of log_slow_statement, so that it includes that sending.
Neither includes the log's writing, except that the parts after the first begin when
the tool saw the end of the part before: its writing to the log is in the next one's
time. |D - log| <= max(100 us, 5 %) for 99 %, or as much from what bpftrace has measured at
the same places: a client that is woken by its answer takes the CPU from the thread that has
just sent it, see oracle.py. D is never less than the log's, and never off by more than
FAR_MS from both.

The log does not tell what failed. The workload does, in the texts: /* fails 1062 */.
"""

import base64
import dataclasses
import difflib
import re
from collections import Counter

from complaints import Off
from oracle import ALONE, FAR_MS, SHARE, beyond, by_pid, shown

ROUNDING_MS = 0.002	# both count in us
DEADLOCK = 1213		# sysbench's clients can have one
LIMIT = 4096		# the tool's --text unless told otherwise

RECORD = re.compile(
    rb"# User@Host: (?P<priv>[^\n]*?)\[(?P<user>[^\n]*?)\] @ (?P<host>[^\n]*?) \[(?P<ip>[^\n]*)\]\n"
    rb"# Thread_id: (?P<id>\d+)  Schema: (?P<schema>[^\n]*?)  QC_hit: (?:Yes|No)\n"
    rb"# Query_time: (?P<time>\d+\.\d{6})  Lock_time: [\d.]+  Rows_sent: (?P<sent>\d+)  Rows_examined: \d+\n"
    rb"# Rows_affected: (?P<affected>\d+)  Bytes_sent: \d+\n"
    rb"(?P<more>(?:# [^\n]*\n)*)"
    rb"(?:use [^\n]*;\n)?"
    rb"SET (?:[a-z_]+=\d+,)*timestamp=(?P<stamp>\d+);\n"
    rb"(?P<text>.*);\n", re.S)
START = re.compile(rb"^# User@Host: ", re.M)
TIME = re.compile(rb"# Time: [^\n]*\n\Z")
BANNER = re.compile(rb"^[^\n]*, Version: [^\n]*\nTcp port: [^\n]*\nTime\t[^\n]*\n", re.M)


# The slow log's lines with log_slow_verbosity=query_plan, and the words of query_plan.
PLAN = {b"Full_scan": "full_scan", b"Full_join": "full_join", b"Tmp_table": "tmp_table",
        b"Tmp_table_on_disk": "tmp_table_on_disk", b"Filesort": "filesort", b"Filesort_on_disk": "filesort_on_disk",
        b"Priority_queue": "filesort_priority_queue"}
INDEX = {"no_index", "no_good_index"}	# which the slow log does not have


def plan_of(lines):
    """The words of query_plan that the log has."""
    return frozenset(PLAN[key] for key, value in re.findall(rb"(\w+): (\w+)", lines) if key in PLAN and value == b"Yes")


@dataclasses.dataclass
class Record:
    """One entry of the slow log."""
    connection: int
    user: str
    host: str
    ip: str
    database: str
    ms: float
    sent: int
    affected: int
    text: bytes
    plan: frozenset = frozenset()

    @property
    def errno(self):
        """Return the expected error number: 0 for success, None if unknown."""
        if not self.text:
            return 1065		# nothing but blanks and ;
        mark = re.search(rb"/\* fails (\d+|perhaps) \*/", self.text)
        if not mark:
            return 0
        return None if mark[1] == b"perhaps" else int(mark[1])

    def __str__(self):
        return f"connection {self.connection} {self.ms:.3f} ms {shown(self.text)}"


def records(log):
    """The log's entries in order. What it does not know is an error."""
    found = []
    log = BANNER.sub(b"", log)
    starts = [match.start() for match in START.finditer(log)]
    before = log[:starts[0]] if starts else log
    if TIME.sub(b"", before):
        raise ValueError(f"not an entry of the log: {before[:200]!r}")
    for start, end in zip(starts, starts[1:] + [len(log)]):
        match = RECORD.fullmatch(TIME.sub(b"", log[start:end]))
        if not match:
            raise ValueError(f"not an entry of the log: {log[start:end][:400]!r}")
        found.append(Record(
            int(match["id"]), match["user"].decode(), match["host"].decode(), match["ip"].decode(),
            match["schema"].decode(), float(match["time"]) * 1000, int(match["sent"]),
            int(match["affected"]), match["text"], plan_of(match["more"])))
    return found


def raw_text(one):
    """The bytes of a statement that the tool shows."""
    if "query_base64" in one:
        return base64.b64decode(one["query_base64"], validate=True)
    return one.get("query", "").encode("utf-8", "surrogatepass")


def key(text, size, limit):
    """Return the key by which statements are matched. A character may be cut in two."""
    return text[:limit - 4] if size > limit else text, size


def text_faults(record, one, limit):
    """Complaints about the marks of a cut."""
    cut, raw = len(record.text) > limit, raw_text(one)
    if one.get("truncated") is not cut:
        yield f"truncated {one.get('truncated')}, not {cut}: {record}"
    if cut and not (limit - 4 <= len(raw) <= limit and record.text.startswith(raw)):
        yield f"cut to {len(raw)} bytes: {record}"
    if "query" not in one:
        yield f"no query: {record}"


def pair(logged, got, limit, complaints):
    """Pairs one connection's statements in order; complains about what has no partner."""
    pairs = []
    theirs = [key(record.text, len(record.text), limit) for record in logged]
    ours = [key(raw_text(one), one.get("query_bytes"), limit) if one.get("query_bytes") is not None
            else None for one in got]
    if theirs == ours:
        return list(zip(logged, got))
    matcher = difflib.SequenceMatcher(None, theirs, ours, autojunk=False)
    for what, i, i_end, j, j_end in matcher.get_opcodes():
        if what == "equal":
            pairs += zip(logged[i:i_end], got[j:j_end])
            continue
        complaints += [f"not seen: {record}" for record in logged[i:i_end]]
        complaints += [f"invented: {invented(one)}" for one in got[j:j_end]]
    return pairs


def invented(one):
    return (f"connection {one.get('connection_id')} {one.get('status')} {one.get('duration_ms')} ms "
            f"bytes={one.get('query_bytes')} {shown(raw_text(one))}")


def pairs_of(logged, got, limit, complaints):
    pairs = []
    theirs = by_pid(logged, lambda record: record.connection)
    ours = by_pid(got, lambda one: one.get("connection_id"))
    for connection in sorted(set(theirs) | set(ours), key=str):
        pairs += pair(theirs.get(connection, []), in_order(ours.get(connection, [])), limit, complaints)
    return pairs


def in_order(got):
    return sorted(got, key=lambda one: one.get("time", ""))


def compare(logged, got, limit=LIMIT):
    """Return the complaints about @got, the tool's statements, against @logged; none if they agree."""
    complaints = []
    pairs = pairs_of(logged, got, limit, complaints)
    for record, one in pairs:
        complaints += text_faults(record, one, limit)
        complaints += field_faults(record, one)
        complaints += status_faults(record, one)
    return complaints + duration_faults(pairs)


def field_faults(record, one):
    if one["server"]["engine"] != "mariadb":
        yield f"engine {one['server']['engine']}: {record}"
    wanted = (("user", record.user), ("database", record.database or None))
    for name, value in wanted:
        if one.get(name) != value:
            yield f"{name} {one.get(name)}, not {value}: {record}"
    if one.get("client") not in (record.host, record.ip):
        yield f"client {one.get('client')}, not {record.host or record.ip}: {record}"
    if "rows" in one and one["rows"] != (record.sent or record.affected):
        yield f"rows {one['rows']}, not {record.sent} sent or {record.affected} affected: {record}"
    if "rows" not in one and one.get("status") == "ok" and (record.sent or record.affected):
        yield f"no rows, not {record.sent} sent or {record.affected} affected: {record}"
    if set(one.get("query_plan", ["none"])) - INDEX != record.plan:
        yield f"query_plan {one.get('query_plan')}, not {sorted(record.plan)}: {record}"
    if not isinstance(one.get("pid"), int) or not isinstance(one.get("tid"), int):
        yield f"pid {one.get('pid')}, tid {one.get('tid')}: {record}"


def status_faults(record, one):
    errno = record.errno
    if errno is None or (b"sbtest" in record.text and one.get("errno") == DEADLOCK):
        return
    status = "error" if errno else "ok"
    if one.get("status") != status:
        yield f"status {one.get('status')}, not {status}: {record}"
    if one.get("errno", 0) != errno:
        yield f"errno {one.get('errno')}, not {errno}: {record}"


def off_by(record, one, alone=False):
    """Return by how many ms a duration is outside of the tolerance."""
    return beyond(one, record.ms, alone)


def duration_faults(pairs):
    """Return complaints unless enough are within the tolerance and none is far off or too short."""
    for record, one in pairs:
        if not isinstance(one.get("duration_ms"), (int, float)):
            return [f"no duration: {record}"]
    complaints = [Off(f"{one['duration_ms']:.3f} ms is far off: {record}; {one.get('peer_ms')} by bpftrace")
                  for record, one in pairs if off_by(record, one) > FAR_MS]
    complaints += [f"{one['duration_ms']:.3f} ms is too short: {record}" for record, one in pairs
                   if one["duration_ms"] < record.ms - ROUNDING_MS]
    return complaints + often_off(pairs, SHARE, False) + often_off(pairs, ALONE, True)


def often_off(pairs, share, alone):
    off = [(record, one) for record, one in pairs if off_by(record, one, alone) > 0]
    if len(off) <= (1 - share) * len(pairs):
        return []
    examples = "".join(f"\n    {one['duration_ms']:.3f}, {one.get('peer_ms')} by bpftrace, against {record}" for record, one in off[:10])
    return [Off(f"{len(off)} of {len(pairs)} durations off by more than max(100 us, 5 %){' from the log' * alone}:{examples}")]


def figures(logged, got, limit=LIMIT):
    """For people: how much was compared, and how the durations differ."""
    complaints = []
    pairs = pairs_of(logged, got, limit, complaints)
    failed = Counter(record.errno for record in logged)
    text = f"{len(logged)} logged, {len(got)} seen, {len(failed) - 1} kinds of failures"
    if not pairs:
        return text
    diffs = sorted((one.get("duration_ms", 0) - record.ms) * 1000 for record, one in pairs)
    at = [diffs[int(part * (len(diffs) - 1))] for part in (0, 0.01, 0.5, 0.9, 0.99, 1)]
    off = [sum(off_by(record, one, alone) > 0 for record, one in pairs) for alone in (True, False)]
    return text + (f"; ours - log in us: min {at[0]:.0f}, 1 % {at[1]:.0f}, median {at[2]:.0f}, 90 % {at[3]:.0f}, "
                   f"99 % {at[4]:.0f}, max {at[5]:.0f}; {off[0]} outside of the tolerance, {off[1]} also of bpftrace's")
