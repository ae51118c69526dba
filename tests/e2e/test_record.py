# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
record: a recording has what live commands print at the same time, and the reader of docs/recording.md agrees with replay.
The forms of replay are tested in test_replay.py.
"""

import contextlib
import datetime
import fcntl
import itertools
import json
import os
import random
import re
import select
import signal
import stat
import struct
import subprocess
import threading
import time

import pytest

import intruder
import recording
from backends import Backends
from backends import build as build_backends
from cluster import Cluster, scheduled, sleeps, wait_for
from intruder import Intruder
from mariadb import Maria
from mariadb_client import ServerError
from recording_maker import LAYOUT
from requirements import need_maria, need_root, need_server
from tool import Locks, Tool, parsed, refused, run

KILLS = int(os.environ.get("KILLS", "5"))
ALL = ("--why", "--use", "--phases")
CLOCKED = {"time", "duration_ms", "end_ns"}	# of a statement, measured by each tool on its own
KEYS_ONLY = {"why_ms", "use", "phases_ms"}	# of these, which there are
SHOWN = ("statement", "running", "prepare")


class Record(Tool):
    """A recorder. It reports on standard error that it is attached."""

    def __init__(self, path, *args, **keywords):
        self.path = str(path)
        super().__init__("record", path, *args, **keywords)

    def ready(self):
        return any(line.startswith(b"dbslower: tracing") for line in self.err.lines)

    def ended(self):
        assert self.stop() == 0 and re.search("nothing lost|lost: 1 truncated texts$", self.stderr, re.M), self.said()
        return self


class Slow(Tool):
    def ready(self):
        return any(line.startswith(b"dbslower: tracing") for line in self.err.lines)


@pytest.fixture(scope="module")
def server():
    need_root()
    need_server()
    with Cluster(name="recorded", log_min_duration_statement="-1", autovacuum="off").init() as cluster:
        cluster.start()
        cluster.psql("create role app login", "create database shop owner app",
                     "create table account as select n as id, 0 as balance from generate_series(1, 1000) n",
                     "grant all on account to app")
        subprocess.run(["pgbench", "-i", "-q", "-s", "1"], env=cluster.env(), check=True, capture_output=True, timeout=100)
        cluster.settle()
        yield cluster


def workload(server):
    with server.connect() as holder, server.connect() as waiter, server.connect(user="app", dbname="shop") as other:
        for n in range(30):
            other.execute(f"select {n} as small, 'it''s %%' where {n} < 1000")
        other.pgconn.exec_(b"select 'caf\xc3\xa9 \x1b[31m\t' -- dbslower\n")
        other.pgconn.exec_(b"select '\xff'")
        other.pgconn.exec_(b"select 'tagged' /*controller='polls',a='%2F'*/")
        other.pgconn.exec_(b"select '" + b"x" * 20000 + b"'")
        for n in range(12):
            waiter.execute("select %s::int + 1 as prepared", (n,))
        for text in ("select 1/0", "selec", "select * from missing"):
            with contextlib.suppress(Exception):
                other.execute(text)
        other.execute("select pg_sleep(0.03) as slept")
        holder.execute("begin")
        holder.execute("update account set balance = 1 where id = 1")
        thread = threading.Thread(target=waiter.execute, args=("update account set balance = 2 where id = 1",))
        thread.start()
        server.wait_blocked(waiter.info.backend_pid)
        time.sleep(0.3)		# each of the tools reads who waits for whom
        holder.execute("commit")
        thread.join()
        waiter.execute("delete from account where id > 990")
        for one in (holder, waiter, other):
            one.execute("select 'last'")


def maria_workload(server):
    server.query("delete from d.t")
    with server.connect(database="d") as one, server.connect(database="d") as other:
        for n in range(30):
            one.query(f"select {n}, 'x{n}'")
        one.query("insert into t values (1, 1), (2, 2)")
        one.query("select 'tagged' /*controller='polls',a='%2F'*/")
        for text in ("select * from missing", "selec"):
            with contextlib.suppress(ServerError):
                one.query(text)
        one.query("select sleep(0.03)")
        one.query("begin")
        one.query("update t set v = 5 where id = 1")
        thread = threading.Thread(target=other.query, args=("update t set v = 6 where id = 1",))
        thread.start()
        time.sleep(0.6)
        one.query("commit")
        thread.join()
        for client in (one, other):
            client.query("select 'last'")
            client.ping()


class Form(Tool):
    def ready(self):
        return b"tracing" in b"".join(self.err.lines)


LIVE = [("-m", "0"), ("-m", "0", "--prepares"), ("-m", "0", "-t", "-o", "time,pid,tid,ms,user,db,client,app,rows,query"),
        ("-m", "0", "--redact", "--json"), ("-m", "0", "--match", "select", "--db", "shop"),
        ("-m", "0", "--format", "pgbadger"), ("-m", "0", "--format", "slowlog"),
        ("-m", "0", "--otlp", "-"), ("-m", "0", "--otlp", "-", "--otlp-text", "raw"),
        ("stat", "--by", "command", "--json"), ("stat", "--by", "status", "20", "--json"), ("stat", "--by", "user", "--match", "small", "--json"),
        ("stat", "--openmetrics", "-"), ("top", "--batch"), ("top", "--json"), ("top", "--openmetrics", "-"),
        ("transactions", "-m", "0", "-o", "begin,end,pid,ms,idle,statements,state,user,db"), ("transactions", "-m", "20", "--json"),
        ("locks", "-m", "20"), ("locks", "20", "--json"), ("locks", "--stat", "-m", "20", "--json")]


class Run:
    """A recording, and what live tools printed meanwhile."""

    def __init__(self, path, server, work):
        self.path = str(path)
        with contextlib.ExitStack() as stack:
            place = ("-m", "0", "-p", server.pid)
            record = stack.enter_context(Record(path, *place, *ALL))
            live = stack.enter_context(Slow("--json", "--prepares", *place, *ALL))
            locks = stack.enter_context(Locks("locks", "--json", *place))
            work(server)
            for one in (live, locks):
                assert one.stop() == 0, one.said()
            self.record = record.ended()
            self.live = [one for one in live.objects() if one["type"] in SHOWN]
            self.waits = locks.waits
        self.forms_path = self.path + ".forms"
        with contextlib.ExitStack() as stack:	# apart, as so many tools are a load
            record = stack.enter_context(Record(self.forms_path, "-m", "0", "-p", server.pid))
            transactions = stack.enter_context(Slow("transactions", "--json", *place))
            self.forms = {form: stack.enter_context(Form(*form, "-p", server.pid)) for form in LIVE}
            work(server)
            for one in (transactions, *self.forms.values()):
                assert one.stop() == 0, one.said()
            record.ended()
        self.transactions = [one for one in transactions.objects() if one["type"] in ("transaction", "open")]
        self.objects = replay(path, "-m", "0", "--prepares", "--json", *ALL)


def replay(path, *args, status=0):
    """The objects that replay prints."""
    done = run("replay", path, *args)
    assert done.returncode == status, done.stderr
    return parsed(done.stdout.encode().splitlines())


@pytest.fixture(scope="module")
def recorded(server, folder):
    return Run(os.path.join(folder, "postgres.rec"), server, workload)


@pytest.fixture(scope="module")
def maria_recorded(folder):
    need_root()
    need_maria()
    with Maria(slow_query_log="OFF").init() as maria:
        maria.start()
        maria.query("create database d")
        maria.query("create table d.t (id int primary key, v int) engine = innodb")
        yield Run(os.path.join(folder, "maria.rec"), maria, maria_workload)


@pytest.fixture(params=["recorded", "maria_recorded"])
def both(request):
    return request.getfixturevalue(request.param)


def when(one):
    """The time of an object as ns since 1970."""
    whole, _, part = one["time"].rstrip("Z").partition(".")
    return int(datetime.datetime.fromisoformat(whole + "+00:00").timestamp()) * 10 ** 9 + int(part)


def end_of(one):
    return when(one) + round(one["duration_ms"] * 10 ** 6)


def by_session(objects, without=()):
    """{process and thread: its objects without what the clock decides}"""
    found = {}
    for one in objects:
        same = {key: sorted(value) if key in KEYS_ONLY else value for key, value in one.items() if key not in without}
        same.pop("waits", None)
        found.setdefault((one["pid"], one["tid"]), []).append(same)
    return found


def without_main(one):
    return {**one, "server": {key: value for key, value in one["server"].items() if key != "pid"}}


def is_same(one, other):
    """A tool does not know the main process of a server if the backend has ended before it could ask for its parent."""
    if one and other and ("pid" in one["server"]) != ("pid" in other["server"]):
        return without_main(one) == without_main(other)
    return one == other


def assert_same(ours, theirs):
    """Check that two results of by_session() are equal."""
    assert ours.keys() == theirs.keys()
    assert all(any("pid" in one["server"] for objects in found.values() for one in objects) for found in (ours, theirs))
    for session, objects in ours.items():
        differ = [pair for pair in itertools.zip_longest(objects, theirs[session]) if not is_same(*pair)]
        assert not differ, str(differ)


# --- a recording and live tools

def test_same_statements(both):
    live, replayed = (by_session(objects, CLOCKED) for objects in (both.live, [one for one in both.objects if one["type"] in SHOWN]))
    assert_same(live, replayed)
    assert sum(map(len, live.values())) > 30
    assert [one["tags"] for one in both.live if "tags" in one] == [{"controller": "polls", "a": "/"}]


def test_same_lock_waits(both):
    timed = CLOCKED | {"holders"}
    replayed = [one for one in replay(both.path, "locks", "-m", "0", "--json") if one["type"] == "lock_wait"]
    heavy = [one for one in replayed if one.get("lock") != "lwlock" and one["outcome"] != "waiting"]
    assert heavy
    for servers in zip([one["server"] for one in heavy], [one["server"] for one in both.waits]):
        if not all("pid" in server for server in servers):	# a tool has looked it up after the backend had ended
            for server in servers:
                server.pop("pid", None)
    assert_same(by_session(heavy, timed), by_session(both.waits, timed))
    for ours, theirs in zip(heavy, both.waits):
        ids = [[(one.get("pid"), one.get("connection_id"), one["queued"], one.get("query")) for one in wait.get("holders", [])]
               for wait in (ours, theirs)]
        assert ids[0] == ids[1] and ids[0]


def agrees(mine, theirs):
    """Every member of the reader's is replay's."""
    assert len(mine) == len(theirs)
    for ours, one in zip(mine, theirs):
        wrong = {key: (value, one.get(key)) for key, value in ours.items()
                 if key not in ("end_ns", "own", "query", "query_base64") and one.get(key) != value}
        assert not wrong, one
        assert ours.get("query", one.get("query")) == one.get("query") or "query_base64" in one, one
        assert ours.get("query_base64") == one.get("query_base64"), one


def shape(text):
    """What does not depend on a clock, which each tool reads itself, and on which of two sessions was first."""
    if text.startswith("{"):
        return sorted(map(json_shape, text.splitlines()))
    lines = [line for line in text.splitlines() if not re.search("_seconds|_bucket", line)]
    return sorted(re.sub(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?|[0-9]+\.[0-9]+|[0-9]{10}", "N", " ".join(line.split())) for line in lines)


def without_longest(one):
    """Of a transaction of several statements, the clock decides which one was the longest."""
    return {key: value for key, value in one.items()
            if one.get("statements", 1) == 1 or one["type"] not in ("transaction", "open") or
            key not in ("query", "query_bytes", "truncated")}


def json_shape(line):
    def cleaned(one):
        if isinstance(one, dict):
            return {key: cleaned(value) for key, value in one.items()
                    if not re.search(r"time|_ms$|begin$|end$|(trace|span)Id|buckets|sample|waits|holders|boundary", key, re.I)}
        return [cleaned(value) for value in one] if isinstance(one, list) else one

    found = without_longest(cleaned(json.loads(line)))
    if found.get("type") == "lock_wait":	# live, the backend may have ended before its server was looked up
        found["server"].pop("pid", None)
    for key in ("command", "statements", "printed"):
        if found.get("type") == "start":
            found.pop(key, None)
    return json.dumps(found, sort_keys=True)


@pytest.mark.parametrize("form", LIVE, ids=" ".join)
def test_same_forms(both, form):
    live, done = both.forms[form], run("replay", both.forms_path, *form)
    assert done.returncode == 0 and live.stdout, done.stderr
    mine, theirs = shape(done.stdout), shape(live.stdout)
    assert mine == theirs
    # Live, some shorter waits are counted, too, and not the statements of sessions whose database is known to be another one.
    counted = "" if "--db" in form else "(?:[0-9]+ (?:statements|transactions), )?"
    ends = [re.findall(rf"{counted}[0-9]+ \w* ?shown.*", text) for text in (done.stderr, live.stderr)]
    assert ends[0] == ends[1] and ends[0]


def transactions_of(events):
    """The transactions of the reader, in the order of replay: the open ones are at the end."""
    found = [one.get("own", one) for one in events if one["type"] in ("transaction", "open") or "own" in one]
    return sorted(found, key=lambda one: one["type"] == "open")


def test_same_transactions(both):
    """The session that runs the first statement may have begun before one of the tools was attached."""
    replayed = [one for one in replay(both.forms_path, "transactions", "-m", "0", "--json") if one["type"] in ("transaction", "open")]
    clocked = {"time", "begin", "end", "duration_ms", "idle_ms"}
    live, mine = (by_session(map(without_longest, objects), clocked) for objects in (both.transactions, replayed))
    assert live == mine and sum(map(len, live.values())) > 30
    states = {one.get("state") for one in replayed}
    assert {"commit", "rollback"} <= states and any(one["statements"] > 1 for one in replayed)
    assert all(one["idle_ms"] <= one["duration_ms"] for one in replayed)


def test_reader_agrees(both):
    found = recording.read(both.path)
    assert found.is_started and found.is_ended and not found.searched
    events = list(found.events())
    assert not found.broken and found.options()["threshold_ns"] == "0"
    assert {line.split()[0]: line.split()[1:] for line in found.layout().splitlines()} == LAYOUT, "of the page"
    ended = [one for one in both.objects if one["type"] in SHOWN]
    agrees([one for one in events if one["type"] in SHOWN], ended)
    waits = [one for one in replay(both.path, "locks", "-m", "0", "--json") if one["type"] == "lock_wait"]
    order = [one for one in events if one["type"] == "lock_wait"]
    order.sort(key=lambda one: one["outcome"] == "waiting")
    agrees(order, waits)
    assert sum(block.statements for block in found.blocks) == sum(one["type"] == "statement" for one in ended)
    agrees(transactions_of(events), [one for one in replay(both.path, "transactions", "-m", "0", "--json")
                                     if one["type"] in ("transaction", "open")])
    status = [one for one in events if one["type"] == "status"][-1]
    lost = {key for key, value in status["statements"]["lost"].items() if value}
    assert lost <= {"text_truncated"} and status["cpu_ns"]


def moment_marks(text):
    """The bars of a page: {(statement or wait, start in us, duration in us, session): (engine, [(holder, time, flags)])}."""
    begin = int(re.search(r'data-from="(\d+)"', text)[1]) * 1000
    found = {}
    for mark in re.search(r'data-m="([^"]*)"', text)[1].split(",")[:-1]:
        start, took, session, of, _, *holders = mark.split(" ")
        key = of[0] in "sg", begin + int(start), int(took), session[:-1]
        assert key not in found and all(holder[-1] == session[-1] for holder in holders[::3])
        found[key] = session[-1], [(one[:-1], int(us), int(flags)) for one, us, flags in zip(*[iter(holders)] * 3)]
    return found


def session_key(one, server):
    return f"c{one['connection_id']}-{server}" if one.get("connection_id") else f"p{one.get('pid', 0)}"


def check_moments(path):
    """The bars are the statements and lock waits of the recording, with its holders, as the reader of tests/lib reads them."""
    def key(one):
        return one["type"] != "lock_wait", when(one) // 1000, int(one["duration_ms"] * 10 ** 6 + 0.5) // 1000, session_key(one, one["pid"])

    done = run("report", path)
    assert done.returncode == 0, done.stderr
    marks = moment_marks(done.stdout)
    events = [one for one in recording.read(path).events() if one["type"] in ("statement", "running", "lock_wait")]
    waits = {key(one): [(session_key(holder, one["pid"]), int(holder["blocked_ms"] * 10 ** 6 + 0.5) // 1000,
                         holder["queued"] + 2 * holder.get("idle_in_transaction", False)) for holder in one.get("holders", [])]
             for one in events if one["type"] == "lock_wait"}
    statements = {key(one) for one in events if one["type"] != "lock_wait"}
    drawn, waited = ({mark: holders for mark, (_, holders) in marks.items() if mark[0] == which} for which in (True, False))
    assert drawn.keys() <= statements and len(drawn) >= min(len(statements), 200), drawn.keys() - statements
    assert all(waits[mark] == holders for mark, holders in waited.items())
    assert len(waited) >= min(len(waits), 200) and any(waited.values())
    assert len({engine for engine, _ in marks.values()}) == 1
    # A holder that ran a statement is in the same lane as that one.
    ran = {mark[3] for mark in drawn}
    assert {holder for holders in waited.values() for holder, *_ in holders} & ran


def test_moments_of_a_report(both):
    check_moments(both.path)


# --- interrupted, limited, unwritable

def test_running(server, folder):
    """What had not ended is at the end, with the duration so far."""
    path = os.path.join(folder, "running.rec")
    with server.connect() as holder, server.connect() as waiter, Record(path, "-m", "0", "-p", server.pid) as record:
        holder.execute("begin")
        holder.execute("update account set balance = 1 where id = 2")
        thread = threading.Thread(target=waiter.execute, args=("update account set balance = 2 where id = 2",))
        thread.start()
        server.wait_blocked(waiter.info.backend_pid)
        time.sleep(0.3)
        status = record.stop()
        holder.execute("commit")
        thread.join()
        blocker = holder.info.backend_pid
    assert status == 0 and "nothing lost" in record.stderr, record.said()
    (one,) = [one for one in replay(path, "-m", "0", "--json") if one["type"] == "running"]
    assert one["query"].startswith("update account set balance = 2") and one["duration_ms"] >= 300 and "status" not in one
    assert not [one for one in replay(path, "-m", "0", "--json", "--until", "100ms") if one["type"] == "running"]
    (wait,) = [one for one in replay(path, "locks", "-m", "0", "--json") if one["type"] == "lock_wait" and one["outcome"] == "waiting"]
    assert wait["pid"] == one["pid"] and [one["pid"] for one in wait["holders"]] == [blocker]


def test_long_texts(server, folder):
    """More of them at once than a block can have: none is lost, and the blocks remain small."""
    path = os.path.join(folder, "long.rec")
    with Record(path, "-m", "0", "-p", server.pid, "--text", "1M") as record:
        record.pause()
        for n in range(24):
            server.psql(stdin=f"select length('{chr(97 + n) * 900000}');\n".encode())
        os.kill(record.pid, signal.SIGCONT)
        assert record.stop() == 0, record.said()
    lost = re.search(r"lost: (.*)", record.stderr)
    found = recording.read(path)
    statements = sum(block.statements for block in found.blocks)
    assert "did not fit" not in record.stderr and f" {statements} statements" in record.stderr, record.said()
    assert statements == 24 or "full" in lost[1], record.said()
    assert max(block.length for block in found.blocks) <= 3 << 20, [block.length for block in found.blocks]

def pgbench(server, *args):
    return subprocess.Popen(["pgbench", "-n", "-S", "-c", "2", "-j", "2", *args], env=server.env(), stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_killed(server, folder, record_property):
    """What ended two seconds before SIGKILL is in the file, unless the recorder had no CPU; a live tool is the judge."""
    path = os.path.join(folder, "killed.rec")
    load = pgbench(server, "-T", "300", "-R", "2000")
    try:
        for _ in range(KILLS):
            if os.path.exists(path):
                os.remove(path)
            with Record(path, "-m", "0", "-p", server.pid) as record, Slow("--json", "-m", "0", "-p", server.pid) as live:
                begun = time.time_ns()
                time.sleep(random.uniform(0.2, 3.5))
                delayed = scheduled(record.pid)[1]	# it waited for a CPU for so long
                record.kill()
                killed = time.time_ns()
                assert live.stop() == 0, live.said()
                expected = sum(begun < end_of(one) < killed - 2_000_000_000 - delayed for one in live.statements)
            with open(path, "rb") as f:
                data = f.read()
            if len(data) < 64:		# not even the start
                assert killed - begun < 10 ** 9 + delayed
                continue
            found = recording.Recording(data)
            statements = [one for one in found.events(check=False) if one["type"] == "statement"]
            assert found.is_started and not found.is_ended and not found.broken
            assert sum(end_of(one) > begun for one in statements) >= expected
            done = run("replay", path, "-m", "0")
            assert done.returncode == 0 and len(done.stdout.splitlines()) == 2 + len(statements), done.stderr
            assert re.search("has no end; the recorder was killed, or is running|ends within a block; the recorder was killed",
                             done.stderr), done.stderr
    finally:
        load.kill()
        load.wait()


def test_size_and_ring(server, folder, capsys):
    """A statement of pgbench -S takes at most 24 bytes. With --max-size the newest ones are there, without a gap."""
    path, ring = os.path.join(folder, "all.rec"), os.path.join(folder, "ring.rec")
    with Record(path, "-m", "0", "-p", server.pid) as record, Record(ring, "-m", "0", "-p", server.pid, "--max-size", "1M") as limited:
        assert pgbench(server, "-t", "30000").wait(100) == 0
        server.psql("select 'the last one'")
        assert record.stop() == 0 and limited.stop() == 0, record.said()
    every, newest = recording.read(path), recording.read(ring)
    count = sum(block.statements for block in every.blocks)
    size = os.path.getsize(path) / count
    with capsys.disabled():
        print(f"\n{size:.1f} bytes a statement of pgbench -S")
    assert count >= 60000 * 0.9 and size <= 24
    assert os.path.getsize(ring) <= 1 << 20 and newest.is_started and newest.is_ended
    numbers = [block.sequence for block in newest.blocks]
    assert numbers[0] == 0 and numbers[1:] == list(range(numbers[1], numbers[-1] + 1))
    for file, blocks in ((path, every), (ring, newest)):
        done = run("replay", file, "-m", "0", "-o", "query")
        assert done.returncode == 0 and "block" not in done.stderr, done.stderr
        shown = [line for line in done.stdout.splitlines() if line.startswith("SELECT")]
        assert "select 'the last one'" in done.stdout.splitlines()[-1]
        texts = [one["query"].rstrip() for one in blocks.events(check=False) if one["type"] == "statement"]
        assert [text for text in texts if text.startswith("SELECT")] == [line.rstrip() for line in shown]


@pytest.mark.alone
@pytest.mark.parametrize("kept", [("--max-size", "1M"), ("--max-size", "4M"), ("--memory", "1M", "--after", "0.1")])
def test_flood_of_another_user(tmp_path, kept):
    """It displaces its own statements: all of the other user are there, in order, and replay says what is not."""
    flight = "--memory" in kept
    path = tmp_path / ("a-%t.rec" if flight else "a.rec")
    with Backends(build_backends(tmp_path)) as victim, Intruder(intruder.build(tmp_path)) as other:
        with Record(path, "-m", "0", "-p", f"{victim.pid},{other.pid}", *kept) as record:
            victim.do("run 100 select 1")
            time.sleep(1.2)	# they have a block, as an hour ago
            expected = 100
            for _ in range(150):	# in portions that its share of the buffer holds: how fast a recorder is depends on the host
                expected += other.flood("repeat 4000", victim)
                wait_for(lambda: sleeps(record.pid), what="the recorder to have read them")
            if flight:
                os.kill(record.pid, signal.SIGUSR2)
                wait_for(lambda: b"lock waits" in b"".join(record.err.lines), 60, "the file")
            assert record.stop() == 0, record.said()
    (path,) = tmp_path.glob("a*.rec")
    assert flight or path.stat().st_size <= int(kept[1][0]) << 20
    done = run("replay", path, "-m", "0", "--json")
    every = [one for one in map(json.loads, done.stdout.splitlines()) if one["type"] == "statement"]
    assert sum(one["pid"] == victim.pid for one in every) == expected, done.stderr
    assert len(every) > 20000
    ends = [end_of(one) for one in every]
    assert max(latest - end for latest, end in zip(itertools.accumulate(ends, max), ends)) < 10 ** 8	# those of two processors overlap
    (said,) = re.findall(r"no room was left for up to (\d+) statements and 0 lock waits, until ([\dT:-]+Z), of user (\d+)\n", done.stderr)
    assert int(said[2]) == intruder.UID and 0 <= int(said[0]) + len(every) - expected - 600000 <= 100000
    assert said[1] >= min(one["time"] for one in every if one["pid"] == other.pid)[:19]
    assert "missing" not in done.stderr and "damaged" not in done.stderr


def test_full_file_system(server, folder):
    place = os.path.join(folder, "small")
    os.mkdir(place)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", place], check=True)
    try:
        path = os.path.join(place, "full.rec")
        with Record(path, "-m", "0", "-p", server.pid) as record:
            load = pgbench(server, "-T", "60")
            try:
                assert record.wait(60) == 1, record.said()
            finally:
                load.kill()
                load.wait()
            assert "full.rec" in record.stderr and "No space left" in record.stderr, record.said()
        found = recording.read(path)
        done = run("replay", path, "-m", "0")
        assert done.returncode == 0 and "end" in done.stderr
        assert len(done.stdout.splitlines()) == 2 + sum(block.statements for block in found.blocks) > 1000
    finally:
        subprocess.run(["umount", place], check=True)


def test_private_and_redacted(server, folder):
    path = os.path.join(folder, "private.rec")
    with Record(path, "-m", "0", "-p", server.pid, "--redact") as record:
        server.psql("select 'secret', 4711 /* secret */")
        record.ended()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(path, "rb") as f:
        data = f.read()
    assert b"secret" not in data and b"4711" not in data
    (one,) = [one for one in replay(path, "-m", "0", "--json") if one["type"] == "statement"]
    assert one["query"].startswith("select ?, ?"), one


# --- a flight recorder

def test_flight_recorder(server, folder):
    """Nothing is written until a trigger fires; then what was before, and what follows, in a file of its own."""
    place = os.path.join(folder, "flight")
    os.mkdir(place)

    def files():
        return sorted(os.listdir(place))

    def said(record, pattern, count=1):
        wait_for(lambda: len(re.findall(pattern.encode(), b"\n".join(record.err.lines))) >= count, 60, f"{pattern} {count} times")

    def texts(name):
        found = recording.read(os.path.join(place, name))
        assert found.is_started and found.is_ended
        return [one.get("query") for one in found.events() if one["type"] == "statement"]

    with Record(os.path.join(place, "a-%t.rec"), "-m", "0", "-p", server.pid, "--memory", "1M", "--on-slow", "2", "--on-lock", "300ms",
                "--on-error-rate", "3", "--after", "1", "--max-files", "3") as record, server.connect() as one, server.connect() as other:
        one.execute("select 'before'")
        with contextlib.suppress(Exception):
            one.execute("select 1/0")
        time.sleep(1.2)
        assert not files(), record.said()
        one.execute("select pg_sleep(2.1)")
        one.execute("select 'after'")
        said(record, "lock waits")
        (first,) = files()
        assert re.fullmatch(r"a-\d{4}-\d\d-\d\dT\d{6}\.\d{3}Z\.rec", first)
        assert stat.S_IMODE(os.stat(os.path.join(place, first)).st_mode) == 0o600
        # At its end, or before: once a second it is looked for what has not ended.
        assert re.search(r"statement (of|running for) [2-9]\.", record.err.text) and texts(first)[-2:] == ["select pg_sleep(2.1)", "select 'after'"]
        assert "select 'before'" in texts(first)
        def failed():	# they are counted by seconds of CLOCK_MONOTONIC
            time.sleep(-time.monotonic() % 1)
            for _ in range(3):
                with contextlib.suppress(Exception):
                    other.execute("select 1/0")
            return b": errors" in b"".join(record.err.lines)

        wait_for(failed, 60, "three errors in a second")
        said(record, "lock waits", 2)
        assert texts(files()[1])[:3] == ["select 1/0"] * 3
        one.execute("begin")
        one.execute("lock table account")
        thread = threading.Thread(target=other.execute, args=("select count(*) from account",))
        begun = time.monotonic()
        thread.start()
        server.wait_blocked(other.info.backend_pid)
        time.sleep(0.4)
        one.execute("rollback")
        thread.join()
        took = time.monotonic() - begun
        # The errors may have fired twice: this file is the one behind the trigger's own line.
        said(record, r"(?s)lock wait(?:ed for| of) \d.*lock waits")
        waited = float(re.search(r"lock wait(?:ed for| of) (\d+\.\d+) s", record.err.text)[1])
        assert 0.3 <= waited <= took + 0.05 and len(files()) == 3, took

        def asked():
            os.kill(record.pid, signal.SIGUSR2)
            return "SIGUSR2" in record.err.text

        wait_for(asked, 60, "a file for the signal")	# if the wait went on for long, there is another one for its end before
        said(record, r"(?s)SIGUSR2.*lock waits")
        assert f"{first}: removed: limit of --max-files" in record.err.text
        assert len(files()) == 3 and first not in files()
        assert record.stop() == 0, record.said()


def test_flight_recorder_of_what_runs(server, folder):
    """A statement, and a lock wait, that have not ended fire once; the file has them as running."""
    place = os.path.join(folder, "runs")
    os.mkdir(place)
    with Record(os.path.join(place, "a-%t.rec"), "-m", "0", "-p", server.pid, "--memory", "1M", "--on-slow", "2", "--after", "0.1") as record, \
            server.connect() as holder, server.connect() as waiter:
        holder.execute("begin")
        holder.execute("lock table account")
        thread = threading.Thread(target=waiter.execute, args=("select count(*) from account",))
        thread.start()
        wait_for(lambda: b"lock waits" in b"".join(record.err.lines), 60, "the file")
        time.sleep(4)
        (name,) = os.listdir(place)
        holder.execute("commit")
        thread.join()
        blocker = holder.info.backend_pid
        assert re.search(r"statement running for [2-9]\.", record.err.text), record.err.text
        assert record.stop() == 0, record.said()
    (one,) = [one for one in replay(os.path.join(place, name), "-m", "0", "--json") if one["type"] == "running"]
    assert one["query"] == "select count(*) from account" and one["duration_ms"] >= 2000
    (wait,) = [one for one in replay(os.path.join(place, name), "locks", "-m", "0", "--json") if one["type"] == "lock_wait"]
    assert wait["outcome"] == "waiting" and [one["pid"] for one in wait["holders"]] == [blocker]


@pytest.mark.alone
def test_flight_recorder_is_flat(server, folder):
    """Its memory does not grow with the statements, and it sleeps when there are none and no server's program is executed."""
    with Record(os.path.join(folder, "flat-%t.rec"), "-m", "0", "-p", server.pid, "--memory", "1M") as record:
        def status(key):
            with open(f"/proc/{record.pid}/status", encoding="utf-8") as f:
                return int(re.search(rf"^{key}:\s+(\d+)", f.read(), re.M)[1])

        assert pgbench(server, "-t", "30000").wait(100) == 0	# more than the memory has room for
        before = status("RssAnon")
        assert pgbench(server, "-t", "40000").wait(100) == 0
        assert status("RssAnon") <= before + 512, (before, status("RssAnon"))
        time.sleep(2)
        switches = status("voluntary_ctxt_switches")
        time.sleep(3)
        assert status("voluntary_ctxt_switches") - switches <= 6
        assert record.stop() == 0, record.said()
    assert not [name for name in os.listdir(folder) if name.startswith("flat")]


def test_flight_recorder_refuses(tmp_path):
    for args, said in (((tmp_path / "x.rec", "--memory", "1M"), "%t"), ((tmp_path / "x-%t.rec", "--on-slow", "5"), "require --memory"),
                       ((tmp_path / "x-%t.rec", "--memory", "1k"), "too small"), ((), "no file"),
                       ((tmp_path / "x-%t.rec", "--memory", "1M", "--max-files", "1001"), "too large")):
        done = run("record", *args)
        assert done.returncode == 2 and said in done.stderr and done.stdout == "" and not os.listdir(tmp_path), done.stderr


def test_time_of_a_flight_recorder(server, folder):
    """The time of a file begins with its first event, not with the start of the recorder; --since and stat count from there."""
    with Record(os.path.join(folder, "late-%t.rec"), "-m", "0", "-p", server.pid, "--memory", "1M", "--after", "1") as record:
        for _ in range(10):	# more than the memory has room for; each less than the buffer has
            assert pgbench(server, "-t", "3000").wait(100) == 0
            wait_for(lambda: sleeps(record.pid), what="the recorder to have read them")
        server.psql("select 'the last one'")
        os.kill(record.pid, signal.SIGUSR2)
        wait_for(lambda: b"lock waits" in b"".join(record.err.lines), 60, "the file")
        assert record.stop() == 0, record.said()
    (name,) = [name for name in os.listdir(folder) if name.startswith("late")]
    path = os.path.join(folder, name)
    objects = replay(path, "-m", "0", "--json")
    ends = sorted(end_of(one) for one in objects if one["type"] == "statement")
    begin = when(objects[0])
    assert abs(begin - ends[0]) < 10 ** 9 and objects[-1]["lost"]["ring_full"] == 0
    after = replay(path, "-m", "0", "--json", "--since", "500ms")
    assert sum(one["type"] == "statement" for one in after) == sum(end >= begin + 500_000_000 for end in ends)


def test_refuses(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(run("record"), "no file", status=2)
    refused(run("record", tmp_path / "missing" / "file"), "missing")
    with os.fdopen(os.open(tmp_path / "pipe", os.O_RDWR)) as reader:
        refused(run("record", tmp_path / "pipe"), "a pipe cannot have a recording")
        assert not select.select([reader], [], [], 0)[0]


def test_file_of_others(server, tmp_path):
    """One that other users may open, and one to which another recorder writes: neither is touched."""
    path = tmp_path / "open.rec"
    path.write_bytes(b"yesterday")
    for mode in (0o666, 0o644, 0o604, 0o602):
        path.chmod(mode)
        refused(run("record", path, "-p", server.pid, "-d", "1"), "other users may open it; chmod o= it")
    assert path.read_bytes() == b"yesterday"
    path.chmod(0o640)
    with Record(path, "-m", "0", "-p", server.pid) as record:
        server.psql("select 'the first'")
        refused(run("record", path, "-p", server.pid, "-d", "1"), f"process {record.pid} records to it")
        (tmp_path / "link.rec").symlink_to(path)
        refused(run("record", tmp_path / "link.rec", "-p", server.pid, "-d", "1"), f"process {record.pid} records to it")
        server.psql("select 'the last'")
        assert record.stop() == 0, record.said()
    assert [one["query"] for one in replay(path, "-m", "0", "--json") if one["type"] == "statement"] == ["select 'the first'", "select 'the last'"]
    assert run("record", path, "-p", server.pid, "-d", "0.1").returncode == 0
    assert run("record", "/dev/null", "-p", server.pid, "-d", "0.1").returncode == 0
    with open(path, "r+b") as other:	# a lock that is of no process
        fcntl.fcntl(other, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        refused(run("record", path, "-p", server.pid, "-d", "0.1"), "another process has locked it; specify another file")


def test_earlier_recording_is_kept_until_tracing_works(server, tmp_path):
    path = tmp_path / "a.rec"
    path.write_bytes(b"yesterday")
    path.chmod(0o600)
    done = run("record", path, "-p", "1")
    assert done.returncode == 1 and path.read_bytes() == b"yesterday", done.stderr
    with Record(path, "-m", "0", "-p", server.pid, "-n", "2", attached=False) as record:
        wait_for(record.ready, 60, "the recorder")
        for n in range(20):
            server.psql(f"select {n}")
            if record.process.poll() is not None:
                break
        assert record.wait() == 0, record.said()
    assert [one["query"] for one in replay(path, "-m", "0", "--json") if one["type"] == "statement"] == ["select 0", "select 1"]
