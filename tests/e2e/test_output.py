# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
How statements are printed: columns, texts of any bytes, literals that are replaced. On recordings, with what these were made
of; test_record.py compares with live tools, and test_postgres.py and test_mariadb.py have the values of live servers.
"""

import base64
import datetime
import re

import pytest

from recording_maker import WALL_NS, Made
from replayed import Replayed
from statements import ROW, only, rows, with_tag


def recorded(*texts, engine="postgresql", **values):
    made = Made()
    session = made.session(made.server(engine))
    for text in texts:
        made.statement(session, text, **values)
    return made


def test_columns():
    made = Made()
    server = made.server()
    session = made.session(server, pid=4711, user="app", database="shop", client="127.0.0.1(53122)", application="a b")
    made.statement(session, "select generate_series(1, 3)", ms=1234.5678, rows=3, fetches=2, query_id=-4711)
    made.statement(session, "select 1/0", error="22012")
    made.statement(made.session(server, pid=12, user=None, database="", client=None), None, status=False)
    names = "pid,tid,ms,user,db,client,app,rows,fetches,status,sqlstate,query_id,query"
    head, *lines = Replayed(made, "-m", "0", "-o", names).stdout.splitlines()[1:]
    assert head.split() == ["PID", "TID", "MS", "USER", "DB", "CLIENT", "APP", "ROWS", "FETCHES", "STATUS", "SQLSTATE", "QUERY_ID", "QUERY"]
    assert [line.split(None, 13) for line in lines] == [
        ["4711", "4711", "1234.568", "app", "shop", "127.0.0.1(53122)", "a", "b", "3", "2", "ok", "-", "-4711",
         "select generate_series(1, 3)"],
        ["4711", "4711", "1.000", "app", "shop", "127.0.0.1(53122)", "a", "b", "-", "-", "error", "22012", "-", "select 1/0"],
        ["12", "12", "1.000", "-", "-", "-", "-", "-", "-", "-", "-", "-", "[no", "text]"]], lines
    assert lines[0].index("select") == lines[1].index("select") == head.rindex("QUERY")


@pytest.mark.parametrize("zone, hours", [("UTC", 0), ("XXX-5:30", 5.5), ("XXX+8", -8)])
def test_wall_clock(monkeypatch, zone, hours):
    """The local time of day."""
    monkeypatch.setenv("TZ", zone)
    made = recorded("select 1")
    row = Replayed(made, "-m", "0", "-t").rows()[0]
    began = datetime.datetime.fromtimestamp(WALL_NS // 10 ** 9, datetime.timezone(datetime.timedelta(hours=hours)))
    assert row.startswith(f"{began:%H:%M:%S}.001000 "), row


def test_cut_is_marked():
    made = Made()
    session = made.session(made.server())
    made.statement(session, "select 1 /* 20 byte ", length=22)
    made.statement(session, "select '234567890123", length=21)
    assert [row["query"] for row in rows(Replayed(made, "-m", "0"))] == [
        "select 1 /* 20 byte  [cut: 20 of 22 bytes]", "select '234567890123 [cut: 20 of 21 bytes]"]


def test_text_limit_within_a_character():
    """The first part of a character is not printed."""
    whole = "select '" + "世" * 20 + "'"
    made = recorded(whole.encode()[:21], length=69)
    (one,) = Replayed(made, "-m", "0", "--json").statements
    assert one["query"] == "select '世世世世" and one["truncated"] and one["query_bytes"] == 69, one
    (row,) = rows(Replayed(made, "-m", "0"))
    assert row["query"] == "select '世世世世 [cut: 21 of 69 bytes]"


CONTROL = "select /* \x01\x02\x07\x08\x0b\x1b[31mred\x1b]0;title\x07\x7f\t \r\n\tnext \u009b31m \u202egnp */ 1"


def test_control_characters():
    traced = Replayed(recorded(CONTROL), "-m", "0")
    raw = traced.out.data
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]", raw), f"control characters: {raw!r}"
    assert len(traced.rows()) == 1, f"a statement is one line\n{traced.said()}"
    assert "red" in traced.rows()[0] and "next" in traced.rows()[0]


def test_control_characters_json():
    traced = Replayed(recorded(CONTROL), "-m", "0", "--json")
    assert traced.statements[0]["query"] == CONTROL, traced.said()
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", traced.out.data), f"raw control characters: {traced.out.data!r}"


def test_names_of_any_characters():
    """What a client can choose cannot be mistaken for another line or sequence."""
    made, evil = Made(), "e\x1b[2J\nmy \u009b\u202ename\x7f"
    made.statement(made.session(made.server(), user=evil, database=evil, client=evil, application=evil), "select 1")
    (one,) = Replayed(made, "-m", "0", "--json").statements
    assert [one[key] for key in ("user", "database", "client", "application")] == [evil] * 4
    traced = Replayed(made, "-m", "0", "-o", "user,db,client,app,query")
    assert len(traced.stdout.splitlines()) == 3 and not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", traced.stdout), traced.said()


def test_any_bytes_are_valid_json():
    """Latin-1, halves of characters, surrogates."""
    every = bytes(byte for byte in range(256) if byte not in b"'\\")
    texts = [b"select '" + every + b"' /* bytes */", b"select '\xed\xa0\x80 \xf4\x90\x80\x80 \xc0\x80' /* bytes */",
             b"select 1 /* bytes \xe4\xb8"]
    found = with_tag(Replayed(recorded(*texts), "-m", "0", "--json"), "/* bytes")		# parsing them is the test
    assert len(found) == 3
    assert [one["query_bytes"] for one in found] == [len(text) for text in texts]
    assert "abc" in found[0]["query"]
    assert [base64.b64decode(one["query_base64"]) for one in found] == texts, "the bytes as they are"


def test_utf8_is_kept():
    text = "select 'Grüße, мир, 世界, 🐘' /* kept */"
    made = recorded(text)
    assert only(Replayed(made, "-m", "0", "--json"), "kept")["query"] == text
    assert [row["query"] for row in rows(Replayed(made, "-m", "0"))] == [text]


# --- literals

SECRETS = [
    ("select 'secret', 1 as secret_name -- secret", "select ?, ? as secret_name -- ?"),
    ("select $a$it's secret$a$, E'it\\'s secret' /* secret */", "select ?, ? /*?*/"),
    ("select 1 / 0 /* secret */ as A", "select ? / ? /*?*/ as A"),
    ("select 'secret' || repeat('secret', 2) || '" + "secret " * 40 + "'", "select ? || repeat(?, ?) || ?"),
    ("select 'secret', 'not ended", "select ?, ?"),
    ("select $1::text /* secret */", "select $1::text /*?*/"),
]
MARIA_SECRETS = [
    ("select \"secret\", 'it\\'s secret', 1 as A # secret", "select ?, ?, ? as A #?"),
    ("select /*! 'secret' */ -- secret", "select /*! ? */ -- ?"),
    ("set @secret_name = x'0aff' /* secret */", "set @secret_name = ? /*?*/"),
    ("select `secret_name`.id from (select 'x' as id) `secret_name`", "select `secret_name`.id from (select ? as id) `secret_name`"),
    ("set password for 'secret'@'secret' = 'secret'", "set password for ?@? = ?"),
]


@pytest.mark.parametrize("engine, secrets", [("postgresql", SECRETS), ("mariadb", MARIA_SECRETS)], ids=["postgres", "mariadb"])
def test_redact(engine, secrets):
    """No literal is shown, and --match sees them all the same."""
    made = Made()
    session = made.session(made.server(engine))
    for text, _ in secrets:
        made.statement(session, text[:200], length=len(text) if len(text) > 200 else None, error="42601" if "not ended" in text else None)
    made.statement(session, "select 'other'")
    made.statement(session, "select pg_sleep(600) as secret_sleep, 'secret'", kind="running")
    args = ("-m", "0", "--redact", "--match", "secret")
    expected = [text for _, text in secrets]
    for traced in (Replayed(made, *args, "--json"), Replayed(made, *args)):
        shown = traced.stdout.replace("secret_name", "").replace("secret_sleep", "")
        assert "secret" not in shown and "other" not in shown and "secret" not in traced.stderr, traced.said()
        assert "select pg_sleep(?) as secret_sleep, ?" in traced.stdout, traced.said()
        if "--json" in traced.args:
            assert [one["query"] for one in traced.statements] == expected, traced.said()
            assert [one["query_bytes"] for one in traced.statements if one["truncated"]] == [len(text) for text, _ in secrets if len(text) > 200]
        else:
            assert [ROW.fullmatch(row)["query"].partition(" [cut: 200 of ")[0] for row in traced.rows()[:len(secrets)]] == expected, traced.said()


def test_redact_what_failed():
    """The string of a statement that failed may have no end, so the quotes do not rule out a reading."""
    (one,) = Replayed(recorded("select 'a\\', 'zzsecret", error="42601"), "-m", "0", "--redact", "--json").statements
    assert "zzsecret" not in one["query"] and one["query"].startswith("select "), one


# --- where the time went

def breakdown():
    made = Made()
    session = made.session(made.server())
    made.statement(session, "select pg_sleep(0.2)", ms=250, rows=1, why={"sleep": 200, "runqueue": 7.5, "disk": 2},
                   calls={("epoll_wait", "Timeout:PgSleep"): (1, 200), "pread64": (3, 2)}, workers=(2, {"cpu": 30, "disk": 1}),
                   phases={"parse": 0.1, "execute": 240}, use={"read_bytes": 8192, "shared_blks_hit": 12, "sorts": 1})
    made.statement(session, "select 1", ms=0.5, why={}, use={"shared_blks_hit": 0})
    made.statement(session, "select 2 /* of which nothing was seen */", ms=0.5)
    return made


def test_breakdown():
    """The parts by their time, what is 0 is not printed; --use and --phases are lines of their own."""
    why = ["    sleep 200.000, cpu 40.500, runqueue 7.500, disk 2.000; Timeout:PgSleep 200.000 in 1 sleep, pread64 2.000 in 3 sleeps",
           "    2 parallel workers:    cpu 30.000, disk 1.000"]
    use, phases = ["    read_bytes 8192, shared_blks_hit 12, sorts 1"], ["    parse 0.100, execute 240.000"]
    first, second, third = (["0.001000       101      250.000 select pg_sleep(0.2)"], ["0.252000       101        0.500 select 1"],
                            ["0.253500       101        0.500 select 2 /* of which nothing was seen */"])
    cpu, unused = ["    cpu 0.500"], ["    used nothing"]
    for args, lines in (((), first + second + third), (("--why",), first + why + second + cpu + third),
                        (("--use",), first + why + use + second + cpu + unused + third),
                        (("--phases",), first + why + phases + second + cpu + third),
                        (("--why", "--use", "--phases"), first + why + phases + use + second + cpu + unused + third)):
        traced = Replayed(breakdown(), "-m", "0", *args)
        assert traced.rows() == lines, traced.said()


def test_breakdown_columns():
    names = "ms,cpu,runqueue,sleep,lock,execute,parse,query"
    lines = [line.split(None, 7) for line in Replayed(breakdown(), "-m", "0", "-o", names).stdout.splitlines()[2:]]
    assert lines == [["250.000", "40.500", "7.500", "200.000", "0.000", "240.000", "0.100", "select pg_sleep(0.2)"],
                     ["0.500", "0.500", "0.000", "0.000", "0.000", "-", "-", "select 1"],
                     ["0.500", "-", "-", "-", "-", "-", "-", "select 2 /* of which nothing was seen */"]], lines
