# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Recordings that are made from docs/recording.md: replay prints what is in them, and each of its forms is computed here again
from what the reader of that page finds. That a recording of a live server is replayed as live commands print it is tested in
test_record.py.
"""

import base64
import itertools
import json
import os
import re
import resource
import shutil
import subprocess

import pytest

import recording
import recording_maker
from recording_maker import LAYOUT, WALL_NS, Made, holder
from replayed import Replayed
from requirements import need_root, need_terminal
from terminal import Terminal
from test_architectures import ARCHITECTURES
from test_record import agrees, check_moments, end_of, replay, transactions_of, when
from tool import DBSLOWER, ROOT, TESTS, parsed, refused, run

OLD = os.path.join(TESTS, "data", "recordings")
PARENT = (b"0af7651916cd43dd8448eb211c80319c", b"b7ad6b7169203331", 1)
VALUES = ("--why", "--use", "--phases")
LOCKS, SHARE = 60_000, 49_152


def make(layout=LAYOUT, extra=()):
    """Each member that an event can have, with a value of its own, and more than one block."""
    found = Made(threshold_ms=0.5, layout=layout, extra=extra)
    postgres, maria = found.server(), found.server("mariadb", version="10.11.14-MariaDB", pid=0, container="c0ffee", uid=None)
    shop = found.session(postgres, user="app", database="shop", client="10.0.0.7(53122)", application="till")
    other = found.session(maria, pid=200, tid=207, user="root", database=None, client="localhost", connection=42)
    found.statement(shop, "select 1", ms=12.5, rows=1, query_id=-5)
    found.statement(shop, "select 1/0", ms=2, error="22012")
    found.statement(shop, "select pg_sleep(0.1)", ms=101, rows=1, why={"sleep": 100, "runqueue": 0.25},
                    calls={("epoll_wait", "Timeout:PgSleep"): (1, 100), "page_fault": (2, 0.125)}, workers=(2, {"cpu": 7, "disk": 1}),
                    phases={"parse": 0.1, "plan": 0.2, "execute": 100}, use={"temp_blks_written": 7, "sorts": 1}, fetches=3)
    found.statement(other, b"select '\xff'", ms=3, rows=2, examined=1000, lock_ms=0.5, plan=["full_scan", "filesort"])
    found.statement(other, "select nosuch", ms=1, error="42S22", errno=1054, own=False)
    found.statement(other, "insert into t values (?)", ms=4, changed=3, original=31, parent=PARENT)
    found.statement(shop, "prepare x", ms=1, kind="prepare")
    found.statement(shop, "the beginning", length=50000, status=False)
    found.statement(shop, None)
    found.transaction(shop, "update t set a = 1", ms=70, statements=4, idle_ms=30.5, state="rollback")
    found.wait(shop, ms=40, text="select 5", name="t", more=2, holders=[
        holder(102, "lock table t", ms=40, idle=True, idle_ms=20), holder(103, ms=7, queued=True, running=True)])
    found.wait(shop, ms=10, lock="transactionid", mode="ShareLock", outcome="deadlock", cycle=(101, 102), tag=(728, 0, 0, 0))
    found.wait(other, ms=20, lock="row", mode=None, engine="mysql", outcome="ended", thing="shop.t", index="PRIMARY", text="delete from t",
               holders=[holder(200, "update t set v = 6", connection=41, ms=20)])
    for n in range(9):
        found.statement(shop, "select '" + "x" * 10000 + f"' /* {n} */", ms=2)
    found.status(boundary=2)
    found.statement(shop, "select pg_sleep(600)", kind="running", ms=700)
    found.transaction(other, "begin", ms=900, statements=1, state="idle")
    found.wait(shop, ms=5, outcome="waiting", holders=[])
    return found


@pytest.fixture(scope="module")
def made():
    return make()


def test_reader_and_replay_agree(made, tmp_path):
    """The maker, the reader and replay are written from the same page."""
    path = made.save(tmp_path / "made.rec")
    found = recording.read(path)
    assert found.is_started and found.is_ended and not found.searched and len(found.blocks) > 3
    events = list(found.events())
    assert not found.broken
    shown = replay(path, "-m", "0", "--json", "--prepares", *VALUES)
    ended = [one for one in events if one["type"] in ("statement", "prepare", "running")]
    assert len(ended) == 19
    ended.sort(key=lambda one: one["type"] == "running")
    assert [one.pop(key) for one in ended for key in ("original_bytes", "parent") if key in one] == [31, PARENT]	# of spans
    agrees(ended, [one for one in shown if one["type"] in ("statement", "prepare", "running")])
    waits = sorted((one for one in events if one["type"] == "lock_wait"), key=lambda one: one["outcome"] == "waiting")
    agrees(waits, [one for one in replay(path, "locks", "-m", "0", "--json") if one["type"] == "lock_wait"])
    transactions = transactions_of(events)
    assert [one.pop("original_bytes") for one in transactions if "original_bytes" in one] == [31]
    agrees(transactions, [one for one in replay(path, "transactions", "-m", "0", "--json")
                                     if one["type"] in ("transaction", "open")])


def test_values(made):
    """As they were given."""
    objects = Replayed(made, "-m", "0", "--json", *VALUES).statements
    one, failed, slept, binary, wrong, changed, cut, none = objects[:8]
    assert (one["duration_ms"], one["rows"], one["query_id"], one["client"]) == (12.5, 1, "-5", "10.0.0.7(53122)")
    assert (one["user"], one["database"], one["application"], one["server"]["pid"]) == ("app", "shop", "till", 100)
    assert (failed["status"], failed["sqlstate"]) == ("error", "22012") and "rows" not in failed
    assert {part: ms for part, ms in slept["why_ms"].items() if ms} == {"sleep": 100, "runqueue": 0.25, "cpu": 0.75}
    assert slept["waits"] == [{"call": "epoll_wait", "event": "Timeout:PgSleep", "sleeps": 1, "total_ms": 100}, {"call": "page_fault", "sleeps": 2, "total_ms": 0.125}]
    assert slept["phases_ms"] == {"parse": 0.1, "plan": 0.2, "execute": 100} and slept["use"] == {"temp_blks_written": 7, "sorts": 1}
    assert slept["workers"]["count"] == 2 and slept["workers"]["why_ms"]["cpu"] == 7 and slept["fetches"] == 3
    assert (binary["rows_examined"], binary["lock_ms"], binary["query_plan"]) == (1000, 0.5, ["filesort", "full_scan"])
    assert binary["query_base64"] and binary["connection_id"] == 42 and "database" not in binary and binary["server"]["container"] == "c0ffee"
    assert (wrong["errno"], wrong["sqlstate"]) == (1054, "42S22") and changed["rows"] == 3 and changed["query_bytes"] == 24
    assert (cut["query_bytes"], cut["truncated"]) == (50000, True) and "status" not in cut and "query" not in none


def test_running_statement_is_no_transaction():
    """docs/recording.md: nor is what a statement only prepared."""
    made = Made()
    session = made.session(made.server())
    made.statement(session, "select 1", ms=5)
    made.statement(session, "select 2", ms=5, kind="prepare")
    made.statement(session, "select 3", ms=5, kind="running")
    assert [one["query"] for one in Replayed(made, "transactions", "-m", "0", "--json").of("transaction", "open")] == ["select 1"]


FORMS = (("-m", "0", "--json", "--prepares", *VALUES), ("transactions", "-m", "0", "--json"), ("locks", "-m", "0", "--json"), ("stat",))
# Of a later version: members of each type, of one that is not known yet, and flags; elements of the lists.
ADDED = {"added": True, "added_number": b"\x05", "added_string": b"\x03ab", "added_bytes": b"\x03a\0b", "added_list": b"\x02\x01\x7f",
         "added_later": b"\x02\xff\xff"}
ADDED_NAMES = ["added_later:q", "added_number:n", "added", "added_string:s", "added_bytes:x", "added_list:l", "never", "never_number:n", "float:f"]
TYPED = {"added_text:t": b"\0\x05other", "added_breakdown:b": b"\x01\x05\0\0\0\0\0", "added_backends:h": b"\x02\0\0"}
VALUED = {which: {"added": 7} for which in ("parts", "phases", "resources", "losses")}
LATER = {**dict.fromkeys(("statement", "wait"), {**ADDED, **{name[:-2]: value for name, value in TYPED.items()}}), "backend": ADDED, **VALUED}


@pytest.mark.parametrize("layout, extra", [
    ({which: names[::-1] for which, names in LAYOUT.items()}, {}),
    ({which: ["added", *names[::2], "never", *names[1::2]] if which in ("plan", *VALUED) else
      [*ADDED_NAMES, *names[5:], *(TYPED if which != "backend" else ()), *names[:5]] for which, names in LAYOUT.items()} |
     {"tables": ["one", "other"]}, LATER)], ids=["moved", "added"])
def test_layout_of_another_version(made, layout, extra):
    """Members and elements are found by their names; those that are unknown are skipped."""
    other = make(layout, extra)
    assert len(other.bytes()) > len(made.bytes()) + 800 or not extra
    for form in FORMS:
        shown, wanted = Replayed(other, *form), Replayed(made, *form)
        assert (shown.stdout, shown.stderr) == (wanted.stdout, wanted.stderr), form


def test_texts_of_unknown_members():
    """Are in the dictionary of texts."""
    made = Made(layout={**LAYOUT, "wait": ["comment:t", *LAYOUT["wait"]]}, extra={"wait": {"comment": b"\0\x05other"}})
    session = made.session(made.server())
    made.wait(session)
    made.statement(session, "delete from t where a = 8", ms=2)
    made.statement(session, (2, 24, 1, "77"), ms=2)
    assert [one["query"] for one in Replayed(made, "-m", "0", "--json").statements] == ["delete from t where a = 8", "delete from t where a = 77"]


def test_more_elements_than_are_kept():
    """The rest of a list; holders are counted."""
    made = Made()
    session = made.session(made.server())
    made.wait(session, cycle=range(1, 20), tag=(1, 2, 3, 4, 5), outcome="deadlock", more=2, holders=[holder(pid) for pid in range(1, 12)])
    made.statement(session, "select 1", ms=9, why={}, calls={f"syscall_{n}": (1, 1) for n in range(900, 912)})
    wait, = Replayed(made, "locks", "-m", "0", "--json").waits
    assert (wait["cycle"], wait["tag"], wait["more_holders"]) == (list(range(1, 17)), [1, 2, 3, 4], 5)
    assert [one["pid"] for one in wait["holders"]] == list(range(1, 9))
    statement, = Replayed(made, "-m", "0", "--json", "--why").statements
    assert [one["call"] for one in statement["waits"]] == [f"syscall_{n}" for n in range(900, 908)] and statement["query"] == "select 1"


def test_values_out_of_range():
    """A state that is not known is none; a member without a name is damage, as its value has no end."""
    made = Made(extra={"statement": {"state": b"\x63"}})
    session = made.session(made.server())
    made.transaction(session, "select 1", ms=5)
    one, = Replayed(made, "transactions", "-m", "0", "--json").of("transaction")
    assert one["query"] == "select 1" and "state" not in one
    made = Made()
    made.statement(session, "select 1", ms=5)
    block = made.blocks[-1]
    block.add(6, made.begin(block, session, None, 5)[0], recording_maker.number(1 << len(LAYOUT["statement"])), b"\1")
    made.statement(session, "select 2", ms=5)
    shown = Replayed(made, "-m", "0", "--json")
    assert [one["query"] for one in shown.statements] == ["select 1"] and "1 blocks are damaged" in shown.stderr


@pytest.mark.parametrize("depth", [1, 1000000])
def test_backends_within_backends(tmp_path, depth):
    """Are damage, whatever their depth: the reader has only one stack."""
    made = Made(layout={**LAYOUT, "backend": ["more:h", *LAYOUT["backend"]]}, extra={"backend": {"more": b"\x01\x01" * depth + b"\x01\0"}})
    session = made.session(made.server())
    made.statement(session, "select 1", ms=2)
    made.wait(session, holders=[holder(5)])
    shown = run("replay", made.save(tmp_path / "nested.rec"), "locks", "-m", "0")
    assert shown.returncode == 0 and "1 blocks are damaged" in shown.stderr and "0 waits" in shown.stderr, shown


def test_layout_in_a_later_block(made):
    """Counts for nothing, and neither does one that is too long."""
    def option(value):
        body = recording_maker.string("layout") + recording_maker.string(value)
        return recording_maker.number(1) + recording_maker.number(len(body)) + body

    other = make()
    for block in other.blocks[1:]:
        block.events.insert(0, option("statement text:t"))
    other.blocks[0].events.insert(0, option("statement text:t" + " x" * 10000))
    assert Replayed(other, *FORMS[0]).stdout == Replayed(made, *FORMS[0]).stdout


def test_without_a_start(made, tmp_path):
    """The names are those that this version writes if the blocks say so; else they are unknown."""
    start = len(made.blocks[0].bytes(1, 0, b""))
    (tmp_path / "ours.rec").write_bytes(made.bytes()[start:])
    found = replay(tmp_path / "ours.rec", *FORMS[0])
    assert {one["query"] for one in found if "query" in one} >= {"select 1", "select pg_sleep(0.1)", "select nosuch"}
    other = make({which: names[::-1] for which, names in LAYOUT.items()})
    (tmp_path / "other.rec").write_bytes(other.bytes()[start:])
    refused(run("replay", tmp_path / "other.rec"), "the start is missing, and it was written by another version")
    data = bytearray(other.bytes())
    data[80] ^= 1
    (tmp_path / "other.rec").write_bytes(data)
    refused(run("replay", tmp_path / "other.rec"), "the start is missing, and it was written by another version")


def old_recording(folder, number):
    with open(os.path.join(OLD, f"{number}.hex"), encoding="ascii") as f:
        (folder / "old.rec").write_bytes(bytes.fromhex(f.read()))
    return folder / "old.rec"


# Members of lock waits that were not printed then.
LATER = ("user", "database", "client", "application")


def as_then(now, then):
    """
    What is printed now without LATER, and without parts of the time and losses that an old recording does not have, which
    are 0.
    """
    if not isinstance(now, dict) or not isinstance(then, dict):
        return now
    later = LATER if now.get("type") == "lock_wait" else ()
    return {key: as_then(value, then.get(key)) for key, value in now.items() if key in then or (value != 0 and key not in later)}


@pytest.mark.parametrize("version", sorted({name.split(".")[0] for name in os.listdir(OLD)}))
def test_old_recording(tmp_path, version):
    """Of version 1: from a PostgreSQL server, and with each member that it had. They print the same as then."""
    path = old_recording(tmp_path, version)
    with open(os.path.join(OLD, f"{version}.txt"), encoding="utf-8") as f:
        forms = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)+)", f.read(), re.M)
    assert len(forms) == 3
    for form, expected in forms:
        done = run("replay", path, *form.split())
        for line, then in itertools.zip_longest((done.stdout + done.stderr).splitlines(), expected.splitlines()):
            if line and then and line[0] == then[0] == "{":
                line, then = json.loads(line), json.loads(then)
            assert as_then(line, then) == then, form


def test_documented_example(tmp_path):
    with open(os.path.join(ROOT, "docs", "recording.md"), encoding="utf-8") as f:
        rows = re.findall(r"^    ([0-9a-f]{4})  ((?:[0-9a-f]{2} ?)+)", f.read(), re.M)
    data = b"".join(bytes.fromhex(row) for _, row in rows)
    assert [int(at, 16) for at, _ in rows] == [sum(len(bytes.fromhex(row)) for _, row in rows[:i]) for i in range(len(rows))]
    (tmp_path / "example").write_bytes(data)
    shown = [one for one in replay(tmp_path / "example", "-m", "0", "--json") if one["type"] == "statement"]
    assert [one["query"] for one in shown] == ["select 0 + 1", "select 1 + 1"]
    found = recording.Recording(data)
    assert all(block.is_sound() for block in found.blocks) and [block.statements for block in found.blocks] == [0, 2]
    agrees([one for one in found.events() if one["type"] == "statement"], shown)


# --- the forms of replay

def workload(service):
    """What three sessions of two users ran in 2 s, in more than one block; two of them update the same row."""
    made, is_maria = Made(), service == "mariadb"
    server = made.server(service, version="10.11.14-MariaDB" if is_maria else "15.18")

    def session(number, **values):
        if is_maria:
            values.update(pid=100, tid=100 + number, connection=40 + number, client="localhost")
        return made.session(server, **values)

    def run_by(one, text, ms=0.4, **values):
        usual = {"rows": None if "error" in values else 1, "why": {"runqueue": ms / 8}, "phases": {"execute": ms / 2},
                 "use": {"sorts": 1}}
        made.statement(one, text, ms=ms, **{**usual, **values})

    holding, waiting, other = session(1), session(2), session(3, user="app", database="shop", application="till")
    for n in range(30):
        run_by(other, f"select {n} as small, 'it''s %%' where {n} < 1000", ms=0.125 + n * 1.375)
    for text in ("select 'caf\u00e9 \x1b[31m\t' -- dbslower\n", b"select '\xff'",
                 "select 'tagged' /*controller='polls',a='%2F'*/"):
        run_by(other, text)
    run_by(other, "select '" + "x" * 4088, length=20009)
    for n in range(12):
        run_by(waiting, "select $1::int + 1 as prepared", ms=0.25 * n)
        run_by(waiting, f"select '{chr(97 + n) * 9000}'", ms=3)
    for text, state, errno in (("select 1/0", "22012", 1365), ("selec", "42601", 1064),
                               ("select * from missing", "42P01", 1146)):
        run_by(other, text, error=state, errno=errno if is_maria else 0)
    run_by(other, "select pg_sleep(0.7) as slept", ms=700.5, why={"sleep": 700}, calls={"epoll_wait": (1, 700)})
    at, text = made.now_ms() + 1, "update account set balance = {} where id = 1"
    run_by(holding, "begin", at=at, own=False)
    run_by(holding, text.format(1), at=at + 1, own=False)
    ids = [{"pid": 100, "connection": 41}, {"connection": 42}] if is_maria else [{"pid": holding[1]}, {}]
    lock = {"lock": "row", "mode": None, "engine": "mysql", "thing": "d.account", "index": "PRIMARY"} if is_maria else {
        "lock": "transactionid", "mode": "ShareLock", "tag": (728, 0, 0, 0)}
    made.wait(waiting, ms=48.5, at=at + 3.25, text=text.format(2), **lock, **ids[1], holders=[
        holder(**ids[0], text=text.format(1), ms=48.5, running=False, idle=True, idle_ms=50)])
    run_by(holding, "commit", at=at + 51.5, own=False)
    run_by(waiting, text.format(2), ms=50, at=at + 3, why={"lock": 48.5})
    made.transaction(holding, text.format(1), ms=52, at=at, statements=3, idle_ms=50.5)
    run_by(waiting, "delete from account where id > 990", rows=10)
    for one in (holding, waiting, other):
        run_by(one, "select 'last'")
    run_by(other, "prepare", kind="prepare")
    made.status(lost={"text_truncated": 1})
    run_by(other, "select pg_sleep(600)", ms=25, kind="running", status=False)
    return made


class Recorded:
    """A recording, and what the reader finds in it."""

    def __init__(self, path, made):
        self.path = str(made.save(path))
        self.blocks = recording.read(path).blocks
        self.events = list(recording.read(path).events())
        self.statements = [one for one in self.events if one["type"] == "statement"]


@pytest.fixture(scope="module")
def recorded(folder):
    return Recorded(os.path.join(folder, "postgres.rec"), workload("postgresql"))


@pytest.fixture(scope="module")
def maria_recorded(folder):
    return Recorded(os.path.join(folder, "maria.rec"), workload("mariadb"))


@pytest.fixture(params=["recorded", "maria_recorded"])
def both(request):
    return request.getfixturevalue(request.param)


def text_of(one):
    return one["query"] if "query" in one else base64.b64decode(one["query_base64"]).decode(errors="replace")


def test_columns(recorded):
    done = run("replay", recorded.path, "-m", "0")
    head, titles, *rows = done.stdout.splitlines()
    rows, (mark, running) = rows[:-2], rows[-2:]
    assert head == "Tracing database queries for pids 100 slower than 0 ms...", done.stdout[:300]
    assert titles.startswith("TIME(s)"), done.stdout[:300]
    assert len(rows) == len(recorded.statements)
    for row, one in zip(rows, recorded.statements):
        began = f"{(when(one) - WALL_NS) / 10 ** 9:.6f}"
        assert row.split()[:3] == [began, str(one["pid"]), f"{one['duration_ms']:.3f}"], (row, one)
    assert mark == "Still running:" and running.split(None, 3)[2:] == ["25.000", "select pg_sleep(600)"]
    assert f"{len(rows)} shown; lost: 1 truncated texts" in done.stderr, done.stderr


def test_threshold_and_filters(recorded):
    def texts(*args):
        return sorted(one["query"] for one in replay(recorded.path, "--json", *args) if one["type"] == "statement")

    def expected(condition):
        found = sorted(text_of(one) for one in recorded.statements if condition(one))
        assert 0 < len(found) < len(recorded.statements)
        return found

    assert texts("20") == expected(lambda one: one["duration_ms"] >= 20)
    assert texts("-m", "0", "--match", "small") == expected(lambda one: "small" in text_of(one))
    assert texts("-m", "0", "--user", "app") == expected(lambda one: one["user"] == "app")
    assert texts("-m", "0", "--db", "shop", "--match", "/^select [0-9] /") == expected(
        lambda one: one["database"] == "shop" and re.match("select [0-9] ", text_of(one)))
    assert not texts("mysql", "-m", "0")


def test_waits_without_a_session(tmp_path):
    """Earlier versions did not record whose waits they were: no filter by that selects them."""
    path = old_recording(tmp_path, 1)
    user = {one["user"] for one in replay(path, "-m", "0", "--json") if one.get("pid") == 31563}
    assert user == {"app"}
    for args, wanted in (((), [31563]), (("--match", "balance"), [31563]), (("--match", "nothing"), []), (("--user", "app"), [])):
        assert [one["pid"] for one in replay(path, "locks", "-m", "0", "--json", *args) if one["type"] == "lock_wait"] == wanted, args


@pytest.mark.parametrize("args, ms", [
    (["postgres"], 1), (["postgres", "30"], 30), (["postgres", "0.25"], 0.25), (["postgres", "-m", "30"], 30),
    (["postgres", "30ms"], 30), (["postgres", "250us"], 0.25), (["postgres", "0.05s"], 50), ([], 1),
    (["postgres", "-m", "0"], 0)])
def test_threshold(args, ms):
    """To the nanosecond."""
    durations = sorted(edge + ns / 10 ** 6 for edge in (0.25, 1, 30, 50, 80) for ns in (-1, 0, 1))
    made = Made()
    session = made.session(made.server())
    for one in durations:
        made.statement(session, "select 1", ms=one)
    shown = [one["duration_ms"] for one in Replayed(made, *args, "--json").statements]
    assert shown == [one for one in durations if one >= ms]


def test_since_and_until(recorded):
    ends = sorted(map(end_of, recorded.statements))
    gaps = sorted((after - before, (before + after) // 2) for before, after in zip(ends, ends[1:]))
    for at in (*(at for _, at in gaps[-4:]), ends[0], ends[20], ends[-1]):
        for option in ("--since", "--until"):
            for text in (f"{(at - WALL_NS) / 10 ** 9:.9f}s", recording.rfc3339(at)):
                objects = replay(recorded.path, "-m", "0", "--json", option, text)
                shown = sorted(end_of(one) for one in objects if one["type"] == "statement")
                assert shown == [end for end in ends if (end >= at if option == "--since" else end <= at)], (option, text)


def test_it_does_not_nap(tmp_path):
    """Neither between portions of a file nor where its clock leaps by hours: the only sleeps are those of its start."""
    many, leaps = Made(), Made()
    for made, count, step in ((many, 40_000, None), (leaps, 400, 3_600_000)):
        session = made.session(made.server())
        for n in range(count):
            made.statement(session, "select 1", at=n * step if step else None)
    for made in many, leaps:
        path = made.save(tmp_path / "naps.rec")
        for form in (["stat"], ["top"], ["-m", "0"], ["stat", "-i", "60"]):
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw
            done = run("replay", path, *form, stdout=subprocess.DEVNULL)
            assert done.returncode == 0 and "nothing lost" in done.stderr, done.stderr
            assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw - before < 20, form


def test_range_outside(tmp_path):
    """Is said, with times that the options take."""
    made = Made()
    session = made.session(made.server())
    for n in range(3):
        made.statement(session, f"select {n}", at=n * 2000, ms=5)
    path = made.save(tmp_path / "range.rec")
    for command in (["replay", path, "-m", "0"], ["replay", path, "stat"], ["report", path]):
        for args in (["--since", "10s"], ["--until", "2025-12-31T23:59:59Z"]):
            done = run(*command, *args)
            said = re.search(rf"^dbslower: {args[0]}: outside of the recording, whose events ended from (\S+) to (\S+)$", done.stderr, re.M)
            assert done.returncode == 0 and said, done.stderr
            assert said.groups() == ("2026-01-01T00:00:00Z", "2026-01-01T00:00:04Z")
            assert "outside" not in run(*command, "--since", said[1], "--until", said[2]).stderr
    assert "outside" not in run("replay", path, "--since", "1s", "--until", "1500ms").stderr	# a gap in it


def test_since_and_until_of_all(recorded):
    """Each command has what ended in the window, here of the events without the longest pause between two statements."""
    ends = sorted(map(end_of, recorded.statements))
    _, at = max((after - before, (before + after) // 2) for before, after in zip(ends, ends[1:]))
    for window, inside in (("--since", lambda end: end >= at), ("--until", lambda end: end <= at)):
        place = (window, f"{(at - WALL_NS) / 10 ** 9:.9f}s")

        def shown(*form, kind):
            objects = replay(recorded.path, *form, "--json", *place)	# pylint: disable=cell-var-from-loop
            return [one for one in objects if one["type"] == kind]

        expected = [one for one in recorded.statements if inside(end_of(one))]
        assert 0 < len(expected) < len(ends)
        assert sum(one["calls"] for one in shown("top", kind="group")) == len(expected)
        assert sum(one["count"] for one in shown("stat", kind="histogram")) == len(expected)
        # A transaction has the time of its end.
        ended = [when(one) for one in transactions_of(recorded.events) if one["type"] == "transaction"]
        assert list(map(when, shown("transactions", "-m", "0", kind="transaction"))) == list(filter(inside, ended))
        waits = [end_of(one) for one in recorded.events if one["type"] == "lock_wait"]
        assert list(map(end_of, shown("locks", "-m", "0", kind="lock_wait"))) == list(filter(inside, waits))
        text = run("replay", recorded.path, "stat", "--openmetrics", "-", *place).stdout
        counts = re.findall(r"^dbslower_statement_duration_seconds_count{.*} (\d+)", text, re.M)
        assert sum(map(int, counts)) == len(expected)


def test_top(recorded):
    groups = [one for one in replay(recorded.path, "top", "-m", "0", "--json") if one["type"] == "group"]
    assert sum(one["calls"] for one in groups) == len(recorded.statements)
    assert sum(one["total_ms"] for one in groups) == pytest.approx(sum(one["duration_ms"] for one in recorded.statements))
    (small,) = [one for one in groups if "small" in one.get("fingerprint", "")]
    assert small["calls"] == 30 and small["rows"] == 30


def test_more_locks_than_rows(tmp_path):
    """A user has three quarters of a table; what finds no room there is counted, once, and takes no longer than the rest."""
    made = Made()
    session = made.session(made.server("postgresql"), user="app", database="shop")
    for n in range(LOCKS):
        made.wait(session, ms=2, tag=(5, n + 1, 0, 0), holders=[holder(pid=100000 + n)])
    made.save(tmp_path / "locks.rec")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = run("replay", tmp_path / "locks.rec", "locks", "--stat", "--json", "--dot", tmp_path / "graph.dot")
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - spent
    assert done.returncode == 0 and spent < 20, (spent, done.stderr)	# it was 60 s
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    sums = [one for one in objects if one["type"] == "lock_stat"]
    assert len(sums) == SHARE and len({one["object"] for one in sums}) == SHARE and {one["waits"] for one in sums} == {1}
    # The graph has the one who waits, too.
    assert objects[-1]["lost"]["table_full"] == LOCKS - SHARE + 1, done.stderr
    nodes = re.findall(r'^\t"(\d+)" \[', (tmp_path / "graph.dot").read_text(), re.M)
    assert len(nodes) == len(set(nodes)) == SHARE


@pytest.mark.parametrize("by", ["command", "db", "user"])
def test_stat(recorded, by):
    groups = [one for one in replay(recorded.path, "stat", "--json") if one["type"] == "histogram"]
    assert sum(one["count"] for one in groups) == len(recorded.statements)
    member = {"db": "database"}.get(by, by)
    groups = {one.get(member): one["count"] for one in replay(recorded.path, "stat", "--by", by, "--json")
              if one["type"] == "histogram"}
    expected = {}
    for one in recorded.statements:
        name = text_of(one).split(" ")[0] if by == "command" else one[member]
        expected[name] = expected.get(name, 0) + 1
    assert groups == expected and len(groups) > 1


def test_pgbadger_and_spans(recorded, tmp_path):
    done = run("replay", recorded.path, "-m", "0", "--format", "pgbadger", "--otlp", tmp_path / "spans")
    assert done.returncode == 0, done.stderr
    durations = [float(one) for one in re.findall(r"duration: ([\d.]+) ms", done.stdout)]
    assert sorted(durations) == pytest.approx(sorted(one["duration_ms"] for one in recorded.statements), abs=0.0011)
    took = []
    for line in (tmp_path / "spans").read_text().splitlines():
        span, *_ = json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]
        took.append((int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])))
    assert sorted(took) == sorted((when(one), end_of(one)) for one in recorded.statements)


def test_locks_forms(recorded, tmp_path):
    (wait,) = [one for one in replay(recorded.path, "locks", "-m", "20", "--json")
               if one["type"] == "lock_wait" and one["lock"] == "transactionid"]
    sums = [one for one in replay(recorded.path, "locks", "-m", "20", "--stat", "--json") if one["type"] == "lock_stat"]
    (one,) = [one for one in sums if one["lock"] == "transactionid"]
    assert one["waits"] == 1 and one["total_ms"] == one["max_ms"] == wait["duration_ms"]
    done = run("replay", recorded.path, "locks", "-m", "20", "--dot", tmp_path / "graph")
    graph = (tmp_path / "graph").read_text()
    assert done.returncode == 0 and "digraph" in graph, done.stderr
    assert str(wait["pid"]) in graph and str(wait["holders"][0]["pid"]) in graph
    table = run("replay", recorded.path, "locks", "-m", "20").stdout
    # The table cuts the decimals that it does not show.
    assert f"{round(wait['duration_ms'] * 10**6) // 1000 / 1000:.3f}" in table and "update account set balance = 1" in table


FORMS = [("-m", "0", "--json", "--why", "--use", "--phases"), ("-m", "0", "--why", "--use"), ("top", "-m", "0", "--json"),
         ("stat", "--by", "command"), ("locks", "-m", "0", "--json"), ("locks", "-m", "0"),
         ("transactions", "-m", "0"), ("transactions", "-m", "0", "--json"), ("-m", "0", "--format", "pgbadger")]


def test_unprivileged(both, folder):
    need_root()
    program = shutil.copy(DBSLOWER, folder)
    copied = shutil.copy(both.path, os.path.join(folder, "public"))
    os.chmod(copied, 0o644)
    for form in FORMS:
        done = [subprocess.run([program, "replay", copied, *form], cwd="/", capture_output=True, timeout=60, stdin=subprocess.DEVNULL,
                               **who) for who in ({}, {"user": 65534, "group": 65534, "extra_groups": []})]
        assert done[0].stdout and done[0].stdout == done[1].stdout and done[0].stderr == done[1].stderr, form
        assert done[0].returncode == done[1].returncode == 0


@pytest.mark.parametrize("form", [("replay", "-m", "0"), ("replay", "top"), ("replay", "locks"), ("replay", "stat"), ("report",)],
                         ids=" ".join)
def test_privileges_before_the_first_byte(recorded, tmp_path, form):
    """Root reads a recording only after it has dropped its privileges."""
    need_root()
    command, *args = form
    subprocess.run(["strace", "-o", tmp_path / "calls", DBSLOWER, command, recorded.path, *args], stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, timeout=60)
    calls = (tmp_path / "calls").read_text().splitlines()
    opened, = [n for n, call in enumerate(calls) if recorded.path in call and call.startswith("open") and "O_PATH" in call]
    dropped = [n for n, call in enumerate(calls) if re.match("set(res)?uid|seccomp|prctl.PR_SET_SECCOMP", call)]
    read = [n for n, call in enumerate(calls) if call.startswith("pread")]
    assert dropped and opened < min(dropped) and max(dropped) < min(read)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_other_architecture(both, name):
    other = ARCHITECTURES[name]
    if not os.path.exists(other.dbslower):
        pytest.skip(f"no build for {name}")
    for form in FORMS:
        done = [subprocess.run([*program, "replay", both.path, *form], capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
                for program in ([DBSLOWER], [other.emulator(), other.dbslower])]
        assert done[0].stdout and done[0].stdout == done[1].stdout, form


# --- damage, refusals

def damaged(path, folder, change):
    """A copy with other bytes."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    other = os.path.join(folder, "damaged.rec")
    with open(other, "wb") as f:
        f.write(change(data) or data)
    return other


def test_damage(recorded, folder):
    lost = recorded.blocks[2]

    def flip(data):
        data[lost.offset + 100] ^= 1

    done = run("replay", damaged(recorded.path, folder, flip), "-m", "0", "--json")
    assert done.returncode == 0 and f"1 blocks are damaged, the first one at byte {lost.offset}" in done.stderr, done.stderr
    shown = [one for one in parsed(done.stdout.encode().splitlines()) if one["type"] == "statement"]
    assert 0 < len(shown) == len(recorded.statements) - lost.statements < len(recorded.statements)
    done = run("replay", damaged(recorded.path, folder, lambda data: data[:lost.end - 7]), "-m", "0")
    assert done.returncode == 0 and "ends within a block" in done.stderr, done.stderr


def test_errors(recorded, folder, tmp_path):
    later = damaged(recorded.path, folder, lambda data: head_of_version(data, 3))
    (tmp_path / "text").write_text("not a recording" * 20)
    (tmp_path / "empty").write_text("")
    os.mkfifo(tmp_path / "pipe")
    refused(run("replay", later), "later version")
    refused(run("replay", tmp_path / "text"), "not a recording")
    refused(run("replay", tmp_path / "empty"), "not a recording")
    refused(run("replay", tmp_path / "missing"), "missing")
    refused(run("replay", tmp_path), str(tmp_path))
    refused(run("replay", tmp_path / "pipe"), "pipe")
    refused(run("replay", recorded.path, "ps"), "cannot be replayed", status=2)
    refused(run("replay", recorded.path, "--until", "1s", "--since", "2s"), "earlier than --since", status=2)
    refused(run("replay", recorded.path, "--since", "yesterday"), "--since", status=2)
    for day in ("2026-02-29", "2100-02-29", "2024-02-30", "2026-04-31", "2026-13-01", "2026-00-10", "2026-01-32", "2026-01-00"):
        refused(run("replay", recorded.path, "--since", f"{day}T00:00:00Z"), "not a time", status=2)
    for day in ("2024-02-29", "2000-02-29", "2026-12-31"):
        assert run("replay", recorded.path, "--since", f"{day}T00:00:00Z").returncode == 0
    refused(run("replay", recorded.path, "-p", "1"), "-p", status=2)


def head_of_version(data, version):
    head = data[:64]
    head[12] = version
    head[8:12] = recording.crc32c(bytes(head[12:])).to_bytes(4, "little")
    return head


# --- time as a slider

STEPS = {"[": -1, "]": 1, "{": -10, "}": 10}


def test_slider(recorded):
    """Keys of top move in the time of a recording: the table has the statements that had ended by then."""
    need_terminal()
    ends, moved = sorted(end_of(one) for one in recorded.statements), {}
    for keys in ("", "[", "[[[", "{", "{{{", "{]", "{{{}}}]"):
        with Terminal("replay", recorded.path, "top", "-i", "0.2", width=150, height=40) as terminal:
            def seconds_shown():
                found = re.search(r":(\d\d\.\d{3}) at ", terminal.screen()[0])
                return found and float(found[1])

            place = last = terminal.until(seconds_shown, "time")
            for key in keys:
                terminal.send(key)
                place = min(max(place + STEPS[key] * 0.2, 0), last)
                terminal.until(lambda: abs((seconds_shown() or 0) - place) < 0.002, f"{place:.3f} s")  # noqa: B023 pylint: disable=cell-var-from-loop
            terminal.send("q")
            assert terminal.stop()[0] == 0
        table = terminal.written[terminal.written.rindex(b"\x1b[?1049l"):].decode()
        seconds = moved[keys] = float(re.search(r"([0-9.]+) s since the start", table)[1])
        calls = sum(int(n) for n in re.findall(r"^ +(\d+) +[0-9.]+ +[0-9.]+ ", table, re.M))
        # The time is cut to milliseconds.
        reached = [WALL_NS + int((seconds + more) * 10 ** 9) for more in (0, 0.001)]
        assert sum(end <= reached[0] for end in ends) <= calls <= sum(end <= reached[1] for end in ends), (keys, table)
        assert terminal.restored
    assert moved["[[["] < moved["["] < moved[""] == moved["{{{}}}]"], moved
    assert (moved["{"], moved["{{{"], moved["{]"]) == (0, 0, 0.2), moved


def test_slider_at_the_end(recorded):
    """There is nothing behind the last interval, which therefore stays on the screen."""
    need_terminal()
    with Terminal("replay", recorded.path, "top", "-i", "600", "--delta", width=150, height=40) as terminal:
        before = [line for line in terminal.wait_for("small") if "small" in line]
        terminal.send("]")
        terminal.read(0.5)
        assert [line for line in terminal.screen() if "small" in line] == before and before
        terminal.send("q")
        assert terminal.stop()[0] == 0


# --- the page of a recording

def test_report(both, tmp_path):
    """The page has the numbers of replay, follows the selections of the command line, and has no literals if they are redacted."""
    def page(*args, said=""):
        done = run("report", both.path, *args)
        assert done.returncode == 0 and re.fullmatch(said, done.stderr), done.stderr
        assert done.stdout.startswith("<!DOCTYPE html>") and "Content-Security-Policy" in done.stdout
        return done.stdout

    def statements(text):
        return int(re.search(r'<dd data-f="statements">(\d+)', text)[1])

    whole = page()
    running = sum(one["type"] == "running" for one in both.events)
    assert statements(whole) == len(both.statements) + running
    slow = [one for one in both.statements if one["duration_ms"] >= 20]
    assert len(slow) <= statements(page("20")) <= len(slow) + running
    assert statements(page("--until", "1ms", said="dbslower: --until: outside of the recording, .*\n")) == 0
    assert "update" in whole and re.search(r"where id = 1\b", whole)
    assert not re.search(r"where id = 1\b", page("--redact")) and "where id = ?" in page("--redact")
    with open(tmp_path / "out", "w", encoding="utf-8") as out:
        done = subprocess.run([DBSLOWER, "report", tmp_path / "missing"], stdout=out, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "missing: " in done.stderr and os.path.getsize(tmp_path / "out") == 0
    assert run("report").returncode == 2


def test_moments_of_a_report(both):
    check_moments(both.path)


def test_report_is_not_for_a_terminal(recorded):
    need_terminal()
    with Terminal("report", recorded.path) as terminal:
        status, said = terminal.stop()
    assert status == 2 and "redirect it" in said and b"<html" not in terminal.written
