# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
--format: logs as read by pgBadger, pt-query-digest and mariadb-dumpslow. Their counts and times are compared with what a
recording was made of; live, with the server's own log, the spans of the same run, and the groups of a second tool, top.
"""

import collections
import json
import re
import shutil
import subprocess

import pytest

from mariadb import Maria
from mariadb_client import ServerError
from recording_maker import Made
from replayed import Replayed
from requirements import need_maria
from tool import Announced

PREFIX = "%m [%p]: user=%u,db=%d,app=%a,client=%r "
FORGED = "2026-11-22 20:00:00.000 UTC [1]: user=victim,db=victim,client=[local] "


class Log(Announced):
    """What it prints is the log; spans of the same statements go to a file."""

    def __init__(self, *args, spans, **keywords):
        self.path = spans
        super().__init__(*args, "-m", "0", "--otlp", spans, *(() if "--redact" in args else ("--otlp-text", "raw")),
                         **keywords)

    @property
    def spans(self):
        """(nanoseconds, text, attributes) of each statement."""
        found = []
        for line in self.path.read_text().splitlines():
            (span,) = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
            has = {one["key"]: next(iter(one["value"].values())) for one in span["attributes"]}
            found.append((int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"]), has.get("db.query.text"), has))
        return found


@pytest.fixture
def log(tool, tmp_path):
    return lambda *args: tool(*args, kind=Log, spans=tmp_path / "spans")


@pytest.fixture(scope="module")
def maria():
    need_maria()
    with Maria().init() as server:
        server.start()
        server.query("create database shop")
        server.query("create table goods (id int primary key, price int)", database="shop")
        yield server


def consumer(*command, stdin=None):
    if not shutil.which(command[0]):
        pytest.skip(f"no {command[0]}")
    done = subprocess.run(command, input=stdin, stdin=None if stdin else subprocess.DEVNULL, capture_output=True, timeout=120,
                          check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def pgbadger(text, tmp_path):
    path = tmp_path / "pg.log"
    path.write_bytes(text)
    return json.loads(consumer("pgbadger", "-q", "--pid-dir", str(tmp_path), "-f", "stderr", "-p", PREFIX, "-x", "json", "-o", "-", str(path)))


def digest(text, tmp_path):
    path = tmp_path / "slow.log"
    path.write_bytes(text)
    return json.loads(consumer("pt-query-digest", "--no-version-check", "--output", "json", "--limit", "100%", "--filter", "1",
                               str(path)))


def dumpslow(text, tmp_path):
    """(count, users and hosts, text) of each group."""
    path = tmp_path / "dumped.log"
    path.write_bytes(text)
    said = consumer("mariadb-dumpslow", str(path))
    return [(int(count), by, query.strip()) for count, by, query in
            re.findall(r"^Count: (\d+)  Time=[^\n]*, (\S+)\n(.*?)\n\n", said, re.M | re.S)]


def printed(traced):
    return b"".join(traced.out.lines)


def calls(traced, of=r" as (\w+)"):
    """Calls by the word that the workload gives to each statement, of the groups of top."""
    found = collections.Counter()
    for one in traced.objects():
        if one["type"] == "group":
            found[re.search(of, one["fingerprint"])[1]] += one["calls"]
    return found


def near(seconds):
    """Floating-point sums of decimals."""
    return pytest.approx(seconds, rel=1e-9, abs=1e-7)


def ns_sum(statements, word=""):
    return sum(ns for ns, text in statements if word in text)


def test_pgbadger(tmp_path):
    made = Made()
    session, statements = made.session(made.server()), []

    def run(text, ms, **values):
        made.statement(session, text, ms=ms, **values)
        statements.append((round(ms * 1e6), text))
    for n in range(7):
        run(f"select {n} as alpha", 0.0305 + n / 7, rows=1)
    for n in range(3):
        run(f"select\n\tpg_sleep(0.0{n}) as beta -- a comment\n\n where true", 10 * n + 1 / 3, rows=1)
    for n in range(5):
        run(f"select 1 / {n % 2} as gamma", 1.000001, **({"rows": 1} if n % 2 else {"error": "22012"}))
    run("select $1::int as delta", 12345.678901, rows=1)
    grouped = Replayed(made, "top", "--json")
    report = pgbadger(printed(Replayed(made, "-m", "0", "--format", "pgbadger")), tmp_path)
    (stat,) = [value for key, value in report["overall_stat"].items() if key == "postgres"]
    assert report["overall_stat"]["queries_number"] == stat["queries_number"] == 16
    assert report["overall_stat"]["errors_number"] == 3
    assert stat["queries_duration"]["execute"] == near(ns_sum(statements) / 1e6)
    assert list(report["error_info"]["postgres"]) == ["ERROR:  statement failed with SQLSTATE 22012"]
    normalized = {re.search(r" as (\w+)", text)[1]: one for text, one in report["normalyzed_info"]["postgres"].items()}
    assert {word: one["count"] for word, one in normalized.items()} == calls(grouped) == {"alpha": 7, "beta": 3, "gamma": 5, "delta": 1}
    for word, one in normalized.items():
        assert one["duration"] == near(ns_sum(statements, f" as {word}") / 1e6)
    slowest = sorted((f"{ns / 1e6:.6f}" for ns, _ in statements), key=float, reverse=True)
    assert [one[0] for one in report["top_slowest"]["postgres"]] == slowest
    assert report["user_info"]["postgres"]["postgres"]["count"] == 16 and not report["lock_info"]


def test_pgbadger_waits(tmp_path):
    """Lock waits and temporary files, if they were measured."""
    made = Made()
    session = made.session(made.server())
    made.statement(session, "select 1 from contended", ms=41, rows=0, why={"lock": 40.654321}, use={"shared_blks_hit": 3})
    made.statement(session, "select count(*) from big", ms=70, rows=1, why={"disk": 7}, use={"temp_blks_written": 137})
    report = pgbadger(printed(Replayed(made, "-m", "0", "--format", "pgbadger", "--why", "--use")), tmp_path)
    assert report["lock_info"]["postgres"]["lock"]["count"] == 1
    assert report["lock_info"]["postgres"]["lock"]["duration"] == near(40.654321)
    assert "select 1 from contended" in report["top_locked_info"]["postgres"][0][2]
    assert report["tempfile_info"]["postgres"]["size"] == 137 * 8192 and report["tempfile_info"]["postgres"]["count"] == 1


LEVELS = ["LOG", "WARNING", "ERROR", "FATAL", "PANIC", "DETAIL", "HINT", "STATEMENT", "CONTEXT", "LOCATION"]


def test_pgbadger_shows_each_text(tmp_path):
    """A level in a text is no other entry, and parameters stay."""
    made = Made()
    session = made.session(made.server())
    texts = [f"select '{level}:{blank}x' as {level.lower()}{ord(blank[-1])}{len(blank)}" for level in LEVELS for blank in (" ", "  ", "\t", "\r", "\v")]
    texts += ["select * from accounts where aid = $1 and (bid = $2 or bid = $11)", "select $1", "select '$' as no_parameter",
              "select 'costs $5' as none, $$ $6 $$ as quoted, a$7 as name, e'\\' $8' /* $9 */ -- $10"]
    for n, text in enumerate(texts):
        made.statement(session, text, ms=n + 1)
    made.statement(session, "select 1 as truncated /* ERROR:", ms=1000, length=5000)
    report = pgbadger(printed(Replayed(made, "-m", "0", "--format", "pgbadger")), tmp_path)
    groups = report["normalyzed_info"]["postgres"]
    assert sum(one["count"] for one in groups.values()) == len(texts) + 1
    shown = re.sub(r"\s+", "", " ".join(groups))
    for text in texts[:5 * len(LEVELS)]:
        assert re.sub(r"'.*'", "?", text).replace(" ", "") in shown, (text, list(groups))
    assert {"select * from accounts where aid = ? and (bid = ? or bid = ?);", "select ?;", "select ? as no_parameter;"} <= set(groups)
    assert any("truncated" in one for one in groups) and not any("??" in one for one in groups), list(groups)


HOSTILE_PG = [
    f"select 1\n{FORGED}LOG:  duration: 99999.000 ms  statement: drop table forged",
    f"select 1\r\n{FORGED}ERROR:  forged\r\n{FORGED}STATEMENT:  forged",
    "select 'process 1 acquired ShareLock on transaction 12 of forged after 99999.000 ms'",
    "select 'temporary file: path \"forged\", size 99999999'",
    "select 'connection authorized: user=victim database=forged'",
    "select 'disconnection: session time: 9:00:00.000 user=victim database=forged host=[local]'",
    "select 'automatic vacuum of table \"forged\": index scans: 1'",
    "select 'checkpoint complete: wrote 99 buffers (1%); 0 WAL file(s) added, 0 removed, 0 recycled; write=9 s, sync=9 s, total=9 s'",
    "select 'duration: 99999.000 ms  statement: forged'",
    "select 'duration: 99999.000 ms  parse <unnamed>: forged'",
    "select 'database system was forged'",
    "select 'statement: DEALLOCATE forged'",
    "/* LOG:  */ select 1",
    "select 1 ERROR:  forged", "STATEMENT:  select $99999999999, $2", "select 1\nDETAIL: parameters: $1 = 'forged'",
    "\n\n\tselect 1\x1b[2J\x0b\x0c\x01",
]


def test_pgbadger_forgery(tmp_path):
    made, evil = Made(), 'e] LOG:  duration: 99999 ms  statement: x\n[{(é'
    session = made.session(made.server(), user=evil, application=evil)
    for n, text in enumerate(HOSTILE_PG):
        made.statement(session, text, ms=n + 0.5, **({"error": "42601"} if n < 2 else {"rows": 1}))
    traced = Replayed(made, "-m", "0", "--format", "pgbadger")
    report = pgbadger(printed(traced), tmp_path)
    stat = report["overall_stat"]["postgres"]
    assert stat["queries_number"] == len(HOSTILE_PG)
    assert stat["queries_duration"]["execute"] == near(sum(n + 0.5 for n in range(len(HOSTILE_PG))))
    assert stat["queries_duration"]["prepare"] == 0
    assert report["overall_stat"]["errors_number"] == 2
    (user,), (application,) = report["user_info"]["postgres"], report["application_info"]["postgres"]
    for name in (user, application):
        assert re.fullmatch(r"e\[5d\]\[20\]LOG.*\[28\]\[c3\]\[a9\]", name), name
    for key in ("lock_info", "tempfile_info", "connection_info", "session_info", "autovacuum_info", "checkpoint_info"):
        assert not any(report[key].values()), (key, report[key])
    assert not re.search(rb"[^\x20-\x7e\t\n\x80-\xff]", printed(traced)) and printed(traced).decode()


SERVER_ENTRY = re.compile(rb"^# Query_time: [\d.]+  Lock_time: ([\d.]+)  Rows_sent: (\d+)  Rows_examined: (\d+)\n"
                          rb"# Rows_affected: (\d+)(?:  Bytes_sent|  Schema|  Last_errno)?[^\n]*\n"
                          rb"(?:# Tmp_tables:[^\n]*\n)?"
                          rb"((?:# Full_scan: [^\n]*\n# Filesort: [^\n]*\n)?)", re.M)


def test_slowlog(maria, log, tool, tmp_path):
    grouped = tool("top", "-p", maria.pid, "--json")
    fields = tool("-p", maria.pid, "-m", "0", "--json")
    traced = log("-p", maria.pid, "--format", "slowlog")
    before = maria.log_size()
    with maria.connect(database="shop") as client:
        for n in range(6):
            client.query(f"insert into goods values ({n}, {n})")
        for n in range(4):
            client.query(f"select\n id, -- a comment\n price from goods where price > {n}")
        client.query("update goods set price = price + 1 where id > 2")
        for _ in range(2):
            with pytest.raises(ServerError):
                client.query("select nosuch from goods")
        client.prepare("delete from goods where id < ?").execute(3)
        for _ in range(2):
            client.query("select price, count(*) from goods group by price + 1 order by 2")
        client.query("use shop")
        client.query("truncate goods")
    assert grouped.stop() == 0 and fields.stop() == 0 and traced.stop() == 0, traced.said()
    maria.settle()
    text, spans = printed(traced), traced.spans
    ours = SERVER_ENTRY.findall(text)
    server = SERVER_ENTRY.findall(maria.read_log(before).replace(b"  Merge_passes: 0", b""))[:len(ours)]
    assert ours == server and len(ours) == len(spans) == 18
    assert {int(examined) for _, _, examined, _, _ in ours} > {0, 6} and any(float(one[0]) for one in ours)
    assert sum(bool(plan) for *_, plan in ours) == 6 and sum(b"Filesort: Yes" in plan for *_, plan in ours) == 2
    assert [(one["rows_examined"], one["lock_ms"]) for one in fields.statements] == \
        [(int(examined), near(float(lock) * 1000)) for lock, _, examined, _, _ in server]
    report = digest(text, tmp_path)
    assert report["global"]["query_count"] == len(spans)
    assert float(report["global"]["metrics"]["Query_time"]["sum"]) == near(sum(ns // 1000 for ns, _, _ in spans) / 1e6)
    words = r"^(\w+)"
    profile, times = collections.Counter(), collections.Counter()
    for one in report["classes"]:
        word = re.match(words, one["example"]["query"].strip())[1]
        profile[word] += one["query_count"]
        times[word] += float(one["metrics"]["Query_time"]["sum"])
    assert profile == calls(grouped, words)
    for word, seconds in times.items():
        assert seconds == near(sum(ns // 1000 for ns, query, _ in spans if query.startswith(word)) / 1e6)
    assert {one["metrics"]["user"]["value"] for one in report["classes"]} == {"root"}
    dumped = dumpslow(text, tmp_path)
    assert sum(count for count, _, _ in dumped) == len(spans) and {by for _, by, _ in dumped} == {"root[root]@localhost"}
    assert max(count for count, _, _ in dumped) == 6
    assert text.count(b"Last_errno: 1054") == 2
    (sorted_one,) = (one for one in report["classes"] if "count(*)" in one["example"]["query"])
    assert {key: sorted_one["metrics"][key]["yes"] for key in ("Filesort", "Tmp_table", "Full_scan")} == \
        {"Filesort": "2", "Tmp_table": "2", "Full_scan": "2"}, sorted_one


HOSTILE_MARIA = [
    b"select 1;\n# Time: 200101  0:00:00\n# User@Host: victim[victim] @ forged []\n# Query_time: 99999.000000  Lock_time: 0.0"
    b"  Rows_sent: 0  Rows_examined: 0\n# Rows_affected: 0\nSET timestamp=1;\nselect forged",
    b"select 'a;\n# User@Host: victim[victim] @ forged []\n# Query_time: 99999.000000'",
    b"# Query_time: 99999.000000  user: victim\nselect 1",
    b"#\n# Time: 200101  0:00:00\n# administrator command: Quit;\nselect 2",
    b"use shop",
    b"SET timestamp=1",
    b"/*, Version: x started with:\nTime Id Command Argument\n*/ select 3",
    b"Tcp port: 1\n",
    b"Time Id Command Argument\n",
    b"select 'a\0b\xff;\r\n#',\n'x;\n\n#'",
    b"select 4 -- ;\n",
]


def test_slowlog_forgery(tmp_path):
    made = Made()
    session = made.session(made.server("mariadb"), user="e[root] @ x []\n# Query_time: 9", client="localhost", connection=7,
                           database="db;\n# User@Host: victim[victim] @ forged []")
    for n, text in enumerate(HOSTILE_MARIA):
        made.statement(session, text, ms=n + 0.5, rows=1, **({"errno": 1064, "error": "42000"} if n < 3 else {}))
    text = printed(Replayed(made, "-m", "0", "--format", "slowlog"))
    report = digest(text, tmp_path)
    assert report["global"]["query_count"] == len(HOSTILE_MARIA) == text.count(b"\n# User@Host: ")
    assert float(report["global"]["metrics"]["Query_time"]["sum"]) == near(sum(n + 0.5 for n in range(len(HOSTILE_MARIA))) / 1e3)
    users = {one["metrics"]["user"]["value"] for one in report["classes"]}
    assert users == {"e\\x5broot\\x5d\\x20\\x40\\x20x\\x20\\x5b\\x5d\\x0a\\x23\\x20Query_time\\x3a\\x209"}
    dumped = dumpslow(text, tmp_path)
    assert sum(count for count, _, _ in dumped) == len(HOSTILE_MARIA) and not any("victim" in by for _, by, _ in dumped)
    assert b"\0" not in text and text.decode()


def test_redact():
    made = Made()
    made.statement(made.session(made.server("mariadb")), "select 'secret;\n# secret' -- secret")
    text = printed(Replayed(made, "-m", "0", "--format", "slowlog", "--redact"))
    assert b"\tselect ?" in text and b"secret" not in text
