# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
Recordings that are made from docs/recording.md: replay prints what is in them. That a recording of a live server is replayed
as live commands print it is tested in test_record.py.
"""

import os
import re

import pytest

import recording
from recording_maker import Made, holder
from replayed import Replayed
from test_record import agrees, replay, transactions_of
from tool import TESTS, run

OLD = os.path.join(TESTS, "data", "recordings")
PARENT = (b"0af7651916cd43dd8448eb211c80319c", b"b7ad6b7169203331", 1)
VALUES = ("--why", "--use", "--phases")


@pytest.fixture(scope="module")
def made():
    """Each member that an event can have, with a value of its own, and more than one block."""
    found = Made(threshold_ms=0.5)
    postgres, maria = found.server(), found.server("mariadb", version="10.11.14-MariaDB", pid=0, container="c0ffee", uid=None)
    shop = found.session(postgres, user="app", database="shop", client="10.0.0.7(53122)", application="till")
    other = found.session(maria, pid=200, tid=207, user="root", database=None, client="localhost", connection=42)
    found.statement(shop, "select 1", ms=12.5, rows=1, query_id=-5)
    found.statement(shop, "select 1/0", ms=2, error="22012")
    found.statement(shop, "select pg_sleep(0.1)", ms=101, rows=1, why={"sleep": 100, "runqueue": 0.25},
                    calls={"epoll_wait": (1, 100), "page_fault": (2, 0.125)}, workers=(2, {"cpu": 7, "disk": 1}),
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
    assert slept["waits"] == [{"call": "epoll_wait", "sleeps": 1, "total_ms": 100}, {"call": "page_fault", "sleeps": 2, "total_ms": 0.125}]
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


@pytest.mark.parametrize("version", sorted({name.split(".")[0] for name in os.listdir(OLD)}))
def test_old_recording(tmp_path, version):
    """That of an earlier release, from a PostgreSQL server, prints the same as then."""
    with open(os.path.join(OLD, f"{version}.hex"), encoding="ascii") as f:
        (tmp_path / "old.rec").write_bytes(bytes.fromhex(f.read()))
    with open(os.path.join(OLD, f"{version}.txt"), encoding="utf-8") as f:
        forms = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)+)", f.read(), re.M)
    assert len(forms) == 3
    for form, expected in forms:
        done = run("replay", tmp_path / "old.rec", *form.split())
        assert done.stdout + done.stderr == expected, form
