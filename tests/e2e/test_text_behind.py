# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""
The text behind PostgreSQL's EXECUTE, FETCH and MOVE. Clients note which one they gave to each name; for EXECUTE, the
server's log has it as its detail.
"""

import collections
import os
import random
import re
import signal
import threading

import pytest

import oracle
import wire
from cluster import Cluster, server_bindir, wait_for
from postgres_releases import Release
from requirements import need_root
from statements import only, stopped
from test_record import Record, replay
from tool import Announced, parsed, run

CLIENTS = 32
NAMES = 4		# the same in all clients
ROUNDS = 40
LONG = "z" * 5000


@pytest.fixture(scope="module", params=[15, 10, 13, 18], ids=lambda number: f"PostgreSQL {number}")
def server(request):
    with (Cluster() if request.param == 15 else Release(request.param)).init() as cluster:
        yield cluster.start()


@pytest.mark.parametrize("hidden, lacks", [
    ([], ""), (["MemoryContextStrdup"], "texts behind EXECUTE"), (["PortalRunFetch"], "texts behind FETCH"),
    (["MemoryContextStrdup", "PortalRunFetch"], "texts behind EXECUTE and FETCH"),
])
def test_tells_which_it_cannot_show(tool, tmp_path, hidden, lacks):
    """A build in which the function is there, but not its call with the text: doctor says it, and so does a command when it begins."""
    need_root()
    with open(os.path.join(server_bindir(), "postgres"), "rb") as f:
        content = bytearray(f.read())
    for name in hidden:
        content[content.index(b"\0" + name.encode() + b"\0") + 1] ^= 1
    path = tmp_path / "postgres"
    path.write_bytes(content)
    traced = tool("postgres", "-x", path, "-m", "0", "--json")
    stopped(traced)
    (line,) = [line for line in traced.stderr.splitlines() if str(path) in line]
    assert line.partition(", which does not report ")[2] == lacks, line
    said = [line for line in run("doctor", path).stdout.splitlines() if "texts behind" in line]
    assert said == [] if not lacks else len(said) == 1 and said[0].endswith(lacks), said


def details(server, offset):
    """{text: the server's detail} of each EXECUTE in the log. Those of the extended protocol have none."""
    found = [(re.search(rb"  statement: (.*)", one.message, re.S), one.additions.get(b"DETAIL", b""))
             for one in list(oracle.entries(server.read_log(offset)))]
    return {text[1].decode(): detail.removeprefix(b"prepare: ").decode() for text, detail in found if detail.startswith(b"prepare: ")}


def client(server, number, noted, failed):
    """Executes and fetches by names that all clients have given to other statements; some by the extended protocol."""
    choose = random.Random(number)
    try:
        with server.connect() as connection:
            run_one = connection.pgconn.exec_ if number % 2 else lambda text: connection.pgconn.exec_params(text, None)
            connection.execute("begin")
            for name in range(NAMES):
                padding = "x" * choose.choice([0, 10, 200, 1000])
                texts = [f"prepare q{name}(int) as select {number}, {name}, $1, '{padding}'",
                         f"declare c{name} no scroll cursor for select {number}, {name}, '{padding}' from generate_series(1, 100)"]
                for text in texts:
                    connection.execute(text)
                for count in range(ROUNDS // NAMES):
                    which = choose.randrange(name + 1)
                    tag = f"/* {number} {name} {count} {'y' * choose.choice([0, 150])} */"
                    for text, behind in ((f"execute q{which}(1) {tag}", f"prepare q{which}(int) as select {number}, {which}, "),
                                         (f"fetch 2 from c{which} {tag}", f"declare c{which} no scroll cursor for select {number}, {which}, "),
                                         (f"select 1 {tag}", None)):
                        run_one(text.encode())
                        noted[text] = behind
    except Exception as why:	# pylint: disable=broad-except
        failed.append(why)


def test_each_has_its_own(server, tool):
    traced = tool("-p", server.pid, "-m", "0", "--json", "--text", "8192")
    offset, noted, failed = server.log_size(), {}, []
    threads = [threading.Thread(target=client, args=(server, number, noted, failed)) for number in range(CLIENTS)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    server.settle()
    stopped(traced)
    logged = details(server, offset)
    found = collections.defaultdict(list)
    for one in traced.statements:
        if one["query"] in noted:
            found[one["query"]].append(one.get("query_of"))
    assert not failed and len(noted) == CLIENTS * (ROUNDS // NAMES) * NAMES * 3, failed
    wrong = {text: found[text] for text, behind in noted.items() if len(found[text]) != 1 or (
        found[text][0] is not None if behind is None else not (found[text][0] or "").startswith(behind))}
    assert not wrong, f"{len(wrong)} of {len(noted)}: {list(wrong.items())[:5]}"
    assert len(logged) == len(noted) // 6 and all(found[text] == [behind] for text, behind in logged.items())


def test_which_statements_have_one(server, tool):
    traced = tool("-p", server.pid, "-m", "0", "--json")
    own = {
        "prepare own(int) as select $1": None,
        "/* a */ execute own(1)": 1,
        "begin; EXECUTE own(2); commit": 1,
        "explain execute own(3)": None,
        "create temp table made as execute own(4)": None,
        "execute nosuch": None,
        "execute own('x')": None,
        "execute own(inside())": 1,
        "execute own(fetches())": 1,
        "execute own(inside() / 0)": None,
        "select 1; execute own(5)": None,
        "do $$ begin execute 'execute inner_one'; end $$": None,
        f"/* {LONG[:3000]} */ select inside()": None,
        "execute own(7); deallocate own": 1,
        "execute own(8)": None,
        "prepare own as select inside(); execute own": None,
        "/* b */ execute own": 2,
        "begin": None,
        "declare \"of, 'c\" cursor for select inside()": None,
        "fetch 1 from \"of, 'c\"": 3,
        "move 1 in \"of, 'c\"; close \"of, 'c\"": 3,
        "fetch 1 from nosuch": None,
        "rollback": None,
    }
    behind = [None, "prepare own(int) as select $1", "prepare own as select inside(); execute own",
              "declare \"of, 'c\" cursor for select inside()"]
    with server.connect(autocommit=True) as connection:
        connection.execute("prepare inner_one as select 6")
        connection.execute("create or replace function fetches() returns int language plpgsql as $$ begin "
                           "execute 'declare inner_c cursor for select 7'; execute 'move 1 in inner_c'; execute 'close inner_c'; return 1; end $$")
        connection.execute("create or replace function inside() returns int language plpgsql as $$ begin "
                           "execute 'execute inner_one'; return 1; end $$")
        for text in own:
            connection.pgconn.exec_(text.encode())
    server.settle()
    stopped(traced)
    found = {one["query"]: one.get("query_of") for one in traced.statements if one["query"] in own}
    assert found == {text: behind[of or 0] for text, of in own.items()}
    assert not any(one["truncated"] for one in traced.statements), "none is cut for a text that is not its own"


def test_while_it_runs(server, tool):
    traced = tool("-p", server.pid, "-m", "0", "--json")
    with server.connect() as connection:
        connection.execute("prepare sleeps as select pg_sleep(60)")
        connection.pgconn.send_query(b"execute sleeps")
        traced.wait_for(lambda traced: len(traced.statements) == 1)
        wait_for(lambda: server.psql("select count(*) from pg_stat_activity where wait_event = 'PgSleep'").stdout.strip() == b"1")
        traced.process.send_signal(signal.SIGUSR1)
        traced.wait_for(lambda traced: any(one["type"] == "running" for one in traced.objects()))
        connection.cancel()
        while connection.pgconn.get_result():
            pass
    running = [one for one in traced.objects() if one["type"] == "running"]
    assert [(one["query"], one["query_of"]) for one in running] == [("execute sleeps", "prepare sleeps as select pg_sleep(60)")], running


@pytest.mark.parametrize("limit", [16, 100, 4096])
@pytest.mark.parametrize("more", [0, 100, 300])
def test_portal_in_parts(server, tool, limit, more):
    """An Execute with a limit of rows suspends the portal; the next one goes on with it. A long text is read again."""
    traced = tool("-p", server.pid, "-m", "0", "--json", "--text", limit)
    by_hand = wire.Wire(server, "by hand")
    prepared, text = "prepare parts as select generate_series(1, 25)", f"execute parts /* {'y' * more} */"
    for one in (prepared, "begin"):
        by_hand.send(wire.simple(one))
        by_hand.until(b"Z")
    by_hand.ask(wire.parse(text), wire.bind(portal="p"), wire.execute("p", 10))
    for _ in range(2):
        by_hand.ask(wire.execute("p", 10))
    by_hand.ask(wire.parse(text), wire.bind(), wire.execute(rows=10), wire.execute(rows=10), wire.execute(rows=10))
    by_hand.close()
    server.settle()
    stopped(traced)
    found = [one for one in traced.statements if one["query"].startswith("execute parts")]
    behind = None if min(len(text), limit) > 126 else prepared[:limit]
    assert [(one["query"], one.get("query_of"), one["fetches"]) for one in found] == [(text[:limit], behind, 3)] * 2, found


@pytest.mark.parametrize("limit", [16, 100, 128, 200, 300, 4096])
def test_long_texts(server, tool, limit):
    """Each gets half of the bytes, but 128 if there are as many."""
    share = max((limit - 2) // 2, min(limit, 128))
    traced = tool("-p", server.pid, "-m", "0", "--json", "--text", limit)
    prepared, executed = f"prepare long as select 1 /* {LONG} */", f"execute long /* {LONG} */"
    with server.connect(autocommit=True) as connection:
        for text in (prepared, executed, "execute long", executed, "values (1) /* after */"):
            connection.pgconn.exec_(text.encode())
    server.settle()
    stopped(traced)
    found = [one for one in traced.statements if one["query"].startswith("execute long")]
    assert [one["query"] for one in found] == [executed[:share], "execute long"[:share], executed[:share]], found
    assert all(one["query_of"] == prepared[:share] and one["query_of_truncated"] for one in found), found
    assert [one["truncated"] for one in found] == [True, False, True] and found[0]["query_bytes"] == len(executed), found
    assert only(traced, "values (1)").get("query_of") is None


def test_top_groups_by_it(server, tool):
    with Announced("top", "-p", server.pid, "--json", "--batch") as traced:
        with server.connect() as connection:
            connection.execute("begin")
            for name in range(3):
                connection.execute(f"prepare many{name}(int) as select relname from pg_class where oid = $1 limit 1")
                connection.execute(f"execute many{name}(1)")
                connection.execute(f"declare cursor{name} cursor for select relname from pg_class where oid = {name} limit 1")
                connection.execute(f"fetch 1 from cursor{name}")
                connection.execute(f"select relname from pg_class where oid = {name} limit 1")
        server.settle()
        assert traced.stop() == 0, traced.said()
    groups = {one["fingerprint"]: one for one in traced.objects() if "fingerprint" in one}
    assert groups["select relname from pg_class where oid = ? limit ?"]["calls"] == 9, groups
    assert not any(one.startswith(("execute", "fetch")) for one in groups), groups


def test_recording(server, tmp_path):
    """Replayed, they are as they were; as pgBadger's input, as in the server's log."""
    path, offset = tmp_path / "r.dbs", server.log_size()
    with Record(path, "-p", server.pid, "-m", "0") as recorded:
        with server.connect(autocommit=True) as connection:
            connection.execute("prepare kept(int) as select $1, 'secret'")
            for number in range(300):
                connection.execute(f"execute kept({number})")
            connection.execute("select 1 /* none */")
        server.settle()
        recorded.ended()
    done = replay(path, "-m", "0", "--json")
    found = {one["query"]: one.get("query_of") for one in done if one["type"] == "statement"}
    assert all(found[f"execute kept({number})"] == "prepare kept(int) as select $1, 'secret'" for number in range(300)), found
    assert found["select 1 /* none */"] is None
    log = run("replay", path, "-m", "0", "--format", "pgbadger").stdout
    assert len(re.findall(r"DETAIL:  prepare: \n\tprepare kept\(int\) as select \$1, 'secret'\n", log)) == 300
    assert log.count("DETAIL:  prepare") == 300 == sum(one.startswith("execute kept") for one in details(server, offset))
    page = run("report", path).stdout
    assert re.search(r"<code>execute kept\(\d+\) \[of: prepare kept\(int\) as select \$1, &#39;secret&#39;\]</code>", page)
    redacted = run("replay", path, "-m", "0", "--json", "--redact").stdout
    assert "secret" not in redacted and redacted.count('"query_of":"prepare kept(int) as select $1, ?"') == 300
    matched = parsed(run("replay", path, "-m", "0", "--json", "--match", "/as select .*secret/").stdout.encode().splitlines())
    assert sum(one.get("query", "").startswith("execute kept") for one in matched) == 300
    lines = run("replay", path, "-m", "0").stdout.splitlines()
    assert sum(line.endswith(" [of: prepare kept(int) as select $1, 'secret']") for line in lines) == 300
